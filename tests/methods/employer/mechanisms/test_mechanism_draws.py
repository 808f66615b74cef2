"""Draws equal a slow reference, depend on the cell's number only, and have the claimed distribution."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import LARGEST, Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth import SmoothMechanism
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from support.goodness_of_fit import ACCEPT, REJECT, shape
from support.hypothesis_profile import examples
from support.mechanism_floats import distribution, geometric, log_laplace
from support.noise_fakes import fixed_stream, scripted

F = Fraction
TENTH, TWO = F(1, 10), F(2)
ALL: list[Mechanism] = [
    LaplacePareto(F(3, 20), TWO),
    LaplacePareto(TENTH, TWO, cells=8),
    SmoothGamma(TENTH, TWO),
    SmoothLaplace(TENTH, TWO, F(1, 10**6)),
    LogLaplace(TENTH, TWO),
    LogLaplace(F(3, 20), F(1), "printed", unbiased=False),
    Geometric(F(1, 5)),
    Truncated(TWO, 10),
]
Ints = NDArray[np.int64]


def name(mechanism: Mechanism) -> str:
    return f"{mechanism!r}".replace("Fraction", "")


def reference(mechanism: Mechanism, count: int, largest: int, cell: int) -> int:
    """By interval arithmetic alone, one cell at a time."""
    word, second = fixed_stream().block(cell)
    more = iter([second, *[0] * 8])
    if isinstance(mechanism, SmoothMechanism):
        p, q = mechanism.alpha.numerator, mechanism.alpha.denominator
        drawn = count + mechanism.noise.rounding.resolve(word, more, max(p * largest, q))
    elif isinstance(mechanism, LogLaplace):
        p, q = mechanism.alpha.numerator, mechanism.alpha.denominator
        drawn = mechanism.noise.rounding.resolve(word, more, count * p + q)
    else:
        drawn = count + int(mechanism.distribution.draw(fixed_stream(), cell, 1)[0])  # type: ignore[attr-defined]
    return max(-LARGEST, min(LARGEST, drawn))


@pytest.mark.parametrize("mechanism", ALL, ids=name)
@examples(12)
@given(
    st.lists(st.tuples(st.integers(0, LARGEST - 1), st.integers(0, 10**9)), min_size=1, max_size=5),
    st.integers(0, 2**62),
)
def test_draws_are_the_reference(mechanism: Mechanism, cells: list[tuple[int, int]], first: int) -> None:
    counts, largest = (np.array(column, dtype=np.int64) for column in zip(*cells, strict=True))
    drawn = mechanism.draw(counts, largest, fixed_stream(), first)
    expected = [reference(mechanism, n, x, first + i) for i, (n, x) in enumerate(cells)]
    assert drawn.tolist() == expected


@pytest.mark.parametrize("mechanism", ALL, ids=name)
@examples(6)
@given(st.integers(0, 2**40), st.lists(st.integers(0, 20_000), min_size=1, max_size=4))
def test_a_draw_does_not_depend_on_the_split(mechanism: Mechanism, first: int, sizes: list[int]) -> None:
    counts = np.arange(sum(sizes), dtype=np.int64) % 1000
    largest = counts // 2
    whole = mechanism.draw(counts, largest, fixed_stream(), first)
    parts = [
        mechanism.draw(counts[a:b], largest[a:b], fixed_stream(), first + int(a))
        for a, b in pairwise(np.cumsum([0, *sizes]).tolist())
    ]
    assert (np.concatenate(parts) == whole).all()
    again = pickle.loads(pickle.dumps(mechanism))
    assert (again.draw(counts, largest, fixed_stream(), first) == whole).all()


def tails(mechanism: Mechanism, cell: tuple[int, int], factor: float) -> object:
    """P(published − count ≥ m) from the float masses, whose scale is multiplied by a factor."""
    count = cell[0]
    ks = np.arange(-60_000, 60_001)
    with np.errstate(over="ignore", under="ignore"):
        masses = np.exp(np.nan_to_num(stretched(mechanism, cell, factor)(ks + count), nan=-np.inf))
    above = np.cumsum(masses[::-1])[::-1]
    return lambda m: above[np.clip(np.asarray(m).astype(np.int64) + 60_000, 0, above.size - 1)]


def stretched(mechanism: Mechanism, cell: tuple[int, int], factor: float):  # type: ignore[no-untyped-def]
    match mechanism:
        case SmoothMechanism():
            return distribution(mechanism, cell, c=factor * float(mechanism.constant))
        case LogLaplace():
            return log_laplace(
                cell[0], factor * float(mechanism.exponent), float(1 / mechanism.alpha), float(mechanism.factor)
            )
        case _:
            return geometric(cell[0], float(mechanism.distribution.rate) / factor)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_accepts_the_distribution_and_rejects_similar_ones(mechanism: Mechanism) -> None:
    n, cell = 60_000, (700, 300)
    counts, largest = np.full(n, cell[0], dtype=np.int64), np.full(n, cell[1], dtype=np.int64)
    errors = mechanism.draw(counts, largest, fixed_stream("mechanisms"), 0) - counts
    assert shape(errors, tails(mechanism, cell, 1.0)) > ACCEPT  # type: ignore[arg-type]
    assert shape(errors, tails(mechanism, cell, 0.7)) < REJECT  # type: ignore[arg-type]
    assert shape(errors, tails(mechanism, cell, 1.3)) < REJECT  # type: ignore[arg-type]
    for m in (-40, -3, 0, 1, 2, 25):
        exact = float(mechanism.upper(*cell, cell[0] + m))
        assert float(tails(mechanism, cell, 1.0)(np.array(m))) == pytest.approx(exact, abs=1e-5)  # type: ignore[operator]


@pytest.mark.parametrize("mechanism", ALL, ids=name)
def test_the_mean_error_is_as_documented(mechanism: Mechanism) -> None:
    n, cell = 100_000, (20_000, 8_000)
    counts, largest = np.full(n, cell[0], dtype=np.int64), np.full(n, cell[1], dtype=np.int64)
    errors = np.abs(mechanism.draw(counts, largest, fixed_stream("mean"), 0) - counts)
    claimed = mechanism.mean_abs(counts[:1].astype(float), largest[:1].astype(float))[0]
    assert errors.mean() == pytest.approx(claimed, rel=0.03)
    if getattr(mechanism, "unbiased", True):
        drift = (mechanism.draw(counts, largest, fixed_stream("mean"), 0) - counts).mean()
        assert abs(drift) < 6 * errors.std() / np.sqrt(n) + 0.02 * claimed


@pytest.mark.parametrize("mechanism", ALL, ids=name)
@pytest.mark.parametrize("level", [F(1, 2), F(9, 10), F(99, 100)])
def test_margins_and_limits_cover(mechanism: Mechanism, level: Fraction) -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3000, 20_000)
    largest = counts // 3
    published = mechanism.draw(counts, largest, fixed_stream(f"cover {level}"), 0)
    at_least = float(level) - 5 * (float(level * (1 - level)) / counts.size) ** 0.5
    margin = mechanism.margin(level, largest)
    assert (margin is None) == isinstance(mechanism, LogLaplace)
    if margin is not None:
        inside = np.abs(published - counts) <= margin
        assert at_least <= inside.mean() <= float(level) + 0.1
        # The smallest: one less does not cover, by the distribution itself.
        m, x = int(margin[0]), int(largest[0])
        for less, holds in ((0, True), (1, False)):
            covered = mechanism.upper(1000, x, 1000 - m + less) - mechanism.upper(1000, x, 1000 + m - less + 1)
            assert (float(covered) >= float(level)) == holds
    if isinstance(mechanism, LogLaplace):
        low, high = mechanism.limits(published, level)
        assert (low >= 0).all()
        assert (low <= high).all()
        inside = (low <= counts) & (counts <= high)
        assert inside.mean() >= at_least


def test_what_is_beyond_the_ends_is_cut() -> None:
    """The largest magnitudes there are (U = 0): the sum is cut at ± 2⁵¹, wherever the noise was."""
    for mechanism in ALL:
        for count in (0, 5, LARGEST - 1):
            counts, largest = np.array([count] * 3), np.array([LARGEST >> 8] * 3)
            for sign in (0, 1):
                drawn = mechanism.draw(counts, largest, scripted(lambda i, s=sign: (s << 63, i)), 0)  # type: ignore[misc]
                assert np.abs(drawn).max() <= LARGEST
    heavy = SmoothGamma(TENTH, TWO)
    wide = np.array([LARGEST - 1] * 3)
    assert heavy.draw(wide, wide, scripted(lambda i: (0, i)), 0).tolist() == [LARGEST] * 3
    assert heavy.draw(wide, wide, scripted(lambda i: (1 << 63, i)), 0).tolist() == [-LARGEST] * 3


def test_counts_are_checked_and_never_shown() -> None:
    good = np.array([5, 7])
    for mechanism in ALL:
        for counts, largest in (
            (np.array([5.0, 7.0]), good),
            (np.array([5, -7]), good),
            (good, np.array([-1, 0])),
            (good, np.array([1])),
            (np.array([5, LARGEST]), good),
            (good, np.array([5, LARGEST])),
            (good.reshape(1, 2), good),
        ):
            with pytest.raises(ParameterError) as error:
                mechanism.draw(counts, largest, fixed_stream(), 0)  # type: ignore[arg-type]
            assert "-7" not in str(error.value)
            assert str(LARGEST) not in str(error.value)
        assert mechanism.draw(np.array([], np.int64), np.array([], np.int64), fixed_stream(), 3).size == 0
        assert mechanism.draw(np.array([0]), np.array([10**6]), fixed_stream(), 3).size == 1  # totals may exceed counts
    with pytest.raises(ParameterError, match="62 bits"):
        LaplacePareto(F(2**39 + 1, 2**38), F(9)).draw(good, np.array([1, 2**40]), fixed_stream(), 0)
