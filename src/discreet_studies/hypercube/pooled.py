"""The noise in all tables of a cube at once, and its sample variance by dimension (002, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

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
            size = self.shape[place]
            cells = values.reshape(prod(self.shape[:place]), size, inner)
            values = np.concatenate([cells, cells.sum(axis=1, keepdims=True)], axis=1).reshape(-1)
            inner *= size + 1
        return values

    def variances(self, noise: Floats) -> Floats:
        """Σ(e − ē)²/(m − 1) over all m cells of all tables of 1, 2, … axes."""
        values = self.all_tables(noise)
        squares = np.bincount(self.dimension, values * values)
        tables = np.array([comb(len(self.shape), d) for d in range(len(squares))])
        sums = tables * values[-1]  # every table adds up to the cube's total, the last cell of all
        found: Floats = (squares - sums**2 / self.cells)[1:] / (self.cells[1:] - 1)
        return found
