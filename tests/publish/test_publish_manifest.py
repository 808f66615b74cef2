"""The manifest: written, and read back strictly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import PublishError
from discreet.privacy.guarantee import Establishment, Guarantee, Person, Record
from discreet.publish.manifest import FILE, DomainEntry, LedgerEntry, Manifest, ManifestBody, TableEntry, read
from support.hypothesis_profile import examples

texts = st.text(st.characters(codec="utf-8"), max_size=8)
guarantees = st.builds(
    Guarantee,
    unit=st.sampled_from(
        [Record(), Person(column="p", max_records=2), Establishment(column="e", alpha="1/3", adversary="weak")]
    ),
    epsilon=st.fractions(0, 9),
    delta=st.fractions(0, 1),
    caveats=st.lists(texts, max_size=2).map(tuple),
)
tables = st.builds(
    TableEntry,
    name=texts,
    method=st.just("counts"),
    by=st.lists(texts, max_size=2),
    cells=st.integers(1, 2**63 - 1),
    form=st.just("dense"),
    noise=texts,
    margin90=st.integers(0, 99),
    guarantee=guarantees,
    guarantee_in_words=texts,
    files=st.lists(texts, max_size=2),
)
entries = st.builds(
    DomainEntry,
    name=texts,
    columns=st.lists(texts, max_size=2),
    categories=st.integers(1),
    undeclared=texts,
    provenance=texts,
)
sayings = st.builds(
    ManifestBody,
    release=texts,
    asset=texts,
    simulation=st.booleans(),
    notice=texts,
    reserved=st.dates(),
    code=texts,
    spec=texts,
    guarantee=guarantees,
    guarantee_in_words=texts,
    composition=texts,
    domains=st.lists(entries, max_size=2),
    tables=st.lists(tables, max_size=2),
    files=st.dictionaries(texts, texts, max_size=2),
)
places = st.builds(LedgerEntry, kind=st.sampled_from(["real", "simulation"]), entry=st.integers(1), head=texts)
manifests = st.builds(ManifestBody.with_ledger_entry, sayings, places)


def example() -> Manifest:
    guarantee = Guarantee(unit=Person(column="p", max_records=2), epsilon="3/2", caveats=("weights",))
    table = TableEntry(
        name="t",
        method="counts",
        by=["d"],
        cells=2,
        form="dense",
        noise="geometric",
        margin90=3,
        guarantee=guarantee,
        guarantee_in_words=guarantee.in_words(),
        files=["t.csv"],
    )
    said = ManifestBody(
        release="r",
        asset="a",
        simulation=True,
        notice="SIMULATION",
        reserved="2026-01-01",
        code="1",
        spec="00",
        guarantee=guarantee,
        guarantee_in_words=guarantee.in_words(),
        composition="one table",
        domains=[DomainEntry(name="d", columns=["d"], categories=2, undeclared="dropped", provenance="")],
        tables=[table],
        files={"t.csv": "00"},
    )
    return said.with_ledger_entry(LedgerEntry(kind="simulation", entry=4, head="ab"))


def write(folder: Path, text: str | bytes) -> Path:
    (folder / FILE).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@examples(40)
@given(manifests)
def test_a_manifest_reads_back_as_it_was(made: Manifest) -> None:
    again = Manifest.model_validate_json(made.text())
    assert again == made
    assert again.text() == made.text()


def test_a_manifest_file_reads_back(tmp_path: Path) -> None:
    assert read(write(tmp_path, example().text())) == example()


def test_the_text_has_guarantee_ledger_and_files() -> None:
    data = json.loads(example().text())
    assert data["simulation"] is True
    assert data["guarantee"]["epsilon"] == "1.5"
    assert data["guarantee"]["caveats"] == ["weights"]
    assert data["tables"][0]["guarantee"]["caveats"] == ["weights"]
    assert data["ledger"] == {"kind": "simulation", "entry": 4, "head": "ab"}
    assert data["format"] == "discreet-manifest/2"
    assert example().text().endswith("}\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(surprise=1),
        lambda d: d["ledger"].update(surprise=1),
        lambda d: d["tables"][0].update(records=1234),
        lambda d: d["domains"][0].update(records=1234),
        lambda d: d["guarantee"].update(rho="1"),
        lambda d: d["guarantee"].update(epsilon=1.5),
        lambda d: d["guarantee"].update(epsilon="-1"),
        lambda d: d.pop("guarantee"),
        lambda d: d.pop("ledger"),
        lambda d: d.pop("files"),
        lambda d: d["ledger"].update(kind="pretend"),
        lambda d: d.update(files=[]),
    ],
)
def test_unknown_missing_and_wrong_fields_are_refused(tmp_path: Path, change: Any) -> None:
    data = json.loads(example().text())
    change(data)
    with pytest.raises(PublishError, match="cannot be read"):
        read(write(tmp_path, json.dumps(data)))


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", b"not json"])
def test_an_invalid_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(PublishError, match="cannot be read") as caught:
        read(write(tmp_path, content))
    assert caught.value.where == str(tmp_path)


def test_a_folder_without_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(PublishError, match="no manifest") as caught:
            read(folder)
        assert "discreet resume" in caught.value.do


def test_a_file_or_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match=r"is a file\. Name the folder of a release"):
        read(tmp_path / "file")
    (tmp_path / FILE).mkdir()
    with pytest.raises(PublishError, match="cannot be read"):
        read(tmp_path)
