"""A perturbed cube made to add up to its controls: by least squares, or by raking to what they reconcile (002, §3.3).

Controls that were perturbed each by itself contradict one another, so no cube meets them all. Least squares weigh every
number by its noise; their margins agree, and are what raking is asked to meet. Where raking does not get there, or only
through negative numbers, least squares, which always do, take its place.
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

TABLES = 24  # of each dimension, at most, on which the error of raking is measured
WORK = 1 << 32  # cells of all of them, in all runs
BINS = 40  # of estimates, by size
ENOUGH = 1000  # squared errors, of which a variance is fitted
ROUNDS = 30  # of reweighting


@dataclass(frozen=True, eq=False)
class ControlTotals:
    """A control: its table, its totals, and the variance of the noise in each (0: exact or public)."""

    margin: Margin
    totals: Floats
    variance: float


@dataclass(frozen=True)
class RakingOptions:
    """How raking is done: until every control is met to the tolerance, over at most so many cycles."""

    tolerance: float
    cycles: int


@dataclass(frozen=True, eq=False)
class CalibratedCube:
    """The calibrated cube, how it came about, and what stood in the way."""

    values: Floats
    steps: tuple[Floats, ...]  # of each control: what its cells have moved by, and in a sparse cube still have to
    raked: bool
    converged: bool
    cycles: int
    largest_gap: float  # of raking to reconciled controls, or of least squares to exact and public ones
    problems: tuple[Problem, ...]


def calibrate(
    values: Floats,
    controls: Sequence[ControlTotals],
    variance: float,
    raking: RakingOptions | None = None,
    cells: Numbers | None = None,
) -> CalibratedCube:
    """Least squares with the cube's noise variance; or raked to the margins of that, where nothing forbids it.

    Raking with a target or a sum that is not positive may end, but with factors that are negative or huge.
    """
    margins = [control.margin for control in controls]
    totals = [control.totals for control in controls]
    found = fit(values, margins, totals, [c.variance for c in controls], variance=variance, cells=cells)
    least = CalibratedCube(found.values, found.steps, False, found.converged, 0, found.largest_gap, found.problems)
    if raking is None:
        return least
    if cells is not None:
        raise ParameterError("a sparse cube is not raked", where="raking", do="leave it out: least squares add")
    agreed = [c.totals if c.variance == 0 else c.margin.add_up(found.values) for c in controls]
    done = rake(values, margins, agreed, tolerance=raking.tolerance, cycles=raking.cycles)
    if done.converged and not done.problems:
        return CalibratedCube(done.values, (), True, True, done.cycles, done.largest_gap, ())
    return replace(least, cycles=done.cycles, problems=(*done.problems, *found.problems))


NoiseDraw = tuple[Floats, list[Floats]]  # noise of the cube, and of each control


def raked_variances(
    cube: Floats,
    controls: Sequence[ControlTotals],
    variance: float,
    raking: RakingOptions,
    draws: Iterator[NoiseDraw],
    runs: int,
) -> tuple[RakedModel, ...]:
    """Of queries of 0, 1, … variables, simulated from protected numbers: the calibrated cube stands for the truth, is
    perturbed and calibrated again. Never less than least squares would leave. Raking moves a cell in proportion to what
    is in it, so large ones err more."""
    shape = controls[0].margin.shape
    stated = Perturbation(shape, variance, KnownMargin.among((c.margin, c.variance) for c in controls))
    margins = [Margin.over(shape, axes) for axes in _tables(shape, max(len(cube), 1) * runs)]
    sizes = np.array([[1 if i in m.places else size for i, size in enumerate(shape)] for m in margins], np.int64)
    expected = stated.of(sizes)
    truths = [control.margin.add_up(cube) for control in controls]
    bins = np.zeros((len(shape) + 1, BINS, 3))  # how many, the sum of their (estimate)², and of their (error)²
    flat = cube.reshape(-1)
    for _ in range(runs):
        noise, totals = next(draws)
        again = [replace(c, totals=truth + extra) for c, truth, extra in zip(controls, truths, totals, strict=True)]
        error = calibrate(flat + noise, again, variance, raking).values - flat
        for margin, least in zip(margins, expected, strict=True):
            if least > 1e-9 * variance:  # else exact totals leave nothing
                bins[len(margin.axes)] += _binned(margin.add_up(flat) ** 2 / least, margin.add_up(error) ** 2 / least)
    return tuple(_fitted(_enough(bins, dimension)) for dimension in range(len(shape) + 1))


def _binned(size: Floats, error: Floats) -> Floats:
    """By powers of 2 of the size."""
    place = np.minimum(np.frexp(1 + size)[1] - 1, BINS - 1)
    return np.stack([np.bincount(place, weights, BINS) for weights in (None, size, error)], axis=-1)


def _enough(bins: Floats, dimension: int) -> Floats:
    """The errors of one dimension, with those of the next ones where they are few."""
    for last in range(dimension, len(bins)):
        found: Floats = bins[dimension : last + 1].sum(axis=0)
        if found[:, 0].sum() >= ENOUGH:
            break
    return found


def _fitted(bins: Floats) -> RakedModel:
    """error² ≈ times + share·size, by least squares reweighted until the weights are those of the fit."""
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
    """Tables of every dimension, evenly chosen, as many as there is time for."""
    most = max(min(TABLES, WORK // (work * (len(shape) + 1))), 1)
    for dimension in range(len(shape) + 1):
        number = comb(len(shape), dimension)
        chosen = {i * (number - 1) // max(most - 1, 1) for i in range(most)} if number > most else range(number)
        for rank in sorted(chosen):
            yield combination(len(shape), dimension, rank)
