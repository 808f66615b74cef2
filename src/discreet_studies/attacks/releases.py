"""One table of jobs published by any method, as attacks see and audits sample it. No ledger is charged."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.noise.key import ReleaseKey
from discreet_studies.employer.comparators.infusion import Infusion, sums
from discreet_studies.streams import simulation_stream

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Scope = Literal["cell", "establishment"]
Reading = Literal["ratio", "sum"]


class Publication(Protocol):
    """A way to publish the counts (cells, worker cells) of establishments with their workers and cells."""

    @property
    def name(self) -> str:
        """The name in tables of results."""

    @property
    def reading(self) -> Reading:
        """How an adversary who knows the method scales counts: by a common factor (ratio), or not at all (sum)."""

    @property
    def cost(self) -> Fraction | None:
        """The ε that a ledger would charge for the whole table."""
        return None

    @property
    def delta(self) -> Fraction:
        """The δ of the claimed guarantee."""
        return Fraction(0)

    def publish(self, workers: Int64s, cell: Int64s, cells: int, key: ReleaseKey, table: str) -> Floats:
        """The published counts, integers unless the method publishes others."""

    def repeat(self, workers: Int64s, times: int, key: ReleaseKey, table: str) -> Int64s:
        """One cell of a table with these establishments, published `times` times independently."""


@dataclass(frozen=True)
class InfusionPublication(Publication):
    """Noise infusion, rounded to integers or unrounded as in the paper. `beside` are the small counts of the rest of
    the table."""

    reading: ClassVar[Reading] = "ratio"
    infusion: Infusion
    rounded: bool = False
    beside: tuple[int, ...] = (2000, 1000)

    @property
    def name(self) -> str:
        return "infusion, rounded" if self.rounded else "infusion"

    def publish(self, workers: Int64s, cell: Int64s, cells: int, key: ReleaseKey, table: str) -> Floats:
        """Σ f_w·h(w, c), small counts replaced."""
        infused = self.infusion.publish(workers, cell, cells, key, table, self.beside)
        return infused.rounded().astype(np.float64) if self.rounded else infused.values

    def repeat(self, workers: Int64s, times: int, key: ReleaseKey, table: str) -> Int64s:
        """With fresh factors each time: the same establishments in `times` agencies."""
        many = np.tile(workers, (times, 1))
        beside = tuple(times * number for number in self.beside)
        cell = np.repeat(np.arange(times), len(workers))
        return self.infusion.publish(many, cell, times, key, table, beside).rounded()


@dataclass(frozen=True)
class MechanismPublication:
    """A mechanism. `scope` is what `largest` measures: a cell's largest count of one establishment (weak privacy), or
    the largest total of an establishment with workers anywhere in the row (strong). Establishments of size
    `below` or more are left out. `times` is the number of worker cells that each cost ε.
    """

    reading: ClassVar[Reading] = "sum"
    name: str
    mechanism: Mechanism
    scope: Scope
    below: int | None = None
    times: int = 1

    def __post_init__(self) -> None:
        theta = getattr(self.mechanism, "theta", None)
        if theta != self.below:
            raise ParameterError("differs from the mechanism's theta", where="below", do="give theta")

    @property
    def cost(self) -> Fraction | None:
        return self.times * self.mechanism.epsilon

    @property
    def delta(self) -> Fraction:
        return self.mechanism.delta

    def publish(self, workers: Int64s, cell: Int64s, cells: int, key: ReleaseKey, table: str) -> Floats:
        """Integers of the mechanism."""
        return self._noised(*self.cells_of(workers, cell, cells), key, table).astype(np.float64)

    def repeat(self, workers: Int64s, times: int, key: ReleaseKey, table: str) -> Int64s:
        """Fresh noise each time."""
        counts, largest = self.cells_of(workers, np.zeros(len(workers), np.int64), 1)
        return self._noised(np.tile(counts, (times, 1)), np.tile(largest, (times, 1)), key, table)

    def cells_of(self, workers: Int64s, cell: Int64s, cells: int) -> tuple[Int64s, Int64s]:
        """Counts and `largest` (cells, worker cells)."""
        if self.below is not None:
            small = workers.sum(axis=1) < self.below
            workers, cell = workers[small], cell[small]
        size = workers if self.scope == "cell" else np.broadcast_to(workers.sum(axis=1)[:, None], workers.shape)
        largest = np.zeros((cells, workers.shape[1]), np.int64)
        np.maximum.at(largest, cell, size)
        return sums(workers, cell, cells), largest

    def _noised(self, counts: Int64s, largest: Int64s, key: ReleaseKey, table: str) -> Int64s:
        stream = simulation_stream(key, table, self.name.encode(), "cells")
        return self.mechanism.draw(counts.reshape(-1), largest.reshape(-1), stream, 0).reshape(counts.shape)


def weak(mechanism: Mechanism, d: int) -> MechanismPublication:
    """A release of d worker cells, each at ε: d·ε in total, with S from the cell (Haney et al. 2017, Def. 7.3)."""
    return MechanismPublication(f"weak, {mechanism.name} in each of {d} cells", mechanism, "cell", times=d)


def strong(mechanism: Mechanism) -> MechanismPublication:
    """A release whose S is from the establishments' total sizes; the mechanism must know the number of cells."""
    return MechanismPublication(f"strong, {mechanism.name}", mechanism, "establishment")
