"""Measurements, recoded measurements and tables in an object store: the same bytes as in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import DiscreetError, PublishError, StoreUnavailable
from discreet.pipeline.verify import verify_folder
from support.object_store import S3Server
from support.recoding import EARNINGS, FLOWS, NONCE, RecodingOffice, RunCrash, contents, forget_ledger

SMALL = ({**EARNINGS, "levels": EARNINGS["levels"][:1]}, {**FLOWS, "levels": []})


@pytest.fixture
def expected(office: RecodingOffice) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the same recoding gives in folders."""
    twin = office.copied(office.folder.with_name("twin"))
    twin.recode(*SMALL)
    return bare(contents(twin.folder / "out-new")), contents(twin.folder / "kept/new")


def bare(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name != "manifest.json"}


def lifted(office: RecodingOffice, store: S3Server, prefix: str) -> str:
    """The old measurements, in the store: where they are."""
    for name, content in contents(office.folder / "kept/old").items():
        store.put(f"{prefix}/old/{name}", content)
    return store.uri(f"{prefix}/old")


@pytest.mark.parametrize("end", ["", "protect flows", "write", "commit", "publish"])
def test_recoded_in_a_store(
    office: RecodingOffice, store: S3Server, expected: tuple[dict[str, bytes], dict[str, bytes]], end: str
) -> None:
    forget_ledger(NONCE)  # that of what is expected
    prefix = f"recode-{end.replace(' ', '-')}"
    asked = {"measurements": lifted(office, store, prefix)}
    release = office.open(office.recoding(*SMALL, recode=asked, keep_measurements=store.uri(f"{prefix}/new")))
    out = store.uri(f"{prefix}/out")

    def observe(step: str, done: int, total: int) -> None:
        if step == end and done == total:
            raise RunCrash

    if end:
        with pytest.raises(RunCrash):
            release.run(out, observe=observe)
        if end in ("commit", "publish"):
            release.resume()
        else:  # nothing is recorded, and the prefix is not empty: clear it, or name another
            with pytest.raises(PublishError, match="already exists"):
                release.run(out)
            out = store.uri(f"{prefix}/out2")
            spec = office.recoding(*SMALL, recode=asked, keep_measurements=store.uri(f"{prefix}/new2"))
            office.open(spec).run(out)
    else:
        release.run(out)
    actual = store.files(f"{prefix}/{'out2' if out.partition('?')[0].endswith('2') else 'out'}")
    assert bare(actual) == expected[0]
    assert "manifest.json" in actual
    kept = "new2" if out.partition("?")[0].endswith("2") else "new"
    assert store.files(f"{prefix}/{kept}") == expected[1]
    assert verify_folder(office.ledger, out).derived_from == "old"


def test_measurements_changed_in_a_store_are_found(office: RecodingOffice, store: S3Server, tmp_path: Path) -> None:
    asked = {"measurements": lifted(office, store, "changed")}
    name = "earnings~measured.simulation.parquet"
    whole = store.files("changed/old")[name]
    head = office.ledger.chain().head
    for content in (whole[:-1] + b"x", whole + b"x"):
        store.put(f"changed/old/{name}", content)
        with pytest.raises(DiscreetError, match="is not what the ledger has committed"):
            office.open(office.recoding(*SMALL, recode=asked, keep_measurements=...)).run(tmp_path / "out")
    store.system.delete_file(f"protected/changed/old/{name}")
    with pytest.raises(DiscreetError, match="is not what the ledger has committed"):
        office.open(office.recoding(*SMALL, recode=asked, keep_measurements=...)).run(tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))
    assert office.ledger.chain().head == head


def test_no_measurements_in_a_store(office: RecodingOffice, store: S3Server, tmp_path: Path) -> None:
    spec = office.recoding(*SMALL, recode={"measurements": store.uri("nothing/here")}, keep_measurements=...)
    with pytest.raises(DiscreetError, match="holds no measurements"):
        office.open(spec).run(tmp_path / "out")


def test_a_refusal_leaves_nothing_in_a_store(
    office: RecodingOffice, store: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise StoreUnavailable("refuses", where="store", do="wait")

    monkeypatch.setattr("discreet.pipeline.recode._written", refuse)
    spec = office.recoding(*SMALL, keep_measurements=store.uri("refusal/new"))
    with pytest.raises(StoreUnavailable):
        office.open(spec).run(store.uri("refusal/out"))
    assert not store.files("refusal/new")
    assert not store.files("refusal/out")
