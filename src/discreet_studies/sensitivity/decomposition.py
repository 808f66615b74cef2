"""What the spread of published estimates is made of: signal, sampling, privacy (004, Table 1); and what noise does to
slopes and correlations (004, §IV, note 10). Of published numbers and public parameters alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.weighted import variance, weighted


@dataclass(frozen=True)
class Shares:
    """Parts of the weighted variance of noisy estimates; they add to 1.

    Signal is a remainder, so chance may make it negative: then nothing but noise is to be seen.
    """

    signal: float
    sampling: float
    privacy: float

    @property
    def reliability(self) -> float:
        """Signal's part of the variance."""
        return self.signal


def decomposition(estimates: ArrayLike, errors: ArrayLike, noise_variances: ArrayLike, weights: ArrayLike) -> Shares:
    """Var(θ̃) = signal + E[SE(θ)²] + E[2(χ/(εN))²], each weighted (004, Table 1, note).

    `errors` are standard errors of sampling alone, without the noise of privacy.
    """
    found, error, noise, weight = weighted(estimates, errors, noise_variances, weights)
    total = variance(found, weight)
    if not total > 0:
        raise ParameterError(
            "the estimates do not differ, so there is nothing to part", where="estimates", do="give more cells"
        )
    sampling, privacy = (float(np.average(part, weights=weight)) / total for part in (error**2, noise))
    return Shares(1 - sampling - privacy, sampling, privacy)


@dataclass(frozen=True)
class Association:
    """Slope of y on x and correlation, as the noisy numbers show them and without what noise does to them.

    Noise in y only lowers the correlation; noise in x lowers both. A corrected correlation is an estimate: chance may
    put it outside −1 … 1, and it is not cut.
    """

    slope: float
    correlation: float
    noisy_slope: float
    noisy_correlation: float
    reliability_x: float  # (Var x̃ − σ²) / Var x̃
    reliability_y: float


def corrected_correlation(
    x: ArrayLike,
    y: ArrayLike,
    noise_variance_y: ArrayLike = 0.0,
    noise_variance_x: ArrayLike = 0.0,
    weights: ArrayLike = 1.0,
) -> Association:
    """ρ = ρ̃/√(λ_x λ_y) and β = β̃/λ_x, λ the share of variance that is not noise (Fuller 1987, ch. 1).

    Noises of x and of y are independent of each other and of the truth; a variance is one number, or one a cell.
    """
    left, right, noise_x, noise_y, weight = weighted(x, y, noise_variance_x, noise_variance_y, weights)
    spread_x, spread_y = variance(left, weight), variance(right, weight)
    lambda_x = _reliability("x", spread_x, float(np.average(noise_x, weights=weight)))
    lambda_y = _reliability("y", spread_y, float(np.average(noise_y, weights=weight)))
    centred = left - np.average(left, weights=weight)
    together = float(np.average(centred * right, weights=weight))
    slope, correlation = together / spread_x, together / float(np.sqrt(spread_x * spread_y))
    corrected = correlation / float(np.sqrt(lambda_x * lambda_y))
    return Association(slope / lambda_x, corrected, slope, correlation, lambda_x, lambda_y)


def _reliability(name: str, spread: float, noise: float) -> float:
    if not spread > noise:
        raise ParameterError(
            f"{name} varies no more than its noise alone would: nothing is left to correct by",
            where=f"noise_variance_{name}",
            do="use more cells, larger cells or a larger epsilon",
        )
    return (spread - noise) / spread
