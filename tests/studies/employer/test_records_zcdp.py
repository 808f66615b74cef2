"""Per-record zCDP: its losses and its error against formulas."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.errors import ParameterError
from discreet.privacy.gaussian import as_epsilon
from discreet_studies.employer.comparators.records_zcdp import UnitSplitting, equal_at_reference

F = Fraction
DELTA = F(1, 10**6)


def test_losses() -> None:
    made = UnitSplitting(10, F(1, 4))
    assert made.growth(100, F(1, 10)) == F(1, 4)
    assert made.growth(3, F(1, 10)) == F(1, 400)


def test_guarantee_is_equal_at_the_reference_weaker_above_stronger_below() -> None:
    alpha, epsilon = F(1, 10), F(2)
    made = equal_at_reference(alpha, epsilon, DELTA, 100)
    losses = [float(as_epsilon(made.growth(x, alpha), DELTA)) for x in (10, 50, 100, 200, 1000)]
    assert losses == sorted(losses)
    assert losses[2] == pytest.approx(2, rel=1e-9)
    assert losses[2] <= 2
    assert losses[4] > 20
    assert made.mean_abs() == pytest.approx(float(made.scale) * 0.7978845608, rel=1e-9)


def test_refusals() -> None:
    for bad in (lambda: UnitSplitting(0, F(1)), lambda: UnitSplitting(1, F(0))):
        with pytest.raises(ParameterError):
            bad()
