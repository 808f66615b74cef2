"""A hundred million draws per distribution: enough to detect a deviation of 0.3%. Only in `make test-full`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace

pytestmark = pytest.mark.full
DRAWS, RANGE, TOP = 10**8, 1 << 20, 200


def p_value(observed: np.ndarray[tuple[int], np.dtype[np.int64]], rate: float, cap: int | None) -> float:
    k = np.arange(-TOP, TOP + 1)
    weight = np.exp(-rate * np.abs(k)) * (np.abs(k) <= (TOP if cap is None else cap))
    if cap is None:  # the tails beyond, in the last places
        weight[[0, -1]] /= -np.expm1(-rate)
    expected = weight / weight.sum() * DRAWS
    common = expected >= 10
    expected = np.append(expected[common], expected[~common].sum())
    observed = np.append(observed[common], observed[~common].sum())
    kept = expected > 0
    return float(stats.chisquare(observed[kept], expected[kept]).pvalue)


@pytest.mark.parametrize(("rate", "cap"), [("1/10", None), ("1/100", 40), ("3/2", None), ("2", 7), ("6", None)])
def test_a_hundred_million_draws(rate: str, cap: int | None) -> None:
    distribution = DiscreteLaplace(Fraction(rate), cap)
    stream = ReleaseKey.simulation("many draws").stream("release", "table", b"", rate)
    observed = np.zeros(2 * TOP + 1, np.int64)
    for first in range(0, DRAWS, RANGE):
        noise = distribution.draw(stream, first, min(RANGE, DRAWS - first))
        observed += np.bincount(np.clip(noise, -TOP, TOP) + TOP, minlength=2 * TOP + 1)
    assert p_value(observed, float(distribution.rate), cap) > 1e-6
    if cap is None:
        assert p_value(observed, float(distribution.rate) * 1.003, cap) < 1e-20
        assert p_value(np.roll(observed, 1), float(distribution.rate), cap) < 1e-20
