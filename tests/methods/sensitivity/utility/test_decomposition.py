"""Shares add to one and are those of the parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet_studies.sensitivity.table1 import decomposition


def test_shares_of_a_small_table_by_hand() -> None:
    # Weighted mean 2, variance (3·1 + 1·9)/4 = 3; E[SE²] = (3·1 + 1·0)/4; privacy .3.
    actual = decomposition([1, 5], [1, 0], [0.3, 0.3], [3, 1])
    assert actual.sampling == pytest.approx(0.25, abs=1e-15)
    assert actual.privacy == pytest.approx(0.1, abs=1e-15)
    assert actual.signal == pytest.approx(0.65, abs=1e-15)


numbers = st.floats(-100, 100, allow_subnormal=False)


@given(st.lists(st.tuples(numbers, st.floats(0, 10), st.floats(0, 10), st.floats(0.01, 100)), min_size=2, max_size=30))
def test_shares_add_to_one(cells: list[tuple[float, float, float, float]]) -> None:
    estimates, errors, noise, weights = np.array(cells).T
    if np.ptp(estimates) < 1e-3:
        return
    actual = decomposition(estimates, errors, noise, weights)
    assert actual.signal + actual.sampling + actual.privacy == pytest.approx(1, abs=1e-9 * (1 + actual.sampling))
    scaled = decomposition(2 * estimates, 2 * errors, 4 * noise, 3 * weights)
    assert scaled.signal == pytest.approx(actual.signal, rel=1e-9, abs=1e-9)


def test_shares_recover_the_variances_that_were_put_in() -> None:
    rng, n = np.random.default_rng(1), 200_000
    weight = rng.integers(1, 50, n).astype(float)
    noise = 0.5 * rng.uniform(0.5, 1.5, n)
    noisy = rng.normal(0, np.sqrt(2), n) + rng.standard_normal(n) + np.sqrt(noise) * rng.laplace(0, 0.5**0.5, n)
    actual = decomposition(noisy, 1.0, noise, weight)
    assert actual.signal == pytest.approx(2 / 3.5, abs=0.01)
    assert actual.sampling == pytest.approx(1 / 3.5, abs=0.01)
    assert actual.privacy == pytest.approx(0.5 / 3.5, abs=0.01)


def test_nothing_but_noise_shows_as_no_signal_not_as_zero() -> None:
    assert decomposition([0, 1], 2.0, 0.0, 1.0).signal == pytest.approx(-15)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (([1, 1], 0, 0, 1), "are equal"),
        (([1], 0, 0, 1), "two cells"),
        (([1, np.nan], 0, 0, 1), "finite"),
        (([1, 2, 3], [0, 0], 0, 1), "equally long"),
        (([1, 2], 0, 0, [1, -1]), "weights"),
        (([1, 2], 0, 0, 0), "weights"),
    ],
)
def test_columns_that_make_no_decomposition_are_refused(cells: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        decomposition(*cells)
