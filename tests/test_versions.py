"""Every file that is read back states its format; another version is refused in one line, never partly understood."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from discreet import formats
from discreet.cli import main
from discreet.errors import DiscreetError, PublishError, SpecError
from discreet.post.cubes.model import CubeModel
from discreet.privacy.ledger.events import Genesis
from discreet.publish import measurements
from discreet.publish.description import MEASUREMENTS
from discreet.publish.manifest import Manifest, read
from discreet.publish.storage import LocalFolder
from discreet.serve.catalogue import TableCatalogue
from discreet.spec import Release
from discreet.spec.loader import build, parse
from support.agency import Agency
from support.forged_manifests import forge_file_digest
from support.repository import ROOT

SPEC = """\
release: r
asset: a
source: {g: x.parquet}
unit: record
domains: {d: {values: ["01", "02"]}}
tables: [{name: t, method: counts, by: [d], epsilon: "1"}]
"""


@pytest.fixture
def folder(agency: Agency) -> Path:
    out = agency.folder / "out"
    agency.release().run(out)
    return out


def edited(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def test_one_list_has_the_formats_of_all() -> None:
    """Models carry them as literals, so that nothing else validates."""
    assert get_args(Manifest.model_fields["format"].annotation) == (formats.MANIFEST,)
    assert get_args(CubeModel.model_fields["format"].annotation) == (formats.MODEL,)
    assert get_args(measurements.Measurements.model_fields["format"].annotation) == (formats.MEASUREMENTS,)
    assert get_args(Genesis.model_fields["version"].annotation) == (formats.LEDGER,)
    assert get_args(Release.model_fields["format"].annotation) == (formats.SPEC,)


def test_a_codebook_says_its_format(folder: Path) -> None:
    assert json.loads((folder / "codebook.json").read_text())["format"] == formats.CODEBOOK


def test_the_reference_lists_them() -> None:
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\|.*\| `([\w/-]+)` \|[^|]*\|$", text.partition("### Formats")[2], re.MULTILINE)
    known = (formats.SPEC, formats.LEDGER, formats.MANIFEST, formats.CODEBOOK, formats.MODEL, formats.MEASUREMENTS)
    assert listed[:7] == [*map(str, known), formats.COMPARATOR]


@pytest.mark.parametrize("actual", ["discreet-manifest/1", "discreet-manifest/3", "discreet-manifest/"])
def test_a_manifest_of_another_version(folder: Path, actual: str) -> None:
    edited(folder / "manifest.json", format=actual)
    for opened in (read, lambda place: TableCatalogue.of([place])):
        with pytest.raises(PublishError) as caught:
            opened(folder)
        assert str(caught.value) == (
            f"{folder}: is in format '{actual}', and this version of discreet reads 'discreet-manifest/2' alone. "
            "Produce it again with this version, or read it with the version that wrote it."
        )


def test_a_codebook_of_another_version(folder: Path) -> None:
    edited(folder / "codebook.json", format="discreet-codebook/2")
    forge_file_digest(folder, folder / "codebook.json")
    with pytest.raises(PublishError, match=r"is in format 'discreet-codebook/2', .* 'discreet-codebook/1' alone"):
        TableCatalogue.of([folder])
    for content in (b"{}", b"[]", b"not json", b'{"format": 1}', b"[" * 100_000):
        (folder / "codebook.json").write_bytes(content)
        forge_file_digest(folder, folder / "codebook.json")
        with pytest.raises(PublishError, match="is not a valid codebook"):
            TableCatalogue.of([folder])


def test_measurements_of_another_version(tmp_path: Path) -> None:
    (tmp_path / MEASUREMENTS).write_text('{"format": "discreet-measurements/2", "new": 1}')
    with pytest.raises(PublishError, match="is in format 'discreet-measurements/2'"):
        measurements.read(LocalFolder(tmp_path, tmp_path), "kept")
    (tmp_path / MEASUREMENTS).write_text('{"format": "discreet-measurements/1"}')
    with pytest.raises(PublishError, match="cannot be read"):
        measurements.read(LocalFolder(tmp_path, tmp_path), "kept")


@pytest.mark.parametrize("actual", ["2", '"1"', "true", "null", "1.0", "[1]", "0"])
def test_a_declaration_of_another_version(actual: str) -> None:
    """Before anything else in it is looked at: another version may mean something else by the same keys."""
    with pytest.raises(
        SpecError, match=r"^release\.yaml: is in format .*, and this version of discreet reads 1 alone\."
    ):
        parse(f"format: {actual}\nsomething_new: 1\n{SPEC}")


def test_a_declaration_may_say_its_version(tmp_path: Path) -> None:
    plain, said = parse(SPEC), parse(f"format: 1\n{SPEC}")
    assert plain.format == said.format == 1
    assert plain.digest() == said.digest()
    with pytest.raises(SpecError, match="is in format 2"):
        build({"format": 2}, tmp_path)


def test_the_command_line_says_it_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(folder / "manifest.json", format="discreet-manifest/1")
    ledger = str(folder.parent / "discreet-ledger.sqlite")
    monkeypatch.setattr("sys.argv", ["discreet", "ledger", "verify", "--ledger", ledger, "--manifest", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "is in format 'discreet-manifest/1'" in line


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": ["x"]}', b'{"format": "other/1"}', b"\xff"])
def test_what_has_no_format_at_all(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"no such document|Expecting value|can't decode") as caught:
        formats.parsed(content, formats.MANIFEST, "here")
    assert not isinstance(caught.value, DiscreetError)
