"""Distribution of a sum of N independent discrete Laplace draws of one rate: probabilities and margins of error.

With a = e^−rate the characteristic function of one draw is (1 − a)²/(1 − 2a·cos θ + a²) = 1/(1 + 2V·sin²(θ/2)), where
V = 2a/(1 − a)² is its variance; the fourth cumulant is V(1 + 3V). The sum's probabilities are the Fourier transform of
the N-th power, on a fft_grid so large that less than e^−40 of the mass lies outside.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, sqrt
from statistics import NormalDist

import numpy as np

from discreet.arrays import Floats
from discreet.errors import ParameterError

OUTSIDE = 40.0  # −ln of the aliased mass of the transform
WIDEST = 2**19  # largest support that is computed by Fourier transform
MANY = 256  # summands from which an expansion replaces a transform that would be too wide
COARSE = Fraction(1, 1024)  # for smaller rates the distribution at this rate is rescaled
SILENT = 64.0  # larger rates are treated as this one: a sum of 10^12 such draws is 0 at any level in use


def clamped_rate(rate: Fraction) -> float:
    """The rate in double precision, clamped to SILENT: exponentials would overflow."""
    if rate <= 0:
        raise ParameterError(
            "the rate of the noise is not positive", where="rate", do="give the rate of the noisy measurement"
        )
    return float(min(rate, Fraction(SILENT)))


def variance(rate: float) -> float:
    """V = 2a/(1 − a)²."""
    return 2 * exp(-rate) / expm1(-rate) ** 2


def fourth_cumulant(rate: float) -> float:
    """V(1 + 3V)."""
    v = variance(rate)
    return v * (1 + 3 * v)


def log_phi(rate: float, angles: Floats) -> Floats:
    """The logarithm of the characteristic function of one draw."""
    log: Floats = -np.log1p(2 * variance(rate) * np.sin(angles / 2) ** 2)
    return log


def support_radius(rate: float, summands: int) -> int:
    """An m with P(|sum| > m) ≤ 2·e^−40: the smallest Chernoff bound over a grid of tilts λ < rate."""
    if summands == 0:
        return 0
    tilts = rate * np.arange(1, 64) / 64
    grown = -summands * np.log1p(-2 * variance(rate) * np.sinh(tilts / 2) ** 2)
    return ceil(float(((grown + OUTSIDE) / tilts).min()))


def inverse_transform(log: Floats, size: int) -> Floats:
    """Probabilities of 0 … size/2 − 1 of a symmetric distribution, from its log characteristic function at 2πk/size."""
    half: Floats = np.maximum(np.fft.irfft(np.exp(log), size)[: size // 2], 0.0)
    return half


def fft_grid(reach: int) -> tuple[int, Floats]:
    """A power of two that holds −reach … reach, and the angles 0 … π of its transform."""
    size = 1 << (2 * reach + 2).bit_length()
    return size, np.arange(size // 2 + 1, dtype=np.float64) * (2 * np.pi / size)


def half_pmf(rate: float, summands: int) -> Floats:
    """P(sum = k) for k = 0 … m, P(|sum| > m) ≤ 2·e^−40; the distribution is symmetric.

    >>> (half_pmf(1.0, 1)[:2] * (1 + exp(-1)) / (1 - exp(-1))).round(12).tolist()  # 1 and 1/e
    [1.0, 0.367879441171]
    """
    reach = support_radius(rate, summands)
    size, angles = fft_grid(reach)
    return inverse_transform(summands * log_phi(rate, angles), size)[: reach + 1]


def expansion(level: Fraction) -> tuple[float, float]:
    """z and e such that σz + e·κ₄/σ³ is the margin at `level` of a symmetric distribution (Cornish and Fisher 1938)."""
    z = NormalDist().inv_cdf(float((1 + level) / 2))
    return z, (z**3 - 3 * z) / 24


def check_level(level: Fraction) -> None:
    """A level is an exact fraction strictly between 0 and 1."""
    if type(level) is not Fraction:
        raise ParameterError(
            f"a level is an exact fraction, not a {type(level).__name__}",
            where="level",
            do="write Fraction(19, 20) for 0.95",
        )
    if not 0 < level < 1:
        raise ParameterError("a level lies strictly between 0 and 1", where="level", do="try Fraction(9, 10)")


@lru_cache(maxsize=4096)
def count_margin(rate: Fraction, summands: int, level: Fraction = Fraction(9, 10)) -> int:
    """Margin of error: the smallest m with P(|sum| ≤ m) ≥ level; approximate where the support is too wide.

    Beyond WIDEST it is a Cornish–Fisher expansion for MANY and more summands, else a rescaled distribution.

    >>> count_margin(Fraction(1), 1), count_margin(Fraction(1), 21)
    (2, 10)
    """
    check_level(level)
    r = clamped_rate(rate)
    if support_radius(r, summands) <= WIDEST:
        below = np.cumsum(half_pmf(r, summands) * 2)
        return int(np.searchsorted(below - below[0] / 2, float(level)))
    if summands >= MANY:
        z, e = expansion(level)
        deviation = sqrt(summands * variance(r))
        return ceil(deviation * z + e * summands * fourth_cumulant(r) / deviation**3)
    stretch = sqrt(variance(r) / variance(float(COARSE)))
    return ceil((count_margin(COARSE, summands, level) + 0.5) * stretch)


@lru_cache(maxsize=4096)
def upper_tail(rate: Fraction, summands: int, least: int) -> float:
    """P(sum ≥ least), least > 0; by the normal approximation where the support is too wide.

    >>> round(upper_tail(Fraction(1), 1, 1), 6)  # a/(1 + a), a = 1/e
    0.268941
    """
    r = clamped_rate(rate)
    if support_radius(r, summands) <= WIDEST:
        return float(half_pmf(r, summands)[least:].sum())
    return 1 - NormalDist(0, sqrt(summands * variance(r))).cdf(least - 0.5)
