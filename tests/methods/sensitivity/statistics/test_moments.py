"""Mean, share and variance against refits: in exact arithmetic, over grids, and at the reported worst point."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Search, Statistic, Variable
from discreet.methods.sensitivity.statistics.moments import Mean, Share, Variance
from support import brute_force
from support.hypothesis_profile import examples

Floats = NDArray[np.float64]

Y = Variable("y", -1.0, 3.0)
UNIT = Variable("y", 0.0, 1.0)
CLOSE = 1e-12
VALUES = st.one_of(
    st.sampled_from([-1.0, 0.0, 0.5, 3.0]),
    st.integers(-1000, 3000).map(lambda k: k / 1000),
    st.integers(0, 5).map(lambda k: 0.3 + 1e-6 * k),
)
CELLS = st.lists(VALUES, min_size=1, max_size=9).map(sorted)
SETTINGS = examples(200)


def refit(statistic: Mean, values: Sequence[float]) -> tuple[Fraction, Fraction]:
    """The statistic and its squared standard error, in rational arithmetic, straight from the definitions."""
    y, n = [Fraction(float(v)) for v in values], len(values)
    if not n:
        return Fraction(statistic.empty), Fraction(0)
    mean = sum(y) / n
    if n == 1:
        return (Fraction(0) if isinstance(statistic, Variance) else mean), Fraction(0)
    s2, m4 = sum((v - mean) ** 2 for v in y) / (n - 1), sum((v - mean) ** 4 for v in y) / n
    if isinstance(statistic, Variance):
        return s2, (m4 - s2**2 * Fraction(n - 3, n - 1)) / n
    return mean, s2 / n


def value_of(statistic: Mean) -> brute_force.Function:
    return lambda columns: float(refit(statistic, columns[0])[0])


def error_of(statistic: Mean) -> brute_force.Function:
    return lambda columns: sqrt(refit(statistic, columns[0])[1])


def check(statistic: Mean, y: list[float], search: Search, points: int) -> None:
    """Equal to refits over this grid."""
    columns = [np.array(y)]
    actual = statistic.local(columns, np.array([0, len(y)]), search)
    assert actual.error is not None
    assert actual.error_sensitivity is not None
    assert actual.n[0] == len(y)
    assert actual.statistic[0] == pytest.approx(value_of(statistic)(columns), rel=CLOSE, abs=CLOSE)
    assert actual.error[0] == pytest.approx(error_of(statistic)(columns), rel=1e-9, abs=1e-11)
    wanted = [brute_force.sensitivity(f(statistic), columns, statistic.variables, points) for f in (value_of, error_of)]
    assert actual.sensitivity[0] == pytest.approx(wanted[0], rel=CLOSE, abs=CLOSE)
    assert actual.error_sensitivity[0] == pytest.approx(wanted[1], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("statistic", [Mean(Y), Variance(Y)])
@given(y=CELLS)
@example(y=[0.3, 0.3, 0.3, 3.0])
@SETTINGS
def test_closed_forms_equal_refits_in_exact_arithmetic(statistic: Mean, y: list[float]) -> None:
    check(statistic, y, Search("corners"), 2)
    check(statistic, y, Search("grid", 7), 7)


@given(y=st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=12).map(sorted))
@SETTINGS
def test_a_share_is_the_mean_of_zeros_and_ones(y: list[float]) -> None:
    check(Share(UNIT), y, Search(), 2)
    share, mean = (s.local([np.array(y)], np.array([0, len(y)])) for s in (Share(UNIT), Mean(UNIT)))
    assert share.statistic.tolist() == mean.statistic.tolist()
    assert share.sensitivity.tolist() == mean.sensitivity.tolist()
    n, p = len(y), share.statistic[0]
    assert share.error == pytest.approx(sqrt(p * (1 - p) / (n - 1)) if n > 1 else 0, abs=1e-15)


@pytest.mark.parametrize("statistic", [Mean(Y), Variance(Y)])
@given(y=CELLS)
@SETTINGS
def test_the_exact_maximum_is_attained_and_no_grid_exceeds_it(statistic: Mean, y: list[float]) -> None:
    columns = [np.array(y)]
    actual, worst = statistic.local(columns, np.array([0, len(y)])), statistic.worst(columns)
    assert abs(worst.change) == actual.sensitivity[0]
    moved = np.append(y, worst.point) if worst.added else np.delete(y, y.index(worst.point[0]))
    assert float(refit(statistic, moved)[0] - refit(statistic, y)[0]) == pytest.approx(
        worst.change, rel=1e-9, abs=1e-12
    )
    assert actual.error_sensitivity is not None
    for function, sensitivity in ((value_of, actual.sensitivity[0]), (error_of, actual.error_sensitivity[0])):
        grid = brute_force.sensitivity(function(statistic), columns, (Y,), 33)
        assert grid <= sensitivity * (1 + 1e-9) + 1e-11
        near = np.concatenate([np.linspace(-1, 3, 2001), [np.mean(y)]]).clip(-1, 3)
        before = function(statistic)(columns)
        fine = float(np.abs(_added(statistic, function is error_of, y, near) - before).max())
        assert max(fine, grid) >= sensitivity * (1 - 1e-4) - 1e-6


def _added(statistic: Mean, error: bool, y: list[float], near: Floats) -> Floats:
    """The statistic or its error with each of these: float refits, for a grid too fine for fractions."""
    rows = np.column_stack([np.broadcast_to(y, (near.size, len(y))), near])
    n, d = rows.shape[1], rows - rows.mean(axis=1, keepdims=True)
    s2, m4 = (d**2).sum(axis=1) / (n - 1), (d**4).mean(axis=1)
    if isinstance(statistic, Variance):
        return np.sqrt(np.maximum(m4 - s2**2 * (n - 3) / (n - 1), 0) / n) if error else s2
    return np.sqrt(s2 / n) if error else rows.mean(axis=1)


def test_errors_can_be_left_out() -> None:
    actual = Mean(Y).local([np.array([0.1, 0.2])], np.array([0, 2]), errors=False)
    assert (actual.error, actual.error_sensitivity) == (None, None)


def test_one_far_observation_among_many_equal_ones() -> None:
    y = np.r_[np.full(999, 0.1), 3.0]
    actual = Variance(Y).local([y], np.array([0, 1000]))
    assert actual.error is not None
    assert actual.error_sensitivity is not None
    assert actual.sensitivity[0] >= actual.statistic[0]  # without it nothing varies: 0, not rounding
    assert actual.error_sensitivity[0] >= actual.error[0]


def test_what_moments_say_of_themselves() -> None:
    statistics: list[Statistic] = [Mean(Y), Share(UNIT), Variance(Y)]
    assert [s.name for s in statistics] == ["mean", "share", "variance"]
    assert [s.empty for s in statistics] == [1, 0.5, 0]
    assert [s.scale for s in statistics] == [4, 1, 16]
    assert [s.parameters for s in statistics] == [1, 1, 1]
    assert all(s.has_error and s.searches()[0] == "exact" for s in statistics)


def test_a_share_refuses_other_numbers() -> None:
    with pytest.raises(ParameterError, match="of a 0/1 variable"):
        Share(Y)
    with pytest.raises(ParameterError, match="other than 0 and 1"):
        Share(UNIT).local([np.array([0.0, 0.5])], np.array([0, 2]))
