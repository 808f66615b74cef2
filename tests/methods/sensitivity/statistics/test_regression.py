"""Coefficients of regressions against least squares by NumPy, refitted for each removal and each grid point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics.regression import Regression
from support.brute_force import Floats, additions, removals
from support.hypothesis_profile import examples

A, B, C, Y = (Variable(name, -1.0, 2.0) for name in "abcy")


def both(columns: Sequence[Floats], coefficient: int) -> tuple[float, float]:
    """θ and its standard error by the singular values of the design."""
    *xs, y = columns
    n = y.size
    design = np.column_stack([np.ones(n), *xs])
    if n < design.shape[1] or np.linalg.matrix_rank(design, tol=1e-7) < design.shape[1]:
        return 0.0, 0.0
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    left, freedom = y - design @ beta, n - design.shape[1]
    inverse = np.linalg.pinv(design)
    error = np.sqrt(left @ left / freedom * (inverse @ inverse.T)[coefficient, coefficient]) if freedom else 0.0
    return float(beta[coefficient]), float(error)


tenths = st.integers(-10, 20).map(lambda i: i / 10)
coarse = st.sampled_from([0.0, 1.0])
rows = st.one_of(
    st.lists(st.tuples(tenths, tenths, tenths), min_size=1, max_size=20),
    st.lists(st.tuples(tenths, coarse, tenths), min_size=1, max_size=20),
    st.lists(st.tuples(coarse, coarse, tenths), min_size=1, max_size=12),  # leverage 1, dependent regressors
)


@examples(100)
@given(
    points=rows,
    coefficient=st.integers(1, 2),
    search=st.sampled_from([Search("corners"), Search("grid", 3), Search("removals")]),
)
def test_equals_refits(points: list[tuple[float, float, float]], coefficient: int, search: Search) -> None:
    statistic = Regression(Y, (A, B), coefficient)
    columns = [*np.array(sorted(points)).T.copy()]
    out = statistic.local(columns, np.array([0, len(points)]), search)
    assert out.error is not None
    assert out.error_sensitivity is not None
    here, error = both(columns, coefficient)
    assert out.statistic[0] == pytest.approx(here, abs=1e-9)
    assert out.error[0] == pytest.approx(error, abs=1e-9)
    design = np.column_stack([np.ones(len(points)), *columns[:2]])
    if np.linalg.matrix_rank(design, tol=1e-7) < 3:
        assert np.isinf(out.sensitivity[0])
        assert np.isinf(out.error_sensitivity[0])
        assert statistic.worst(columns, search).change == np.inf
        return
    tried = [[] if search.kind == "removals" else search.values(v).tolist() for v in (A, B, Y)]
    fits = [*additions(lambda c: both(c, coefficient), columns, tried)]  # type: ignore[arg-type, return-value]
    fits += [*removals(lambda c: both(c, coefficient), columns)]  # type: ignore[arg-type, return-value]
    most, widest = np.abs(np.array(fits) - (here, error)).max(axis=0)
    assert out.sensitivity[0] == pytest.approx(most, rel=1e-7, abs=1e-9)
    assert out.error_sensitivity[0] == pytest.approx(widest, rel=1e-7, abs=1e-7)
    worst = statistic.worst(columns, search)
    assert abs(worst.change) == out.sensitivity[0]
    if worst.added:
        after = [np.append(c, p) for c, p in zip(columns, worst.point, strict=True)]
    else:
        row = np.flatnonzero((worst.point == np.array(columns).T).all(axis=1))[0]
        after = [np.delete(c, row) for c in columns]
    assert both(after, coefficient)[0] - here == pytest.approx(worst.change, rel=1e-7, abs=1e-9)


def test_three_regressors_in_many_cells() -> None:
    draw = np.random.default_rng(7)
    sizes = [30, 4, 5, 3]
    x = draw.uniform(-1, 2, (sum(sizes), 3))
    columns = [*x.T.copy(), np.clip(x @ [0.5, -0.2, 0.1] + 0.3 * draw.standard_normal(len(x)), -1, 2)]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = Regression(Y, (A, B, C), 2).local(columns, starts, Search("removals"))
    for j in range(3):
        cell = [c[starts[j] : starts[j + 1]] for c in columns]
        here = both(cell, 2)[0]
        expected = max(abs(v - here) for v in removals(lambda c: both(c, 2)[0], cell))
        assert (out.statistic[j], out.sensitivity[j]) == pytest.approx((here, expected), rel=1e-8)
    assert out.statistic[3] == 0
    assert np.isinf(out.sensitivity[3])


@pytest.mark.parametrize("other", ["constant", "copy", "sum", "near copy"])
def test_rank_rule(other: str) -> None:
    """A constant .1, a copy and a sum are dependent though rounded; a copy that is off by 1e-6 is not."""
    draw = np.random.default_rng(3)
    a, c = draw.uniform(-1, 1, (2, 50))
    b = {"constant": np.full(50, 0.1), "copy": 1 / 3 * a, "sum": 0.3 * a + 0.7 * c, "near copy": a + 1e-6 * c}[other]
    regressors = (A, C, B) if other == "sum" else (A, B)
    columns = [a, c, b, a * c] if other == "sum" else [a, b, a * c]
    out = Regression(Y, regressors, 1).local(columns, np.array([0, 50]), Search("removals"), errors=False)
    assert np.isinf(out.sensitivity[0]) == (other != "near copy")
    assert out.error is None


def test_refusals() -> None:
    for coefficient in (0, 3):
        with pytest.raises(ParameterError, match="coefficient"):
            Regression(Y, (A, B), coefficient)
    statistic, columns = Regression(Y, (A, B), 1), [np.zeros(3)] * 3
    with pytest.raises(ParameterError, match="corners, grid, removals"):
        statistic.local(columns, np.array([0, 3]), Search("exact", 3))
    with pytest.raises(ParameterError, match="million"):
        statistic.local(columns, np.array([0, 3]), Search("grid", 101))
