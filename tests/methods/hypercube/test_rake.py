"""Raking: one suite for the compiled loops and for a brute-force reference."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipfn.ipfn import ipfn

from discreet.errors import ParameterError
from discreet.methods.hypercube.raking import rake as module
from discreet.methods.hypercube.raking.blocks import RakingPlan
from discreet.methods.hypercube.raking.kernel import ANY, ONE, RUN
from discreet.methods.hypercube.raking.rake import RakedCube, rake
from discreet.post.cubes.margins import Axis, Floats, Margin
from support.hypothesis_profile import examples

properties = examples(60)
PAPER = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)


class Raker(Protocol):
    def __call__(
        self, values: Floats, margins: Sequence[Margin], targets: Sequence[Floats], *, tolerance: float, cycles: int
    ) -> RakedCube: ...


def by_hand(
    values: Floats,
    margins: Sequence[Margin],
    targets: Sequence[Floats],
    *,
    tolerance: float,
    cycles: int,
) -> RakedCube:
    """The definition, in NumPy: no blocks, no passes saved."""
    cube = values.reshape(-1).copy()
    numbers = np.arange(cube.size)
    done = 0
    while True:
        gaps = [np.abs(m.add_up(cube) - t) for m, t in zip(margins, targets, strict=True)]
        scaled = max(float((g / np.maximum(1, np.abs(t))).max()) for g, t in zip(gaps, targets, strict=True))
        if scaled <= tolerance or done == cycles:
            plain = max(float(gap.max()) for gap in gaps)
            return RakedCube(cube.reshape(values.shape), plain, done, scaled <= tolerance, (), scaled)
        for margin, target in zip(margins, targets, strict=True):
            sums = margin.add_up(cube)
            cube *= np.divide(target, sums, out=np.ones_like(sums), where=sums != 0)[margin.parents(numbers)]
        done += 1


every = pytest.mark.parametrize("raker", [rake, by_hand])


@dataclass(frozen=True)
class Case:
    """A cube, margins of all kinds, and targets that some positive cube has."""

    cube: Floats
    margins: list[Margin]
    targets: list[Floats]


def case(seed: int, *, negative: bool = False, zeros: bool = False, grouped: bool = True) -> Case:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, rng.integers(1, 6)).tolist())
    cube = rng.normal(2, 1.5, shape) if negative else rng.uniform(0.5, 2, shape)
    truth = rng.uniform(0.5, 2, shape)
    if zeros:
        gone = rng.random(shape) < 0.3
        cube[gone] = 0
        truth[gone] = 0
    margins = []
    for number in range(rng.integers(1, 6)):
        places = rng.permutation(len(shape))[: rng.integers(0, min(3, len(shape)) + 1)].tolist()
        axes = []
        for place in places:
            size = int(rng.integers(1, shape[place] + 1)) if grouped and rng.random() < 0.4 else shape[place]
            groups = np.arange(shape[place]) % size if rng.random() < 0.5 else np.sort(np.arange(shape[place]) % size)
            axes.append(Axis(place, groups.astype(np.int64), size))
        margins.append(Margin(f"m{number}", shape, tuple(axes)))
    return Case(cube, margins, [margin.add_up(truth) for margin in margins])


seeds = st.integers(0, 2**32 - 1)


# --- one definition -------------------------------------------------------------------------------------------------


@properties
@given(seeds, st.booleans(), st.integers(1, 4))
def test_the_loops_do_what_the_definition_says(seed: int, zeros: bool, cycles: int) -> None:
    one = case(seed, negative=True, zeros=zeros)
    want = by_hand(one.cube, one.margins, one.targets, tolerance=0, cycles=cycles)
    size = np.abs(want.values).max()
    got = rake(one.cube, one.margins, one.targets, tolerance=0, cycles=cycles)
    np.testing.assert_allclose(got.values, want.values, rtol=1e-9, atol=1e-9 * size)
    assert got.largest_gap == pytest.approx(want.largest_gap, rel=1e-6, abs=1e-9 * size)


SHAPES: list[tuple[tuple[int, ...], list[list[int]], set[int]]] = [
    (PAPER, [[i] for i in range(10)], {ONE, RUN}),
    (PAPER, [[i, j] for i in range(10) for j in range(i)], {ANY}),
    ((6, 5, 4, 40), [[0, 1], [2], [3]], {ONE, RUN}),
    ((7, 3, 5000), [[0], [1], [2, 0], []], {ONE, RUN}),
    ((30, 20, 10), [[0, 1, 2], [2], [0]], {RUN}),
    ((11, 4, 4, 5), [[0], [3], [1], [2], [0, 3]], {ANY}),
    ((9000,), [[0], []], {RUN}),
]


@pytest.mark.parametrize(("shape", "places", "kinds"), SHAPES)
def test_larger_cubes_in_every_kind_of_loop(shape: tuple[int, ...], places: list[list[int]], kinds: set[int]) -> None:
    rng = np.random.default_rng(7)
    cube = rng.uniform(-0.3, 3, shape)
    margins = [Margin.over(shape, some) for some in places]
    targets = [margin.add_up(rng.uniform(1, 3, shape)) for margin in margins]
    assert kinds <= {block.kind for block in RakingPlan.of(tuple(margins)).blocks}
    want = by_hand(cube, margins, targets, tolerance=0, cycles=3).values
    got = rake(cube, margins, targets, tolerance=0, cycles=3).values
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())


def test_blocks_are_few_and_small() -> None:
    one_way = RakingPlan.of(tuple(Margin.over(PAPER, [i]) for i in range(10)))
    assert [block.size for block in one_way.blocks] == [540, 32]
    two_way = RakingPlan.of(tuple(Margin.over(PAPER, [i, j]) for i in range(10) for j in range(i)))
    assert max(block.size for block in two_way.blocks) <= 540
    assert len(two_way.blocks) <= 10
    assert sum(len(block.parents) for block in two_way.blocks) == 45


def test_levels_of_a_hierarchy() -> None:
    """Groups that cross one another, groups within groups, and codes, all of one axis."""
    shape = (12, 6)
    rng = np.random.default_rng(3)
    codes = np.arange(12, dtype=np.int64)
    margins = [
        Margin("thirds", shape, (Axis(0, codes // 4, 3),)),
        Margin("odd by second", shape, (Axis(0, codes % 2, 2), Axis(1, np.arange(6, dtype=np.int64), 6))),
        Margin("both levels", shape, (Axis(0, codes // 6, 2), Axis(0, codes // 2, 6))),
        Margin.over(shape, [1, 0]),
    ]
    truth, cube = rng.uniform(1, 3, shape), rng.uniform(1, 3, shape)
    targets = [margin.add_up(truth) for margin in margins]
    np.testing.assert_allclose(rake(cube, margins, targets, tolerance=1e-12, cycles=5).values, truth, rtol=1e-12)
    for some in ([0, 1], [0, 1, 2], [2, 1]):
        asked = [margins[i] for i in some], [targets[i] for i in some]
        want = by_hand(cube, *asked, tolerance=0, cycles=4).values
        np.testing.assert_allclose(rake(cube, *asked, tolerance=0, cycles=4).values, want, rtol=1e-12)


# --- distributions -------------------------------------------------------------------------------------------------


@every
@properties
@given(seeds, st.booleans())
def test_margins_are_met_at_convergence(raker: Raker, seed: int, zeros: bool) -> None:
    one = case(seed, zeros=zeros)
    made = raker(one.cube, one.margins, one.targets, tolerance=1e-9, cycles=5000)
    assert made.converged
    gaps = [np.abs(m.add_up(made.values) - t) for m, t in zip(one.margins, one.targets, strict=True)]
    assert max(float(gap.max()) for gap in gaps) == pytest.approx(made.largest_gap, abs=1e-12)
    for gap, target in zip(gaps, one.targets, strict=True):
        assert (gap <= 1.0001e-9 * np.maximum(1, target)).all()


@every
@properties
@given(seeds)
def test_raking_again_changes_nothing(raker: Raker, seed: int) -> None:
    one = case(seed)
    made = raker(one.cube, one.margins, one.targets, tolerance=1e-9, cycles=5000)
    again = raker(made.values, one.margins, one.targets, tolerance=2e-9, cycles=10)
    assert again.cycles == 0
    assert again.converged
    np.testing.assert_array_equal(again.values, made.values)


@every
@properties
@given(seeds)
def test_sums_of_tables_are_the_table_of_sums(raker: Raker, seed: int) -> None:
    one = case(seed, negative=True)
    made = raker(one.cube, one.margins, one.targets, tolerance=1e-9, cycles=3).values
    shape = one.cube.shape
    fine = Margin.over(shape, range(len(shape))).add_up(made).reshape(shape)
    for place in range(len(shape)):
        rest = tuple(i for i in range(len(shape)) if i != place)
        size = np.abs(made).sum()
        np.testing.assert_allclose(Margin.over(shape, [place]).add_up(made), fine.sum(axis=rest), atol=1e-12 * size)


@every
@properties
@given(seeds)
def test_the_order_of_margins_is_irrelevant_at_convergence(raker: Raker, seed: int) -> None:
    one = case(seed)
    made = raker(one.cube, one.margins, one.targets, tolerance=1e-11, cycles=5000)
    other = raker(one.cube, one.margins[::-1], one.targets[::-1], tolerance=1e-11, cycles=5000)
    np.testing.assert_allclose(made.values, other.values, rtol=1e-6)


@every
@properties
@given(seeds, st.integers(1, 3))
def test_axes_may_be_permuted(raker: Raker, seed: int, cycles: int) -> None:
    one = case(seed)
    order = np.random.default_rng(seed).permutation(one.cube.ndim)
    moved = np.argsort(order)  # where each axis went
    shape = tuple(one.cube.shape[i] for i in order)
    margins = [
        Margin(m.name, shape, tuple(Axis(int(moved[axis.place]), axis.groups, axis.size) for axis in m.axes))
        for m in one.margins
    ]
    made = raker(one.cube, one.margins, one.targets, tolerance=0, cycles=cycles).values
    other = raker(
        np.ascontiguousarray(one.cube.transpose(order)), margins, one.targets, tolerance=0, cycles=cycles
    ).values
    np.testing.assert_allclose(other, made.transpose(order), rtol=1e-11)


@every
@properties
@given(seeds, st.floats(1e-6, 1e6))
def test_a_change_of_unit_changes_the_unit(raker: Raker, seed: int, unit: float) -> None:
    one = case(seed)
    made = raker(one.cube, one.margins, one.targets, tolerance=0, cycles=3).values
    both = raker(unit * one.cube, one.margins, [unit * t for t in one.targets], tolerance=0, cycles=3).values
    np.testing.assert_allclose(both, unit * made, rtol=1e-10)
    cube = raker(unit * one.cube, one.margins, one.targets, tolerance=0, cycles=3).values  # the first margin undoes it
    np.testing.assert_allclose(cube, made, rtol=1e-10)


@every
@properties
@given(seeds)
def test_interactions_beyond_the_margins_are_kept(raker: Raker, seed: int) -> None:
    """One-way margins multiply cells by a_i·b_j·…: ratios x_ij·x_kl / (x_il·x_kj) stay."""
    rng = np.random.default_rng(seed)
    shape = (3, 4, 2)
    cube, truth = rng.uniform(0.2, 3, (2, *shape))
    margins = [Margin.over(shape, [i]) for i in range(3)]
    made = raker(cube, margins, [m.add_up(truth) for m in margins], tolerance=1e-10, cycles=1000)
    assert made.converged

    def ratios(x: Floats) -> Floats:
        return x[1:, 1:] * x[:1, :1] / (x[1:, :1] * x[:1, 1:])

    np.testing.assert_allclose(ratios(made.values), ratios(cube), rtol=1e-8)


@properties
@given(seeds)
def test_ipfn_agrees(seed: int) -> None:
    one = case(seed, grouped=False)
    shape = one.cube.shape
    places = [sorted(axis.place for axis in margin.axes) for margin in one.margins if margin.axes]
    margins = [Margin.over(shape, some) for some in places or [[0]]]
    truth = np.random.default_rng(seed).uniform(0.5, 2, shape)
    targets = [margin.add_up(truth) for margin in margins]
    shaped = [t.reshape(m.sizes) for m, t in zip(margins, targets, strict=True)]
    theirs: Any = ipfn(
        one.cube.copy(), shaped, places or [[0]], convergence_rate=1e-12, rate_tolerance=0, max_iteration=9999
    ).iteration()
    ours = rake(one.cube, margins, targets, tolerance=1e-11, cycles=9999)
    assert ours.converged
    np.testing.assert_allclose(ours.values, theirs, rtol=1e-6)


# --- what cannot be met ---------------------------------------------------------------------------------------------

SQUARE = [Margin.over((2, 2), [0], "rows"), Margin.over((2, 2), [1], "columns")]


def square(cube: list[list[float]], rows: list[float], columns: list[float], cycles: int = 200) -> RakedCube:
    return rake(np.array(cube), SQUARE, [np.array(rows), np.array(columns)], tolerance=1e-9, cycles=cycles)


def named(made: RakedCube) -> list[tuple[str, str, int]]:
    return [(problem.kind, problem.margin, problem.cell) for problem in made.problems]


def test_a_structural_zero_is_named_and_left_alone() -> None:
    made = square([[0, 0], [1, 2]], [1, 3], [2, 2])
    assert not made.converged
    assert named(made)[0] == ("no cells", "rows", 0)
    assert not made.values[0].any()
    assert made.largest_gap == pytest.approx(1, abs=1)


def test_a_structural_zero_without_a_target_is_no_problem() -> None:
    made = square([[0, 0], [1, 2]], [0, 4], [2, 2])
    assert made.converged
    assert made.problems == ()
    np.testing.assert_allclose(made.values, [[0, 0], [2, 2]])


def test_a_target_of_zero_empties_its_slice() -> None:
    made = square([[3, -1], [1, 2]], [0, 4], [2, 2])
    assert made.converged
    assert made.problems == ()
    np.testing.assert_allclose(made.values, [[0, 0], [2, 2]])


def test_a_slice_that_other_targets_empty_is_named() -> None:
    made = square([[0, 3], [1, 0]], [2, 0], [2, 0])
    assert not made.converged
    assert ("no cells", "rows", 0) in named(made)


def test_a_sum_that_cancels_is_not_an_empty_slice() -> None:
    made = square([[1, -1], [2, 2]], [1, 4], [3, 2], cycles=1)
    assert ("sum not positive", "rows", 0) in named(made)
    assert "no cells" not in {kind for kind, _, _ in named(made)}


def test_negative_sums_and_targets_are_named_and_tried() -> None:
    made = square([[-3, 1], [2, 2]], [1, 4], [3, 2])
    assert ("sum not positive", "rows", 0) in named(made)
    assert made.cycles > 0
    made = square([[-1, 3], [2, 2]], [2, 4], [-1, 7], cycles=1)
    assert ("target not positive", "columns", 0) in named(made)
    met = square([[-1, -2], [-3, -4]], [-3, -7], [-4, -6])  # its own margins
    assert met.converged
    assert {kind for kind, _, _ in named(met)} == {"target not positive"}


def test_negative_cells_are_kept() -> None:
    made = square([[-0.2, 1], [2, 2]], [1, 4], [2, 3])
    assert made.converged
    assert made.values[0, 0] < 0
    assert made.problems == ()


def test_negative_cells_may_leave_no_cube_to_find() -> None:
    """Raking keeps x_11·x_22/(x_12·x_21) = −24. With these margins that is 25a² − 459a + 2160 = 0: no real root."""
    assert 459**2 < 4 * 25 * 2160
    made = square([[8, -1], [2, 6]], [9, 7], [10, 6], cycles=1000)
    assert not made.converged
    assert [kind for kind, _, _ in named(made)] == ["not met"]
    (a, b), (c, d) = made.values.tolist()
    assert a * d / (b * c) == pytest.approx(-24, rel=1e-6)


def test_inconsistent_targets_are_listed() -> None:
    made = square([[1, 1], [2, 2]], [0.5, 2], [2, 3])
    assert not made.converged
    assert made.largest_gap == pytest.approx(2)
    assert named(made) == [("inconsistent", "rows", 1)]  # 4 for 2, 1 for 0.5
    assert "columns" in made.problems[0].detail


def test_inconsistencies_within_equal_totals_are_detected() -> None:
    """Both tables have the total 8, but other rows; one of them by groups of the rows."""
    shape = (4, 2, 2)
    halves = Margin("halves", shape, (Axis(0, np.array([0, 0, 1, 1]), 2), Axis(1, np.arange(2), 2)))
    rows = Margin.over(shape, [2, 0], "rows")
    even, uneven = np.ones(8), np.array([2.0, 1, 1, 1, 1, 1, 1, 0])
    made = rake(np.ones(shape), [halves, rows], [2 * np.ones(4), even], tolerance=1e-9, cycles=5)
    assert made.converged
    made = rake(np.ones(shape), [halves, rows], [2 * np.ones(4), uneven], tolerance=1e-9, cycles=5)
    assert [kind for kind, _, _ in named(made)] == ["inconsistent"]
    swapped = np.array([1.0, 1, 2, 0, 1, 1, 0, 2])  # by rows within the halves: consistent
    assert rake(np.ones(shape), [halves, rows], [2 * np.ones(4), swapped], tolerance=1e-9, cycles=5).converged


def test_a_large_tolerance_is_not_an_inconsistency() -> None:
    """Targets a tenth apart, gaps of a twentieth allowed: another cycle may help, or not."""
    made = rake(np.eye(2), SQUARE, [np.array([1.0, 1.0]), np.array([1.1, 1.0])], tolerance=0.05, cycles=1)
    assert not made.converged
    assert [kind for kind, _, _ in named(made)] == ["not met"]
    made = rake(np.eye(2), SQUARE, [np.array([1.0, 1.0]), np.array([1.1, 1.0])], tolerance=0.01, cycles=1)
    assert [kind for kind, _, _ in named(made)] == ["inconsistent"]


def test_too_few_cycles_are_not_an_inconsistency() -> None:
    rng = np.random.default_rng(5)
    truth = rng.uniform(0.1, 5, (2, 2))
    made = square([[9, 1], [1, 9]], truth.sum(1).tolist(), truth.sum(0).tolist(), cycles=1)
    assert not made.converged
    assert [kind for kind, _, _ in named(made)] == ["not met"]


def test_a_list_of_problems_stays_short() -> None:
    shape = (500, 2)
    made = rake(np.zeros(shape), [Margin.over(shape, [0])], [np.ones(500)], tolerance=1e-9, cycles=1)
    assert len(made.problems) == 100
    assert "400 more" in made.problems[0].detail


def test_convergence_is_not_standing_still() -> None:
    """From the second cycle on nothing changes any more, and the first margin is not met."""
    made = square([[1, 1], [1, 1]], [1, 2], [2, 3], cycles=100)
    assert made.cycles == 100
    assert not made.converged


@every
def test_all_margins_are_looked_at_not_only_the_first(raker: Raker) -> None:
    """Many blocks: the first stays met while the later ones are not."""
    shape = (3, 30, 30, 30)
    rng = np.random.default_rng(11)
    cube, truth = rng.uniform(0.5, 2, (2, *shape))
    margins = [Margin.over(shape, some) for some in ([0], [1, 2], [2, 3], [1, 3])]
    targets = [margin.add_up(truth) for margin in margins]
    one = raker(cube, margins, targets, tolerance=1e-3, cycles=1)
    assert not one.converged
    assert one.scaled_gap > 1e-3
    made = raker(cube, margins, targets, tolerance=1e-3, cycles=100)
    assert made.converged
    for margin, target in zip(margins, targets, strict=True):
        assert (np.abs(margin.add_up(made.values) - target) <= 1e-3 * target).all()


def test_it_stops_before_it_overflows() -> None:
    made = square([[1e-200, 1], [1, 1e-200]], [1e290, 1], [1, 1e-290], cycles=50)
    assert not made.converged
    assert np.isfinite(made.values).all()
    tiny = rake(np.full((2, 2), 5e-324), SQUARE[:1], [np.ones(2)], tolerance=1e-9, cycles=5)
    assert not tiny.converged
    assert tiny.cycles == 0
    np.testing.assert_array_equal(tiny.values, np.full((2, 2), 5e-324))


def test_it_stops_before_a_sum_within_a_block_overflows() -> None:
    """The row's factor is 1e150: two of its cells would be infinite, and then 0 for the sake of their columns."""
    cube, shape = np.array([[1e200, -1e200, 1.0]]), (1, 3)
    margins = [Margin.over(shape, [0]), Margin.over(shape, [1])]
    made = rake(cube, margins, [np.array([1e150]), np.ones(3)], tolerance=1e-9, cycles=5)
    assert (made.converged, made.cycles) == (False, 0)
    np.testing.assert_array_equal(made.values, cube)


@pytest.mark.parametrize("shape", [(4, 5), (6, 5, 4, 40), (3, 30, 30, 30)])
def test_it_ends_with_the_first_cycle_that_meets_all(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(13)
    cube, truth = rng.uniform(0.1, 2, (2, *shape))
    margins = [Margin.over(shape, [i, (i + 1) % len(shape)][: len(shape) - 1]) for i in range(len(shape))]
    targets = [margin.add_up(truth) for margin in margins]
    want = by_hand(cube, margins, targets, tolerance=1e-6, cycles=100)
    assert 1 < want.cycles < 100
    assert rake(cube, margins, targets, tolerance=1e-6, cycles=100).cycles == want.cycles


def test_the_gap_is_that_of_the_cube_that_is_returned() -> None:
    one = case(21, negative=True)
    for cycles in (1, 2, 7):
        made = rake(one.cube, one.margins, one.targets, tolerance=1e-13, cycles=cycles)
        gaps = [np.abs(m.add_up(made.values) - t).max() for m, t in zip(one.margins, one.targets, strict=True)]
        assert made.largest_gap == pytest.approx(max(gaps), rel=1e-6, abs=1e-11)


def test_nothing_that_is_given_changes() -> None:
    one = case(4, negative=True, zeros=True)
    before = one.cube.copy(), [target.copy() for target in one.targets]
    made = rake(one.cube, one.margins, one.targets, tolerance=0, cycles=3)
    np.testing.assert_array_equal(one.cube, before[0])
    for target, same in zip(one.targets, before[1], strict=True):
        np.testing.assert_array_equal(target, same)
    assert made.values.shape == one.cube.shape
    assert not np.shares_memory(made.values, one.cube)
    met = rake(one.cube, one.margins, [m.add_up(one.cube) for m in one.margins], tolerance=1e-9, cycles=3)
    assert not np.shares_memory(met.values, one.cube)


def test_integers_and_fortran_order_are_read_as_they_are_meant() -> None:
    cube = np.arange(1, 7).reshape(2, 3)
    margins = [Margin.over((2, 3), [0]), Margin.over((2, 3), [1])]
    targets = [np.array([4, 8]), np.array([3, 4, 5])]
    want = by_hand(cube.astype(np.float64), margins, [t.astype(float) for t in targets], tolerance=0, cycles=2).values
    for given_as in (cube, np.asfortranarray(cube.astype(np.float64)), cube.astype(np.float32)):
        made = rake(given_as, margins, targets, tolerance=0, cycles=2)  # type: ignore[arg-type]
        np.testing.assert_allclose(made.values, want, rtol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": np.ones(3)},
        {"values": np.array([1, 2, nan, 4])},
        {"values": np.array([1, 2, inf, 4])},
        {"values": np.full(4, 1e305)},
        {"margins": []},
        {"margins": [SQUARE[0], Margin.over((4,), [0])], "targets": [np.ones(2), np.ones(4)]},
        {"margins": [Margin.over((0, 2), [0])], "targets": [np.ones(0)]},
        {"margins": [Margin.over((2**16, 2**16), [0, 1])], "targets": [np.ones(1)]},
        {"targets": [np.ones(2)]},
        {"targets": [np.ones(2), np.ones(3)]},
        {"targets": [np.ones(2), np.array([1, nan])]},
        {"tolerance": -1e-9},
        {"tolerance": nan},
        {"tolerance": inf},
        {"cycles": 0},
    ],
)
def test_bad_input_is_refused(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"values": np.ones(4), "margins": SQUARE, "targets": [np.ones(2)] * 2}
    with pytest.raises(ParameterError):
        rake(**{"tolerance": 1e-9, "cycles": 5, **right, **wrong})


def test_the_proof_runs() -> None:
    page = Path(module.__file__).with_suffix(".md")
    assert doctest.testfile(str(page), module_relative=False).failed == 0
