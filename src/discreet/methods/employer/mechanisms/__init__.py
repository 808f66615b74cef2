"""Mechanisms for counts of jobs: they protect the size of an establishment, one job, or an establishment entirely
(Haney et al. 2017).

Each is a frozen value with its ε and δ, its admissible (α, ε), its error, and an exact sampler on integers. The noise
of a cell may depend on its largest establishment, which is confidential; nothing else that is published may.
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
ProtectedUnit = Literal["size", "job", "establishment"]  # its size within a factor 1+α; one job; all of it

LARGEST = 1 << 51  # counts are below it; published numbers are clamped to ± it: post-processing of the ideal number


class Mechanism(Protocol):
    """Adds noise to the counts of cells, given the count of each cell's largest establishment."""

    @property
    def name(self) -> str:
        """As a release names it: `laplace-pareto`."""

    @property
    def protects(self) -> ProtectedUnit:
        """In what neighbouring data sets differ."""

    @property
    def epsilon(self) -> Fraction:
        """Bound on the joint privacy loss of all cells that one establishment affects (one cell, or `cells` of
        them)."""

    @property
    def delta(self) -> Fraction:
        """δ of (ε, δ)-differential privacy; 0 for pure mechanisms."""

    def draw(self, counts: Int64s, largest: Int64s, stream: Stream, first: int) -> Int64s:
        """The published integers of cells first, first+1, …"""

    def mean_abs(self, counts: Floats, largest: Floats) -> Floats:
        """E|published − count| of each cell, before rounding to integers. Confidential, as `largest` is."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k), rigorously: for audits and tests."""

    def margin(self, level: Fraction, largest: Int64s) -> Int64s | None:
        """Integers m with P(|published − count| ≤ m) ≥ level if no establishment of the cell has more than `largest`,
        which must be public; None if the error also depends on the count."""

    def describe(self) -> str:
        """The noise, as a formula with its constants."""


class BaseMechanism:
    """Defaults of a `Mechanism` that is a frozen dataclass: what it protects, no margin of error, pickling."""

    protects: ClassVar[ProtectedUnit] = "size"

    def margin(self, level: Fraction, largest: Int64s) -> Int64s | None:  # noqa: ARG002
        """None: the error depends on more than a bound on the largest establishment."""
        return None

    def __getstate__(self: DataclassInstance) -> dict[str, Any]:
        """The declared fields only: derived values are computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class SymmetricMechanism(BaseMechanism):
    """Noise that is symmetric around the count and clamped at both ends."""

    @abstractmethod
    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k)."""

    def lower(self, count: int, largest: int, k: int) -> arb:
        """P(published ≤ k), without subtracting from 1."""
        return self.upper(-count, largest, -k)
