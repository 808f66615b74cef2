"""Margins (lower-dimensional tables) of a cube: the cell of the margin to which each cell of the cube belongs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Coarsening, Numbers

Floats = NDArray[np.float64]
_CHUNK = 1 << 20  # cells at a time


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a margin: an axis of the cube, and the group of each of its codes. A margin by the codes themselves
    has the groups 0, 1, 2, …"""

    place: int
    groups: Numbers
    size: int  # number of groups

    @property
    def ungrouped(self) -> bool:
        """Whether every code is a group of its own."""
        return self.size == len(self.groups) == len(np.unique(self.groups))


@dataclass(frozen=True, eq=False)
class Margin:
    """A table of sums of a cube's cells; its own cells are numbered with the first axis most significant."""

    name: str
    shape: tuple[int, ...]  # of the cube
    axes: tuple[Axis, ...]

    @classmethod
    def over(cls, shape: Sequence[int], places: Sequence[int], name: str = "") -> Margin:
        """The margin by some of the cube's own axes."""
        axes = (Axis(place, np.arange(shape[place], dtype=np.int64), shape[place]) for place in places)
        return cls(name or "×".join(map(str, places)), tuple(shape), tuple(axes))

    @classmethod
    def of(cls, cells: Coarsening, name: str) -> Margin:
        """The margin by the attributes of a coarser domain."""
        strides = cells.coarse.strides
        sizes = cells.coarse.shape
        axes = (
            Axis(place, share // stride, size)
            for (place, share), stride, size in zip(cells.steps, strides, sizes, strict=True)
        )
        return cls(name, cells.fine.shape, tuple(axes))

    @property
    def places(self) -> tuple[int, ...]:
        """The axes of the cube that it is by."""
        return tuple(axis.place for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        return prod(self.sizes)

    @property
    def ungrouped(self) -> bool:
        """Whether it is by the cube's own codes, not by groups."""
        return all(axis.ungrouped for axis in self.axes)

    def steps(self) -> list[tuple[int, Numbers]]:
        """For each axis the cube's axis, and the contribution of each of its codes to the margin's cell number."""
        strides = [prod(self.sizes[i + 1 :]) for i in range(len(self.axes))]
        return [(axis.place, axis.groups * stride) for axis, stride in zip(self.axes, strides, strict=True)]

    def parents(self, cells: Numbers) -> Numbers:
        """The margin's cell of each of these cells of the cube."""
        parents = np.zeros(len(cells), np.int64)
        for place, share in self.steps():
            stride = prod(self.shape[place + 1 :])
            parents += share[cells // stride % self.shape[place]]
        return parents

    def add_up(self, values: Floats, cells: Numbers | None = None) -> Floats:
        """The sums of a cube's values: of all cells, or of `cells` with zeros elsewhere."""
        sums = np.zeros(self.cells)
        flat = values.reshape(-1)
        for first in range(0, len(flat), _CHUNK):
            part = flat[first : first + _CHUNK]
            numbers = np.arange(first, first + len(part)) if cells is None else cells[first : first + _CHUNK]
            sums += np.bincount(self.parents(numbers), weights=part, minlength=self.cells)
        return sums


def marginalise(cube: Floats, places: Collection[int]) -> Floats:
    """A cube summed over all axes but these, in the cube's order.

    Runs of adjacent axes are summed at once, the first run first, row by row.
    """
    sizes = [n if place in places else -n for place, n in enumerate(cube.shape)]
    runs = [(keep, prod(map(abs, run))) for keep, run in groupby(sizes, key=lambda n: n > 0)]
    table, before = cube.reshape(-1), 1
    for place, (keep, size) in enumerate(runs):
        after = prod(n for _, n in runs[place + 1 :])
        if keep:
            before *= size
        elif before == 1:
            table = table.reshape(size, after).sum(axis=0)
        elif size > 1:
            table = np.einsum("bsa->ba", table.reshape(before, size, after))  # of one operand: no BLAS, and fast
    return table.reshape([n for n in sizes if n > 0])


def combination(n: int, k: int, rank: int) -> tuple[int, ...]:
    """The combination of k of n numbers with this rank in lexicographic order, without enumerating those before it.

    >>> [combination(3, 2, rank) for rank in range(3)]
    [(0, 1), (0, 2), (1, 2)]
    """
    chosen = list[int]()
    for number in range(n):
        if len(chosen) == k:
            break
        those_with_it = comb(n - number - 1, k - len(chosen) - 1)
        if rank < those_with_it:
            chosen.append(number)
        else:
            rank -= those_with_it
    return tuple(chosen)


@dataclass(frozen=True)
class Problem:
    """Why a margin cannot be met, and in which cell."""

    kind: str  # "no cells", "sum not positive", "target not positive", "inconsistent", "not met", "not adjacent", …
    margin: str
    cell: int
    detail: str  # text, from protected or public numbers alone
