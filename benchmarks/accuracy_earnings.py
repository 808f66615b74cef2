"""Errors of published percentiles: `python -m benchmarks.accuracy_earnings --json`.

Synthetic graduates by institution × degree × field (4 digits) × cohort × years after graduation; ε per record. At
the same ε from the same protected histograms: PSEO's rule, ours (shrunk towards degree × years, then × field), and the
smooth-sensitivity percentile of Foote et al. (2019) on the same cells. Errors are against the percentile of the
records themselves (the ⌈yn⌉-th smallest), and against that of the histogram without noise.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import Result, front
from discreet.noise.key import ReleaseKey
from discreet_studies.pseo.earnings import smooth, synthetic_cells, trial

EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(3)]
POINTS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
CLASSES = [(30, 50), (50, 75), (75, 100), (100, 150), (150, 200), (200, 500), (500, 10**9)]
MINIMUM = 30
SEED = 2024  # the estimator's constants were chosen on seed 7


def measure(arguments: Namespace) -> Result:
    rows = 10_000_000 if arguments.size == "full" else arguments.rows
    with tempfile.TemporaryDirectory() as name:
        cells, families = synthetic_cells(Path(name), rows, SEED)
    truths = {"records": cells.raw(POINTS), "histogram": cells.noise_free(POINTS)}
    table: list[dict[str, Any]] = []
    covered: list[float] = []
    for epsilon in EPSILONS:
        sums: dict[Any, np.ndarray[Any, Any]] = {}
        for draw in range(arguments.draws):
            key = ReleaseKey.simulation(f"accuracy {draw}")
            drawn = trial(cells, families, POINTS, MINIMUM, epsilon, key)
            published = drawn.pseo.published
            estimates = {"pseo": drawn.pseo.percentiles, "ours": drawn.shrunk.percentiles}
            if draw == 0:
                estimates["smooth"] = smooth(cells, POINTS, epsilon, key)
            covers = (drawn.pseo.low <= truths["histogram"]) & (truths["histogram"] <= drawn.pseo.high)
            covered.append(float(covers[published].mean()))
            for low, high in CLASSES:
                mine = published & (cells.sizes >= low) & (cells.sizes < high)
                for method, values in estimates.items():
                    for truth, exact in truths.items():
                        error = np.abs(values[mine] - exact[mine])
                        total, n = sums.get((low, method, truth), (np.zeros(3), 0))
                        sums[low, method, truth] = (total + error.sum(axis=0), n + int(mine.sum()))
        for low, high in CLASSES:
            line: dict[str, Any] = {
                "epsilon": float(epsilon),
                "graduates": f"{low}-{high - 1}" if high < 10**9 else f"{low}+",
            }
            line["cells"] = sums[low, "pseo", "records"][1] // arguments.draws
            for truth in truths:
                for method in ("pseo", "ours", "smooth"):
                    total, n = sums[low, method, truth]
                    line[f"{method}_{truth}"] = [round(float(e)) for e in total / max(n, 1)]
                line[f"ratio_{truth}"] = [
                    round(float(r), 4) for r in sums[low, "ours", truth][0] / sums[low, "pseo", truth][0]
                ]
            line["below_200"] = high <= 200
            table.append(line)
    small = [line for line in table if line["below_200"]]
    worst = {truth: max(r for line in small for r in line[f"ratio_{truth}"]) for truth in truths}
    smoothed = [s / p for line in small for s, p in zip(line["smooth_records"], line["pseo_records"], strict=True)]
    return {
        "worst_ratio": max(worst.values()),
        "worst_ratio_records": worst["records"],
        "worst_ratio_histogram": worst["histogram"],
        "smallest_smooth_vs_pseo": round(min(smoothed), 2),
        "coverage90": round(float(np.mean(covered)), 4),
        "rows": rows,
        "cells": len(cells.sizes),
        "draws": arguments.draws,
        "table": table,
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=4_000_000, draws=8)
