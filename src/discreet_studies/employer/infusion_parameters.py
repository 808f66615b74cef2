"""Sensitivity of every ratio to the parameters of noise infusion, which an agency keeps secret, and which parameters
are consistent with the paper's reported results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet_studies.employer.comparators.infusion import Infusion, Shape
from discreet_studies.employer.mechanism_grid import ALPHA, CANDIDATES, EPSILON, LABELS, PRINTED, TRUNCATED
from discreet_studies.employer.ratios import INFUSION, OCCUPIED
from discreet_studies.employer.workloads import ALL, TabulatedFrame

if TYPE_CHECKING:
    from discreet_studies.employer.study import EmployerStudy

S = tuple(Fraction(percent, 100) for percent in (2, 5, 10, 15))
T = tuple(Fraction(percent, 100) for percent in (10, 15, 20, 25, 30, 40))
FEWER = 10  # the tables by sex and education have enough cells for a tenth of the trials
FOUR = Fraction(4)
AT_MOST = dict(zip(PRINTED, (3.0, 3.0, 1.0), strict=True))  # Haney et al. 2017, Finding 1
AT_LEAST = 10.0  # Finding 6: truncation at ε = 4


@dataclass(frozen=True)
class InfusionSetting:
    """Mean |error| of noise infusion over cells with establishments, the divisor of every ratio, for one (s, t)."""

    workload: int
    s: Fraction
    t: Fraction
    shape: Shape
    infusion: float


def infusion_sweep(world: TabulatedFrame) -> Iterator[InfusionSetting]:
    """Ramps over a grid of (s, t), and the uniform shape at our (s, t). Workloads 2 and 3 share a table."""
    ours = world.infusion
    methods = [Infusion(s, t, ours.limit) for s in S for t in T if s < t]
    methods.append(Infusion(ours.s, ours.t, ours.limit, "uniform"))
    for method in methods:
        for workloads, trials in (((1,), world.trials), ((2, 3), -(-world.trials // FEWER))):
            error = float(world.infused_with(method, workloads[0], trials)[world.occupied].mean())
            yield from (InfusionSetting(workload, method.s, method.t, method.shape, error) for workload in workloads)


@dataclass(frozen=True)
class RatioBound:
    """A ratio of workload 1 relative to our noise infusion, and the paper's upper or lower bound."""

    what: str
    ratio: float
    limit: float | None
    at_least: bool = False

    def with_parameters(self, study: EmployerStudy) -> list[tuple[InfusionSetting, float]]:
        """The ratio relative to noise infusion with other parameters: only the divisor changes."""
        ours = infusion_error(study)
        return [(row, self.ratio * ours / row.infusion) for row in ramps(study)]

    def agrees(self, ratio: float) -> bool:
        """Whether a ratio is consistent with the paper."""
        return self.limit is None or (ratio >= self.limit if self.at_least else ratio <= self.limit)


def ramps(study: EmployerStudy) -> list[InfusionSetting]:
    """Workload 1 with every (s, t) of the grid."""
    return [row for row in study.infusion_sweep if row.workload == 1 and row.shape == "ramp"]


def infusion_error(study: EmployerStudy, workload: int = 1) -> float:
    """Mean |error| over cells with establishments."""
    rows = [row for row in study.ratios if (row.workload, row.mechanism) == (workload, INFUSION)]
    return next(row.infusion for row in rows if (row.stratum, row.cells) == (ALL, OCCUPIED))


def bounds(study: EmployerStudy) -> list[RatioBound]:
    """Bounds for each mechanism at the baseline, and for truncation with the best θ at ε = 4."""
    rows = []
    for candidate in CANDIDATES:
        ratio = study.ratio(1, candidate.name, ALPHA, EPSILON)
        if ratio is not None:
            rows.append(RatioBound(f"{candidate.label}, ε = 2", ratio, AT_MOST.get(candidate.name)))
    truncated = [study.ratio(1, TRUNCATED, None, FOUR, theta) for theta in study.grid.thetas]
    best = min((ratio for ratio in truncated if ratio is not None), default=None)
    if best is not None:
        rows.append(RatioBound(f"{LABELS[TRUNCATED]}, best θ, ε = 4", best, AT_LEAST, at_least=True))
    return rows


def interval(study: EmployerStudy) -> tuple[float, float]:
    """The range of mean errors of noise infusion, in jobs per cell, in which all the paper's bounds hold; empty if low
    > high."""
    ours, known = infusion_error(study), [bound for bound in bounds(study) if bound.limit is not None]
    low = max((b.ratio * ours / b.limit for b in known if b.limit and not b.at_least), default=0.0)
    high = min((b.ratio * ours / b.limit for b in known if b.limit and b.at_least), default=float("inf"))
    return low, high


def agreeing(study: EmployerStudy) -> list[InfusionSetting]:
    """The (s, t) of the grid at which all bounds hold."""
    low, high = interval(study)
    return [row for row in ramps(study) if low <= row.infusion <= high]
