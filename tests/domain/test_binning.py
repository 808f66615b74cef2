"""Bins: public edges, the bin of a value, and the ways of declaring bins."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain.bins import LARGEST, MOST, PSEO, Bins, lognormal
from discreet.errors import ParameterError
from support.hypothesis_profile import examples

properties = examples(80)
FOUR = Bins((10, 20, 30, 40, 50))
edges = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12, unique=True).map(lambda b: tuple(sorted(b)))


# --- edges ----------------------------------------------------------------------------------------------------------


def test_pseo_has_21_bins_and_its_first_and_last_edges() -> None:
    assert (PSEO.count, PSEO.edges[0], PSEO.edges[-2], PSEO.edges[-1]) == (21, 10_000, 262_475, 614_597)
    assert PSEO.edge_array().tolist() == list(PSEO.edges)
    assert "Table 1" in PSEO.provenance


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ((), "0 edges"),
        ((5,), "1 edges"),
        (tuple(range(MOST + 2)), "1002 edges"),
        ((1, 1), "edge 1 is not above 1"),
        ((1, 3, 2), "edge 2 is not above 3"),
        ((0, LARGEST + 1), "not an integer"),
        ((-LARGEST - 1, 0), "not an integer"),
        ((0, 1.5), "not an integer"),
        ((False, True), "not an integer"),
        ((0, np.int64(3)), "not an integer"),
    ],
)
def test_invalid_edges_are_refused(given_: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as caught:
        Bins(given_)
    assert caught.value.where == "bins"
    assert caught.value.do


def test_the_largest_edges_and_the_most_bins_are_fine() -> None:
    assert Bins((-LARGEST, LARGEST)).count == 1
    assert Bins(tuple(range(MOST + 1))).count == MOST


# --- the bin of a value ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "number"),
    [(-1e300, 0), (9.99, 0), (10, 0), (19.999, 0), (20, 1), (30, 2), (39.999, 2), (40, 3), (50, 3), (1e300, 3)],
)
def test_an_edge_belongs_to_the_bin_above_it_and_the_ends_are_open(value: float, number: int) -> None:
    """A value equal to b_M is in the last bin, whose nominal end bounds nothing."""
    assert FOUR.number(np.array([value])).tolist() == [number]


def test_pseo_values_at_the_ends() -> None:
    assert PSEO.number(np.array([0, 9_999, 10_000, 17_402, 17_403, 262_474, 262_475, 10**12])).tolist() == [
        *(0, 0, 0, 0),
        *(1, 19, 20, 20),
    ]


def test_one_bin_contains_everything() -> None:
    assert Bins((0, 1)).number(np.array([-5, 0, 1, 7])).tolist() == [0, 0, 0, 0]


@properties
@given(edges, st.lists(st.integers(-1100, 1100), max_size=30))
def test_number_against_its_definition(actual: tuple[int, ...], values: list[int]) -> None:
    bins = Bins(actual)
    expected = [min(max(bisect_right(actual, value) - 1, 0), bins.count - 1) for value in values]
    assert bins.number(np.array(values, np.int64)).tolist() == expected
    for value, place in zip(values, expected, strict=True):
        assert place == 0 or actual[place] <= value
        assert place == bins.count - 1 or value < actual[place + 1]


# --- other prices ---------------------------------------------------------------------------------------------------


def test_indexed_rounds_halves_upwards_also_below_zero() -> None:
    moved = Bins((-3, -1, 0, 1, 3)).indexed(Fraction(3, 2), "later")
    assert moved.edges == (-4, -1, 0, 2, 5)  # −4.5 → −4, −1.5 → −1, 1.5 → 2, 4.5 → 5
    assert moved.provenance == "later"


@properties
@given(st.fractions(Fraction(1, 2), Fraction(3), max_denominator=1000))
def test_indexed_is_the_nearest_unit_exactly(ratio: Fraction) -> None:
    for before, after in zip(PSEO.edges, PSEO.indexed(ratio, "").edges, strict=True):
        assert -Fraction(1, 2) <= before * ratio - after < Fraction(1, 2)


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1)])
def test_prices_are_positive(ratio: Fraction) -> None:
    with pytest.raises(ParameterError, match="a price ratio of"):
        PSEO.indexed(ratio, "")


def test_a_price_ratio_that_merges_edges_is_refused() -> None:
    with pytest.raises(ParameterError, match="is not above"):
        FOUR.indexed(Fraction(1, 100), "")


# --- lognormal ------------------------------------------------------------------------------------------------------


def test_lognormal_is_the_construction_of_the_pseo_beta_appendix() -> None:
    """PSEO Beta Appendix, §2: unrounded parameters near these give Table 1, the printed ones do not."""
    actual = lognormal(Fraction("11.00255"), Fraction("0.75275"), 10_000)
    assert actual.count == PSEO.count
    apart = [abs(a / b - 1) for a, b in zip(actual.edges, PSEO.edges, strict=True)]
    assert max(apart) < 1e-4
    printed = lognormal(Fraction("11.003"), Fraction("0.753"), 10_000)
    assert printed.edges != PSEO.edges  # why the table is data
    assert printed.provenance == "percentiles of lognormal(11.003, 0.753) above a floor of 10,000"


@pytest.mark.parametrize("deviation", [Fraction(0), Fraction(-1)])
def test_a_deviation_is_positive(deviation: Fraction) -> None:
    with pytest.raises(ParameterError, match="not positive") as caught:
        lognormal(Fraction(11), deviation, 0)
    assert caught.value.where == "bins.lognormal"


@pytest.mark.parametrize(
    ("mean", "deviation", "floor", "says"),
    [
        (Fraction(11), Fraction("0.75"), 20_000, "is not above 20000"),  # the floor is above the 5th percentile
        (Fraction(1), Fraction("0.1"), 0, "is not above"),  # rounding makes two edges one
        (Fraction(30), Fraction(1), 0, "not an integer"),  # above 2^40
    ],
)
def test_parameters_that_give_no_bins_are_refused(mean: Fraction, deviation: Fraction, floor: int, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        lognormal(mean, deviation, floor)


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [
        (Fraction(1000), Fraction(1)),  # e^1000 is no double
        (Fraction(10), Fraction(10**4)),
        (Fraction(10) ** 400, Fraction(1)),  # nor is this
        (Fraction(10), Fraction(10) ** 400),
        (Fraction(10), Fraction(1, 10**400)),  # 0 as a double
    ],
)
def test_parameters_beyond_doubles_are_refused_with_a_message(mean: Fraction, deviation: Fraction) -> None:
    with pytest.raises(ParameterError):
        lognormal(mean, deviation, 1)
