"""Suppression removes counts of 1 to 4; bins weigh the same; the line and its error are those of the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.weighted import fitted
from discreet_studies.sensitivity.births import binned_scatter, suppressed, winsorised


def test_implied_counts_that_round_to_one_to_four_are_suppressed() -> None:
    counts = np.array([-1.0, 0.0, 0.25, 0.5, 1.0, 4.0, 4.25, 4.5, 5.0])
    assert suppressed(counts / 8, np.full(9, 8)).tolist() == [False] * 3 + [True] * 4 + [False] * 2


def test_winsorising_draws_in_the_ends() -> None:
    assert winsorised(np.arange(101.0)).tolist() == [1.0, *range(1, 100), 99.0]


def reference(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """Weighted least squares and HC1 by matrices."""
    design = np.column_stack([np.ones_like(x), x])
    bread = np.linalg.inv(design.T @ (w[:, None] * design))
    line = bread @ design.T @ (w * y)
    scores = design * (w * (y - design @ line))[:, None]
    cover = bread @ (scores.T @ scores) @ bread * len(x) / (len(x) - 2)
    return line[1], line[0], float(np.sqrt(cover[1, 1]))


@given(st.integers(3, 60), st.integers(0, 10**6))
def test_the_line_and_its_error_are_those_of_matrices(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, w = rng.uniform(0, 1, n), rng.uniform(0, 1, n), rng.uniform(0.1, 5, n)
    actual = fitted(x, y, w)
    assert (actual.slope, actual.intercept, actual.error) == pytest.approx(reference(x, y, w), rel=1e-7, abs=1e-9)
    assert actual.at(0.5) == actual.intercept + actual.slope * 0.5
    assert actual.cells == n


def test_a_line_through_two_points_has_no_error() -> None:
    actual = fitted([0, 1], [1, 3])
    assert (actual.slope, actual.intercept) == (2, 1)
    assert np.isnan(actual.error)


def test_cells_without_weight_do_not_count() -> None:
    with_more, without = fitted([0, 1, 2, 5], [1, 3, 4, 9], [1, 1, 1, 0]), fitted([0, 1, 2], [1, 3, 4])
    assert with_more == without


def test_the_robust_error_covers_where_the_classical_one_would_not() -> None:
    rng, inside, runs = np.random.default_rng(5), 0, 2_000
    for _ in range(runs):
        x = rng.uniform(0, 1, 200)
        actual = fitted(x, 1 + 2 * x + x**3 * rng.standard_normal(200) * 3, 1.0)
        inside += abs(actual.slope - 2) < 1.96 * actual.error
    assert 0.93 < inside / runs < 0.965


def test_bins_weigh_the_same_and_keep_the_totals() -> None:
    rng = np.random.default_rng(3)
    x, y, w = rng.standard_normal(5_000), rng.standard_normal(5_000), rng.uniform(0, 1, 5_000)
    actual = binned_scatter(x, y, w)
    assert len(actual.x) == 20
    assert (np.diff(actual.x) > 0).all()
    assert np.abs(actual.weight / (w.sum() / 20) - 1).max() < 1 / 100
    assert actual.weight @ actual.y == pytest.approx(w @ y, abs=1e-9)
    assert actual.weight @ actual.x == pytest.approx(w @ x, abs=1e-9)


def test_equal_x_share_a_bin_whatever_their_order() -> None:
    x, y = np.array([1.0, 2, 2, 2, 3, 2]), np.array([0.0, 1, 2, 3, 4, 6])
    actual, mixed = binned_scatter(x, y, bins=6), binned_scatter(x[::-1], y[::-1], bins=6)
    assert actual.x.tolist() == mixed.x.tolist() == [1, 2, 3]
    assert actual.y.tolist() == mixed.y.tolist() == [0, 3, 4]
    assert actual.weight.tolist() == [1, 4, 1]


def test_a_slope_of_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="x does not vary"):
        fitted([1, 1], [0, 1])
    with pytest.raises(ParameterError, match="number of bins"):
        binned_scatter([0, 1], [0, 1], bins=0)
