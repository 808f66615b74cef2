"""Simulated trials: agreement with the closed forms, relative errors of counts, and the cost of misallocated funds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet_studies.employer.mechanism_grid import ALPHA, CANDIDATES, EPSILON, GEOMETRIC, TRUNCATED, MechanismGrid
from discreet_studies.employer.ratios import INFUSION
from discreet_studies.employer.workloads import CellTable, Floats, Int64s, TabulatedFrame, infusion_key

CLEAR = 5.0  # jobs of expected error from which on rounding to integers changes less than 0.3% of it
ERRORS, ROUNDING = 5.0, 0.005  # agreement: within 5 standard errors and half a per cent
DOLLARS = 3.5  # per misallocated job (Haney et al. 2017, §3.2)
POINTS = 0.10  # relative errors are near if within ten percentage points (Finding 1)
CHECKED = {1: (ALPHA, EPSILON), 2: (ALPHA, EPSILON), 3: (Fraction(1, 100), Fraction(4))}  # where the variance is finite


@dataclass(frozen=True)
class ClosedFormCheck:
    """L1 error in closed form and by simulation, over cells where rounding matters little."""

    workload: int
    mechanism: str
    alpha: Fraction
    epsilon: Fraction
    cells: int
    expected: float
    simulated: float
    standard_error: float

    @property
    def agrees(self) -> bool:
        """Within the noise of the trials."""
        return abs(self.simulated - self.expected) <= ERRORS * self.standard_error + ROUNDING * self.expected


@dataclass(frozen=True)
class Trials:
    """Workload 1 at the baseline, simulated with published integers; means over trials."""

    mechanism: str
    theta: int | None
    ratio: float  # of L1 errors, over cells with establishments
    near: float  # share of counts with relative error within ten points of that of noise infusion
    not_worse: float  # share with relative error at most ten points larger
    cells: float  # dollars: Σ |error| over cells
    places: float  # dollars: Σ |error of the place's jobs|


def checks(world: TabulatedFrame) -> Iterator[ClosedFormCheck]:
    """One check per mechanism and workload."""
    for workload, (alpha, epsilon) in CHECKED.items():
        table = world.of(workload)
        for candidate in CANDIDATES:
            mechanism = candidate.of(alpha, epsilon, world.parts_of(workload))
            if mechanism is not None:
                numbers = _check(world, table, mechanism, f"check {workload} {candidate.name}")
                yield ClosedFormCheck(workload, candidate.name, alpha, epsilon, *numbers)


def _check(
    world: TabulatedFrame, table: CellTable, mechanism: Mechanism, purpose: str
) -> tuple[int, float, float, float]:
    counts, largest = table.counts[world.occupied].reshape(-1), table.largest[world.occupied].reshape(-1)
    expected = mechanism.mean_abs(counts.astype(np.float64), largest.astype(np.float64))
    large = expected >= CLEAR
    counts, largest, expected = counts[large], largest[large], expected[large]
    totals = [
        float(np.abs(mechanism.draw(counts, largest, world.stream(purpose, trial), 0) - counts).sum())
        for trial in range(world.trials)
    ]
    error = float(np.std(totals, ddof=1)) / len(totals) ** 0.5
    return len(counts), float(expected.sum()), float(np.mean(totals)), error


def baseline(world: TabulatedFrame, grid: MechanismGrid) -> Iterator[Trials]:
    """Noise infusion and every mechanism at α = .1, ε = 2."""
    table, frame = world.establishments, world.frame
    infused = [
        world.infusion.publish(world.sizes, frame.cell, frame.cells, infusion_key(frame.seed, trial), "establishments")
        for trial in range(world.trials)
    ]
    yield _drawn(world, INFUSION, None, [values.values[:, 0] for values in infused])
    settings: list[tuple[str, int | None, Mechanism | None]] = [
        (candidate.name, None, candidate.of(ALPHA, EPSILON)) for candidate in CANDIDATES
    ]
    settings.append((GEOMETRIC, None, Geometric(EPSILON)))
    settings += [(TRUNCATED, theta, Truncated(EPSILON, theta, "printed")) for theta in grid.thetas]
    for name, theta, mechanism in settings:
        if mechanism is None:
            continue
        gone = 0 if theta is None else world.removed(theta, 1)[:, 0]
        trials = (
            mechanism.draw(
                table.counts[:, 0] - gone, table.largest[:, 0], world.stream("baseline", name, theta, trial), 0
            )
            for trial in range(world.trials)
        )
        yield _drawn(world, name, theta, [np.where(world.occupied, values, 0) for values in trials])


def _drawn(world: TabulatedFrame, name: str, theta: int | None, published: list[Floats] | list[Int64s]) -> Trials:
    """Cells without establishments are published as zeros here: that they have none is public."""
    table, some = world.establishments, world.occupied
    counts = table.counts[:, 0]
    error: Floats = np.mean([np.abs(values - counts) for values in published], axis=0)
    places = [np.abs(np.bincount(world.place, values - counts)).sum() for values in published]
    relative = error[some] / counts[some]
    beside = np.abs(table.infused.values[:, 0] - counts)[some] / counts[some]
    return Trials(
        name,
        theta,
        float(error.sum() / table.infusion_error.sum()),
        float((np.abs(relative - beside) <= POINTS).mean()),
        float((relative <= beside + POINTS).mean()),
        DOLLARS * float(error.sum()),
        DOLLARS * float(np.mean(places)),
    )
