"""Calibration of a perturbed cube by generalised least squares. Proof: regression.md.

The cube is x̃ = x + noise of variance σ² in every cell; control j has totals t_j = M_j x + noise of variance v_j, 0 if
exact or public. The best linear unbiased cube minimises ‖y − x̃‖²/σ² + Σ_j ‖M_j y − t_j‖²/v_j, with M_j y = t_j if
v_j = 0. It is y = x̃ + σ² M'λ with (σ² M M' + V) λ = t − M x̃, M being all controls stacked: as many unknowns as
there are totals. Raking (002, §3.3) meets noisy totals as if they were exact, and may not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.post.contradictions import Overlap, arranged, by_place, check, counts, disagreements, multiplied, others
from discreet.post.cube_variance import Known, Perturbation, by_effects
from discreet.post.margins import Floats, Margin, Problem

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MET = 1e-10  # relative to the largest total: the gap up to which a hard control is met
CLOSE = 1e-14  # relative residual at which the iteration stops
SOLVED = 1e-10  # relative residual of the normal equations up to which they are solved
RESTARTS = 4  # each from the true residual, which takes away what rounding has left
STEPS = 2000  # of one start; a stop that only controls by groups with noise of very different sizes reach
CLOSED = 2**26  # sums, at most, that the closed form may take
ROW = 512  # cells of the cube, at least, that are worked on at once


@dataclass(frozen=True, eq=False)
class Fitted:
    """A calibrated cube: as many values, in the same order, as went in."""

    values: Floats
    largest_gap: float  # over the hard controls
    converged: bool  # the equations are solved and the hard controls are met
    problems: tuple[Problem, ...]  # why not


def fit(
    values: Floats,
    margins: Sequence[Margin],
    targets: Sequence[Floats],
    variances: Sequence[float],
    *,
    variance: float,
    cells: Ints | None = None,
) -> Fitted:
    """The cube y nearest to the perturbed one and to its controls, each weighed by its noise variance.

    `variance` is σ², that of every cell of the cube. With `cells` the cube is sparse and zero elsewhere. Zeros then
    stay: Σ (y − x̃)²/w is minimised instead, with w = σ²·N·|x̃|/Σ|x̃|, so that the cube's total keeps its variance σ²N.
    """
    _check(values, margins, targets, variances, variance, cells)
    if not margins:
        return Fitted(np.array(values, np.float64, order="C"), 0.0, True, ())
    space: _Space = _Dense(margins, variance) if cells is None else _Sparse(margins, values, variance, cells)
    noise = np.repeat(np.array(variances, np.float64), [margin.cells for margin in margins])
    totals = np.concatenate(targets)
    missing = totals - space.add_up(values)
    known = None if cells is not None else _known(margins, variances, variance)
    multipliers, solved = _solve(space, noise, missing) if known is None else (by_effects(known, missing), True)
    fitted = space.spread(values, multipliers)
    gaps = np.where(noise == 0, np.abs(space.add_up(fitted) - totals), 0.0)
    largest = float(gaps.max(initial=0.0))
    allowed = MET * max(1.0, float(np.abs(totals[noise == 0]).max(initial=0.0)))
    met = largest <= allowed
    if not met and noise.any():  # noise of very different sizes: whatever rounding has left, exact totals come last
        hard = [(margin, t, 0.0) for margin, t, v in zip(margins, targets, variances, strict=True) if v == 0]
        last = fit(fitted, *zip(*hard, strict=True), variance=variance, cells=cells)
        return replace(last, converged=solved and last.converged)
    missed = np.where(gaps > allowed, gaps, 0.0)
    problems = [] if met else _problems(margins, targets, missed, missed * (space.diagonal() == 0), solved)
    return Fitted(fitted, largest, solved and met, tuple(problems))


def _known(margins: Sequence[Margin], variances: Sequence[float], variance: float) -> Perturbation | None:
    """The controls, if all are by whole axes and not of too many: then there is a closed form."""
    if any(not np.array_equal(axis.groups, np.arange(axis.size)) for margin in margins for axis in margin.axes):
        return None
    places = [tuple(axis.place for axis in margin.axes) for margin in margins]
    sums = sum(2 ** len(p) * (margin.cells + 2**10) for p, margin in zip(places, margins, strict=True))
    if sums > CLOSED or any(len(set(p)) < len(p) for p in places):
        return None
    return Perturbation(margins[0].shape, variance, tuple(map(Known, places, variances)))


def _problems(
    margins: Sequence[Margin], targets: Sequence[Floats], missed: Floats, unreachable: Floats, solved: bool
) -> list[Problem]:
    """Totals of no cells, and pairs of hard controls that contradict each other; else every one that is missed."""
    nothing = _worst(margins, unreachable, "no cells", "no cell of the cube that is not zero is in it")
    pairs = disagreements(margins, targets, MET)
    if nothing or pairs:
        return nothing + pairs
    if not solved:
        return _worst(margins, missed, "not met", "the iteration has ended before")
    return _worst(margins, missed, "contradiction", "it cannot be met together with the others and the cube's zeros")


def _worst(margins: Sequence[Margin], missed: Floats, kind: str, why: str) -> list[Problem]:
    """The total of each margin that is missed by most, if any is."""
    parts = np.split(missed, np.cumsum([margin.cells for margin in margins])[:-1])
    return [
        Problem(kind, margin.name, int(np.argmax(part)), f"missed by {part.max():.6g}: {why}")
        for margin, part in zip(margins, parts, strict=True)
        if part.any()
    ]


class _Space(Protocol):
    """A cube as its controls see it."""

    def add_up(self, values: Floats) -> Floats:
        """M x: all margins, one after the other."""

    def product(self, multipliers: Floats) -> Floats:
        """M W M' λ, W the variances of the cells."""

    def diagonal(self) -> Floats:
        """Of M W M'."""

    def spread(self, values: Floats, multipliers: Floats) -> Floats:
        """x + W M' λ."""


def _solve(space: _Space, noise: Floats, right: Floats) -> tuple[Floats, bool]:
    """λ with (M W M' + V) λ = right, in the sense of least squares where hard controls contradict each other.

    Conjugate residuals (Stiefel 1955) on the system scaled to a diagonal of ones. Redundant controls make it singular.
    A residual that the matrix maps to 0 changes no step, and M' maps what it adds to λ to 0 (regression.md).
    """
    diagonal = space.diagonal() + noise
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)

    def product(vector: Floats) -> Floats:
        unscaled = scale * vector
        result: Floats = scale * (space.product(unscaled) + noise * unscaled)
        return result

    target = scale * right
    solution = np.zeros_like(target)
    start = float(np.linalg.norm(product(target)))
    left = start
    for _ in range(RESTARTS):
        step = _conjugate_residuals(product, target - product(solution), CLOSE * float(np.linalg.norm(target)))
        new = float(np.linalg.norm(product(target - product(solution + step))))
        if not new < left:
            break
        solution, left = solution + step, new
    return scale * solution, left <= SOLVED * start


def _conjugate_residuals(product: Callable[[Floats], Floats], right: Floats, enough: float) -> Floats:
    """x with A x = right, or as near as can be, for a symmetric A without negative eigenvalues."""
    solution = np.zeros_like(right)
    residual, mapped = right, product(right)
    direction, image = residual, mapped
    energy = float(residual @ mapped)
    for _ in range(STEPS):
        size = float(np.linalg.norm(residual))
        if energy <= 0 or size <= enough or float(np.linalg.norm(mapped)) <= CLOSE * size:
            break
        along = energy / float(image @ image)
        solution = solution + along * direction
        residual = residual - along * image
        mapped = product(residual)
        before, energy = energy, float(residual @ mapped)
        direction = residual + energy / before * direction
        image = mapped + energy / before * image
    return solution


class _Dense:
    """Every cell with the same variance. M_i M_j' is a Kronecker product over the cube's axes of small matrices: how
    many codes lie in group g of i and in group h of j. So a product costs no more than the controls have cells."""

    def __init__(self, margins: Sequence[Margin], variance: float) -> None:
        self._variance = variance
        self._axes = [by_place(margin) for margin in margins]
        self._shape = margins[0].shape
        sizes = [margin.cells for margin in margins]
        starts = np.cumsum([0, *sizes[:-1]])
        numbers = [
            start + arranged(margin, np.arange(margin.cells, dtype=np.float64)).reshape(-1)
            for margin, start in zip(margins, starts, strict=True)
        ]
        self._order = np.concatenate(numbers).astype(np.int64)  # of the totals, if axes are in the cube's order
        self._splits = starts[1:]
        self._rows = _Rows.of(margins, starts)
        self._cells = sum(sizes)

    @cached_property
    def _overlaps(self) -> list[list[Overlap]]:
        return [[Overlap.of(self._shape, a, b) for b in self._axes] for a in self._axes]

    def add_up(self, values: Floats) -> Floats:
        sums = np.zeros(self._cells)
        _add_rows(values.reshape(-1), self._rows.heads, self._rows.tails, self._rows.flat, sums)
        return sums

    def product(self, multipliers: Floats) -> Floats:
        parts = np.split(multipliers[self._order], self._splits)
        tables = [part.reshape([axis.size for axis in axes]) for part, axes in zip(parts, self._axes, strict=True)]
        left: dict[tuple[int, tuple[int, ...]], Floats] = {}  # what each table is, added up to the axes that it shares
        found = [np.zeros_like(table) for table in tables]
        for i, row in enumerate(self._overlaps):
            for j, overlap in enumerate(row):
                if (j, overlap.shared) not in left:
                    left[j, overlap.shared] = overlap.added_up(tables[j])
                found[i] += overlap.spread(left[j, overlap.shared])
        result = np.empty_like(multipliers)
        result[self._order] = self._variance * np.concatenate([table.reshape(-1) for table in found])
        return result

    def diagonal(self) -> Floats:
        """How many cells of the cube each total adds up, times their variance."""
        result = np.empty(self._cells)
        own = [multiplied([counts(axis) for axis in axes]) * others(self._shape, axes) for axes in self._axes]
        result[self._order] = self._variance * np.concatenate([table.reshape(-1) for table in own])
        return result

    def spread(self, values: Floats, multipliers: Floats) -> Floats:
        found = np.array(values, np.float64, order="C")
        steps = self._variance * multipliers
        _spread_rows(found.reshape(-1), self._rows.heads, self._rows.tails, self._rows.flat, steps)
        return found


@dataclass(frozen=True, eq=False)
class _Rows:
    """The cube as rows of its last axes: cell (row, column) is added to total heads[j, row] + tails[j, column] of j."""

    heads: Ints
    tails: Ints
    flat: Flags  # whether a margin has one total for all of a row

    @classmethod
    def of(cls, margins: Sequence[Margin], starts: Ints) -> _Rows:
        shape, width = list(margins[0].shape), 1
        while shape and width < ROW:
            width *= shape.pop()
        rows, columns = np.arange(prod(shape)) * width, np.arange(width)
        heads = np.array([start + margin.parents(rows) for margin, start in zip(margins, starts, strict=True)])
        tails = np.array([margin.parents(columns) - margin.parents(columns[:1]) for margin in margins])
        return cls(heads, tails, np.logical_not(tails.any(axis=1)))


@compiled
def _add_rows(values: Floats, heads: Ints, tails: Ints, flat: Flags, sums: Floats) -> None:
    """All margins in one pass."""
    width = tails.shape[1]
    for row in range(heads.shape[1]):
        part = values[row * width : (row + 1) * width]
        whole = 0.0
        for value in part:
            whole += value
        for j in range(len(flat)):
            if flat[j]:
                sums[heads[j, row]] += whole
                continue
            for column in range(width):
                sums[heads[j, row] + tails[j, column]] += part[column]


@compiled
def _spread_rows(values: Floats, heads: Ints, tails: Ints, flat: Flags, steps: Floats) -> None:
    """Add to every cell the steps of the totals that it is part of, in place."""
    width = tails.shape[1]
    for row in range(heads.shape[1]):
        part = values[row * width : (row + 1) * width]
        whole = 0.0
        for j in range(len(flat)):
            if flat[j]:
                whole += steps[heads[j, row]]
                continue
            for column in range(width):
                part[column] += steps[heads[j, row] + tails[j, column]]
        for column in range(width):
            part[column] += whole


class _Sparse:
    """Some cells, each with a variance in proportion to its absolute value; the others are zero and stay so."""

    def __init__(self, margins: Sequence[Margin], values: Floats, variance: float, cells: Ints) -> None:
        size = np.abs(values)
        total = float(size.sum()) or 1.0
        self._weights = size * (variance * prod(margins[0].shape) / total)
        starts = np.cumsum([0, *(margin.cells for margin in margins)])
        self._parents = np.empty((len(margins), len(cells)), np.int64)
        for j, margin in enumerate(margins):
            self._parents[j] = starts[j] + margin.parents(cells)
        self._cells = int(starts[-1])

    def add_up(self, values: Floats) -> Floats:
        sums = np.zeros(self._cells)
        for parents in self._parents:
            sums += np.bincount(parents, weights=values, minlength=self._cells)
        return sums

    def product(self, multipliers: Floats) -> Floats:
        result = np.zeros_like(multipliers)
        _through_rows(self._parents, self._weights, multipliers, result)
        return result

    def diagonal(self) -> Floats:
        return self.add_up(self._weights)

    def spread(self, values: Floats, multipliers: Floats) -> Floats:
        found = np.array(values, np.float64, order="C")
        for parents in self._parents:
            found += self._weights * multipliers[parents]
        return found


@compiled
def _through_rows(parents: Ints, weights: Floats, multipliers: Floats, result: Floats) -> None:
    """M W M' λ, cell by cell."""
    for cell in range(len(weights)):
        step = 0.0
        for j in range(len(parents)):
            step += multipliers[parents[j, cell]]
        for j in range(len(parents)):
            result[parents[j, cell]] += weights[cell] * step


def _check(
    values: Floats,
    margins: Sequence[Margin],
    targets: Sequence[Floats],
    variances: Sequence[float],
    variance: float,
    cells: Ints | None,
) -> None:
    check(margins, targets)
    if len(variances) != len(margins) or not all(0 <= v < inf for v in variances) or not 0 < variance < inf:
        raise ParameterError("not one noise variance a control and one of the cube", where="variances", do="0 is exact")
    if not np.isfinite(values).all():
        raise ParameterError("a cell of the cube is not finite", where="values", do="give protected counts")
    if cells is not None and (values.shape != cells.shape or (np.diff(cells) <= 0).any()):
        raise ParameterError("not one value a cell, or cells not ascending", where="cells", do="sort them")
    for margin in margins[:1]:
        size = prod(margin.shape)
        if cells is None and values.size != size:
            raise ParameterError("not one value a cell", where="values", do="give the whole cube, or its cells")
        if cells is not None and cells.size and not 0 <= cells[0] <= cells[-1] < size:
            raise ParameterError("a cell outside the cube", where="cells", do="number them, first axis first")
