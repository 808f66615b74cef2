"""Differences of means against refits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError, SourceError
from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics.difference import Difference
from support.brute_force import Floats, additions, removals
from support.hypothesis_profile import examples

Y, ARM = Variable("y", -1.0, 1.0), Variable("treated", 0, 1)
STATISTIC = Difference(Y, ARM)
rows = st.lists(
    st.tuples(st.integers(-20, 20).map(lambda i: i / 20), st.sampled_from([0.0, 1.0])), min_size=1, max_size=25
)


def both(columns: Sequence[Floats]) -> tuple[float, float]:
    y, arm = columns
    one, nil = y[arm == 1], y[arm == 0]
    if not one.size or not nil.size:
        return 0.0, 0.0
    error = np.sqrt(one.var(ddof=1) / one.size + nil.var(ddof=1) / nil.size) if min(one.size, nil.size) > 1 else 0.0
    return float(one.mean() - nil.mean()), float(error)


@examples(150)
@given(points=rows, search=st.sampled_from([Search(), Search("corners"), Search("grid", 4), Search("removals")]))
def test_equals_brute_force(points: list[tuple[float, float]], search: Search) -> None:
    columns = [*np.array(sorted(points)).T.copy()]
    here, error = both(columns)
    out = STATISTIC.local(columns, np.array([0, len(points)]), search)
    assert out.error is not None
    assert out.error_sensitivity is not None
    assert out.statistic[0] == pytest.approx(here, abs=1e-12)
    assert out.error[0] == pytest.approx(error, abs=1e-9)
    tried = np.empty(0) if search.kind == "removals" else search.values(Y)
    if search.kind == "exact":  # the least error is at an arm's mean
        means = [columns[0][columns[1] == g].mean() for g in (0, 1) if (columns[1] == g).any()]
        tried = np.concatenate([np.linspace(-1, 1, 21), means])
    for i, (centre, actual) in enumerate(((here, out.sensitivity[0]), (error, out.error_sensitivity[0]))):
        changed = [*additions(lambda c, i=i: both(c)[i], columns, [tried.tolist(), [0.0, 1.0]])]
        changed += [*removals(lambda c, i=i: both(c)[i], columns)]
        assert actual == pytest.approx(max(abs(v - centre) for v in changed), abs=1e-7 if i else 1e-12)
    worst = STATISTIC.worst(columns, search)
    assert abs(worst.change) == out.sensitivity[0]
    if worst.added:
        after = [np.append(c, p) for c, p in zip(columns, worst.point, strict=True)]
    else:
        row = np.flatnonzero((columns[0] == worst.point[0]) & (columns[1] == worst.point[1]))[0]
        after = [np.delete(c, row) for c in columns]
    assert both(after)[0] - here == pytest.approx(worst.change, abs=1e-12)


def test_an_outlier_is_summed_anew() -> None:
    y = np.array([0.0, 1e-9, 2e-9, 0.0, 0.5, 1.0])
    arm = np.array([1.0, 1, 1, 0, 0, 1])
    order = np.lexsort((arm, y))
    columns = [y[order], arm[order]]
    out = STATISTIC.local(columns, np.array([0, 6]), Search("removals"))
    assert out.error_sensitivity is not None
    expected = max(abs(v - both(columns)[1]) for v in removals(lambda c: both(c)[1], columns))
    assert out.error_sensitivity[0] == pytest.approx(expected, rel=1e-13)


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="0 or 1"):
        Difference(Y, Variable("treated", 0, 2))
    with pytest.raises(SourceError, match="neither 0 nor 1") as caught:
        STATISTIC.local([np.zeros(2), np.array([0.125, 1.0])], np.array([0, 2]))
    assert "125" not in str(caught.value)
    with pytest.raises(ParameterError, match="exact, corners, grid, removals"):
        STATISTIC.worst([np.zeros(1), np.zeros(1)], Search("best"))  # type: ignore[arg-type]
    short = STATISTIC.local([np.zeros(2), np.array([0.0, 1.0])], np.array([0, 2]), errors=False)
    assert short.error is None
