"""Tables of jobs against DuckDB's bare two-level GROUP BY: `python -m benchmarks.employer --json`.

Workload 1 is place × sector × ownership (Haney et al. 2017, §10), workload 3 also sex × education. Ours reads,
tabulates, reserves, protects, writes, commits and publishes every cell of the domain; the floor only finds the occupied
cells, their jobs and the most jobs of one establishment. Once from one file of all jobs, and once from three tables
that are joined: there the floor joins, too.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import discreet
from benchmarks._measure import Result, best_of, front, peak_rss_of
from discreet.api import set_budget
from discreet.engine.duckdb import MEMORY_ENVIRONMENT
from discreet.noise.keystore import FileKeyStore
from discreet.privacy.ledger.ledger import Ledger
from discreet.synth.workplaces.files import write_employers

JOBS, FULL = 10_900_000, 130_000_000
MEMORY = "3GB"  # for DuckDB's tables in the large case
UNIT = {"establishment": "workplace_id", "alpha": "0.1", "adversary": "weak"}
BY, WORKERS = ["place", "sector", "ownership"], ["sex", "education"]
DOMAINS = {
    "place": {"codes": "public/places.csv"},
    "sector": {"codes": "public/sectors.csv"},
    "ownership": {"codes": "public/ownership.csv"},
    "sex": {"codes": "public/sexes.csv"},
    "education": {"codes": "public/educations.csv"},
}
WORKLOADS: dict[str, dict[str, Any]] = {
    "w1": {"epsilon": "2"},
    "w3": {"epsilon": "16", "worker_attributes": WORKERS},
}
JOIN = {"workers": "worker_id", "workplaces": "workplace_id"}


def spec(workload: str, joined: bool, name: str) -> dict[str, Any]:
    names = ["jobs", "workers", "workplaces"] if joined else ["worker_full"]
    return {
        "release": name,
        "asset": "jobs",
        "source": {source: f"{source}.parquet" for source in names},
        **({"join": JOIN} if joined else {}),
        "unit": UNIT,
        "domains": DOMAINS,
        "tables": [{"name": "jobs", "method": "employer", "by": BY, **WORKLOADS[workload]}],
    }


def release(folder: Path, ledger: Ledger, numbers: Any, workload: str, joined: bool = False) -> Callable[[], object]:
    """A function that runs one new release each time it is called."""
    from discreet.api import OpenRelease
    from discreet.spec import loader as specfile

    def run() -> object:
        name = f"r{next(numbers)}"
        declared = specfile.build(spec(workload, joined, name), folder)
        published = OpenRelease(declared, None, ledger, FileKeyStore(folder / "keys")).run(folder / name)
        files = [folder / name / file for file in published.tables[0].files if file.endswith(".parquet")]
        if sum(pq.read_metadata(file).num_rows for file in files) != published.tables[0].cells:
            raise RuntimeError("not every cell was published")
        return published

    return run


def floor(folder: Path, workload: str, joined: bool = False) -> Callable[[], object]:
    """The bare query: every occupied cell, its jobs, and the most jobs of one establishment."""
    columns = ", ".join(BY if workload == "w1" else [*BY, *WORKERS])
    source = f"'{folder}/worker_full.parquet'"
    if joined:
        source = f"'{folder}/jobs.parquet' JOIN '{folder}/workplaces.parquet' USING (workplace_id)"
        source += f" JOIN '{folder}/workers.parquet' USING (worker_id)" if workload == "w3" else ""
    inner = f"SELECT workplace_id, {columns}, count(*) AS n FROM {source} GROUP BY ALL"
    sql = f"SELECT {columns}, sum(n) AS n, max(n) AS largest FROM ({inner}) GROUP BY ALL"

    def run() -> object:
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            if limit := os.environ.get(MEMORY_ENVIRONMENT):
                connection.execute(f"SET memory_limit = '{limit}'")
                connection.execute(f"SET temp_directory = '{folder}/spill'")
            return connection.sql(sql).to_arrow_table()

    return run


def ledger_of(folder: Path) -> Ledger:
    ledger = discreet.ledger(folder / "ledger.sqlite")
    set_budget(ledger, "jobs", epsilon="1000000", unit=UNIT)
    return ledger


def once(folder: Path, workload: str) -> None:
    """One release in a separate process, to measure its memory alone."""
    release(folder, discreet.ledger(folder / "ledger.sqlite"), count(10_000 + int(workload[1:])), workload)()


def world(folder: Path, jobs: int) -> Path:
    folder.mkdir()
    write_employers(folder, jobs, data_errors=False)
    return folder


def measure(arguments: Namespace) -> Result:
    full = arguments.size == "full"
    rows = FULL if full else arguments.rows
    if full:
        os.environ[MEMORY_ENVIRONMENT] = MEMORY
    rounds = 1 if full else 5
    with tempfile.TemporaryDirectory() as name:
        folder = world(Path(name) / "all", rows)
        ledger, numbers = ledger_of(folder), count()
        peaks = {workload: peak_rss_of(once, folder, workload) for workload in WORKLOADS}
        times: dict[str, dict[str, float]] = {}
        for workload in WORKLOADS:
            contest = {"ours": release(folder, ledger, numbers, workload), "floor": floor(folder, workload)}
            times[workload] = best_of(contest, rounds)
        if not full:
            for workload in WORKLOADS:
                contest = {
                    "ours": release(folder, ledger, numbers, workload, joined=True),
                    "floor": floor(folder, workload, joined=True),
                }
                times[f"{workload}_joined"] = best_of(contest, 2)
        small = world(Path(name) / "quarter", rows // 4)
        ledger = ledger_of(small)
        quarter = {
            workload: best_of({"ours": release(small, ledger, numbers, workload)}, rounds)["ours"]
            for workload in WORKLOADS
        }
    growth = {workload: times[workload]["ours"] / quarter[workload] for workload in WORKLOADS}
    return {
        **{f"{w}_cost_vs_floor": round(t["ours"] / t["floor"], 3) for w, t in times.items()},
        "growth": round(max(growth.values()), 3),
        **{f"{w}_growth_4x": round(g, 3) for w, g in growth.items()},
        "rows": rows,
        **{f"{w}_seconds": round(t["ours"], 3) for w, t in times.items()},
        **{f"{w}_floor_seconds": round(t["floor"], 3) for w, t in times.items()},
        **{f"{w}_peak_rss_mib": round(p, 1) for w, p in peaks.items()},
        "peak_rss_mib": round(max(peaks.values()), 1),
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=JOBS)
