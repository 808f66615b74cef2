"""Sampling variances from protected numbers: the proofs of sampling.md executed, and every corner of the fit."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Floats
from discreet.post.cubes.sampling import (
    Gvf,
    Reliability,
    fit_gvf,
    interval,
    reliability,
    replicate_noise,
    replicate_variance,
    round_outward,
    standard_error,
    tail,
)
from discreet.post.laplace_sum import fourth_cumulant
from support.hypothesis_profile import examples

LEVEL = Fraction(19, 20)
properties = examples(150)
reals = st.floats(-1e9, 1e9)
curves = st.builds(Gvf, st.floats(0, 0.2), st.floats(0, 1e3), st.one_of(st.just(inf), st.floats(1e4, 1e9)))


def noise(distribution: DiscreteLaplace, n: int, name: str) -> Floats:
    stream = ReleaseKey.simulation("sampling").stream("tests", "sampling", b"", name)
    return distribution.draw(stream, 0, n).astype(np.float64)


# Replicates.


def test_without_noise_it_is_the_replication_variance() -> None:
    theta, replicates = 100.0, np.array([101.0, 97.0, 100.0, 104.0])
    assert replicate_variance(replicates - theta, factor=4, noise=0) == (1 + 9 + 0 + 16)
    assert replicate_variance(replicates - theta, factor=4, noise=2) == 26 - 4 * 2


def test_negative_where_the_noise_happened_to_be_small() -> None:
    assert replicate_variance(np.zeros((3, 8)), factor=4, noise=[0, 1, 2]).tolist() == [0, -4, -8]


@pytest.mark.parametrize("k", [1, 5])
def test_unbiased_with_the_variance_that_is_stated(k: int) -> None:
    """50,000 queries of k cells: the mean of v̂ is v, its variance Var(v̂ | d); a wrong k or κ₄ would be seen."""
    distribution, factor, runs = DiscreteLaplace(Fraction(1, 6)), 4.0, 50_000
    d = np.array([9.0, -4.0, 0.0, 12.0, -15.0, 2.0, 3.0, -7.0])
    drawn = noise(distribution, runs * len(d) * k, f"k = {k}").reshape(runs, len(d), k).sum(axis=-1)
    s2, fourth = k * distribution.variance(), k * fourth_cumulant(float(distribution.rate))
    actual = replicate_variance(d + drawn, factor=factor, noise=s2)
    true = float(factor * np.mean(d**2))
    spread = float(replicate_noise(true, replicates=len(d), factor=factor, noise=s2, fourth=fourth))
    assert abs(actual.mean() - true) < 4 * sqrt(spread / runs)
    assert actual.var() == pytest.approx(spread, rel=0.05)
    assert replicate_noise(true, replicates=len(d), factor=factor, noise=s2) < 0.95 * spread
    own = replicate_noise(actual, replicates=len(d), factor=factor, noise=s2, fourth=fourth)
    assert own.mean() >= spread  # the cut at zero only enlarges it
    assert (actual < 0).any()


def test_the_best_number_of_replicates() -> None:
    """2/R + 5c²s⁴/(R·v²), s² = 2(R·bound/ε)², is least at R⁴ = ε⁴v²/(30c²·bound⁴)."""
    v, bound, epsilon, factor = 5_000 * 20.0**2, 28.0, 1.0, 4.0

    def error(r: float) -> float:
        s2 = 2 * (r * bound / epsilon) ** 2
        return float(2 / r + factor**2 * 5 * s2**2 / (r * v**2))

    best = minimize_scalar(error, bounds=(1, 200), method="bounded").x
    assert best == pytest.approx(epsilon * sqrt(v) / (bound * (30 * factor**2) ** 0.25), rel=1e-3)


# The fit.


def pairs(a: float, b: float, total: float = inf, cells: int = 400) -> tuple[Floats, Floats]:
    x = np.exp(np.linspace(np.log(200), np.log(200_000), cells))
    return x, a * x**2 + b * x * (1 - x / total)


@pytest.mark.parametrize("total", [inf, 1e6])
@pytest.mark.parametrize(("a", "b"), [(1e-3, 40.0), (0.0, 40.0), (1e-3, 0.0)])
def test_exact_pairs_give_exact_coefficients(a: float, b: float, total: float) -> None:
    x, v = pairs(a, b, total)
    fit = fit_gvf(x, v, noise_of_estimates=0, spread_of_variances=0, total=total)
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=1e-6, abs=1e-9)
    assert fit.at(x) == pytest.approx(v, rel=1e-6)
    assert fit.cells == 400
    assert fit.relative < 1e-6


def test_noisy_pairs_give_the_coefficients_within_their_errors() -> None:
    """Noise in both: 2,000 cells around 30 … 3,000 with noise of 120 in x̃; v̂ from eight noisy replicates."""
    distribution, own, r = DiscreteLaplace(Fraction(1, 85)), DiscreteLaplace(Fraction(1, 60)), 8
    x = np.exp(np.linspace(np.log(30), np.log(3_000), 2_000))
    a, b = 0.01, 30.0
    rng = np.random.default_rng(1)
    d = rng.normal(size=(2_000, r)) * np.sqrt((a * x**2 + b * x) / 4)[:, None]
    seen = x + noise(distribution, 2_000, "x")
    actual = replicate_variance(d + noise(own, d.size, "d").reshape(d.shape), factor=4, noise=own.variance())
    fourth = fourth_cumulant(float(own.rate))
    spread = partial(replicate_noise, replicates=r, factor=4, noise=own.variance(), fourth=fourth)
    tails = fourth_cumulant(float(distribution.rate))
    fit = fit_gvf(
        seen, actual, noise_of_estimates=distribution.variance(), spread_of_variances=spread, fourth_of_estimates=tails
    )
    assert fit.basis == "both"
    assert abs(fit.a - a) < 3 * fit.a_error
    assert abs(fit.b - b) < 3 * fit.b_error
    assert fit.b_error < b / 10
    assert fit.relative == pytest.approx(sqrt(2 / r), rel=0.4)  # what eight replicates leave open


def test_noise_in_the_estimates_does_not_bend_the_curve() -> None:
    """Weights nearly the same for all, so that only the moments count: without their correction a almost vanishes."""
    distribution = DiscreteLaplace(Fraction(1, 300))
    x = np.tile(np.linspace(200, 2_000, 500), 40)
    v = 0.05 * x**2 + 20 * x
    seen = x + noise(distribution, len(x), "bend")
    spread = 1e11  # above everything else in a weight
    fourth = fourth_cumulant(float(distribution.rate))
    right = fit_gvf(
        seen, v, noise_of_estimates=distribution.variance(), spread_of_variances=spread, fourth_of_estimates=fourth
    )
    naive = fit_gvf(seen, v, noise_of_estimates=0, spread_of_variances=spread)
    assert abs(right.a - 0.05) < 3 * right.a_error < 0.02
    assert abs(right.b - 20) < 3 * right.b_error
    assert naive.a < 0.01


def test_a_spread_at_the_noisy_variance_would_bend_the_curve_down() -> None:
    own, r, b = DiscreteLaplace(Fraction(1, 800)), 8, 30.0
    x = np.full(4_000, 50_000.0)
    d = np.full((4_000, r), sqrt(b * 50_000 / 4))
    actual = replicate_variance(d + noise(own, d.size, "down").reshape(d.shape), factor=4, noise=own.variance())
    fourth = fourth_cumulant(float(own.rate))
    noises = partial(replicate_noise, replicates=r, factor=4, noise=own.variance(), fourth=fourth)
    right = fit_gvf(x, actual, noise_of_estimates=0, spread_of_variances=noises)
    wrong = fit_gvf(x, actual, noise_of_estimates=0, spread_of_variances=noises(actual))
    assert right.b == pytest.approx(b, abs=3 * right.b_error)
    assert right.b_error < b / 10
    assert wrong.b < b / 2


def test_an_a_that_does_not_show_stays_zero() -> None:
    x, v = pairs(0.0, 40.0, cells=30)
    rough = v * (1 + 0.3 * np.random.default_rng(3).normal(size=30))
    fit = fit_gvf(x, rough, noise_of_estimates=0, spread_of_variances=0)
    assert (fit.a, fit.basis) == (0.0, "b")
    assert abs(fit.b - 40) < 3 * fit.b_error


def test_b_does_not_collapse_where_few_cells_of_like_size_are_seen() -> None:
    """20 cells within a factor of five, seven degrees of freedom, 300 times: b, which small cells live by, stays."""
    x, b, rng = np.linspace(9_000, 45_000, 20), 30.0, np.random.default_rng(15)
    fits = [
        fit_gvf(x, b * x * rng.chisquare(7, 20) / 7, noise_of_estimates=225, spread_of_variances=1e8)
        for _ in range(300)
    ]
    actual = np.array([fit.b for fit in fits])
    assert np.mean(actual < b / 2) < 0.02
    assert actual.mean() == pytest.approx(b, rel=0.05)


@pytest.mark.parametrize(
    ("x", "v", "spread", "basis", "b"),
    [
        ([], [], 0, "nothing", 0),
        ([0, 0], [0, 0], 0, "nothing", 0),
        ([0, 0], [0, 0], 8, "nothing", 0),  # no size to lay it on
        ([10, 30], [0, 0], 8, "bound", 2 * 4 / 40),
        ([10, 30], [-1, -1], 8, "bound", (2 * 4 - 2) / 40),
        ([10, 30], [-9, -9], 8, "nothing", 0),
        ([100], [50], 0, "b", 0.5),
        ([0], [50], 0, "nothing", 0),
    ],
)
def test_a_defined_answer_for_every_input(x: list[float], v: list[float], spread: float, basis: str, b: float) -> None:
    fit = fit_gvf(x, v, noise_of_estimates=0, spread_of_variances=spread)
    assert (fit.basis, fit.a, fit.cells) == (basis, 0, len(x))
    assert fit.b == pytest.approx(b)


def test_the_bound_is_laid_on_no_less_than_the_noise_of_the_estimates() -> None:
    fit = fit_gvf([-5, 5], [0, 0], noise_of_estimates=18, spread_of_variances=8)
    assert (fit.basis, fit.b) == ("bound", pytest.approx(8 / 6))


@properties
@given(
    arrays(np.float64, (4, 7), elements=st.one_of(reals, st.just(0.0), st.floats(-1e-9, 1e-9))),
    st.one_of(st.just(inf), st.floats(1e-3, 1e9)),
)
def test_whatever_goes_in_two_finite_coefficients_come_out(given_: Floats, total: float) -> None:
    x, v, s2, spread = given_
    fit = fit_gvf(x, v, noise_of_estimates=np.abs(s2), spread_of_variances=np.abs(spread), total=total)
    assert 0 <= fit.a < inf
    assert 0 <= fit.b < inf
    assert (fit.at(x) >= 0).all()


@pytest.mark.parametrize(
    "columns",
    [([1, np.nan], 1, 0, 0), ([1, 2], [1, 2, 3], 0, 0), ([1, 2], 1, -1, 0), ([1, 2], 1, 0, -1), ([1, inf], 1, 0, 0)],
)
def test_pairs_that_are_none_are_refused(columns: tuple[list[float], float, float, float]) -> None:
    x, v, s2, spread = columns
    with pytest.raises(ParameterError):
        fit_gvf(x, v, noise_of_estimates=s2, spread_of_variances=spread)


@pytest.mark.parametrize("total", [0.0, -1.0, float("nan")])
def test_a_total_is_positive(total: float) -> None:
    with pytest.raises(ParameterError):
        fit_gvf([1.0], [1.0], noise_of_estimates=0, spread_of_variances=0, total=total)
    with pytest.raises(ParameterError):
        Gvf(0.0, 1.0, total)


def test_replicates_that_are_none_are_refused() -> None:
    for bad in (
        lambda: replicate_variance(np.zeros((2, 0)), factor=4, noise=0),
        lambda: replicate_variance(3.0, factor=4, noise=0),
        lambda: replicate_variance(np.zeros((2, 4)), factor=0, noise=0),
        lambda: replicate_variance(np.zeros((2, 4)), factor=4, noise=-1),
        lambda: replicate_noise(1.0, replicates=0, factor=4, noise=1),
        lambda: standard_error(1.0, 1.0, -1.0),
        lambda: Gvf(-1.0, 1.0),
    ):
        with pytest.raises(ParameterError):
            bad()


# The curve in use.


def test_one_record_more_than_was_seen() -> None:
    fit = Gvf(a=0.0, b=30.0)
    assert fit.variance([-50.0, 0.0, 70.0]).tolist() == [900.0, 900.0, 3_000.0]
    assert standard_error([0.0], fit, 700.0).tolist() == [40.0]


@properties
@given(curves, arrays(np.float64, 9, elements=reals), st.floats(0, 1e9))
def test_published_variances_never_fall_below_the_curve_and_rise_with_the_noise(
    fit: Gvf, x: Floats, noise: float
) -> None:
    assert (fit.variance(x) >= fit.at(x) * (1 - 1e-12)).all()
    assert (standard_error(x, fit, noise) >= standard_error(x, fit, 0.0)).all()
    if fit.total == inf:
        assert (np.diff(fit.variance(np.sort(x))) >= 0).all()


@properties
@given(curves, st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from([Fraction(9, 10), LEVEL, Fraction(99, 100)]))
def test_the_ends_are_where_the_value_sought_is_just_believed(fit: Gvf, x: float, s2: float, level: Fraction) -> None:
    z = {Fraction(9, 10): 1.6448536, LEVEL: 1.9599640, Fraction(99, 100): 2.5758293}[level]
    x = min(x, fit.total)
    low, high = (float(end) for end in fit.interval(x, s2, level))
    assert 0 <= low <= x * (1 + 1e-9)
    assert high >= x * (1 - 1e-9)
    bend = fit.a - fit.b / fit.total
    for end in (low, high):
        if 0 < end < fit.total and end < inf:
            width = z**2 * (bend * end**2 + fit.b * end + s2)
            assert (x - end) ** 2 == pytest.approx(width, rel=1e-5, abs=1e-4 * (1 + x) ** 2 * 1e-4)


@properties
@given(curves, arrays(np.float64, 9, elements=st.floats(-1e6, 1e6)), st.floats(0, 1e6))
def test_intervals_move_up_with_the_estimate_and_widen_with_the_level(fit: Gvf, x: Floats, s2: float) -> None:
    x = np.sort(x)
    low, high = fit.interval(x, s2, LEVEL)
    slack = 1e-9 * (1 + np.abs(x[1:]).max())
    assert (np.diff(low) >= -slack).all()
    assert all(b >= a - slack for a, b in pairwise(high))
    wider = fit.interval(x, s2, Fraction(99, 100))
    assert (wider[0] <= low + slack).all()
    assert (wider[1] >= high - slack).all()


def test_a_curve_that_is_not_sure_of_itself_widens_the_interval() -> None:
    sure, unsure = Gvf(0.0, 30.0), Gvf(0.0, 30.0, b_error=15.0)
    x = np.array([0.0, 100.0, 1e5])
    ratio = np.subtract(*unsure.interval(x, 0.0, LEVEL)) / np.subtract(*sure.interval(x, 0.0, LEVEL))
    assert (ratio > 1.1).all()
    swamped = np.subtract(*unsure.interval(x, 1e12, LEVEL)) / np.subtract(*sure.interval(x, 1e12, LEVEL))
    assert swamped == pytest.approx(1, abs=1e-3)  # where the noise counts alone, the curve does not


def test_a_relative_variance_beyond_bounds_has_no_upper_end() -> None:
    low, high = Gvf(a=0.5, b=1.0).interval([100.0], 4.0, LEVEL)
    assert high[0] == inf
    assert 0 < low[0] < 100


def test_plain_intervals() -> None:
    low, high = interval(100.0, 10.0, LEVEL)
    assert (float(low), float(high)) == pytest.approx((80.400360, 119.599640))
    low, high = interval([5.0], [0.0], LEVEL, fourth=3.0)
    assert (low[0], high[0]) == (5.0, 5.0)
    with pytest.raises(ParameterError):
        interval(1.0, 1.0, Fraction(1))


@pytest.mark.parametrize(("k", "low", "high"), [(1, 0.947, 0.957), (3, 0.947, 0.957), (20, 0.947, 0.957)])
def test_tails_of_the_noise_are_allowed_for(k: int, low: float, high: float) -> None:
    """200,000 sums of k draws: with κ₄ the interval of the noise holds 19 in 20; without, too few of single draws."""
    distribution, n = DiscreteLaplace(Fraction(1, 40)), 200_000
    sums = noise(distribution, n * k, f"tails {k}").reshape(n, k).sum(axis=1)
    error, fourth = sqrt(k * distribution.variance()), k * fourth_cumulant(float(distribution.rate))
    ends = interval(0.0, error, LEVEL, fourth)
    assert low < np.mean((ends[0] <= sums) & (sums <= ends[1])) < high
    if k == 1:
        ends = interval(0.0, error, LEVEL)
        assert np.mean((ends[0] <= sums) & (sums <= ends[1])) < 0.94


def test_marks_follow_the_coefficient_of_variation() -> None:
    marks = reliability([100, 100, 100, 100, 0, -5], [15, 16, 30, 31, 0, 1], caution=0.15, withhold=0.30)
    named = [Reliability(mark).name for mark in marks]
    assert named == ["RELIABLE", "CAUTION", "CAUTION", "WITHHOLD", "WITHHOLD", "WITHHOLD"]
    for caution, withhold in ((0.0, 0.3), (0.3, 0.15), (float("nan"), 0.3)):
        with pytest.raises(ParameterError):
            reliability([1.0], [1.0], caution=caution, withhold=withhold)


@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)])
@pytest.mark.parametrize("rate", ["1/10", "1/2", "1", "3/2", "2", "3", "5", "7", "10"])
@pytest.mark.parametrize("cap", [None, 1, 5])
def test_intervals_of_counts_cover_at_every_level(level: Fraction, rate: str, cap: int | None) -> None:
    """By the exact distribution of the sum of n draws, n from 1 to 3,000. Not rounded outwards, they would not."""
    distribution = DiscreteLaplace(Fraction(rate), cap)
    short = 0
    for n in (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000):
        variance = np.array([n * distribution.variance()])
        low, high = interval(
            0.0, np.sqrt(variance), level, tail(variance, np.array([n * distribution.fourth_cumulant()]))
        )
        half = round_outward(0.0, low, high, 1.0)[1][0]
        size = 1 << max(int(12 * variance[0] ** 0.5 + 80 / float(distribution.rate)).bit_length() + 1, 8)
        k = np.arange(-size // 2, size // 2)
        p = np.exp(-float(distribution.rate) * np.abs(k)) * (np.abs(k) <= (cap or size))
        sums = np.fft.fftshift(np.fft.ifft(np.fft.fft(np.fft.ifftshift(p / p.sum())) ** n).real)
        assert sums[np.abs(k) <= half].sum() >= float(level) - 1e-6
        short += sums[np.abs(k) <= high[0]].sum() < float(level) - 0.01
    if rate in ("2", "3") and cap is None and level < Fraction(19, 20):
        assert short
