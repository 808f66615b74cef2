"""The magnitude of discrete Laplace noise as a floor of a logarithm, and its table of thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, arb_series
from numpy.typing import NDArray

from discreet.noise.interval_arithmetic import ball, exact_floor
from discreet.noise.kernels import INTEGER_BUCKETS, INTEGER_ORIGIN, LOW_BITS, PREFIX

SMALLEST_TABLE_RATE = Fraction(1, 64)  # above it no bucket holds two thresholds: e^(1/64) > 1 + 1/64


@dataclass(frozen=True)
class Magnitude:
    """|K| = floor(−ln(κU + c)/rate): P(|K| ≥ m) = (a^m − c)/κ, a = e^−rate, c = a^(cap+1) or 0.

    κ = (1 + a)/2 − c for all cells; κ = a − c for the cells whose noise is not zero. See discrete.md.
    """

    rate: Fraction
    cap: int | None
    nonzero: bool = False

    def power(self, m: int) -> arb:
        """a^m = e^(−rate·m)."""
        return (-ball(self.rate * m)).exp()

    def constants(self) -> tuple[arb, arb]:
        """κ and c."""
        c = arb(0) if self.cap is None else self.power(self.cap + 1)
        a = self.power(1)
        return (a - c if self.nonzero else (1 + a) / 2 - c), c

    def tail(self, m: int) -> arb:
        """P(|K| ≥ m)."""
        if m <= int(self.nonzero):
            return arb(1)
        if self.cap is not None and m > self.cap:
            return arb(0)
        kappa, c = self.constants()
        return (self.power(m) - c) / kappa

    def at(self, u: arb) -> arb:
        """−ln(κu + c)/rate, whose floor is |K|."""
        kappa, c = self.constants()
        return -(kappa * u + c).log() / ball(self.rate)

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of `at` around every point of the ball u."""
        kappa, c = self.constants()
        series = arb_series([kappa * u + c, kappa], prec=n).log() * (-1 / ball(self.rate))
        return [series[i] for i in range(n)]


@dataclass(frozen=True)
class Thresholds:
    """For each bucket of prefixes, its threshold and the magnitude at or above it."""

    thresholds: NDArray[np.uint64]
    bases: NDArray[np.int64]


def bucket_of(u: int) -> int:
    """The kernel's bucket of a 63-bit prefix."""
    x = np.float64(np.int64(u)) + 0.5
    return int(x.view(np.uint64) >> np.uint64(LOW_BITS)) - INTEGER_ORIGIN


def integer_thresholds(law: Magnitude) -> list[int]:
    """t_m = floor(P(|K| ≥ m)·2⁶³) for m = 1, 2, … down to the first zero."""
    found: list[int] = []
    while not found or found[-1] > 0:
        m = len(found) + 1
        if m == 1 and law.nonzero:
            found.append(PREFIX + 1)  # certain, and an integer: no ball would decide its floor
        elif law.cap is not None and m > law.cap:
            break
        else:
            found.append(exact_floor(lambda m=m: law.tail(m) * 2**63))  # type: ignore[misc]
    return found


@lru_cache(maxsize=64)
def threshold_table(law: Magnitude) -> Thresholds | None:
    """The table of a law, or nothing if its rate is so small that a bucket would hold two thresholds."""
    if law.rate < SMALLEST_TABLE_RATE:
        return None
    found = integer_thresholds(law)
    certain = sum(t > PREFIX for t in found)
    # Without a threshold of its own a bucket compares with 2⁶³, which every u is below: base is one less.
    thresholds = np.full(INTEGER_BUCKETS, PREFIX + 1, dtype=np.uint64)
    counts = np.zeros(INTEGER_BUCKETS + 1, dtype=np.int64)
    for t in sorted(set(found), reverse=True)[1 if certain else 0 :]:
        bucket = bucket_of(t)
        if thresholds[bucket] <= PREFIX:
            return None
        thresholds[bucket] = t
        counts[bucket] = sum(other == t for other in found)
    above = np.cumsum(counts[::-1])[::-1][1:] + certain  # thresholds in higher buckets
    bases = np.where(thresholds > PREFIX, above - 1, above)
    return Thresholds(thresholds, bases.astype(np.int64))
