"""Percentile ranks among public thresholds and among the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics.ranks import by_thresholds, percentile_ranks
from support.hypothesis_profile import examples

numbers = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@examples(100)
@given(values=numbers, thresholds=numbers)
def test_by_counting(values: list[float], thresholds: list[float]) -> None:
    thresholds = sorted(thresholds)
    expected = [sum((t < v) + 0.5 * (t == v) for t in thresholds) / len(thresholds) for v in values]
    actual = by_thresholds(np.array(values), thresholds)
    assert actual.tolist() == pytest.approx(expected)
    assert ((actual >= 0) & (actual <= 1)).all()
    each = [by_thresholds(np.array([v]), thresholds).item() for v in values]
    assert actual.tolist() == each  # of the record alone


@examples(100)
@given(values=numbers)
def test_among_the_data_ties_share_their_mean_rank(values: list[float]) -> None:
    actual = percentile_ranks(np.array(values))
    assert actual.mean() == pytest.approx(0.5)
    assert actual.tolist() == by_thresholds(np.array(values), sorted(values)).tolist()


def test_edges() -> None:
    assert percentile_ranks(np.array([3.0, 1.0, 1.0, 2.0])).tolist() == [0.875, 0.25, 0.25, 0.625]
    assert percentile_ranks(np.empty(0)).size == 0
    actual = by_thresholds(np.array([np.nan, np.inf, -np.inf]), [0.0, 1.0])
    assert np.isnan(actual[0])
    assert actual[1:].tolist() == [1, 0]


@pytest.mark.parametrize("bad", [(), (2.0, 1.0), (0.0, np.nan), (0.0, np.inf)])
def test_refusals(bad: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="thresholds"):
        by_thresholds(np.zeros(1), bad)
    with pytest.raises(ParameterError, match="missing"):
        percentile_ranks(np.array([1.0, np.nan]))
