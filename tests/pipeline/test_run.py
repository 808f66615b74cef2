"""One release from end to end on real files."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.api import set_budget
from discreet.errors import BudgetExceeded, LedgerError, SourceError
from discreet.publish.manifest import read
from discreet.publish.storage import sha256
from support.agency import SECRET_CODE, SECRET_PERSON, Agency, graduates


def test_published_files_manifest_and_ledger_agree(agency: Agency, isolated: Path) -> None:
    made = agency.release().run(agency.folder / "out")
    out = agency.folder / "out"
    assert read(out) == made
    assert {p.name for p in out.iterdir()} == {*made.files, "manifest.json"}
    assert all(sha256(out / name) == digest for name, digest in made.files.items())
    table = pq.read_table(out / "both.parquet")
    assert table.column_names == ["state", "degree", "count", "moe90", "count_nonnegative"]
    assert table.num_rows == 5 * 4  # every declared cell, "other" included, occupied or not
    assert [tuple(r.values())[:2] for r in table.slice(0, 5).to_pylist()] == [
        ("01", "01"), ("01", "02"), ("01", "03"), ("01", "other"), ("02", "01"),
    ]  # fmt: skip
    lines = (out / "both.csv").read_text().splitlines()
    assert lines[0] == '"state","degree","count","moe90","count_nonnegative"'
    assert lines[1].startswith('"01","01",')
    assert made.guarantee.epsilon == 2
    assert "e^2" in made.guarantee_in_words
    chain = agency.release().ledger.verify(made.ledger.head)
    assert chain.balance("graduates", made.reserved).epsilon_left == 8
    assert not list((isolated / "keys").glob("*.key"))  # the key is gone
    assert not list((isolated / "tmp").iterdir())  # and so is the private folder


def test_nothing_confidential_is_published(agency: Agency) -> None:
    agency.release().run(agency.folder / "out")
    rows = str(graduates().num_rows)
    for path in (agency.folder / "out").iterdir():
        content = path.read_bytes()
        assert SECRET_CODE.encode() not in content
        assert SECRET_PERSON.encode() not in content
    text = (agency.folder / "out" / "manifest.json").read_text()
    assert f" {rows}" not in text
    assert str(agency.folder) not in text


def test_published_rows_depend_on_the_domain_alone(agency: Agency) -> None:
    agency.release().run(agency.folder / "full")
    agency.write(graduates().slice(0, 0))
    agency.release(release="r2").run(agency.folder / "empty")
    keys = [pq.read_table(agency.folder / f / "both.parquet").select(["state", "degree"]) for f in ("full", "empty")]
    assert keys[0].equals(keys[1])


def test_counts_are_near_the_truth_with_tiny_noise(agency: Agency) -> None:
    set_budget(agency.release().ledger, "graduates", epsilon="5000", unit={"kind": "person", "column": "person_id"})
    release = agency.release(tables=[{"name": "all", "method": "counts", "by": ["state", "degree"], "epsilon": "2000"}])
    release.run(agency.folder / "out")
    counts = pq.read_table(agency.folder / "out" / "all.parquet")["count"].to_numpy()
    # persons p have 1 + p % 5 records, two are kept of each; SECRET_PERSON keeps 2; four dirty records
    people = 300
    kept = sum(min(2, 1 + p % 5) for p in range(people)) + 2
    assert kept - 4 <= counts.sum() <= kept
    assert counts.min() >= 0


def test_two_runs_draw_different_noise(agency: Agency) -> None:
    agency.release().run(agency.folder / "a")
    agency.release(release="r2").run(agency.folder / "b")
    a, b = (pq.read_table(agency.folder / f / "both.parquet")["count"].to_numpy() for f in "ab")
    assert (a != b).any()


def test_sparse_and_dense_tables_describe_the_same_cells(agency: Agency) -> None:
    set_budget(agency.release().ledger, "graduates", epsilon="5000", unit={"kind": "person", "column": "person_id"})
    tables = [
        {"name": form, "method": "counts", "by": ["state", "degree"], "epsilon": "1000", "form": form}
        for form in ("dense", "sparse")
    ]
    agency.release(tables=tables).run(agency.folder / "out")
    dense, sparse = (pq.read_table(agency.folder / "out" / f"{f}.parquet").to_pylist() for f in ("dense", "sparse"))
    assert [row for row in dense if row["count"]] == sparse
    assert len(sparse) < len(dense)


def test_a_simulation_is_marked_everywhere_and_needs_its_own_ledger(tmp_path: Path, agency: Agency) -> None:
    with pytest.raises(LedgerError, match="takes no simulation"):
        agency.release().run(agency.folder / "out", simulation="test")
    assert not (agency.folder / "out").exists()
    other = Agency(tmp_path / "sim", kind="simulation")
    with pytest.raises(LedgerError, match="takes no real release"):
        other.release().run(other.folder / "out")
    made = other.release().run(other.folder / "out", simulation="test")
    assert made.simulation
    assert made.ledger.kind == "simulation"
    assert {p.name for p in (other.folder / "out").iterdir()} >= {"both.simulation.csv", "both.simulation.parquet"}
    meta = pq.read_schema(other.folder / "out" / "both.simulation.parquet").metadata
    assert b"SIMULATION" in meta[b"discreet"]
    assert "SIMULATION" in (other.folder / "out" / "codebook.md").read_text()
    assert "SIMULATION" in json.loads((other.folder / "out" / "codebook.json").read_text())["notice"]


def test_a_simulation_repeats(tmp_path: Path) -> None:
    tables = []
    for name in ("a", "b"):
        agency = Agency(tmp_path / name, kind="simulation")
        agency.release().run(agency.folder / "out", simulation="same seed")
        tables.append(pcsv.read_csv(agency.folder / "out" / "both.simulation.csv"))
    assert tables[0].equals(tables[1])


def test_over_budget_says_asked_spent_and_left_and_writes_nothing(agency: Agency, isolated: Path) -> None:
    agency.release().run(agency.folder / "a")

    def dear(data: dict[str, object]) -> None:
        data["tables"][0]["epsilon"] = "8"  # type: ignore[index]

    with pytest.raises(BudgetExceeded, match=r"asked 8\.5, spent 2, left 8"):
        agency.release(dear, release="r2").run(agency.folder / "b")
    assert not (agency.folder / "b").exists()
    assert len(agency.release().ledger.chain().entries) == 4


def test_a_release_name_is_used_once(agency: Agency) -> None:
    agency.release().run(agency.folder / "a")
    with pytest.raises(LedgerError, match="new name"):
        agency.release().run(agency.folder / "b")


def test_strict_refuses_data_errors_without_spending_and_carries_its_caveat(agency: Agency) -> None:
    with pytest.raises(SourceError, match="strict") as refusal:
        agency.release(strict=True).run(agency.folder / "out")
    assert SECRET_CODE not in str(refusal.value)
    assert len(agency.release().ledger.chain().entries) == 2
    clean = graduates(0).slice(0, 0)
    agency.write(clean)
    made = agency.release(strict=True).run(agency.folder / "out")
    assert any("existence of this release reveals" in caveat for caveat in made.guarantee.caveats)


def test_plan_reads_no_confidential_data(agency: Agency) -> None:
    (agency.folder / "graduates.parquet").unlink()
    plan = agency.release().plan()
    assert plan.total.epsilon == 2
    assert plan.tables[0].cells == 20
    # rate = 1.5/2, a = e^-.75: smallest m with 2a^(m+1)/(1+a) <= .1
    a = np.exp(-0.75)
    m = plan.tables[0].error.margin90
    assert 2 * a ** (m + 1) / (1 + a) <= 0.1 < 2 * a**m / (1 + a)
    assert not plan.problem
    assert plan.balance is not None
    assert plan.balance.epsilon_left == 10


def test_plan_says_why_a_release_would_be_refused(agency: Agency) -> None:
    release = agency.release()
    set_budget(release.ledger, "graduates", epsilon="1", unit={"kind": "person", "column": "person_id"})
    assert "asked 2, spent 0, left 1" in release.plan().problem
    assert "has no budget" in agency.release(asset="other").plan().problem


def test_check_counts_what_the_rules_do(agency: Agency) -> None:
    actual = agency.release().check()
    by_name = {a.attribute.name: a for a in actual.attributes}
    assert actual.records == graduates().num_rows
    assert actual.without_entity == 1
    assert (by_name["state"].missing, by_name["state"].undeclared) == (1, 1)
    assert (by_name["degree"].missing, by_name["degree"].undeclared) == (0, 1)
    assert by_name["state"].examples == (SECRET_CODE,)
    sizes: dict[str, int] = {}
    for person in graduates()["person_id"].to_pylist():
        if person is not None:
            sizes[person] = sizes.get(person, 0) + 1
    assert actual.heavy_entities == sum(n > 2 for n in sizes.values())
    assert actual.records_over == sum(max(0, n - 2) for n in sizes.values())
    assert not actual.clean


def test_three_lines_on_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    monkeypatch.chdir(tmp_path)
    set_budget(discreet.ledger("discreet-ledger.sqlite"), "g", epsilon=Fraction(3), unit="record")
    frame = pl.DataFrame({"state": ["01", "02", "02"]})
    spec = {
        "release": "f",
        "asset": "g",
        "unit": "record",
        "domains": {"state": {"values": ["01", "02"]}},
        "tables": [discreet.Counts(name="t", by=["state"], epsilon="1")],
    }
    release = discreet.release(spec, frame=frame)
    assert release.plan().total.epsilon == 1
    release.run("out")
    assert pq.read_table("out/t.parquet").num_rows == 2


def test_categories_of_polars_are_published_like_the_texts_they_are(tmp_path: Path) -> None:
    """The unit's ids and attributes, in pieces and lazy, with declared categories and without."""
    import polars as pl

    def published(frame: Any, name: str) -> list[bytes]:
        agency = Agency(tmp_path / name, kind="simulation")
        release = discreet.release(agency.spec(), frame=frame, ledger=discreet.ledger(agency.ledger_path))
        release.run(agency.folder / "out", simulation="polars")
        return [path.read_bytes() for path in sorted((agency.folder / "out").glob("*.csv"))]

    texts = pl.from_arrow(graduates())
    assert isinstance(texts, pl.DataFrame)
    loose = texts.with_columns(pl.all().cast(pl.Categorical))
    words = {name: pl.Enum(texts[name].drop_nulls().unique().sort()) for name in texts.columns}
    frames = {
        "loose": loose,
        "lazy": loose.lazy(),
        "declared": texts.cast(words),  # type: ignore[arg-type]
        "pieces": pl.concat([texts.head(99).cast(words), texts.slice(99).cast(words)], rechunk=False),  # type: ignore[arg-type]
    }
    expected = published(texts, "texts")
    for name, frame in frames.items():
        assert published(frame, name) == expected


def test_verify_finds_changed_files(agency: Agency) -> None:
    from discreet.errors import PublishError
    from discreet.pipeline.verify import verify_folder

    release = agency.release()
    release.run(agency.folder / "out")
    out = agency.folder / "out"
    assert verify_folder(release.ledger, out).release == "r1"
    assert verify_folder(release.ledger, out / "manifest.json").release == "r1"
    table = (out / "states.csv").read_text()
    (out / "states.csv").write_text(table.replace("1", "7"))
    with pytest.raises(PublishError, match="files that are not those"):
        verify_folder(release.ledger, out)


def test_two_levels_of_one_hierarchy_are_not_crossed(agency: Agency) -> None:
    (agency.folder / "geo.csv").write_text("state,region\n01,N\n02,N\n")
    domains = {"geo": {"hierarchy": "geo.csv", "levels": ["state", "region"]}}
    tables = [{"name": "t", "method": "counts", "by": ["region", "state"], "epsilon": "1"}]
    with pytest.raises(discreet.DiscreetError, match="only the finer level"):
        agency.release(domains=domains, tables=tables).plan()


def test_no_two_tables_share_noise(tmp_path: Path) -> None:
    """The same domain, ε and key, twice in one release: other draws."""
    agency = Agency(tmp_path / "sim", kind="simulation")
    agency.write(graduates().slice(0, 0))
    tables = [{"name": n, "method": "counts", "by": ["state", "degree"], "epsilon": "1/2"} for n in ("a", "b")]
    agency.release(tables=tables).run(agency.folder / "out", simulation="seed")
    one, two = (pq.read_table(agency.folder / "out" / f"{n}.simulation.parquet")["count"].to_pylist() for n in "ab")
    assert one != two


def test_the_sample_of_records_depends_on_the_release_key(tmp_path: Path) -> None:
    table = pa.table({"person_id": ["p"] * 40, "state": ["01", "02", "03", "04"] * 10, "degree": ["01"] * 40})
    seen = set()
    for i in range(8):
        agency = Agency(tmp_path / str(i), kind="simulation", budget="9000")
        agency.write(table)
        tables = [{"name": "t", "method": "counts", "by": ["state"], "epsilon": "4000"}]
        agency.release(tables=tables).run(agency.folder / "out", simulation=f"key {i}")
        seen.add(tuple(pq.read_table(agency.folder / "out" / "t.simulation.parquet")["count"].to_pylist()))
    assert len(seen) > 1
    assert all(sum(counts) == 2 for counts in seen)


def test_the_binding_covers_parameters_code_and_every_cell(agency: Agency, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.engine.spans import FingerprintedTable, Spans
    from discreet.methods.registry import methods
    from discreet.noise.key import ReleaseKey
    from discreet.pipeline import run as module
    from discreet.pipeline.tabulation import Tabulated
    from discreet.privacy.confidential import Confidential
    from discreet.privacy.guarantee import Guarantee, Record

    cost = Guarantee(unit=Record(), epsilon=2)

    def bind(release: discreet.OpenRelease, *contents: bytes, promise: Any = (cost, "out", "", "ann")) -> bytes:
        """The fingerprints of each table's spans, here of one byte each."""
        marks = [tuple(bytes([mark]) for mark in content) for content in contents]
        cells = [[Confidential(FingerprintedTable(None, Spans(1, 1), mark))] for mark in marks]
        actual = [Tabulated(*pair) for pair in zip(methods(release.spec), cells, strict=True)]
        return module._bind(release.spec, ReleaseKey.simulation("k"), actual, promise)

    base = bind(agency.release(), b"1", b"2")
    less = cost.model_copy(update={"epsilon": 1})
    for other in (
        *((less, "out", "", "ann"), (cost, "in", "", "ann")),
        *((cost, "out", "kept", "ann"), (cost, "out", "", "bob")),
    ):
        assert bind(agency.release(), b"1", b"2", promise=other) != base
    assert bind(agency.release(), b"1", b"2") == base
    assert bind(agency.release(), b"1", b"3") != base
    assert bind(agency.release(), b"2", b"1") != base
    assert len({bind(agency.release(), *parts) for parts in ((b"12", b"3"), (b"1", b"23"), (b"21", b"3"))}) == 3
    assert bind(agency.release(strict=True), b"1", b"2") != base
    assert bind(agency.release(lambda d: d["domains"]["state"].update(provenance="x")), b"1", b"2") != base
    assert bind(agency.release(lambda d: d["tables"][1].update(epsilon="2")), b"1", b"2") != base
    monkeypatch.setattr(module, "code_version", lambda: "other")
    assert bind(agency.release(), b"1", b"2") != base


def test_a_refused_reservation_leaves_no_key(agency: Agency, isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.privacy.ledger.ledger import Ledger

    def refuse(*_: object, **__: object) -> None:
        raise BudgetExceeded("somebody was faster")

    monkeypatch.setattr(Ledger, "reserve", refuse)
    with pytest.raises(BudgetExceeded):
        agency.release().run(agency.folder / "out")
    assert not list((isolated / "keys").glob("*.key"))


def test_one_process_at_a_time_works_on_a_release(agency: Agency, isolated: Path) -> None:
    release = agency.release()

    def meanwhile(step: str, done: int, total: int) -> None:
        if step == "reserve":
            for action in (release.resume, lambda: agency.release().run(agency.folder / "other")):
                with pytest.raises(LedgerError, match="another process is working"):
                    action()

    release.run(agency.folder / "out", observe=meanwhile)
    assert not list((isolated / "tmp").iterdir())


def test_two_ledgers_never_share_a_key_name(tmp_path: Path, isolated: Path) -> None:
    """The same release name, the same second, one key store: the other ledger's key stays."""
    one, two = (Agency(tmp_path / n) for n in "ab")

    def crash(step: str, done: int, total: int) -> None:
        if step == "reserve":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        one.release().run(one.folder / "out", observe=crash)
    two.release().run(two.folder / "out")
    one.release().resume()


def test_a_release_lies_in_no_other_release(agency: Agency) -> None:
    from discreet.errors import PublishError

    agency.release().run(agency.folder / "out")
    with pytest.raises(PublishError, match="inside another release"):
        agency.release(release="r2").run(agency.folder / "out" / "sub")


def test_a_source_that_changes_while_it_is_read_keeps_the_bound(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has too many records is decided on the same snapshot that is counted."""
    from discreet.engine.duckdb import DuckDBEngine

    set_budget(agency.release().ledger, "graduates", epsilon="5000", unit={"person": "person_id"})
    agency.write(pa.table({"person_id": ["p"], "state": ["01"], "degree": ["01"]}))
    store = DuckDBEngine.store

    def change(self: DuckDBEngine, table: object) -> object:
        stored = store(self, table)
        agency.write(pa.table({"person_id": ["p"] * 1000, "state": ["01"] * 1000, "degree": ["01"] * 1000}))
        return stored

    monkeypatch.setattr(DuckDBEngine, "store", change)
    tables = [{"name": "t", "method": "counts", "by": ["state"], "epsilon": "4000"}]
    agency.release(tables=tables).run(agency.folder / "out")
    assert pq.read_table(agency.folder / "out" / "t.parquet")["count"].to_pylist()[0] <= 2


def test_text_that_is_not_utf8_in_parquet_does_not_stop_a_release(agency: Agency) -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
    state = pa.chunked_array([pa.array(["01", "02"]), bad])
    agency.write(pa.table({"person_id": ["a", "b", "c"], "state": state, "degree": ["01"] * 3}))
    actual = agency.release().check()
    assert {a.attribute.name: a.missing for a in actual.attributes} == {"state": 1, "degree": 0}
    set_budget(agency.release().ledger, "graduates", epsilon="9000", unit={"person": "person_id"})
    tables = [{"name": "t", "method": "counts", "by": ["state"], "epsilon": "4000"}]
    agency.release(tables=tables).run(agency.folder / "out")
    assert pq.read_table(agency.folder / "out" / "t.parquet")["count"].to_pylist() == [1, 1, 0, 0, 0]


def test_a_closed_progress_stream_does_not_stop_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.formatting import progress

    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("sys.stderr", Closed())
    with progress() as observe:
        observe("protect", 1, 1)
