"""Calibration of a perturbed cube to its controls: by generalised least squares, or by raking to the reconciled margins
(Li & Krenzke 2020, §3.3).

Controls with independent noise are inconsistent, so no cube meets them all. Generalised least squares (GLS) weights
every number by its noise variance; the margins of its solution are consistent and are the targets of raking. Where
raking does not converge, or has a non-positive target or sum, the GLS solution, which always exists, replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.methods.hypercube.raking.rake import rake
from discreet.methods.hypercube.regression import fit
from discreet.post.cubes.margins import Floats, Margin, Problem, combination
from discreet.post.cubes.model import RakedModel
from discreet.post.cubes.variance import KnownMargin, Perturbation
from discreet.post.portable import inner

TABLES = 24  # of each dimension, at most, on which the error of raking is simulated
WORK = 1 << 32  # cells of these tables over all runs, at most
BINS = 40  # of estimates, by size
ENOUGH = 1000  # squared errors, at least, for the fit of a variance
ROUNDS = 30  # of reweighting


@dataclass(frozen=True, eq=False)
class ControlTotals:
    """A control: its margin, its totals, and the variance of the noise in each (0: exact or public)."""

    margin: Margin
    totals: Floats
    variance: float


@dataclass(frozen=True)
class RakingOptions:
    """Options of raking: the tolerance to which every control is met, and the maximum number of cycles."""

    tolerance: float
    cycles: int


@dataclass(frozen=True, eq=False)
class CalibratedCube:
    """A calibrated cube, the method that produced it, and the problems of raking or of hard controls."""

    values: Floats
    steps: tuple[Floats, ...]  # of each control: the change of its cells; for a sparse cube still to be added
    raked: bool
    converged: bool
    cycles: int
    largest_gap: float  # to the reconciled controls after raking, to exact and public controls after GLS
    problems: tuple[Problem, ...]


def calibrate(
    values: Floats,
    controls: Sequence[ControlTotals],
    variance: float,
    raking: RakingOptions | None = None,
    cells: Numbers | None = None,
) -> CalibratedCube:
    """Generalised least squares; or raking to the margins of that solution, where it converges without problems.

    With a non-positive target or sum raking may end, but with negative or huge factors: that counts as a problem.
    """
    margins = [control.margin for control in controls]
    totals = [control.totals for control in controls]
    solution = fit(values, margins, totals, [c.variance for c in controls], variance=variance, cells=cells)
    least = CalibratedCube(
        solution.values, solution.steps, False, solution.converged, 0, solution.largest_gap, solution.problems
    )
    if raking is None:
        return least
    if cells is not None:
        raise ParameterError("a sparse cube cannot be raked", where="raking", do="leave it out, for least squares")
    agreed = [c.totals if c.variance == 0 else c.margin.add_up(solution.values) for c in controls]
    raked = rake(values, margins, agreed, tolerance=raking.tolerance, cycles=raking.cycles)
    if raked.converged and not raked.problems:
        return CalibratedCube(raked.values, (), True, True, raked.cycles, raked.largest_gap, ())
    return replace(least, cycles=raked.cycles, problems=(*raked.problems, *solution.problems))


NoiseDraw = tuple[Floats, list[Floats]]  # noise of the cube, and of each control


def raked_variances(
    cube: Floats,
    controls: Sequence[ControlTotals],
    variance: float,
    raking: RakingOptions,
    draws: Iterator[NoiseDraw],
    runs: int,
) -> tuple[RakedModel, ...]:
    """Simulated variances of queries by 0, 1, … variables: the calibrated cube is taken as the truth, perturbed and
    calibrated again. Never below the GLS variance. Raking changes cells in proportion to their size, so large cells
    have larger errors."""
    shape = controls[0].margin.shape
    stated = Perturbation(shape, variance, KnownMargin.among((c.margin, c.variance) for c in controls))
    margins = [Margin.over(shape, axes) for axes in _tables(shape, max(len(cube), 1) * runs)]
    sizes = np.array([[1 if i in m.places else size for i, size in enumerate(shape)] for m in margins], np.int64)
    expected = stated.of(sizes)
    truths = [control.margin.add_up(cube) for control in controls]
    bins = np.zeros((len(shape) + 1, BINS, 3))  # number, sum of (estimate)², sum of (error)²
    flat = cube.reshape(-1)
    for _ in range(runs):
        noise, totals = next(draws)
        again = [replace(c, totals=truth + extra) for c, truth, extra in zip(controls, truths, totals, strict=True)]
        error = calibrate(flat + noise, again, variance, raking).values - flat
        for margin, least in zip(margins, expected, strict=True):
            if least > 1e-9 * variance:  # otherwise fixed by exact totals
                bins[len(margin.axes)] += _binned(margin.add_up(flat) ** 2 / least, margin.add_up(error) ** 2 / least)
    return tuple(_fitted(_enough(bins, dimension)) for dimension in range(len(shape) + 1))


def _binned(size: Floats, error: Floats) -> Floats:
    """Sums by powers of 2 of the size."""
    place = np.minimum(np.frexp(1 + size)[1] - 1, BINS - 1)
    return np.stack([np.bincount(place, weights, BINS) for weights in (None, size, error)], axis=-1)


def _enough(bins: Floats, dimension: int) -> Floats:
    """The errors of one dimension, pooled with the next dimensions where they are few."""
    for last in range(dimension, len(bins)):
        pooled: Floats = bins[dimension : last + 1].sum(axis=0)
        if pooled[:, 0].sum() >= ENOUGH:
            break
    return pooled


def _fitted(bins: Floats) -> RakedModel:
    """error² ≈ times + share·size, by iteratively reweighted least squares."""
    number, size, error = bins[bins[:, 0] > 0].T
    if not len(number):
        return RakedModel(times=1.0, share=0.0)
    size, error = size / number, error / number
    times, share = max(inner(error, number) / float(number.sum()), 1.0), 0.0
    for _ in range(ROUNDS):
        weight = number / (times + share * size) ** 2
        w, wx, wxx = float(weight.sum()), inner(weight, size), inner(weight, size**2)
        wy, wxy = inner(weight, error), inner(weight, size * error)
        determinant = w * wxx - wx**2
        share = max((w * wxy - wx * wy) / determinant, 0.0) if determinant > 1e-9 * w * wxx else 0.0
        times = max((wy - share * wx) / w, 1.0)
    return RakedModel(times=times, share=share)


def _tables(shape: Sequence[int], work: int) -> Iterator[tuple[int, ...]]:
    """Tables of every dimension, evenly spaced in rank order, within the limit on work."""
    most = max(min(TABLES, WORK // (work * (len(shape) + 1))), 1)
    for dimension in range(len(shape) + 1):
        number = comb(len(shape), dimension)
        chosen = {i * (number - 1) // max(most - 1, 1) for i in range(most)} if number > most else range(number)
        for rank in sorted(chosen):
            yield combination(len(shape), dimension, rank)
