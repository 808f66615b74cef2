"""Roots of small polynomials: all of them, in order, double ones too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.methods.sensitivity.statistics.roots import MOST, horner, real_roots
from support.hypothesis_profile import examples


def roots(c: list[float], low: float, high: float) -> list[float]:
    out = np.full(MOST, np.nan)
    return out[: real_roots(np.array(c), low, high, out)].tolist()


def test_known_roots() -> None:
    assert roots([-2, 0, 1], -9, 9) == pytest.approx([-(2**0.5), 2**0.5], abs=1e-15)
    assert roots([-2, 0, 1], 0, 9) == pytest.approx([2**0.5], abs=1e-15)
    assert roots([1, 0, 1], -9, 9) == []
    assert roots([1, -2, 1], -9, 9) == pytest.approx([1])  # double
    assert roots([3], -1, 1) == []
    assert roots([-6, 3, 0, 0, 0], -9, 9) == pytest.approx([2])  # of a lower degree than its length


def test_ends_are_roots() -> None:
    assert roots([0, 1], 0, 1) == [0]
    assert roots([-1, 1], 0, 1) == [1]


def test_nothing_but_zero_is_a_root_everywhere() -> None:
    actual = roots([0] * 7, -1, 1)
    assert actual[0] == -1
    assert actual[-1] == 1
    assert len(actual) <= MOST


@given(
    st.lists(st.sampled_from([-1e6, -40.0, -3.0, -1.0, -1e-3, 0.0, 1e-6, 0.5, 2.0, 7.0, 1e5]), min_size=1, max_size=6),
    st.floats(0.1, 1e6),
)
@examples(300)
def test_every_root_is_found(wanted: list[float], lead: float) -> None:
    c = np.polynomial.polynomial.polyfromroots(wanted) * lead
    actual = roots(c.tolist(), -2e6, 2e6)
    for root in set(wanted):
        # A root of multiplicity m is known within (rounding)^(1/m) only: the polynomial is zero there, or one is near.
        size = horner(c, root)[2]
        near = min(actual, key=lambda r: abs(r - root), default=np.inf)
        spread = (2.0**-47 * size / abs(_taylor(c, root, wanted.count(root)))) ** (1 / wanted.count(root))
        assert abs(near - root) <= 4 * spread + 1e-12 * abs(root), (wanted, actual)


def _taylor(c: np.ndarray, root: float, m: int) -> float:
    derived = np.polynomial.polynomial.polyder(c, m)
    return float(np.polynomial.polynomial.polyval(root, derived)) / float(np.prod(np.arange(1, m + 1)))


@given(st.lists(st.floats(-1, 1).map(lambda v: round(v, 3)), min_size=2, max_size=7))
@examples(300)
def test_signs_change_only_at_roots(c: list[float]) -> None:
    actual = roots(c, -3, 3)
    grid = np.linspace(-3, 3, 2001)
    values = np.polynomial.polynomial.polyval(grid, c)
    for i in np.flatnonzero(values[1:] * values[:-1] < 0):
        assert any(grid[i] - 1e-9 <= r <= grid[i + 1] + 1e-9 for r in actual)
    assert actual == sorted(actual)
    assert all(abs(horner(np.array(c), r)[0]) <= 2.0**-40 * horner(np.array(c), r)[2] for r in actual)
