"""Mechanisms for counts of jobs: what hides an establishment, a job, or an establishment entirely (003).

Each is a frozen value: it knows what it costs, which (α, ε) it can serve, how wrong it is, and how to draw its integers
exactly. A cell's noise may depend on its largest establishment, which is confidential: so may nothing else that is
published.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from flint import arb

    from discreet.noise.stream import Stream

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Hides = Literal["size", "job", "establishment"]  # a size within 1+α; one job; an establishment entirely

LARGEST = 1 << 51  # counts are below it; what is published is cut at ± it: a post-processing of the ideal number


class Mechanism(Protocol):
    """Counts of cells, each with the count of its largest establishment, made into integers that can be published."""

    @property
    def name(self) -> str:
        """As a release names it: `laplace-pareto`."""

    @property
    def hides(self) -> Hides:
        """What neighbouring data differ in."""

    @property
    def epsilon(self) -> Fraction:
        """The loss of all cells that one establishment moves at once (one cell, or `cells` of them)."""

    @property
    def delta(self) -> Fraction:
        """The probability that the loss is not bounded by ε; 0 for pure mechanisms."""

    def draw(self, counts: Int64s, largest: Int64s, stream: Stream, first: int) -> Int64s:
        """The published integers of cells first, first+1, …"""

    def mean_abs(self, counts: Floats, largest: Floats) -> Floats:
        """E|published − count| of each cell, before rounding to integers. Confidential, as `largest` is."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k), rigorously: for audits and tests."""

    def margin(self, level: Fraction, largest: Int64s) -> Int64s | None:
        """Integers m with P(|published − count| ≤ m) ≥ level if no establishment of the cell has more than `largest`,
        which must be public; None if the error also depends on the count."""

    def in_words(self) -> str:
        """The noise, in words and symbols."""


class BaseMechanism:
    """Defaults of a `Mechanism` that is a frozen dataclass: whom it hides, what it cannot say, how it is pickled."""

    hides: ClassVar[Hides] = "size"

    def margin(self, level: Fraction, largest: Int64s) -> Int64s | None:  # noqa: ARG002
        """None: the error depends on more than a bound of the largest establishment."""
        return None

    def __getstate__(self: DataclassInstance) -> dict[str, Any]:
        """The declared fields alone: what was computed is computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class SymmetricMechanism(BaseMechanism):
    """Noise that is symmetric around the count, and so cut at both ends."""

    @abstractmethod
    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k)."""

    def lower(self, count: int, largest: int, k: int) -> arb:
        """P(published ≤ k), without subtracting from 1."""
        return self.upper(-count, largest, -k)
