"""The stated variance of a query against brute force, what `fit` does to unit errors, and drawn noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.hypercube.regression import fit
from discreet.noise.key import public_stream
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Axis, Margin
from discreet.post.cubes.variance import KnownMargin, Perturbation, reduction
from support.hypothesis_profile import examples

Floats = NDArray[np.float64]
properties = examples(60)
PAPER = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)
ONE_WAY = tuple(KnownMargin((axis,), 0.0) for axis in range(10))


def matrix(margin: Margin) -> Floats:
    return np.array([margin.add_up(cell) for cell in np.eye(prod(margin.shape))]).T


def covariance(margins: list[Margin], variances: list[float], variance: float) -> Floats:
    """Of the generalised least-squares cube: the inverse of the information, on the null space of the hard controls."""
    cells = prod(margins[0].shape) if margins else 0
    hard = [matrix(margin) for margin, v in zip(margins, variances, strict=True) if v == 0]
    free = np.eye(cells)
    if hard:
        _, s, right = np.linalg.svd(np.vstack(hard))
        free = right[int((s > 1e-10).sum()) :].T
    information = np.eye(cells) / variance
    for margin, v in zip(margins, variances, strict=True):
        if v > 0:
            information += matrix(margin).T @ matrix(margin) / v
    return free @ np.linalg.inv(free.T @ information @ free) @ free.T


def indicator(shape: tuple[int, ...], sizes: tuple[int, ...], seed: int = 0) -> Floats:
    """A product set with so many codes of each axis, not the first ones."""
    rng = np.random.default_rng(seed)
    chosen = np.ones(())
    for n, k in zip(shape, sizes, strict=True):
        side = np.zeros(n)
        side[rng.permutation(n)[:k]] = 1.0
        chosen = np.multiply.outer(chosen, side)
    return chosen.reshape(-1)


@st.composite
def perturbations(draw) -> Perturbation:
    shape = tuple(
        draw(
            st.one_of(
                st.lists(st.integers(1, 5), min_size=1, max_size=2), st.lists(st.integers(1, 3), min_size=3, max_size=4)
            )
        )
    )
    places = st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape)).map(tuple)
    controls = st.builds(KnownMargin, places, st.sampled_from([0.0, 0.01, 1.0, 20.0]))
    return Perturbation(shape, draw(st.sampled_from([0.002, 1.0, 30.0])), tuple(draw(st.lists(controls, max_size=4))))


def margins_of(stated: Perturbation) -> list[Margin]:
    return [Margin.over(stated.shape, known.places) for known in stated.controls]


def every_size(shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(list(product(*(range(n + 1) for n in shape))), np.int64)


@properties
@given(perturbations())
def test_equals_brute_force_for_every_size_of_query(stated):
    if not stated.controls:
        expected_cube = stated.variance * np.eye(prod(stated.shape))
    else:
        expected_cube = covariance(margins_of(stated), [known.variance for known in stated.controls], stated.variance)
    sizes = every_size(stated.shape)
    queries = np.array([indicator(stated.shape, tuple(row), seed) for seed, row in enumerate(sizes)])
    expected = np.einsum("qc,cd,qd->q", queries, expected_cube, queries)
    np.testing.assert_allclose(stated.of(sizes), expected, rtol=1e-9, atol=1e-11 * stated.variance * queries.shape[1])


@properties
@given(perturbations())
def test_equals_the_subtracting_form(stated):
    """σ² [Π k − Σ (1 − r_E) Π_E (k − k²/n) Π k²/n], with r_E from the definition."""
    sizes = every_size(stated.shape)
    n, cells, axes = np.array(stated.shape), prod(stated.shape), range(len(stated.shape))
    left = sizes.prod(axis=1).astype(float)
    for effect in (set(e) for size in range(len(n) + 1) for e in combinations(axes, size)):
        around = [known for known in stated.controls if effect <= set(known.places)]
        if not around:
            continue
        gains = [cells / prod(n[i] for i in known.places) / known.variance for known in around if known.variance]
        r = 0.0 if len(gains) < len(around) else 1 / (1 + stated.variance * sum(gains))
        inside = [sizes[:, i] - sizes[:, i] ** 2 / n[i] for i in effect]
        outside = [sizes[:, i] ** 2 / n[i] for i in axes if i not in effect]
        left -= (1 - r) * np.prod([np.ones(len(sizes)), *inside, *outside], axis=0)
    np.testing.assert_allclose(stated.of(sizes), stated.variance * left, atol=1e-10 * stated.variance * cells)


@properties
@given(perturbations(), st.sampled_from([0.0, 0.5]), st.integers(0, 3))
def test_a_control_more_never_adds_variance(stated, variance, place):
    more = KnownMargin((place % len(stated.shape),), variance)
    sizes = every_size(stated.shape)
    before = stated.of(sizes)
    after = Perturbation(stated.shape, stated.variance, (*stated.controls, more)).of(sizes)
    assert (after <= before * (1 + 1e-12)).all()
    assert (after >= 0).all()
    assert (before <= stated.variance * sizes.prod(axis=1) * (1 + 1e-12)).all()


def test_is_what_fit_does_to_unit_errors():
    """`fit` is linear: the variance is σ² and v times the squared answers to errors of 1, one at a time."""
    shape, variance = (3, 4, 2), 0.7
    controls = (KnownMargin((0, 2), 0.3), KnownMargin((1,), 0.0), KnownMargin((2,), 5.0), KnownMargin((), 1.0))
    margins = [Margin.over(shape, known.places) for known in controls]
    noise = [known.variance for known in controls]
    errors = [(variance, unit, [np.zeros(m.cells) for m in margins]) for unit in np.eye(24)]
    for j, margin in enumerate(margins):
        for unit in np.eye(margin.cells):
            targets = [unit if i == j else np.zeros(m.cells) for i, m in enumerate(margins)]
            errors.append((noise[j], np.zeros(24), targets))
    sizes = every_size(shape)[1:]
    queries = np.array([indicator(shape, tuple(row), 7) for row in sizes])
    result = np.zeros(len(sizes))
    for v, values, targets in errors:
        if v > 0:
            result += v * (queries @ fit(values, margins, targets, noise, variance=variance).values) ** 2
    stated = Perturbation(shape, variance, controls).of(sizes)
    np.testing.assert_allclose(result, stated, rtol=1e-9, atol=1e-12)


def test_is_the_variance_of_drawn_noise_and_not_that_of_a_wrong_control():
    """Capped noise in cube and controls, calibrated 1,000 times; 40 sizes of query."""
    shape, distribution, finer = (4, 3, 3, 2), DiscreteLaplace(Fraction(1), 7), DiscreteLaplace(Fraction(2), 7)
    known = (KnownMargin((0, 1), finer.variance()), KnownMargin((2,), finer.variance()), KnownMargin((3,), 0.0))
    margins = [Margin.over(shape, control.places) for control in known]
    runs, size, totals = 1000, prod(shape), [margin.cells for margin in margins]
    stream = public_stream("calibrated cubes")
    cube = distribution.draw(stream, 0, runs * size).reshape(runs, size).astype(float)
    drawn = finer.draw(stream, runs * size, runs * sum(totals)).reshape(runs, -1).astype(float)
    sizes = np.random.default_rng(2).integers(1, np.array(shape) + 1, (40, 4))
    queries = np.array([indicator(shape, tuple(row), seed) for seed, row in enumerate(sizes)])
    answers = np.empty((runs, len(queries)))
    for run in range(runs):
        targets = np.split(drawn[run], np.cumsum(totals)[:-1])
        targets[2] = np.zeros(2)
        variances = [control.variance for control in known]
        answers[run] = queries @ fit(cube[run], margins, targets, variances, variance=distribution.variance()).values
    ratio = (answers**2).mean(axis=0) / np.maximum(Perturbation(shape, distribution.variance(), known).of(sizes), 1e-12)
    assert np.abs(ratio[ratio > 0.01] - 1).max() < 0.15
    assert abs(ratio[ratio > 0.01].mean() - 1) < 0.03
    wrong = tuple(KnownMargin(control.places, 4 * control.variance) for control in known)
    off = (answers**2).mean(axis=0) / np.maximum(Perturbation(shape, distribution.variance(), wrong).of(sizes), 1e-12)
    assert abs(off[ratio > 0.01].mean() - 1) > 0.1


@pytest.mark.parametrize("grouped", [0.0, 0.4])
def test_leaving_out_a_control_by_groups_states_an_upper_bound(grouped):
    shape = (4, 3)
    whole = [Margin.over(shape, [0]), Margin.over(shape, [1])]
    groups = Margin("g", shape, (Axis(0, np.array([0, 0, 1, 1]), 2), Axis(1, np.array([0, 1, 1]), 2)))
    actual = covariance([*whole, groups], [0.5, 0.0, grouped], 2.0)
    stated = Perturbation(shape, 2.0, (KnownMargin((0,), 0.5), KnownMargin((1,), 0.0)))
    sizes = every_size(shape)
    queries = np.array([indicator(shape, tuple(row), seed) for seed, row in enumerate(sizes)])
    true = np.einsum("qc,cd,qd->q", queries, actual, queries)
    bound = stated.of(sizes)
    assert (true <= bound + 1e-12).all()
    assert (true < bound - 0.01).any()


def test_sums_that_exact_controls_fix_have_no_variance_at_all():
    large = (100, 90, 80, 70)
    noise = Perturbation(large, 3.0, (KnownMargin((0, 1), 0.0), KnownMargin((2,), 0.0)))
    fixed = [(a, b, 80, 70) for a in range(0, 101, 3) for b in range(0, 91, 3)] + [(100, 90, c, 70) for c in range(81)]
    assert not noise.of(np.array(fixed)).any()  # not even rounding, which the cube's 50 million cells would multiply
    assert noise.of(np.array([[1, 1, 1, 70]]))[0] > 0


def test_without_controls_cells_add_up():
    noise = Perturbation((3, 4), 0.5, ())
    np.testing.assert_allclose(noise.of(every_size((3, 4))), 0.5 * every_size((3, 4)).prod(axis=1))
    assert noise.of(np.empty((0, 2), np.int64)).shape == (0,)


def test_many_queries_go_in_blocks():
    noise = Perturbation(PAPER, 1.0, (KnownMargin(tuple(range(10)), 0.25),))
    sizes = np.random.default_rng(3).integers(1, np.array(PAPER) + 1, (3000, 10))
    np.testing.assert_allclose(noise.of(sizes), sizes.prod(axis=1) / 5)  # a second cube of a quarter of the variance


def test_table_4_without_calibration_and_with_least_squares():
    """Li & Krenzke 2020, Table 4: expected pooled sample variances; its raking left 0, 1.684, 1.082, .494, .200, …"""
    variance = DiscreteLaplace(Fraction(7), 1).variance()
    result = [reduction(PAPER, variance, ONE_WAY, dimension) for dimension in range(1, 11)]
    before = [7.490, 3.552, 1.422, 0.544, 0.207, 0.0789, 0.0303, 0.0118, 0.0046, 0.0018]
    digits = [3] * 5 + [4] * 5
    assert [round(row.spread_before, n) for row, n in zip(result, digits, strict=True)] == before
    after = [0.0, 1.4875, 0.9792, 0.4595, 0.1915, 0.0762, 0.0299, 0.0117, 0.0046, 0.0018]
    assert [round(row.spread_after, 4) for row in result] == after
    assert result[0].cells == 28
    assert result[0].before == pytest.approx(variance * 17280 * 10 / 28)
    assert result[9].before == pytest.approx(variance)


@properties
@given(perturbations())
def test_reduction_is_the_expectation_over_all_cells_of_all_tables(stated):
    margins = margins_of(stated)
    cube = covariance(margins, [known.variance for known in stated.controls], stated.variance) if margins else None
    for dimension in range(1, len(stated.shape) + 1):
        tables = [matrix(Margin.over(stated.shape, p)) for p in combinations(range(len(stated.shape)), dimension)]
        cells = np.vstack(tables)
        result = reduction(stated.shape, stated.variance, stated.controls, dimension)
        assert result.cells == len(cells)
        centred = cells - cells.mean(axis=0)
        noise = stated.variance * np.eye(cells.shape[1])
        for c, mean, spread in (
            (noise, result.before, result.spread_before),
            (noise if cube is None else cube, result.after, result.spread_after),
        ):
            scale = stated.variance * cells.shape[1]
            assert mean == pytest.approx(np.trace(cells @ c @ cells.T) / len(cells), abs=1e-10 * scale)
            expected = np.trace(centred @ c @ centred.T) / max(len(cells) - 1, 1)
            assert spread == pytest.approx(expected, abs=1e-10 * scale)


@pytest.mark.parametrize(
    ("shape", "variance", "controls", "message"),
    [
        ((), 1.0, (), "positive size per axis"),
        ((2, 0), 1.0, (), "positive size per axis"),
        ((2,), -1.0, (), "positive size per axis"),
        ((2,), np.nan, (), "positive size per axis"),
        ((2,), 1.0, (KnownMargin((1,), 0.0),), "unknown or duplicate axis"),
        ((2, 2), 1.0, (KnownMargin((0, 0), 0.0),), "duplicate axis"),
        ((2,), 1.0, (KnownMargin((0,), -0.5),), "no finite noise variance"),
        ((2,) * 20, 1.0, (KnownMargin(tuple(range(20)), 1.0),), "too many axes"),
    ],
)
def test_refuses(shape, variance, controls, message):
    with pytest.raises(ParameterError, match=message):
        Perturbation(shape, variance, controls)


@pytest.mark.parametrize("sizes", [np.array([1, 1]), np.array([[1]]), np.array([[3, 1]]), np.array([[-1, 1]])])
def test_refuses_queries_that_the_cube_has_not(sizes):
    with pytest.raises(ParameterError, match="sizes"):
        Perturbation((2, 2), 1.0, ()).of(sizes)


@pytest.mark.parametrize("dimension", [0, 3])
def test_refuses_tables_that_the_cube_has_not(dimension):
    with pytest.raises(ParameterError, match="no table of this dimension"):
        reduction((2, 2), 1.0, (), dimension)
