"""Sensitivities of small cells against refits in NumPy: `python -m benchmarks.sensitivity --json`.

20 million children in 70,000 tracts, prediction at the 25th percentile. `seconds` is the whole release: read, sort,
estimates, exact sensitivities of estimates and standard errors, χ, reserve, protect, write, commit, publish. The ratios
are per cell: the compiled kernel over all cells, against a loop that fits a cell again without each record and with
each corner, on some of the same cells in the same run.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import discreet
from benchmarks._measure import Result, best_of, front, peak_rss_of, seconds
from discreet.api import OpenRelease, set_budget
from discreet.methods.sensitivity.statistics import Variable
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.statistics.winsorised import WinsorisedLine
from discreet.noise.keystore import FileKeyStore
from discreet.spec import loader as specfile
from discreet.synth.atlas import atlas, write_atlas

Floats = NDArray[np.float64]
ROWS, CELLS = 20_000_000, 70_000
FULL = 5  # times as many of both
AT, SHARE, SOME = 0.25, 0.05, 60  # number of cells that are refitted
CORNERS = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
SPEC: dict[str, Any] = {
    "asset": "children",
    "source": {"children": "children.parquet"},
    "unit": "record",
    "domains": {"places": {"hierarchy": "public/tracts.csv", "levels": ["tract", "county", "state"]}},
    "tables": [
        {
            "name": "mobility",
            "method": "sensitivity",
            "by": ["tract"],
            "groups": ["state"],
            "statistic": {"name": "prediction", "x": "parent_rank", "y": "kid_rank", "at": "0.25"},
            "variables": {"parent_rank": {"low": "0", "high": "1"}, "kid_rank": {"low": "0", "high": "1"}},
            "epsilon": "8",
            "delta": "0.000001",
            "suppress_below": {"count": 20},
        }
    ],
}


def world(folder: Path, rows: int, cells: int) -> Path:
    """Records, public lists, and a ledger."""
    folder.mkdir(parents=True)
    write_atlas(folder, rows, cells)
    ledger = discreet.ledger(folder / "ledger.sqlite")
    set_budget(ledger, "children", epsilon="1000000", delta="0.5", unit="record")
    return folder


def release(folder: Path, numbers: Any) -> Callable[[], object]:
    """A function that runs one new release each time it is called."""

    def run() -> object:
        name = f"r{next(numbers)}"
        declared = specfile.build({"release": name, **SPEC}, folder)
        ledger = discreet.ledger(folder / "ledger.sqlite")
        published = OpenRelease(declared, None, ledger, FileKeyStore(folder / "keys")).run(folder / name)
        files = [folder / name / file for file in published.tables[0].files if file.endswith(".parquet")]
        if sum(pq.read_metadata(file).num_rows for file in files) != published.tables[0].cells:
            raise RuntimeError("not every cell was published")
        return published

    return run


def once(folder: Path) -> None:
    release(folder, count(10_000))()


# --- the peer: a loop of refits -------------------------------------------------------------------------------------


def fitted(x: Floats, y: Floats) -> float:
    """The prediction, by NumPy."""
    design = np.column_stack([np.ones(x.size), x])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(solution[0] + AT * solution[1])


def winsorised(values: Floats) -> Floats:
    k = max(1, int(SHARE * values.size))
    ordered = np.sort(values)
    return np.clip(values, ordered[k], ordered[-k - 1])


def cut_and_fitted(x: Floats, y: Floats) -> float:
    return fitted(winsorised(x), winsorised(y))


def refits(x: Floats, y: Floats, fit: Callable[[Floats, Floats], float]) -> float:
    """Local sensitivity as the code of Chetty & Friedman 2019 computes it: without each record, and with each
    corner."""
    centre = fit(x, y)
    changed = [fit(np.delete(x, i), np.delete(y, i)) for i in range(x.size)]
    changed += [fit(np.append(x, a), np.append(y, b)) for a, b in CORNERS]
    return max(abs(value - centre) for value in changed)


def measure(arguments: Namespace) -> Result:
    times = FULL if arguments.size == "full" else 1
    rows, cells = arguments.rows * times, arguments.cells * times
    with tempfile.TemporaryDirectory() as name:
        folder = world(Path(name) / "all", rows, cells)
        peak = peak_rss_of(once, folder)  # first: a later child would inherit this process's
        numbers = count()
        whole = min(seconds(release(folder, numbers)) for _ in range(1 if times > 1 else 2))
        fewer_rows = seconds(release(world(Path(name) / "rows", rows // 4, cells), numbers))
        fewer_cells = seconds(release(world(Path(name) / "cells", rows, cells // 4), numbers))
    children = atlas(arguments.rows, arguments.cells, lean=True)
    order = np.lexsort((children.kid_rank, children.parent_rank, children.tract))
    columns = [children.parent_rank[order], children.kid_rank[order]]
    sizes = children.tracts.size[children.tracts.size > 0]
    starts = np.append(0, np.cumsum(sizes))
    rank = Variable("rank", 0.0, 1.0)
    kinds = {
        "exact": Line(rank, rank, "prediction", AT),
        "winsorised": WinsorisedLine(rank, rank, "prediction", AT),
    }
    chosen = np.linspace(0, sizes.size - 1, SOME).astype(int)
    some = [(columns[0][starts[i] : starts[i + 1]], columns[1][starts[i] : starts[i + 1]]) for i in chosen]
    mine = [np.concatenate(parts) for parts in zip(*some, strict=True)]
    own = np.append(0, np.cumsum(sizes[chosen]))
    peers = {"exact": fitted, "winsorised": cut_and_fitted}
    result: Result = {}
    for kind, statistic in kinds.items():
        contest = {
            "ours": lambda statistic=statistic: statistic.local(mine, own, errors=False),
            "refit": lambda kind=kind: [refits(x, y, peers[kind]) for x, y in some],
        }
        best = best_of(contest, 3)
        result[f"{kind}_vs_refit"] = round(best["refit"] / best["ours"], 1)
        result[f"{kind}_us_a_cell"] = round(1e6 * best["ours"] / SOME, 2)
        result[f"refit_{kind}_us_a_cell"] = round(1e6 * best["refit"] / SOME, 1)
        ours = statistic.local(mine, own, errors=False).sensitivity
        refitted = np.array([refits(x, y, peers[kind]) for x, y in some])
        if not (ours >= refitted * (1 - 1e-9)).all():
            raise RuntimeError("a refit changes more than the exact maximum")
    everything = best_of({"all": lambda: kinds["exact"].local(columns, starts, errors=True)}, 2)["all"]
    return {
        "seconds": round(whole, 2),
        "peak_rss_mib": round(peak, 1),
        **result,
        "kernel_with_errors_seconds": round(everything, 2),
        "rows": rows,
        "cells": cells,
        "records_a_cell_refitted": round(float(np.mean(sizes[chosen])), 1),
        "growth_rows": round(whole / fewer_rows, 2),  # for 4 times the records
        "growth_cells": round(whole / fewer_cells, 2),  # for 4 times the cells
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=ROWS, cells=CELLS)
