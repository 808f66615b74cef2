"""Table 4 of Li & Krenzke 2020: repeated perturbation and calibration of a cube of 182 cases (§4).

Without calibration the noise is the one drawn for the cube; with calibration it is the calibrated cube minus the true
one. Each run gives one sample variance per dimension; the paper averages them over the runs that converged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from discreet.formatting import Observer
from discreet.methods.hypercube.calibration import ControlTotals, RakingOptions, calibrate
from discreet.methods.hypercube.raking.rake import rake
from discreet.methods.hypercube.regression import fit
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.stream import Stream
from discreet.post.cubes.margins import Floats, Margin
from discreet.post.cubes.variance import KnownMargin, Reduction, reduction
from discreet_studies.hypercube.perturbation import EVALUATED
from discreet_studies.hypercube.printed import CONVERGED, CYCLES, RUNS, SHAPE


@dataclass(frozen=True)
class PooledTables:
    """All marginal tables of a cube at once: every axis gets one more code, the sum of the others. The cells of a table
    of d axes have d codes that are not sums."""

    shape: tuple[int, ...]

    @cached_property
    def dimension(self) -> NDArray[np.uint8]:
        """The dimension of the table that each cell of the extended cube belongs to."""
        dimension = np.zeros(1, np.uint8)
        for size in self.shape:
            dimension = np.add.outer(dimension, np.append(np.ones(size, np.uint8), np.uint8(0))).reshape(-1)
        return dimension

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Number of cells of all tables of 0, 1, … axes."""
        return np.bincount(self.dimension)

    def all_tables(self, noise: Floats) -> Floats:
        """The extended cube."""
        values, inner = noise.reshape(-1), 1
        for place in reversed(range(len(self.shape))):  # the last axis first, so that the longest loops are contiguous
            outer, size = prod(self.shape[:place]), self.shape[place]
            wider = np.empty((outer, size + 1, inner))
            _with_sums(values.reshape(outer, size, inner), wider)
            values, inner = wider.reshape(-1), inner * (size + 1)
        return values

    def variances(self, noise: Floats) -> Floats:
        """Σ(e − ē)²/(m − 1) over all m cells of all tables of 1, 2, … axes."""
        values = self.all_tables(noise)
        squares = np.zeros(len(self.shape) + 1)
        _add_squares(values, self.dimension, squares)
        tables = np.array([comb(len(self.shape), d) for d in range(len(squares))])
        sums = tables * values[-1]  # every table sums to the cube's total, which is the last cell
        variances: Floats = (squares - sums**2 / self.cells)[1:] / (self.cells[1:] - 1)
        return variances


@compiled
def _with_sums(values: Floats, wider: Floats) -> None:
    """Append its sum to the middle axis."""
    outer, size, inner = values.shape
    for i in range(outer):
        wider[i, size] = 0.0
        for j in range(size):
            for k in range(inner):
                wider[i, j, k] = values[i, j, k]
                wider[i, size, k] += values[i, j, k]


@compiled
def _add_squares(values: Floats, groups: NDArray[np.uint8], squares: Floats) -> None:
    for i in range(len(values)):
        squares[groups[i]] += values[i] * values[i]


Flags = NDArray[np.bool_]

TOLERANCES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
SHARE = CONVERGED / RUNS  # 22.4%
CONTROL = DiscreteLaplace(Fraction(1))  # noise of each control total, where these are perturbed
RAKING = RakingOptions(tolerance=1e-3, cycles=CYCLES)  # to control totals that were perturbed and reconciled
PATIENCE, PATIENT_RUNS = (CYCLES, 30, 100, 300), 100  # cycle limits, and the number of runs that are continued
POOLED = PooledTables(SHAPE)
MARGINS = tuple(Margin.over(SHAPE, [place]) for place in range(len(SHAPE)))
CELLS = int(np.prod(SHAPE))


def stream(purpose: str) -> Stream:
    """Noise of the study, from a fixed simulation key."""
    return ReleaseKey.simulation("reproduce hypercube").stream("reproduce", "hypercube", b"", purpose)


def noise_runs(runs: int, seed: int) -> Iterator[Floats]:
    """The noise of all cells, run by run."""
    source = stream(f"cube, seed {seed}")
    for run in range(runs):
        yield EVALUATED.draw(source, run * CELLS, CELLS).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RakedRuns:
    """Results of raking, run by run: variances by dimension without and with it, and the gap left after ten cycles."""

    before: Floats  # run × dimension
    after: Floats
    gap: Floats  # largest |sum − target|/max(1, target) over the cells of all margins
    least: Floats  # the smallest cell of the perturbed margins, where the true one is not 0

    @property
    def runs(self) -> int:
        return len(self.gap)

    def converged(self, tolerance: float) -> Flags:
        """Which runs meet every margin within the tolerance."""
        return np.asarray(self.gap <= tolerance)

    def share(self, tolerance: float) -> float:
        return float(np.mean(self.converged(tolerance)))

    @property
    def paper_share_tolerance(self) -> float:
        """The tolerance at which the paper's share of runs converges: the 224th smallest gap in 1,000 runs."""
        return float(np.sort(self.gap)[max(round(SHARE * self.runs), 1) - 1])

    @property
    def blocked(self) -> Flags:
        """Runs with a perturbed margin of zero or less where the true one is positive."""
        return np.asarray(self.least <= 0)


@dataclass(frozen=True, eq=False)
class MeanEstimate:
    """Means over runs by dimension, and their standard errors."""

    mean: Floats
    error: Floats

    @classmethod
    def of(cls, values: Floats, chosen: Flags | None = None) -> MeanEstimate:
        """NaN where fewer than two runs are selected."""
        selected = values if chosen is None else values[chosen]
        if len(selected) < 2:
            nothing = np.full(values.shape[1], np.nan)
            return cls(nothing, nothing)
        return cls(selected.mean(axis=0), selected.std(axis=0, ddof=1) / np.sqrt(len(selected)))

    def z(self, expected: Floats) -> Floats:
        """Difference from the expectation in standard errors; 0 where there is no noise."""
        apart = self.mean - expected
        return np.divide(apart, self.error, out=np.zeros_like(apart), where=self.error > 1e-12)


@dataclass(frozen=True, eq=False)
class CalibratedRuns:
    """All calibrations of all runs on one set of cases."""

    cube: Floats
    raked: RakedRuns  # to exact margins, negative cells kept: the paper's
    clipped: RakedRuns  # the same, negative cells set to 0 first
    least_squares: Floats  # to exact margins; run × dimension
    noisy: Floats  # least squares to perturbed margins
    noisy_raked: Floats  # raked to the reconciled margins; least squares where raking fails
    noisy_met: Flags  # where raking does not fail

    @property
    def smallest(self) -> int:
        """Cases in the smallest cell of the true margins."""
        return int(min(margin.add_up(self.cube).min() for margin in MARGINS))

    def with_closed_forms(
        self, exact: Iterable[Reduction], noisy: Iterable[Reduction]
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Run × dimension variances with their closed-form expectations: no calibration, exact controls, perturbed
        controls."""
        exact = list(exact)
        return (
            (self.raked.before, variances_before(exact)),
            (self.least_squares, variances_after(exact)),
            (self.noisy, variances_after(noisy)),
        )

    def least_squares_where(self, tolerance: float) -> MeanEstimate:
        """Least squares over the runs whose raking meets a tolerance, which have less noise than others."""
        return MeanEstimate.of(self.least_squares, self.raked.converged(tolerance))


def simulate(cube: Floats, runs: int, seed: int, observe: Observer) -> CalibratedRuns:
    """Apply every calibration to the same noise."""
    targets = [margin.add_up(cube) for margin in MARGINS]
    variance = EVALUATED.variance()
    plain, clipped = _Raker(cube, targets), _Raker(cube, targets)
    fitted, noisy, reconciled, met = [], [], [], []
    for run, noise in enumerate(noise_runs(runs, seed)):
        perturbed = cube + noise
        plain.add(perturbed)
        clipped.add(np.maximum(perturbed, 0))
        best = fit(perturbed, MARGINS, targets, [0.0] * len(MARGINS), variance=variance)
        fitted.append(POOLED.variances(best.values - cube))
        controls = _perturbed(targets, run, seed)
        noisy.append(POOLED.variances(calibrate(perturbed, controls, variance).values - cube))
        raked = calibrate(perturbed, controls, variance, RAKING)
        reconciled.append(POOLED.variances(raked.values - cube))
        met.append(raked.raked)
        observe("runs", run + 1, runs)
    return CalibratedRuns(
        cube=cube,
        raked=plain.done(),
        clipped=clipped.done(),
        least_squares=np.array(fitted),
        noisy=np.array(noisy),
        noisy_raked=np.array(reconciled),
        noisy_met=np.array(met),
    )


def rake_only(cube: Floats, runs: int, seed: int) -> RakedRuns:
    """The paper's raking alone."""
    raker = _Raker(cube, [margin.add_up(cube) for margin in MARGINS])
    for noise in noise_runs(runs, seed):
        raker.add(cube + noise)
    return raker.done()


@dataclass(frozen=True, eq=False)
class CyclesNeeded:
    """The number of cycles that each run needs to converge; 0 where the limit does not suffice."""

    cycles: NDArray[np.int64]

    def share(self, within: int) -> float:
        """The share of runs that converge within this number of cycles."""
        return float(np.mean((self.cycles > 0) & (self.cycles <= within)))


def cycles_needed(cube: Floats, runs: int, seed: int) -> CyclesNeeded:
    """Continue the first runs until they meet the tightest tolerance."""
    targets = [margin.add_up(cube) for margin in MARGINS]
    cycles = []
    for noise in noise_runs(min(runs, PATIENT_RUNS), seed):
        done = rake(cube + noise, MARGINS, targets, tolerance=TOLERANCES[0], cycles=PATIENCE[-1])
        cycles.append(done.cycles if done.converged else 0)
    return CyclesNeeded(np.array(cycles))


class _Raker:
    """Rakes cubes, always ten cycles: the tolerance is applied afterwards."""

    def __init__(self, cube: Floats, targets: list[Floats]) -> None:
        self._cube, self._targets = cube, targets
        self._rows: list[tuple[Floats, Floats, float, float]] = []

    def add(self, seen: Floats) -> None:
        done = rake(seen, MARGINS, self._targets, tolerance=0.0, cycles=CYCLES)
        sums = [margin.add_up(seen)[goal > 0] for margin, goal in zip(MARGINS, self._targets, strict=True)]
        variances = POOLED.variances(seen - self._cube), POOLED.variances(done.values - self._cube)
        self._rows.append((*variances, done.scaled_gap, float(np.concatenate(sums).min())))

    def done(self) -> RakedRuns:
        return RakedRuns(*map(np.array, zip(*self._rows, strict=True)))


def _perturbed(targets: list[Floats], run: int, seed: int) -> list[ControlTotals]:
    """Each margin with its own noise."""
    source, first = stream(f"controls, seed {seed}"), run * sum(SHAPE)
    controls = []
    for margin, target in zip(MARGINS, targets, strict=True):
        noise = CONTROL.draw(source, first, margin.cells)
        controls.append(ControlTotals(margin, target + noise, CONTROL.variance()))
        first += margin.cells
    return controls


def expected(control: float) -> tuple[Reduction, ...]:
    """Closed form, by dimension: one-way controls with this noise variance, 0 if exact."""
    known = [KnownMargin((place,), control) for place in range(len(SHAPE))]
    return tuple(reduction(SHAPE, EVALUATED.variance(), known, d) for d in range(1, len(SHAPE) + 1))


def variances_before(closed: Iterable[Reduction]) -> Floats:
    """Closed-form variances without calibration."""
    return np.array([one.spread_before for one in closed])


def variances_after(closed: Iterable[Reduction]) -> Floats:
    """Closed-form variances with calibration."""
    return np.array([one.spread_after for one in closed])
