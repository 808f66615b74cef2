"""Discrete Laplace noise: its magnitude as a floor of a logarithm, the table of thresholds, and the signed draw.

A draw is compiled where 63 bits decide, and exact where they do not. Proof: discrete.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from flint import arb, arb_series

from discreet.arrays import Int64s, Words
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import ball, exact_floors
from discreet.noise.kernels import INTEGER_BUCKETS, INTEGER_ORIGIN, LOW_BITS, PREFIX
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, Rounding, Uniform, resolve, settle
from discreet.noise.stream import Stream

SMALLEST_TABLE_RATE = Fraction(1, 64)  # above it no bucket holds two thresholds: e^(1/64) > 1 + 1/64

More = Callable[[int], Iterator[int]]


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

    def scaled_tails(self) -> list[arb]:
        """P(|K| ≥ m)·2⁶³ for m = 1, 2, …, or from 2 where the first is certain; to the first below 1, or to the cap."""
        (kappa, c), rate, m = self.constants(), ball(self.rate), 1 + int(self.nonzero)
        found: list[arb] = []
        while (self.cap is None or m <= self.cap) and not (found and found[-1] < 1):
            found.append(((-rate * m).exp() - c) / kappa * 2**63)
            m += 1
        return found

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

    thresholds: Words
    bases: Int64s


def bucket_of(u: int) -> int:
    """The kernel's bucket of a 63-bit prefix."""
    x = np.float64(np.int64(u)) + 0.5
    return int(x.view(np.uint64) >> np.uint64(LOW_BITS)) - INTEGER_ORIGIN


def integer_thresholds(law: Magnitude) -> list[int]:
    """t_m = floor(P(|K| ≥ m)·2⁶³) for m = 1, 2, … down to the first zero."""
    found = exact_floors(law.scaled_tails)
    return [PREFIX + 1, *found] if law.nonzero else found  # m = 1 is certain, and no ball decides an integer's floor


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


class Names(Protocol):
    """Which extension belongs to which draw."""

    def __call__(self, i: int) -> tuple[int, int]:
        """The (draw, part) of the i-th word in the stream's family."""


@dataclass(frozen=True)
class Signed:
    """A law ready to be drawn: ±|K| from word 0 of each row, then its further columns, then the extension."""

    law: Magnitude
    family: str
    table: Thresholds | None

    @classmethod
    def of(cls, law: Magnitude, family: str) -> Signed:
        """By thresholds where they fit, else by the rounded logarithm: the same function of the same bits."""
        return cls(law, family, threshold_table(law))

    def run(self, stream: Stream, words: Words, names: Names, out: Int64s, add: bool) -> None:
        """Draw into out, or add to it."""

        def more(i: int) -> Iterator[int]:
            yield from (int(word) for word in words[i, 1:])
            yield from stream.extension(self.family, *names(i))

        if self.table is None:
            flags = self._by_logarithm(words, more, out, add)
        else:
            flags = int(kernels.integers(words, self.table.thresholds, self.table.bases, out, add))
            if flags & kernels.UNDECIDED:
                self._break_ties(self.table, words, more, out)
        if flags & kernels.SUSPECT and words.shape[1] == 2:  # half a block that repeats proves nothing
            stream.check_fresh(words)

    def _by_logarithm(self, words: Words, more: More, out: Int64s, add: bool) -> int:
        rounding = Rounding((self.law,), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=True)
        noise = np.empty_like(out) if add else out
        flags = rounding.draw(words, ONE, noise)
        if flags & kernels.UNDECIDED:
            settle(rounding, words, more, ONE, noise)
        if add:
            out += noise
        return flags

    def _break_ties(self, table: Thresholds, words: Words, more: More, out: Int64s) -> None:
        """The kernel has used base for u = threshold; put the exact value in its place."""
        prefix = words[:, 0] & np.uint64(kernels.PREFIX)
        for i in np.flatnonzero(np.isin(prefix, table.thresholds)).tolist():
            used = np.empty(1, dtype=np.int64)
            if kernels.integers(words[i : i + 1], table.thresholds, table.bases, used, False) & kernels.UNDECIDED:
                word = int(words[i, 0])
                exact = resolve(self.law.at, Uniform(word, more(i)), LARGEST_LIMIT)
                out[i] += (-exact if word >> 63 else exact) - int(used[0])
