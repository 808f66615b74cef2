"""What the spread of published estimates is made of: signal, sampling, privacy (004, Table 1). Of published numbers
and public parameters alone."""

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
