"""Two tables of one cube: how many of the cube's cells each cell of one shares with each cell of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.post.cubes.margins import Axis, Floats, Margin


def carried(steps: Floats, control: Margin, query: Margin) -> Floats:
    """What steps of a control, each added to every cell of the cube in its total, add to the sums of a query."""
    axes = by_place(query)
    overlap = Overlap.of(query.shape, axes, by_place(control))
    found = np.empty(query.cells)
    numbers = arranged(query, np.arange(query.cells, dtype=np.float64)).astype(np.int64)
    table = overlap.spread(overlap.added_up(arranged(control, steps)))
    found[numbers.reshape(-1)] = np.broadcast_to(table, numbers.shape).reshape(-1)
    return found


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
class Pairs:
    """The groups of two axes that share codes: sums of a table by the second one's, as the first one has them."""

    size: int  # of the first axis
    ours: Numbers  # its group, of each pair,
    theirs: Numbers  # and the other's,
    codes: Floats  # and how many they share

    def added_up(self, table: Floats, axis: int) -> Floats:
        """A table with the first axis in place of the second one."""
        before, after = table.shape[:axis], table.shape[axis + 1 :]
        found = np.zeros((prod(before), self.size, prod(after)))
        given = np.ascontiguousarray(table).reshape(len(found), -1, found.shape[2])
        # One after the other: the order, and so the last bit, is the same on any processor.
        for ours, theirs, codes in zip(
            self.ours, self.theirs, self.codes, strict=True
        ):  # in this order on any processor
            found[:, ours] += codes * given[:, theirs]
        return found.reshape((*before, self.size, *after))


@dataclass(frozen=True, eq=False)
class Overlap:
    """M_i M_j' of two margins with axes in the cube's order."""

    shared: tuple[int, ...]  # the cube's axes that both have
    lost: tuple[tuple[int, Pairs], ...]  # axes of j alone: added up, each group as often as it has codes
    kept: tuple[Floats | Pairs, ...]  # axes of both: a diagonal, or which groups share codes
    shape: tuple[int, ...]  # what is left, beside the axes of i alone
    weight: Floats  # of the axes of i alone, and of those of neither

    @classmethod
    def of(cls, shape: tuple[int, ...], a: Sequence[Axis], b: Sequence[Axis]) -> Overlap:
        of_a, of_b = {axis.place: axis for axis in a}, {axis.place: axis for axis in b}
        lost = [(i, _together(axis)) for i, axis in enumerate(b) if axis.place not in of_a]
        kept = [_both(axis, of_b[axis.place]) for axis in a if axis.place in of_b]
        alone = [counts(axis) if axis.place not in of_b else np.ones(1) for axis in a]
        left = tuple(axis.size if axis.place in of_b else 1 for axis in a)
        shared = tuple(place for place in of_a if place in of_b)
        return cls(shared, tuple(lost[::-1]), tuple(kept), left, multiplied(alone) * others(shape, [*a, *b]))

    def added_up(self, table: Floats) -> Floats:
        """A table of j, without the axes that i lacks."""
        for i, times in self.lost:
            table = times.added_up(table, i).squeeze(i)
        return table

    def spread(self, table: Floats) -> Floats:
        """From the axes that both have to those of i."""
        for i, factor in enumerate(self.kept):
            if isinstance(factor, Pairs):
                table = factor.added_up(table, i)
            else:
                table = table * factor.reshape([-1 if i == k else 1 for k in range(table.ndim)])
        result: Floats = self.weight * table.reshape(self.shape)
        return result


def _both(a: Axis, b: Axis) -> Floats | Pairs:
    if np.array_equal(a.groups, b.groups) and a.size == b.size:
        return counts(a).astype(np.float64)
    pairs, codes = np.unique(a.groups * b.size + b.groups, return_counts=True)
    return Pairs(a.size, pairs // b.size, pairs % b.size, codes.astype(np.float64))


def _together(axis: Axis) -> Pairs:
    """All groups as one."""
    return Pairs(1, np.zeros(axis.size, np.int64), np.arange(axis.size), counts(axis).astype(np.float64))


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
