"""Private χ: the test's distribution, distances of neighbours, the quantile, and the accounting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet.errors import ParameterError, ReleaseKeyError
from discreet.noise.interval_arithmetic import ball
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators import FALLBACK
from discreet_studies.sensitivity.comparators.moments import ALLOWED, Moments, laplace, multiples
from discreet_studies.sensitivity.comparators.private_chi import (
    LADDER,
    OF_CHI,
    OF_RELEASE,
    OF_SIZE,
    OF_TEST,
    PrivateChi,
    bounds_at,
    distances,
)
from discreet_studies.sensitivity.comparators.smooth_line import arguments

F = Fraction
KEY = ReleaseKey.simulation("formal private chi")
X0, DELTA = F(1, 4), F(1, 10**6)
Cells = tuple[np.ndarray, np.ndarray, np.ndarray]


def many_cells(cells: int, n: int, seed: int = 3) -> Cells:
    rng = np.random.default_rng(seed)
    x = rng.random(cells * n)
    y = np.clip(0.4 + 0.3 * (x - 0.25) + rng.normal(0, 0.2, x.size), 0, 1)
    return x, y, np.arange(cells + 1, dtype=np.int64) * n


def with_one_more(cells: Cells, point: tuple[float, float]) -> Cells:
    """Every cell gets the record at its end."""
    x, y, starts = cells
    ends = starts[1:]
    return np.insert(x, ends, point[0]), np.insert(y, ends, point[1]), starts + np.arange(starts.size)


def method(**changes: object) -> PrivateChi:
    return PrivateChi(**({"x0": X0, "epsilon": F(8), "delta": DELTA} | changes))  # type: ignore[arg-type]


def test_noise_alone_passes_with_probability_at_most_delta_and_not_much_less() -> None:
    for epsilon in (F(1), F(8), F(40)):
        epsilon_choices = method(epsilon=epsilon)
        passing = epsilon_choices.test.tail(epsilon_choices.threshold) / 2
        assert bool(passing <= ball(DELTA))
        assert bool(epsilon_choices.test.tail(epsilon_choices.threshold - 1) / 2 > ball(DELTA))
        assert bool(epsilon_choices.test.tail(epsilon_choices.reach - epsilon_choices.threshold + 1) / 2 <= arb("0.1"))


@pytest.mark.parametrize("point", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.4, 0.9)])
@pytest.mark.parametrize("limit", [0.01, 0.05, 0.3, 0.99, 1.0])
def test_one_record_changes_a_distance_by_one_at_most(point: tuple[float, float], limit: float) -> None:
    for n in (0, 1, 2, 5, 40, 150):
        cells = many_cells(60, n, seed=n)
        one, two = (
            distances(*arguments(Moments.of(*these)), 0.25, np.full(60, limit), 50)
            for these in (cells, with_one_more(cells, point))
        )
        assert np.abs(one - two).max() <= 1


def test_a_distance_is_where_the_bounds_exceed_the_limit() -> None:
    cells = arguments(Moments.of(*many_cells(30, 120)))
    limit = 0.08
    actual = distances(*cells, 0.25, np.full(30, limit), 40)
    assert (actual > 0).all()
    for k in range(40):
        below = bounds_at(*cells, 0.25, k) <= limit
        assert np.array_equal(below, actual > k)


def test_the_loss_of_every_part_adds_up_to_epsilon() -> None:
    epsilon_choices = method(epsilon=F(7, 3))
    assert OF_CHI + OF_SIZE + OF_TEST + OF_RELEASE == 1
    assert epsilon_choices.test.rate + epsilon_choices.size.rate == (OF_TEST + OF_SIZE) * epsilon_choices.epsilon
    proposed = np.array([0.013, 0.2])
    scales = [laplace(OF_RELEASE * epsilon_choices.epsilon).scale * int(m) for m in multiples(proposed)]
    for value, scale in zip(proposed.tolist(), scales, strict=True):
        assert (F(value) + ALLOWED) / scale <= OF_RELEASE * epsilon_choices.epsilon
    assert (epsilon_choices.guarantee.epsilon, epsilon_choices.guarantee.delta) == (epsilon_choices.epsilon, DELTA)


def test_one_cell_changes_the_score_of_chi_by_one_at_most() -> None:
    """Whatever becomes of one cell, the number of cells above any candidate changes by one."""
    epsilon_choices = method()
    x, y, starts = many_cells(40, 100)
    flat = x.copy()
    flat[:100] = 0.5
    numbers = [
        Moments.of(a, y, starts).n * bounds_at(*arguments(Moments.of(a, y, starts)), 0.25, epsilon_choices.reach - 1)
        for a in (x, flat)
    ]
    over = [(v[:, None] > LADDER[None, :]).sum(axis=0) for v in numbers]
    assert np.abs(over[0] - over[1]).max() == 1


def test_chi_is_near_its_quantile() -> None:
    epsilon_choices = method(epsilon=F(20), quantile=F(3, 4))
    cells = Moments.of(*many_cells(400, 150))
    numbers = cells.n * bounds_at(*arguments(cells), 0.25, epsilon_choices.reach - 1)
    chi = epsilon_choices.chi(cells, KEY)
    assert 0.65 < (numbers <= chi).mean() < 0.85


def test_spread_cells_are_answered_and_flat_ones_are_not() -> None:
    x, y, starts = many_cells(300, 300)
    actual = method(quantile=F(3, 4)).estimate(x, y, starts, KEY)
    ols = Moments.of(x, y, starts).prediction(0.25)
    assert 0.6 < actual.answered.mean() < 1
    assert np.median(np.abs(actual.values - ols)) < 0.02
    flat = method().estimate(np.full(x.size, 0.5), y, starts, KEY)
    assert not flat.answered.any()
    assert (flat.values == FALLBACK).all()


def test_estimates_repeat_under_a_key_and_refuse_real_keys() -> None:
    cells = many_cells(50, 200)
    once = method().estimate(*cells, KEY)
    assert np.array_equal(once.values, method().estimate(*cells, KEY).values)
    assert not np.array_equal(once.values, method().estimate(*cells, ReleaseKey.simulation("other")).values)
    with pytest.raises(ReleaseKeyError):
        method().estimate(*cells, ReleaseKey.generate())


@pytest.mark.parametrize(
    "wrong",
    [{"delta": F(1, 2)}, {"delta": 1e-6}, {"quantile": F(2)}, {"epsilon": F(0)}, {"x0": F(9)}],
)
def test_parameters_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        method(**wrong)
