"""Per-record zCDP with unit splitting (Seeman, Sexton, Pujol & Machanavajjhala 2023): a comparator.

There a public policy function of a record's value bounds that record's privacy loss, instead of one ε for all. This is
our interpretation: an establishment of x jobs counts as ⌈x/T⌉ records of at most T jobs, a cell gets N(0, T²/(2ρ)),
and the establishment's presence loses at most ρ·⌈x/T⌉² by group privacy. Large establishments have a weaker guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import pi, sqrt

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.privacy.gaussian import as_rho


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
    def scale(self) -> Fraction:
        """σ = T/√(2ρ), rounded up."""
        return rounded_up(lambda: self.threshold / ball(2 * self.rho).sqrt())

    def growth(self, size: int, alpha: Fraction) -> Fraction:
        """(x − y)²/(2σ²) = ρ·((x − y)/T)² of growth from x to (1+α)·x, or by one job if that is more: exactly, as both
        have the same noise."""
        return self.rho * (max(alpha * size, Fraction(1)) / self.threshold) ** 2

    def mean_abs(self) -> float:
        """σ·√(2/π), the same for every cell, before rounding."""
        return float(self.scale) * sqrt(2 / pi)


def equal_at_reference(alpha: Fraction, epsilon: Fraction, delta: Fraction, reference: int) -> UnitSplitting:
    """The comparator that gives an establishment of the reference size the guarantee of (α, ε)-privacy, up to
    δ: T = max(1, ⌊α·reference⌋), and ρ such that its growth by 1+α loses (ε, δ) exactly. Smaller establishments
    lose less, larger ones more. Errors depend only on T/√ρ."""
    threshold = max(1, int(positive_fraction("alpha", alpha) * reference))
    step = max(alpha * reference, Fraction(1)) / threshold
    return UnitSplitting(threshold, as_rho(epsilon, delta) / step**2)
