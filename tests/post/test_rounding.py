"""Rounding of protected integers."""

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.post.rounding import nonnegative, to_multiple
from support.hypothesis_profile import examples

properties = examples(60)

values = st.lists(st.integers(-(2**60), 2**60), max_size=20)


@properties
@given(values)
def test_nonnegative(numbers: list[int]) -> None:
    assert nonnegative(np.array(numbers, np.int64)).tolist() == [max(n, 0) for n in numbers]


@properties
@given(values, st.integers(2, 10**9))
def test_to_multiple_is_the_formula(numbers: list[int], base: int) -> None:
    """sign(v)·⌊|v|/base + 1/2⌋·base, in exact arithmetic."""
    expected = [(1 if n >= 0 else -1) * floor(Fraction(abs(n), base) + Fraction(1, 2)) * base for n in numbers]
    actual = to_multiple(np.array(numbers, np.int64), base)
    assert actual.tolist() == expected
    assert actual.dtype == np.int64


@properties
@given(values, st.integers(2, 10**6))
def test_to_multiple_is_near_odd_and_idempotent(numbers: list[int], base: int) -> None:
    array = np.array(numbers, np.int64)
    actual = to_multiple(array, base)
    assert (np.abs(actual - array) * 2 <= base).all()
    assert (actual % base == 0).all()
    assert (to_multiple(-array, base) == -actual).all()
    assert (to_multiple(actual, base) == actual).all()


@properties
@given(st.integers(-(2**63), 2**63 - 1), st.integers(2, 10**9))
@example(2**63 - 1, 10)
@example(-(2**63), 10)
def test_to_multiple_never_changes_the_sign(number: int, base: int) -> None:
    (actual,) = to_multiple(np.array([number], np.int64), base).tolist()
    assert actual == 0 or (actual > 0) == (number > 0)


def test_the_input_is_left_alone() -> None:
    numbers = np.array([-3, 4], np.int64)
    nonnegative(numbers)
    to_multiple(numbers, 5)
    assert numbers.tolist() == [-3, 4]
