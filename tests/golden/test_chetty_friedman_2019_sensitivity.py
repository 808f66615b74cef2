"""Chetty & Friedman 2019: where corners miss the maximum (Step 1), and Figure 1."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics.line import Line

PREDICTION = Line(Variable("parents", 0, 1), Variable("child", 0, 1), "prediction", 0.25)


def test_chetty_friedman_2019_step_1_corners_can_miss_the_maximum() -> None:
    """Five x from .48 to .52 on the line through (.5, .28) with slope 2.5: 2.990 at (.462, 1), corners .982."""
    x = np.array([0.48, 0.49, 0.50, 0.51, 0.52])
    y = 0.28 + 2.5 * (x - 0.5)
    exact, corners = (
        PREDICTION.local([x, y], np.array([0, 5]), search).sensitivity[0] for search in (Search(), Search("corners"))
    )
    worst = PREDICTION.worst([x, y])
    assert exact == pytest.approx(2.990, abs=5e-4)
    assert corners == pytest.approx(0.982, abs=5e-4)
    assert worst.added
    assert worst.point == pytest.approx((0.462, 1.0), abs=5e-4)


def test_chetty_friedman_2019_figure_1_a_rich_child_of_poor_parents_moves_the_prediction_most() -> None:
    """Twenty observations whose prediction at .25 is .212; with (0, 1) as well it is .349."""
    x = np.linspace(0.18, 0.82, 20)
    y = 0.212 + 0.35 * (x - 0.25)
    worst = PREDICTION.worst([x, y])
    actual = PREDICTION.local([x, y], np.array([0, 20]))
    assert actual.statistic[0] == pytest.approx(0.212)
    assert (worst.added, worst.point) == (True, (0.0, 1.0))
    assert actual.statistic[0] + worst.change == pytest.approx(0.349, abs=5e-4)
    assert actual.sensitivity[0] == pytest.approx(0.137, abs=5e-4)
