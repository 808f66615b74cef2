"""Discrete Laplace: formulas against sums, draws against interval arithmetic, ties decided by all their bits."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import ParameterError, StreamError
from discreet.noise import kernels
from discreet.noise.kernels import NOT_DRAWN, PREFIX
from discreet.noise.samplers.discrete import DiscreteLaplace, Magnitude, bucket_of, integer_thresholds, threshold_table
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, Rounding, Uniform, resolve
from support.hypothesis_profile import examples
from support.noise_fakes import fixed_stream, scripted

RATES = st.fractions(Fraction(1, 50), 20, max_denominator=1000)
CAPS = st.one_of(st.none(), st.integers(1, 40))
DISTRIBUTIONS = [
    Magnitude(Fraction(3, 2), None),
    Magnitude(Fraction(2), 7),
    Magnitude(Fraction(1, 64), None),
    Magnitude(Fraction(1, 20), 3000),
    Magnitude(Fraction(7), 1),
    Magnitude(Fraction(14), None, nonzero=True),
    Magnitude(Fraction(1, 5), 9, nonzero=True),
    Magnitude(Fraction(60), 2),
    Magnitude(Fraction(2**30), None),
]


@pytest.fixture(autouse=True, scope="module")
def _precision() -> Iterator[None]:
    with ctx.workprec(256):
        yield


def masses(distribution: DiscreteLaplace) -> list[arb]:
    """P(K = 0), P(K = ±1), … by summing the definition until terms vanish."""
    top = distribution.cap if distribution.cap is not None else int(120 / distribution.rate) + 2
    a = (-arb(distribution.rate.numerator) / distribution.rate.denominator).exp()
    raw = [a**k for k in range(top + 1)]
    total = raw[0] + 2 * sum(raw[1:], arb(0))
    return [2 * r / total if k else r / total for k, r in enumerate(raw)]


@examples(40)
@given(RATES, CAPS)
def test_tail_mean_variance_and_margin_are_the_sums(rate: Fraction, cap: int | None) -> None:
    distribution = DiscreteLaplace(rate, cap)
    mass = masses(distribution)
    for m in (0, 1, 2, 5, len(mass) - 1, len(mass)):
        assert abs(distribution.tail(m) - sum(mass[m:], arb(0))) < 1e-40
    assert distribution.mean_abs() == pytest.approx(float(sum((k * p for k, p in enumerate(mass)), arb(0))), rel=1e-14)
    assert distribution.variance() == pytest.approx(
        float(sum((k * k * p for k, p in enumerate(mass)), arb(0))), rel=1e-13
    )
    for level in (Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)):
        m = distribution.margin(level)
        assert sum(mass[: m + 1], arb(0)) >= float(level) - 1e-12
        assert m == 0 or sum(mass[:m], arb(0)) < float(level) + 1e-12


@examples(30)
@given(RATES, st.integers(1, 12), st.integers(1, 30))
def test_delta_is_the_hockey_stick_divergence(rate: Fraction, cap: int, shift: int) -> None:
    distribution = DiscreteLaplace(rate, cap)
    mass = masses(distribution)
    p = {k: mass[abs(k)] / (2 if k else 1) for k in range(-cap, cap + 1)}
    gain = (arb(shift * rate.numerator) / rate.denominator).exp()
    excess = [p[k] - gain * p.get(k - shift, arb(0)) for k in p]
    stick = sum((e for e in excess if e > 0), arb(0))  # balls around equal masses are not above 0
    assert abs(distribution.delta(shift) - stick) < 1e-40


def test_published_figures_of_the_hypercube() -> None:
    assert float(DiscreteLaplace(Fraction(2), 7).delta()) == pytest.approx(6.33e-7, rel=1e-3)
    assert DiscreteLaplace(Fraction(7), 1).variance() == pytest.approx(0.00182, rel=1e-2)
    for rate, cap in ((Fraction(2), 7), (Fraction(7), 1), (Fraction(1, 2), 30)):
        assert sum(masses(DiscreteLaplace(rate, cap)), arb(0)).contains(1)
    assert DiscreteLaplace(Fraction(1)).delta() == 0


def reference(distribution: Magnitude, word: int, more: Iterator[int]) -> int:
    k = resolve(distribution.at, Uniform(word, more), LARGEST_LIMIT)
    return -k if word >> 63 else k


def telling_words(distribution: Magnitude) -> NDArray[np.uint64]:
    """Random words, and every word near a threshold, a bucket's edge, or the ends."""
    (random,) = fixed_stream("telling").words(0, 1500)
    marks = {0, PREFIX} | {t for t in integer_thresholds(distribution)[:200] if t <= PREFIX}
    marks |= {1 << e for e in range(63)} | {(64 + m) << 40 for m in range(64)} | {((64 + m) << 56) for m in range(64)}
    near = {min(max(t + d, 0), PREFIX) for t in marks for d in (-2, -1, 0, 1, 2)}
    words = np.array(sorted(near), dtype=np.uint64)
    column = np.concatenate([words, words | np.uint64(1 << 63), random[:, 0]])
    return np.stack([column, np.arange(column.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)], axis=1)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_thresholds_logarithm_and_interval_arithmetic_agree_draw_by_draw(distribution: Magnitude) -> None:
    words = telling_words(distribution)
    table = threshold_table(distribution)
    assert table is not None
    by_threshold, by_logarithm = np.empty(len(words), dtype=np.int64), np.empty(len(words), dtype=np.int64)
    kernels.integers(words, table.thresholds, table.bases, by_threshold, False)
    Rounding((distribution,), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=True).draw(words, ONE, by_logarithm)
    ties = set(integer_thresholds(distribution))
    compared = 0
    for i, word in enumerate(words[:, 0].tolist()):
        exact = reference(distribution, word, fixed_stream().extension("cells", i, 0))
        if word & PREFIX not in ties:
            assert by_threshold[i] == exact
        if by_logarithm[i] != NOT_DRAWN:
            compared += 1
            assert by_logarithm[i] == exact
    assert compared > 1500  # random words are decided


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_no_bucket_has_two_thresholds(distribution: Magnitude) -> None:
    distinct = {t for t in integer_thresholds(distribution) if t <= PREFIX}
    assert len({bucket_of(t) for t in distinct}) == len(distinct)


@given(st.integers(0, PREFIX - 1), st.integers(1, 2**62))
def test_buckets_are_ordered(u: int, step: int) -> None:
    assert bucket_of(u) <= bucket_of(min(u + step, PREFIX))


def test_small_rates_use_the_logarithm_and_agree_with_interval_arithmetic() -> None:
    for rate in (Fraction(1, 65), Fraction(1, 1000), Fraction(1, 2**40)):
        distribution = DiscreteLaplace(rate)
        assert threshold_table(distribution.magnitude) is None
        drawn = distribution.draw(fixed_stream(), 100, 300)
        for i in range(300):
            word, second = fixed_stream().block(100 + i)
            assert drawn[i] == reference(distribution.magnitude, word, iter([second, 1, 2, 3]))


@pytest.mark.parametrize("cap", [None, 3])
@pytest.mark.parametrize("rate", [Fraction(3, 2), Fraction(1, 10), Fraction(40), Fraction(50)])
def test_a_tie_is_decided_by_the_next_bits(rate: Fraction, cap: int | None) -> None:
    distribution = DiscreteLaplace(rate, cap)
    thresholds = integer_thresholds(distribution.magnitude)
    for m, t in list(enumerate(thresholds, 1))[:30]:
        if thresholds.count(t) > 1 or t == 0:
            continue
        with ctx.workprec(512):
            second = int((distribution.magnitude.tail(m) * 2**127).floor().unique_fmpz()) & (2**64 - 1)
        for word1, expected in ((0, m), (second - 1, m), (second + 1, m - 1), (2**64 - 1, m - 1)):
            if not 0 <= word1 < 2**64 or (word1 == 0 and second == 0):
                continue
            for sign in (0, 1):
                stream = scripted(lambda i, w=(t | sign << 63, word1): (w[0], w[1] ^ 0) if i == 5 else (i, i))
                drawn = distribution.draw(stream, 5, 1)
                assert drawn[0] == (-expected if sign else expected)
                counts = np.array([1000], dtype=np.int64)
                distribution.add_to(counts, stream, 5)
                assert counts[0] == 1000 + drawn[0]


def test_a_tie_of_127_bits_reads_the_extension_until_it_is_exhausted() -> None:
    distribution = DiscreteLaplace(Fraction(3, 2))
    digits = 127 + 128 * 64
    with ctx.workprec(digits + 64):
        exact = int((distribution.magnitude.tail(1) * arb(2) ** digits).floor().unique_fmpz())
    blocks = [exact >> (128 * (63 - i)) & (2**128 - 1) for i in range(64)]
    first = exact >> (128 * 64)

    def cells(i: int) -> tuple[int, int]:
        return first >> 64, first & (2**64 - 1)

    def extension(change: int, by: int):  # type: ignore[no-untyped-def]
        def block(counter: int) -> tuple[int, int]:
            assert counter >> 32 == 9 << 32  # cell 9, part 0
            index = counter & (2**32 - 1)
            value = blocks[index] + (by if index == change else 0)
            return value >> 64, value & (2**64 - 1)

        return block

    assert distribution.draw(scripted(cells, extension(3, -1)), 9, 1)[0] == 1
    assert distribution.draw(scripted(cells, extension(3, 1)), 9, 1)[0] == 0
    with pytest.raises(StreamError, match="undecided"):
        distribution.draw(scripted(cells, extension(64, 0)), 9, 1)


def test_huge_rates_draw_zero_but_for_the_exact_tail() -> None:
    distribution = DiscreteLaplace(Fraction(60))
    assert not distribution.draw(fixed_stream(), 0, 1000).any()
    assert integer_thresholds(distribution.magnitude) == [0]
    assert distribution.draw(scripted(lambda i: (0, 0)), 0, 1)[0] >= 1
    assert distribution.draw(scripted(lambda i: (0, 2**63)), 0, 1)[0] == 0
    assert not DiscreteLaplace(Fraction(2**40)).draw(fixed_stream(), 0, 100).any()


@pytest.mark.parametrize(
    "distribution",
    [DiscreteLaplace(Fraction(3, 2)), DiscreteLaplace(Fraction(1, 300)), DiscreteLaplace(Fraction(1), 2)],
    ids=str,
)
@examples(25)
@given(st.integers(0, 2**62), st.lists(st.integers(0, 40_000), min_size=1, max_size=5))
def test_noise_does_not_depend_on_the_split(distribution: DiscreteLaplace, first: int, sizes: list[int]) -> None:
    whole = distribution.draw(fixed_stream(), first, sum(sizes))
    ends = np.cumsum([0, *sizes])
    parts = [distribution.draw(fixed_stream(), first + int(a), int(b - a)) for a, b in pairwise(ends)]
    assert (np.concatenate(parts) == whole).all()
    counts = np.arange(whole.size, dtype=np.int64)
    distribution.add_to(counts, fixed_stream(), first)
    assert (counts == np.arange(whole.size) + whole).all()


@pytest.mark.parametrize(
    "rate", [1.5, "1.5", None, True, Fraction(0), Fraction(-1), Fraction(1, 2**41), Fraction(2**41)]
)
def test_inexact_or_unusable_rates_are_refused(rate: object) -> None:
    with pytest.raises(ParameterError):
        DiscreteLaplace(rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("cap", [0, -1, 1.0, True, 2**60])
def test_odd_caps_are_refused(cap: object) -> None:
    with pytest.raises(ParameterError):
        DiscreteLaplace(Fraction(1), cap)  # type: ignore[arg-type]


def test_counts_that_could_overflow_are_refused_unchanged() -> None:
    distribution = DiscreteLaplace(Fraction(1))
    for counts in (
        np.array([2**62]),
        np.array([-(2**62) - 1]),
        np.array([-(2**63)]),
        np.arange(4)[::2],
        np.array([1.0]),
    ):
        before = counts.copy()
        with pytest.raises(ParameterError):
            distribution.add_to(counts, fixed_stream(), 0)
        assert (counts == before).all()
    for level in (Fraction(0), Fraction(1), 0.9):
        with pytest.raises(ParameterError):
            distribution.margin(level)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        distribution.delta(0)
