"""Any function as a statistic: brute force itself, whatever the number of processes, and nothing it says gets out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics import function as under_test
from discreet.methods.sensitivity.statistics.function import Function
from discreet.methods.sensitivity.statistics.quantiles import Quantile
from support.brute_force import Floats, sensitivity
from support.hypothesis_profile import examples

X, Y = Variable("x", 0.0, 1.0), Variable("y", -1.0, 3.0)
FILE = """
import os
import numpy as np

def ratio(columns):
    x, y = columns
    return np.sum(y) / (1 + np.sum(x))

def spread(columns):
    return float(np.std(columns[1]))

def broken(columns):
    return columns[7]

def gone(columns):
    if len(columns[0]) == 24:
        return os.getpid()
    os._exit(3)

def where(columns):
    return os.getpid()

def text(columns):
    return "3"
"""


def ratio(columns: Sequence[Floats]) -> float:
    return float(columns[1].sum() / (1 + columns[0].sum())) if columns[0].size else 1.0


def spread(columns: Sequence[Floats]) -> float:
    return float(np.std(columns[1]))


def median(columns: Sequence[Floats]) -> float:
    columns[0].sort()  # its own copy
    return float(np.median(columns[0]))


RATIO = Function("ratio", (X, Y), ratio, 4.0, 1.0, spread)


def some(cells: int, seed: int = 1) -> tuple[list[Floats], np.ndarray]:
    draw = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(draw.integers(1, 9, cells))])
    return [draw.uniform(v.low, v.high, starts[-1]) for v in (X, Y)], starts


rows = st.lists(
    st.tuples(st.integers(0, 4).map(lambda i: i / 4), st.integers(-1, 3).map(float)), min_size=1, max_size=9
)


@examples(60)
@given(points=rows, k=st.integers(2, 4))
def test_equals_brute_force(points: list[tuple[float, float]], k: int) -> None:
    columns = [*np.array(sorted(points)).T.copy()]
    search = Search("corners") if k == 2 else Search("grid", k)
    out = RATIO.local(columns, np.array([0, len(points)]), search)
    assert out.error is not None
    assert out.error_sensitivity is not None
    assert (out.statistic[0], out.error[0]) == (ratio(columns), spread(columns))
    assert out.sensitivity[0] == sensitivity(ratio, columns, (X, Y), k)
    expected = sensitivity(lambda c: spread(c) if c[0].size else 0.0, columns, (X, Y), k)
    assert out.error_sensitivity[0] == expected
    only = RATIO.local(columns, np.array([0, len(points)]), Search("removals"), errors=False)
    assert only.sensitivity[0] <= out.sensitivity[0]
    assert only.error is None


def test_agrees_with_a_built_in_one() -> None:
    columns, starts = some(40)
    for a, b in pairwise(starts):
        columns[0][a:b].sort()
    mine = Function("median", (X,), median, 1.0, 0.5).local(columns[:1], starts)
    theirs = Quantile(X, Fraction(1, 2)).local(columns[:1], starts)
    assert mine.sensitivity == pytest.approx(theirs.sensitivity, abs=1e-12)


def test_the_number_of_processes_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    monkeypatch.setattr(under_test, "SMALL", 500)
    columns, starts = some(150)
    actual = []
    for processes in (1, 2):
        statistic = replace(Function.of_file(file, "ratio", (X, Y), 4.0, 1.0, "spread"), processes=processes)
        out = statistic.dry_run().local(columns, starts)
        assert out.error is not None
        assert out.error_sensitivity is not None
        actual.append([v.tobytes() for v in (out.statistic, out.sensitivity, out.error, out.error_sensitivity)])
    assert actual[0] == actual[1]


def test_other_processes_do_the_work_and_may_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    monkeypatch.setattr(under_test, "SMALL", 50)
    columns, starts = some(30)
    where = replace(Function.of_file(file, "where", (X, Y), 4.0, 1.0), processes=2).dry_run()
    assert os.getpid() not in where.local(columns, starts).statistic
    gone = replace(Function.of_file(file, "gone", (X, Y), 4.0, 1.0), processes=2).dry_run()
    with pytest.raises(ParameterError, match="terminated its process"):
        gone.local(columns, starts)


def test_lambdas_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "SMALL", 10)
    monkeypatch.setattr(under_test, "ProcessPoolExecutor", None)
    columns, starts = some(10)
    plain = Function("mean", (X, Y), lambda c: c[1].mean(), 4.0, 1.0, processes=2)
    assert plain.local(columns, starts).n.sum() == starts[-1]


class Odd(Exception):
    pass


def fails(columns: Sequence[Floats]) -> float:
    y = columns[1]
    print("observations", y)
    warnings.warn(f"observations {y}", stacklevel=1)
    if y.size == 3:
        raise Odd(f"secret {y}")
    if y.size == 5:
        raise SystemExit(f"secret {y}")
    return {2: np.nan, 4: "7", 6: None, 7: np.inf}.get(y.size, 2.5)  # type: ignore[return-value]


def test_failures_are_the_fallback_and_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    statistic = Function("odd", (X, Y), fails, 1.0, 0.25, fails)
    sizes = [1, 2, 3, 4, 5, 6, 7, 8]
    columns = [np.full(sum(sizes), 0.5)] * 2
    out = statistic.local(columns, np.concatenate([[0], np.cumsum(sizes)]))
    assert out.statistic.tolist() == [2.5, *[0.25] * 6, 2.5]
    assert out.error is not None
    assert out.error.tolist() == [2.5, *[0.0] * 6, 2.5]
    assert out.sensitivity.tolist() == [2.25, 2.25, 0, 0, 0, 0, 2.25, 2.25]
    assert capfd.readouterr() == ("", "")


def test_refusals(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    for name, words in (("broken", "IndexError"), ("text", "number"), ("absent", "defines no function")):
        with pytest.raises(ParameterError, match=words):
            Function.of_file(file, name, (X, Y), 1.0, 0.0).dry_run()
    with pytest.raises(ParameterError, match="not a Python file"):
        Function.of_file(tmp_path / "other.py", "ratio", (X, Y), 1.0, 0.0).dry_run()
    (tmp_path / "bad.py").write_text("1 +")
    with pytest.raises(ParameterError, match="cannot be loaded"):
        Function.of_file(tmp_path / "bad.py", "ratio", (X, Y), 1.0, 0.0).dry_run()
    for bad in ({"variables": ()}, {"scale": 0.0}, {"empty": np.nan}):
        with pytest.raises(ParameterError, match="needs"):
            Function(**{"name": "f", "variables": (X,), "function": ratio, "scale": 1.0, "empty": 0.0, **bad})
    with pytest.raises(ParameterError, match="corners, grid, removals"):
        RATIO.local([np.zeros(1), np.zeros(1)], np.array([0, 1]), Search())
    with pytest.raises(ParameterError, match="million"):
        RATIO.local([np.zeros(1), np.zeros(1)], np.array([0, 1]), Search("grid", 1001))


class Quoting(BaseException):
    """What a careless function may raise."""


def quoting(columns: Sequence[Floats]) -> float:
    if columns[0].size == 5:
        raise Quoting(f"SECRET {columns[0][0]}")
    return 2.0


def test_whatever_it_raises_is_the_fallback() -> None:
    made = Function("quoting", (X,), quoting, 1.0, 0.5)
    actual = made.local([np.linspace(0, 1, 5)], np.array([0, 5]))
    assert (actual.statistic[0], actual.sensitivity[0]) == (0.5, 1.5)


def test_it_works_on_copies() -> None:
    """A median that sorts what it is given changes no neighbour."""
    cell = np.array([0.1, 0.9, 0.3, 0.2])
    made = Function("median", (X,), median, 1.0, 0.5)
    made.local([cell], np.array([0, 4]))
    assert cell.tolist() == [0.1, 0.9, 0.3, 0.2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(columns):\n    return float('nan')\n", "does not return a number"),
        ("def f(columns):\n    return True\n", "does not return a number"),
        (
            "import itertools\nk = itertools.count()\ndef f(columns):\n    return float(next(k))\n",
            "two values for one cell",
        ),
        ("import sys\ndef f(columns):\n    sys.exit(0)\n", "fails with synthetic observations"),
        ("import sys\nsys.exit(0)\n", "cannot be loaded"),
        ("class B(BaseException): pass\ndef f(columns):\n    raise B('x')\n", "fails with synthetic observations: B"),
    ],
)
def test_a_dry_run_shows_what_cannot_be_a_statistic(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "f.py").write_text(text)
    with pytest.raises(ParameterError, match=said):
        Function.of_file(tmp_path / "f.py", "f", (X,), 1.0, 0.0).dry_run()
