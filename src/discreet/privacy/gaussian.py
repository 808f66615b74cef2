"""Exact (ε, δ) of Gaussian noise (Balle & Wang 2018; Dong, Roth & Su 2022). Proof: gaussian.md.

Gaussian noise of standard deviation σ on a number of sensitivity Δ has ρ = Δ²/(2σ²). The ρ of several releases add up,
and together they are as private as one release with the sum of their ρ. The noise √2·Δ/ε·N(0, 1) of Chetty & Friedman
2019, Step 4, has ρ = ε²/4: the variance of Laplace noise at the same ε, but not its privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, exact_fraction, few_digits_above, positive_fraction

BITS = 256
CLOSE = Fraction(1, 2**40)  # relative width at which a search ends; what it leaves is added
LARGEST_LOSS = 2**20
FINE = 1000  # a shown ε is rounded up to 1/FINE


def gaussian_delta(rho: Fraction, epsilon: Fraction, bits: int = BITS) -> arb:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), μ = √(2ρ): exact for Gaussian noise (Balle & Wang 2018)."""
    with ctx.workprec(bits):
        mu, root = ball(2 * rho).sqrt(), arb(2).sqrt()
        ratio = ball(epsilon) / mu
        return ((ratio - mu / 2) / root).erfc() / 2 - ball(epsilon).exp() * ((ratio + mu / 2) / root).erfc() / 2


def as_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The least ε, rounded up, at which Gaussian noise of this ρ is (ε, δ)-private; 0 if it is (0, δ)-private."""
    positive_fraction("rho", rho)
    _check_delta(delta)
    low, high = Fraction(0), Fraction(1)
    if bool(gaussian_delta(rho, low) <= ball(delta)):
        return low
    while not bool(gaussian_delta(rho, high) <= ball(delta)):
        low, high = high, 2 * high
        if high > LARGEST_LOSS:
            raise ParameterError(
                "the privacy loss is too large", where="rho", do="add more noise, or compare smaller ones"
            )
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if bool(gaussian_delta(rho, middle) <= ball(delta)) else (middle, high)
    return high


def as_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down, at which Gaussian noise is (ε, δ)-private."""
    positive_fraction("epsilon", epsilon)
    _check_delta(delta)
    low, high = Fraction(0), Fraction(1)
    while bool(gaussian_delta(high, epsilon) <= ball(delta)):
        low, high = high, 2 * high
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bool(gaussian_delta(middle, epsilon) <= ball(delta)) else (low, middle)
    return low


def nominal_rho(nominal: Sequence[Fraction]) -> Fraction:
    """ρ = Σ ε_i²/4 of releases of one cell with noise √2·Δ_i/ε_i·N(0, 1) each (Chetty & Friedman 2019, Step 4)."""
    if not nominal:
        raise ParameterError("no release", where="nominal", do="give the epsilon of each release of a cell")
    return sum((positive_fraction("nominal epsilon", epsilon) ** 2 for epsilon in nominal), Fraction(0)) / 4


def true_delta(nominal: Sequence[Fraction], at: Fraction) -> Fraction:
    """The δ at ε = `at` of releases with these nominal ε, rounded up to 6 digits: what "ε-private" omits.

    >>> float(true_delta([Fraction(8)], Fraction(8)))
    0.888425
    """
    rho = nominal_rho(nominal)
    if exact_fraction("at", at) < 0:
        raise ParameterError("epsilon is negative", where="at", do="give 0 or more")
    return min(few_digits_above(lambda: gaussian_delta(rho, at, max(BITS, ctx.prec))), Fraction(1))


def true_epsilon(nominal: Sequence[Fraction], delta: Fraction) -> Fraction:
    """An ε, in thousandths, such that releases with these nominal ε are (ε, δ)-private; the next below is not.

    >>> float(true_epsilon([Fraction(8)], Fraction(1, 10**6)))
    42.166
    """
    return Fraction(ceil(as_epsilon(nominal_rho(nominal), delta) * FINE), FINE)


def _check_delta(delta: Fraction) -> None:
    if not 0 < positive_fraction("delta", delta) < 1:
        raise ParameterError("delta lies strictly between 0 and 1", where="delta", do="give a small one")
