"""The experiments of `neighbouring_experiments`, under test keys: the loss of 400 + 400 releases is at most ε."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from support.neighbouring_experiments import EPSILON, FARM, bom, case, hugeint, least_loss, share_between


def test_the_bounds_are_those_of_clopper_and_pearson() -> None:
    """Textbook values; of a share that came up never or always, one bound is certain."""
    assert share_between(0, 10) == pytest.approx((0, 0.3085), abs=1e-4)
    assert share_between(10, 10) == pytest.approx((0.6915, 1), abs=1e-4)
    assert share_between(5, 10) == pytest.approx((0.1871, 0.8129), abs=1e-4)


def test_the_measure_finds_a_loss_of_two_and_none_of_one() -> None:
    """If it could not tell, a release without any protection would pass the experiments below."""
    assert FARM == ("farm",)
    two, one = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))  # noise of at least 0, and of at least 1
    assert least_loss(round(400 * two**2), round(400 * one**2), 400) > EPSILON
    assert least_loss(round(400 * two), round(400 * one), 400) <= EPSILON
    assert least_loss(0, 0, 400) < 0


@pytest.mark.full
def test_a_byte_order_mark_costs_no_more_than_epsilon(tmp_path: Path) -> None:
    """It cost 1.6 at ε = 1: whether one person has a record decided how another's was read."""
    assert bom(tmp_path / "bom", real=False)["lower_bound"] <= EPSILON


@pytest.mark.full
def test_long_integers_cost_no_more_than_epsilon(tmp_path: Path) -> None:
    """They cost 1.6 at ε = 1, for three persons became one; a column of them is refused, or its persons are three."""
    actual = hugeint(tmp_path / "hugeint", real=False)
    assert "refused" in actual or actual["lower_bound"] <= EPSILON


@pytest.mark.full
def test_one_record_changes_the_reading_of_no_other_file(tmp_path: Path) -> None:
    """One text that was no UTF-8 moved 5,000 persons of another file."""
    assert case(tmp_path / "case")["moved"] == {}
