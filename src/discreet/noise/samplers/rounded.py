"""Exactly rounded functions of a uniform: min(floor(multiple·scale·G(U) + offset), limit). See rounded.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from flint import arb, ctx

from discreet.arrays import Floats, Int64s, Words
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import ball, unique_floor, upper_float

DEGREE = 6
BITS = 128  # precision at which tables are computed
ULP = 2.0**-53
LARGEST_LIMIT = 1 << 52  # results are exact in float64
ONE = np.ones(1, dtype=np.int64)


class QuantileFunction(Protocol):
    """A monotone G on (0, 1), evaluated rigorously at the working precision."""

    def at(self, u: arb) -> arb:
        """G(u)."""

    def series(self, u: arb, n: int) -> list[arb]:
        """Intervals of the first n Taylor coefficients of G at every point of u; not finite if unknown."""


@dataclass(frozen=True)
class Rounding:
    """The rule that maps a draw to an integer. The sign bit selects one of two distributions, mirrors, or is unused."""

    distributions: tuple[QuantileFunction, ...]
    scale: Fraction
    offset: Fraction
    limit: int
    mirror: bool

    def value(self, word: int, multiple: int) -> Callable[[arb], arb]:
        """U ↦ multiple·scale·G(U) + offset for the distribution selected by the word's sign bit."""
        distribution = self.distributions[(word >> 63) % len(self.distributions)]
        return lambda u: distribution.at(u) * ball(self.scale * multiple) + ball(self.offset)

    def resolve(self, word: int, more: Iterator[int], multiple: int) -> int:
        """One word's draw by interval arithmetic alone: the reference for the compiled path, and its fallback."""
        k = resolve(self.value(word, multiple), Uniform(word, more), self.limit)
        return -k if self.mirror and word >> 63 else k

    def draw(self, words: Words, multiples: Int64s, out: Int64s) -> int:
        """The compiled path over words (n, 1 or 2); returns its flags. Undecided draws are set to NOT_DRAWN."""
        table = rows_of(self.distributions), kernels.ROUNDED_BUCKETS if len(self.distributions) == 2 else 0
        to = float(self.scale), float(self.offset), float(self.limit)
        return int(kernels.rounded(words, *table, self.mirror, multiples, *to, out))


@lru_cache(maxsize=64)
def rows_of(distributions: tuple[QuantileFunction, ...]) -> Floats:
    """The kernel's rows for one distribution, or for two in sequence; each row is one cache line."""
    rows = np.concatenate([_distribution_rows(distribution) for distribution in distributions])
    space = np.zeros(rows.size + 8)
    start = (-space.ctypes.data // 8) % 8
    aligned = space[start : start + rows.size].reshape(rows.shape)
    aligned[:] = rows
    return aligned


def _distribution_rows(distribution: QuantileFunction) -> Floats:
    rows = np.zeros((kernels.ROUNDED_BUCKETS, DEGREE + 2))
    rows[:, -1] = np.inf
    with ctx.workprec(BITS):
        for row in range(1, kernels.ROUNDED_BUCKETS - 1):
            low, high = bucket_ends(row)
            rows[row] = _polynomial(distribution, low, high)
    return rows


def bucket_ends(row: int) -> tuple[Fraction, Fraction]:
    """The interval of U that a row covers."""
    octave, mantissa = divmod(row + kernels.ROUNDED_ORIGIN, kernels.PER_OCTAVE)
    width = Fraction(2) ** (octave - 1023 - kernels.MANTISSA - 63)
    low = (kernels.PER_OCTAVE + mantissa) * width
    return low, low + width


def _polynomial(distribution: QuantileFunction, low: Fraction, high: Fraction) -> list[float]:
    """Coefficients in t (U = centre + half·t), and a bound on the total error of the kernel's polynomial."""
    half = (high - low) / 2
    # A prefix represents an interval of U, and its conversion rounds: U may differ by this much, but not exceed 1.
    unread = Fraction(1, 2**64) + high / 2**52
    whole = ball(max(low - unread, Fraction(0))).union(ball(min(high + unread, Fraction(1))))
    enclosing = distribution.series(whole, DEGREE + 2)
    step = ball(half)
    coefficients = [c * step**i for i, c in enumerate(distribution.series(ball(low + half), DEGREE + 1))]
    remainder = upper_float(enclosing[DEGREE + 1] * step ** (DEGREE + 1))
    slope = upper_float(enclosing[1])
    if not all(c.is_finite() for c in coefficients) or not remainder < 2.0**-30 * upper_float(coefficients[0]):
        coefficients, remainder, slope = _chord(distribution, low, high, whole)
    if not all(c.is_finite() for c in coefficients) or not math.isfinite(slope):
        return [0.0] * (DEGREE + 1) + [math.inf]
    rounded = [float(c.mid()) for c in coefficients]
    stored = sum(upper_float(c - arb(r)) for c, r in zip(coefficients, rounded, strict=True))
    error = remainder + stored + _horner_error(rounded) + slope * float(unread) * (1 + 2.0**-20)
    return [*rounded, error * (1 + 2.0**-20)]


def _chord(distribution: QuantileFunction, low: Fraction, high: Fraction, whole: arb) -> tuple[list[arb], float, float]:
    """The chord, if G is convex or concave but not smooth: its error is ≤ width·|G'(high) − G'(low)|/4."""
    half = ball((high - low) / 2)
    ends = [distribution.at(ball(u)) for u in (low, high)]
    slopes = [distribution.series(ball(u), 2)[1] for u in (low, high)]
    line = [(ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2] + [arb(0)] * (DEGREE - 1)
    slope = max(upper_float(distribution.series(whole, 2)[1]), *(upper_float(s) for s in slopes))
    return line, upper_float(half * (slopes[1] - slopes[0]) / 2), slope


def _horner_error(coefficients: list[float]) -> float:
    """Running error bound of Horner's rule for |t| ≤ 1, t exact (Higham 2002, §5.1)."""
    size, error = abs(coefficients[-1]), 0.0
    for c in reversed(coefficients[:-1]):
        total = (size + abs(c)) * (1 + 4 * ULP)
        error += ULP * (size + total) * (1 + 8 * ULP)
        size = total + error
    return error


# --- draws that fixed-width arithmetic leaves undecided: read as many bits as necessary -----------------------------


class Uniform:
    """U in [0, 1), known to `bits` binary digits; `more` yields 64 further digits at a time."""

    def __init__(self, word: int, more: Iterator[int]) -> None:
        self.digits = word & (2**63 - 1)
        self.bits = 63
        self._more = more

    def read_on(self) -> None:
        """Read 64 further digits."""
        self.digits = self.digits << 64 | next(self._more)
        self.bits += 64

    def ends(self) -> tuple[arb, arb]:
        """The smallest and the largest possible value of U (exact at a precision above `bits`)."""
        return arb((self.digits, -self.bits)), arb((self.digits + 1, -self.bits))


def resolve(value: Callable[[arb], arb], uniform: Uniform, limit: int) -> int:
    """min(floor(value(U)), limit) for a monotone function: read digits until both ends of U's interval round alike."""
    while True:
        # More than twice the digits: what this precision cannot decide, further digits will.
        with ctx.workprec(2 * uniform.bits + 128):
            low, high = (_floor(value(end), limit) for end in uniform.ends())
        if low is not None and low == high:
            return low
        uniform.read_on()


def _floor(y: arb, limit: int) -> int | None:
    if y.is_finite() and y > limit:
        return limit
    return unique_floor(y)


def decide_open_draws(
    rounding: Rounding, words: Words, more: Callable[[int], Iterable[int]], multiples: Int64s, out: Int64s
) -> None:
    """Decide the draws that the compiled path left undecided; `more(i)` gives the words of draw i after the first."""
    for i in np.flatnonzero(out == kernels.NOT_DRAWN).tolist():
        multiple = int(multiples[i if multiples.size > 1 else 0])
        out[i] = rounding.resolve(int(words[i, 0]), iter(more(i)), multiple)
