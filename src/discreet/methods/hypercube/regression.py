"""Calibration of a perturbed cube by generalised least squares (Aitken 1935). Proof: regression.md.

The cube is x̃ = x + noise of variance σ² in every cell; control j has totals t_j = M_j x + noise of variance v_j, 0 if
exact or public. The best linear unbiased cube minimises ‖y − x̃‖²/σ² + Σ_j ‖M_j y − t_j‖²/v_j, with M_j y = t_j if
v_j = 0. It is y = x̃ + σ² M'λ with (σ² M M' + V) λ = t − M x̃, where M stacks all controls: one unknown per total.
Raking (Li & Krenzke 2020, §3.3) treats noisy totals as exact, and may not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod

import numpy as np

from discreet.arrays import Flags, Int64s
from discreet.errors import ParameterError
from discreet.methods.hypercube.control_feasibility import check, inconsistent_pairs
from discreet.noise.jit import compiled
from discreet.post.cubes.margins import Floats, Margin, Problem
from discreet.post.cubes.overlap import Overlap, arrange, by_place, group_sizes, other_combinations, outer_product
from discreet.post.cubes.variance import KnownMargin, Perturbation, by_effects
from discreet.post.portable import inner, norm

MET = 1e-10  # relative to the largest total: gap up to which a hard control needs no second solve
AGREED = 1e-6  # relative to the largest total: public totals that differ by less are consistent
EPSILON = float(np.finfo(np.float64).eps)
CLOSE = 1e-14  # relative residual at which the iteration stops
SOLVED = 1e-10  # relative residual up to which the normal equations count as solved
RESTARTS = 4  # each from the true residual, which removes accumulated rounding errors
STEPS = 2000  # per start; reached only by controls by groups with noise of very different sizes
CLOSED = 2**26  # sums, at most, for the closed form
ROW = 512  # cells of the cube per row, at least


@dataclass(frozen=True, eq=False)
class FittedCube:
    """A calibrated cube, in the order of the input, and the steps that were added to its cells.

    `steps` has an array for each control: every cell of the cube changes by the sum of the steps of its totals. In a
    sparse cube all cells change, so its `values` are those of the input and users add the steps.
    """

    values: Floats
    steps: tuple[Floats, ...]
    largest_gap: float  # over the hard controls
    converged: bool  # the equations are solved and the hard controls are met
    problems: tuple[Problem, ...]  # otherwise the reasons


def fit(
    values: Floats,
    margins: Sequence[Margin],
    targets: Sequence[Floats],
    variances: Sequence[float],
    *,
    variance: float,
    cells: Int64s | None = None,
) -> FittedCube:
    """The generalised least-squares estimate y of the cube from the perturbed cube and its controls.

    `variance` is σ², the noise variance of every cell of the cube. With `cells` the values are of these cells, and 0 in
    all others.
    """
    _check(values, margins, targets, variances, variance, cells)
    if not margins:
        return FittedCube(np.array(values, np.float64, order="C"), (), 0.0, True, ())
    space, totals = _Space(margins), np.concatenate(targets)
    noise = np.repeat(np.array(variances, np.float64), [margin.cells for margin in margins])
    missing = totals - space.add_up(values, cells)
    steps, solved = _steps(space, variances, variance, missing)
    hard, scale = noise == 0, max(1.0, float(np.abs(totals[noise == 0]).max(initial=0.0)))
    rounding = 4 * EPSILON * float(np.abs(values).sum())
    left = missing - space.product(steps)
    if hard.any() and not hard.all() and np.abs(left[hard]).max() > MET * scale + rounding:
        # Noise of very different sizes leaves rounding errors in hard totals: these are met once more, alone.
        exact = [margin for margin, v in zip(margins, variances, strict=True) if v == 0]
        more, met = _steps(_Space(exact), [0.0] * len(exact), variance, left[hard])
        steps[hard] += more
        solved &= met
    fitted = values if cells is not None else space.spread(values, steps)
    left = missing - space.product(steps) if cells is not None else totals - space.add_up(fitted, None)
    gaps = np.where(hard, np.abs(left), 0.0)
    missed = np.where(gaps > AGREED * scale + rounding, gaps, 0.0)
    problems = _problems(margins, targets, missed, missed * (space.diagonal() == 0), solved) if missed.any() else []
    parts = tuple(np.split(steps, space.splits))
    return FittedCube(fitted, parts, float(gaps.max(initial=0.0)), solved and not missed.any(), tuple(problems))


def _steps(space: _Space, variances: Sequence[float], variance: float, missing: Floats) -> tuple[Floats, bool]:
    """σ²λ from t − M x̃, in closed form where available; and whether the equations are solved."""
    known = _known(space.margins, variances, variance)
    if known is not None:
        return by_effects(known, missing), True
    noise = np.repeat(np.array(variances, np.float64), [margin.cells for margin in space.margins])
    multipliers, solved = _solve(space, variance, noise, missing)
    return variance * multipliers, solved


def _known(margins: Sequence[Margin], variances: Sequence[float], variance: float) -> Perturbation | None:
    """The controls, if all are by ungrouped axes and not too many: then there is a closed form."""
    if any(not np.array_equal(axis.groups, np.arange(axis.size)) for margin in margins for axis in margin.axes):
        return None
    places = [margin.places for margin in margins]
    sums = sum(2 ** len(p) * (margin.cells + 2**10) for p, margin in zip(places, margins, strict=True))
    if sums > CLOSED or any(len(set(p)) < len(p) for p in places):
        return None
    return Perturbation(margins[0].shape, variance, tuple(map(KnownMargin, places, variances)))


def _problems(
    margins: Sequence[Margin], targets: Sequence[Floats], missed: Floats, unreachable: Floats, solved: bool
) -> list[Problem]:
    """Totals of no cells, and inconsistent pairs of hard controls; otherwise every control that is missed."""
    nothing = _worst(margins, unreachable, "no cells", "no cell of the cube belongs to it")
    pairs = inconsistent_pairs(margins, targets, AGREED)
    if nothing or pairs:
        return nothing + pairs
    if not solved:
        return _worst(margins, missed, "not met", "the iteration stopped before")
    return _worst(margins, missed, "inconsistent", "it cannot be met together with the others")


def _worst(margins: Sequence[Margin], missed: Floats, kind: str, why: str) -> list[Problem]:
    """The total with the largest gap of each margin that has one."""
    parts = np.split(missed, np.cumsum([margin.cells for margin in margins])[:-1])
    return [
        Problem(kind, margin.name, int(np.argmax(part)), f"missed by {part.max():.6g}: {why}")
        for margin, part in zip(margins, parts, strict=True)
        if part.any()
    ]


def _solve(space: _Space, variance: float, noise: Floats, right: Floats) -> tuple[Floats, bool]:
    """λ with (σ² M M' + V) λ = right, in the least-squares sense where hard controls are inconsistent.

    Conjugate residuals (Stiefel 1955) on the system scaled to a diagonal of ones. Redundant controls make it singular.
    The null-space part of the residual changes no step, and M' maps its contribution to λ to 0 (regression.md).
    """
    diagonal = variance * space.diagonal() + noise
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)

    def product(vector: Floats) -> Floats:
        unscaled = scale * vector
        result: Floats = scale * (variance * space.product(unscaled) + noise * unscaled)
        return result

    target = scale * right
    solution = np.zeros_like(target)
    start = norm(product(target))
    left = start
    for _ in range(RESTARTS):
        step = _conjugate_residuals(product, target - product(solution), CLOSE * norm(target))
        new = norm(product(target - product(solution + step)))
        if not new < left:
            break
        solution, left = solution + step, new
    return scale * solution, left <= SOLVED * start


def _conjugate_residuals(product: Callable[[Floats], Floats], right: Floats, enough: float) -> Floats:
    """x with A x = right, in the least-squares sense, for a symmetric positive semidefinite A."""
    solution = np.zeros_like(right)
    residual, mapped = right, product(right)
    direction, image = residual, mapped
    energy = inner(residual, mapped)
    for _ in range(STEPS):
        size = norm(residual)
        if energy <= 0 or size <= enough or norm(mapped) <= CLOSE * size:
            break
        along = energy / inner(image, image)
        solution = solution + along * direction
        residual = residual - along * image
        mapped = product(residual)
        before, energy = energy, inner(residual, mapped)
        direction = residual + energy / before * direction
        image = mapped + energy / before * image
    return solution


class _Space:
    """Linear maps between a cube and its controls. M_i M_j' is a Kronecker product over the cube's axes of small
    matrices, the numbers of codes in group g of i and group h of j. So a product costs no more than the controls have
    cells."""

    def __init__(self, margins: Sequence[Margin]) -> None:
        self.margins = margins
        self._axes = [by_place(margin) for margin in margins]
        self._shape = margins[0].shape
        sizes = [margin.cells for margin in margins]
        self._starts = np.cumsum([0, *sizes[:-1]])
        numbers = [
            start + arrange(margin, np.arange(margin.cells, dtype=np.float64)).reshape(-1)
            for margin, start in zip(margins, self._starts, strict=True)
        ]
        self._order = np.concatenate(numbers).astype(np.int64)  # of the totals, with axes in the cube's order
        self.splits = self._starts[1:]
        self._cells = sum(sizes)

    @cached_property
    def _rows(self) -> _RowLayout:
        return _RowLayout.of(self.margins, self._starts)

    @cached_property
    def _overlaps(self) -> list[list[Overlap]]:
        return [[Overlap.of(self._shape, a, b) for b in self._axes] for a in self._axes]

    def add_up(self, values: Floats, cells: Int64s | None) -> Floats:
        """M x: all margins, concatenated."""
        if cells is not None:
            return np.concatenate([margin.add_up(values, cells) for margin in self.margins])
        sums = np.zeros(self._cells)
        _add_rows(values.reshape(-1), self._rows.heads, self._rows.tails, self._rows.flat, sums)
        return sums

    def product(self, steps: Floats) -> Floats:
        """M M' s."""
        parts = np.split(steps[self._order], self.splits)
        tables = [part.reshape([axis.size for axis in axes]) for part, axes in zip(parts, self._axes, strict=True)]
        left: dict[tuple[int, tuple[int, ...]], Floats] = {}  # each table summed over the axes that it does not share
        products = [np.zeros_like(table) for table in tables]
        for i, row in enumerate(self._overlaps):
            for j, overlap in enumerate(row):
                if (j, overlap.shared) not in left:
                    left[j, overlap.shared] = overlap.added_up(tables[j])
                products[i] += overlap.spread(left[j, overlap.shared])
        result = np.empty_like(steps)
        result[self._order] = np.concatenate([table.reshape(-1) for table in products])
        return result

    def diagonal(self) -> Floats:
        """The number of cells of the cube in each total."""
        result = np.empty(self._cells)
        own = [
            outer_product([group_sizes(axis) for axis in axes]) * other_combinations(self._shape, axes)
            for axes in self._axes
        ]
        result[self._order] = np.concatenate([table.reshape(-1) for table in own])
        return result

    def spread(self, values: Floats, steps: Floats) -> Floats:
        """x + M' s."""
        moved = np.array(values, np.float64, order="C")
        _spread_rows(moved.reshape(-1), self._rows.heads, self._rows.tails, self._rows.flat, steps)
        return moved


@dataclass(frozen=True, eq=False)
class _RowLayout:
    """The cube as rows of its last axes: cell (row, column) belongs to total heads[j, row] + tails[j, column] of
    control j."""

    heads: Int64s
    tails: Int64s
    flat: Flags  # whether a margin has one total for all of a row

    @classmethod
    def of(cls, margins: Sequence[Margin], starts: Int64s) -> _RowLayout:
        shape, width = list(margins[0].shape), 1
        while shape and width < ROW:
            width *= shape.pop()
        rows, columns = np.arange(prod(shape)) * width, np.arange(width)
        heads = np.array([start + margin.parents(rows) for margin, start in zip(margins, starts, strict=True)])
        tails = np.array([margin.parents(columns) - margin.parents(columns[:1]) for margin in margins])
        return cls(heads, tails, np.logical_not(tails.any(axis=1)))


@compiled
def _add_rows(values: Floats, heads: Int64s, tails: Int64s, flat: Flags, sums: Floats) -> None:
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
def _spread_rows(values: Floats, heads: Int64s, tails: Int64s, flat: Flags, steps: Floats) -> None:
    """Adds the steps of its totals to every cell, in place."""
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


def _check(
    values: Floats,
    margins: Sequence[Margin],
    targets: Sequence[Floats],
    variances: Sequence[float],
    variance: float,
    cells: Int64s | None,
) -> None:
    check(margins, targets)
    if len(variances) != len(margins) or not all(0 <= v < inf for v in variances) or not 0 < variance < inf:
        raise ParameterError(
            "expected one noise variance per control, and a positive one of the cube",
            where="variances",
            do="pass 0 for exact controls",
        )
    if not np.isfinite(values).all():
        raise ParameterError("a cell of the cube is not finite", where="values", do="pass protected counts")
    if cells is not None and (values.shape != cells.shape or (np.diff(cells) <= 0).any()):
        raise ParameterError(
            "expected one value per cell, with cells in ascending order", where="cells", do="sort them"
        )
    for margin in margins[:1]:
        size = prod(margin.shape)
        if cells is None and values.size != size:
            raise ParameterError(
                "expected one value per cell", where="values", do="pass the whole cube, or its `cells`"
            )
        if cells is not None and cells.size and not 0 <= cells[0] <= cells[-1] < size:
            raise ParameterError(
                "a cell number is outside the cube", where="cells", do="number cells in order, first axis first"
            )
