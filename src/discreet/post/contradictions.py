"""Control totals that cannot all be met: found from the totals alone, before anything is spent. Proof: regression.md.

Two tables of one cube agree on every sum that both of them know. Where they do not, no cube has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.post.margins import Axis, Floats, Margin, Problem


def contradictions(margins: Sequence[Margin], targets: Sequence[Floats], tolerance: float) -> list[Problem]:
    """What is wrong with hard controls: totals that no table of counts has, totals of no cells, pairs that disagree."""
    check(margins, targets)
    controls = list(zip(margins, targets, strict=True))
    signs = [found for margin, totals in controls if (found := _sign(margin, totals))]
    empty = [found for margin, totals in controls if (found := _empty(margin, totals, tolerance))]
    return signs + empty + disagreements(margins, targets, tolerance)


def disagreements(margins: Sequence[Margin], targets: Sequence[Floats], tolerance: float) -> list[Problem]:
    """Pairs of margins with different sums over what both have in common: one problem a pair, at the largest
    difference. Sums a and b agree if |a − b| ≤ tolerance·max(1, |a|, |b|)."""
    pairs = combinations(zip(margins, targets, strict=True), 2)
    return [found for a, b in pairs if (found := _pair(*a, *b, tolerance))]


def check(margins: Sequence[Margin], targets: Sequence[Floats]) -> None:
    """One finite total for each cell of each margin, all of one cube."""
    if len(margins) != len(targets) or len({margin.shape for margin in margins}) > 1:
        raise ParameterError("not one set of totals a margin, of one cube", where="controls", do="give each its totals")
    for margin, totals in zip(margins, targets, strict=True):
        if totals.shape != (margin.cells,) or not np.isfinite(totals).all():
            raise ParameterError(
                "not one finite total a cell", where=f"control {margin.name}", do="number its cells, first axis first"
            )


def by_place(margin: Margin) -> list[Axis]:
    """One axis for each of the cube's axes that the margin has, in its order. Two axes made of one are crossed."""
    return [reduce(_crossed, [margin.axes[i] for i in numbers]) for numbers in _places(margin)]


def arranged(margin: Margin, totals: Floats) -> Floats:
    """A margin's totals, with the axes of `by_place`."""
    order = [i for numbers in _places(margin) for i in numbers]
    table: Floats = totals.reshape(margin.sizes).transpose(order)
    return table.reshape([axis.size for axis in by_place(margin)])


def counts(axis: Axis) -> Numbers:
    """How many codes each group has."""
    return np.bincount(axis.groups, minlength=axis.size)


@dataclass(frozen=True, eq=False)
class Overlap:
    """M_i M_j' of two margins with axes in the cube's order."""

    shared: tuple[int, ...]  # the cube's axes that both have
    lost: tuple[tuple[int, Floats], ...]  # axes of j alone: added up, each group as often as it has codes
    kept: tuple[Floats, ...]  # axes of both: a diagonal, or the matrix of codes in both groups
    shape: tuple[int, ...]  # what is left, beside the axes of i alone
    weight: Floats  # of the axes of i alone, and of those of neither

    @classmethod
    def of(cls, shape: tuple[int, ...], a: Sequence[Axis], b: Sequence[Axis]) -> Overlap:
        of_a, of_b = {axis.place: axis for axis in a}, {axis.place: axis for axis in b}
        lost = [(i, counts(axis).astype(np.float64)) for i, axis in enumerate(b) if axis.place not in of_a]
        kept = [_both(axis, of_b[axis.place]) for axis in a if axis.place in of_b]
        alone = [counts(axis) if axis.place not in of_b else np.ones(1) for axis in a]
        left = tuple(axis.size if axis.place in of_b else 1 for axis in a)
        shared = tuple(place for place in of_a if place in of_b)
        return cls(shared, tuple(lost[::-1]), tuple(kept), left, multiplied(alone) * others(shape, [*a, *b]))

    def added_up(self, table: Floats) -> Floats:
        """A table of j, without the axes that i lacks."""
        for i, times in self.lost:
            table = np.tensordot(table, times, (i, 0))
        return table

    def spread(self, table: Floats) -> Floats:
        """From the axes that both have to those of i."""
        for i, factor in enumerate(self.kept):
            if factor.ndim == 1:
                table = table * factor.reshape([-1 if i == k else 1 for k in range(table.ndim)])
            else:
                table = np.moveaxis(np.tensordot(factor, table, (1, i)), 0, i)
        result: Floats = self.weight * table.reshape(self.shape)
        return result


def _both(a: Axis, b: Axis) -> Floats:
    if np.array_equal(a.groups, b.groups) and a.size == b.size:
        return counts(a).astype(np.float64)
    matrix = np.zeros((a.size, b.size))
    np.add.at(matrix, (a.groups, b.groups), 1.0)
    return matrix


def multiplied(vectors: Sequence[NDArray[np.generic]]) -> Floats:
    """The outer product."""
    table: Floats = reduce(np.multiply.outer, vectors, np.ones(()))
    return table


def others(shape: tuple[int, ...], axes: Sequence[Axis]) -> int:
    """How many combinations of codes the axes have that are not among these."""
    return prod(size for place, size in enumerate(shape) if place not in {axis.place for axis in axes})


def _places(margin: Margin) -> list[list[int]]:
    """The margin's own numbers of the axes made of each of the cube's axes, in the cube's order."""
    found: dict[int, list[int]] = {}
    for i, axis in sorted(enumerate(margin.axes), key=lambda numbered: numbered[1].place):
        found.setdefault(axis.place, []).append(i)
    return list(found.values())


def _crossed(a: Axis, b: Axis) -> Axis:
    return Axis(a.place, a.groups * b.size + b.groups, a.size * b.size)


def _sign(margin: Margin, totals: Floats) -> Problem | None:
    """Totals of counts are not negative, and not all zero."""
    least = int(np.argmin(totals))
    if totals[least] < 0:
        detail = f"the total is {totals[least]:.12g}, and no total of counts is negative"
        return Problem("target not positive", margin.name, least, detail)
    if not totals.any():
        return Problem("target not positive", margin.name, 0, "every total is 0")
    return None


def _empty(margin: Margin, totals: Floats, tolerance: float) -> Problem | None:
    """A total other than 0 where no code of the cube belongs to the cell."""
    without = multiplied([counts(axis) for axis in by_place(margin)]) == 0
    numbers = arranged(margin, np.arange(margin.cells, dtype=np.float64))
    missed = np.where(without, np.abs(arranged(margin, totals)), 0.0).reshape(-1)
    if missed.max() <= tolerance:
        return None
    cell = int(numbers.reshape(-1)[np.argmax(missed)])
    return Problem("no cells", margin.name, cell, f"the total is {totals[cell]:.12g}, and no cell of the cube is in it")


def _pair(a: Margin, first: Floats, b: Margin, second: Floats, tolerance: float) -> Problem | None:
    """Compare two tables on the finest table that both of them add up to."""
    shared = sorted({axis.place for axis in a.axes} & {axis.place for axis in b.axes})
    of_a, of_b = ({axis.place: axis for axis in by_place(margin)} for margin in (a, b))
    merged = {place: _components(of_a[place], of_b[place]) for place in shared}
    sums_a = _summed(a, first, {place: (labels, n) for place, (labels, _, n) in merged.items()})
    sums_b = _summed(b, second, {place: (labels, n) for place, (_, labels, n) in merged.items()})
    apart = np.abs(sums_a - sums_b)
    excess = apart - tolerance * np.maximum(1.0, np.maximum(np.abs(sums_a), np.abs(sums_b)))
    if excess.max() <= 0:
        return None
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    where = "in all" if not shared else f"over axes {', '.join(map(str, shared))}"
    detail = f"{where} its cells add up to {sums_a[worst]:.12g}, those of {b.name} to {sums_b[worst]:.12g}"
    if (more := int((excess > 0).sum()) - 1) > 0:
        detail += f"; {more} more sums differ"
    return Problem("contradiction", a.name, _first_cell(a, merged, dict(zip(shared, worst, strict=True))), detail)


def _components(a: Axis, b: Axis) -> tuple[Numbers, Numbers, int]:
    """The finest groups that both groupings of one axis add up to: connected components, two groups being linked by a
    code in both. For each grouping the component of every group (−1 without codes), and how many there are."""
    label = np.arange(a.size)
    while True:  # every code takes the smallest label of its groups, until nothing changes
        other = np.full(b.size, a.size)
        np.minimum.at(other, b.groups, label[a.groups])
        found = label.copy()
        np.minimum.at(found, a.groups, other[b.groups])
        if np.array_equal(found, label):
            break
        label = found
    names, numbers = np.unique(label[a.groups], return_inverse=True)
    of_a, of_b = np.full(a.size, -1), np.full(b.size, -1)
    of_a[a.groups] = numbers
    of_b[b.groups] = numbers
    return of_a, of_b, len(names)


def _summed(margin: Margin, totals: Floats, kept: dict[int, tuple[Numbers, int]]) -> Floats:
    """Totals added up over all axes but these, and by labels of their groups. Groups without codes are left out."""
    table = arranged(margin, totals)
    for i, axis in reversed(list(enumerate(by_place(margin)))):
        labels, size = kept.get(axis.place, (np.zeros(axis.size, np.int64), 1))
        used = (labels >= 0) & (counts(axis) > 0)
        added = np.zeros((size, *np.delete(table.shape, i)))
        np.add.at(added, labels[used], np.moveaxis(table, i, 0)[used])
        table = np.moveaxis(added, 0, i)
    return table.reshape([size for _, size in kept.values()])


def _first_cell(margin: Margin, merged: dict[int, tuple[Numbers, Numbers, int]], at: dict[int, np.intp]) -> int:
    """The smallest cell of a margin that belongs to a common sum."""
    numbers: NDArray[np.float64] = arranged(margin, np.arange(margin.cells, dtype=np.float64))
    for i, axis in enumerate(by_place(margin)):
        chosen = merged[axis.place][0] == at[axis.place] if axis.place in at else counts(axis) > 0
        numbers = np.compress(chosen, numbers, axis=i)
    return int(numbers.min())
