"""Which tolerance explains 224 converged runs and their variances: Li & Krenzke 2020 state no convergence rule."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from discreet.post.cubes.margins import Floats
from discreet_studies.hypercube.printed import CONVERGED, WITH, WITHOUT
from discreet_studies.hypercube.simulation import TOLERANCES, MeanEstimate, RakedRuns

FEWEST = 5  # converged runs, for a meaningful average
BEFORE, AFTER = slice(0, 5), slice(1, 5)  # dimensions that are printed with three digits or more
PAPER_BEFORE, PAPER_AFTER = (np.array(column, np.float64) for column in (WITHOUT, WITH))


@dataclass(frozen=True, eq=False)
class ToleranceResult:
    """For one tolerance: the number of runs that converge, and their mean variances without and with raking."""

    tolerance: float
    converged: int
    runs: int
    before: MeanEstimate
    after: MeanEstimate

    @property
    def share(self) -> float:
        return self.converged / self.runs

    @property
    def distance(self) -> float | None:
        """Distance from the published variances: root mean square of ln(ours/theirs), dimensions 1 to 5, without and
        with."""
        if self.converged < FEWEST:
            return None
        ours = np.concatenate([self.before.mean[BEFORE], self.after.mean[AFTER]])
        theirs = np.concatenate([PAPER_BEFORE[BEFORE], PAPER_AFTER[AFTER]])
        return sqrt(float(np.mean(np.log(ours / theirs) ** 2)))

    @property
    def left(self) -> float:
        """Share of the variance in two-way tables that remains."""
        return float(self.after.mean[1] / self.before.mean[1])


def at(raked: RakedRuns, tolerance: float) -> ToleranceResult:
    """Result for the runs that meet a tolerance."""
    converged = raked.converged(tolerance)
    before, after = (MeanEstimate.of(values, converged) for values in (raked.before, raked.after))
    return ToleranceResult(tolerance, int(converged.sum()), raked.runs, before, after)


def at_every_tolerance(raked: RakedRuns) -> tuple[ToleranceResult, ...]:
    """Results at every tolerance."""
    return tuple(at(raked, tolerance) for tolerance in TOLERANCES)


def nearest(raked: RakedRuns) -> ToleranceResult | None:
    """The tolerance whose variances are closest to the published ones."""
    rows = [(row.distance, row) for row in at_every_tolerance(raked)]
    known = [(distance, row) for distance, row in rows if distance is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def at_paper_share(raked: RakedRuns) -> ToleranceResult:
    """Result for the paper's share of runs: those that come nearest to the margins."""
    return at(raked, raked.paper_share_tolerance)


def gap_of_selection(raked: RakedRuns, expected: Floats) -> Floats:
    """Difference of the published variances without calibration from the mean of all runs, in standard errors of 224
    runs."""
    error: Floats = raked.before.std(axis=0, ddof=1) / sqrt(CONVERGED)
    return (PAPER_BEFORE - expected) / error
