"""A perturbed cube made to add up to its controls: by least squares, or by raking to what they reconcile (002, §3.3).

Controls that were perturbed each by itself contradict one another, so no cube meets them all. Least squares weigh every
number by its noise; their margins agree, and are what raking is asked to meet. Where raking does not get there, least
squares, which always do, take its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.post.cube_variance import Known, Perturbation
from discreet.post.margins import Floats, Margin, Problem
from discreet.post.rake import rake
from discreet.post.regression import fit

TABLES = 24  # of each dimension, at most, on which the error of raking is measured
WORK = 1 << 32  # cells of all of them, in all runs


@dataclass(frozen=True, eq=False)
class Controlled:
    """A control: its table, its totals, and the variance of the noise in each (0: exact or public)."""

    margin: Margin
    totals: Floats
    variance: float


@dataclass(frozen=True)
class Raking:
    """How raking is done: until every control is met to the tolerance, over at most so many cycles."""

    tolerance: float
    cycles: int


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The calibrated cube, how it came about, and what stood in the way."""

    values: Floats
    raked: bool
    converged: bool
    cycles: int
    largest_gap: float  # of raking to reconciled controls, or of least squares to exact and public ones
    problems: tuple[Problem, ...]


def calibrate(
    values: Floats,
    controls: Sequence[Controlled],
    variance: float,
    raking: Raking | None = None,
    cells: Numbers | None = None,
) -> Calibrated:
    """Least squares with the cube's noise variance; or raked to the margins of that."""
    margins = [control.margin for control in controls]
    totals = [control.totals for control in controls]
    found = fit(values, margins, totals, [c.variance for c in controls], variance=variance, cells=cells)
    if raking is None:
        return Calibrated(found.values, False, found.converged, 0, found.largest_gap, found.problems)
    agreed = [c.totals if c.variance == 0 else c.margin.add_up(found.values, cells) for c in controls]
    done = rake(values, margins, agreed, tolerance=raking.tolerance, cycles=raking.cycles, cells=cells)
    if done.converged:
        return Calibrated(done.values, True, True, done.cycles, done.largest_gap, done.problems)
    problems = (*done.problems, *found.problems)
    return Calibrated(found.values, False, found.converged, done.cycles, found.largest_gap, problems)


Drawn = tuple[NDArray[np.int64] | None, Floats, list[Floats]]  # cells and their noise; noise of each control


def factors(
    cube: Floats,
    cells: Numbers | None,
    controls: Sequence[Controlled],
    variance: float,
    raking: Raking | None,
    draws: Iterator[Drawn],
    runs: int,
) -> tuple[float, ...]:
    """By how much the variance of a query of 0, 1, … variables exceeds that of least squares with equal weights.

    Simulated from protected numbers: the calibrated cube stands for the truth, is perturbed and calibrated again.
    """
    shape = controls[0].margin.shape
    known = tuple(Known(tuple(a.place for a in c.margin.axes), c.variance) for c in controls if c.margin.whole)
    stated = Perturbation(shape, variance, known)
    truths = [control.margin.add_up(cube, cells) for control in controls]
    tables = list(_tables(shape, max(len(cube), 1) * runs))
    found = np.zeros(len(tables))
    for _ in range(runs):
        moved, noise, totals = next(draws)
        seen, mine = _added(cells, cube, moved, noise)
        again = [
            Controlled(c.margin, truth + extra, c.variance)
            for c, truth, extra in zip(controls, truths, totals, strict=True)
        ]
        result = calibrate(mine, again, variance, raking, seen)
        error = result.values - _spread(cells, cube, seen)
        for place, axes in enumerate(tables):
            found[place] += float(np.mean(Margin.over(shape, axes).add_up(error, seen) ** 2)) / runs
    expected = np.array([float(stated.of(_sizes(shape, axes))[0]) for axes in tables])
    dimension = np.array([len(axes) for axes in tables])
    ratios = [_ratio(found[dimension == d], expected[dimension == d], variance) for d in range(len(shape) + 1)]
    return tuple(ratios)


def _ratio(found: Floats, expected: Floats, variance: float) -> float:
    """Of means; 1 where least squares leave nothing, so that nothing can be compared."""
    return float(found.mean() / expected.mean()) if expected.mean() > 1e-9 * variance else 1.0


def _tables(shape: Sequence[int], work: int) -> Iterator[tuple[int, ...]]:
    """Tables of every dimension, evenly chosen, as many as there is time for."""
    most = max(min(TABLES, WORK // (work * (len(shape) + 1))), 1)
    for dimension in range(len(shape) + 1):
        number = comb(len(shape), dimension)
        chosen = (
            {round(i * (number - 1) / max(most - 1, 1)) for i in range(min(most, number))} if number > most else None
        )
        for place, axes in enumerate(combinations(range(len(shape)), dimension)):
            if chosen is None or place in chosen:
                yield axes


def _sizes(shape: Sequence[int], axes: Sequence[int]) -> Numbers:
    return np.array([[1 if place in axes else size for place, size in enumerate(shape)]], np.int64)


def _added(
    cells: Numbers | None, cube: Floats, moved: NDArray[np.int64] | None, noise: Floats
) -> tuple[Numbers | None, Floats]:
    """The cube and its noise, over the cells of both."""
    if cells is None or moved is None:
        return None, cube.reshape(-1) + noise
    both = np.union1d(cells, moved)
    values = _spread(cells, cube, both)
    values[np.searchsorted(both, moved)] += noise
    return both, values


def _spread(cells: Numbers | None, cube: Floats, wider: Numbers | None) -> Floats:
    """The same cube on more cells."""
    if cells is None or wider is None:
        return cube.reshape(-1)
    values = np.zeros(len(wider))
    values[np.searchsorted(wider, cells)] = cube
    return values
