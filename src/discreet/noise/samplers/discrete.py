"""Exact discrete Laplace (two-sided geometric) noise, with or without a cap. Proof: discrete.md.

A magnitude is the floor of a logarithm. It is drawn from a compiled table of thresholds if 63 bits are decisive, and
otherwise by interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Protocol

import numpy as np
from flint import arb, arb_series, ctx

from discreet.arrays import Int64s, Words
from discreet.errors import ParameterError
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import ball, exact_floor, exact_floors, positive_fraction
from discreet.noise.kernels import INTEGER_BUCKETS, INTEGER_ORIGIN, LOW_BITS, PREFIX
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, Rounding, Uniform, decide_open_draws, resolve
from discreet.noise.stream import Stream, check_range

SMALLEST_RATE = Fraction(1, 2**40)
LARGEST_RATE = Fraction(2**40)
LARGEST_COUNT = 2**62
BITS = 256
SMALLEST_TABLE_RATE = Fraction(1, 64)  # from this rate on no bucket has two thresholds: e^(1/64) > 1 + 1/64

More = Callable[[int], Iterator[int]]


@dataclass(frozen=True)
class Magnitude:
    """|K| = floor(−ln(κU + c)/rate): P(|K| ≥ m) = (a^m − c)/κ, a = e^−rate, c = a^(cap+1) or 0.

    κ = (1 + a)/2 − c for all cells; κ = a − c for cells with non-zero noise. See discrete.md.
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
        """P(|K| ≥ m)·2⁶³ for m = 1, 2, …, or from 2 if the first is 1; to the first below 1, or to the cap."""
        (kappa, c), rate, m = self.constants(), ball(self.rate), 1 + int(self.nonzero)
        tails: list[arb] = []
        while (self.cap is None or m <= self.cap) and not (tails and tails[-1] < 1):
            tails.append(((-rate * m).exp() - c) / kappa * 2**63)
            m += 1
        return tails

    def at(self, u: arb) -> arb:
        """−ln(κu + c)/rate, whose floor is |K|."""
        kappa, c = self.constants()
        return -(kappa * u + c).log() / ball(self.rate)

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of `at` around every point of the interval u."""
        kappa, c = self.constants()
        series = arb_series([kappa * u + c, kappa], prec=n).log() * (-1 / ball(self.rate))
        return [series[i] for i in range(n)]


@dataclass(frozen=True)
class ThresholdTable:
    """For each bucket of prefixes, its threshold, and the magnitude at or above the threshold."""

    thresholds: Words
    bases: Int64s


def bucket_of(u: int) -> int:
    """The kernel's bucket of a 63-bit prefix."""
    x = np.float64(np.int64(u)) + 0.5
    return int(x.view(np.uint64) >> np.uint64(LOW_BITS)) - INTEGER_ORIGIN


def integer_thresholds(distribution: Magnitude) -> list[int]:
    """t_m = floor(P(|K| ≥ m)·2⁶³) for m = 1, 2, … down to the first zero."""
    floors = exact_floors(distribution.scaled_tails)
    # For non-zero noise t_1 is exactly 2⁶³, and interval arithmetic cannot decide the floor of an integer.
    return [PREFIX + 1, *floors] if distribution.nonzero else floors


@lru_cache(maxsize=64)
def threshold_table(distribution: Magnitude) -> ThresholdTable | None:
    """The table of a distribution, or None if its rate is so small that a bucket would have two thresholds."""
    if distribution.rate < SMALLEST_TABLE_RATE:
        return None
    values = integer_thresholds(distribution)
    certain = sum(t > PREFIX for t in values)
    # A bucket without a threshold compares with 2⁶³, which is above every u: its base is one less.
    thresholds = np.full(INTEGER_BUCKETS, PREFIX + 1, dtype=np.uint64)
    counts = np.zeros(INTEGER_BUCKETS + 1, dtype=np.int64)
    for t in sorted(set(values), reverse=True)[1 if certain else 0 :]:
        bucket = bucket_of(t)
        if thresholds[bucket] <= PREFIX:
            return None
        thresholds[bucket] = t
        counts[bucket] = sum(other == t for other in values)
    above = np.cumsum(counts[::-1])[::-1][1:] + certain  # thresholds in higher buckets
    bases = np.where(thresholds > PREFIX, above - 1, above)
    return ThresholdTable(thresholds, bases.astype(np.int64))


class ExtensionAddress(Protocol):
    """Addresses of draws in the extension streams."""

    def __call__(self, i: int) -> tuple[int, int]:
        """The (draw, part) of the i-th word in the stream's family."""


@dataclass(frozen=True)
class SignedSampler:
    """A sampler of ±|K|, which reads word 0 of each row, then its further words, then the extension."""

    distribution: Magnitude
    family: str
    table: ThresholdTable | None

    @classmethod
    def of(cls, distribution: Magnitude, family: str) -> SignedSampler:
        """By thresholds if a table exists, else by the rounded logarithm: the same function of the same bits."""
        return cls(distribution, family, threshold_table(distribution))

    def run(self, stream: Stream, words: Words, address: ExtensionAddress, out: Int64s, add: bool) -> None:
        """Draw into out, or add to it."""

        def more(i: int) -> Iterator[int]:
            yield from (int(word) for word in words[i, 1:])
            yield from stream.extension(self.family, *address(i))

        if self.table is None:
            flags = self._by_logarithm(words, more, out, add)
        else:
            flags = int(kernels.integers(words, self.table.thresholds, self.table.bases, out, add))
            if flags & kernels.UNDECIDED:
                self._break_ties(self.table, words, more, out)
        if flags & kernels.SUSPECT and words.shape[1] == 2:  # a repeated half block proves nothing
            stream.check_fresh(words)

    def _by_logarithm(self, words: Words, more: More, out: Int64s, add: bool) -> int:
        rounding = Rounding((self.distribution,), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=True)
        noise = np.empty_like(out) if add else out
        flags = rounding.draw(words, ONE, noise)
        if flags & kernels.UNDECIDED:
            decide_open_draws(rounding, words, more, ONE, noise)
        if add:
            out += noise
        return flags

    def _break_ties(self, table: ThresholdTable, words: Words, more: More, out: Int64s) -> None:
        """Replace the kernel's value for u = threshold, which is the base, by the exact one."""
        prefix = words[:, 0] & np.uint64(kernels.PREFIX)
        for i in np.flatnonzero(np.isin(prefix, table.thresholds)).tolist():
            used = np.empty(1, dtype=np.int64)
            if kernels.integers(words[i : i + 1], table.thresholds, table.bases, used, False) & kernels.UNDECIDED:
                word = int(words[i, 0])
                exact = resolve(self.distribution.at, Uniform(word, more(i)), LARGEST_LIMIT)
                out[i] += (-exact if word >> 63 else exact) - int(used[0])


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(K = k) ∝ e^(−rate·|k|), |k| ≤ cap if there is one; rate = ε/sensitivity (Ghosh et al. 2009).

    Discrete Laplace, or two-sided geometric, noise; for the cap see Li & Krenzke 2020. Magnitudes saturate at
    2⁵², with a probability below e^−4000 even at the smallest rate (ADR 0031).
    """

    rate: Fraction
    cap: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive_fraction("rate", self.rate))
        if not SMALLEST_RATE <= self.rate <= LARGEST_RATE:
            raise ParameterError(
                "the rate is outside 2^-40 … 2^40",
                where="rate",
                do="count in larger units of measure, or choose another epsilon",
            )
        if self.cap is None:
            return
        if type(self.cap) is not int or not 1 <= self.cap <= LARGEST_LIMIT:
            raise ParameterError(
                "a cap is an integer from 1 to 2^52", where="cap", do="omit it for noise without a cap"
            )

    @property
    def magnitude(self) -> Magnitude:
        """The distribution of |K|."""
        return Magnitude(self.rate, self.cap)

    def draw(self, stream: Stream, first: int, n: int, out: Int64s | None = None) -> Int64s:
        """The noise of cells first … first+n−1, in a new array or in the first n elements of `out`."""
        noise = np.empty(n, dtype=np.int64) if out is None else _writable(out)[:n]
        self._run(stream, first, noise, add=False)
        return noise

    def add_to(self, counts: Int64s, stream: Stream, first: int) -> None:
        """Add the noise of cells first, first+1, … to counts, in place."""
        if kernels.largest(_writable(counts)) >= LARGEST_COUNT:
            raise ParameterError("a count is outside ±2^62", where="counts", do="bound the contributions of a record")
        self._run(stream, first, counts, add=True)

    def sparse(self, stream: Stream, first: int, n: int) -> tuple[Int64s, Int64s]:
        """Cells of first … first+n−1 with non-zero noise, ascending, and their noise. Not the same draw as `draw`."""
        from discreet.noise.samplers.sparse import nonzero_noise

        return nonzero_noise(self.magnitude, stream, first, n)

    def _run(self, stream: Stream, first: int, out: Int64s, add: bool) -> None:
        check_range(first, out.size)
        signed = SignedSampler.of(self.magnitude, "cells")
        start = 0
        for words in stream.raw_words(first, out.size):
            cell = first + start
            signed.run(stream, words, lambda i, cell=cell: (cell + i, 0), out[start : start + len(words)], add)
            start += len(words)

    def tail(self, m: int) -> arb:
        """P(|K| ≥ m) = 2(a^m − c)/(1 + a − 2c) for m ≥ 1, as an interval of about 256 bits."""
        with ctx.workprec(BITS):
            return self.magnitude.tail(m)

    def margin(self, level: Fraction) -> int:
        """The smallest m with P(|K| ≤ m) ≥ level, that is with P(|K| ≥ m + 1) ≤ 1 − level."""
        alpha = 1 - positive_fraction("level", level)
        if alpha <= 0:
            raise ParameterError(
                "a level lies strictly between 0 and 1", where="level", do='for example Fraction("0.9")'
            )
        # |K| = floor(G(U)), G falling: its quantile is the floor at U = 1 − level, where G is irrational.
        return exact_floor(lambda: self.magnitude.at(ball(alpha)), BITS)

    def variance(self) -> float:
        """Var K = Σ k²·P(K = k)."""
        return float(_moments(self)[1])

    def mean_abs(self) -> float:
        """E|K| = Σ P(|K| ≥ m)."""
        return float(_moments(self)[0])

    def fourth_cumulant(self) -> float:
        """κ₄ = E K⁴ − 3·Var²; without a cap K is the difference of two geometric variables: 2a(1 + 4a + a²)/(1 − a)⁴.

        >>> round(DiscreteLaplace(Fraction(1)).fourth_cumulant(), 4)
        12.013
        """
        with ctx.workprec(4 * BITS):
            _, second, fourth = _moments(self)
            return float(fourth - 3 * second**2)

    def delta(self, shift: int = 1) -> arb:
        """Exact δ at privacy loss shift·rate: the mass of the `shift` largest values; 0 without a cap."""
        if shift < 1:
            raise ParameterError("a shift is at least 1", where="shift", do="give the sensitivity of a count")
        with ctx.workprec(BITS):
            if self.cap is None:
                return arb(0)
            if shift <= self.cap:
                return self.magnitude.tail(self.cap + 1 - shift) / 2
            # Beyond the middle: all negative values, zero, and what lies above −(shift − cap).
            return 1 - self.magnitude.tail(shift - self.cap) / 2 if shift <= 2 * self.cap else arb(1)


def _writable(array: Int64s) -> Int64s:
    if array.dtype != np.int64 or not array.flags.c_contiguous or array.ndim != 1 or not array.flags.writeable:
        raise ParameterError("cells must be one writable contiguous int64 array", where="cells", do="convert them")
    return array


@lru_cache(maxsize=256)
def _moments(distribution: DiscreteLaplace) -> tuple[arb, arb, arb]:
    """E|K|, E K² and E K⁴, from Σ m^j·a^m over all m ≥ 1, minus the terms beyond the cap."""
    with ctx.workprec(4 * BITS):
        a = distribution.magnitude.power(1)
        b = 1 - a
        s = [
            a / b,
            a / b**2,
            a * (1 + a) / b**3,
            a * (1 + 4 * a + a**2) / b**4,
            a * (1 + 11 * a + 11 * a**2 + a**3) / b**5,
        ]
        n, top = (
            (0, arb(0))
            if distribution.cap is None
            else (distribution.cap, distribution.magnitude.power(distribution.cap))
        )
        beyond = [top * sum(comb(j, i) * n ** (j - i) * s[i] for i in range(j + 1)) for j in range(5)]
        norm = 1 + 2 * (s[0] - beyond[0])
        return 2 * (s[1] - beyond[1]) / norm, 2 * (s[2] - beyond[2]) / norm, 2 * (s[4] - beyond[4]) / norm
