"""Intervals around protected estimates: their distributions against integrals; coverage by simulation, accepted and
rejected."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from discreet.errors import ParameterError
from discreet.methods.sensitivity import estimates
from discreet.methods.sensitivity.estimates import ENOUGH, Distribution, Intervals, intervals, noise_deviation

F = Fraction
Floats = NDArray[np.float64]
DISTRIBUTIONS: tuple[Distribution, ...] = ("laplace", "normal")
ACCEPT, REJECT = 1e-6, 1e-20
LEVEL = F(19, 20)


def half_width(s: float, b: float, c: float, df: int, distribution: Distribution, level: Fraction = LEVEL) -> float:
    one = np.ones(1)
    return float(intervals(0 * one, s * one, b * one, c * one, np.array([df]), distribution, level).high[0])


def inside(h: float, s: float, b: float, df: int, distribution: Distribution) -> float:
    """P(|s·T + L| ≤ h), by integration over T."""
    noise = stats.laplace(scale=b) if distribution == "laplace" else stats.norm(scale=b)

    def term(t: float) -> float:
        return float(stats.t.pdf(t, df) * (noise.cdf(h - s * t) - noise.cdf(-h - s * t)))

    return float(2 * quad(term, 0, 400, points=[h / s, 1, 10], limit=400)[0])


# -------------------------------------------------------------------------------------------------------- distributions


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("df", "close"), [(1, 2e-3), (2, 2e-3), (3, 1e-4), (18, 1e-4), (500, 1e-4), (10**9, 1e-4)])
def test_without_noise_the_interval_is_students(distribution: Distribution, df: int, close: float) -> None:
    assert half_width(1.0, 1e-9, 0.0, df, distribution) == pytest.approx(stats.t.ppf(0.975, df), rel=close)


def test_without_a_standard_error_the_interval_is_the_noise_s() -> None:
    for s in (0.0, -3.0):
        assert half_width(s, 2.0, 0.1, 18, "laplace") == pytest.approx(2 * np.log(20), rel=1e-4)
        assert half_width(s, 2.0, 0.1, 18, "normal") == pytest.approx(2 * stats.norm.ppf(0.975), rel=1e-4)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("level", [F(1, 2), F(9, 10), LEVEL, F(99, 100)])
@pytest.mark.parametrize(("s", "b", "df"), [(1.0, 1.0, 18), (0.2, 1.0, 5), (3.0, 0.1, 40), (1.0, 0.5, 3)])
def test_the_level_is_that_of_the_sum(distribution: Distribution, level: Fraction, s: float, b: float, df: int) -> None:
    h = half_width(s, b, 0.0, df, distribution, level)
    assert inside(h, s, b, df, distribution) == pytest.approx(float(level), abs=3e-5)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("s", [-2.0, 0.0, 0.7, 4.0])
def test_beside_narrow_noise_the_level_is_that_of_the_average(distribution: Distribution, s: float) -> None:
    b, c, df = 0.8, 0.5, 18
    h = half_width(s, b, c, df, distribution)
    x = np.linspace(0, max(s, 0) + 12 * c, 201)
    away = np.abs(x - s) / c
    weight = np.exp(-away if distribution == "laplace" else -(away**2) / 2)
    noise = stats.laplace(scale=b) if distribution == "laplace" else stats.norm(scale=b)
    t = stats.t.ppf((np.arange(2000) + 0.5) / 2000, df)
    values = (noise.cdf(h - np.outer(x, t)) - noise.cdf(-h - np.outer(x, t))).mean(axis=1)
    assert np.trapezoid(weight * values, x) / np.trapezoid(weight, x) == pytest.approx(0.95, abs=5e-4)


def test_the_interval_knows_no_unit() -> None:
    generator = np.random.default_rng(2)
    theta, s, b, c = (generator.normal(size=50) for _ in range(4))
    columns = theta, s, np.abs(b), np.abs(c)
    one = intervals(*columns, generator.integers(1, 60, 50), "laplace")
    df = np.random.default_rng(2)
    for _ in range(4):
        df.normal(size=50)
    many = intervals(*(4096 * column for column in columns), df.integers(1, 60, 50), "laplace")
    for a, z in ((one.low, many.low), (one.high, many.high), (one.error, many.error)):
        np.testing.assert_allclose(4096 * a, z, rtol=1e-9)


def test_004_step_4b_the_noise_s_part_of_the_standard_error_is_public() -> None:
    made = intervals(np.zeros(2), np.array([3.0, -1.0]), np.array([4.0, 4.0]), np.ones(2), np.array([9, 9]), "normal")
    assert made.error.tolist() == [5.0, 4.0]
    assert noise_deviation(np.array([1.0]), "laplace").tolist() == [sqrt(2)]


# -------------------------------------------------------------------------------------------------------- coverage

# x of a cell, and χ and χ_s for the prediction at .25: the largest of brute-force sensitivities of 300 cells each.
SHAPES: dict[str, tuple[Callable[..., Floats], float, float]] = {
    "uniform": (lambda g, size: g.random(size), 3.1, 0.44),
    "low": (lambda g, size: g.beta(2, 5, size), 1.9, 0.49),
    "high": (lambda g, size: g.beta(5, 2, size), 13.0, 3.4),  # few near .25: an extrapolation
}


def regressions(shape: str, n: int, cells: int, seed: int) -> tuple[Floats, Floats]:
    """Predictions at .25 and their standard errors, of lines through bounded (x, y)."""
    generator = np.random.default_rng(seed)
    x = SHAPES[shape][0](generator, (cells, n))
    y = np.clip(0.3 + 0.3 * x + 0.2 * generator.normal(size=x.shape), 0, 1)
    centre, mean = x.mean(1), y.mean(1)
    u = x - centre[:, None]
    spread = (u * u).sum(1)
    slope = (u * y).sum(1) / spread
    e = y - mean[:, None] - slope[:, None] * u
    leverage = 1 / n + (0.25 - centre) ** 2 / spread
    return mean + slope * (0.25 - centre), np.sqrt((e * e).sum(1) / (n - 2) * leverage)


@lru_cache
def target(shape: str) -> float:
    """The line's prediction in the population."""
    return float(regressions(shape, 2_000_000, 1, 99)[0][0])


Interval = Callable[[Floats, Floats, Floats, Floats, NDArray[np.int64], Distribution], Intervals]


def hits(made: Interval, shape: str, n: int, epsilon: int, distribution: Distribution, cells: int) -> int:
    """How many of the intervals hold the population's value: noise of the scales of Chetty & Friedman 2019 on estimate,
    error and count."""
    _, chi, chi_error = SHAPES[shape]
    theta, s = regressions(shape, n, cells, 1000 * n + epsilon)
    generator = np.random.default_rng([n, epsilon, len(distribution)])

    def noise() -> Floats:
        drawn: Floats = generator.laplace(size=cells) if distribution == "laplace" else generator.normal(size=cells)
        return drawn

    b, c, one = (
        np.full(cells, k * (1 if distribution == "laplace" else sqrt(2)) / epsilon) for k in (chi / n, chi_error / n, 1)
    )
    count = np.maximum(np.rint(n + one * noise()), 3).astype(np.int64)
    actual = made(theta + b * noise(), s + c * noise(), b, c, count - 2, distribution)
    truth = target(shape)
    return int(((actual.low <= truth) & (truth <= actual.high)).sum())


def p_values(count: int, cells: int) -> tuple[float, float]:
    """Of "at least 94%" and "at most 96%"."""
    return float(stats.binom.cdf(count, cells, 0.94)), float(stats.binom.sf(count - 1, cells, 0.96))


QUICK = [("high", 20, 1), ("high", 20, 8), ("high", 50, 4), ("low", 20, 2), ("low", 30, 4), ("uniform", 100, 2)]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("shape", "n", "epsilon"), QUICK)
def test_nineteen_in_twenty_are_covered(shape: str, n: int, epsilon: int, distribution: Distribution) -> None:
    count = hits(intervals, shape, n, epsilon, distribution, 40_000)
    assert min(p_values(count, 40_000)) > ACCEPT
    assert 0.94 <= count / 40_000 <= 0.96


@pytest.mark.full
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_nineteen_in_twenty_are_covered_on_the_whole_grid(shape: str, distribution: Distribution) -> None:
    for n, epsilon in product((20, 30, 50, 100, 300), (1, 2, 4, 8)):
        assert 0.94 <= hits(intervals, shape, n, epsilon, distribution, 40_000) / 40_000 <= 0.96


def plain(factor: float, noise: bool) -> Interval:
    """θ̃ ± factor·√(max(s̃, 0)² + Var L), or without Var L."""

    def made(
        theta: Floats, s: Floats, b: Floats, c: Floats, df: NDArray[np.int64], distribution: Distribution
    ) -> Intervals:
        total = np.hypot(np.maximum(s, 0), noise_deviation(b, distribution) * noise)
        return Intervals(theta - factor * total, theta + factor * total, total)

    return made


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_noise_left_out_would_be_noticed(distribution: Distribution) -> None:
    assert p_values(hits(plain(2.1, False), "high", 20, 8, distribution, 40_000), 40_000)[0] < REJECT
    assert p_values(hits(plain(2.1, False), "high", 100, 2, distribution, 40_000), 40_000)[0] < REJECT


def test_the_normal_quantile_for_twenty_observations_would_be_noticed() -> None:
    assert p_values(hits(plain(1.96, True), "low", 20, 8, "normal", 400_000), 400_000)[0] < REJECT


def abstract(distribution: Distribution, ratio: float, tau: float, heard: bool, cells: int) -> float:
    """Coverage where s̃ has noise of scale 1, θ̃ of `ratio`, and the estimate a standard error of tau, df = 18."""
    generator = np.random.default_rng(11)
    draw = generator.laplace if distribution == "laplace" else generator.normal
    s = tau * np.sqrt(generator.chisquare(18, cells) / 18)
    theta = tau * generator.normal(size=cells) + ratio * draw(size=cells)
    one = np.ones(cells)
    made = intervals(theta, s + draw(size=cells), ratio * one, one * heard, np.full(cells, 18), distribution)
    return float(((made.low <= 0) & (made.high >= 0)).mean())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("tau", [0.1, 0.7, 2.0, 6.0, 20.0])
def test_from_enough_noise_on_s_at_its_word_covers(distribution: Distribution, tau: float) -> None:
    """Whatever s is: only the ratio of the scales and s in units of one of them can matter."""
    assert 0.94 <= abstract(distribution, ENOUGH, tau, True, 100_000) <= 0.96


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_with_less_noise_s_at_its_word_would_cover_too_little(distribution: Distribution) -> None:
    """The average does not, but gives away up to four points and a half."""
    cells = 100_000
    assert p_values(round(cells * abstract(distribution, 1.0, 2.5, False, cells)), cells)[0] < REJECT
    for tau in (0.1, 2.5, 6.0):
        assert 0.94 <= abstract(distribution, 1.0, tau, True, 10_000) <= 0.995


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"distribution": "cauchy"}, "laplace or normal"),
        ({"level": F(1)}, "level"),
        ({"level": F(999, 1000)}, "level"),
        ({"df": np.array([0])}, "degrees"),
        ({"df": np.array([1.5])}, "not integers"),
        ({"scale": np.zeros(1)}, "positive"),
        ({"error_scale": -np.ones(1)}, "positive"),
        ({"error": np.array([np.nan])}, "finite"),
        ({"estimate": np.array([np.inf])}, "finite"),
    ],
)
def test_refusals(changed: dict[str, object], what: str) -> None:
    one = np.ones(1)
    given: dict[str, object] = {"estimate": one, "error": one, "scale": one, "error_scale": one, "df": np.array([3])}
    with pytest.raises(ParameterError, match=what):
        intervals(**{**given, "distribution": "normal", **changed})  # type: ignore[arg-type]


def test_no_cells_are_no_intervals() -> None:
    none = np.empty(0)
    assert intervals(none, none, none, none, np.empty(0, np.int64), "normal").low.size == 0


def test_the_proof_runs() -> None:
    page = Path(estimates.__file__).with_suffix(".md")
    assert doctest.testfile(str(page), module_relative=False).failed == 0
