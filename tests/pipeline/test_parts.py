"""A large table is a folder of parts: the same rows, every file committed, and resumed like any other."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from test_crash import assert_nothing_confidential_outside, contents, drive, simulated

import discreet
from discreet.errors import PublishError, ReleaseKeyError
from discreet.methods.counts import method as counts
from discreet.pipeline.verify import verify_folder
from discreet.publish.manifest import Manifest, read
from discreet.publish.storage import sha256
from support import processes
from support.agency import Agency, graduates
from support.crash_driver import CLOCK

CELLS = {"both": 20, "states": 5}


def published(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: int, rows: int = counts.RANGE, form: str = "dense"
) -> tuple[Agency, Manifest]:
    """The agency's release with at most about `part` rows in a file and `rows` in memory."""

    def change(data: dict[str, Any]) -> None:
        for table in data["tables"]:
            table["form"] = form

    agency = Agency(folder, kind="simulation")
    with monkeypatch.context() as patch:
        patch.setattr(counts, "PART", part)
        patch.setattr(counts, "RANGE", rows)
        return agency, agency.release(change).run(folder / "out", simulation="parts")


def files(folder: Path, table: str, kind: str) -> list[Path]:
    """The files of a table in the order of its cells."""
    path = folder / "out" / f"{table}.simulation.{kind}"
    return sorted(path.iterdir()) if path.is_dir() else [path]


def table(folder: Path, name: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in files(folder, name, "parquet")])


def lines(folder: Path, name: str) -> list[list[str]]:
    """The header, which every part has, and the rows of all parts."""
    actual = [list(csv.reader(path.read_text(encoding="utf-8").splitlines())) for path in files(folder, name, "csv")]
    assert all(part[0] == actual[0][0] for part in actual)
    return [actual[0][0], *(row for part in actual for row in part[1:])]


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(("part", "rows"), [(1, 1), (3, 100), (7, 2), (7, 1000), (11, 12)])
def test_the_parts_are_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, part: int, rows: int
) -> None:
    published(tmp_path / "one", monkeypatch, counts.PART, form=form)
    published(tmp_path / "many", monkeypatch, part, rows, form)
    for name in CELLS:
        assert table(tmp_path / "many", name).to_pylist() == table(tmp_path / "one", name).to_pylist()
        assert lines(tmp_path / "many", name) == lines(tmp_path / "one", name)
        assert len(files(tmp_path / "one", name, "parquet")) == 1
    assert len(files(tmp_path / "many", "both", "parquet")) == len(files(tmp_path / "many", "both", "csv")) > 1


@pytest.mark.parametrize("part", [1, 3, 5, 7, 20, 21])
def test_how_many_parts_follows_from_the_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    published(tmp_path / "a", monkeypatch, part)
    for name, cells in CELLS.items():
        sizes = [pq.read_metadata(path).num_rows for path in files(tmp_path / "a", name, "parquet")]
        assert len(sizes) == -(-cells // part)
        assert sizes[:-1] == [part] * (len(sizes) - 1)
        assert sum(sizes) == cells
        whole = (tmp_path / "a" / "out" / f"{name}.simulation.parquet").is_file()
        assert whole == (part >= cells)  # a small table stays one file


def test_the_parts_of_an_empty_source_are_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency = Agency(tmp_path / "a", kind="simulation")
    agency.write(graduates().slice(0, 0))
    monkeypatch.setattr(counts, "PART", 3)
    agency.release().run(agency.folder / "out", simulation="parts")
    assert len(files(agency.folder, "both", "parquet")) == 7
    assert table(agency.folder, "both").num_rows == 20


def test_the_manifest_and_the_codebook_list_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency, made = published(tmp_path / "a", monkeypatch, 3)
    out = agency.folder / "out"
    assert read(out) == made
    actual = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if not path.is_dir()}
    assert set(actual) == {*made.files, "manifest.json"}
    assert all(sha256(actual[name]) == digest for name, digest in made.files.items())
    parts = {
        name: [f"{name}.simulation.{kind}/part-{i:05}.{kind}" for i in range(-(-n // 3)) for kind in ("parquet", "csv")]
        for name, n in CELLS.items()
    }
    assert {entry.name: list(entry.files) for entry in made.tables} == parts
    assert set(made.files) == {*parts["both"], *parts["states"], "codebook.json", "codebook.md"}
    book = json.loads((out / "codebook.json").read_text())
    assert {name: entry["files"] for name, entry in book["tables"].items()} == parts
    page = (out / "codebook.md").read_text()  # of many parts the first and the last
    assert f"Files: {parts['both'][0]}, …, {parts['both'][-1]} ({len(parts['both'])} files)" in page
    assert f"Files: {', '.join(parts['states'])}\n" in page


def test_progress_is_reported_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency, seen = Agency(tmp_path / "a", kind="simulation"), []
    monkeypatch.setattr(counts, "PART", 6)
    agency.release().run(agency.folder / "out", simulation="x", observe=lambda *step: seen.append(step))
    assert [step for step in seen if step[0] == "protect both"] == [("protect both", i, 4) for i in range(1, 5)]


def verify(agency: Agency) -> subprocess.CompletedProcess[str]:
    return processes.discreet("ledger", "verify", "--manifest", "out", cwd=agency.folder)


def test_the_command_line_verifies_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agency, _ = published(tmp_path / "a", monkeypatch, 3)
    verified = verify(agency)
    assert verified.returncode == 0, verified.stderr
    assert "hash chain verified; it contains the given head" in verified.stdout
    files(agency.folder, "both", "csv")[2].unlink()
    refused = verify(agency)
    assert refused.returncode == 1
    assert "files that are not those" in refused.stderr


@pytest.mark.parametrize("what", ["missing", "changed", "swapped", "added"])
def test_verify_finds_a_changed_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    agency, made = published(tmp_path / "a", monkeypatch, 3)
    ledger = discreet.ledger(agency.ledger_path)
    assert verify_folder(ledger, agency.folder / "out") == made
    first, second, *_, last = files(agency.folder, "both", "csv")
    match what:
        case "missing":
            last.unlink()
        case "changed":
            last.write_bytes(last.read_bytes() + b"\n")
        case "swapped":
            one, two = first.read_bytes(), second.read_bytes()
            first.write_bytes(two)
            second.write_bytes(one)
        case _:
            (last.parent / "part-00099.csv").write_bytes(last.read_bytes())
    with pytest.raises(PublishError, match="files that are not those"):
        verify_folder(ledger, agency.folder / "out")


# --- crashes --------------------------------------------------------------------------------------------------------

PART = "6"  # both: 4 parts, states: 1 file
STEPS = ("protect both#1", "protect both#3", "protect both#4", "protect states#1", "write#1", "commit#1", "publish#1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts") / "agency"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, place: Path) -> dict[str, bytes]:
    home = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        agency = simulated(place)
        done = drive(agency, "run", part=PART)
    assert done.returncode == 0, done.stderr
    assert [s for s in done.stdout.split("\n") if s.startswith("protect both")] == [
        f"protect both#{i}" for i in range(1, 5)
    ]
    actual = contents(agency.folder / "out")
    assert sum(bool(re.fullmatch(r"both\.simulation\.(csv|parquet)/part-0000[0-3]\.\1", n)) for n in actual) == 8
    return actual


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_between_parts_then_resumed(
    place: Path, isolated: Path, undisturbed: dict[str, bytes], step: str
) -> None:
    agency = simulated(place)
    assert drive(agency, "run", step, PART).returncode == -signal.SIGKILL
    assert_nothing_confidential_outside([place, isolated], private=isolated / "tmp")
    assert discreet.ledger(agency.ledger_path).verify().balance("graduates", CLOCK.date()).epsilon == 2
    again = drive(agency, "resume", part=PART)
    assert again.returncode == 0, again.stderr
    assert contents(agency.folder / "out") == undisturbed
    after = discreet.ledger(agency.ledger_path).verify()
    assert after.balance("graduates", CLOCK.date()).epsilon == 2
    assert after.releases()["r1"].status == "committed"
    assert not list((isolated / "keys").glob("*.key"))
    assert {p.name for p in agency.folder.iterdir()} == {
        "out", "graduates.parquet", "release.yaml", "discreet-ledger.sqlite",
    }  # fmt: skip


@pytest.mark.slow
def test_a_part_lost_after_the_commit_is_drawn_again(place: Path, undisturbed: dict[str, bytes]) -> None:
    agency = simulated(place)
    drive(agency, "run", "commit#1", PART)
    (staging,) = agency.folder.glob(".discreet-*.staging")
    (staging / "both.simulation.csv" / "part-00002.csv").unlink()
    assert drive(agency, "resume", part=PART).returncode == 0
    assert contents(agency.folder / "out") == undisturbed


@pytest.mark.slow
def test_another_cut_is_not_what_was_reserved(place: Path, undisturbed: dict[str, bytes]) -> None:
    """Were the cut changed without a new code version, the key would still be bound to the old one."""
    agency = simulated(place)
    drive(agency, "run", "protect both#2", PART)
    refused = drive(agency, "resume", part="7")
    assert refused.returncode != 0
    assert "bound to other data" in refused.stderr
    assert drive(agency, "resume", part=PART).returncode == 0
    assert contents(agency.folder / "out") == undisturbed


@pytest.mark.parametrize("cell", [0, 6, 14])  # in the first part, between, in the last one that has records
def test_rows_that_changed_after_the_key_was_bound_are_never_published(
    agency: Agency, monkeypatch: pytest.MonkeyPatch, cell: int
) -> None:
    """Had a worker read other data than were fingerprinted, two releases would share their noise."""
    from discreet.engine.duckdb import DuckDBEngine

    ordered, bound = DuckDBEngine._ordered, set()

    def other(self: DuckDBEngine, table: Any) -> Any:
        again, _ = table.op() in bound, bound.add(table.op())
        for batch in ordered(self, table):
            cells, n = batch.columns
            more = pc.add(n, pc.cast(pc.equal(cells, cell), pa.int64()))
            yield pa.RecordBatch.from_arrays([cells, more], schema=batch.schema) if again else batch

    monkeypatch.setattr(counts, "PART", 3)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "_ordered", other)
        with pytest.raises(PublishError, match=r"source changed while it was read\) after the reservation .* is spent"):
            agency.release().run(agency.folder / "out")
    assert not (agency.folder / "out").exists()
    assert not list(agency.folder.glob(".discreet-*"))
    assert agency.release().ledger.verify().releases()["r1"].status == "reserved"
    agency.write(graduates().slice(1))
    with pytest.raises(ReleaseKeyError, match="bound to other data"):
        agency.release().resume()
    agency.write(graduates())
    made = agency.release().resume()
    assert verify_folder(agency.release().ledger, agency.folder / "out") == made
