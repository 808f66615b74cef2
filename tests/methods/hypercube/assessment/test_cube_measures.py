"""Measures of a table before and after protection: by hand, against textbooks, and their bounds."""

from __future__ import annotations

from math import isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats.contingency import association

from discreet.errors import ParameterError
from discreet.methods.hypercube.assessment.measures import (
    Differences,
    NearZeroChanges,
    Overlaps,
    PublicationRule,
    PublishableCells,
    cramers_v,
    differences,
    hellinger,
    near_zero_changes,
    overlap,
    overlaps,
    publishable_cells,
)

TRUE = np.array([0.0, 0.4, -0.4, 3.0, 10.0])
SHOWN = np.array([1.0, 0.0, 2.0, 0.3, 8.0])
VALUES = st.floats(-1e6, 1e6, allow_subnormal=False)
TABLES = arrays(np.float64, st.integers(1, 30), elements=VALUES)
GRIDS = arrays(np.float64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.floats(-5, 1000))


def pairs(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table and another one of its size."""
    return table, np.random.default_rng(seed).normal(table, 10)


# --- near zero


def test_moves_by_hand() -> None:
    actual = near_zero_changes(TRUE, SHOWN, 0.5)
    assert actual == NearZeroChanges(cells=5, near_zero=3, to_nonzero=2, to_zero=1)
    assert actual.share_to_nonzero == pytest.approx(2 / 3)
    assert actual.share_to_zero == 0.5


def test_the_limit_itself_is_not_near_zero() -> None:
    assert near_zero_changes(np.array([0.5, -0.5]), np.array([0.0, 0.49]), 0.5) == NearZeroChanges(2, 0, 0, 2)


def test_shares_of_no_cells_are_unknown() -> None:
    assert isnan(near_zero_changes(np.ones(2), np.ones(2), 0.5).share_to_nonzero)
    assert isnan(near_zero_changes(np.zeros(2), np.ones(2), 0.5).share_to_zero)


@given(TABLES, st.integers(0, 99))
def test_going_back_moves_the_cells_back(table: np.ndarray, seed: int) -> None:
    true, shown = pairs(table, seed)
    there, back = near_zero_changes(true, shown, 1.0), near_zero_changes(shown, true, 1.0)
    assert (there.to_nonzero, there.to_zero) == (back.to_zero, back.to_nonzero)
    assert near_zero_changes(true, true, 1.0).to_nonzero == near_zero_changes(true, true, 1.0).to_zero == 0
    assert there.near_zero - there.to_nonzero + there.to_zero == back.near_zero


def test_pooled_moves_are_those_of_all_cells() -> None:
    parts = [near_zero_changes(TRUE[:2], SHOWN[:2], 0.5), near_zero_changes(TRUE[2:], SHOWN[2:], 0.5)]
    assert NearZeroChanges.pooled(parts) == near_zero_changes(TRUE, SHOWN, 0.5)


@pytest.mark.parametrize("limit", [0.0, -1.0, np.inf, nan])
def test_a_limit_is_positive(limit: float) -> None:
    with pytest.raises(ParameterError, match="limit must be positive"):
        near_zero_changes(TRUE, SHOWN, limit)


# --- publishable


@pytest.mark.parametrize(
    ("records", "cv", "where"), [(3, -1, "cv"), (3, 0, "cv"), (3, nan, "cv"), (-1, 0.5, "records")]
)
def test_rules_that_make_no_sense_are_refused(records: float, cv: float, where: str) -> None:
    with pytest.raises(ParameterError) as actual:
        PublicationRule(records, cv)
    assert actual.value.where == where


def test_rule_by_hand() -> None:
    rule = PublicationRule(least_count=5, most_cv=0.5)
    estimates = np.array([10.0, 10.0, 10.0, -10.0, 0.0])
    errors = np.array([5.0, 5.1, 1.0, 5.0, 0.0])
    counts = np.array([5.0, 9.0, 4.9, 6.0, 9.0])
    assert rule.publishable(estimates, errors, counts).tolist() == [True, False, False, True, False]


def test_published_by_hand() -> None:
    before, after = np.array([True, True, False, False, False]), np.array([True, False, True, True, False])
    assert publishable_cells(before, after) == PublishableCells(cells=5, before=2, after=3, gained=2, lost=1)
    halves = [publishable_cells(before[:2], after[:2]), publishable_cells(before[2:], after[2:])]
    assert PublishableCells.pooled(halves) == publishable_cells(before, after)


# --- differences


def test_differences_by_hand() -> None:
    actual = differences(TRUE, SHOWN, 0.5)
    gaps = [1.0, -0.4, 2.4, -2.7, -2.0]
    assert actual.cells == 5
    assert actual.mean == pytest.approx(-1.7 / 5)
    assert actual.mean_abs == pytest.approx(8.5 / 5)
    assert actual.rms == pytest.approx(sqrt(sum(gap**2 for gap in gaps) / 5))
    assert actual.largest == pytest.approx(2.7)
    assert actual.relative == pytest.approx((2.7 / 3 + 2 / 10) / 2)
    assert actual.relative_cells == 2


def test_no_cell_above_the_limit_has_no_relative_difference() -> None:
    actual = differences(TRUE, SHOWN, 10.0)
    assert isnan(actual.relative)
    assert actual.relative_cells == 0


@given(TABLES, st.integers(0, 99))
def test_differences_are_symmetric_and_vanish(table: np.ndarray, seed: int) -> None:
    true, shown = pairs(table, seed)
    there, back = differences(true, shown, 1.0), differences(shown, true, 1.0)
    assert there.mean == pytest.approx(-back.mean)
    assert (there.mean_abs, there.rms, there.largest) == (back.mean_abs, back.rms, back.largest)
    assert abs(there.mean) <= there.mean_abs * (1 + 1e-12)
    assert there.mean_abs <= there.rms * (1 + 1e-12)
    assert there.rms <= there.largest * (1 + 1e-12)
    same = differences(true, true, 1.0)
    assert (same.mean_abs, same.rms, same.largest) == (0, 0, 0)
    assert same.relative == 0 or isnan(same.relative)


@pytest.mark.parametrize("limit", [0.5, 5.0, 100.0])
def test_pooled_differences_are_those_of_all_cells(limit: float) -> None:
    parts = [differences(TRUE[:2], SHOWN[:2], limit), differences(TRUE[2:], SHOWN[2:], limit)]
    whole, pooled = differences(TRUE, SHOWN, limit), Differences.pooled(parts)
    assert list(vars(pooled).values()) == pytest.approx(list(vars(whole).values()), nan_ok=True)


# --- association


def test_cramers_v_by_hand() -> None:
    assert cramers_v(np.array([[10.0, 0.0], [0.0, 10.0]])) == 1.0
    assert cramers_v(np.array([[1.0, 2.0], [2.0, 4.0]])) == 0.0
    # χ² of ((30, 10), (20, 40)): 100·(30·40 − 10·20)²/(40·60·50·50)
    assert cramers_v(np.array([[30.0, 10.0], [20.0, 40.0]])) == pytest.approx(sqrt(1000**2 / (40 * 60 * 50 * 50)))


@given(GRIDS)
def test_cramers_v_is_scipys_between_0_and_1(table: np.ndarray) -> None:
    positive = np.maximum(table, 0) + 0.5
    actual = cramers_v(positive)
    assert actual == pytest.approx(association(np.rint(positive * 1e6).astype(int), correction=False), abs=1e-4)
    assert 0 <= actual <= 1
    assert actual == pytest.approx(cramers_v(positive.T), abs=1e-9)
    assert actual == pytest.approx(cramers_v(7 * positive), abs=1e-9)


def test_cramers_v_takes_negative_cells_as_zero_and_keeps_the_declared_scale() -> None:
    assert cramers_v(np.array([[10.0, -3.0], [-1.0, 10.0]])) == 1.0
    square = np.array([[10.0, 0.0], [0.0, 10.0]])
    assert cramers_v(np.pad(square, ((0, 1), (0, 1)))) == pytest.approx(sqrt(1 / 2))  # three rows are declared
    assert cramers_v(np.pad(square, ((0, 1), (0, 0)))) == pytest.approx(1)  # two columns still


def test_cramers_v_needs_two_rows_and_columns_and_something_positive() -> None:
    assert isnan(cramers_v(np.ones((1, 4))))
    assert isnan(cramers_v(np.full((2, 2), -1.0)))
    with pytest.raises(ParameterError, match="two-way table"):
        cramers_v(np.ones(4))


# --- distance


def test_hellinger_by_hand() -> None:
    assert hellinger(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == pytest.approx(sqrt(1 - sqrt(0.5)))
    assert hellinger(np.array([1.0, 0.0, -2.0]), np.array([0.0, 3.0, 5.0])) == 1.0
    assert hellinger(np.array([1.0, 3.0]), np.array([10.0, 30.0])) == pytest.approx(0, abs=1e-8)


@given(TABLES, st.integers(0, 99))
def test_hellinger_is_a_distance(table: np.ndarray, seed: int) -> None:
    true, shown = (np.abs(side) + 0.1 for side in pairs(table, seed))
    actual = hellinger(true, shown)
    assert 0 <= actual <= 1
    assert actual == hellinger(shown, true)
    assert hellinger(true, true) == 0
    third = np.roll(shown, 1)
    assert actual <= hellinger(true, third) + hellinger(third, shown) + 1e-12


def test_nothing_positive_has_no_distance() -> None:
    assert isnan(hellinger(np.array([-1.0, 0.0]), np.array([1.0, 1.0])))


# --- intervals


def ends(*intervals: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array(intervals).T
    return low, high


def test_overlap_by_hand_karr_et_al_2006() -> None:
    true = ends((0, 2), (0, 2), (0, 2), (0, 4), (0, 2))
    shown = ends((0, 2), (1, 3), (3, 5), (1, 2), (2, 4))
    # equal; half of each; a gap of 1 between lengths of 2; a quarter and the whole; touching
    assert overlap(true, shown).tolist() == [1.0, 0.5, -0.5, 0.625, 0.0]


def test_intervals_of_no_length() -> None:
    actual = overlap(ends((1, 1), (1, 1), (1, 1), (0, 2)), ends((1, 1), (2, 2), (0, 2), (1, 1)))
    assert actual[0] == 1.0
    assert np.isnan(actual[1:]).all()


@given(TABLES, st.integers(0, 99))
def test_overlap_is_symmetric_and_at_most_1(table: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = ((low, low + rng.uniform(0.1, 50, len(low))) for low in pairs(table, seed))
    actual = overlap(a, b)
    assert np.array_equal(actual, overlap(b, a))
    assert (actual <= 1 + 1e-12).all()
    apart = (a[1] < b[0]) | (b[1] < a[0])
    assert np.array_equal(actual < 0, apart)
    assert overlap(a, a) == pytest.approx(1)


def test_overlaps_by_hand() -> None:
    true, errors = np.array([0.0, 0.0, 5.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])
    shown, others = np.array([1.0, 3.0, 5.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])
    actual = overlaps(true, errors, shown, others, z=1.0)
    assert actual == Overlaps(cells=4, without=1, mean=(0.5 - 0.5 + 1) / 3, disjoint=1)
    halves = [overlaps(true[part], errors[part], shown[part], others[part], z=1.0) for part in (slice(2), slice(2, 4))]
    assert Overlaps.pooled(halves) == actual


def test_no_interval_anywhere_has_no_mean() -> None:
    none = overlaps(np.zeros(2), np.zeros(2), np.ones(2), np.ones(2))
    assert (none.cells, none.without) == (2, 2)
    assert isnan(none.mean)
    assert isnan(Overlaps.pooled([none, none]).mean)


def test_an_interval_begins_before_it_ends() -> None:
    with pytest.raises(ParameterError, match="upper limit below its lower limit"):
        overlap(ends((1, 0)), ends((0, 1)))


# --- input


@pytest.mark.parametrize(
    "measure", [lambda x, y: near_zero_changes(x, y, 1.0), lambda x, y: differences(x, y, 1.0), hellinger]
)
@pytest.mark.parametrize(("true", "shown"), [(np.ones(3), np.ones(2)), (np.ones(0), np.ones(0))])
def test_sides_of_other_cells_are_refused(measure: Any, true: np.ndarray, shown: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="differ in their cells"):
        measure(true, shown)
