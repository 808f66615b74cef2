"""Calibrated cubes: when least squares replaces raking, and the noise that remains in raked cubes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, count
from math import comb

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.methods.hypercube import calibration
from discreet.methods.hypercube.calibration import ControlTotals, NoiseDraw, RakingOptions, calibrate, raked_variances
from discreet.post.cubes.margins import Margin, combination
from discreet.post.cubes.variance import KnownMargin, Perturbation

SHAPE = (8, 6, 5)
RAKING = RakingOptions(1e-6, 1000)


def exact(cube: np.ndarray, *places: int) -> ControlTotals:
    margin = Margin.over(SHAPE, places)
    return ControlTotals(margin, margin.add_up(cube), 0.0)


def draws(deviation: float, seed: int, controls: int) -> Iterator[NoiseDraw]:
    for run in count():
        noise = np.random.default_rng([seed, run]).laplace(0, deviation / 2**0.5, 240)
        yield noise, [np.zeros(1)] * controls


@pytest.mark.parametrize("spoilt", ["a target", "a sum"])
def test_raking_through_negative_numbers_gives_way_to_least_squares(spoilt: str) -> None:
    """One control is always met by raking: by factors that are negative, if need be."""
    cube = np.full(SHAPE, 3.0)
    control = exact(cube, 0)
    if spoilt == "a target":
        control.totals[0] = -1.0
    else:
        cube[2] = -1.0
    actual = calibrate(cube.reshape(-1), [control], 1.0, RAKING)
    assert not actual.raked
    assert actual.converged
    assert actual.problems
    np.testing.assert_allclose(actual.values, calibrate(cube.reshape(-1), [control], 1.0).values)
    np.testing.assert_allclose(control.margin.add_up(actual.values), control.totals)


def test_raking_that_ends_short_gives_way_to_least_squares() -> None:
    cube = np.random.default_rng(1).lognormal(2, 1, 240)
    controls = [exact(cube * np.random.default_rng(2).uniform(0.5, 2, 240), *places) for places in ((0, 1), (1, 2))]
    assert calibrate(cube, controls, 1.0, RAKING).raked
    short = calibrate(cube, controls, 1.0, RakingOptions(1e-6, 1))
    assert not short.raked
    assert short.cycles == 1
    np.testing.assert_allclose(short.values, calibrate(cube, controls, 1.0).values)


def test_sparse_cubes_are_not_raked() -> None:
    with pytest.raises(ParameterError, match="cannot be raked"):
        calibrate(np.ones(2), [exact(np.ones(240), 0)], 1.0, RAKING, np.array([0, 5]))


def test_large_cells_of_a_raked_cube_err_more_and_their_intervals_say_so() -> None:
    """Coverage of ± 1.645 standard errors, in cells large and small, over releases that the simulation did not see."""
    cube = np.random.default_rng(5).lognormal(3, 1.2, 240) + 5
    controls = [exact(cube, 0), exact(cube, 1, 2)]
    actual = raked_variances(cube, controls, 9.0, RAKING, draws(3.0, 1, 2), 30)
    assert all(raked.times >= 1 for raked in actual)
    stated = Perturbation(SHAPE, 9.0, (KnownMargin((0,), 0.0), KnownMargin((1, 2), 0.0)))
    least = float(stated.of(np.ones((1, 3), np.int64))[0])
    assert actual[3].share > 0
    errors = []
    unseen = draws(3.0, 2, 2)
    for _ in range(200):
        noise, _ = next(unseen)
        again = calibrate(cube + noise, controls, 9.0, RAKING)
        width = 1.645 * np.sqrt(actual[3].times * least + actual[3].share * again.values**2)
        errors.append(np.abs(again.values - cube) <= width)
    covered = np.mean(errors, axis=0)
    order = np.argsort(cube)
    plain = np.abs(again.values - cube) <= 1.645 * np.sqrt(least)
    assert 0.86 <= covered[order[-10:]].mean() <= 0.97
    assert 0.88 <= covered[order[:60]].mean() <= 0.97
    assert 0.89 <= covered.mean() <= 0.96
    assert plain[order[-10:]].mean() < 0.8  # what least squares would say of them


def test_dimensions_with_few_errors_take_those_of_the_next() -> None:
    bins = np.zeros((3, calibration.BINS, 3))
    bins[0, 0], bins[1, 0], bins[2, 0] = (4, 0, 400), (900, 0, 1800), (5000, 0, 15000)
    assert calibration._fitted(calibration._enough(bins, 0)).times == pytest.approx(17200 / 5904)
    assert calibration._fitted(calibration._enough(bins, 2)).times == pytest.approx(3.0)
    assert calibration._fitted(bins[0] * 0).times == 1.0


def test_combinations_by_rank_and_few_of_many() -> None:
    for n in range(7):
        for k in range(n + 1):
            ranked = [combination(n, k, rank) for rank in range(comb(n, k))]
            assert ranked == list(combinations(range(n), k))
    chosen = list(calibration._tables([2] * 34, 1 << 20))  # 2^34 sets of axes: none is gone through
    assert len(chosen) == len(set(chosen)) <= 35 * calibration.TABLES
