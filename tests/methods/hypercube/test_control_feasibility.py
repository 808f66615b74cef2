"""Inconsistent hard controls are listed before any budget is spent, and consistent ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.hypercube.control_feasibility import infeasible_totals
from discreet.post.cubes.margins import Axis, Margin
from support.hypothesis_profile import examples

properties = examples(150)
SHAPE = (4, 3, 2)
CUBE = np.arange(1.0, 25.0)


@st.composite
def axes(draw, place: int, size: int) -> Axis:
    """Whole, or any grouping, with groups that no code belongs to among them."""
    if draw(st.booleans()):
        return Axis(place, np.arange(size), size)
    groups = draw(st.integers(1, size + 1))
    return Axis(place, np.array(draw(st.lists(st.integers(0, groups - 1), min_size=size, max_size=size))), groups)


@st.composite
def controls(draw) -> tuple[list[Margin], np.ndarray]:
    """Some margins of a cube of counts: axes in any order, one of them perhaps twice."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    margins = []
    for number in range(draw(st.integers(2, 4))):
        places = draw(st.lists(st.integers(0, len(shape) - 1), max_size=3))
        margins.append(Margin(f"m{number}", shape, tuple(draw(axes(place, shape[place])) for place in places)))
    cube = np.random.default_rng(draw(st.integers(0, 99))).integers(1, 9, int(np.prod(shape))).astype(float)
    return margins, cube


@properties
@given(controls())
def test_margins_of_one_cube_agree(drawn):
    margins, cube = drawn
    assert infeasible_totals(margins, [margin.add_up(cube) for margin in margins], 1e-9) == []


@properties
@given(controls(), st.integers(0, 10**6), st.sampled_from([1.0, 0.001]))
def test_one_changed_total_is_inconsistent_with_every_other_margin(drawn, which, change):
    """At least in the sum of all."""
    margins, cube = drawn
    targets = [margin.add_up(cube) for margin in margins]
    filled = np.flatnonzero(targets[0])
    cell = int(filled[which % len(filled)])
    targets[0][cell] += change
    actual = infeasible_totals(margins, targets, 1e-9)
    assert [problem.margin for problem in actual] == ["m0"] * (len(margins) - 1)
    assert {problem.kind for problem in actual} == {"inconsistent"}
    assert all(margin.name in problem.detail for margin, problem in zip(margins[1:], actual, strict=True))


def test_names_both_controls_the_cell_and_both_sums():
    a, b = Margin.over(SHAPE, [2, 0], "age by sex"), Margin.over(SHAPE, [0, 1], "sex by state")
    targets = [a.add_up(CUBE), b.add_up(CUBE)]
    targets[1][5] += 2  # sex 1, state 2: the sum of sex 1 was 7 + … + 12 = 57
    targets[1][6] += 1  # sex 2: was 93
    (problem,) = infeasible_totals([a, b], targets, 1e-9)
    assert (problem.kind, problem.margin, problem.cell) == ("inconsistent", "age by sex", 1)
    assert problem.detail == "its cells add up to 57, those of sex by state to 59; 1 more sums differ"


def test_compares_at_the_coarser_groups():
    fine = Margin("county", (4,), (Axis(0, np.arange(4), 4),))
    coarse = Margin("state", (4,), (Axis(0, np.array([1, 0, 1, 0]), 2),))
    assert infeasible_totals([fine, coarse], [np.array([1.0, 2, 3, 4]), np.array([6.0, 4])], 0.0) == []
    (problem,) = infeasible_totals([fine, coarse], [np.array([1.0, 2, 3, 4]), np.array([5.0, 5])], 0.0)
    assert problem.cell in (0, 1)
    assert "add up to" in problem.detail


def test_crossing_groups_are_compared_over_their_connected_components():
    """{ab}{c}{de} and {a}{bc}{de}: a, b and c hang together, d and e do."""
    a = Margin("a", (5,), (Axis(0, np.array([0, 0, 1, 2, 2]), 3),))
    b = Margin("b", (5,), (Axis(0, np.array([0, 1, 1, 2, 2]), 3),))
    assert infeasible_totals([a, b], [np.array([3.0, 3, 9]), np.array([1.0, 5, 9])], 0.0) == []
    (problem,) = infeasible_totals([a, b], [np.array([3.0, 4, 8]), np.array([1.0, 5, 9])], 0.0)
    assert problem.detail.startswith("its cells add up to 7, those of b to 6; 1 more")


def test_tables_without_a_common_axis_share_the_total():
    a, b = Margin.over(SHAPE, [0], "a"), Margin.over(SHAPE, [1], "b")
    (problem,) = infeasible_totals([a, b], [np.full(4, 3.0), np.full(3, 5.0)], 1e-9)
    assert problem.detail == "in total its cells add up to 12, those of b to 15"


def test_the_tolerance_is_relative_above_one():
    a, b = Margin.over(SHAPE, [], "a"), Margin.over(SHAPE, [], "b")
    near, far = [np.array([1e6]), np.array([1e6 + 0.9])], [np.array([1e6]), np.array([1e6 + 1.1])]
    assert infeasible_totals([a, b], near, 1e-6) == []
    assert len(infeasible_totals([a, b], far, 1e-6)) == 1


def test_totals_that_no_table_of_counts_has():
    margin = Margin.over(SHAPE, [1], "state")
    (negative,) = infeasible_totals([margin], [np.array([5.0, -3, 2])], 0.0)
    assert (negative.kind, negative.cell) == ("target not positive", 1)
    assert "-3" in negative.detail
    (zero,) = infeasible_totals([margin], [np.zeros(3)], 0.0)
    assert (zero.kind, zero.detail) == ("target not positive", "every total is 0")


def test_a_total_of_no_cells():
    margin = Margin("m", (3, 2), (Axis(1, np.arange(2), 2), Axis(0, np.array([0, 2, 2]), 3)))
    assert infeasible_totals([margin], [np.array([1.0, 0, 2, 3, 0, 4])], 0.0) == []
    (problem,) = infeasible_totals([margin], [np.array([1.0, 0, 2, 3, 7, 4])], 0.0)
    assert (problem.kind, problem.cell) == ("no cells", 4)
    other = Margin.over((3, 2), [1], "other")
    with_other = infeasible_totals([margin, other], [np.array([1.0, 0, 2, 3, 7, 4]), np.array([3.0, 7])], 0.0)
    assert with_other == [problem]  # it is not counted towards what both have in common


@pytest.mark.parametrize("totals", [np.ones(2), np.array([1.0, np.nan, 1.0]), np.ones((3, 1))])
def test_refuses_what_is_not_one_finite_total_a_cell(totals):
    with pytest.raises(ParameterError, match="control state: expected one finite total per cell"):
        infeasible_totals([Margin.over(SHAPE, [1], "state")], [totals], 0.0)


def test_refuses_margins_of_two_cubes():
    with pytest.raises(ParameterError, match="of one cube"):
        infeasible_totals([Margin.over((2,), [0]), Margin.over((3,), [0])], [np.ones(2), np.ones(3)], 0.0)
