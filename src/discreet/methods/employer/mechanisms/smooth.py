"""Noise proportional to a cell's largest establishment: smooth sensitivity (Haney et al. 2017, §8.2). Proof:
smooth.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import LARGEST, Floats, Int64s, SymmetricMechanism
from discreet.methods.employer.mechanisms.parameters import (
    BITS,
    BOUND,
    MULTIPLES,
    check_alpha,
    check_level,
    check_numbers,
    check_pair,
    clamped_sum,
)
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.stream import Stream


@dataclass(frozen=True)
class SmoothMechanism(SymmetricMechanism, ABC):
    """count + c·S·Z, S = max(α·x, 1), x the cell's largest establishment; rounded, clamped to ± 2⁵¹."""

    alpha: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        object.__setattr__(self, "epsilon", positive_fraction("epsilon", self.epsilon))

    @property
    @abstractmethod
    def constant(self) -> Fraction:
        """c, rounded up."""

    @property
    @abstractmethod
    def noise(self) -> GridNoise:
        """c/q·Z on integers, α = p/q; a cell multiplies its scale by q·S = max(p·x, q)."""

    @abstractmethod
    def tail(self, z: Fraction) -> arb:
        """P(|Z| > z) for z ≥ 0."""

    @abstractmethod
    def mean_size(self) -> arb:
        """E|Z|."""

    @property
    def unit(self) -> tuple[Fraction, Fraction, Fraction]:
        """Scale, grid and bound of the noise of a cell whose multiple is 1."""
        return self.constant / self.alpha.denominator, Fraction(1), BOUND

    @cached_property
    def per_unit(self) -> float:
        """E|published − count| for S = 1, that is c·E|Z|, before rounding."""
        with ctx.workprec(BITS):
            return float(ball(self.constant) * self.mean_size())

    def multiples(self, largest: Int64s) -> Int64s:
        """q·S = max(p·x, q), integers: nothing of α·x is rounded."""
        p, q = self.alpha.numerator, self.alpha.denominator
        if largest.size and int(largest.max()) * p >= MULTIPLES:
            raise ParameterError(
                "alpha times the size of an establishment exceeds 62 bits",
                where="largest",
                do="write alpha with fewer digits",
            )
        return np.maximum(largest * p, q)

    def draw(self, counts: Int64s, largest: Int64s, stream: Stream, first: int) -> Int64s:
        """The published integers of cells first, first+1, …"""
        check_pair(counts, largest)
        return clamped_sum(counts, self.noise.draw(stream, first, counts.size, self.multiples(largest)))

    def mean_abs(self, counts: Floats, largest: Floats) -> Floats:  # noqa: ARG002 (the mechanisms' signature)
        """c·S·E|Z|."""
        return np.maximum(float(self.alpha) * largest, 1.0) * self.per_unit

    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k): half of P(|Z| > (k − count − ½)/(c·S)) above the count, by symmetry below."""
        if not -LARGEST < k <= LARGEST:
            return arb(int(k <= 0))
        scale = self.constant * int(self.multiples(np.array([largest]))[0]) / self.alpha.denominator
        z = (k - count - Fraction(1, 2)) / scale
        with ctx.workprec(max(ctx.prec, BITS)):
            return self.tail(z) / 2 if z > 0 else 1 - self.tail(-z) / 2

    def margin(self, level: Fraction, largest: Int64s) -> Int64s:
        """m = floor(c·S·G(1 − level) + ½), S of a public `largest`; clamping only reduces the error."""
        check_numbers("largest", largest)
        beyond = ball_quantile(self.noise, 1 - check_level(level))
        distinct, places = np.unique(self.multiples(largest), return_inverse=True)
        scale = beyond * self.constant / self.alpha.denominator
        margins = [min((2 * multiple * scale + 1) // 2, int(BOUND)) for multiple in distinct.tolist()]
        return np.array(margins, dtype=np.int64)[places]


def ball_quantile(noise: GridNoise, u: Fraction) -> Fraction:
    """An upper bound, as a fraction, on the z with P(|Z| > z) = u."""
    return rounded_up(lambda: noise.distribution.at(ball(u)))
