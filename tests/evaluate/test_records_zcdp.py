"""Per-record zCDP: its losses against formulas and integrals, its noise against its law."""

from __future__ import annotations

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from discreet.errors import KeyRefused, ParameterError
from discreet.evaluate.records_zcdp import UnitSplitting, as_epsilon, as_rho, fair, gaussian_delta
from discreet.noise.key import ReleaseKey

F = Fraction
KEY = ReleaseKey.simulation("records")
DELTA = F(1, 10**6)
ACCEPT, REJECT = 1e-6, 1e-20


@pytest.mark.parametrize("rho", [F(1, 100), F(1, 2), F(5)])
@pytest.mark.parametrize("epsilon", [F(1, 10), F(2), F(9)])
def test_delta_is_the_integral_of_the_excess(rho: Fraction, epsilon: Fraction) -> None:
    mu = sqrt(2 * rho)
    start = float(epsilon) / mu + mu / 2  # where the ratio of N(mu, 1) to N(0, 1) exceeds e^ε

    def excess(z: float) -> float:
        return stats.norm.pdf(z, mu) - exp(epsilon) * stats.norm.pdf(z)

    expected = quad(excess, start, start + 40, epsabs=1e-300, epsrel=1e-10, limit=500)[0]
    assert float(gaussian_delta(rho, epsilon)) == pytest.approx(expected, rel=1e-6)


def test_conversions_are_inverse_on_the_safe_side_and_beat_the_general_one() -> None:
    for rho in (F(1, 1000), F(1, 8), F(2), F(50)):
        epsilon = as_epsilon(rho, DELTA)
        assert float(gaussian_delta(rho, epsilon)) <= float(DELTA)
        assert float(gaussian_delta(rho, epsilon * F(999, 1000))) > float(DELTA)
        assert float(epsilon) < float(rho) + 2 * sqrt(float(rho) * np.log(1 / float(DELTA)))  # Bun & Steinke 2016
        assert as_rho(epsilon, DELTA) == pytest.approx(float(rho), rel=1e-9)
    assert as_epsilon(F(1, 10**20), F(1, 100)) == 0


def test_policy_and_losses() -> None:
    made = UnitSplitting(10, F(1, 4))
    assert [made.parts(x) for x in (1, 10, 11, 1000)] == [1, 1, 2, 100]
    assert made.policy(11) == 1
    assert made.change(100, 110) == F(1, 4)
    assert made.growth(100, F(1, 10)) == F(1, 4)
    assert made.growth(3, F(1, 10)) == F(1, 400)
    for x in range(1, 200):  # entering or leaving is a change by x, which the policy covers
        assert made.change(0, x) <= made.policy(x)


def test_fair_at_the_reference_weaker_above_stronger_below() -> None:
    alpha, epsilon = F(1, 10), F(2)
    made = fair(alpha, epsilon, DELTA, 100)
    losses = [float(as_epsilon(made.growth(x, alpha), DELTA)) for x in (10, 50, 100, 200, 1000)]
    assert losses == sorted(losses)
    assert losses[2] == pytest.approx(2, rel=1e-9)
    assert losses[2] <= 2
    assert losses[4] > 20
    assert made.mean_abs() == pytest.approx(float(made.noise.scale) * 0.7978845608, rel=1e-9)


def test_noise_has_its_scale_and_no_other() -> None:
    made = UnitSplitting(20, F(1, 2))
    noise = made.draw(np.zeros(100_000, np.int64), KEY, "t")
    for factor, accepted in ((1.0, True), (0.7, False), (1.3, False)):
        # Uniform dither undoes the rounding up to a part in σ².
        law = stats.norm(0, factor * float(made.noise.scale))
        p = stats.kstest(noise + np.random.default_rng(1).random(noise.size) - 0.5, law.cdf).pvalue
        assert (p > ACCEPT) if accepted else (p < REJECT)
    assert np.abs(noise).mean() == pytest.approx(made.mean_abs(), rel=0.02)


def test_refusals() -> None:
    with pytest.raises(KeyRefused):
        UnitSplitting(1, F(1)).draw(np.zeros(1, np.int64), ReleaseKey.generate(), "t")
    for bad in (lambda: UnitSplitting(0, F(1)), lambda: UnitSplitting(1, F(0)), lambda: as_epsilon(F(1), F(1))):
        with pytest.raises(ParameterError):
            bad()
    with pytest.raises(ParameterError, match="without use"):
        as_epsilon(F(10**8), DELTA)
