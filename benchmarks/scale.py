"""The counts release as the records grow, on both engines: `python -m benchmarks.scale --json`.

Spark runs on a real, encrypted standalone cluster of loopback processes: a master and two workers of one core each.
Its floor is the bare GROUP BY of the same file in the same session. Growth is the time at 16 times the rows over the
time at 1: 16 would be linear, less means fixed costs. The driver is this benchmark's Python process and its JVM.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import discreet
from benchmarks._cluster import cluster
from benchmarks._measure import Result, best_of, front, peak_rss_mib
from benchmarks.counts import BY, jobs, query, release
from discreet.api import set_budget

SIZES = (1, 4, 16)
ROUNDS = 3


def name(times: int) -> str:
    return f"jobs{times}.parquet"


def on_duckdb(folder: Path) -> Result:
    """Seconds of the release and of DuckDB's bare GROUP BY, at each size."""
    ledger = _ledger(folder / "d.sqlite")
    numbers, result = count(), {}
    for times in SIZES:
        sql = f"SELECT {', '.join(BY)}, count(*) FROM '{folder / name(times)}' GROUP BY ALL"
        best = best_of(
            {"ours": release(folder, "record", ledger, numbers, name(times)), "floor": query(sql)}, rounds=ROUNDS
        )
        result |= {f"duckdb_seconds_{times}x": best["ours"], f"duckdb_floor_seconds_{times}x": best["floor"]}
    return {**result, "duckdb_rss_mib": peak_rss_mib()}


def on_spark(folder: Path, memory: str) -> Result:
    """The same on a cluster, with the memory of the driver and of the workers."""
    from discreet.engine.spark.session import start_session
    from discreet.spec import SparkEngineSpec

    ledger = _ledger(folder / "s.sqlite")
    numbers, result = count(), {}
    with cluster(folder / "cluster", workers=2, cores=1, memory=memory) as spark:
        os.environ |= {"SPARK_CONF_DIR": str(spark.settings), "SPARK_LOCAL_IP": "127.0.0.1"}
        (folder / "local").mkdir()
        with start_session(SparkEngineSpec(spark=spark.master), folder / "local") as session:
            for times in SIZES:
                path = str(folder / name(times))

                def floor(path: str = path) -> object:
                    return session.read.parquet(path).groupBy(*BY).count().toArrow()

                ours = release(folder, "record", ledger, numbers, name(times), session)
                best = best_of({"ours": ours, "floor": floor}, rounds=ROUNDS)
                result |= {f"spark_seconds_{times}x": best["ours"], f"spark_floor_seconds_{times}x": best["floor"]}
            java = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
            result["driver_python_rss_mib"] = peak_rss_mib()
            result["driver_java_rss_mib"] = _peak(java)
            result["workers_rss_mib"] = sum(_peak(p) for e in spark.executors() for p in (e, *_below(e)))
    return result


def _ledger(path: Path) -> Any:
    ledger = discreet.ledger(path)
    set_budget(ledger, "jobs", epsilon="1000000", unit="record")
    return ledger


def _peak(process: int) -> float:
    """The largest resident memory of a process so far."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _below(process: int) -> list[int]:
    """Its children, and theirs."""
    children = [
        int(child)
        for listed in Path(f"/proc/{process}/task").glob("*/children")
        for child in listed.read_text().split()
    ]
    return children + [deeper for child in children for deeper in _below(child)]


def _apart(run: Callable[..., Result], *arguments: Any) -> Result:
    """A result from a process of its own, so that neither engine's memory counts for the other."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(run, arguments)


def measure(arguments: Namespace) -> Result:
    rows, memory = (8_000_000, "4g") if arguments.size == "full" else (arguments.rows, "2g")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for times in SIZES:
            jobs(folder / name(times), rows * times)
        results = {**_apart(on_duckdb, folder), **_apart(on_spark, folder, memory)}
    time: dict[str, float] = {key: float(value) for key, value in results.items()}
    costs = {times: time[f"spark_seconds_{times}x"] / time[f"spark_floor_seconds_{times}x"] for times in SIZES}
    ratios = {
        "duckdb_growth_16x": time["duckdb_seconds_16x"] / time["duckdb_seconds_1x"],
        "spark_growth_16x": time["spark_seconds_16x"] / time["spark_seconds_1x"],
        "spark_cost_vs_floor": costs[16],
        "spark_cost_vs_floor_4x": costs[4],
        "spark_cost_vs_floor_1x": costs[1],
        "duckdb_cost_vs_floor": time["duckdb_seconds_16x"] / time["duckdb_floor_seconds_16x"],
        "spark_vs_duckdb_16x": time["spark_seconds_16x"] / time["duckdb_seconds_16x"],
        "driver_rss_mib": time["driver_python_rss_mib"] + time["driver_java_rss_mib"],
    }
    return {**{key: round(value, 3) for key, value in {**ratios, **time}.items()}, "rows": rows, "rows_16x": 16 * rows}


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=2_000_000)
