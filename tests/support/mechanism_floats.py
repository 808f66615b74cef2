"""Independent float implementations of the mechanisms' distributions, and neighbours to test them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.methods.employer.mechanisms import LARGEST, Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.exact_audit import Cell, Losses, landmarks, search
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth import SmoothMechanism
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace

Ints = NDArray[np.int64]
Real = NDArray[np.float64]
LogMass = Callable[[Ints], Real]  # ln P(published = k)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def symmetric(
    count: int, scale: float, between: Callable[[Real, float], Real], beyond: Callable[[float], float]
) -> LogMass:
    """count + scale·Z, rounded and cut: between(a, w) = ln P(a < Z < a + w), beyond(a) = ln P(Z > a), a ≥ 0."""

    def log_mass(k: Ints) -> Real:
        m = np.abs(k - count).astype(float)
        out = between(np.maximum(m - 0.5, 0) / scale, 1 / scale)
        out = np.where(m == 0, np.log(2) + between(np.zeros(1), 0.5 / scale), out)
        for end in (-LARGEST, LARGEST):
            out = np.where(k == end, beyond((abs(end - count) - 0.5) / scale), out)
        return out

    return log_mass


def laplace_pareto(count: int, scale: float, g: float) -> LogMass:
    n = 2 * (1 + np.exp(-g) / (g - 1))

    def beyond(a: Real | float) -> Real | float:
        return -g + np.log(g / (g - 1) / n) - (g - 1) * np.log(a / g)

    def between(a: Real, w: float) -> Real:
        tail = np.maximum(a, g)
        far = beyond(tail) + np.log(-np.expm1(-(g - 1) * np.log1p(w / tail)))
        body = np.minimum(a, g)
        near = -body + np.log(-np.expm1(-w) / n)
        end = np.maximum(a + w, g)
        mixed = np.exp(-body) / n * -np.expm1(body - g) + np.exp(beyond(np.full(1, g))) * -np.expm1(
            -(g - 1) * np.log(end / g)
        )
        return np.where(a >= g, far, np.where(a + w <= g, near, np.log(np.maximum(mixed, 1e-300))))

    return symmetric(count, scale, between, beyond)  # type: ignore[arg-type]


def gamma(count: int, scale: float, power: float) -> LogMass:
    n = 2 * np.pi / power / np.sin(np.pi / power)

    def between(a: Real, w: float) -> Real:
        z = a[:, None] + w * (NODES + 1) / 2
        return np.log((WEIGHTS / (1 + z**power)).sum(axis=1) * w / 2 / n)

    def beyond(a: float) -> float:
        return float((1 - power) * np.log(a) - np.log(n * (power - 1)))

    return symmetric(count, scale, between, beyond)


def laplace(count: int, scale: float) -> LogMass:
    return symmetric(count, scale, lambda a, w: -a + np.log(-np.expm1(-w) / 2), lambda a: -a - np.log(2))


def log_laplace(count: int, exponent: float, shift: float, factor: float) -> LogMass:
    def log_mass(k: Ints) -> Real:
        centre = (count + shift) * factor
        low, high = np.maximum(k - 0.5 + shift, 0) / centre, np.maximum(k + 0.5 + shift, 0) / centre
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(low > 0, -np.expm1(-np.log1p(1 / (low * centre)) / exponent), 1)
            above = -np.log(low) / exponent + np.log(step / 2)
            below = np.log(high) / exponent + np.log(step / 2)
            across = np.log(1 - (np.minimum(low, 1) ** (1 / exponent) + np.maximum(high, 1) ** (-1 / exponent)) / 2)
            out = np.where(low >= 1, above, np.where(high <= 1, below, across))
            return np.where(k == LARGEST, -np.log(low) / exponent - np.log(2), np.where(k == -LARGEST, -np.inf, out))

    return log_mass


def geometric(count: int, rate: float) -> LogMass:
    edge = np.log(np.tanh(rate / 2))

    def log_mass(k: Ints) -> Real:
        m = np.abs(k - count)
        return np.where(m < 10**5, edge - rate * m, np.nan)  # further out floats are too short; the ratio is the same

    return log_mass


def distribution(mechanism: Mechanism, cell: Cell, c: float | None = None, s: float | None = None) -> LogMass:
    """A mechanism's distribution; or a broken one's, with another constant c or another sensitivity s."""
    count, largest = cell
    if isinstance(mechanism, SmoothMechanism):
        unit = float(mechanism.constant) if c is None else c
        scale = unit * (max(float(mechanism.alpha) * largest, 1.0) if s is None else s)
        match mechanism:
            case LaplacePareto():
                return laplace_pareto(count, scale, float(mechanism.shape))
            case SmoothGamma():
                return gamma(count, scale, float(mechanism.shape))
            case SmoothLaplace():
                return laplace(count, scale)
    match mechanism:
        case LogLaplace():
            return log_laplace(count, float(mechanism.exponent), float(1 / mechanism.alpha), float(mechanism.factor))
        case Geometric() | Truncated():
            return geometric(count, float(mechanism.distribution.rate))
    raise AssertionError(mechanism)


def between(one: LogMass, other: LogMass, *counts: int) -> Losses:
    def ratios(k: Ints) -> Real:
        first, second = one(k), other(k)
        with np.errstate(invalid="ignore"):
            return first - second

    return search(ratios, *counts)


def float_losses(mechanism: Mechanism, one: Cell, other: Cell) -> Losses:
    marks = (*landmarks(mechanism, one), *landmarks(mechanism, other)) if mechanism.name == "log-laplace" else ()
    return between(distribution(mechanism, one), distribution(mechanism, other), one[0], other[0], *marks)


SIZES = (0, 1, 2, 5, 9, 10, 11, 19, 20, 99, 100, 1000, 10_000)


def neighbours(alpha: Fraction) -> Iterator[tuple[Cell, Cell]]:
    """An establishment of x jobs grows: alone, beside 5,000 jobs of establishments of one, or overtaking another."""
    for x in SIZES:
        for grown in sorted({x + 1, int((1 + alpha) * x)} - {x}):
            yield (x, x), (grown, grown)
            yield (x + 5000, max(x, 1)), (grown + 5000, max(grown, 1))
            for rival in {x, grown - 1, grown}:
                yield (x + rival, max(x, rival)), (grown + rival, max(grown, rival))
