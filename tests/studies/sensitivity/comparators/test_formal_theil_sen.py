"""Private Theil–Sen: matchings, scores, the choice, and its loss computed exactly on small cells."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.errors import ParameterError, ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators.choice import LEAST, SLACK, TOP, IntegerChoice
from discreet_studies.sensitivity.comparators.theil_sen import TheilSen, median_scores
from support.hypothesis_profile import examples

F = Fraction
KEY = ReleaseKey.simulation("formal theil-sen")
X0 = F(1, 4)
POINTS = 41
Cell = list[tuple[float, float]]


def scores_of(cell: Cell, order: tuple[int, ...], reach: int) -> np.ndarray:
    x, y = np.array([r[0] for r in cell], float), np.array([r[1] for r in cell], float)
    starts = np.array([0, len(cell)], dtype=np.int64)
    orders = np.array([order], dtype=np.int64).reshape(1, -1)
    return np.asarray(median_scores(x, y, starts, orders, 0.25, POINTS, reach)[0])


def distribution(cell: Cell, choice: IntegerChoice, reach: int) -> list[F]:
    """The exact probabilities of the candidates: over every order, with the integer weights."""
    table, total = choice.weights, [F(0)] * POINTS
    orders = list(permutations(range(len(cell))))
    for order in orders:
        weights = [int(w) for w in table[np.minimum(scores_of(cell, order, reach), table.size - 1)]]
        total = [t + F(w, sum(weights)) for t, w in zip(total, weights, strict=True)]
    return [t / len(orders) for t in total]


CELL: Cell = [(0.0, 0.1), (0.9, 0.9), (0.5, 0.2), (0.2, 0.7), (1.0, 0.6)]


@pytest.mark.parametrize("reach", [0, 3])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("new", [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5)])
def test_the_exact_loss_of_an_added_record_is_within_epsilon(n: int, reach: int, new: tuple[float, float]) -> None:
    choice = IntegerChoice(F(2), 2)
    small, large = distribution(CELL[:n], choice, reach), distribution([*CELL[:n], new], choice, reach)
    assert max(abs(log(a / b)) for a, b in zip(small, large, strict=True)) <= 2


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_exact_loss_of_a_replaced_record_is_within_epsilon_too(n: int) -> None:
    choice = IntegerChoice(F(2), 2)
    one, two = (
        distribution([*CELL[: n - 1], (0.0, 1.0)], choice, 0),
        distribution([*CELL[: n - 1], (1.0, 0.0)], choice, 0),
    )
    assert max(abs(log(a / b)) for a, b in zip(one, two, strict=True)) <= 2


def test_the_audit_detects_a_rate_that_is_too_high() -> None:
    """Weights eight times as steep as they may be lose more than ε = 1, and the audit detects it."""
    broken = IntegerChoice(F(8), 2)
    one, two = distribution([(0.0, 0.0), (1.0, 0.0)], broken, 0), distribution([(0.0, 1.0), (1.0, 1.0)], broken, 0)
    assert max(abs(log(a / b)) for a, b in zip(one, two, strict=True)) > 1.5


def test_weights_follow_the_distribution_and_their_slack_is_charged() -> None:
    choice = IntegerChoice(F(1), 4)
    table = choice.weights.tolist()
    assert table[0] == TOP
    assert table[-1] == LEAST
    ideal = np.maximum(TOP * np.exp(-float(choice.rate) * np.arange(len(table))), LEAST)
    assert np.allclose(table, ideal, rtol=0, atol=1.001)
    worst = max(log(table[i] / table[min(i + 4, len(table) - 1)]) for i in range(len(table)))
    assert 2 * worst <= 1
    assert choice.rate * 4 == F(1, 2) - SLACK


@examples(300)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=9),
    st.tuples(st.sampled_from([0.0, 1.0, 0.5]), st.sampled_from([0.0, 1.0])),
    st.integers(0, 9),
)
def test_a_different_pair_changes_scores_by_two_at_most(cell: Cell, new: tuple[float, float], reach: int) -> None:
    order = tuple(range(len(cell)))
    moved = np.abs(scores_of(cell, order, reach) - scores_of([new, *cell[1:]], order, reach))
    assert moved.max() <= 2
    if len(cell) % 2 == 0:
        fewer = np.abs(scores_of(cell, order, reach) - scores_of(cell[:-1], order[:-1], reach))
        assert fewer.max() <= 2


@examples(200)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=11), st.integers(0, POINTS))
def test_scores_agree_with_counting(cell: Cell, reach: int) -> None:
    values = []
    for (xa, ya), (xb, yb) in zip(cell[::2], cell[1::2], strict=False):
        if xa != xb:
            with np.errstate(over="ignore"):
                at = ya + float(np.float64(yb - ya) / np.float64(xb - xa)) * (0.25 - xa)
            values.append(int(min(max(at, 0.0), 1.0) * (POINTS - 1) + 0.5))
    plain = [abs(sum(v < i for v in values) - sum(v > i for v in values)) for i in range(POINTS)]
    widened = [min(plain[max(i - reach, 0) : i + reach + 1]) for i in range(POINTS)]
    assert scores_of(cell, tuple(range(len(cell))), reach).tolist() == widened


def test_choices_follow_the_weights() -> None:
    choice = IntegerChoice(F(2), 1)
    scores = np.tile(np.array([3, 0, 1, 2, 5], dtype=np.int64), (20_000, 1))
    drawn = choice.draw(scores, KEY.stream("evaluate", "test", b"", "choice"))
    observed = np.bincount(drawn, minlength=5)
    weights = choice.weights[scores[0]].astype(float)
    assert stats.chisquare(observed, weights / weights.sum() * drawn.size).pvalue > 1e-6
    flatter = np.sqrt(weights)
    assert stats.chisquare(observed, flatter / flatter.sum() * drawn.size).pvalue < 1e-20


def test_orders_are_uniform() -> None:
    """Cells of three: each of the six orders a sixth of the time."""
    starts = np.arange(0, 36_001, 3, dtype=np.int64)
    order = TheilSen(X0, F(1))._order(starts, KEY, 0).reshape(-1, 3)
    assert np.array_equal(np.sort(order, axis=1), np.arange(36_000).reshape(-1, 3))
    codes = (order % 3) @ np.array([9, 3, 1])
    assert stats.chisquare(np.unique(codes, return_counts=True)[1]).pvalue > 1e-6
    assert not np.array_equal(order.reshape(-1), TheilSen(X0, F(1))._order(starts, KEY, 1))


def many_cells(cells: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.random(cells * n)
    y = np.clip(0.4 + 0.3 * (x - 0.25) + rng.normal(0, 0.05, x.size), 0, 1)
    return x, y, np.arange(cells + 1, dtype=np.int64) * n


def test_estimates_find_the_line_and_more_matchings_help() -> None:
    cells = many_cells(300, 120)
    one, many = (np.abs(TheilSen(X0, F(4), k).estimate(*cells, KEY).values - 0.4) for k in (1, 16))
    assert np.median(many) < np.median(one) < 0.03
    far = np.abs(TheilSen(X0, F(1, 100), 1).estimate(*cells, KEY).values - 0.4)
    assert np.median(far) > 0.1


def test_estimates_repeat_under_a_key_also_in_cells_without_pairs() -> None:
    cells = many_cells(3000, 3)  # more than one block of cells
    method = TheilSen(X0, F(1), 2)
    once = method.estimate(*cells, KEY)
    assert np.array_equal(once.values, method.estimate(*cells, KEY).values)
    assert not np.array_equal(once.values, method.estimate(*cells, ReleaseKey.simulation("other")).values)
    none = np.zeros(0), np.zeros(0), np.zeros(2, dtype=np.int64)
    assert method.estimate(*none, KEY).values.shape == (1,)
    assert method.guarantee.epsilon == 1


def test_a_real_key_is_refused() -> None:
    with pytest.raises(ReleaseKeyError):
        TheilSen(X0, F(1)).estimate(*many_cells(1, 5), ReleaseKey.generate())


@pytest.mark.parametrize("wrong", [{"matchings": 0}, {"epsilon": F(-1)}, {"x0": F(-1)}])
def test_parameters_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        TheilSen(**({"x0": X0, "epsilon": F(1)} | wrong))  # type: ignore[arg-type]


def test_choices_refused() -> None:
    with pytest.raises(ParameterError):
        IntegerChoice(F(1, 2**14), 1)
    with pytest.raises(ParameterError):
        IntegerChoice(F(1), 0)
    with pytest.raises(ParameterError):
        IntegerChoice(F(1), 1).draw(np.zeros((1, 0), dtype=np.int64), KEY.stream("evaluate", "test", b"", "none"))
