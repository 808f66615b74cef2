"""What a real guarantee costs: formally private predictions at x0 from the line through small cells. Beyond 004.

Comparators for maximum observed sensitivity, whose χ is published exactly. x and y lie in [0, 1], and every estimate
is clamped to it. Each method is a frozen value with exact parameters. For simulations only: nothing is charged to a
ledger, and only simulation keys are taken. Proofs: formal.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import KeyRefused, ParameterError
from discreet.noise.interval_arithmetic import exact_fraction

if TYPE_CHECKING:
    from discreet.noise.key import ReleaseKey
    from discreet.noise.stream import Stream
    from discreet.privacy.guarantee import Guarantee

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

FALLBACK = 0.5  # the middle of [0, 1], where a method has no answer


@dataclass(frozen=True)
class Estimates:
    """One prediction a cell; `answered` is false where it is the fallback. Both may be published."""

    values: Floats
    answered: Bools


class FormalMethod(Protocol):
    """A private prediction at x0 for every cell."""

    @property
    def name(self) -> str:
        """As a report calls it."""

    @property
    def guarantee(self) -> Guarantee:
        """What all cells together promise: a record lies in one cell."""

    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """Cell j has the observations starts[j] … starts[j+1] − 1; it may have none."""

    def in_words(self) -> str:
        """What is done, and what is promised."""


def simulation_stream(key: ReleaseKey, method: str, purpose: str) -> Stream:
    """The stream of one purpose of one method."""
    if not key.simulated:
        raise KeyRefused("a comparison has no ledger", where="key", do="use ReleaseKey.simulation")
    return key.stream("evaluate", f"formal {method}", b"", purpose)


def check_point(x0: object) -> Fraction:
    """Where the line is read: an exact number in [0, 1]."""
    exact = exact_fraction("x0", x0)
    if not 0 <= exact <= 1:
        raise ParameterError("x0 lies outside 0 … 1", where="x0", do="rescale x to its declared bounds")
    return exact


def with_fallback(values: Floats, answered: Bools) -> Estimates:
    """Answers clamped to [0, 1], and the fallback elsewhere: a post-processing."""
    return Estimates(np.where(answered, np.clip(values, 0.0, 1.0), FALLBACK), answered)
