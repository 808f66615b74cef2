"""Lookups of records in further tables: by every method, in strict mode, and after a crash."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from discreet.api import set_budget
from discreet.errors import PublishError, SourceError
from support.workplaces import STRONG, Register, jobs, jobs_with_workplaces, workers, workplaces

LOUD = "1000"  # noise is then 0
WHOLE_BUDGET = {"kind": "whole_establishment", "column": "workplace"}


@pytest.fixture
def register(tmp_path: Path) -> Register:
    return Register(tmp_path / "register")


def counts(register: Register, by: list[str]) -> dict[str, Any]:
    """Counts of the records of workers, by attributes of other tables."""
    spec = register.spec()
    spec["unit"] = {"person": "worker", "max_records": 1}
    spec["tables"] = [{"name": "jobs", "method": "counts", "by": by, "epsilon": LOUD}]
    return spec


def published(register: Register, spec: dict[str, Any], **more: Any) -> dict[tuple[str, ...], int]:
    opened, out = register.open(spec, **more), register.folder / f"out-{register._runs}"
    opened.run(out, simulation="suite")
    rows = pq.read_table(out / "jobs.simulation.parquet").to_pylist()
    codes = [name for name in rows[0] if name not in ("count", "moe90")]
    return {tuple(row[name] for name in codes): row["count"] for row in rows if row["count"]}


def truth(by: list[str]) -> dict[tuple[str, ...], int]:
    known = {"place": ["10", "20", "30", "40"], "sector": ["A", "B"], "sex": ["1", "2"]}
    rows = [tuple(row[name] for name in by) for row in jobs_with_workplaces().to_pylist()]
    return dict(Counter(row for row in rows if all(v in known[n] for n, v in zip(by, row, strict=True))))


@pytest.mark.parametrize("by", [["place"], ["sex", "sector"], ["sex"]])
def test_counts_by_columns_of_other_tables(register: Register, by: list[str]) -> None:
    assert published(register, counts(register, by)) == truth(by)


def test_every_kind_of_source_can_be_looked_up(register: Register) -> None:
    spec, folder = counts(register, ["sex", "place"]), register.folder
    expected = truth(["sex", "place"])
    pc.write_csv(workers(jobs().num_rows), folder / "workers.csv")
    with duckdb.connect(str(folder / "places.db")) as connection:
        listed = workplaces()  # noqa: F841 - the query's table
        connection.execute("CREATE TABLE workplaces AS FROM listed")
    spec["source"]["workers"] = str(folder / "workers.csv")
    spec["source"]["workplaces"] = {"duckdb": str(folder / "places.db"), "table": "workplaces"}
    assert published(register, spec) == expected
    with duckdb.connect(str(folder / "places.db")) as connection:
        connection.execute(f"CREATE TABLE jobs AS FROM '{folder}/jobs.parquet'")
    spec["source"]["jobs"] = {"duckdb": str(folder / "places.db"), "table": "jobs"}  # two tables of one database
    assert published(register, spec) == expected


def test_strictly_no_key_is_missing_and_none_is_listed_twice(register: Register) -> None:
    spec = {**register.spec(), "strict": True}
    clean = (
        jobs()
        .filter(pa.compute.less(jobs()["workplace"], 1000))
        .filter(pa.compute.greater(jobs().filter(pa.compute.less(jobs()["workplace"], 1000))["workplace"], 50))
    )
    register.write(jobs=clean, workplaces=workplaces().slice(0, 8))
    register.published(spec)
    register.write(workplaces=pa.concat_tables([workplaces().slice(0, 8), workplaces().slice(0, 1)]))
    with pytest.raises(SourceError, match="strict"):
        register.published(spec)
    register.write(workplaces=workplaces().slice(1, 7))
    with pytest.raises(SourceError, match="strict"):
        register.published(spec)


TWICE = {"worker": [6, 7, 8], "sex": ["2", "9", None], "education": ["3", "3", "3"]}


@pytest.mark.parametrize("strict", [False, True])
def test_a_worker_listed_twice_is_counted_once(register: Register, strict: bool) -> None:
    """By counts, and by counts beside jobs: of two entries each column has the least value."""
    expected = truth(["sex", "place"])
    register.write(workers=pa.concat_tables([workers(jobs().num_rows), pa.table(TWICE)]))
    spec = counts(register, ["sex", "place"])
    if strict:
        with pytest.raises(SourceError, match="strict"):
            published(register, {**spec, "strict": True})
    else:
        assert published(register, spec) == expected
    mixed = counts(register, ["sex", "place"])
    mixed["unit"] = {"establishment": "workplace", "whole": True, "max_records": 1000}
    small = {"name": "small", "method": "employer", "mechanism": "truncated", "by": ["sector"], "epsilon": "100000"}
    mixed["tables"][0]["epsilon"] = "100000"
    mixed["tables"].append(small)
    ledger = register.open(mixed).ledger
    set_budget(ledger, "records", epsilon="1000000", unit=WHOLE_BUDGET, kind="simulation")
    opened = register.open(mixed)
    opened = replace(opened, ledger=ledger)
    opened.run(register.folder / "mixed", simulation="suite")
    rows = pq.read_table(register.folder / "mixed" / "jobs.simulation.parquet").to_pylist()
    assert {(row["sex"], row["place"]): row["count"] for row in rows if row["count"]} == expected
    sectors = pq.read_table(register.folder / "mixed" / "small.simulation.parquet").to_pylist()
    listed = Counter(row["sector"] for row in jobs_with_workplaces().to_pylist() if row["workplace"] is not None)
    assert {row["sector"]: row["count"] for row in sectors} == {"A": listed["A"], "B": listed["B"]}


def test_a_frame_without_a_name_is_the_records(register: Register) -> None:
    spec = counts(register, ["place"])
    fewer = jobs().slice(0, 3)
    assert sum(published(register, spec, frame=fewer).values()) == 3


def test_a_release_of_jobs_is_resumed_to_the_same_bytes(register: Register) -> None:
    spec = register.spec(STRONG, epsilon="4", worker_attributes=["sex"], largest_establishment={"epsilon": "1"})
    expected, opened, out = register.published(spec), register.open(spec), register.folder / "resumed"

    def stop(step: str, done: int, total: int) -> None:
        if step == "protect jobs":
            raise OSError(28, "full")

    with pytest.raises(PublishError, match="epsilon 5 is spent"):
        opened.run(out, simulation="suite", observe=stop)
    opened.resume()
    assert register.files(out) == expected
