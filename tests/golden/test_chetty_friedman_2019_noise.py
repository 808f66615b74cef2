"""The noise of Chetty & Friedman 2019: its √2, and the cost of normal noise at the Opportunity Atlas's ε = 8."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.integrate import quad

from discreet.noise.interval_arithmetic import ball, rounded_up
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.samplers.normal import Normal
from discreet.privacy.gaussian import true_delta, true_epsilon

F = Fraction
CHI, EPSILON, COUNT = F(13), F(8), F(50)
SCALE = CHI / (EPSILON * COUNT)  # of the algorithm's Laplace noise
FINE = SCALE / 2**20


def laplace(scale: Fraction) -> Laplace:
    return Laplace(scale, FINE, 2**15 * SCALE)


def normal(deviation: Fraction) -> Normal:
    return Normal(deviation, FINE, 2**15 * SCALE)


def second_moment(noise: GridNoise) -> float:
    """scale²·∫₀¹ G(u)² du, from the distribution that the sampler inverts."""
    return float(noise.scale) ** 2 * quad(lambda u: float(noise.distribution.at(ball(F(u)))) ** 2, 0, 1, limit=200)[0]


def test_chetty_friedman_2019_step_4_root_two_gives_both_distributions_the_variance_of_the_algorithm() -> None:
    """√2·χ/(εN)·ω with ω ~ Laplace(1/√2) is Laplace(χ/(εN)); with ω ~ N(0, 1) it has the same variance, 2·(χ/(εN))²."""
    expected = 2 * float(SCALE) ** 2
    assert second_moment(laplace(SCALE)) == pytest.approx(expected, rel=1e-7)
    assert second_moment(normal(rounded_up(lambda: ball(2).sqrt() * ball(SCALE)))) == pytest.approx(expected, rel=1e-7)
    assert second_moment(normal(SCALE)) == pytest.approx(expected / 2, rel=1e-7)  # without the √2: half


@pytest.mark.parametrize("distribution", ["laplace", "normal"])
def test_chetty_friedman_2019_step_4_the_drawn_noise_has_that_variance_and_not_half_of_it(distribution: str) -> None:
    noise = laplace(SCALE) if distribution == "laplace" else normal(rounded_up(lambda: ball(2).sqrt() * ball(SCALE)))
    stream = ReleaseKey.simulation("004").stream("evaluate", distribution, b"root two", "cells")
    drawn = noise.draw(stream, 0, 200_000) * float(FINE)
    kurtosis = 6 if distribution == "laplace" else 3
    error = 2 * float(SCALE) ** 2 * sqrt((kurtosis - 1) / drawn.size)
    assert abs(np.mean(drawn**2) - 2 * float(SCALE) ** 2) < 5 * error
    assert np.mean(drawn**2) - float(SCALE) ** 2 > 10 * error


def test_chetty_friedman_2019_the_atlas_s_normal_noise_at_epsilon_8() -> None:
    assert float(true_delta([EPSILON], EPSILON)) == pytest.approx(0.888, abs=5e-4)
    assert float(true_epsilon([EPSILON], F(1, 10**6))) == pytest.approx(42, abs=0.5)


def test_chetty_friedman_2019_estimate_standard_error_and_count_lose_more_than_three_epsilon() -> None:
    assert true_epsilon([EPSILON] * 3, F(1, 10**6)) > 3 * EPSILON
    assert float(true_delta([EPSILON] * 3, 3 * EPSILON)) > 0.99
