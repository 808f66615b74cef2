"""Exactly rounded distributions: bounds of rows, and draws, against interval arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, conservative_floor, exact_floor, rounded_up
from discreet.noise.kernels import LOW_BITS, NOT_DRAWN, PREFIX, ROUNDED_BUCKETS, ROUNDED_ORIGIN
from discreet.noise.samplers.discrete import Magnitude
from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.samplers.laplace import Laplace, LaplaceQuantile
from discreet.noise.samplers.laplace_pareto import LaplacePareto, LaplaceParetoQuantile
from discreet.noise.samplers.log_laplace import LogLaplace, PowerOfUniform
from discreet.noise.samplers.normal import Normal, NormalQuantile
from discreet.noise.samplers.power import Power, PowerQuantile
from discreet.noise.samplers.rounded import ONE, QuantileFunction, bucket_ends, rows_of
from discreet.noise.samplers.sparse import GapQuantile
from support.hypothesis_profile import examples
from support.noise_fakes import fixed_stream, scripted

F = Fraction
QUANTILES: list[QuantileFunction] = [
    LaplaceQuantile(),
    NormalQuantile(),
    PowerQuantile(F(4)),
    PowerQuantile(F(5, 2)),
    LaplaceParetoQuantile(F(5)),
    LaplaceParetoQuantile(F(21, 10)),
    PowerOfUniform(F(-1, 21)),
    PowerOfUniform(F(9, 10)),
    Magnitude(F(1, 1000), None),
    Magnitude(F(1, 10), 30),
    GapQuantile(Magnitude(F(14), None)),
]
UNIT = (F(1), F(1, 1000), F(10**6))
NOISES: list[GridNoise] = [
    Laplace(*UNIT),
    Normal(*UNIT),
    Power(*UNIT, F(4)),
    Power(*UNIT, F(5, 2)),
    LaplacePareto(*UNIT, F(5)),
    LaplacePareto(*UNIT, F(21, 10)),
]


def horner(row: NDArray[np.float64], t: float) -> float:
    """The kernel's polynomial in the kernel's order."""
    p = np.float64(row[6])
    for c in row[5::-1]:
        p = p * t + c
    return float(p)


def row_and_t(u: int) -> tuple[int, float]:
    bits = int((np.float64(np.int64(u)) + 0.5).view(np.uint64))
    low = bits & ((1 << LOW_BITS) - 1)
    return max((bits >> LOW_BITS) - ROUNDED_ORIGIN, 0), low * 2.0 ** -(LOW_BITS - 1) - 1.0


def prefixes() -> list[int]:
    """Random prefixes of all sizes, and the first and last of many buckets."""
    rng = np.random.default_rng(7)
    scattered = [int(rng.integers(2**62, 2**63)) >> int(rng.integers(0, 32)) for _ in range(250)]
    rows = [*rng.integers(1, ROUNDED_BUCKETS - 1, 120).tolist(), 1, 2, ROUNDED_BUCKETS - 2, ROUNDED_BUCKETS - 3]
    edges = [int(end * 2**63) + d for row in rows for end in bucket_ends(row) for d in (-1025, -513, -1, 0, 1, 512)]
    return [u for u in scattered + edges if 2**31 <= u <= PREFIX]


@pytest.mark.parametrize("distribution", QUANTILES, ids=str)
def test_every_bound_holds_at_both_ends_of_the_prefix(distribution: QuantileFunction) -> None:
    rows = rows_of((distribution,))
    assert np.isinf(rows[[0, -1], 7]).all()
    assert np.isfinite(rows[1:-1, 7]).all()
    for u in prefixes():
        row, t = row_and_t(u)
        if not np.isfinite(rows[row, 7]):
            continue
        with ctx.workprec(200):
            for end in (u, u + 1):
                error = abs(distribution.at(arb((end, -63))) - arb(horner(rows[row], t)))
                assert error <= rows[row, 7], (u, row, t)


@pytest.mark.parametrize("distribution", QUANTILES, ids=str)
def test_bounds_are_tight_enough_to_be_fast(distribution: QuantileFunction) -> None:
    """The probability that a draw needs interval arithmetic, with a scale of 1,000 grid units: below 10⁻⁵."""
    rows = rows_of((distribution,))
    width = np.array([float(b - a) for a, b in (bucket_ends(r) for r in range(1, ROUNDED_BUCKETS - 1))])
    size = np.median(np.abs(rows[1:-1, 0]))
    assert (width * np.minimum(rows[1:-1, 7] / size * 1000, 1)).sum() < 1e-5


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_draws_equal_the_interval_arithmetic_reference(noise: GridNoise) -> None:
    first, n = 10**6, 400
    multiples = np.arange(1, n + 1, dtype=np.int64) * 37
    drawn = noise.draw(fixed_stream(), first, n)
    scaled = noise.draw(fixed_stream(), first, n, multiples)
    for i in range(n):
        word, second = fixed_stream().block(first + i)
        assert drawn[i] == noise.rounding.resolve(word, iter([second, 0, 0]), 1)
        assert scaled[i] == noise.rounding.resolve(word, iter([second, 0, 0]), int(multiples[i]))


def test_log_laplace_draws_equal_the_interval_arithmetic_reference() -> None:
    distribution, factor = LogLaplace(F(1, 21), F(10, 3), F(1, 100), F(10**9)), F(440, 441)
    counts = np.arange(300, dtype=np.int64) ** 3
    drawn = distribution.draw(counts, fixed_stream(), 5)
    multiplied = replace(distribution, factor=factor).draw(counts, fixed_stream(), 5)
    for i, n in enumerate(counts.tolist()):
        word, second = fixed_stream().block(5 + i)
        assert drawn[i] == distribution.rounding.resolve(word, iter([second]), 3 * n + 10)
        with ctx.workprec(300):  # the definition, independent of multiples and tables
            u = arb((word & PREFIX, -63))
            noisy = ball(n + F(10, 3)) * (u.log() * ball(F(-1 if word >> 63 == 0 else 1, 21))).exp()
            for k, f in ((drawn[i], F(1)), (multiplied[i], factor)):
                value = (noisy * ball(f) - ball(F(10, 3))) * 100
                assert k == int((value + 0.5).floor().unique_fmpz())


@pytest.mark.parametrize("noise", [*NOISES, LogLaplace(F(1, 2), F(10), F(1, 1000), F(10**6))], ids=str)
def test_near_ties_are_left_to_interval_arithmetic(noise: GridNoise | LogLaplace) -> None:
    """Words whose ideal value is within 2^-50 of a half grid step: the compiled path must leave them undecided."""
    rounding = noise.rounding
    scale = float(rounding.scale)
    open_draws = wrong = 0
    for step in (3, 17, 500, 1500):
        u = _prefix_at(rounding.value(0, 1), step + int(scale) * isinstance(noise, LogLaplace))
        if not 2**33 < u <= PREFIX:
            continue
        words = np.array([[u + d, 0] for d in range(-2, 3)], dtype=np.uint64)
        out = np.empty(5, dtype=np.int64)
        rounding.draw(words, ONE, out)
        for word, k in zip(words[:, 0].tolist(), out.tolist(), strict=True):
            open_draws += k == NOT_DRAWN
            wrong += k not in (NOT_DRAWN, rounding.resolve(word, iter([0] * 9), 1))
    assert open_draws > 0
    assert wrong == 0


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_tie_is_decided_by_the_next_bits(noise: GridNoise) -> None:
    """The 63-bit prefix within which the value passes from 700 to 699: word 1 decides."""
    u = _prefix_at(noise.rounding.value(0, 1), 700)
    for sign in (0, 1):
        for word1, k in ((0, 700), (2**64 - 1, 699)):
            stream = scripted(lambda i, w=(u | sign << 63, word1): w)
            assert noise.draw(stream, 0, 1)[0] == (-k if sign else k)


def test_rounding_of_large_products_is_in_the_bound() -> None:
    """Values near 2⁴⁵ have a last place of 2⁻⁷: most draws are decided, none wrongly."""
    distribution = LogLaplace(F(1, 1000), F(1, 3), F(1, 7), F(2**49))
    counts = np.int64(2**42) + np.arange(3000, dtype=np.int64) * 12345678901 % 2**42
    words = next(fixed_stream("large").words(0, counts.size)).copy()
    out = np.empty(counts.size, dtype=np.int64)
    distribution.rounding.draw(words, counts * 3 + 1, out)
    decided = np.flatnonzero(out != NOT_DRAWN)
    assert decided.size > 2000
    for i in decided.tolist():
        assert out[i] == distribution.rounding.resolve(int(words[i, 0]), iter([0] * 9), 3 * int(counts[i]) + 1)


def _prefix_at(value, target: int) -> int:  # type: ignore[no-untyped-def]
    """The 63-bit prefix just below the U at which a falling value passes the target, by bisection."""
    low, high = 0, 2**63
    with ctx.workprec(256):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if value(arb((middle, -63))) > target else (low, middle)
    return low


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[4], Power(F(1), F(1), F(1000), F(2))], ids=str)
@examples(15)
@given(st.integers(0, 2**62), st.lists(st.integers(0, 40_000), min_size=1, max_size=4))
def test_noise_does_not_depend_on_the_split(noise: GridNoise, first: int, sizes: list[int]) -> None:
    whole = noise.draw(fixed_stream(), first, sum(sizes))
    parts = [noise.draw(fixed_stream(), first + int(a), int(b - a)) for a, b in pairwise(np.cumsum([0, *sizes]))]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_extreme_prefixes_saturate_or_vanish(noise: GridNoise) -> None:
    limit = int(noise.bound / noise.grid)
    tail = noise.draw(scripted(lambda i: (0, i)), 0, 3)
    assert (tail > 1000).all()
    assert (tail <= limit).all()
    assert (noise.draw(scripted(lambda i: (1 << 63, i)), 0, 3) == -tail).all()
    assert not noise.draw(scripted(lambda i: (PREFIX, i)), 0, 3).any()
    small = type(noise)(*(F(1), F(1, 1000), F(2), *[getattr(noise, n) for n in ("gamma", "g") if hasattr(noise, n)]))
    assert abs(small.draw(fixed_stream(), 0, 5000)).max() == 2000


def tail_of(noise: GridNoise, z: float) -> float:
    """P(|Z| > z) by other means: scipy's special functions, or quadrature of the density."""
    match noise:
        case Laplace():
            return float(np.exp(-z))
        case Normal():
            return float(special.erfc(z / np.sqrt(2)))
        case Power():
            b = 1 / float(noise.gamma)
            return float(special.betainc(1 - b, b, 1 / (1 + z ** float(noise.gamma))))
        case LaplacePareto():
            g = float(noise.g)
            body = integrate.quad(lambda x: np.exp(-x), min(z, g), g)[0]
            return float((body + np.exp(-g) * g / (g - 1) * (g / max(z, g)) ** (g - 1)) / (1 + np.exp(-g) / (g - 1)))
    raise AssertionError(noise)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_margins_cover_and_are_smallest(noise: GridNoise) -> None:
    for level in (F(1, 2), F(9, 10), F(99, 100)):
        m = noise.margin(level)
        assert 1 - tail_of(noise, (m + 0.5) / 1000) >= float(level) - 1e-9
        assert 1 - tail_of(noise, (m - 0.5) / 1000) < float(level) + 1e-9
        assert noise.margin(level, multiple=7) == pytest.approx(7 * m, abs=7)


def test_densities_are_as_documented() -> None:
    """The quantiles invert the tails: the power density's normaliser, Laplace–Pareto's N, E|Z| = .7071 for γ = 4."""
    gamma = PowerQuantile(F(4))
    assert float(gamma.norm()) == pytest.approx(integrate.quad(lambda z: 1 / (1 + z**4), 0, np.inf)[0])
    mean = integrate.quad(lambda z: z / (1 + z**4), 0, np.inf)[0] / float(gamma.norm())
    assert mean == pytest.approx(0.7071, abs=1e-4)
    joint = LaplaceParetoQuantile(F(5))
    for u in (0.9, 0.01, 0.001):
        assert tail_of(LaplacePareto(*UNIT, F(5)), float(joint.at(arb(u)))) == pytest.approx(u)


def test_log_laplace_bias_is_as_documented() -> None:
    distribution = LogLaplace(F(1, 4), F(10), F(1, 10**4), F(10**9))
    drawn = distribution.draw(np.full(400_000, 90, dtype=np.int64), fixed_stream(), 0) / 10**4
    assert drawn.mean() == pytest.approx(100 / (1 - 1 / 16) - 10, abs=0.2)
    assert (15 / 16 * (drawn + 10) - 10).mean() == pytest.approx(90, abs=0.2)
    low, high = distribution.margin_factors(F(9, 10))
    inside = (drawn + 10 >= 100 * float(low)) & (drawn + 10 <= 100 * float(high))
    assert inside.mean() == pytest.approx(0.9, abs=0.005)
    unbiased = replace(distribution, factor=F(15, 16))
    assert [float(a) for a in unbiased.margin_factors(F(9, 10))] == pytest.approx(
        [float(low * 15 / 16), float(high * 15 / 16)]
    )


def test_parameters_are_exact_and_in_range() -> None:
    for bad in (
        lambda: Laplace(1.0, F(1), F(10)),  # type: ignore[arg-type]
        lambda: Laplace(F(1), F(0), F(10)),
        lambda: Laplace(F(1), F(1), F(1, 2)),
        lambda: Laplace(F(1), F(1), F(2**53)),
        lambda: Laplace(F(2**101), F(1), F(10)),
        lambda: LogLaplace(F(1, 2), F(2**101), F(1), F(10)),
        lambda: Power(F(1), F(1), F(10), F(1)),
        lambda: LaplacePareto(F(1), F(1), F(10), F(2)),
        lambda: LogLaplace(F(1), F(10), F(1), F(10)),
        lambda: LogLaplace(F(1, 2), 0.1, F(1), F(10)),  # type: ignore[arg-type]
        lambda: NOISES[0].draw(fixed_stream(), 0, 2, np.array([1, 0])),
        lambda: NOISES[0].draw(fixed_stream(), 0, 2, np.array([1])),
        lambda: NOISES[0].draw(fixed_stream(), 0, 1, np.array([1.0])),
        lambda: NOISES[0].margin(F(1)),
        lambda: LogLaplace(F(1, 2), F(10), F(1), F(10)).draw(np.array([-1]), fixed_stream(), 0),
        lambda: LogLaplace(F(1, 2), F(10), F(1), F(10)).draw(np.array([2**62]), fixed_stream(), 0),
        lambda: exact_floor(lambda: arb(2).sqrt() ** 2),
    ):
        with pytest.raises(ParameterError):
            bad()


def test_rounding_helpers() -> None:
    assert exact_floor(lambda: arb.pi() * 10**40) == 31415926535897932384626433832795028841971
    assert conservative_floor(lambda: arb(2).sqrt() ** 2) == 2
    up = rounded_up(lambda: arb(2).log())
    assert abs(float(up) - np.log(2)) < 1e-15
    with ctx.workprec(200):
        assert ball(up) > arb(2).log()
