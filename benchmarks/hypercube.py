"""A cube of 100 million cells from 5 million records: `python -m benchmarks.hypercube --json`.

The floor is DuckDB's bare GROUP BY of the same records by the same seven columns. `cost_vs_floor` is building and
perturbing over that: read, group, number the cells, bind the key to them, and the noise of every cell, handed over in
batches. `release_vs_floor` is the whole release: that, and every cell with its codes as Parquet, committed. Weighted
totals come on top in `weighted_vs_floor`, over the same floor with a sum of weights.
"""

from __future__ import annotations

import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from math import prod
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from benchmarks._measure import Result, best_of, front, peak_rss_of
from discreet.api import set_budget
from discreet.engine import open_engine
from discreet.engine.spans import fingerprint_table
from discreet.methods.hypercube.kernel import CubeKernel, CubeNoise
from discreet.methods.hypercube.method import HypercubeMethod
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey, public_stream
from discreet.noise.keystore import FileKeyStore
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.pipeline.tabulation import read_records, reading_of
from discreet.spec import loader as specfile

SIZES = {"occupation": 800, "a": 10, "b": 10, "c": 10, "d": 5, "e": 5, "f": 5}
CELLS = prod(SIZES.values())
ROWS, FULL = 5_000_000, 4  # times as many records in the large case
EPSILON, CAP = "2", 7
GROUP = f"SELECT {', '.join(SIZES)}, count(*) AS n{{}} FROM '{{}}' GROUP BY ALL"


def quotes(path: Path, rows: int) -> None:
    """Synthetic quotes: skewed codes, so that some cells have many records and most have none."""
    rng = np.random.default_rng(11)
    lists = {name: pa.array([f"{i:03d}" for i in range(size)]) for name, size in SIZES.items()}
    kinds = [(name, pa.dictionary(pa.int32(), pa.string())) for name in SIZES]
    schema = pa.schema([*kinds, ("weight", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - start)
            columns = [
                pa.DictionaryArray.from_arrays(pa.array((rng.beta(0.5, 2.0, n) * size).astype(np.int32)), lists[name])
                for name, size in SIZES.items()
            ]
            weight = pa.array(np.round(rng.gamma(2.0, 20.0, n) + 1, 1))
            writer.write_batch(pa.RecordBatch.from_arrays([*columns, weight], schema=schema))


def declared(folder: Path, name: str, weighted: bool) -> dict[str, Any]:
    """The release."""
    weights = {"weights": {"column": "weight", "max": "500", "epsilon": EPSILON}} if weighted else {}
    return {
        "release": name,
        "asset": "quotes",
        "source": {"quotes": str(folder / "quotes.parquet")},
        "unit": "record",
        "domains": {name: {"values": [f"{i:03d}" for i in range(size)]} for name, size in SIZES.items()},
        "tables": [
            {
                "name": "cube",
                "method": "hypercube",
                "by": list(SIZES),
                "epsilon": EPSILON,
                **({} if weighted else {"cap": CAP}),
                **weights,
            }
        ],
    }


def built(folder: Path, weighted: bool) -> Callable[[], object]:
    """Build and perturb, without writing: every protected number is handed over once."""

    def run() -> object:
        release = specfile.build(declared(folder, "built", weighted), folder)
        (method,) = methods(release)
        if not isinstance(method, HypercubeMethod):
            raise RuntimeError("no cube")
        secret = ReleaseKey.simulation("benchmark").secret("records")
        with open_engine(release.engine) as engine:
            records = read_records(engine, release, [method], None, counted=not weighted)
            reading = reading_of(engine, release, [method], records, secret)
            cells = fingerprint_table(engine, method.tabulate(reading)[0].open_confidential(), method.spans[0])
            noise = CubeNoise(CELLS, method.design.count_distribution, method.design.total_distribution)
            kernel, seen = CubeKernel("cube", noise), 0
            for batch in engine.gather(cells.table, cells.spans, kernel, secret):
                seen += batch.num_rows
        if seen != CELLS:
            raise RuntimeError(f"{seen} cells")
        return seen

    return run


def released(folder: Path, numbers: Any, weighted: bool = False) -> Callable[[], object]:
    """A function that runs one new release each time it is called."""

    def run() -> object:
        name = f"cube-{next(numbers)}"
        keys = FileKeyStore(folder / "keys")
        ledger = discreet.ledger(folder / "ledger.sqlite")
        published = discreet.release(declared(folder, name, weighted), ledger=ledger, keys=keys).run(folder / name)
        shutil.rmtree(folder / name)  # room for the next
        return published

    return run


def once(folder: Path) -> None:
    """One release in a separate process, to measure its memory alone."""
    released(folder, count(1000))()


def query(sql: str) -> Callable[[], object]:
    def run() -> object:
        with duckdb.connect() as connection:
            return connection.sql(sql).to_arrow_table()

    return run


def measure(arguments: Namespace) -> Result:
    rows = arguments.rows * (FULL if arguments.size == "full" else 1)
    with tempfile.TemporaryDirectory() as name:
        folder, numbers = Path(name), count()
        path = folder / "quotes.parquet"
        quotes(path, rows)
        set_budget(discreet.ledger(folder / "ledger.sqlite"), "quotes", epsilon="1000000", delta="0.1", unit="record")
        peak = peak_rss_of(once, folder)
        best = best_of(
            {
                "built": built(folder, weighted=False),
                "floor": query(GROUP.format("", path)),
                "weighted": built(folder, weighted=True),
                "weighted floor": query(GROUP.format(", sum(weight) AS w", path)),
            },
            rounds=3,
        )
        whole = best_of({"release": released(folder, numbers), "floor": query(GROUP.format("", path))}, rounds=1)
        out, stream = np.empty(1 << 22, np.int64), public_stream("benchmark", "noise")
        distribution = DiscreteLaplace(Fraction(EPSILON), CAP)
        drawn = best_of({"noise": lambda: distribution.draw(stream, 0, out.size, out)}, rounds=5)["noise"]
    return {
        "cost_vs_floor": round(best["built"] / best["floor"], 3),
        "ns_per_cell": round((best["built"] - best["floor"]) / CELLS * 1e9, 2),
        "noise_ns_per_cell": round(drawn / out.size * 1e9, 2),
        "weighted_vs_floor": round(best["weighted"] / best["weighted floor"], 3),
        "release_vs_floor": round(whole["release"] / whole["floor"], 3),
        "rows": rows,
        "cells": CELLS,
        "build_seconds": round(best["built"], 3),
        "floor_seconds": round(best["floor"], 3),
        "weighted_seconds": round(best["weighted"], 3),
        "release_seconds": round(whole["release"], 3),
        "peak_rss_mib": round(peak, 1),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=ROWS)
