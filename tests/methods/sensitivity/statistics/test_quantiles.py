"""Quantiles against NumPy's and brute force."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics.quantiles import Quantile
from support.brute_force import Floats, removals, sensitivity
from support.hypothesis_profile import examples

Y = Variable("y", -2.0, 6.0)
values = st.lists(st.integers(-2, 6).map(float), min_size=1, max_size=25)
shares = st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1)])


def numpys(columns: Sequence[Floats], p: Fraction) -> float:
    return float(np.quantile(columns[0], float(p))) if columns[0].size else 2.0


@examples(150)
@given(cell=values, p=shares)
def test_equals_brute_force(cell: list[float], p: Fraction) -> None:
    columns = [np.sort(cell)]
    statistic = Quantile(Y, p)
    out = statistic.local(columns, np.array([0, len(cell)]))
    here = numpys(columns, p)
    assert out.statistic[0] == pytest.approx(here, abs=1e-12)
    assert out.error is None
    refits = sensitivity(lambda c: numpys(c, p), columns, (Y,), 17)
    assert out.sensitivity[0] == pytest.approx(refits, abs=1e-12)
    worst = statistic.worst(columns)
    row = np.searchsorted(columns[0], worst.point[0])
    after = [np.append(columns[0], worst.point[0]) if worst.added else np.delete(columns[0], row)]
    assert numpys(after, p) - here == pytest.approx(worst.change, abs=1e-12)
    assert abs(worst.change) == out.sensitivity[0]
    only = statistic.local(columns, np.array([0, len(cell)]), Search("removals")).sensitivity[0]
    assert only == pytest.approx(max(abs(v - here) for v in removals(lambda c: numpys(c, p), columns)), abs=1e-12)


def test_many_cells_and_searches() -> None:
    y = np.array([0.0, 1.0, 5.0, 3.0, 2.0, 2.0])
    starts = np.array([0, 3, 4, 6])
    median = Quantile(Y, Fraction(1, 2))
    assert median.local([y], starts).statistic.tolist() == [1, 3, 2]
    for kind in ("corners", "grid"):
        actual = median.local([y], starts, Search(kind, 5), errors=False)
        assert actual.sensitivity.tolist() == median.local([y], starts).sensitivity.tolist() == [2, 2.5, 0]


@pytest.mark.parametrize("p", [0.5, Fraction(-1, 2), Fraction(3, 2), Fraction(1, 10**7)])
def test_refusals(p: Fraction) -> None:
    with pytest.raises(ParameterError, match="fraction"):
        Quantile(Y, p)
    with pytest.raises(ParameterError, match="removals"):
        Quantile(Y, Fraction(1, 2)).worst([np.zeros(1)], Search("best"))  # type: ignore[arg-type]
