"""Log-Laplace: multiplicative noise (Haney et al. 2017, Algorithm 1), with its bias removed. Proof: log_laplace.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from flint import arb, ctx

from discreet.methods.employer.mechanisms import LARGEST, BaseMechanism, Floats, Int64s
from discreet.methods.employer.mechanisms.parameters import (
    BITS,
    check_alpha,
    check_choice,
    check_level,
    check_pair,
    least,
    log1p,
    refuse,
)
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.noise.samplers.log_laplace import LogLaplace as Noise
from discreet.noise.stream import Stream

Scale = Literal["tight", "printed"]
HALF = Fraction(1, 2)
ROUNDINGS = 2.0**-48  # slack of limits in floats: more than their few rounding errors


@dataclass(frozen=True)
class LogLaplace(BaseMechanism):
    """(n + γ)·f·e^(λZ) − γ, γ = 1/α, Z Laplace; rounded, clamped to 2⁵¹. λ < 1, else there is no expectation.

    tight: λ = ln(1+α)/ε; printed: twice that (Algorithm 1). unbiased: f = 1 − λ², else 1. `largest` is not used: for
    marginals of establishments, or under weak privacy; not for worker attributes under strong privacy.
    """

    name: ClassVar[str] = "log-laplace"
    delta: ClassVar[Fraction] = Fraction(0)  # the bound is pure
    alpha: Fraction
    epsilon: Fraction
    scale: Scale = "tight"
    unbiased: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        object.__setattr__(self, "epsilon", positive_fraction("epsilon", self.epsilon))
        check_choice("scale", self.scale, ("tight", "printed"))
        if not _admissible(self.alpha, self.epsilon, self.scale):
            raise refuse(
                f"epsilon does not exceed {_times(self.scale)}·ln(1+alpha), so the noise has no expectation",
                self.least_epsilon(self.alpha, scale=self.scale),
            )

    @classmethod
    def least_epsilon(cls, alpha: Fraction, *, scale: Scale = "tight") -> Fraction:
        """The first decimal above ln(1+α), or above twice that for the printed scale."""
        exact = check_alpha(alpha)
        check_choice("scale", scale, ("tight", "printed"))
        return least(lambda: _times(scale) * log1p(exact), lambda e: _admissible(exact, e, scale))

    @cached_property
    def exponent(self) -> Fraction:
        """λ, rounded up."""
        return _exponent(self.alpha, self.epsilon, self.scale)

    @cached_property
    def factor(self) -> Fraction:
        """f: 1 − λ² removes the bias, as E e^(λZ) = 1/(1 − λ²) (Haney et al. 2017, Lemma 8.2)."""
        return 1 - self.exponent**2 if self.unbiased else Fraction(1)

    @cached_property
    def noise(self) -> Noise:
        """On integers, clamped to 2⁵¹ itself: what is drawn is the published number."""
        return Noise(self.exponent, 1 / self.alpha, Fraction(1), Fraction(LARGEST), self.factor)

    @cached_property
    def per_unit(self) -> float:
        """E|f·e^(λZ) − 1| = λ/(1−λ)·f^(1/λ) + 1 − f/(1−λ²): λ/(1−λ²) if biased; in units of n + γ, before rounding."""
        with ctx.workprec(BITS):
            power = (ball(self.factor).log() * ball(1 / self.exponent)).exp()
            over, bias = self.exponent / (1 - self.exponent), 1 - self.factor / (1 - self.exponent**2)
            return float(ball(over) * power + ball(bias))

    def draw(self, counts: Int64s, largest: Int64s, stream: Stream, first: int) -> Int64s:
        """The published integers of cells first, first+1, …; `largest` is not used."""
        check_pair(counts, largest)
        return self.noise.draw(counts, stream, first)

    def mean_abs(self, counts: Floats, largest: Floats) -> Floats:  # noqa: ARG002 (the mechanisms' signature)
        """(n + γ)·E|f·e^(λZ) − 1|."""
        return (counts + float(1 / self.alpha)) * self.per_unit

    def upper(self, count: int, largest: int, k: int) -> arb:  # noqa: ARG002
        """P(published ≥ k) = P(e^(λZ) ≥ ρ), ρ = (k − ½ + γ)/((n + γ)f): ½ρ^(−1/λ) above 1, 1 − ½ρ^(1/λ) below."""
        if k > LARGEST:
            return arb(0)
        ratio = self._ratio(count, k - HALF)
        with ctx.workprec(max(ctx.prec, BITS)):
            return self._half(1 / ratio) if ratio > 1 else 1 - self._half(ratio)

    def lower(self, count: int, largest: int, k: int) -> arb:  # noqa: ARG002
        """P(published ≤ k), without subtraction from 1 where it is small."""
        if k >= LARGEST:
            return arb(1)
        ratio = self._ratio(count, k + HALF)
        with ctx.workprec(max(ctx.prec, BITS)):
            return self._half(ratio) if ratio <= 1 else 1 - self._half(1 / ratio)

    def _ratio(self, count: int, value: Fraction) -> Fraction:
        return (value + 1 / self.alpha) / ((count + 1 / self.alpha) * self.factor)

    def _half(self, ratio: Fraction) -> arb:
        return (ball(ratio).log() * ball(1 / self.exponent)).exp() / 2 if ratio > 0 else arb(0)

    def limits(self, published: Int64s, level: Fraction) -> tuple[Int64s, Int64s]:
        """A confidence interval for the count at this level, from the published number alone:
        (k ∓ ½ + γ)/(f·(1 − level)^∓λ) − γ, rounded outwards and clamped to 0 … 2⁵¹: multiplicative in k + γ."""
        shift = float(1 / self.alpha)
        with ctx.workprec(BITS):
            under, above = (float(1 / factor) for factor in self.noise.margin_factors(check_level(level))[::-1])
        ends = ((published - 0.5 + shift) * under - shift, (published + 0.5 + shift) * above - shift)
        slack = (np.abs(published) + shift + 1.0) * above * ROUNDINGS
        low, high = np.floor(ends[0] - slack), np.ceil(ends[1] + slack)
        high[published >= LARGEST] = LARGEST  # clamped: only the lower limit is known
        return np.clip(low, 0, LARGEST).astype(np.int64), np.clip(high, 0, LARGEST).astype(np.int64)

    def describe(self) -> str:
        form = f"{float(self.factor):.6g}·" if self.unbiased else ""
        return (
            f"(count + 1/α)·{form}e^(λZ) − 1/α, λ = {float(self.exponent):.4g}, Z Laplace; "
            f"{'unbiased' if self.unbiased else 'biased upwards'}; rounded to integers"
        )


def _times(scale: Scale) -> int:
    return 1 if scale == "tight" else 2


def _exponent(alpha: Fraction, epsilon: Fraction, scale: Scale) -> Fraction:
    return rounded_up(lambda: _times(scale) * log1p(alpha) / ball(epsilon))


def _admissible(alpha: Fraction, epsilon: Fraction, scale: Scale) -> bool:
    return _exponent(alpha, epsilon, scale) < 1
