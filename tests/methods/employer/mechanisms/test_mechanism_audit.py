"""The loss on integer neighbours never exceeds ε, and comes near it; broken mechanisms are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log

import numpy as np
import pytest
from flint import arb

from discreet.methods.employer.mechanisms import LARGEST, Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.exact_audit import (
    Cell,
    hockey_stick,
    losses,
    mass,
    together,
)
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from support.mechanism_floats import LogMass, between, distribution, float_losses, neighbours

F = Fraction
SLACK = 1e-9
TENTH, FIFTH, TWO = F(1, 10), F(1, 5), F(2)
MILLIONTH = F(1, 10**6)
SOME: list[Mechanism] = [
    LaplacePareto(TENTH, TWO),
    LaplacePareto(F(3, 20), F(1)),
    LaplacePareto(F(1, 100), F(1, 2)),
    LaplacePareto(F(1), F(4), g=F(5)),
    LaplacePareto(TENTH, F(8)),
    LaplacePareto(TENTH, LaplacePareto.least_epsilon(TENTH)),
    SmoothGamma(TENTH, TWO),
    SmoothGamma(FIFTH, TWO),
    SmoothGamma(F(1), F(2), gamma=F(5, 2)),
    SmoothGamma(TENTH, TWO, gamma=None),
    SmoothGamma(TENTH, SmoothGamma.least_epsilon(TENTH)),
    SmoothGamma(TENTH, TWO, "separate"),
    SmoothGamma(F(1, 100), SmoothGamma.least_epsilon(F(1, 100), constants="separate"), "separate"),
    SmoothGamma(TENTH, TWO, "printed"),
    SmoothGamma(FIFTH, SmoothGamma.least_epsilon(FIFTH, constants="printed"), "printed"),
    LogLaplace(TENTH, TWO),
    LogLaplace(F(3, 20), F(1), unbiased=False),
    LogLaplace(F(1), LogLaplace.least_epsilon(F(1))),
    LogLaplace(TENTH, TWO, "printed", unbiased=False),
]
DISCRETE: list[Mechanism] = [Geometric(TWO), Truncated(TWO, 20), Truncated(F(1, 2), 20, "printed")]


def name(mechanism: Mechanism) -> str:
    return f"{mechanism!r}".replace("Fraction", "")


def alpha_of(mechanism: Mechanism) -> Fraction:
    return mechanism.alpha if hasattr(mechanism, "alpha") else TENTH


@pytest.mark.parametrize("mechanism", SOME, ids=name)
def test_no_neighbours_lose_more_than_epsilon(mechanism: Mechanism) -> None:
    worst = max(float_losses(mechanism, *pair).worst for pair in neighbours(alpha_of(mechanism)))
    assert worst <= float(mechanism.epsilon) + SLACK
    tight = mechanism.name == "laplace-pareto" or getattr(mechanism, "constants", "") == "joint"
    if tight or getattr(mechanism, "scale", "") == "tight":
        assert worst >= 0.95 * float(mechanism.epsilon)


@pytest.mark.parametrize("mechanism", DISCRETE, ids=name)
def test_no_job_and_no_small_establishment_loses_more_than_epsilon(mechanism: Mechanism) -> None:
    jobs = [1] if mechanism.protects == "job" else [1, 7, 19]
    actual = [losses(mechanism, (n, 0), (n + j, 0)).worst for n in (0, 500) for j in jobs]
    assert max(actual) <= float(mechanism.epsilon) + SLACK
    assert max(actual) >= 0.94 * float(mechanism.epsilon)


@pytest.mark.parametrize("mechanism", [SOME[0], SOME[8], SOME[9], SOME[13], SOME[15], SOME[18], *DISCRETE], ids=name)
def test_floats_and_intervals_agree(mechanism: Mechanism) -> None:
    for one, other in [p for p in neighbours(alpha_of(mechanism)) if p[0][0] in (0, 10, 5100)][::4]:
        exact, floats = losses(mechanism, one, other), float_losses(mechanism, one, other)
        assert floats.forth == pytest.approx(exact.forth, abs=1e-10)
        assert floats.back == pytest.approx(exact.back, abs=1e-10)
        for k in (one[0], one[0] + 1, one[0] - 3, 200):
            if (p := mass(mechanism, one, k)) > 0:
                assert float(distribution(mechanism, one)(np.array([k]))[0]) == pytest.approx(float(p.log()), abs=1e-10)


@pytest.mark.parametrize("mechanism", SOME[::2] + SOME[17:18], ids=name)
def test_the_search_misses_nothing(mechanism: Mechanism) -> None:
    """Every integer within 20,000 of cells up to 1,000, against the search."""
    everything = np.arange(-20_000, 21_000)
    for one, other in neighbours(alpha_of(mechanism)):
        if one[0] not in (5, 20, 198, 1000):
            continue
        with np.errstate(invalid="ignore"):
            ratio = distribution(mechanism, one)(everything) - distribution(mechanism, other)(everything)
        actual = float_losses(mechanism, one, other)
        assert np.nanmax(ratio) <= actual.forth + 1e-11
        assert np.nanmax(-ratio) <= actual.back + 1e-11


# --- δ ----------------------------------------------------------------------------------------------------------------

SOME_DELTAS = [
    SmoothLaplace(TENTH, TWO, MILLIONTH),
    SmoothLaplace(FIFTH, F(1), F(1, 200)),
    SmoothLaplace(F(1), F(4), F(1, 100)),
    SmoothLaplace(TENTH, F(3), MILLIONTH, "printed"),
    SmoothLaplace(F(1, 100), SmoothLaplace.least_epsilon(F(1, 100), F(1, 2000)), F(1, 2000)),
]


def summed_delta(one: LogMass, other: LogMass, epsilon: float, reach: int) -> float:
    ks = np.arange(-reach, reach + 1)
    first, second = one(ks), other(ks)
    with np.errstate(over="ignore"):
        return max(
            float(
                np.exp(first)[first - second > epsilon].sum() - np.exp(epsilon + second)[first - second > epsilon].sum()
            ),
            float(
                np.exp(second)[second - first > epsilon].sum() - np.exp(epsilon + first)[second - first > epsilon].sum()
            ),
        )


@pytest.mark.parametrize("mechanism", SOME_DELTAS, ids=name)
def test_no_neighbours_lose_more_than_delta(mechanism: SmoothLaplace) -> None:
    worst = 0.0
    for one, other in neighbours(mechanism.alpha):
        reach = min(int(one[0] + other[0] + 60 * mechanism.constant * max(mechanism.alpha * other[1], F(1))), 200_000)
        distributions = distribution(mechanism, one), distribution(mechanism, other)
        worst = max(worst, summed_delta(*distributions, float(mechanism.epsilon), reach))
    assert worst <= float(mechanism.delta) * (1 + 1e-9)
    if mechanism.constants == "exact" and mechanism is not SOME_DELTAS[-1]:
        assert worst >= 0.95 * float(mechanism.delta)


def test_the_hockey_stick_divergence_is_the_sum() -> None:
    mechanism = SOME_DELTAS[0]
    for one, other in (((100, 100), (110, 110)), ((5020, 20), (5022, 22))):
        summed = summed_delta(distribution(mechanism, one), distribution(mechanism, other), 2.0, 20_000)
        assert hockey_stick(mechanism, one, other, TWO) == pytest.approx(summed, rel=1e-6, abs=1e-15)
        assert summed_delta(distribution(mechanism, one), distribution(mechanism, other), 1.0, 20_000) == pytest.approx(
            hockey_stick(mechanism, one, other, F(1)), rel=1e-6
        )
    assert hockey_stick(LaplacePareto(TENTH, TWO), (100, 100), (110, 110), TWO) == 0


# --- several cells of one establishment -------------------------------------------------------------------------------


def workers(d: int) -> tuple[list[Cell], list[Cell]]:
    """Haney et al. 2017, Theorem 7.5: 100 workers in d cells grow to 110, all ten in a cell of one; S from the total
    size."""
    before = [1, 100 - (d - 1), *[1] * (d - 2)]
    after = [before[0] + 10, *before[1:]]
    return [(n, 100) for n in before], [(n, 110) for n in after]


def joint(mechanism: Mechanism, ones: list[Cell], others: list[Cell]) -> float:
    return together(float_losses(mechanism, one, other) for one, other in zip(ones, others, strict=True))


@pytest.mark.parametrize("d", [2, 8])
def test_a_vector_of_worker_cells_loses_at_most_epsilon(d: int) -> None:
    for mechanism in (
        LaplacePareto(TENTH, TWO, cells=d),
        LaplacePareto(TENTH, LaplacePareto.least_epsilon(TENTH, cells=d), cells=d),
        SmoothGamma(TENTH, F(3), cells=d),
        SmoothGamma(TENTH, F(3), "separate", cells=d),
        SmoothGamma(TENTH, F(3), gamma=None, cells=d),
    ):
        actual = joint(mechanism, *workers(d))
        assert actual <= float(mechanism.epsilon) + SLACK
        if isinstance(mechanism, LaplacePareto):
            assert actual >= 0.95 * float(mechanism.epsilon)
    pair = LaplacePareto(TENTH, TWO, cells=2)
    exact = together(losses(pair, one, other) for one, other in zip(*workers(2), strict=True))
    assert exact == pytest.approx(joint(pair, *workers(2)), abs=1e-10)


def test_a_forgotten_dilation_in_other_cells_is_caught() -> None:
    """Noise for one cell used in eight: 2 + 7(g−1)ln 1.1 = 4.04 for g = 65/16 (4.05 for the best real g)."""
    mechanism = LaplacePareto(TENTH, TWO)
    assert joint(mechanism, *workers(8)) == pytest.approx(2 + 7 * (65 / 16 - 1) * log(1.1), abs=1e-3)
    assert joint(mechanism, *workers(8)) == pytest.approx(4.05, abs=0.01)
    assert joint(mechanism, *workers(2)) > 2.2


# --- broken ones ------------------------------------------------------------------------------------------------------

Broken = Callable[[LaplacePareto, Cell, Cell], tuple[LogMass, LogMass]]


def floored(m: LaplacePareto, one: Cell, other: Cell) -> tuple[LogMass, LogMass]:
    return tuple(distribution(m, cell, s=max(int(m.alpha * cell[1]), 1)) for cell in (one, other))  # type: ignore[return-value]


def halved(m: LaplacePareto, one: Cell, other: Cell) -> tuple[LogMass, LogMass]:
    return distribution(m, one, c=float(m.constant) / 2), distribution(m, other, c=float(m.constant) / 2)


def undilated(m: LaplacePareto, one: Cell, other: Cell) -> tuple[LogMass, LogMass]:
    """c = 1/ε, as if S did not change."""
    return distribution(m, one, c=1 / float(m.epsilon)), distribution(m, other, c=1 / float(m.epsilon))


def of_the_neighbour(m: LaplacePareto, one: Cell, other: Cell) -> tuple[LogMass, LogMass]:
    """S from what else there is in the cell: from the establishment beside the largest, here of one job."""
    return distribution(m, one, s=1.0), distribution(m, other, s=1.0)


@pytest.mark.parametrize("broken", [floored, halved, undilated, of_the_neighbour])
def test_broken_mechanisms_are_caught(broken: Broken) -> None:
    """Sound on every pair, broken on some."""
    mechanism = LaplacePareto(TENTH, TWO)
    actual = [between(*broken(mechanism, *pair), pair[0][0], pair[1][0]).worst for pair in neighbours(TENTH)]
    assert max(actual) > 2 * 1.05


@dataclass(frozen=True)
class CutInTheNoise(LaplacePareto):
    """count + cut(noise): the atoms of the cut lie at count ± 500, and show the count."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        if not -500 < k - count <= 500:
            return arb(int(k < count))
        return super().upper(count, largest, k)


@dataclass(frozen=True)
class CutAfterwards(LaplacePareto):
    """cut(count + noise) at a narrower bound: a post-processing, so no loss is added."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        if not -500 < k <= 500:
            return arb(int(k <= 0))
        return super().upper(count, largest, k)


@dataclass(frozen=True)
class HalfTheScale(LaplacePareto):
    @cached_property
    def constant(self) -> Fraction:
        return 1 / (2 * self.epsilon)


def test_tails_cut_in_the_noise_are_caught_and_a_cut_sum_is_not() -> None:
    one, other = (100, 100), (110, 110)
    assert losses(CutInTheNoise(TENTH, TWO), one, other).worst == float("inf")
    assert losses(CutAfterwards(TENTH, TWO), one, other).worst <= 2
    assert losses(HalfTheScale(TENTH, TWO), one, other).worst > 3


def test_the_ends_of_what_is_published_are_atoms() -> None:
    """P(published ≥ −2⁵¹) = 1, P(published ≥ 2⁵¹ + 1) = 0, and the atom at the end is what lies beyond."""
    for mechanism in (*SOME[::4], *DISCRETE):
        cell = (LARGEST - 5, 10**6) if mechanism.name != "log-laplace" else (LARGEST - 5, 0)
        assert mechanism.upper(*cell, LARGEST + 1) == 0
        assert mechanism.upper(*cell, -LARGEST) == 1
        atom, above = mass(mechanism, cell, LARGEST), mechanism.upper(*cell, LARGEST)
        assert float(atom) == pytest.approx(float(above))
        assert 0 < float(atom) < 1
