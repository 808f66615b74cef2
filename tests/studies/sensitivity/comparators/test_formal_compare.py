"""The comparison: every method's row, maximum observed sensitivity labelled, the proof's examples."""

from __future__ import annotations

import doctest
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet_studies.sensitivity.comparators as package
from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators.compare import MethodErrors, compare, methods, observed
from discreet_studies.sensitivity.comparators.moments import Moments

F = Fraction
KEY = ReleaseKey.simulation("formal compare")
X0 = F(1, 4)
SENSITIVITY = 0.02


def rows(epsilon: int) -> dict[str, MethodErrors]:
    rng = np.random.default_rng(5)
    cells, n = 200, 200
    x = rng.random(cells * n)
    y = np.clip(0.4 + 0.3 * (x - 0.25) + rng.normal(0, 0.15, x.size), 0, 1)
    epsilon_choices = methods(X0, F(epsilon), F(1, 10**6), n)
    actual = compare(
        x,
        y,
        np.arange(cells + 1, dtype=np.int64) * n,
        epsilon_choices,
        KEY,
        x0=X0,
        epsilon=F(epsilon),
        sensitivity=np.full(cells, SENSITIVITY),
    )
    return {row.method: row for row in actual}


def test_every_method_has_its_row_and_its_guarantee() -> None:
    actual = rows(8)
    assert len(actual) == 7
    assert not actual["maximum observed sensitivity"].formal
    assert "not formally private" in actual["maximum observed sensitivity"].guarantee
    assert not actual["least squares"].formal
    assert actual["least squares"].against_ols.rmse == 0
    for name in ("noisystats add-remove", "noisystats substitution", "theil-sen", "smooth line", "private chi"):
        assert actual[name].formal
        assert actual[name].guarantee.startswith("epsilon 8")
    assert "public" in actual["noisystats substitution"].guarantee
    assert "epsilon 16 when one is replaced" in actual["smooth line"].guarantee
    assert "delta" in actual["private chi"].guarantee
    assert actual["smooth line"].against_ols.rmse < actual["noisystats add-remove"].against_ols.rmse


def test_maximum_observed_sensitivity_has_the_stated_noise() -> None:
    """Mean |error| = χ/(ε·N), χ from the cell with the most."""
    cells, n = 4000, 100
    x = np.tile((np.arange(n) + 0.5) / n, cells)
    m = Moments.of(x, np.full(x.size, 0.5), np.arange(cells + 1, dtype=np.int64) * n)
    sensitivity = np.full(cells, 0.01)
    sensitivity[7] = SENSITIVITY
    error = np.abs(observed(m, sensitivity, X0, F(2), KEY).values - 0.5)
    assert 0.95 < error.mean() / (SENSITIVITY / 2) < 1.05


def test_without_any_finite_sensitivity_there_is_no_chi() -> None:
    m = Moments.of(np.array([0.1, 0.9]), np.array([0.1, 0.9]), np.array([0, 2], dtype=np.int64))
    with pytest.raises(ParameterError):
        observed(m, np.array([np.inf]), X0, F(2), KEY)


def test_the_examples_of_the_proof_run() -> None:
    path = Path(package.__file__).with_name("formal.md")
    actual = doctest.testfile(str(path), module_relative=False)
    assert actual.attempted
    assert not actual.failed
