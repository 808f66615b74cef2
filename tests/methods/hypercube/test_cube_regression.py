"""Least-squares calibration against brute force, and its algebraic properties."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.hypercube import regression
from discreet.methods.hypercube.regression import fit
from discreet.post.cubes.margins import Axis, Margin
from support.hypothesis_profile import examples

Floats = NDArray[np.float64]
properties = examples(80)
WIDE = (6, 5, 30, 40)  # several rows of the compiled loops


def matrix(margin: Margin) -> Floats:
    return np.array([margin.add_up(cell) for cell in np.eye(prod(margin.shape))]).T


def brute_force(values, margins, targets, variances, weights) -> Floats:
    """Minimise over the cubes that meet the hard controls, written as one of them plus a null space. Another road than
    that of `fit`, which solves for multipliers."""
    moving = np.flatnonzero(weights)
    stacked = [matrix(margin)[:, moving] for margin in margins]
    fixed = [t - matrix(m) @ np.where(weights > 0, 0.0, values) for t, m in zip(targets, margins, strict=True)]
    hard = [j for j, v in enumerate(variances) if v == 0]
    free, start = np.eye(len(moving)), np.zeros(len(moving))
    if hard:
        a, b = np.vstack([stacked[j] for j in hard]), np.concatenate([fixed[j] for j in hard])
        _, s, right = np.linalg.svd(a)
        free = right[int((s > 1e-10).sum()) :].T
        start = np.linalg.lstsq(a, b, rcond=1e-10)[0]
    scale = [1 / np.sqrt(weights[moving])[:, None], *(1 / np.sqrt(v) for v in variances if v > 0)]
    maps = [np.eye(len(moving)), *(stacked[j] for j, v in enumerate(variances) if v > 0)]
    goals = [values[moving], *(fixed[j] for j, v in enumerate(variances) if v > 0)]
    a = np.vstack([s * (m @ free) for s, m in zip(scale, maps, strict=True)])
    b = np.concatenate([np.ravel(s * (g - m @ start)[:, None]) for s, m, g in zip(scale, maps, goals, strict=True)])
    actual = values.copy()
    actual[moving] = start + free @ np.linalg.lstsq(a, b, rcond=None)[0]
    return actual


@dataclass(frozen=True)
class Case:
    values: Floats
    margins: list[Margin]
    targets: list[Floats]
    variances: list[float]
    variance: float

    def fit(self, **changed) -> regression.Fitted:
        return fit(
            changed.get("values", self.values),
            changed.get("margins", self.margins),
            changed.get("targets", self.targets),
            changed.get("variances", self.variances),
            variance=self.variance,
        )


@st.composite
def cases(draw, noise=(0.0, 0.0, 1e-3, 1.0, 50.0)) -> Case:
    """A perturbed cube and controls of the true one: by whole axes and by groups, in any order, redundant or not."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = rng.integers(0, 40, prod(shape)).astype(float)
    margins, targets, variances = [], [], []
    for number in range(draw(st.integers(1, 4))):
        sides = []
        for place in draw(st.lists(st.integers(0, len(shape) - 1), max_size=3)):
            n = shape[place]
            groups = draw(st.sampled_from([n, max(1, n - 1), 2]))
            labels = np.arange(n) if groups == n else rng.integers(0, groups, n)
            sides.append(Axis(place, labels, groups))
        margins.append(Margin(f"m{number}", shape, tuple(sides)))
        variances.append(draw(st.sampled_from(noise)))
        targets.append(margins[-1].add_up(truth))
        if variances[-1] > 0:
            targets[-1] = targets[-1] + rng.normal(0, np.sqrt(variances[-1]), margins[-1].cells)
    variance = draw(st.sampled_from([0.002, 1.0, 30.0]))
    return Case(truth + rng.normal(0, np.sqrt(variance), len(truth)), margins, targets, variances, variance)


@properties
@given(cases())
def test_equals_brute_force_and_meets_hard_controls(case):
    actual = case.fit()
    weights = np.full(len(case.values), case.variance)
    expected = brute_force(case.values, case.margins, case.targets, case.variances, weights)
    np.testing.assert_allclose(actual.values, expected, rtol=0, atol=1e-8)
    assert actual.converged
    assert actual.problems == ()
    gaps = [
        np.abs(margin.add_up(actual.values) - totals).max()
        for margin, totals, v in zip(case.margins, case.targets, case.variances, strict=True)
        if v == 0
    ]
    assert max(gaps, default=0.0) <= 1e-9
    assert actual.largest_gap == pytest.approx(max(gaps, default=0.0), abs=1e-11)


@properties
@given(cases(noise=(1e-2, 1.0, 50.0)))
def test_noisy_controls_leave_no_gradient(case):
    actual = case.fit().values
    gradient = (actual - case.values) / case.variance
    for margin, totals, v in zip(case.margins, case.targets, case.variances, strict=True):
        gradient += matrix(margin).T @ (margin.add_up(actual) - totals) / v
    scale = 1 + np.abs(actual - case.values).max() / case.variance
    assert np.abs(gradient).max() <= 1e-8 * scale


@properties
@given(cases())
def test_controls_may_come_in_any_order(case):
    backwards = case.fit(margins=case.margins[::-1], targets=case.targets[::-1], variances=case.variances[::-1])
    np.testing.assert_allclose(backwards.values, case.fit().values, rtol=0, atol=1e-8)


@properties
@given(cases(noise=(0.0,)))
def test_hard_controls_once_met_change_nothing_and_may_be_repeated(case):
    once = case.fit().values
    np.testing.assert_allclose(case.fit(values=once).values, once, rtol=0, atol=1e-9)
    total = Margin.over(case.margins[0].shape, [], "all")
    more = case.fit(
        margins=[*case.margins, case.margins[0], total],
        targets=[*case.targets, case.targets[0], case.targets[0].sum(keepdims=True)],
        variances=[*case.variances, 0.0, 0.0],
    )
    np.testing.assert_allclose(more.values, once, rtol=0, atol=1e-9)
    assert more.converged


@properties
@given(cases(), st.floats(-3, 3))
def test_the_cube_is_linear_in_what_was_measured(case, factor):
    """So the table of a sum is the sum of the tables."""
    other = np.linspace(-5, 20, len(case.values))
    others = [margin.add_up(other[::-1].copy()) for margin in case.margins]
    both = case.fit(
        values=case.values + factor * other,
        targets=[a + factor * b for a, b in zip(case.targets, others, strict=True)],
    )
    apart = case.fit().values + factor * case.fit(values=other, targets=others).values
    np.testing.assert_allclose(both.values, apart, rtol=0, atol=1e-7)


def test_one_exact_total_is_spread_evenly():
    actual = fit(np.array([1.0, 2, 3, 4]), [Margin.over((4,), [])], [np.array([18.0])], [0.0], variance=7.0)
    np.testing.assert_allclose(actual.values, [3, 4, 5, 6])


def test_one_noisy_total_is_weighed_by_its_variance():
    """Four cells of variance 2 add up to 10 with variance 8; the control says 18 with variance 24: 10 + 8·8/32 = 12."""
    actual = fit(np.array([1.0, 2, 3, 4]), [Margin.over((4,), [])], [np.array([18.0])], [24.0], variance=2.0)
    np.testing.assert_allclose(actual.values, [1.5, 2.5, 3.5, 4.5])
    assert actual.largest_gap == 0.0


def test_a_hierarchy_of_noisy_counties_and_exact_states():
    """State sums are exact; within a state a county weighs its own control and its cells."""
    counties, states = Axis(0, np.arange(4), 4), Axis(0, np.array([0, 0, 1, 1]), 2)
    margins = [Margin("county", (4, 2), (counties,)), Margin("state", (4, 2), (states,))]
    values = np.array([1.0, 1, 2, 2, 3, 3, 4, 4])
    actual = fit(values, margins, [np.array([4.0, 4, 6, 8]), np.array([10.0, 14])], [2.0, 0.0], variance=1.0)
    # County 0: cells say 2, control 4, both of variance 2: 3. County 1: 4. Three more are missing in state 0: 1.5 each.
    np.testing.assert_allclose(actual.values.reshape(4, 2).sum(axis=1), [4.5, 5.5, 6, 8])


@pytest.mark.parametrize("noise", [(0.0,), (1.0,), (0.0, 1e-6, 3.0)])
def test_wide_cubes_go_through_the_compiled_rows(noise):
    rng = np.random.default_rng(5)
    truth = rng.poisson(2, WIDE).astype(float)
    margins = [Margin.over(WIDE, places) for places in ([0], [3, 1], [2], [2, 0], [3])]
    margins.append(Margin("grouped", WIDE, (Axis(3, rng.integers(0, 7, 40), 7), Axis(1, np.array([0, 1, 1, 0, 1]), 2))))
    variances = [noise[j % len(noise)] for j in range(len(margins))]
    targets = [m.add_up(truth) + np.sqrt(v) * rng.normal(size=m.cells) for m, v in zip(margins, variances, strict=True)]
    values = truth + rng.integers(-1, 2, WIDE)
    kept = values.copy()
    actual = fit(values, margins, targets, variances, variance=2 / 3)
    np.testing.assert_array_equal(values, kept)
    assert actual.values.shape == WIDE
    assert actual.converged
    for margin, totals, v in zip(margins, targets, variances, strict=True):
        if v == 0:
            np.testing.assert_allclose(margin.add_up(actual.values), totals, rtol=0, atol=1e-8)
    if 0.0 not in noise:
        gradient = (actual.values - values).reshape(-1) / (2 / 3)
        for margin, totals, v in zip(margins, targets, variances, strict=True):
            gradient += ((margin.add_up(actual.values) - totals) / v)[margin.parents(np.arange(values.size))]
        assert np.abs(gradient).max() < 1e-9


def test_rows_of_any_width_give_the_same(monkeypatch):
    rng = np.random.default_rng(8)
    margins = [Margin.over(WIDE, places) for places in ([0, 2], [1], [3])]
    targets = [rng.normal(100, 5, margin.cells) for margin in margins]
    values = rng.normal(size=WIDE)
    actual = fit(values, margins, targets, [1.0, 2.0, 3.0], variance=1.0).values
    for width in (1, 10**9):
        monkeypatch.setattr(regression, "ROW", width)
        np.testing.assert_allclose(
            fit(values, margins, targets, [1.0, 2.0, 3.0], variance=1.0).values, actual, atol=1e-9
        )


@st.composite
def whole_cases(draw) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    places = st.lists(st.integers(0, len(shape) - 1), unique=True)
    margins = [Margin.over(shape, draw(places)) for _ in range(draw(st.integers(1, 5)))]
    variances = [draw(st.sampled_from([0.0, 0.1, 2.0])) for _ in margins]
    truth = rng.integers(0, 9, prod(shape)).astype(float)
    targets = [m.add_up(truth) + np.sqrt(v) * rng.normal(size=m.cells) for m, v in zip(margins, variances, strict=True)]
    return Case(truth + rng.normal(size=len(truth)), margins, targets, variances, 1.0)


@properties
@given(whole_cases())
def test_the_closed_form_and_the_iteration_agree(case):
    closed = case.fit()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(regression, "CLOSED", 0)
        iterated = case.fit()
    np.testing.assert_allclose(iterated.values, closed.values, rtol=0, atol=1e-9)
    assert iterated.converged
    assert closed.converged


def test_no_ratio_of_variances_is_too_large_for_whole_axes():
    """The cube says next to nothing: the noisy total decides, and rows follow their own control but for their sum."""
    margins = [Margin.over((2, 3), [0]), Margin.over((2, 3), [])]
    actual = fit(np.zeros(6), margins, [np.array([10.0, 20.0]), np.array([33.0])], [1.0, 1.0], variance=1e20)
    np.testing.assert_allclose(margins[0].add_up(actual.values), [11, 21], rtol=1e-12)  # 2/3 of the difference of 3


def test_exact_groups_are_met_beside_noise_of_very_different_sizes():
    """Conjugate residuals end here before every noisy control has its due. What is exact holds all the same."""
    rng = np.random.default_rng(2)
    shape = (40, 5, 2)
    groups = [Axis(0, np.sort(rng.integers(0, size, 40)), size) for size in (5, 12, 25)]
    margins = [Margin(f"g{axis.size}", shape, (axis,)) for axis in groups]
    margins += [Margin.over(shape, places) for places in ([0], [1], [2, 0], [])]
    variances = [1e-6, 1.0, 1e-4, 1e2, 1e-8, 1e-2, 0.0]
    truth = rng.poisson(50, shape).astype(float)
    targets = [m.add_up(truth) + np.sqrt(v) * rng.normal(size=m.cells) for m, v in zip(margins, variances, strict=True)]
    actual = fit(truth + rng.normal(0, 30, shape), margins, targets, variances, variance=900.0)
    assert actual.largest_gap <= 1e-10 * truth.sum()
    assert actual.problems == ()
    np.testing.assert_allclose(margins[4].add_up(actual.values), targets[4], rtol=0, atol=0.1)


def test_inconsistent_controls_are_listed_and_met_halfway():
    margin, again = Margin.over((3, 2), [0], "ours"), Margin.over((3, 2), [0], "theirs")
    targets = [np.array([6.0, 6, 6]), np.array([6.0, 6, 8])]
    actual = fit(np.ones((3, 2)), [margin, again], targets, [0.0, 0.0], variance=1.0)
    np.testing.assert_allclose(margin.add_up(actual.values), [6, 6, 7])
    assert actual.largest_gap == pytest.approx(1.0)
    assert not actual.converged
    (problem,) = actual.problems
    assert (problem.kind, problem.margin, problem.cell) == ("inconsistent", "ours", 2)
    assert "theirs" in problem.detail


@properties
@given(cases(noise=(0.0, 1.0)), st.floats(1, 1e6))
def test_any_inconsistency_is_listed_and_the_solution_stays_bounded(case, wrong):
    total = Margin.over(case.margins[0].shape, [], "all")
    sums = [np.array([case.targets[0].sum()]), np.array([case.targets[0].sum() + wrong])]
    actual = case.fit(
        margins=[*case.margins, total, total],
        targets=[*case.targets, *sums],
        variances=[*case.variances, 0.0, 0.0],
    )
    assert not actual.converged
    assert {problem.kind for problem in actual.problems} == {"inconsistent"}
    assert "all" in {problem.margin for problem in actual.problems}
    assert np.abs(actual.values).max() <= 1e4 + 100 * wrong
    assert actual.largest_gap >= wrong / 2 - 1e-6


def test_three_controls_that_are_infeasible_only_together():
    """Rows, columns and diagonals of a square: row + column of a cell is constant on its diagonal, so the third table
    follows in part from the other two, though each pair of them shares no more than the total."""
    labels = {"rows": [0, 0, 1, 1], "columns": [0, 1, 0, 1], "diagonals": [0, 1, 1, 2]}
    margins = [Margin(name, (4,), (Axis(0, np.array(groups), max(groups) + 1),)) for name, groups in labels.items()]
    fine = [np.array([3.0, 7]), np.array([4.0, 6]), np.array([1.0, 5, 4])]
    assert fit(np.ones(4), margins, fine, [0.0] * 3, variance=1.0).converged
    wrong = [*fine[:2], np.array([2.0, 5, 3])]
    actual = fit(np.ones(4), margins, wrong, [0.0] * 3, variance=1.0)
    assert not actual.converged
    assert {problem.margin for problem in actual.problems} <= set(labels)
    assert all("together" in problem.detail for problem in actual.problems)
    assert actual.problems
    assert np.isfinite(actual.values).all()


def test_a_total_of_no_cells_is_named_and_the_rest_is_met():
    margin = Margin("m", (3,), (Axis(0, np.array([0, 0, 2]), 3),))
    actual = fit(np.ones(3), [margin], [np.array([4.0, 5, 3])], [0.0], variance=1.0)
    np.testing.assert_allclose(actual.values, [2, 2, 3])
    assert [(problem.kind, problem.cell) for problem in actual.problems] == [("no cells", 1)]
    soft = fit(np.ones(3), [margin], [np.array([4.0, 5, 3])], [2.0], variance=1.0)
    assert soft.converged


@properties
@given(cases(), st.floats(0, 1))
def test_a_sparse_cube_is_fitted_as_the_dense_one_with_its_zeros(case, filled):
    cells = np.flatnonzero(np.random.default_rng(3).random(len(case.values)) < filled)
    dense = np.zeros(len(case.values))
    dense[cells] = case.values[cells]
    expected = case.fit(values=dense)
    actual = fit(dense[cells], case.margins, case.targets, case.variances, variance=case.variance, cells=cells)
    np.testing.assert_array_equal(actual.values, dense[cells])
    moved = dense.copy()
    for margin, steps in zip(case.margins, actual.steps, strict=True):
        moved += steps[margin.parents(np.arange(len(dense)))]
    np.testing.assert_allclose(moved, expected.values, rtol=0, atol=1e-8)
    assert actual.converged
    assert actual.largest_gap == pytest.approx(expected.largest_gap, abs=1e-8)


def test_steps_are_what_every_cell_has_moved_by():
    margins = [Margin.over((2, 2), [0], "row"), Margin.over((2, 2), [1], "column")]
    actual = fit(np.zeros(4), margins, [np.array([2.0, 4]), np.array([3.0, 3])], [0.0, 0.0], variance=2.0)
    np.testing.assert_allclose(np.add.outer(*actual.steps).reshape(-1), actual.values, atol=1e-12)


def test_totals_that_agree_to_a_millionth_are_met_halfway():
    margins = [Margin.over((2, 2), [0], "row"), Margin.over((2, 2), [], "all")]
    targets = [np.array([600_000.0, 600_614.5]), np.array([1_200_614.0])]
    actual = fit(np.ones(4), margins, targets, [0.0, 0.0], variance=1.0)
    assert actual.converged
    assert actual.problems == ()
    assert 0.1 < actual.largest_gap < 0.5


def test_rounding_errors_of_huge_noise_are_not_inconsistencies():
    noise = 1e9 * np.random.default_rng(2).normal(size=8000)
    margins = [Margin.over((20, 400), [0], "a"), Margin.over((20, 400), [], "all")]
    actual = fit(noise, margins, [np.full(20, 5.0), np.array([100.0])], [0.0, 0.0], variance=1e18)
    assert actual.converged
    assert actual.problems == ()


def test_an_iteration_that_ends_too_early_says_so(monkeypatch):
    monkeypatch.setattr(regression, "STEPS", 1)
    monkeypatch.setattr(regression, "RESTARTS", 1)
    rng = np.random.default_rng(6)
    margins = [Margin.over((6, 5), [0], "a"), Margin("b", (6, 5), (Axis(0, np.array([0, 0, 0, 1, 1, 2]), 3),))]
    cube = rng.integers(1, 50, 30).astype(float)
    targets = [margin.add_up(cube) for margin in margins]
    actual = fit(np.ones(30), margins, targets, [0.0, 0.0], variance=1.0)
    assert not actual.converged
    assert {(problem.kind, problem.margin) for problem in actual.problems} == {("not met", "a"), ("not met", "b")}


def test_whole_numbers_and_other_memory_orders_are_read_as_they_are():
    margins = [Margin.over((3, 4), [1])]
    cube = np.asfortranarray(np.arange(12).reshape(3, 4))
    actual = fit(cube, margins, [np.array([13.0, 16, 19, 22])], [0.0], variance=1.0)  # one more than 12, 15, 18, 21
    np.testing.assert_allclose(actual.values, np.arange(12).reshape(3, 4) + 1 / 3)


def test_no_cells_and_no_controls():
    none = np.empty(0)
    margin = Margin.over((2, 2), [0])
    empty = fit(none, [margin], [np.zeros(2)], [0.0], variance=1.0, cells=np.empty(0, np.int64))
    assert empty.converged
    assert not empty.values.size
    assert fit(np.ones(4), [], [], [], variance=1.0).values.tolist() == [1, 1, 1, 1]


ROWS = Margin.over((2, 2), [0], "row")
GOOD = {"values": np.ones(4), "targets": [np.ones(2)], "variances": [0.0], "variance": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": np.ones(3)}, "expected one value per cell"),
        ({"values": np.array([1.0, 2, np.inf, 4])}, "not finite"),
        ({"targets": [np.ones(3)]}, "control row: expected one finite total"),
        ({"targets": []}, "expected one array of totals"),
        ({"variances": [-1.0]}, "expected one noise variance"),
        ({"variances": []}, "expected one noise variance"),
        ({"variances": [np.nan]}, "expected one noise variance"),
        ({"variance": 0.0}, "expected one noise variance"),
        ({"cells": np.array([0, 1])}, "expected one value per cell, with cells in ascending order"),
        ({"cells": np.array([0, 2, 1, 3])}, "ascending order"),
        ({"cells": np.array([0, 1, 2, 4])}, "outside the cube"),
        ({"cells": np.array([-1, 1, 2, 3])}, "outside the cube"),
    ],
)
def test_refuses(changed, message):
    given_ = GOOD | changed
    with pytest.raises(ParameterError, match=message):
        fit(given_.pop("values"), [ROWS], given_.pop("targets"), given_.pop("variances"), **given_)
