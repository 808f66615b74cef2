"""Percentiles (Eq. 4) against exact fractions, and their properties with negative bins."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain.bins import PSEO, Bins
from discreet.errors import ParameterError
from discreet.post.percentiles import NO_BIN, locate, percentiles, to_dollars
from support.hypothesis_profile import examples

F = Fraction
properties = examples(150)
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))

small = st.lists(st.integers(-20, 60), min_size=1, max_size=8)
large = st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=8)
points = st.integers(2, 1000).flatmap(lambda d: st.integers(1, d - 1).map(lambda n: F(n, d)))


def bins_of(counts: list[int]) -> Bins:
    return Bins(tuple(100 * j + j * j for j in range(len(counts) + 1)))


def reference(counts: list[int], y: F) -> tuple[int, F] | None:
    """The smallest J with y·T ≤ C_J, and (y·T − C_{J−1})/q_J, in exact arithmetic."""
    total = sum(counts)
    if total <= 0:
        return None
    j = next(j for j in range(len(counts)) if y * total <= sum(counts[: j + 1]))
    return j, (y * total - sum(counts[:j])) / F(counts[j])


@properties
@given(st.one_of(small, large), st.lists(points, min_size=1, max_size=3))
def test_places_are_the_formula(counts: list[int], ys: list[F]) -> None:
    actual, fractions = locate(np.array([counts], np.int64), bins_of(counts), tuple(ys))
    for p, y in enumerate(ys):
        expected = reference(counts, y)
        if expected is None:
            assert actual[0, p] == NO_BIN
            assert np.isnan(fractions[0, p])
        else:
            assert actual[0, p] == expected[0]
            assert fractions[0, p] == pytest.approx(float(expected[1]), rel=1e-14)


@properties
@given(st.one_of(small, large).filter(lambda c: sum(c) > 0), st.lists(points, min_size=2, max_size=4))
def test_a_value_stays_in_its_bin_and_rises_with_y(counts: list[int], ys: list[F]) -> None:
    bins, array = bins_of(counts), np.array([counts], np.int64)
    ordered = tuple(sorted(ys))
    actual, fractions = locate(array, bins, ordered)
    value = percentiles(array, bins, ordered)[0]
    assert (array[0, actual[0]] > 0).all()
    assert ((fractions > 0) & (fractions <= 1)).all()
    assert ((bins.edge_array()[actual[0]] <= value) & (value <= bins.edge_array()[actual[0] + 1])).all()
    assert (np.diff(value) >= 0).all()


@properties
@given(small.filter(lambda c: sum(c) > 0), points, st.integers(2, 10**6))
def test_only_shares_matter(counts: list[int], y: F, factor: int) -> None:
    array = np.array([counts], np.int64)
    once, often = (percentiles(a, bins_of(counts), (y,))[0, 0] for a in (array, array * factor))
    assert often == pytest.approx(once, rel=1e-14)


@properties
@given(small.filter(lambda c: sum(c) > 0), points)
def test_empty_bins_at_the_end_and_other_money_change_nothing(counts: list[int], y: F) -> None:
    bins = bins_of(counts)
    value = percentiles(np.array([counts], np.int64), bins, (y,))[0, 0]
    longer = Bins((*bins.edges, bins.edges[-1] + 7))
    assert percentiles(np.array([[*counts, 0]], np.int64), longer, (y,))[0, 0] == value
    dearer = Bins(tuple(3 * b + 5 for b in bins.edges))
    assert percentiles(np.array([counts], np.int64), dearer, (y,))[0, 0] == pytest.approx(3 * value + 5)


def test_cells_are_independent_and_need_not_be_contiguous() -> None:
    counts = np.arange(-40, 170, dtype=np.int64).reshape(21, 10).T[::2]
    together = percentiles(counts, PSEO, QUARTILES)
    for cell, histogram in enumerate(counts):
        np.testing.assert_array_equal(together[cell], percentiles(histogram[None].copy(), PSEO, QUARTILES)[0])


def test_by_hand() -> None:
    bins = Bins((0, 10, 20, 40, 80))
    histograms = np.array(
        [
            [25, 25, 25, 25],  # every quartile exactly on a border
            [4, -1, 8, 5],  # sums 4, 3, 11, 16
            [-5, 9, -2, 8],  # sums −5, 4, 2, 10: half of 10 in the last bin, a quarter in the second
            [3, -3, 0, 0],  # nothing left
            [0, 0, 0, -1],
            [0, 0, 0, 1],
        ]
    )
    expected = [
        [10, 20, 40],
        [10, 32.5, 48],
        [10 + 10 * 7.5 / 9, 40 + 40 * 3 / 8, 40 + 40 * 5.5 / 8],
        [np.nan] * 3,
        [np.nan] * 3,
        [50, 60, 70],
    ]
    np.testing.assert_allclose(percentiles(histograms, bins, QUARTILES), expected, rtol=1e-15)


def test_no_cells() -> None:
    assert percentiles(np.empty((0, 21), np.int64), PSEO, QUARTILES).shape == (0, 3)


@properties
@given(st.floats(0, 2**41))
def test_dollars(amount: float) -> None:
    assert to_dollars(np.array([amount, np.nan]))[0] == floor(amount + 0.5)
    assert np.isnan(to_dollars(np.array([np.nan])))[0]


@pytest.mark.parametrize("point", [F(0), F(1), F(-1, 2), F(3, 2), F(1, 1001), 0.5])
def test_points_that_are_none(point: F) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        percentiles(np.ones((1, 21), np.int64), PSEO, (point,))


@pytest.mark.parametrize("counts", [np.ones((1, 20), np.int64), np.ones(21, np.int64), np.ones((1, 21))])
def test_histograms_of_another_shape(counts: np.ndarray) -> None:
    with pytest.raises(ParameterError, match=r"\(cells, 21\)"):
        percentiles(counts, PSEO, QUARTILES)


@pytest.mark.parametrize("count", [2**60, -(2**63)])
def test_histograms_that_would_overflow(count: int) -> None:
    with pytest.raises(ParameterError, match="total leaves"):
        percentiles(np.full((1, 21), count, np.int64), PSEO, QUARTILES)
