"""An earnings release end to end against DuckDB's bare binned GROUP BY: `python -m benchmarks.earnings --json`.

Programmes (4,000) × cohorts (5) = 20,000 cells of 21 bins, three percentiles with their limits: read, bin, tabulate,
reserve, protect, post-process, write, commit, publish. The floor only counts the same bins by the same columns. Further
figures: with two more levels, and our estimator; a person's records limited to two.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from benchmarks._measure import Result, best_of, front, peak_rss_of
from benchmarks.counts import codes, query
from discreet.api import set_budget
from discreet.domain.bins import PSEO
from discreet.engine.duckdb import MEMORY_ENVIRONMENT
from discreet.noise.keystore import FileKeyStore
from discreet.privacy.ledger.ledger import Ledger

INSTITUTIONS, FIELDS, COHORTS = 100, 40, 5
PERSON_MEMORY = "1GB"  # for DuckDB's tables, in the release whose peak memory is measured
BY = ["institution", "cipcode", "grad_cohort"]
BORDERS = PSEO.edges[1:-1]
FLOOR = (
    "SELECT institution, cipcode, grad_cohort, CASE {} ELSE 20 END AS bin, count(*) FROM '{}' "
    "WHERE earnings >= 10000 GROUP BY ALL"
)


def graduates(path: Path, rows: int) -> None:
    """Synthetic graduates, written in pieces."""
    rng = np.random.default_rng(7)
    sizes = (INSTITUTIONS, FIELDS, COHORTS)
    lists = [pa.array(codes(size, width)) for size, width in zip(sizes, (8, 4, 4), strict=True)]
    schema = pa.schema(
        [
            ("person", pa.int64()),
            *((name, pa.dictionary(pa.int32(), pa.string())) for name in BY),
            ("earnings", pa.int64()),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - start)
            picks = [rng.integers(0, size, n, np.int32) for size in sizes]
            columns = [pa.DictionaryArray.from_arrays(pa.array(p), d) for p, d in zip(picks, lists, strict=True)]
            mean = 10.6 + 0.02 * picks[1]
            pay = np.exp(mean + 0.6 * rng.standard_normal(n)).astype(np.int64)
            person = pa.array(rng.integers(0, max(rows // 2, 1), n))
            writer.write_batch(pa.RecordBatch.from_arrays([person, *columns, pa.array(pay)], schema=schema))


def spec(folder: Path, name: str, unit: Any, **more: Any) -> dict[str, Any]:
    return {
        "release": name,
        "asset": "graduates",
        "source": {"graduates": str(folder / "graduates.parquet")},
        "unit": unit,
        "domains": {
            "programme": {
                "groups": str(folder / "programmes.csv"),
                "columns": ["institution", "cipcode"],
                "coarser": {"school": ["institution"], "field": ["cipcode"]},
                "provenance": "synthetic",
            },
            "grad_cohort": {"values": codes(COHORTS, 4)},
        },
        "tables": [
            {
                "name": "earnings",
                "method": "earnings",
                "by": ["programme", "grad_cohort"],
                "value": "earnings",
                "sample": [{"column": "earnings", "at_least": 10000}],
                "epsilon": "1.5",
                **more,
            }
        ],
    }


LEVELS = [
    {"name": "schools", "by": ["school", "grad_cohort"]},
    {"name": "fields", "by": ["field"], "epsilon": "0.5"},
]


def release(folder: Path, unit: Any, ledger: Ledger, numbers: Any, **more: Any) -> Callable[[], object]:
    """A function that runs one new release each time it is called."""

    def run() -> object:
        name = f"r{next(numbers)}"
        keys = FileKeyStore(folder / "keys")
        published = discreet.release(spec(folder, name, unit, **more), ledger=ledger, keys=keys).run(folder / name)
        rows = pq.read_metadata(folder / name / "earnings.parquet").num_rows
        if rows != INSTITUTIONS * FIELDS * COHORTS:
            raise RuntimeError(f"{rows} rows published")
        return published

    return run


def once(folder: Path, unit: Any, ledger: Path, number: int) -> None:
    """One release in a separate process, to measure its memory alone."""
    release(folder, unit, discreet.ledger(ledger), count(number))()


def measure(arguments: Namespace) -> Result:
    rows = 50_000_000 if arguments.size == "full" else arguments.rows
    rounds = 3 if arguments.size == "full" else 12
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, numbers = folder / "graduates.parquet", count()
        graduates(path, rows)
        lines = [f"{i},{f}" for i in codes(INSTITUTIONS, 8) for f in codes(FIELDS, 4)]
        (folder / "programmes.csv").write_text("institution,cipcode\n" + "\n".join(lines) + "\n")
        places = [folder / f"{kind}.sqlite" for kind in ("record", "person")]
        ledgers = [discreet.ledger(place) for place in places]
        person = {"person": "person", "max_records": 2}
        for ledger, unit in zip(ledgers, ["record", {"kind": "person", "column": "person"}], strict=True):
            set_budget(ledger, "graduates", epsilon="1000000", unit=unit)
        peak = peak_rss_of(once, folder, "record", places[0], 1000)  # first: a child's peak begins with its parent's
        os.environ[MEMORY_ENVIRONMENT] = PERSON_MEMORY
        person_peak = peak_rss_of(once, folder, person, places[1], 2000)
        del os.environ[MEMORY_ENVIRONMENT]
        cases = " ".join(f"WHEN earnings < {border} THEN {j}" for j, border in enumerate(BORDERS))
        times = best_of(
            {
                "ours": release(folder, "record", ledgers[0], numbers),
                "floor": query(FLOOR.format(cases, path)),
                "levels": release(folder, "record", ledgers[0], numbers, levels=LEVELS, estimator="shrunk"),
            },
            rounds=rounds,
        )
        limited = best_of({"person": release(folder, person, ledgers[1], numbers)}, rounds=1)
    return {
        "cost_vs_floor": round(times["ours"] / times["floor"], 3),
        "levels_shrunk_cost_vs_floor": round(times["levels"] / times["floor"], 3),
        "person_cost_vs_floor": round(limited["person"] / times["floor"], 3),
        "rows": rows,
        "cells": INSTITUTIONS * FIELDS * COHORTS,
        "bins": PSEO.count,
        "release_seconds": round(times["ours"], 3),
        "floor_seconds": round(times["floor"], 3),
        "peak_rss_mib": round(peak, 1),
        "person_peak_rss_mib": round(person_peak, 1),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=5_000_000)
