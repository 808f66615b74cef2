"""Formally private predictions at x0 from regression lines in small cells: the cost of a formal guarantee.

Comparators for maximum observed sensitivity (Chetty & Friedman 2019), whose χ is published exactly. x and y lie in [0,
1], and every estimate is clamped to it. Each method is a frozen value with exact parameters. For simulations only: no
ledger is charged, and only simulation keys are accepted. Proofs: formal.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import exact_fraction, positive_fraction
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet.privacy.guarantee import Guarantee, Record
from discreet_studies.streams import simulation_stream

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

FALLBACK = 0.5  # the middle of [0, 1], used where a method has no answer


@dataclass(frozen=True)
class Estimates:
    """One prediction per cell; `answered` is false where it is the fallback. Both may be published."""

    values: Floats
    answered: Bools


@dataclass(frozen=True)
class FormalMethod(ABC):
    """A private prediction at x0 for every cell."""

    x0: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "x0", check_point(self.x0))
        object.__setattr__(self, "epsilon", positive_fraction("epsilon", self.epsilon))

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in reports."""

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all cells together: a record lies in one cell, whose size is confidential."""
        return Guarantee(unit=Record(), epsilon=self.epsilon)

    @abstractmethod
    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """Cell j has the observations starts[j] … starts[j+1] − 1; it may have none."""

    def stream(self, key: ReleaseKey, purpose: str) -> Stream:
        """The noise stream for one purpose of this method."""
        return simulation_stream(key, f"formal {self.name}", b"", purpose)


def check_point(x0: object) -> Fraction:
    """The point x0 of the prediction: an exact number in [0, 1]."""
    exact = exact_fraction("x0", x0)
    if not 0 <= exact <= 1:
        raise ParameterError("x0 lies outside 0 … 1", where="x0", do="rescale x to its declared bounds")
    return exact


def with_fallback(values: Floats, answered: Bools) -> Estimates:
    """Answers clamped to [0, 1], and the fallback elsewhere (post-processing)."""
    return Estimates(np.where(answered, np.clip(values, 0.0, 1.0), FALLBACK), answered)
