"""The cost of a formal guarantee on the atlas's cells, at equal ε: errors against the least-squares prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.methods.sensitivity.statistics import Floats, Int64s
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.cells import chi_of, omega
from discreet_studies.sensitivity.comparators.compare import NOT_FORMAL, Errors, MethodErrors, compare, methods
from discreet_studies.sensitivity.subgroups import Subgroups

EPSILONS = tuple(Fraction(e) for e in (1, 2, 4, 8, 16))
SIZES = (50, 100, 300)
WITHIN = 0.1  # of a size
PLANNED = 100  # records: the public guess for which parameters are planned, whatever the cells compared
MOST, FEWEST = 3_000, 20  # cells of each size
DELTA = Fraction(1, 10**6)
X0 = Fraction(1, 4)
OLS, MOS = "least squares", "maximum observed sensitivity"
ONE = f"{MOS}, one χ"  # of all compared cells


@dataclass(frozen=True)
class Cost:
    """One method at one ε in cells of about one size."""

    size: int
    cells: int
    epsilon: Fraction
    row: MethodErrors


def costs(groups: Subgroups) -> Iterator[list[Cost]]:
    """Errors by cell size; cells of all groups, spread evenly over the country, the least-squares line of income
    ranks."""
    key = ReleaseKey.simulation("reproduce sensitivity, formal")
    chi = chi_of(groups.n, np.where(groups.published, groups.plain, np.inf), groups.pool)
    for size in SIZES:
        near = np.flatnonzero(np.abs(groups.n - size) <= WITHIN * size)
        if len(near) < FEWEST:
            continue
        cells = near[:: -(-len(near) // MOST)]
        rows, sensitivity = groups.rows.only(cells), groups.plain[cells]
        out = []
        for epsilon in EPSILONS:
            errors = compare(
                rows.x, rows.y, rows.starts, methods(X0, epsilon, DELTA, PLANNED), key,
                x0=X0, epsilon=epsilon, sensitivity=sensitivity,
            )  # fmt: skip
            ours = [replace(row, method=ONE) if row.method == MOS else row for row in errors]
            ours.insert(1, _observed(groups, cells, chi[cells], epsilon))
            out += [Cost(size, len(cells), epsilon, row) for row in ours]
        yield out


def _observed(groups: Subgroups, cells: Int64s, chi: Floats, epsilon: Fraction) -> MethodErrors:
    """θ + Laplace(χ/(εN)), clamped, χ of the state, race and gender, as in the paper; `compare` has one χ for all."""
    theta = groups.theta[cells]
    noise = np.sqrt(2) * chi / (float(epsilon) * groups.n[cells]) * omega(len(cells), f"formal, {epsilon}", "laplace")
    errors = Errors.of(np.clip(theta + noise, 0.0, 1.0), theta, np.ones(len(cells), np.bool_))
    return MethodErrors(MOS, False, NOT_FORMAL, errors, 0.0)


def rmse(costs: tuple[Cost, ...], method: str, size: int, epsilon: Fraction) -> float | None:
    """Error of one method; None where it was not run."""
    mine = (c for c in costs if (c.row.method, c.size, c.epsilon) == (method, size, epsilon))
    return next((cost.row.against_ols.rmse for cost in mine), None)


def least_observed(costs: tuple[Cost, ...], size: int, epsilon: Fraction) -> float | None:
    """Error of maximum observed sensitivity with the better χ, so that formal methods are compared with its best
    form."""
    both = [rmse(costs, name, size, epsilon) for name in (MOS, ONE)]
    return min((error for error in both if error), default=None)


def best_formal(costs: tuple[Cost, ...], size: int, epsilon: Fraction) -> Cost | None:
    """The formally private method with the smallest error."""
    mine = [c for c in costs if c.row.formal and (c.size, c.epsilon) == (size, epsilon)]
    return min(mine, key=lambda c: c.row.against_ols.rmse, default=None)
