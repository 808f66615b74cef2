"""The noise in all tables of a cube at once, and its sample variance by dimension (002, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from discreet.noise.jit import compiled
from discreet.post.cubes.margins import Floats


@dataclass(frozen=True)
class Pooled:
    """Every axis gets one more code, the sum of the others: the cells of the larger cube are those of all tables. Those
    of a table of d axes have d codes that are no sums."""

    shape: tuple[int, ...]

    @cached_property
    def dimension(self) -> NDArray[np.uint8]:
        """Of the table that each cell of the larger cube belongs to."""
        found = np.zeros(1, np.uint8)
        for size in self.shape:
            found = np.add.outer(found, np.append(np.ones(size, np.uint8), np.uint8(0))).reshape(-1)
        return found

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Of all tables of 0, 1, … axes."""
        return np.bincount(self.dimension)

    def all_tables(self, noise: Floats) -> Floats:
        """The larger cube."""
        values, inner = noise.reshape(-1), 1
        for place in reversed(range(len(self.shape))):  # the last axis first: the long loops come last, and are flat
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
        sums = tables * values[-1]  # every table adds up to the cube's total, the last cell of all
        found: Floats = (squares - sums**2 / self.cells)[1:] / (self.cells[1:] - 1)
        return found


@compiled
def _with_sums(values: Floats, wider: Floats) -> None:
    """The middle axis, and its sum behind it."""
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
