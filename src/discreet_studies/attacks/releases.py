"""One table of jobs, published by any method: what attackers see, and audits draw. Nothing is charged."""

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
        """As tables of results call it."""

    @property
    def reading(self) -> Reading:
        """How an attacker who knows the method scales counts: by a common factor, or not at all."""

    @property
    def cost(self) -> Fraction | None:
        """What a ledger would charge for the whole table."""
        return None

    @property
    def delta(self) -> Fraction:
        """The probability that the claim does not cover."""
        return Fraction(0)

    def publish(self, workers: Int64s, cell: Int64s, cells: int, key: ReleaseKey, table: str) -> Floats:
        """What is published: whole numbers, unless the method has it otherwise."""

    def repeat(self, workers: Int64s, times: int, key: ReleaseKey, table: str) -> Int64s:
        """One cell of a table with these establishments, published `times` times independently."""


@dataclass(frozen=True)
class InfusionPublication(Publication):
    """Noise infusion, whole numbers or as the paper has it. `beside` are the small counts of the rest of the table."""

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
        """With other factors each time: the same establishments in `times` agencies."""
        many = np.tile(workers, (times, 1))
        beside = tuple(times * number for number in self.beside)
        cell = np.repeat(np.arange(times), len(workers))
        return self.infusion.publish(many, cell, times, key, table, beside).rounded()


@dataclass(frozen=True)
class MechanismPublication:
    """A mechanism. `scope` is what `largest` measures: a cell's largest count of one establishment (weak privacy), or
    the largest total of an establishment with workers anywhere in the row (strong). From `below` on, they are left out.
    `times` is how many worker cells are paid for one by one.
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
            raise ParameterError("establishments of theta or more are left out", where="below", do="give theta")

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
    """A release of d worker cells in which each costs ε: d·ε in all, and S is of the cell (003, Def. 7.3)."""
    return MechanismPublication(f"weak, {mechanism.name} in each of {d} cells", mechanism, "cell", times=d)


def strong(mechanism: Mechanism) -> MechanismPublication:
    """A release whose S is of the establishment's total size; the mechanism must know how many cells there are."""
    return MechanismPublication(f"strong, {mechanism.name}", mechanism, "establishment")
