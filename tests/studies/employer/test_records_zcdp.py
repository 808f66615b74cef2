"""Per-record zCDP: its losses against formulas, its noise against its law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.errors import KeyRefused, ParameterError
from discreet.noise.key import ReleaseKey
from discreet.privacy.gaussian import as_epsilon
from discreet_studies.employer.comparators.records_zcdp import UnitSplitting, fair

F = Fraction
KEY = ReleaseKey.simulation("records")
DELTA = F(1, 10**6)
ACCEPT, REJECT = 1e-6, 1e-20


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
    for bad in (lambda: UnitSplitting(0, F(1)), lambda: UnitSplitting(1, F(0))):
        with pytest.raises(ParameterError):
            bad()
