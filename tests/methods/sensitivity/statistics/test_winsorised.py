"""The winsorised line against refits: every removal, fine grids of additions, and the worst point itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import EXACT, Search, Variable
from discreet.methods.sensitivity.statistics.winsorised import WinsorisedLine
from support.brute_force import Floats, additions, removals, sensitivity
from support.hypothesis_profile import examples

X, Y = Variable("x", 0.0, 1.0), Variable("y", -1.0, 1.0)
TWENTIETH = Fraction(1, 20)
Kind = Literal["slope", "intercept", "prediction"]


def winsorised(values: Floats, share: Fraction) -> Floats:
    n = values.size
    k = min(max(1, int(share * n)), (n - 1) // 2)
    ordered = np.sort(values)
    return np.clip(values, ordered[k], ordered[n - 1 - k])


def both(columns: Sequence[Floats], line: WinsorisedLine) -> tuple[float, float]:
    """θ and its standard error, by the textbook."""
    w, t = {"slope": (0.0, 1.0), "intercept": (1.0, 0.0), "prediction": (1.0, line.at)}[line.kind]
    n = columns[0].size
    if n == 0:
        return w * 0.5 * (line.y.low + line.y.high), 0.0
    x, y = (winsorised(column, line.share) for column in columns)
    if x.min() == x.max():
        return w * float(y.mean()), 0.0
    u, v = x - x.mean(), y - y.mean()
    spread = u @ u
    slope, reach = (u @ v) / spread, t - w * x.mean()
    left = v - slope * u
    error = np.sqrt((left @ left) / (n - 2) * (w * w / n + reach**2 / spread)) if n > 2 else 0.0
    return float(w * y.mean() + reach * slope), float(error)


def theta(columns: Sequence[Floats], line: WinsorisedLine) -> float:
    return both(columns, line)[0]


def cell(points: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    rows = np.array(sorted(points))
    return rows[:, 0].copy(), rows[:, 1].copy()


def of(line: WinsorisedLine, columns: Sequence[Floats], search: Search = EXACT) -> tuple[float, float, float, float]:
    out = line.local(columns, np.array([0, columns[0].size]), search)
    assert out.error is not None
    assert out.error_sensitivity is not None
    return tuple(float(v[0]) for v in (out.statistic, out.sensitivity, out.error, out.error_sensitivity))  # type: ignore[return-value]


coarse = st.tuples(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), st.sampled_from([-1.0, -0.5, 0.0, 0.125, 1.0]))
fine = st.tuples(st.integers(0, 1000).map(lambda i: i / 1000), st.integers(-50, 50).map(lambda i: i / 50))
leveraged = st.tuples(st.sampled_from([0.5, 0.5, 0.5, 0.5, 1.0]), st.sampled_from([-1.0, 0.2, 0.2, 0.7]))
rows = st.one_of(
    st.lists(coarse, min_size=1, max_size=30),
    st.lists(fine, min_size=1, max_size=30),
    st.lists(leveraged, min_size=1, max_size=24),
    st.lists(st.tuples(st.just(0.25), st.sampled_from([-1.0, 0.0, 1.0])), min_size=1, max_size=12),
)
kinds = st.sampled_from(["slope", "intercept", "prediction"])
shares = st.sampled_from([TWENTIETH, Fraction(1, 5), Fraction(2, 5), Fraction(0)])
ats = st.sampled_from([0.25, 0.5, 1.5])


@examples(250)
@given(points=rows, kind=kinds, share=shares, at=ats)
def test_never_below_refits_and_attained(
    points: list[tuple[float, float]], kind: Kind, share: Fraction, at: float
) -> None:
    line = WinsorisedLine(X, Y, kind, at if kind == "prediction" else 0.0, share)
    columns = cell(points)
    here, exact, error, _ = of(line, columns)
    assert (here, error) == pytest.approx(both(columns, line), rel=1e-9, abs=1e-10)
    tried = [
        np.unique(np.concatenate([np.linspace(v.low, v.high, 9), c])) for v, c in zip((X, Y), columns, strict=True)
    ]
    changed = [*additions(lambda c: theta(c, line), columns, [t.tolist() for t in tried])]
    changed += [*removals(lambda c: theta(c, line), columns)]
    most = max(abs(v - here) for v in changed)
    assert most <= exact * (1 + 1e-9) + 1e-10
    worst = line.worst(columns)
    if np.isinf(exact):
        assert worst.change == np.inf
        return
    assert abs(worst.change) == exact
    if worst.added:
        after = theta([np.append(c, p) for c, p in zip(columns, worst.point, strict=True)], line)
    else:
        row = int(np.flatnonzero((columns[0] == worst.point[0]) & (columns[1] == worst.point[1]))[0])
        after = theta([np.delete(c, row) for c in columns], line)
    assert after - here == pytest.approx(worst.change, rel=1e-8, abs=1e-9)


@examples(200)
@given(points=rows, kind=kinds, at=ats)
def test_infinite_exactly_where_nearby_points_diverge(points: list[tuple[float, float]], kind: Kind, at: float) -> None:
    """Near the inner x, refits grow with 1/distance iff the sensitivity (of θ, of its error) is infinite."""
    line = WinsorisedLine(X, Y, kind, at if kind == "prediction" else 0.0, Fraction(1, 5))
    columns = cell(points)
    _, exact, _, error = of(line, columns)
    near = [x + step for x in set(columns[0].tolist()) for step in (-1e-7, 1e-7) if 0 <= x + step <= 1]
    values = [-1.0, -0.37, 0.11, 1.0, *columns[1].tolist()]
    refits = [both([np.append(columns[0], x), np.append(columns[1], y)], line) for x in near for y in values]
    for i, actual in ((0, exact), (1, error)):
        assert np.isinf(actual) == (max(abs(r[i]) for r in refits) > 1e3)


@examples(150)
@given(points=rows, kind=kinds, search=st.sampled_from([Search("corners"), Search("grid", 5), Search("removals")]))
def test_other_searches_are_the_same_loop(points: list[tuple[float, float]], kind: Kind, search: Search) -> None:
    line = WinsorisedLine(X, Y, kind, 0.25 if kind == "prediction" else 0.0)
    columns = cell(points)
    here, actual, error, widest = of(line, columns, search)
    exact, exact_error = of(line, columns)[1::2]
    if np.isinf(actual):  # nothing bounds it, whatever was tried
        assert np.isinf(exact)
        return
    tried = [[] if search.kind == "removals" else search.values(v).tolist() for v in (X, Y)]
    both_ways = [lambda c: theta(c, line), lambda c: both(c, line)[1]]
    for function, centre, got, near in zip(both_ways, (here, error), (actual, widest), (1e-9, 1e-6), strict=True):
        changed = [*additions(function, columns, tried), *removals(function, columns)]
        if np.isfinite(got):
            assert got == pytest.approx(max(abs(v - centre) for v in changed), rel=1e-8, abs=near)
    assert actual <= exact * (1 + 1e-9) + 1e-10
    assert search.kind != "corners" or np.isinf(exact_error) or widest <= exact_error * (1 + 1e-9) + 1e-6


@examples(60)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 60))
def test_the_grid_of_errors_misses_little(seed: int, n: int) -> None:
    draw = np.random.default_rng(seed)
    x = np.sort(draw.random(n))
    columns = x, np.clip(x + 0.5 * draw.standard_normal(n), -1, 1)
    line = WinsorisedLine(X, Y, "prediction", 0.25)
    widest = of(line, columns)[3]
    refits = sensitivity(lambda c: both(c, line)[1], columns, (X, Y), 25)
    assert widest >= 0.999 * refits


def test_a_cell_gives_the_same_bits_wherever_it_stands() -> None:
    draw = np.random.default_rng(4)
    sizes = [1, 2, 3, 40, 7]
    cells = [(np.sort(draw.random(n)), draw.uniform(-1, 1, n)) for n in sizes]
    line = WinsorisedLine(X, Y, "prediction", 0.25)
    columns = [np.concatenate([c[i] for c in cells]) for i in range(2)]
    out = line.local(columns, np.concatenate([[0], np.cumsum(sizes)]))
    assert out.error is not None
    assert out.error_sensitivity is not None
    got = zip(out.statistic, out.sensitivity, out.error, out.error_sensitivity, strict=True)
    assert [tuple(map(float, g)) for g in got] == [of(line, c) for c in cells]
    assert out.n.tolist() == sizes
    short = line.local(columns, np.concatenate([[0], np.cumsum(sizes)]), errors=False)
    assert short.error is None
    assert short.error_sensitivity is None
    assert short.sensitivity.tobytes() == out.sensitivity.tobytes()


def test_equal_means_stay_bounded_though_x_has_no_inner_spread() -> None:
    """One of the two lowest y at each x whatever is added: the slope cannot run away, its error can."""
    x = np.array([0.0, 0.5, 0.5])
    line = WinsorisedLine(X, Y, "slope", 0.0)
    for y, slope, error in (
        ([0.0, -1.0, 0.0], 2.0, np.inf),  # a removal is worst: two points are not winsorised
        ([0.0, 0.0, -1.0], 2.0, np.inf),
        ([-1.0, 0.0, 0.0], np.inf, 0.0),
        ([0.25, 0.25, 0.25], 0.0, 0.0),
    ):
        assert of(line, (x, np.array(y)))[1::2] == pytest.approx((slope, error), abs=1e-9)


def test_interior_x_can_be_worst() -> None:
    """Corners alone would miss it, as they do for the plain line."""
    columns = np.array([0.0, *np.linspace(0.48, 0.52, 18), 1.0]), np.array([1.0, *[-1.0, 1.0] * 9, 1.0])
    line = WinsorisedLine(X, Y, "prediction", 0.25)
    assert of(line, columns)[1] > 1.6 * of(line, columns, Search("corners"))[1]
    assert 0.43 < line.worst(columns).point[0] < 0.44


def test_refusals() -> None:
    for share in (0.05, Fraction(1, 2), Fraction(-1, 3), Fraction(1, 10**7)):
        with pytest.raises(ParameterError, match="share"):
            WinsorisedLine(X, Y, "slope", 0.0, share)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="kind"):
        WinsorisedLine(X, Y, "curve", 0.0)  # type: ignore[arg-type]
    line = WinsorisedLine(X, Y, "slope", 0.0)
    with pytest.raises(ParameterError, match="exact, corners, grid, removals"):
        line.worst((np.zeros(2), np.zeros(2)), Search("best"))  # type: ignore[arg-type]
