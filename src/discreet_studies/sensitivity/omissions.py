"""What the method of Chetty & Friedman 2019 does not guarantee: Normal noise, the true N, one shared ω, corners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.methods.sensitivity.noise import EstimateNoise
from discreet.methods.sensitivity.statistics import EXACT, Floats, Int64s
from discreet.privacy.gaussian import true_delta, true_epsilon
from discreet_studies.sensitivity.cells import EPSILON, PLAIN, WINSORISED, AtlasCells, omega, size_groups, stream
from discreet_studies.sensitivity.subgroups import CORNERS

DELTA = Fraction(1, 10**6)
EPSILONS = (Fraction(1), Fraction(2), Fraction(4), EPSILON)
SIZES = ((20, 49), (50, 99), (100, 299), (300, None))
TIGHT = (0.48, 0.49, 0.50, 0.51, 0.52)  # x of the cell where corners understate the maximum; y = .28 + 2.5(x − .5)
SPREADS = (0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True)
class NormalNoiseLoss:
    """The exact privacy loss of Normal noise on several numbers, each at nominal ε = 8."""

    numbers: int
    nominal: Fraction  # the sum
    delta: Fraction  # exact δ at that sum
    epsilon: Fraction  # exact ε at δ = 10⁻⁶


def nominal() -> tuple[NormalNoiseLoss, ...]:
    """For the estimate; with its count; also with its standard error."""
    return tuple(
        NormalNoiseLoss(k, k * EPSILON, true_delta([EPSILON] * k, k * EPSILON), true_epsilon([EPSILON] * k, DELTA))
        for k in (1, 2, 3)
    )


@dataclass(frozen=True)
class LowerBoundNoise:
    """Noise scaled by a private lower bound on N against noise scaled by the true N, in cells of one size."""

    epsilon: Fraction
    margin: int
    sizes: str
    cells: int
    variance: float  # mean of (N/bound)²
    over: float  # share of cells whose noisy count is above N: dividing by it would have a loss above ε


def bounded(n: Int64s, epsilons: Sequence[Fraction] = EPSILONS) -> list[LowerBoundNoise]:
    """The count with discrete Laplace noise, less the margin that the noise exceeds with probability δ = 10⁻⁶."""
    out = []
    for epsilon in epsilons:
        noise = EstimateNoise("laplace", epsilon, Fraction(1), "bound", DELTA)
        count = noise.count(n, stream(f"count, epsilon {epsilon}"), 0)
        factor = (n / np.maximum(count - noise.margin, 1)) ** 2
        for sizes, mine in size_groups(n, SIZES):
            over = float(np.mean(count[mine] > n[mine]))
            out.append(LowerBoundNoise(epsilon, noise.margin, sizes, int(mine.sum()), float(factor[mine].mean()), over))
    return out


@dataclass(frozen=True)
class SharedDrawAttack:
    """An adversary who rounds the noisy count to an integer, computes ω from it, and subtracts the estimate's noise."""

    epsilon: Fraction
    draws: str
    cells: int
    counts: float  # share of counts recovered by rounding
    estimates: float  # share of estimates then recovered within 10⁻⁹
    error: float  # median absolute error of the adversary's estimates
    before: float  # median absolute error of the published estimates


def recovered(cells: AtlasCells, epsilons: Sequence[Fraction] = (Fraction(1), EPSILON)) -> list[SharedDrawAttack]:
    """θ̃ = θ + √2·χ/(εN)·ω and Ñ = N + √2·ω'/ε: with ω' = ω (Step 4c), and with independent draws."""
    out = []
    for epsilon in epsilons:
        one = omega(len(cells.n), f"one draw, epsilon {epsilon}")
        other = omega(len(cells.n), f"another draw, epsilon {epsilon}")
        for draws, second in (("one for both", one), ("independent", other)):
            out.append(_attack(cells, epsilon, draws, one, second))
    return out


def _attack(cells: AtlasCells, epsilon: Fraction, draws: str, first: Floats, second: Floats) -> SharedDrawAttack:
    unit = np.sqrt(2) / float(epsilon)
    theta, count = cells.theta + unit * cells.chi / cells.n * first, cells.n + unit * second
    guess = np.maximum(np.rint(count), 1)
    estimate = theta - cells.chi / guess * (count - guess)
    gap = np.abs(estimate - cells.theta)
    shares = float(np.mean(guess == cells.n)), float(np.mean(gap < 1e-9))
    before = float(np.median(np.abs(theta - cells.theta)))
    return SharedDrawAttack(epsilon, draws, len(cells.n), *shares, float(np.median(gap)), before)


@dataclass(frozen=True)
class Counterexample:
    """Five children whose parents have similar ranks: sensitivity from corners, and exact."""

    corners: float
    exact: float
    point: tuple[float, ...]


def counterexample() -> Counterexample:
    """x in .48 … .52, prediction at .25."""
    x = np.array(TIGHT)
    cell = (x, 0.28 + 2.5 * (x - 0.5))
    exact = PLAIN.worst(cell, EXACT)
    return Counterexample(abs(PLAIN.worst(cell, CORNERS).change), abs(exact.change), exact.point)


def growth() -> list[tuple[float, float, float]]:
    """Half-width of x, and the exact sensitivity of twenty points on a line: plain, winsorised (App. Figure 1)."""
    place = np.linspace(-1, 1, 20)
    starts = np.array([0, 20], np.int64)
    out = []
    for spread in SPREADS:
        cell = (0.5 + spread * place, 0.5 + 0.2 * place)
        plain, winsorised = (s.local(cell, starts, errors=False).sensitivity[0] for s in (PLAIN, WINSORISED))
        out.append((spread, float(plain), float(winsorised)))
    return out
