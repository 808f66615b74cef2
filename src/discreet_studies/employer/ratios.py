"""Expected L1 errors in closed form, relative to noise infusion (Haney et al. 2017, Figures 1, 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet_studies.employer.mechanism_grid import GEOMETRIC, STRONG, TRUNCATED, MechanismGrid
from discreet_studies.employer.workloads import PARTS, Bools, Floats, Int64s, TabulatedFrame

OCCUPIED, EVERY = "with establishments", "all"  # cells over which errors are averaged
INFUSION = "infusion"


@dataclass(frozen=True)
class Ratio:
    """Mean |error| of a mechanism over the cells of a stratum, and that of noise infusion."""

    workload: int
    mechanism: str
    alpha: Fraction | None
    epsilon: Fraction | None
    theta: int | None
    stratum: str
    cells: str
    number: int
    error: float
    infusion: float

    @property
    def setting(self) -> tuple[object, ...]:
        """Mechanism, parameters and cells, without the workload."""
        return self.mechanism, self.alpha, self.epsilon, self.theta, self.stratum, self.cells

    @property
    def ratio(self) -> float:
        """error/infusion; NaN where noise infusion has no error."""
        return self.error / self.infusion if self.infusion else float("nan")


def by_stratum(
    world: TabulatedFrame,
    workload: int,
    error: Floats,
    mechanism: str,
    alpha: Fraction | None = None,
    epsilon: Fraction | None = None,
    theta: int | None = None,
) -> Iterator[Ratio]:
    """Mean errors over all cells and over those with establishments, in total and by stratum. `error`: (cells, worker
    cells)."""
    beside = world.of(workload).infusion_error
    for cells in (OCCUPIED, EVERY):
        selected = world.occupied if cells == OCCUPIED else np.ones_like(world.occupied)
        ours, theirs, number = (_totals(world, part, selected) for part in (error, beside, np.ones(error.shape)))
        for position, stratum in enumerate(PARTS):
            n = max(int(number[position]), 1)
            means = float(ours[position]) / n, float(theirs[position]) / n
            yield Ratio(workload, mechanism, alpha, epsilon, theta, stratum, cells, int(number[position]), *means)


def _totals(world: TabulatedFrame, values: Floats, selected: Bools) -> Floats:
    """Totals over all cells, then by stratum."""
    strata = np.bincount(world.stratum[selected], values.sum(axis=1)[selected], len(PARTS) - 1)
    return np.concatenate([[strata.sum()], strata])


def ratios(world: TabulatedFrame, workload: int, grid: MechanismGrid) -> Iterator[Ratio]:
    """Every mechanism at every admissible pair; noise infusion itself first."""
    table = world.of(workload)
    counts, largest = table.counts.astype(np.float64), table.largest.astype(np.float64)
    yield from by_stratum(world, workload, table.infusion_error, INFUSION)
    for candidate, alpha, epsilon, mechanism in grid.admissible(world.parts_of(workload)):
        error = mechanism.mean_abs(counts, largest)
        yield from by_stratum(world, workload, error, candidate.name, alpha, epsilon)
    if world.parts_of(workload) > 1:
        whole = world.largest_whole.astype(np.float64)
        for alpha, epsilon, strong in grid.strong(world.parts_of(workload)):
            yield from by_stratum(world, workload, strong.mean_abs(counts, whole), STRONG, alpha, epsilon)
    for epsilon in grid.epsilons:  # a job is in one cell, and an establishment's ε covers all its jobs: undivided
        error = Geometric(epsilon).mean_abs(counts, largest)
        yield from by_stratum(world, workload, error, GEOMETRIC, None, epsilon)
    for theta in grid.thetas:
        gone = world.removed(theta, workload)
        for epsilon in grid.epsilons:
            error = truncated_error(Truncated(epsilon, theta, "printed").distribution, gone)
            yield from by_stratum(world, workload, error, TRUNCATED, None, epsilon, theta)
        # Without ε: the error of truncation alone, without noise.
        yield from by_stratum(world, workload, gone.astype(np.float64), TRUNCATED, None, None, theta)


def truncated_error(distribution: DiscreteLaplace, gone: Int64s) -> Floats:
    """E|K − b| = b + 2q^(b+1)/(1 − q²), q = e^−rate: where b jobs are left out and K is the noise."""
    rate = float(distribution.rate)
    return np.asarray(gone + 2 * np.exp(-rate * (gone + 1)) / -np.expm1(-2 * rate))
