"""A server with pins refuses every release that is not the agency's own, even if its digests are consistent."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_server import forbidden, refused, started

from discreet.errors import ParameterError, PublishError
from discreet.publish import pins
from discreet.publish.manifest import read
from discreet.serve.catalogue import TableCatalogue
from discreet.serve.config import Config
from discreet.serve.server import ServerPlan, worker
from support import processes
from support.forged_manifests import forge_manifest
from support.web_client import released


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pinned")


@pytest.fixture(scope="module")
def folder(home: Path) -> Path:
    return released(home)


@pytest.fixture(scope="module")
def ledger(home: Path, folder: Path) -> Path:
    return home / "survey" / "ledger.sqlite"


@pytest.fixture
def pinned(folder: Path, tmp_path: Path) -> Path:
    """A file of pins as `sha256sum` writes it."""
    made = subprocess.run(["sha256sum", folder / "manifest.json"], capture_output=True, check=True).stdout
    (tmp_path / "pins").write_bytes(made)
    return tmp_path / "pins"


@pytest.fixture
def forged(folder: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(folder, tmp_path / "forged"))
    forge_manifest(copy, lambda said: said["tables"][0]["guarantee"].update(epsilon="0.01"))
    return copy


def pin_lines(*arguments: object) -> subprocess.CompletedProcess[str]:
    return processes.discreet("ledger", "pins", *arguments)


def test_the_releases_own_folder_is_served_by_its_pin_and_by_its_ledger(
    folder: Path, pinned: Path, ledger: Path
) -> None:
    for given in (("--pin", pinned), ("--ledger", ledger)):
        with started(folder, *given) as (_, address):
            assert address


def test_a_forgery_whose_digests_all_fit_is_refused(forged: Path, pinned: Path, ledger: Path) -> None:
    assert TableCatalogue.of([forged]).tables  # nothing in the folder tells
    said = refused(forged, "--pin", pinned)
    assert f"{forged}: is not a pinned release" in said
    assert "Serve the folder as the agency published it" in said
    said = refused(forged, "--ledger", ledger)
    assert f"{forged}: has a manifest that is not the one that was committed" in said


def test_where_the_ledger_stood_is_part_of_what_is_pinned(folder: Path, tmp_path: Path, pinned: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    said = json.loads((copy / "manifest.json").read_text())
    said["ledger"]["entry"] += 1
    (copy / "manifest.json").write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n")
    assert TableCatalogue.of([copy]).tables
    with pytest.raises(PublishError, match="is not a pinned release"):
        TableCatalogue.of([copy], pins.read(pinned))


def test_the_command_prints_what_sha256sum_prints(folder: Path, pinned: Path, ledger: Path) -> None:
    done = pin_lines("--ledger", ledger, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == pinned.read_text()


def test_nothing_is_pinned_that_the_ledger_does_not_have(folder: Path, forged: Path, ledger: Path) -> None:
    done = pin_lines("--ledger", ledger, folder, forged)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not the one that was committed" in done.stderr


def test_a_ledger_that_is_not_there_is_one_line(folder: Path, tmp_path: Path) -> None:
    assert "none.sqlite" in refused(folder, "--ledger", tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_a_pin_and_a_ledger_are_not_given_together(folder: Path, pinned: Path, ledger: Path) -> None:
    assert "give one of them" in refused(folder, "--pin", pinned, "--ledger", ledger).lower()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no pin"),
        (b"\n \n", "has no pin"),
        (b"abc  manifest.json\n", "line 1 is not a pin"),
        (b"0" * 64 + b"\n" + b"0" * 65, "line 2 is not a pin"),
        (b"0" * 64 + b"x", "line 1 is not a pin"),
        (b"\xff\n", "is not a list of pins"),
    ],
)
def test_what_is_no_list_of_pins_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "pins").write_bytes(content)
    with pytest.raises(ParameterError, match=said):
        pins.read(tmp_path / "pins")


def test_pins_may_stand_alone_beside_others_and_between_blank_lines(folder: Path, tmp_path: Path) -> None:
    pin = pins.pin_of(read(folder))
    (tmp_path / "pins").write_text(f"{'0' * 64} *other\n\n{pin}")
    actual = pins.read(tmp_path / "pins")
    assert actual == {"0" * 64, pin}
    assert TableCatalogue.of([folder], actual).tables


def test_a_name_with_a_line_feed_cannot_bring_a_pin_of_its_own(folder: Path, tmp_path: Path) -> None:
    name = f"x\n{'0' * 64}  y"
    assert pins.parsed(pins.line(read(folder), name).split("\n"), "here") == {pins.pin_of(read(folder))}
    odd = tmp_path / "a\nb"
    shutil.copytree(folder, odd)
    made = subprocess.run(["sha256sum", odd / "manifest.json"], capture_output=True, text=True, check=True).stdout
    assert made == pins.line(read(odd), str(odd)) + "\n"


def test_every_worker_is_told_the_pins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ServerPlan((str(folder),), Config(), workers=2, pins=frozenset(["0" * 64]))
    with pytest.raises(SystemExit):
        worker(pickle.loads(pickle.dumps(plan)))
    assert "is not a pinned release" in capsys.readouterr().err


INSIDE = """
import json, sys
import discreet.serve.server as server
def instead(plan, say):
    server.TableCatalogue.of(plan.folders, plan.pins)
    print(json.dumps(sorted(sys.modules)))
server.serve = instead
from discreet.cli import main
main()
"""


def test_a_server_that_is_verified_by_a_ledger_has_loaded_nothing_of_it(folder: Path, ledger: Path) -> None:
    command = [sys.executable, "-c", INSIDE, "serve", str(folder), "--ledger", str(ledger)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert "discreet.serve.catalogue" in loaded
    sides = ("discreet.privacy.ledger.ledger", "discreet.privacy.ledger.store", "sqlite3")
    assert not [name for name in loaded if forbidden(name, *sides)]
