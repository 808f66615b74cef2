"""Exact discrete Laplace (two-sided geometric) noise, with or without a cap. Proof: discrete.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from flint import arb, ctx

from discreet.arrays import Int64s
from discreet.errors import ParameterError
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import ball, exact_floor, positive_fraction
from discreet.noise.samplers.magnitude import Magnitude, Signed
from discreet.noise.samplers.rounded import LARGEST_LIMIT
from discreet.noise.stream import Stream, check_range

SMALLEST_RATE = Fraction(1, 2**40)
LARGEST_RATE = Fraction(2**40)
LARGEST_COUNT = 2**62
BITS = 256


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(K = k) ∝ e^(−rate·|k|), |k| ≤ cap if there is one; rate = ε/sensitivity (Ghosh et al. 2009; 002).

    Magnitudes saturate at 2⁵², which at the smallest rate happens with a probability below e^−4096 (ADR 0031).
    """

    rate: Fraction
    cap: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive_fraction("rate", self.rate))
        if not SMALLEST_RATE <= self.rate <= LARGEST_RATE:
            raise ParameterError(
                "the rate is outside 2^-40 … 2^40", where="rate", do="count in larger units, or give a usable epsilon"
            )
        if self.cap is None:
            return
        if type(self.cap) is not int or not 1 <= self.cap <= LARGEST_LIMIT:
            raise ParameterError("a cap is an integer from 1 to 2^52", where="cap", do="leave it out for no cap")

    @property
    def magnitude(self) -> Magnitude:
        """The law of |K|."""
        return Magnitude(self.rate, self.cap)

    def draw(self, stream: Stream, first: int, n: int, out: Int64s | None = None) -> Int64s:
        """The noise of cells first … first+n−1, in a new array or in the first n places of `out`."""
        noise = np.empty(n, dtype=np.int64) if out is None else _writable(out)[:n]
        self._run(stream, first, noise, add=False)
        return noise

    def add_to(self, counts: Int64s, stream: Stream, first: int) -> None:
        """Add the noise of cells first, first+1, … to counts, in place."""
        if kernels.largest(_writable(counts)) >= LARGEST_COUNT:
            raise ParameterError("a count leaves ±2^62", where="counts", do="bound the contributions of a record")
        self._run(stream, first, counts, add=True)

    def sparse(self, stream: Stream, first: int, n: int) -> tuple[Int64s, Int64s]:
        """Cells of first … first+n−1 with non-zero noise, ascending, and it. Not the same draw as `draw`."""
        from discreet.noise.samplers.sparse import nonzero_noise

        return nonzero_noise(self.magnitude, stream, first, n)

    def _run(self, stream: Stream, first: int, out: Int64s, add: bool) -> None:
        check_range(first, out.size)
        signed = Signed.of(self.magnitude, "cells")
        start = 0
        for words in stream.raw_words(first, out.size):
            cell = first + start
            signed.run(stream, words, lambda i, cell=cell: (cell + i, 0), out[start : start + len(words)], add)
            start += len(words)

    def tail(self, m: int) -> arb:
        """P(|K| ≥ m) = 2(a^m − c)/(1 + a − 2c) for m ≥ 1, as a ball of about 256 bits."""
        with ctx.workprec(BITS):
            return self.magnitude.tail(m)

    def margin(self, level: Fraction) -> int:
        """The smallest m with P(|K| ≤ m) ≥ level, that is with P(|K| ≥ m + 1) ≤ 1 − level."""
        alpha = 1 - positive_fraction("level", level)
        if alpha <= 0:
            raise ParameterError("a level lies strictly between 0 and 1", where="level", do='try Fraction("0.9")')
        # |K| = floor(G(U)), G falling: its quantile is the floor at U = 1 − level, where G is irrational.
        return exact_floor(lambda: self.magnitude.at(ball(alpha)), BITS)

    def variance(self) -> float:
        """Var K = Σ k²·P(K = k)."""
        return float(_moments(self)[1])

    def mean_abs(self) -> float:
        """E|K| = Σ P(|K| ≥ m)."""
        return float(_moments(self)[0])

    def fourth_cumulant(self) -> float:
        """κ₄ = E K⁴ − 3·Var²; without a cap K is a difference of two geometric numbers: 2a(1 + 4a + a²)/(1 − a)⁴.

        >>> round(DiscreteLaplace(Fraction(1)).fourth_cumulant(), 4)
        12.013
        """
        with ctx.workprec(4 * BITS):
            _, second, fourth = _moments(self)
            return float(fourth - 3 * second**2)

    def delta(self, shift: int = 1) -> arb:
        """Exact δ at loss shift·rate: the mass of the `shift` topmost values (002); 0 without a cap."""
        if shift < 1:
            raise ParameterError("a shift is at least 1", where="shift", do="give the largest change of a count")
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
def _moments(law: DiscreteLaplace) -> tuple[arb, arb, arb]:
    """E|K|, E K² and E K⁴, by Σ m^j·a^m over all m ≥ 1, less those beyond the cap."""
    with ctx.workprec(4 * BITS):
        a = law.magnitude.power(1)
        b = 1 - a
        s = [
            a / b,
            a / b**2,
            a * (1 + a) / b**3,
            a * (1 + 4 * a + a**2) / b**4,
            a * (1 + 11 * a + 11 * a**2 + a**3) / b**5,
        ]
        n, top = (0, arb(0)) if law.cap is None else (law.cap, law.magnitude.power(law.cap))
        beyond = [top * sum(comb(j, i) * n ** (j - i) * s[i] for i in range(j + 1)) for j in range(5)]
        norm = 1 + 2 * (s[0] - beyond[0])
        return 2 * (s[1] - beyond[1]) / norm, 2 * (s[2] - beyond[2]) / norm, 2 * (s[4] - beyond[4]) / norm
