"""The line's sensitivities against refits: in exact arithmetic, over grids, and at the reported worst point."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Search, Statistic, Variable
from discreet.methods.sensitivity.statistics.line import Line
from support import brute_force
from support.hypothesis_profile import examples

Floats = NDArray[np.float64]

X, Y = Variable("x", 0.0, 1.0), Variable("y", 0.0, 1.0)
CORNERS = Search("corners")
HALF = Fraction(1, 2)
CLOSE = 1e-12


def line(kind: str, at: float = 0.0) -> Line:
    return Line(X, Y, kind, at)  # type: ignore[arg-type]


def refit(statistic: Line, x: Sequence[float], y: Sequence[float]) -> tuple[Fraction, Fraction]:
    """θ and its squared standard error, in rational arithmetic, straight from the definitions."""
    w, t = (0, Fraction(1)) if statistic.kind == "slope" else (1, Fraction(statistic.at))
    xs, ys, n = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in y], len(x)
    if not n:
        return w * HALF, Fraction(0)
    mx, my = sum(xs) / n, sum(ys) / n
    sxx = sum((v - mx) ** 2 for v in xs)
    if not sxx:
        return w * my, Fraction(0)
    slope = sum((a - mx) * (b - my) for a, b in zip(xs, ys, strict=True)) / sxx
    sse = sum((b - my - slope * (a - mx)) ** 2 for a, b in zip(xs, ys, strict=True))
    error = sse / (n - 2) * (Fraction(w, n) + (t - w * mx) ** 2 / sxx) if n >= 3 else Fraction(0)
    return w * my + (t - w * mx) * slope, error


def change(a: Fraction, b: Fraction) -> float:
    """|√a − √b| without cancellation."""
    return abs(float(a - b)) / (sqrt(a) + sqrt(b)) if a != b else 0.0


def weigh(statistic: Line, x: Floats, y: Floats) -> float:
    """√(w²/n + τ²/Sxx), at least 1: an SSE of 0 is known to the rounding of y, and the error to that times this."""
    w, t = (0.0, 1.0) if statistic.kind == "slope" else (1.0, statistic.at)
    if not x.size or x.min() == x.max():
        return 1.0
    sxx = float(((x - x.mean()) ** 2).sum())
    return max(1.0, sqrt(w / x.size + (t - w * float(x.mean())) ** 2 / sxx))


def neighbours(x: Floats, y: Floats, points: Sequence[tuple[float, float]]) -> list[tuple[Floats, Floats]]:
    removed = [(np.delete(x, i), np.delete(y, i)) for i in range(x.size)]
    return removed + [(np.append(x, p), np.append(y, q)) for p, q in points]


VALUES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1000).map(lambda k: k / 1000))
NARROW = st.integers(0, 9).map(lambda k: 0.37 + 1e-6 * k)
XS = st.one_of(*(st.lists(values, min_size=1, max_size=9) for values in (VALUES, NARROW, st.sampled_from([0.3, 0.7]))))
YS = st.one_of(
    st.lists(VALUES, min_size=9, max_size=9), st.just([0.7] * 9), st.lists(st.sampled_from([0.0, 1.0]), min_size=9)
)
LINES = st.sampled_from(
    [line("slope"), line("intercept"), *(line("prediction", at) for at in (-0.5, 0.25, 0.3, 0.37, 0.5, 1.0, 1.7))]
)
SETTINGS = examples(150)


def cell(x: Sequence[float], y: Sequence[float]) -> list[Floats]:
    """Sorted by x, then y."""
    rows = sorted(zip(x, y, strict=False))
    return [np.array(column) for column in zip(*rows, strict=True)]


def starts(columns: Sequence[Floats]) -> NDArray[np.int64]:
    return np.array([0, columns[0].size])


def pinned(test):  # type: ignore[no-untyped-def]
    """Cells that go wrong: alone, two, leverage 1, ties, no spread, no spread at x₀, a perfect line."""
    for x, y in [
        ([0.5], [0.2]),
        ([0.25], [0.9]),
        ([0.25, 0.25, 0.25], [0.1, 0.5, 0.7]),
        ([0.3, 0.7], [0.1, 0.9]),
        ([0.3, 0.3, 0.3, 0.7], [0.1, 0.4, 0.6, 0.2]),
        ([0.3, 0.3, 0.3, 0.300001], [0.1, 0.4, 0.6, 0.2]),
        ([0.0, 0.5, 1.0, 1.0, 0.5], [0.0, 0.5, 1.0, 1.0, 1.0]),
        ([0.1, 0.2, 0.4, 0.8], [0.1, 0.2, 0.4, 0.8]),
        ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    ]:
        for statistic in (line("slope"), line("prediction", 0.25)):
            test = example(statistic=statistic, x=x, y=y)(test)
    return test


def unbounded(statistic: Line, x: Floats) -> bool:
    return bool(x[0] == x[-1]) and (statistic.kind == "slope" or statistic.at != x[0])


@pinned
@given(statistic=LINES, x=XS, y=YS)
@SETTINGS
def test_closed_forms_equal_refits_in_exact_arithmetic(statistic: Line, x: list[float], y: list[float]) -> None:
    columns = cell(x, y)
    actual = statistic.local(columns, starts(columns), CORNERS)
    value, error = refit(statistic, *columns)
    # With all x at x₀ the worst new x is there as well: no search leaves that out.
    points = [(p, q) for p in {0.0, 1.0, columns[0][0] if columns[0][0] == columns[0][-1] else 0.0} for q in (0.0, 1.0)]
    around = [refit(statistic, a, b) for a, b in neighbours(*columns, points)]
    size = max(1.0, abs(float(value)))
    assert actual.n == len(x)
    assert actual.statistic[0] == pytest.approx(float(value), rel=CLOSE, abs=CLOSE)
    assert actual.error is not None
    assert actual.error_sensitivity is not None
    weight = max(weigh(statistic, *pair) for pair in [columns, *neighbours(*columns, points)])
    assert actual.error[0] == pytest.approx(sqrt(error), rel=1e-10, abs=CLOSE * weight)
    if unbounded(statistic, columns[0]):
        assert actual.sensitivity[0] == inf
        assert actual.error_sensitivity[0] == (inf if len(set(columns[1])) > 1 else 0)
        return
    assert actual.sensitivity[0] == pytest.approx(
        max(abs(float(v - value)) for v, _ in around), rel=CLOSE, abs=CLOSE * size
    )
    wanted = max(change(e, error) for _, e in around)
    assert actual.error_sensitivity[0] == pytest.approx(wanted, rel=1e-10, abs=CLOSE * weight)


@pinned
@given(statistic=LINES, x=XS, y=YS)
@SETTINGS
def test_the_exact_maximum_is_attained_and_no_grid_exceeds_it(statistic: Line, x: list[float], y: list[float]) -> None:
    columns = cell(x, y)
    worst, actual = statistic.worst(columns), statistic.local(columns, starts(columns), errors=False)
    assert abs(worst.change) == actual.sensitivity[0]
    assert (actual.error, actual.error_sensitivity) == (None, None)
    if unbounded(statistic, columns[0]):
        assert worst.change == inf
        near = [np.append(column, value) for column, value in zip(columns, _beside(worst.point), strict=True)]
        assert abs(refit(statistic, *near)[0] - refit(statistic, *columns)[0]) > 1000
        return
    value = refit(statistic, *columns)[0]
    if worst.added:
        moved = [np.append(column, value) for column, value in zip(columns, worst.point, strict=True)]
        assert all(v.low <= p <= v.high for v, p in zip(statistic.variables, worst.point, strict=True))
    else:
        gone = int(np.flatnonzero((columns[0] == worst.point[0]) & (columns[1] == worst.point[1]))[0])
        moved = [np.delete(column, gone) for column in columns]
    assert float(refit(statistic, *moved)[0] - value) == pytest.approx(worst.change, rel=1e-9, abs=1e-9)
    grid = brute_force.sensitivity(lambda c: float(refit(statistic, *c)[0]), columns, (X, Y), 9)
    assert grid <= actual.sensitivity[0] * (1 + 1e-9) + 1e-12


def _beside(point: tuple[float, ...]) -> tuple[float, float]:
    return (point[0] + 1e-9 if point[0] < 1 else point[0] - 1e-9), point[1]


def dense(statistic: Line, x: Floats, y: Floats, xs: Floats, ys: Floats) -> tuple[Floats, Floats]:
    """θ and the error with each of these observations, by the raw sums of the new cell, one fit at a time."""
    w, t = (0.0, 1.0) if statistic.kind == "slope" else (1.0, statistic.at)
    n = x.size + 1
    all_x, all_y = (np.column_stack([np.broadcast_to(c, (v.size, c.size)), v]) for c, v in ((x, xs), (y, ys)))
    mx, my = all_x.mean(axis=1, keepdims=True), all_y.mean(axis=1, keepdims=True)
    dx, dy = all_x - mx, all_y - my
    sxx = (dx**2).sum(axis=1)
    slope = (dx * dy).sum(axis=1) / sxx
    sse = ((dy - slope[:, None] * dx) ** 2).sum(axis=1)
    tau = t - w * mx[:, 0]
    return w * my[:, 0] + tau * slope, np.sqrt(sse / (n - 2) * (w / n + tau**2 / sxx))


@pinned
@given(statistic=LINES, x=XS.filter(lambda x: min(x) < max(x)), y=YS)
@SETTINGS
def test_exact_maxima_are_those_of_fine_grids(statistic: Line, x: list[float], y: list[float]) -> None:
    columns = cell(x, y)
    if columns[0][0] == columns[0][-1]:
        return
    actual = statistic.local(columns, starts(columns))
    assert actual.error is not None
    assert actual.error_sensitivity is not None
    error, mean, sxx = actual.error[0], columns[0].mean(), ((columns[0] - columns[0].mean()) ** 2).sum()
    spread = sqrt(sxx)
    xs = np.unique(
        np.clip(np.r_[np.linspace(0, 1, 1001), mean + spread * np.tan(np.linspace(-1.57, 1.57, 4001))], 0, 1)
    )
    new, tried = np.repeat(xs, 9), np.tile(np.linspace(0, 1, 9), xs.size)
    slope = float(((columns[0] - mean) * columns[1]).sum() / sxx)
    line_y = columns[1].mean() + slope * (xs - mean)
    inside = (line_y >= 0) & (line_y <= 1)
    values, errors = dense(statistic, *columns, np.r_[new, xs[inside]], np.r_[tried, line_y[inside]])
    assert np.abs(values - actual.statistic[0]).max() <= actual.sensitivity[0] * (1 + 1e-8)
    removed = [sqrt(refit(statistic, *pair)[1]) for pair in neighbours(*columns, [])]
    grid = max(np.abs(errors - error).max(), *(abs(r - error) for r in removed))
    assert grid <= actual.error_sensitivity[0] * (1 + 1e-8) + 1e-8 * errors.max()
    assert grid >= actual.error_sensitivity[0] * (1 - 1e-3) - 1e-8


@given(statistic=LINES, x=XS.filter(lambda x: min(x) < max(x)), y=YS)
@SETTINGS
def test_grids_try_what_they_say(statistic: Line, x: list[float], y: list[float]) -> None:
    columns = cell(x, y)
    if columns[0][0] == columns[0][-1]:
        return
    actual = statistic.local(columns, starts(columns), Search("grid", 5))
    assert actual.error_sensitivity is not None
    points = [(p, q) for p in np.linspace(0, 1, 5) for q in np.linspace(0, 1, 5)]
    value, error = refit(statistic, *columns)
    around = [refit(statistic, a, b) for a, b in neighbours(*columns, points)]
    weight = max(weigh(statistic, *pair) for pair in [columns, *neighbours(*columns, points)])
    assert actual.sensitivity[0] == pytest.approx(max(abs(float(v - value)) for v, _ in around), rel=1e-11, abs=1e-11)
    wanted = max(change(e, error) for _, e in around)
    assert actual.error_sensitivity[0] == pytest.approx(wanted, rel=1e-9, abs=CLOSE * weight)


def test_other_bounds_scale() -> None:
    rng = np.random.default_rng(4)  # test data
    x, y = np.sort(rng.random(12)), rng.random(12)
    wide = Line(Variable("x", -10, 30), Variable("y", 5, 7), "prediction", 0.0)
    unit, stretched = (
        line("prediction", 0.25).local([x, y], np.array([0, 12])),
        wide.local([40 * x - 10, 2 * y + 5], np.array([0, 12])),
    )
    for name, factor in (("sensitivity", 2), ("error", 2), ("error_sensitivity", 2)):
        assert getattr(stretched, name) == pytest.approx(factor * getattr(unit, name), rel=1e-12)


def test_equal_cells_give_equal_bits_wherever_they_lie() -> None:
    rng = np.random.default_rng(5)  # test data
    x, y = np.sort(rng.random(50)), rng.random(50)
    alone = line("prediction", 0.25).local([x, y], np.array([0, 50]))
    among = line("prediction", 0.25).local(
        [np.r_[0.1, 0.2, 0.3, x, x], np.r_[0.5, 0.1, 0.3, y, y]], np.array([0, 3, 53, 103])
    )
    for name in ("statistic", "sensitivity", "error", "error_sensitivity"):
        assert getattr(among, name)[1:].tolist() == [getattr(alone, name)[0]] * 2


def test_x_too_close_to_tell_apart_are_equal() -> None:
    actual = line("slope").local([np.array([0.0, 1e-200, 1e-160]), np.array([0.1, 0.2, 0.3])], np.array([0, 3]))
    assert (actual.statistic[0], actual.sensitivity[0]) == (0, inf)
    columns = [1e-30 * np.arange(4.0), np.array([0.1, 0.2, 0.4, 0.3])]
    for statistic in (line("slope"), line("prediction", 0.25)):
        exact, corners = (statistic.local(columns, np.array([0, 4]), search) for search in (Search(), CORNERS))
        around = [refit(statistic, *pair)[0] for pair in neighbours(*columns, [(0, 0), (0, 1), (1, 0), (1, 1)])]
        wanted = max(abs(float(v - refit(statistic, *columns)[0])) for v in around)
        assert corners.sensitivity[0] == pytest.approx(wanted, rel=1e-12)
        assert exact.error_sensitivity is not None
        assert np.isfinite([exact.sensitivity[0], exact.error_sensitivity[0]]).all()


@pytest.mark.parametrize("far", [0.9, 0.93, 0.97, 1.0])
def test_without_its_one_outlier_a_line_has_no_error(far: float) -> None:
    x = np.linspace(0.05, 0.95, 9)
    y = 0.1 + 0.3 * x
    y[4] = far
    actual = line("prediction", 0.25).local([x, y], np.array([0, 9]))
    assert actual.error is not None
    assert actual.error_sensitivity == pytest.approx(actual.error, rel=1e-12)  # by the root of rounding, if downdated


@pytest.mark.parametrize("large", [10, 10_000])
def test_large_cells_keep_their_digits(large: int) -> None:
    rng = np.random.default_rng(6)  # test data
    x, y = np.sort(np.round(rng.random(large), 4)), np.round(rng.random(large), 4)
    statistic = line("prediction", 0.25)
    actual = statistic.local([x, y], np.array([0, large]))
    value, error = refit(statistic, x, y)
    assert actual.statistic[0] == pytest.approx(float(value), rel=1e-14)
    assert actual.error is not None
    assert actual.error[0] == pytest.approx(sqrt(error), rel=1e-12)


def test_what_a_line_says_of_itself() -> None:
    slope, prediction = line("slope"), line("prediction", 0.25)
    statistics: list[Statistic] = [slope, prediction]
    assert [s.name for s in statistics] == ["slope", "prediction"]
    assert [s.empty for s in statistics] == [0, 0.5]
    assert Line(Variable("x", 0, 4), Y, "slope").scale == 0.25
    assert prediction.parameters == 2
    assert prediction.has_error
    assert prediction.searches()[0] == "exact"


@pytest.mark.parametrize(("kind", "at"), [("slope", 0.5), ("prediction", float("nan")), ("curve", 0.0)])
def test_what_is_no_line_is_refused(kind: str, at: float) -> None:
    with pytest.raises(ParameterError):
        line(kind, at)
