"""The overlap matrix of two margins of one cube: the number of the cube's cells that cells of both have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.post.cubes.margins import Axis, Floats, Margin


def carry_steps(steps: Floats, control: Margin, query: Margin) -> Floats:
    """The change of a query's sums if each step of a control is added to every cell of the cube in its total."""
    axes = by_place(query)
    overlap = Overlap.of(query.shape, axes, by_place(control))
    sums = np.empty(query.cells)
    numbers = arrange(query, np.arange(query.cells, dtype=np.float64)).astype(np.int64)
    table = overlap.spread(overlap.added_up(arrange(control, steps)))
    sums[numbers.reshape(-1)] = np.broadcast_to(table, numbers.shape).reshape(-1)
    return sums


def by_place(margin: Margin) -> list[Axis]:
    """One axis for each of the cube's axes that the margin has, in the cube's order. Two groupings of one axis are
    crossed."""
    return [reduce(_crossed, [margin.axes[i] for i in numbers]) for numbers in _places(margin)]


def arrange(margin: Margin, totals: Floats) -> Floats:
    """A margin's totals as an array with the axes of `by_place`."""
    order = [i for numbers in _places(margin) for i in numbers]
    table: Floats = totals.reshape(margin.sizes).transpose(order)
    return table.reshape([axis.size for axis in by_place(margin)])


def group_sizes(axis: Axis) -> Numbers:
    """The number of codes in each group."""
    return np.bincount(axis.groups, minlength=axis.size)


@dataclass(frozen=True, eq=False)
class GroupPairs:
    """Pairs of groups of two axes that share codes: maps a table by the second axis to the first."""

    size: int  # of the first axis
    ours: Numbers  # the group of the first axis in each pair,
    theirs: Numbers  # that of the second axis,
    codes: Floats  # and the number of codes that they share

    def added_up(self, table: Floats, axis: int) -> Floats:
        """A table with the first axis in place of the second one."""
        before, after = table.shape[:axis], table.shape[axis + 1 :]
        mapped = np.zeros((prod(before), self.size, prod(after)))
        given = np.ascontiguousarray(table).reshape(len(mapped), -1, mapped.shape[2])
        # One after the other: the order, and so the last bit, is the same on any processor.
        for ours, theirs, codes in zip(self.ours, self.theirs, self.codes, strict=True):
            mapped[:, ours] += codes * given[:, theirs]
        return mapped.reshape((*before, self.size, *after))


@dataclass(frozen=True, eq=False)
class Overlap:
    """M_i M_j' of two margins with axes in the cube's order."""

    shared: tuple[int, ...]  # the cube's axes that both have
    summed_out: tuple[
        tuple[int, GroupPairs], ...
    ]  # axes of j alone: summed, each group weighted by its number of codes
    common: tuple[Floats | GroupPairs, ...]  # axes of both: a diagonal, or pairs of groups that share codes
    shape: tuple[int, ...]  # sizes of the axes of both, 1 for the axes of i alone
    weight: Floats  # of the axes of i alone, and of those of neither

    @classmethod
    def of(cls, shape: tuple[int, ...], a: Sequence[Axis], b: Sequence[Axis]) -> Overlap:
        of_a, of_b = {axis.place: axis for axis in a}, {axis.place: axis for axis in b}
        summed_out = [(i, _together(axis)) for i, axis in enumerate(b) if axis.place not in of_a]
        common = [_both(axis, of_b[axis.place]) for axis in a if axis.place in of_b]
        alone = [group_sizes(axis) if axis.place not in of_b else np.ones(1) for axis in a]
        left = tuple(axis.size if axis.place in of_b else 1 for axis in a)
        shared = tuple(place for place in of_a if place in of_b)
        return cls(
            shared,
            tuple(summed_out[::-1]),
            tuple(common),
            left,
            outer_product(alone) * other_combinations(shape, [*a, *b]),
        )

    def added_up(self, table: Floats) -> Floats:
        """A table of j, summed over the axes that i lacks."""
        for i, times in self.summed_out:
            table = times.added_up(table, i).squeeze(i)
        return table

    def spread(self, table: Floats) -> Floats:
        """Maps a table by the shared axes to the axes of i."""
        for i, factor in enumerate(self.common):
            if isinstance(factor, GroupPairs):
                table = factor.added_up(table, i)
            else:
                table = table * factor.reshape([-1 if i == k else 1 for k in range(table.ndim)])
        result: Floats = self.weight * table.reshape(self.shape)
        return result


def _both(a: Axis, b: Axis) -> Floats | GroupPairs:
    if np.array_equal(a.groups, b.groups) and a.size == b.size:
        return group_sizes(a).astype(np.float64)
    pairs, codes = np.unique(a.groups * b.size + b.groups, return_counts=True)
    return GroupPairs(a.size, pairs // b.size, pairs % b.size, codes.astype(np.float64))


def _together(axis: Axis) -> GroupPairs:
    """All groups merged into one."""
    return GroupPairs(1, np.zeros(axis.size, np.int64), np.arange(axis.size), group_sizes(axis).astype(np.float64))


def outer_product(vectors: Sequence[NDArray[np.generic]]) -> Floats:
    """The outer product."""
    table: Floats = reduce(np.multiply.outer, vectors, np.ones(()))
    return table


def other_combinations(shape: tuple[int, ...], axes: Sequence[Axis]) -> int:
    """The number of combinations of codes of the cube's other axes."""
    return prod(size for place, size in enumerate(shape) if place not in {axis.place for axis in axes})


def _places(margin: Margin) -> list[list[int]]:
    """The positions of the margin's axes for each of the cube's axes, in the cube's order."""
    positions: dict[int, list[int]] = {}
    for i, axis in sorted(enumerate(margin.axes), key=lambda numbered: numbered[1].place):
        positions.setdefault(axis.place, []).append(i)
    return list(positions.values())


def _crossed(a: Axis, b: Axis) -> Axis:
    return Axis(a.place, a.groups * b.size + b.groups, a.size * b.size)
