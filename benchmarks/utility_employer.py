"""L1 errors relative to input noise infusion (Haney et al. 2017, Figure 1): `python -m benchmarks.utility_employer
--json`.

Workload 1 is place × sector × ownership. α = .1 and ε = 2, truncation at ε = 4 for every θ. Errors are expected ones,
in closed form; noise infusion's are the mean of 20 publications. Its s and t are our choice: an agency's are secret.
"""

from __future__ import annotations

from argparse import Namespace
from fractions import Fraction

from benchmarks._measure import Result, front
from discreet_studies.employer.mechanism_grid import ALPHA, EPSILON, GEOMETRIC, TRUNCATED, MechanismGrid
from discreet_studies.employer.ratios import EVERY, INFUSION, OCCUPIED, Ratio, ratios
from discreet_studies.employer.study import INFUSION as OURS
from discreet_studies.employer.workloads import ALL, PARTS, tabulated_frame

JOBS, FULL = 10_900_000, 130_000_000
FOUR = Fraction(4)


def wanted(row: Ratio) -> bool:
    """The baseline; truncation at ε = 4."""
    if row.mechanism == TRUNCATED:
        return row.epsilon == FOUR
    return row.mechanism == INFUSION or (row.epsilon == EPSILON and row.alpha in (None, ALPHA))


def name(row: Ratio) -> str:
    return row.mechanism if row.theta is None else f"{row.mechanism}-{row.theta}"


def measure(arguments: Namespace) -> Result:
    jobs = FULL if arguments.size == "full" else arguments.rows
    world = tabulated_frame(jobs, arguments.seed, OURS)
    grid = MechanismGrid((ALPHA,), (EPSILON, FOUR))
    rows = [row for row in ratios(world, 1, grid) if wanted(row)]

    def column(stratum: str, cells: str) -> dict[str, float]:
        return {name(row): round(row.ratio, 4) for row in rows if (row.stratum, row.cells) == (stratum, cells)}

    l1 = column(ALL, OCCUPIED)
    return {
        "l1_ratio": {mechanism: ratio for mechanism, ratio in l1.items() if mechanism != INFUSION},
        "l1_ratio_all_cells": column(ALL, EVERY),
        "l1_ratio_by_stratum": {stratum: column(stratum, OCCUPIED) for stratum in PARTS[1:]},
        "pareto_over_printed_laplace": round(l1["laplace-pareto"] / l1["smooth-laplace-printed"], 4),
        "least_truncated": min(ratio for mechanism, ratio in l1.items() if mechanism.startswith(TRUNCATED)),
        "one_job": l1[GEOMETRIC],
        "s": float(OURS.s),
        "t": float(OURS.t),
        "shape": OURS.shape,
        "infusion_mean_abs": round(next(row.infusion for row in rows), 3),
        "cells_with_establishments": int(world.occupied.sum()),
        "cells": world.frame.cells,
        "establishments": len(world.frame),
        "rows": jobs,
    }


if __name__ == "__main__":
    front(__doc__ or "", measure, rows=JOBS, seed=7)
