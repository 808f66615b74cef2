"""The smooth bound against brute force on every small data set, and the noise around it."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import ceil, exp

import numpy as np
import pytest

from discreet.errors import ParameterError, ReleaseKeyError
from discreet.noise.key import ReleaseKey
from discreet_studies.pseo.smooth import DILATION, SLACK, SLIDE, SmoothPercentiles

F = Fraction
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
LOWER, UPPER, LARGEST = 0, 30, 6
GRID = (0, 4, 17, 30)
Data = tuple[int, ...]
KEY = ReleaseKey.simulation("smooth")


def method(**changes: object) -> SmoothPercentiles:
    given = {"points": QUARTILES, "lower": LOWER, "upper": UPPER, "epsilon": F(9, 2), "share": F(1, 2)} | changes
    return SmoothPercentiles(**given)  # type: ignore[arg-type]


def packed(sets: list[Data]) -> tuple[np.ndarray, np.ndarray]:
    start = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return np.array([v for s in sets for v in s], np.int64), start


@cache
def everything() -> list[Data]:
    return [s for n in range(LARGEST + 1) for s in combinations_with_replacement(GRID, n)]


def larger(data: Data) -> list[Data]:
    return [tuple(sorted((*data, v))) for v in GRID]


def percentile(data: Data, y: F) -> int:
    return data[ceil(y * len(data)) - 1] if data else LOWER


def window(data: Data, y: F, k: int) -> int:
    """Nissim et al.'s widest gap at distance k, which fits substitution."""
    padded = dict(enumerate(data, 1))
    at = lambda i: padded.get(i, LOWER if i < 1 else UPPER)  # noqa: E731
    r = ceil(y * len(data))
    return max(at(r + t) - at(r + t - k - 1) for t in range(k + 2))


@pytest.mark.parametrize("share", [F(1, 4), F(9, 10)])
def test_every_small_data_set_smooth_and_above_the_local_sensitivity(share: Fraction) -> None:
    chosen = method(share=share)
    sets = everything()
    actual = chosen.sensitivity(*packed(sets))
    of = dict(zip(sets, actual, strict=True))
    growth = exp(chosen.beta) * (1 + 1e-12)
    for small in sets:
        for large in larger(small) if len(small) < LARGEST else []:
            change = [abs(percentile(small, y) - percentile(large, y)) for y in QUARTILES]
            assert (of[small] >= change).all()
            assert (of[large] >= change).all()
            assert (of[small] <= growth * of[large]).all()
            assert (of[large] <= growth * of[small]).all()


def test_the_bound_is_no_wider_than_that_for_substitution_and_not_constant() -> None:
    chosen = method()
    sets = everything()
    actual = chosen.sensitivity(*packed(sets))
    for data, mine in zip(sets, actual, strict=True):
        for p, y in enumerate(QUARTILES):
            theirs = max(exp(-chosen.beta * k) * window(data, y, k) for k in range(LARGEST + 9))
            assert mine[p] <= max(theirs, 1) * (1 + 1e-12)
    calm = chosen.sensitivity(*packed([(17,) * 60]))
    assert (calm < 0.02 * (UPPER - LOWER) + 1).all()


def test_the_check_detects_a_bound_that_is_not_smooth() -> None:
    """With a very large β, S is the local bound G_0 alone, whose jumps between neighbours must be detected."""
    sets = everything()
    of = dict(zip(sets, method(epsilon=F(9000)).sensitivity(*packed(sets)), strict=True))
    jump = max((of[large] / of[small]).max() for small in sets if len(small) < LARGEST for large in larger(small))
    assert jump > 2 * exp(method().beta)


def test_truth_is_the_lower_percentile_of_clamped_values() -> None:
    rng = np.random.default_rng(2)
    sets = [tuple(np.sort(rng.integers(-5, 40, n)).tolist()) for n in (0, 1, 2, 3, 8, 41)]
    expected = [
        np.quantile(np.clip(s, LOWER, UPPER), [0.25, 0.5, 0.75], method="inverted_cdf") if s else [LOWER] * 3
        for s in sets
    ]
    assert np.array_equal(method().truth(*packed(sets)), np.array(expected))


def test_epsilon_is_spent_once() -> None:
    """Shift and dilation of three percentiles add up to ε, rounding included."""
    chosen = method()
    each = SLIDE / (chosen.noise.scale * 2**20) + DILATION * (chosen.beta + SLACK)
    assert 3 * each == chosen.epsilon
    assert SLIDE**4 > 27 > (SLIDE - F(1, 10**14)) ** 4


def test_constants_of_the_density_hold_numerically() -> None:
    """ln h(z) − ln h(z+s) ≤ 3^(3/4)·s and |ln h(z) − λ − ln h(e^λ z)| ≤ 3λ for h = 1/(1+z⁴)."""
    z = np.linspace(-40, 40, 4001)
    for s in (0.01, 0.3, 2.0):
        assert (np.log1p((z + s) ** 4) - np.log1p(z**4)).max() <= float(SLIDE) * s
    for lam in (0.01, 0.2, 1.0):
        change = np.log1p((np.exp(lam) * z) ** 4) - np.log1p(z**4) - lam
        assert np.abs(change).max() <= DILATION * lam + 1e-12


def test_noise_has_the_expected_magnitude() -> None:
    """E|Z| = 2^(−1/2) for 1/(1+z⁴); bounds far away, so that clamping and sorting do nothing."""
    chosen = method(points=(F(1, 2),), lower=-(10**9), upper=10**9, epsilon=F(30), share=F(9, 10))
    values, start = packed([tuple(range(0, 400_000, 1000))] * 4000)
    error = np.abs(chosen.protect(values, start, KEY) - chosen.truth(values, start))
    expected = float(chosen.noise.scale) * 2**20 * chosen.sensitivity(values, start)[0, 0] * 2**-0.5
    assert 0.93 < error.mean() / expected < 1.07


def test_results_are_ordered_within_bounds_and_reproducible() -> None:
    rng = np.random.default_rng(4)
    values, start = packed([tuple(np.sort(rng.integers(0, 31, n)).tolist()) for n in rng.integers(0, 60, 300)])
    once = method(epsilon=F(1)).protect(values, start, KEY)
    assert (np.diff(once, axis=1) >= 0).all()
    assert ((once >= LOWER) & (once <= UPPER)).all()
    assert np.array_equal(once, method(epsilon=F(1)).protect(values, start, KEY))
    assert not np.array_equal(once, method(epsilon=F(1)).protect(values, start, ReleaseKey.simulation("other")))


def test_a_real_key_is_refused() -> None:
    with pytest.raises(ReleaseKeyError):
        method().protect(*packed([(1, 2, 3)]), ReleaseKey.generate())


@pytest.mark.parametrize(
    "changes",
    [
        {"points": ()},
        {"points": (F(1),)},
        {"lower": 30},
        {"share": F(1)},
        {"share": F(0)},
        {"epsilon": F(1, 10**6)},
    ],
)
def test_refusals(changes: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        method(**changes)


def test_values_that_do_not_fit_their_cells_are_refused() -> None:
    with pytest.raises(ParameterError):
        method().truth(np.array([1, 2], np.int64), np.array([0, 1], np.int64))
