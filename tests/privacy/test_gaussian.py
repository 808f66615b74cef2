"""The privacy of Gaussian noise: against integrals, rounded up, and the true (ε, δ) of Chetty & Friedman (2019)."""

from __future__ import annotations

import doctest
from fractions import Fraction
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball
from discreet.privacy import gaussian
from discreet.privacy.gaussian import as_epsilon, as_rho, gaussian_delta, nominal_rho, true_delta, true_epsilon
from support.hypothesis_profile import examples

F = Fraction
DELTA = F(1, 10**6)
properties = examples(40)
nominals = st.lists(st.fractions(F(1, 20), F(20), max_denominator=50), min_size=1, max_size=4)


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
        assert bool(gaussian_delta(rho, epsilon) <= ball(DELTA))
        assert bool(gaussian_delta(rho, epsilon * F(999, 1000)) > ball(DELTA))
        assert float(epsilon) < float(rho) + 2 * sqrt(float(rho) * np.log(1 / float(DELTA)))  # Bun & Steinke 2016
        assert as_rho(epsilon, DELTA) == pytest.approx(float(rho), rel=1e-9)
    assert as_epsilon(F(1, 10**20), F(1, 100)) == 0


@properties
@given(nominals, st.fractions(F(0), F(60), max_denominator=10))
def test_delta_is_rounded_up_to_six_digits(nominal: list[Fraction], at: Fraction) -> None:
    actual, exact = true_delta(nominal, at), gaussian_delta(nominal_rho(nominal), at, 1024)
    assert 0 < actual <= 1
    assert bool(exact < ball(actual))
    assert bool(ball(actual) <= exact * ball(1 + F(2, 10**5)) + ball(F(2, 10**36)))
    assert (actual * 10**36).denominator == 1


@properties
@given(nominals)
def test_epsilon_keeps_delta_and_the_next_below_does_not(nominal: list[Fraction]) -> None:
    actual, rho = true_epsilon(nominal, DELTA), nominal_rho(nominal)
    assert (actual * 1000).denominator == 1
    assert bool(gaussian_delta(rho, actual) <= ball(DELTA))
    assert actual == 0 or bool(gaussian_delta(rho, actual - F(1, 1000)) > ball(DELTA))


def test_releases_compose_like_one_of_the_root_of_the_sum_of_squares() -> None:
    assert nominal_rho([F(3), F(4)]) == nominal_rho([F(5)]) == F(25, 4)
    assert true_epsilon([F(3), F(4)], DELTA) == true_epsilon([F(5)], DELTA)
    assert true_epsilon([F(8)] * 4, DELTA) == true_epsilon([F(16)], DELTA)
    assert true_delta([F(3), F(4)], F(7)) == true_delta([F(5)], F(7))


def test_delta_from_the_losses_of_drawn_noise() -> None:
    """E max(0, 1 − e^(ε − loss)) over draws of the vector of three releases, and not that of one alone."""
    nominal, at = [F(2), F(3), F(1)], 4.0
    mu = np.array([float(e) / sqrt(2) for e in nominal])
    z = np.random.default_rng(7).normal(size=(1_000_000, 3)) + mu
    gain = np.maximum(0.0, 1 - np.exp(at - (z @ mu - mu @ mu / 2)))
    error = gain.std() / 1000
    assert abs(gain.mean() - float(true_delta(nominal, F(4)))) < 5 * error
    assert abs(gain.mean() - float(true_delta(nominal[1:2], F(4)))) > 10 * error


def test_tiny_and_huge_privacy_losses() -> None:
    assert true_delta([F(1, 100)], F(8)) == F(1, 10**36)
    assert true_delta([F(1000)], F(0)) == 1
    assert true_epsilon([F(1, 10**10)], F(1, 100)) == 0


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="too large"):
        as_epsilon(F(10**8), DELTA)
    with pytest.raises(ParameterError, match="negative"):
        true_delta([F(1)], F(-1))
    with pytest.raises(ParameterError, match="no release"):
        true_epsilon([], DELTA)
    for delta in (F(0), F(1), F(2)):
        with pytest.raises(ParameterError):
            true_epsilon([F(1)], delta)
    for nominal in (0.5, F(0), F(-1)):
        with pytest.raises(ParameterError):
            true_delta([nominal], F(1))  # type: ignore[list-item]


def test_the_proof_runs() -> None:
    page = Path(gaussian.__file__).with_suffix(".md")
    assert doctest.testfile(str(page), module_relative=False).failed == 0
    assert doctest.testmod(gaussian).failed == 0
