"""Simulated errors agree with formulas; the ε that is found meets its target, and the step before it does not."""

from __future__ import annotations

from dataclasses import astuple, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.tradeoff import (
    DISTRIBUTIONS,
    STEP,
    _Cells,
    _first,
    epsilon_for,
    exact_mse,
    tradeoff,
)
from discreet.methods.sensitivity.utility.tradeoff_plots import BOTTOM, TOP, tradeoff_plot
from discreet.report.plots import decades

RNG = np.random.default_rng(6)
THETA = RNG.normal(0.4, 0.05, 4_000)
SIZE = RNG.integers(20, 400, 4_000)
AREA = np.array([f"{code:05d}" for code in RNG.integers(0, 80, 4_000)])
CHI = 5.0
EPSILONS = [Fraction(1), Fraction(4), Fraction(16)]


def test_noise_has_unit_variance_and_the_named_distribution() -> None:
    distributions = {"laplace": stats.laplace(scale=0.5**0.5), "normal": stats.norm()}
    for distribution in DISTRIBUTIONS:
        drawn = _Cells.of(THETA, SIZE, CHI, distribution, None, Fraction(1, 10), 25).draws.ravel()  # type: ignore[arg-type]
        assert drawn.var() == pytest.approx(1, abs=0.03)
        for name, claimed in distributions.items():
            p = stats.kstest(drawn, claimed.cdf).pvalue
            assert p > 1e-6 if name == distribution else p < 1e-20
            assert stats.kstest(1.1 * drawn, claimed.cdf).pvalue < 1e-20


@pytest.mark.parametrize("distribution", ["laplace", "normal"])
def test_simulated_mse_is_the_formula(distribution: Any) -> None:
    for point in tradeoff(THETA, SIZE, CHI, EPSILONS, distribution, AREA):
        exact = float(np.mean(2 * (CHI / (float(point.epsilon) * SIZE)) ** 2))
        assert point.mse_exact == pytest.approx(exact, rel=1e-12)
        assert point.mse_exact == pytest.approx(exact_mse(SIZE, CHI, point.epsilon), rel=1e-12)
        assert abs(point.mse - exact) < 4.5 * point.mse_error
        assert point.mse_error < 0.05 * exact


def test_chi_may_differ_by_cell() -> None:
    chi = np.where(AREA < "00040", 2.0, 8.0)
    (point,) = tradeoff(THETA, SIZE, chi, [Fraction(2)], areas=AREA)
    assert point.mse_exact == pytest.approx(np.mean(2 * (chi / (2 * SIZE)) ** 2), rel=1e-12)


def by_hand(theta: Any, noisy: Any, area: Any, share: Fraction) -> tuple[float, float]:
    """Misclassified cells of one draw, area by area, with nothing clever."""
    wrong = {"top": 0, "bottom": 0}
    total = 0
    for code in sorted(set(area.tolist())):
        mine = np.flatnonzero(area == code)
        k = len(mine) * share.numerator // share.denominator
        if k:
            order = sorted(mine, key=lambda i: theta[i])
            shown = sorted(mine, key=lambda i: noisy[i])
            wrong["bottom"] += sum(theta[i] > theta[order[k - 1]] for i in shown[:k])
            wrong["top"] += sum(theta[i] < theta[order[-k]] for i in shown[-k:])
            total += k
    return wrong["top"] / total, wrong["bottom"] / total


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)])
def test_misclassified_cells_are_those_counted_by_hand(share: Fraction) -> None:
    theta, size = np.round(THETA[:300], 2), SIZE[:300]  # ties
    area = np.sort(np.where(np.arange(300) < 150, "large", AREA[:300]))  # and areas too small for any end
    cells = _Cells.of(theta, size, CHI, "laplace", area, share, 3)
    (point,) = tradeoff(theta, size, CHI, [Fraction(3)], areas=area, share=share, runs=3)
    order = np.lexsort((theta, area))  # whose draw is whose
    noisy = np.empty_like(cells.draws)
    noisy[:, order] = theta[order] + np.sqrt(2) * CHI / (3 * size[order]) * cells.draws
    tops, bottoms = np.array([by_hand(theta, row, area, share) for row in noisy]).T
    assert point.false_top == pytest.approx(tops.mean(), abs=1e-12)
    assert point.false_bottom == pytest.approx(bottoms.mean(), abs=1e-12)
    assert point.false_top_error == pytest.approx(tops.std(ddof=1) / 3**0.5, abs=1e-12)


def test_the_order_of_cells_does_not_matter() -> None:
    mixed = np.random.default_rng(1).permutation(len(THETA))
    first = tradeoff(THETA, SIZE, CHI, [Fraction(2)], areas=AREA)
    assert tradeoff(THETA[mixed], SIZE[mixed], CHI, [Fraction(2)], areas=AREA[mixed]) == first


def test_nothing_is_wrong_without_noise_and_all_but_chance_with_much() -> None:
    none, all_noise = tradeoff(THETA, SIZE, CHI, [Fraction(10**9), Fraction(1, 10**6)], areas=AREA)
    assert none.false_top == none.false_bottom == 0
    assert all_noise.false_top == pytest.approx(0.9, abs=0.02)
    assert all_noise.false_bottom == pytest.approx(0.9, abs=0.02)


def test_two_equal_runs_are_equal() -> None:
    points = [tradeoff(THETA, SIZE, CHI, EPSILONS, areas=AREA) for _ in range(2)]
    assert [astuple(p) for p in points[0]] == [astuple(p) for p in points[1]]


@pytest.mark.parametrize("target", [1e-2, 1e-4, 3.7e-5, exact_mse(SIZE, CHI, Fraction(8))])
def test_the_least_epsilon_for_an_mse(target: float) -> None:
    actual = epsilon_for(THETA, SIZE, CHI, target_mse=target)
    assert exact_mse(SIZE, CHI, actual) <= target
    assert actual == STEP or exact_mse(SIZE, CHI, actual - STEP) > target
    assert (actual / STEP).denominator == 1


def test_the_epsilon_for_a_misclassification() -> None:
    actual = epsilon_for(THETA, SIZE, CHI, target_misclassification=0.2, areas=AREA)
    points = tradeoff(THETA, SIZE, CHI, [actual, actual - STEP], areas=AREA)
    rates = [max(point.false_top, point.false_bottom) for point in points]
    assert rates[0] <= 0.2 < rates[1]
    assert 1 < actual < 8


@pytest.mark.parametrize("edge", [1, 2, 3, 7, 8, 100, 2**20])
def test_bisection_finds_the_first_step(edge: int) -> None:
    assert _first(lambda k: k >= edge) == edge


def test_bisection_of_a_curve_that_wavers_ends_on_a_crossing() -> None:
    actual = _first(lambda k: k in {5, 6, 9} or k > 11)
    assert actual in {5, 9, 12}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilons": [8.0]}, "must be a Fraction"),
        ({"epsilons": [Fraction(0)]}, "must be positive"),
        ({"n": 0}, "n below 1"),
        ({"chi": 0}, "no positive chi"),
        ({"chi": np.inf}, "finite"),
        ({"theta": [np.nan, 1.0]}, "finite"),
        ({"n": [1, 2, 3]}, "equally long"),
        ({"distribution": "cauchy"}, "no distribution"),
        ({"share": Fraction(2, 3)}, "at most a half"),
        ({"share": 0.1}, "must be a Fraction"),
        ({"share": Fraction(1, 3)}, "enough cells"),
        ({"areas": ["a"]}, "areas and cells differ"),
        ({"runs": 1}, "standard error"),
    ],
)
def test_what_makes_no_tradeoff_is_refused(changes: dict[str, Any], said: str) -> None:
    given = {"theta": [0.1, 0.2], "n": 10, "chi": 1.0, "epsilons": [Fraction(1)], "share": Fraction(1, 2)}
    with pytest.raises(ParameterError, match=said):
        tradeoff(**(given | changes))


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ({}, "one target"),
        ({"target_mse": 0.1, "target_misclassification": 0.1}, "one target"),
        ({"target_mse": 0.0}, "positive"),
        ({"target_misclassification": 1.0}, "between 0 and 1"),
        ({"target_mse": 0.1, "step": 0.1}, "must be a Fraction"),
    ],
)
def test_what_is_no_target_is_refused(targets: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        epsilon_for(THETA, SIZE, CHI, **targets)


def test_a_target_out_of_reach_is_said_to_be() -> None:
    close = 0.5 + np.arange(10) * 1e-12  # nothing tells these apart
    with pytest.raises(ParameterError, match="no epsilon reaches"):
        epsilon_for(close, 10, 1.0, target_misclassification=0.01)


def test_the_picture_shows_the_points(tmp_path: Path) -> None:
    points = tradeoff(THETA, SIZE, CHI, EPSILONS, areas=AREA, runs=4)
    chart = tradeoff_plot(points, "Invented cells", area="county", chosen=Fraction(8))
    spec = chart.to_dict()
    rows = next(values for values in spec["datasets"].values() if len(values) == 3)
    assert [row["epsilon"] for row in rows] == [1, 4, 16]
    assert [row["top"] for row in rows] == [point.false_top for point in points]
    assert [row["exact"] ** 2 for row in rows] == pytest.approx([point.mse_exact for point in points])
    assert spec["title"]["text"] == "Invented cells"
    chart.save(str(tmp_path / "x.svg"))
    picture = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert all(text in picture for text in (TOP, BOTTOM, "top or bottom 10% of their county", "ε (log scale)"))
    assert "NaN" not in picture
    tradeoff_plot([replace(points[0])], "One").save(str(tmp_path / "one.svg"))
    assert "NaN" not in (tmp_path / "one.svg").read_text(encoding="utf-8")


def test_ticks_are_round_and_within() -> None:
    assert decades(0.5, 16) == [0.5, 1, 2, 5, 10]
    assert decades(0.03, 0.04) == []
    assert decades(1e-4, 1e-3) == [1e-4, 2e-4, 5e-4, 1e-3]


@pytest.mark.parametrize("target", [1e-300, 1e-20, 5e-324])
def test_a_target_that_no_epsilon_reaches_is_refused_at_once(target: float) -> None:
    with pytest.raises(ParameterError, match="no usable epsilon"):
        epsilon_for([0.1, 0.2], [20, 30], 3.0, target_mse=target)
