"""Statistical tests accept each sampler, and reject neighbouring distributions and deliberately wrong samplers."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.samplers.laplace_pareto import LaplacePareto
from discreet.noise.samplers.log_laplace import LogLaplace
from discreet.noise.samplers.normal import Normal
from discreet.noise.samplers.power import Power
from support.goodness_of_fit import ACCEPT, REJECT, low_bits, shape

F = Fraction
N = 200_000
Sample = NDArray[np.int64]
Real = NDArray[np.float64]
STREAM = ReleaseKey.simulation("discreet statistical tests").stream("release", "table", b"", "stat")
SIGMA = 40  # grid units to the scale


def discrete_tail(rate: float, cap: float = np.inf) -> Callable[[Real], Real]:
    """P(K ≥ m) by the printed formula, in floats."""
    a, c = np.exp(-rate), np.exp(-rate * (cap + 1))

    def positive(m: Real) -> Real:
        return np.where(m > cap, 0.0, (np.exp(-rate * np.minimum(m, cap + 1)) - c) / (1 + a - 2 * c))

    return lambda m: np.where(m > 0, positive(np.maximum(m, 1)), 1 - positive(np.maximum(1 - m, 1)))


def grid_tail(tail: Callable[[Real], Real], sigma: float) -> Callable[[Real], Real]:
    """P(k ≥ m) of a symmetric distribution rounded to the grid: for m > 0 half of P(|Z| > (m − ½)/σ)."""

    def positive(m: Real) -> Real:
        return tail((m - 0.5) / sigma) / 2

    return lambda m: np.where(m > 0, positive(np.maximum(m, 1)), 1 - positive(np.maximum(1 - m, 1)))


def power_tail(gamma: float) -> Callable[[Real], Real]:
    return lambda z: special.betainc(1 - 1 / gamma, 1 / gamma, 1 / (1 + z**gamma))


def laplace_pareto_tail(g: float) -> Callable[[Real], Real]:
    r = np.exp(-g) / (g - 1)
    return lambda z: np.where(z < g, np.exp(-z) + r, r * g * (g / np.maximum(z, g)) ** (g - 1)) / (1 + r)


def log_laplace_tail(exponent: float, centre: float, shift: float) -> Callable[[Real], Real]:
    """P(k ≥ m) = P(ln((m − ½ + shift)/(n + shift)) ≤ λZ)."""

    def upper(m: Real) -> Real:
        z = np.log(np.maximum(m - 0.5 + shift, 1e-300) / (centre + shift)) / exponent
        return np.where(z > 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)

    return upper


@dataclass(frozen=True)
class Case:
    name: str
    sample: Callable[[], Sample]
    distribution: Callable[
        [float], Callable[[Real], Real]
    ]  # the claimed tail when the scale is a multiple of the right one


def grid_case(name: str, noise: Laplace, tail: Callable[[Real], Real]) -> Case:
    return Case(name, lambda: noise.draw(STREAM, 0, N), lambda factor: grid_tail(tail, SIGMA * factor))


def sparse_to_dense() -> Sample:
    out = np.zeros(N, dtype=np.int64)
    cells, values = DiscreteLaplace(F(3, 2)).sparse(STREAM, 12345, N)
    out[cells - 12345] = values
    return out


def log_laplace_sample() -> Sample:
    distribution = LogLaplace(F(1, 5), F(10), F(1), F(10**6))
    return distribution.draw(np.full(N, 500, dtype=np.int64), STREAM, 0)


UNIT = (F(SIGMA, 10), F(1, 10), F(10**9))
CASES = [
    Case("discrete", lambda: DiscreteLaplace(F(3, 2)).draw(STREAM, 0, N), lambda f: discrete_tail(1.5 / f)),
    Case("capped", lambda: DiscreteLaplace(F(1, 2), 6).draw(STREAM, 0, N), lambda f: discrete_tail(0.5 / f, 6)),
    Case("small rate", lambda: DiscreteLaplace(F(1, 100)).draw(STREAM, 0, N), lambda f: discrete_tail(0.01 / f)),
    Case("sparse", sparse_to_dense, lambda f: discrete_tail(1.5 / f)),
    grid_case("laplace", Laplace(*UNIT), lambda z: np.exp(-z)),
    grid_case("normal", Normal(*UNIT), lambda z: special.erfc(z / np.sqrt(2))),  # type: ignore[arg-type]
    grid_case("power 4", Power(*UNIT, F(4)), power_tail(4)),  # type: ignore[arg-type]
    grid_case("power 5/2", Power(*UNIT, F(5, 2)), power_tail(2.5)),  # type: ignore[arg-type]
    grid_case("laplace–pareto", LaplacePareto(*UNIT, F(7, 2)), laplace_pareto_tail(3.5)),  # type: ignore[arg-type]
    Case("log-laplace", log_laplace_sample, lambda f: log_laplace_tail(f / 5, 500, 10)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_accepts_the_distribution_and_rejects_its_neighbours(case: Case) -> None:
    sample = case.sample()
    assert shape(sample, case.distribution(1.0)) > ACCEPT
    assert shape(sample, case.distribution(0.7)) < REJECT
    assert shape(sample, case.distribution(1.3)) < REJECT
    shift = max(1, round(float(np.median(np.abs(sample - np.median(sample))) / 4)))
    assert shape(sample + shift, case.distribution(1.0)) < REJECT


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_tester_rejects_an_off_by_one_sampler(case: Case) -> None:
    """Non-zero magnitudes too large by one: scaled up to be detectable for wide distributions."""
    sample = case.sample()
    centre = np.int64(np.median(sample))
    one = max(1, round(float(np.median(np.abs(sample - centre))) / 6))
    wrong = sample + one * np.sign(sample - centre)
    assert shape(wrong, case.distribution(1.0)) < REJECT


def uniforms(n: int) -> Real:
    (*pieces,) = (piece[:, 0].copy() for piece in STREAM.words(10**9, n))
    return (np.concatenate(pieces) >> np.uint64(1)) * 2.0**-63


def float32_laplace(n: int, sigma: float) -> Sample:
    """A deliberately wrong sampler: inversion in single precision."""
    u = uniforms(n).astype(np.float32)
    sign = np.where(np.arange(n) % 2 == 0, 1, -1)
    return (np.float32(sigma) * -np.log(np.maximum(u, np.float32(2**-24)))).astype(np.int64) * sign


WIDE = 2**30


@pytest.mark.parametrize(
    "sample",
    [
        lambda: DiscreteLaplace(F(1, WIDE)).draw(STREAM, 0, N),
        lambda: Laplace(F(WIDE), F(1), F(2**45)).draw(STREAM, 0, N),
        lambda: Normal(F(WIDE), F(1), F(2**45)).draw(STREAM, 0, N),
        lambda: LaplacePareto(F(WIDE), F(1), F(2**45), F(5)).draw(STREAM, 0, N),
    ],
    ids=["discrete", "laplace", "normal", "laplace–pareto"],
)
def test_wide_noise_has_uniform_low_bits(sample: Callable[[], Sample]) -> None:
    assert low_bits(sample()) > ACCEPT


def test_the_tester_sees_the_lattice_of_single_precision() -> None:
    assert low_bits(float32_laplace(N, WIDE)) < REJECT


def test_the_tester_accepts_what_numpy_draws() -> None:
    """Against an independent sampler."""
    rng = np.random.default_rng(20260101)
    p = 1 - np.exp(-1.5)
    assert shape(rng.geometric(p, N) - rng.geometric(p, N), discrete_tail(1.5)) > ACCEPT
    rounded = np.rint(rng.laplace(scale=SIGMA, size=N)).astype(np.int64)
    assert shape(rounded, grid_tail(lambda z: np.exp(-z), SIGMA)) > ACCEPT


def test_signs_neighbours_and_streams_are_uncorrelated() -> None:
    distribution = DiscreteLaplace(F(1, 2))
    here, there = distribution.draw(STREAM, 0, N), distribution.draw(STREAM, 10**12, N)
    bound = 5 / np.sqrt(N)
    assert abs(np.corrcoef(here[1:], here[:-1])[0, 1]) < bound
    assert abs(np.corrcoef(here, there)[0, 1]) < bound
    assert abs(np.mean(np.sign(here))) < bound
    assert np.var(here) == pytest.approx(distribution.variance(), rel=0.03)
    assert np.mean(np.abs(here)) == pytest.approx(distribution.mean_abs(), rel=0.02)


def test_coverage_of_margins_is_nominal() -> None:
    for noise in (DiscreteLaplace(F(1, 20)), Laplace(*UNIT), LaplacePareto(*UNIT, F(5)), Power(*UNIT, F(4))):
        drawn = np.abs(noise.draw(STREAM, 0, N))
        for level in (F(1, 2), F(9, 10), F(99, 100)):
            m = noise.margin(level)
            error = 6 * np.sqrt(0.25 / N)
            assert np.mean(drawn <= m) > float(level) - error
            assert np.mean(drawn <= m - 1) < float(level) + error
