"""A counts release end to end against DuckDB's bare queries: `python -m benchmarks.counts --json`.

Jobs by place (1,200) × sector (20) × ownership (3), all 72,000 cells: read, tabulate, reserve, protect, write, commit,
publish. The floor of unit *record* is the bare GROUP BY; that of unit *person* ranks, keeps two records and groups.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from benchmarks._measure import Result, best_of, front, peak_rss_of
from discreet.api import set_budget
from discreet.noise.keystore import FileKeyStore
from discreet.privacy.ledger.ledger import Ledger

PLACES, SECTORS, OWNERS = 1200, 20, 3
BY = ["place", "sector", "ownership"]
GROUP = "SELECT place, sector, ownership, count(*) FROM {} GROUP BY ALL"
RANKED = (
    "(SELECT place, sector, ownership FROM '{}' QUALIFY row_number() OVER "
    "(PARTITION BY person ORDER BY hash(person, place, sector, ownership)) <= 2)"
)
# Our approach in bare SQL: rank only persons with too many records.
TUNED = (
    "(WITH heavy AS (SELECT person FROM '{0}' GROUP BY person HAVING count(*) > 2) "
    "SELECT place, sector, ownership FROM '{0}' ANTI JOIN heavy USING (person) UNION ALL "
    "SELECT place, sector, ownership FROM (FROM '{0}' SEMI JOIN heavy USING (person) QUALIFY row_number() OVER "
    "(PARTITION BY person ORDER BY hash(person, place, sector, ownership)) <= 2))"
)


def codes(n: int, width: int) -> list[str]:
    return [f"{i:0{width}d}" for i in range(n)]


def jobs(path: Path, rows: int) -> None:
    """Synthetic jobs: Pareto place sizes, about 0.73 persons per job, written in pieces."""
    rng = np.random.default_rng(7)
    dictionaries = [pa.array(codes(PLACES, 5)), pa.array(codes(SECTORS, 2)), pa.array(codes(OWNERS, 1))]
    schema = pa.schema([("person", pa.int64()), *((name, pa.dictionary(pa.int32(), pa.string())) for name in BY)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - start)
            place = np.minimum((rng.pareto(1.1, n) * 30).astype(np.int32), PLACES - 1)
            picks = [place, rng.integers(0, SECTORS, n, np.int32), rng.integers(0, OWNERS, n, np.int32)]
            columns = [pa.DictionaryArray.from_arrays(pa.array(p), d) for p, d in zip(picks, dictionaries, strict=True)]
            person = pa.array(rng.integers(0, max(rows * 8 // 11, 1), n))
            writer.write_batch(pa.RecordBatch.from_arrays([person, *columns], schema=schema))


def release(
    folder: Path, unit: Any, ledger: Ledger, numbers: Any, source: str = "jobs.parquet", session: Any = None
) -> Callable[[], object]:
    """A function that runs one new release each time it is called."""

    def run() -> object:
        name = f"{ledger.store.place[-8:-7]}-{next(numbers)}"
        spec = {
            "release": name,
            "asset": "jobs",
            "source": {"jobs": str(folder / source)},
            "unit": unit,
            "domains": {
                "place": {"values": codes(PLACES, 5)},
                "sector": {"values": codes(SECTORS, 2)},
                "ownership": {"values": codes(OWNERS, 1)},
            },
            "tables": [{"name": "jobs", "method": "counts", "by": BY, "epsilon": "1.5"}],
        }
        keys = FileKeyStore(folder / "keys")
        published = discreet.release(spec, ledger=ledger, keys=keys, session=session).run(folder / name)
        rows = pq.read_metadata(folder / name / "jobs.parquet").num_rows
        if rows != PLACES * SECTORS * OWNERS:
            raise RuntimeError(f"{rows} rows published")
        return published

    return run


def once(folder: Path, unit: Any, ledger: Path) -> None:
    """One release in a separate process, to measure its memory alone."""
    release(folder, unit, discreet.ledger(ledger), count(1000))()


def query(sql: str) -> Callable[[], object]:
    def run() -> object:
        with duckdb.connect() as connection:
            return connection.sql(sql).to_arrow_table()

    return run


def measure(arguments: Namespace) -> Result:
    rows = 50_000_000 if arguments.size == "full" else arguments.rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, numbers = folder / "jobs.parquet", count()
        jobs(path, rows)
        ledgers = [discreet.ledger(folder / f"{kind}.sqlite") for kind in ("r", "p")]
        units = ["record", {"person": "person", "max_records": 2}]
        budget_units = ["record", {"kind": "person", "column": "person"}]
        for ledger, unit in zip(ledgers, budget_units, strict=True):
            set_budget(ledger, "jobs", epsilon="1000000", unit=unit)
        runs = [release(folder, unit, ledger, numbers) for unit, ledger in zip(units, ledgers, strict=True)]
        record = best_of({"ours": runs[0], "floor": query(GROUP.format(f"'{path}'"))}, rounds=arguments.rounds)
        person = best_of(
            {
                "ours": runs[1],
                "floor": query(GROUP.format(RANKED.format(path))),
                "tuned": query(GROUP.format(TUNED.format(path))),
            },
            rounds=min(2, arguments.rounds),
        )
        peak = peak_rss_of(once, folder, units[1], folder / "p.sqlite")
    return {
        "cost_vs_floor": round(record["ours"] / record["floor"], 3),
        "person_cost_vs_floor": round(person["ours"] / person["floor"], 3),
        "person_cost_vs_tuned_floor": round(person["ours"] / person["tuned"], 3),
        "rows": rows,
        "cells": PLACES * SECTORS * OWNERS,
        "record_seconds": round(record["ours"], 3),
        "record_floor_seconds": round(record["floor"], 3),
        "person_seconds": round(person["ours"], 3),
        "person_floor_seconds": round(person["floor"], 3),
        "peak_rss_mib": round(peak, 1),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=11_000_000, rounds=20)
