"""Confidence limits of percentiles: pivot distributions, the search against fractions, exact and simulated coverage."""

from __future__ import annotations

import doctest
from fractions import Fraction
from itertools import product
from math import exp, lcm
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.domain.bins import PSEO, Bins
from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post import intervals
from discreet.post.intervals import PARTS, exact_bounds, limits, round_outward
from discreet.post.laplace_sum import WIDEST, count_margin, fourth_cumulant, half_pmf, support_radius, variance
from discreet.post.percentiles import percentiles
from support.hypothesis_profile import examples

F = Fraction
properties = examples(80)
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
NINE_TENTHS = F(9, 10)
Floats = NDArray[np.float64]


# ----------------------------------------------------------------------------------------------- distributions of sums


def pmf(rate: float, summands: int, reach: int = 400) -> Floats:
    """By plain convolution of (1 − a)/(1 + a)·a^|k|, over −reach·summands … reach·summands."""
    a = exp(-rate)
    one = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))
    total = np.ones(1)
    for _ in range(summands):
        total = np.convolve(total, one)
    return total


@pytest.mark.parametrize(
    ("rate", "summands"), [(0.25, 1), (0.25, 3), (1.0, 1), (1.0, 6), (3.0, 5), (8.0, 4), (64.0, 2)]
)
def test_the_distribution_of_a_sum_is_the_convolution(rate: float, summands: int) -> None:
    reference, half = pmf(rate, summands), half_pmf(rate, summands)
    middle = reference.size // 2
    common = min(half.size, middle + 1)
    np.testing.assert_allclose(half[:common], reference[middle : middle + common], rtol=0, atol=1e-14)
    assert 1 - (2 * half.sum() - half[0]) < 1e-13


@pytest.mark.parametrize(("rate", "summands"), [(0.1, 21), (1.0, 210), (2.0, 5000)])
def test_cumulants(rate: float, summands: int) -> None:
    half = half_pmf(rate, summands)
    k = np.arange(half.size, dtype=float)
    second, fourth = 2 * (half * k**2).sum(), 2 * (half * k**4).sum()
    assert second == pytest.approx(summands * variance(rate), rel=1e-11)
    assert fourth - 3 * second**2 == pytest.approx(summands * fourth_cumulant(rate), rel=1e-5)


@pytest.mark.parametrize("rate", ["1/100", "1/4", "3/4", "1", "3", "7", "1000"])
@pytest.mark.parametrize("level", [F(1, 2), NINE_TENTHS, F(99, 100)])
def test_the_margin_of_one_draw_is_the_samplers(rate: str, level: Fraction) -> None:
    assert count_margin(F(rate), 1, level) == DiscreteLaplace(F(rate)).margin(level)


@pytest.mark.parametrize(("rate", "summands"), [("1/2", 4), ("1", 21), ("3", 9), ("6", 5)])
def test_a_margin_is_the_smallest(rate: str, summands: int) -> None:
    distribution = pmf(float(F(rate)), summands, 100)
    within = [distribution[distribution.size // 2 - m : distribution.size // 2 + m + 1].sum() for m in range(200)]
    assert count_margin(F(rate), summands) == next(m for m, p in enumerate(within) if p >= 0.9)


def test_margins_where_the_support_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expansion and the stretched distribution agree with the transform, and are never far below it."""
    for rate, summands in (("1/4", 300), ("1", 2100), ("3", 21_000), ("1/2000", 1), ("1/2000", 21)):
        exact = count_margin(F(rate), summands)
        with monkeypatch.context() as patch:
            patch.setattr(
                "discreet.post.laplace_sum.WIDEST", support_radius(1 / 1024, summands) if summands < 256 else 0
            )
            other = count_margin.__wrapped__(F(rate), summands)
        assert exact - 1 <= other <= exact * 1.001 + 1
    assert support_radius(1e-9, 21) > WIDEST
    assert count_margin(F(1, 10**9), 21) == pytest.approx(1000 * count_margin(F(1, 10**6), 21), rel=1e-6)
    assert count_margin(F(1), 0) == 0


def test_what_is_no_distribution() -> None:
    with pytest.raises(ParameterError, match="rate"):
        count_margin(F(0), 1)
    for level in (F(0), F(1), F(3, 2)):
        with pytest.raises(ParameterError, match="level"):
            count_margin(F(1), 1, level)


# ------------------------------------------------------------------------------------------ bounds, place by place


def within(rate: float, summands: int, bins: int, y: Fraction, j: int, f: Fraction, t: float) -> float:
    """P(|W| ≤ t) at one place, from the distribution of W itself on the lattice of its three coefficients."""
    lattice = lcm(y.denominator, f.denominator)
    below, own, above = (int(c * lattice) for c in (1 - y, f - y, -y))
    size = 1 << (2 * lattice * support_radius(rate, bins * summands)).bit_length()
    angles = np.arange(size // 2 + 1) * (2 * np.pi / size)
    log = np.zeros_like(angles)
    for coefficient, number in ((below, j), (own, 1), (above, bins - 1 - j)):
        log -= summands * number * np.log1p(2 * variance(rate) * np.sin(coefficient * angles / 2) ** 2)
    distribution = np.fft.irfft(np.exp(log), size)
    reach = int(t * lattice + 1e-9)
    return float(distribution[0] + 2 * distribution[1 : reach + 1].sum())


def places(rate: float, summands: int, bins: int, y: Fraction, bounds: Floats) -> list[float]:
    """P(|W| ≤ t) at fractions between, and on, the ends of the parts."""
    actual = []
    for j, k in product(range(bins), range(0, 30, 3)):
        f = F(k, 29) if k < 27 else F(k - 26, 4)
        part = min(int(f * PARTS), PARTS - 1)
        actual.append(within(rate, summands, bins, y, j, f, bounds[j * PARTS + part]))
    return actual


@pytest.mark.parametrize("y", [F(1, 2), F(1, 4), F(2, 3)])
@pytest.mark.parametrize(("rate", "summands"), [(0.25, 1), (0.5, 1), (1.0, 1), (1.5, 1), (3.0, 1), (1.0, 7), (3.0, 7)])
def test_every_place_has_its_nine_tenths(rate: float, summands: int, y: Fraction) -> None:
    bounds = exact_bounds(rate, summands, 5, y, NINE_TENTHS)
    actual = places(rate, summands, 5, y, bounds)
    assert min(actual) >= 0.9
    assert np.mean(actual) <= 0.97  # with five bins and little noise the atoms of W are large
    assert min(places(rate, summands, 5, y, bounds * 0.9)) < 0.9


def test_a_bound_is_the_smallest_by_brute_force() -> None:
    """Both ends of a part at once, by a triple loop."""
    rate, bins, y = 2.0, 3, F(1, 4)
    one, above = pmf(rate, 1, 12), pmf(rate, 2, 12)
    bounds = exact_bounds(rate, 1, bins, y, NINE_TENTHS)
    for part in (0, 3, 7):
        ends = [F(part, PARTS) - y, F(part + 1, PARTS) - y]
        mass: dict[Fraction, float] = {}
        for b, c in product(range(-12, 13), range(-24, 25)):  # bin 0: nothing below
            w = max(abs(end * b - y * c) for end in ends)
            mass[w] = mass.get(w, 0.0) + one[b + 12] * above[c + 24]
        ordered = sorted(mass)
        total = np.cumsum([mass[w] for w in ordered])
        assert bounds[part] == float(ordered[int(np.searchsorted(total, 0.9))])


@pytest.mark.parametrize("y", [F(1, 2), F(1, 4)])
@pytest.mark.parametrize(("rate", "summands"), [(0.25, 8), (0.5, 30), (1.0, 40), (1.5, 100), (3.0, 500)])
def test_the_expansion_agrees_with_the_distribution(rate: float, summands: int, y: Fraction) -> None:
    sums = np.array([summands])
    bounds, which = intervals._bounds(rate, sums, 21, y, NINE_TENTHS)
    assert which.tolist() == [0]  # the expansion is used here
    root = np.sqrt(summands)
    t = bounds[0, 0] * root + bounds[0, 1] + bounds[0, 2] / root
    np.testing.assert_allclose(t, exact_bounds(rate, summands, 21, y, NINE_TENTHS), rtol=0.02, atol=0.4)
    for j, f in product((0, 1, 10, 20), (F(0), F(1, 5), F(1, 2), F(7, 9), F(1))):
        p = within(rate, summands, 21, y, j, f, t[j * PARTS + min(int(f * PARTS), PARTS - 1)])
        assert 0.8995 <= p <= 0.925


@pytest.mark.parametrize("summands", [1, 7])
def test_smaller_rates_are_stretched(summands: int) -> None:
    for rate, y in ((1 / 12, F(1, 2)), (1 / 20, F(1, 4))):
        actual = places(rate, summands, 3, y, exact_bounds(rate, summands, 3, y, NINE_TENTHS))
        assert min(actual) >= 0.8995
        assert np.mean(actual) <= 0.92


# ------------------------------------------------------------------------------------------------------ the search


def reference(counts: list[int], borders: tuple[int, ...], y: Fraction, bounds: Floats) -> tuple[float, float]:
    """The hull of {v: |G̃(v)| ≤ t} by exact arithmetic on each part."""
    total, ends = sum(counts), []
    for part, bound in enumerate(bounds):
        j, h = divmod(part, PARTS)
        t = F(float(bound))
        at = [sum(counts[:j]) + F(k, PARTS) * counts[j] - y * total for k in (h, h + 1)]
        shares = [F(0), F(1)]
        if at[0] != at[1]:
            shares += [(w - at[0]) / (at[1] - at[0]) for w in (t, -t)]
        inside = [u for u in shares if 0 <= u <= 1 and abs(at[0] + (at[1] - at[0]) * u) <= t]
        ends += [borders[j] + (borders[j + 1] - borders[j]) * (h + u) / PARTS for u in inside]
    return float(min(ends)), float(max(ends))


histograms = st.lists(st.integers(-8, 30), min_size=1, max_size=6).filter(lambda c: sum(c) > 0)
rates = st.sampled_from([F(1, 4), F(1), F(3), F(9)])
points = st.sampled_from([F(1, 4), F(1, 2), F(9, 10), F(1, 3)])


def bins_of(counts: list[int]) -> Bins:
    return Bins(tuple(100 * j + j * j for j in range(len(counts) + 1)))


@properties
@given(histograms, rates, points, st.sampled_from([1, 3]))
def test_the_limits_are_the_hull(counts: list[int], rate: Fraction, y: Fraction, summands: int) -> None:
    bins, array = bins_of(counts), np.array([counts], np.int64)
    bounds = exact_bounds(float(rate), summands, bins.count, y, NINE_TENTHS)
    low, high = limits(array, bins, (y,), rate, summands)
    estimate = percentiles(array, bins, (y,))[0, 0]
    expected = reference(counts, bins.edges, y, bounds)
    assert low[0, 0] == pytest.approx(min(expected[0], estimate), abs=1e-4)
    assert high[0, 0] == pytest.approx(max(expected[1], estimate), abs=1e-4)
    assert bins.edges[0] <= low[0, 0] <= estimate <= high[0, 0] <= bins.edges[-1]


@properties
@given(histograms, rates, points)
def test_levels_nest_and_money_does_not_matter(counts: list[int], rate: Fraction, y: Fraction) -> None:
    bins, array = bins_of(counts), np.array([counts], np.int64)
    low, high = limits(array, bins, (y,), rate)
    wider = limits(array, bins, (y,), rate, level=F(99, 100))
    assert (wider[0] <= low).all()
    assert (wider[1] >= high).all()
    dearer = limits(array, Bins(tuple(3 * b + 5 for b in bins.edges)), (y,), rate)
    np.testing.assert_allclose(dearer, (3 * low + 5, 3 * high + 5))


@properties
@given(histograms, rates, points)
def test_seen_from_above(counts: list[int], rate: Fraction, y: Fraction) -> None:
    """Mirrored, the set is the same: it contains the estimate of both sides, every root of G̃."""
    bins = bins_of(counts)
    mirrored = Bins(tuple(-b for b in reversed(bins.edges)))
    low, high = limits(np.array([counts], np.int64), bins, (y,), rate)
    up, down = limits(np.array([counts[::-1]], np.int64), mirrored, (1 - y,), rate)
    np.testing.assert_allclose((-down, -up), (low, high), atol=1e-4)


def test_cells_sums_and_points_are_independent() -> None:
    draw = np.random.default_rng(3)
    counts, sums = draw.integers(-3, 30, (40, 21)), draw.integers(1, 60, 40)
    low, high = limits(counts, PSEO, QUARTILES, F(1), sums)
    for cell in range(0, 40, 7):
        for p, point in enumerate(QUARTILES):
            one = limits(counts[cell : cell + 1], PSEO, (point,), F(1), int(sums[cell]))
            assert (one[0][0, 0], one[1][0, 0]) == (low[cell, p], high[cell, p])


def test_more_noise_is_never_narrower() -> None:
    counts = np.full((1, 21), 9, np.int64)
    widths = [float(np.subtract(*limits(counts, PSEO, (F(1, 2),), F(1), s)[::-1])[0, 0]) for s in (1, 2, 4, 8, 16, 64)]
    assert widths == sorted(widths)


def test_no_total_no_limits_and_no_cells() -> None:
    low, high = limits(np.array([[0] * 21, [1] + [-1] * 20]), PSEO, QUARTILES, F(1))
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    assert limits(np.empty((0, 21), np.int64), PSEO, QUARTILES, F(1))[0].shape == (0, 3)


def test_with_negligible_noise_the_limits_are_the_percentile() -> None:
    counts = np.arange(1, 22)[None].copy()
    low, high = limits(counts, PSEO, QUARTILES, F(2**40))
    np.testing.assert_allclose(low, high, rtol=1e-9)
    everything = limits(counts, PSEO, QUARTILES, F(1, 2**40))
    assert everything[0].tolist() == [[10000.0] * 3]
    assert everything[1].tolist() == [[614597.0] * 3]


def test_outward() -> None:
    low, high = round_outward(np.array([1.9, 2.0]), np.array([2.1, 3.0]))
    assert (low.tolist(), high.tolist()) == ([1, 2], [3, 3])


def test_refusals() -> None:
    counts = np.ones((2, 21), np.int64)
    with pytest.raises(ParameterError, match="at least one cell"):
        limits(counts, PSEO, QUARTILES, F(1), np.array([1, 0]))
    with pytest.raises(ParameterError, match="rate"):
        limits(counts, PSEO, QUARTILES, F(0))
    with pytest.raises(ParameterError, match="level"):
        limits(counts, PSEO, QUARTILES, F(1), level=F(1))


def test_the_proof_runs() -> None:
    page = Path(intervals.__file__).with_suffix(".md")
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted >= 5
    assert result.failed == 0


# -------------------------------------------------------------------------------------------------------- coverage

# Log-normal earnings: broad, low, high, and within a bin or two.
EARNINGS = [(11.0, 0.75), (10.4, 0.6), (10.0, 0.4), (12.2, 0.6), (11.0, 0.15), (10.7, 0.08), (9.5, 0.3), (12.6, 0.15)]


def true_histogram(size: int, distribution: tuple[float, float]) -> NDArray[np.int64]:
    """`size` records at random, from a fixed seed: the estimand is the percentile of whatever they are."""
    draw = np.random.default_rng([size, round(1000 * distribution[0]), round(1000 * distribution[1])])
    return np.bincount(PSEO.number(np.exp(draw.normal(*distribution, size))), minlength=PSEO.count).astype(np.int64)


def coverage(
    size: int, distribution: tuple[float, float], rate: Fraction, summands: int, draws: int
) -> tuple[Floats, Floats]:
    """Covered or not, (draws, 3), where the protected total is positive; and where it is at least 30."""
    truth = true_histogram(size, distribution)
    stream = ReleaseKey.simulation("coverage").stream(str(size), str(distribution), b"", f"{rate} {summands}")
    noise = DiscreteLaplace(rate).draw(stream, 0, draws * summands * PSEO.count)
    counts = truth + noise.reshape(draws, summands, PSEO.count).sum(axis=1)
    low, high = limits(counts, PSEO, QUARTILES, rate, summands)
    target = percentiles(truth[None], PSEO, QUARTILES)
    covered = (low <= target + 1e-6) & (target - 1e-6 <= high)
    total = counts.sum(axis=1)
    return covered[total > 0].astype(float), covered[total >= 30].astype(float)


def verdict(grid: list[tuple[int, tuple[float, float], Fraction, int]], draws: int) -> tuple[float, float, float]:
    """The smallest binomial p-value of "at least 90%" over all points, and the mean coverages: all, published."""
    worst, means, published = 1.0, [], []
    for size, distribution, rate, summands in grid:
        covered, shown = coverage(size, distribution, rate, summands, draws)
        hits = covered.sum(axis=0)
        worst = min(worst, float(stats.binom.cdf(hits, len(covered), 0.9).min()))
        means.append(covered.mean())
        published.append(shown.mean())
    return worst, float(np.mean(means)), float(np.mean(published))


QUICK = list(product((30, 200), (EARNINGS[0], EARNINGS[2], EARNINGS[5]), (F(1, 2), F(3, 2), F(3)), (1, 7)))


def test_coverage_is_nine_tenths_and_little_more() -> None:
    worst, mean, published = verdict(QUICK, 2000)
    assert worst > 1e-4  # of 108 points, if all had exactly 90%, one in a hundred such tests would fail
    assert 0.9 <= mean <= 0.94
    assert 0.9 <= published <= 0.94


@pytest.mark.parametrize("factor", [0.9, 1.3])
def test_other_bounds_would_be_noticed(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "exact_bounds", lambda *given: factor * exact_bounds(*given))
    worst, mean, _ = verdict(QUICK, 2000)
    assert mean > 0.955 if factor > 1 else worst < 1e-12


@pytest.mark.full
def test_coverage_on_the_whole_grid() -> None:
    rates = (F(1, 4), F(1, 2), F(1), F(3, 2), F(3))
    grid = list(product((30, 50, 100, 200, 1000, 10_000), EARNINGS, rates, (1, 7)))
    worst, mean, published = verdict(grid, 10_000)
    assert worst > 1e-5  # of 1,440 points
    assert 0.9 <= mean <= 0.94
    assert 0.9 <= published <= 0.94
