"""Per-record zCDP with unit splitting (Seeman, Sexton, Pujol & Machanavajjhala 2023): a comparator. Beyond 003.

There a public policy function of a record's value bounds that record's loss, instead of one ε for all. What is built
here is our reading: an establishment of x jobs counts as ⌈x/T⌉ records of at most T jobs, a cell gets N(0, T²/(2ρ)),
and the establishment's presence loses at most ρ·⌈x/T⌉² by group privacy. Large establishments are promised less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import pi, sqrt

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from discreet.errors import KeyRefused, ParameterError
from discreet.noise.balls import ball, positive_fraction, rounded_up
from discreet.noise.key import ReleaseKey
from discreet.noise.normal import Normal

Int64s = NDArray[np.int64]

BITS = 256
CLOSE = Fraction(1, 2**40)  # relative width at which a search ends; what it leaves is added
BOUND = Fraction(2**50)
LARGEST_LOSS = 2**20


@dataclass(frozen=True)
class UnitSplitting:
    """count + N(0, T²/(2ρ)), rounded to an integer."""

    threshold: int
    rho: Fraction

    def __post_init__(self) -> None:
        positive_fraction("rho", self.rho)
        if type(self.threshold) is not int or self.threshold < 1:
            raise ParameterError("a part has at least one job", where="threshold", do="give a positive integer")

    @cached_property
    def noise(self) -> Normal:
        """σ = T/√(2ρ), rounded up."""
        return Normal(rounded_up(lambda: self.threshold / ball(2 * self.rho).sqrt()), Fraction(1), BOUND)

    def parts(self, size: int) -> int:
        """⌈x/T⌉."""
        return -(-size // self.threshold)

    def policy(self, size: int) -> Fraction:
        """ρ·⌈x/T⌉²: the most that the presence of an establishment of x jobs loses. Public as a function."""
        return self.rho * self.parts(size) ** 2

    def change(self, size: int, other: int) -> Fraction:
        """(x − y)²/(2σ²) = ρ·((x − y)/T)²: what a change of size loses, exactly; noise is the same for both."""
        return self.rho * Fraction(size - other, self.threshold) ** 2

    def growth(self, size: int, alpha: Fraction) -> Fraction:
        """The loss of growth from x to (1+α)·x, or by one job if that is more."""
        return self.rho * (max(alpha * size, Fraction(1)) / self.threshold) ** 2

    def mean_abs(self) -> float:
        """σ·√(2/π), the same for every cell, before rounding."""
        return float(self.noise.scale) * sqrt(2 / pi)

    def draw(self, counts: Int64s, key: ReleaseKey, table: str) -> Int64s:
        """Published integers. For simulations: nothing is charged."""
        if not key.simulated:
            raise KeyRefused("a comparison has no ledger", where="key", do="use ReleaseKey.simulation")
        stream = key.stream("evaluate", table, b"per-record zcdp", "cells")
        return counts + self.noise.draw(stream, 0, counts.size).reshape(counts.shape)

    def in_words(self) -> str:
        return (
            f"count + normal noise of standard deviation {float(self.noise.scale):.4g}; an establishment of x jobs is "
            f"promised {float(self.rho):.4g}·⌈x/{self.threshold}⌉² (zCDP), so the larger the less"
        )


def gaussian_delta(rho: Fraction, epsilon: Fraction) -> arb:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), μ = √(2ρ): exact for normal noise (Balle & Wang 2018)."""
    with ctx.workprec(BITS):
        mu, root = ball(2 * rho).sqrt(), arb(2).sqrt()
        ratio = ball(epsilon) / mu
        return ((ratio - mu / 2) / root).erfc() / 2 - ball(epsilon).exp() * ((ratio + mu / 2) / root).erfc() / 2


def as_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The least ε, from above, at which normal noise of loss ρ keeps δ; 0 if δ is kept without."""
    positive_fraction("rho", rho)
    _check_delta(delta)
    low, high = Fraction(0), Fraction(1)
    if bool(gaussian_delta(rho, low) <= ball(delta)):
        return low
    while not bool(gaussian_delta(rho, high) <= ball(delta)):
        low, high = high, 2 * high
        if high > LARGEST_LOSS:
            raise ParameterError("a loss without use", where="rho", do="compare smaller establishments")
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if bool(gaussian_delta(rho, middle) <= ball(delta)) else (middle, high)
    return high


def as_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, from below, that (ε, δ) allows normal noise."""
    positive_fraction("epsilon", epsilon)
    _check_delta(delta)
    low, high = Fraction(0), Fraction(1)
    while bool(gaussian_delta(high, epsilon) <= ball(delta)):
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bool(gaussian_delta(middle, epsilon) <= ball(delta)) else (low, middle)
    return low


def fair(alpha: Fraction, epsilon: Fraction, delta: Fraction, reference: int) -> UnitSplitting:
    """The comparator that promises an establishment of the reference size what (α, ε)-privacy promises every one, but
    for δ: T = max(1, ⌊α·reference⌋), and ρ such that its growth by 1+α loses (ε, δ) exactly. Smaller establishments
    lose less, larger ones more. Only T/√ρ moves the errors."""
    threshold = max(1, int(positive_fraction("alpha", alpha) * reference))
    step = max(alpha * reference, Fraction(1)) / threshold
    return UnitSplitting(threshold, as_rho(epsilon, delta) / step**2)


def _check_delta(delta: Fraction) -> None:
    if not 0 < positive_fraction("delta", delta) < 1:
        raise ParameterError("delta lies strictly between 0 and 1", where="delta", do="give a small one")
