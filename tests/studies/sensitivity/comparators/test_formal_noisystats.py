"""NoisyStats: the sensitivities by brute force, the noise, the answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError, ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators import FALLBACK
from discreet_studies.sensitivity.comparators.moments import ALLOWED, UNIT, Moments, laplace, multiples
from discreet_studies.sensitivity.comparators.noisystats import NoisyStats
from support.hypothesis_profile import examples

F = Fraction
KEY = ReleaseKey.simulation("formal noisystats")
X0 = F(1, 4)
unit = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
record = st.tuples(unit, unit)


def packed(*cells: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [r for cell in cells for r in cell]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in cells])]).astype(np.int64)
    x, y = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
    return x, y, starts


def sums(cell: list[tuple[float, float]], slope: float) -> tuple[float, float, float]:
    x, y, _ = packed(cell)
    level = float(np.sum(y - 0.5 + slope * (float(X0) - x)))
    if not cell:
        return 0.0, 0.0, level
    return float(((x - x.mean()) ** 2).sum()), float(((x - x.mean()) * (y - y.mean())).sum()), level


def many_cells(cells: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.random(cells * n)
    y = np.clip(0.4 + 0.3 * (x - 0.25) + rng.normal(0, 0.2, x.size), 0, 1)
    return x, y, np.arange(cells + 1, dtype=np.int64) * n


@examples(400)
@given(st.lists(record, max_size=12), record, st.floats(-5, 5))
def test_an_added_record_changes_no_sum_by_more_than_its_sensitivity(
    cell: list[tuple[float, float]], new: tuple[float, float], b: float
) -> None:
    method = NoisyStats(X0, F(1))
    before, after = sums(cell, b), sums([*cell, new], b)
    squares = method.square_sensitivity(np.array([len(cell)]))[0]
    assert abs(before[0] - after[0]) <= squares + 1e-12
    assert abs(before[1] - after[1]) <= squares + 1e-12
    assert abs(before[2] - after[2]) <= method.level_sensitivity(np.array([b]))[0] + 1e-9


@examples(400)
@given(st.lists(record, max_size=12), record, record, st.floats(-5, 5))
def test_a_replaced_record_changes_no_sum_by_more_than_its_sensitivity(
    rest: list[tuple[float, float]], one: tuple[float, float], two: tuple[float, float], b: float
) -> None:
    method = NoisyStats(X0, F(1), "substitution")
    before, after = sums([*rest, one], b), sums([*rest, two], b)
    squares = method.square_sensitivity(np.array([len(rest) + 1]))[0]
    assert abs(before[0] - after[0]) <= squares + 1e-12
    assert abs(before[1] - after[1]) <= squares + 1e-12
    assert abs(before[2] - after[2]) <= method.level_sensitivity(np.array([b]))[0] + 1e-9


@pytest.mark.parametrize("place", [0, 1])
def test_the_constants_are_attained(place: int) -> None:
    """m zeros, then a one: 1 − 1/n, for both sums; which nears 1 as n grows."""
    n = 50
    rest = [(0.0, 0.0)] * (n - 1)
    moved = abs(sums([*rest, (1.0, 1.0)], 0)[place] - sums([*rest, (0.0, 0.0)], 0)[place])
    assert moved == pytest.approx(1 - 1 / n, abs=1e-12)
    assert NoisyStats(X0, F(1), "substitution").square_sensitivity(np.array([n]))[0] == pytest.approx(moved)


def test_the_level_sensitivity_is_attained_at_a_corner() -> None:
    b = 2.0
    added = sums([(1.0, 0.0)], b)[2]
    assert abs(added) == pytest.approx(NoisyStats(X0, F(1)).level_sensitivity(np.array([b]))[0])


@pytest.mark.parametrize(("neighbours", "parts"), [("add-remove", 4), ("substitution", 3)])
def test_epsilon_is_spent_once_and_every_scale_fits_its_sensitivity(neighbours: str, parts: int) -> None:
    method = NoisyStats(X0, F(3, 2), neighbours)  # type: ignore[arg-type]
    assert parts * method.part == method.epsilon == method.guarantee.epsilon
    assert method.guarantee.neighbours == neighbours
    assert method.guarantee.delta == 0
    for sensitivity in (0.5, 1.0, 3.7):
        scale = laplace(method.part).scale * int(multiples(np.array([sensitivity]))[0])
        assert (
            F(sensitivity) + ALLOWED
        ) / scale <= method.part  # the worst log-ratio of two shifted Laplace distributions
        assert scale * method.part <= F(sensitivity) + ALLOWED + 2 * UNIT


def test_a_public_n_is_a_caveat() -> None:
    assert NoisyStats(X0, F(1), "substitution").guarantee.caveats
    assert not NoisyStats(X0, F(1)).guarantee.caveats


@pytest.mark.parametrize("neighbours", ["add-remove", "substitution"])
def test_errors_decrease_with_epsilon(neighbours: str) -> None:
    x, y, starts = many_cells(400, 150)
    ols = Moments.of(x, y, starts).prediction(0.25)
    gaps = []
    for epsilon in (1, 16, 10_000):
        actual = NoisyStats(X0, F(epsilon), neighbours).estimate(x, y, starts, KEY)  # type: ignore[arg-type]
        gaps.append(float(np.median(np.abs(actual.values - ols))))
    assert gaps[0] > 3 * gaps[1] > 100 * gaps[2]
    assert gaps[2] < 1e-4


def test_estimates_repeat_under_a_key_and_differ_under_another() -> None:
    cells = many_cells(50, 60)
    method = NoisyStats(X0, F(1))
    once = method.estimate(*cells, KEY)
    assert np.array_equal(once.values, method.estimate(*cells, KEY).values)
    assert not np.array_equal(once.values, method.estimate(*cells, ReleaseKey.simulation("other")).values)
    assert ((once.values >= 0) & (once.values <= 1)).all()


def test_without_spread_half_the_cells_have_no_answer() -> None:
    flat = [(0.3, 0.9)] * 40
    actual = NoisyStats(X0, F(1)).estimate(*packed(*[flat] * 2000), KEY)
    assert 0.45 < actual.answered.mean() < 0.55
    assert (actual.values[~actual.answered] == FALLBACK).all()


def test_empty_cells_and_single_records_are_handled() -> None:
    for method in (NoisyStats(X0, F(1)), NoisyStats(X0, F(1), "substitution")):
        actual = method.estimate(*packed([], [(0.1, 0.2)], []), KEY)
        assert np.isfinite(actual.values).all()


def test_a_real_key_is_refused() -> None:
    with pytest.raises(ReleaseKeyError):
        NoisyStats(X0, F(1)).estimate(*many_cells(1, 5), ReleaseKey.generate())


@pytest.mark.parametrize(
    "wrong", [{"x0": F(2)}, {"x0": 0.25}, {"epsilon": F(0)}, {"epsilon": 1.0}, {"neighbours": "?"}]
)
def test_parameters_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        NoisyStats(**({"x0": X0, "epsilon": F(1)} | wrong))  # type: ignore[arg-type]


def test_cells_refused() -> None:
    x, y, starts = many_cells(2, 3)
    holed = np.where(x == x[0], np.nan, x)
    short: np.ndarray = starts.astype(np.int32)
    for a, s in ((x + 1, starts), (x[:-1], starts), (x, starts[:-1]), (x, short), (holed, starts), (x, starts[::-1])):
        with pytest.raises(ParameterError):
            NoisyStats(X0, F(1)).estimate(a, y, s, KEY)
