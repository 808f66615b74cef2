"""Mean, share and variance of one bounded variable (Chetty & Friedman 2019, Step 1). Proofs: sensitivity.md."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import SEARCHES, Floats, Int64s, Search, UnivariateStatistic, WorstRecord
from discreet.methods.sensitivity.statistics.roots import MOST, real_roots
from discreet.noise.jit import compiled

MEAN, VARIANCE = 1, 2  # the order of the moment, for the kernels
ILL = 2.0**-10  # a sum that falls below this fraction of itself is recomputed: after one or two outliers
Sums = tuple[int, float, float, float, float, float]


@dataclass(frozen=True)
class Mean(UnivariateStatistic):
    """ȳ, the middle of the bounds where there is no observation. Error s/√n, s² = Σ(y − ȳ)²/(n − 1); 0 below n = 2.

    Exact: the mean is monotone in the new observation; squared errors are polynomials in it.
    """

    name = "mean"
    parameters = 1
    kinds = SEARCHES[:3]
    order: ClassVar[int] = MEAN

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        tried, exact = self._tried(search)
        return _moments(columns[0], starts, self.order, tried, self.empty, exact, errors)

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        (y,), (tried, exact) = columns, self._tried(search)
        _, change, added, point = _worst(y, _sums(y, -1), self.order, tried, self.empty, exact)
        return WorstRecord(added, (point,), change)

    def _tried(self, search: Search) -> tuple[Floats, bool]:
        """The added values, and whether stationary points are added as well."""
        return search.values(self.y), search.kind == "exact"


@dataclass(frozen=True)
class Share(Mean):
    """p, the mean of a 0/1 variable; only 0 and 1 can be added. Error √(p(1 − p)/(n − 1)), the sample's s/√n.

    Exact: two values can be added, two removed.
    """

    name = "share"
    kinds = SEARCHES[:2]

    def __post_init__(self) -> None:
        if (self.y.low, self.y.high) != (0, 1):
            raise ParameterError("a share is of a 0/1 variable", where=self.y.name, do="declare the bounds 0 and 1")

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        if not ((columns[0] == 0) | (columns[0] == 1)).all():
            raise ParameterError("has values other than 0 and 1", where=self.y.name, do="use the mean")
        return super()._compute(columns, starts, search, errors)

    def _tried(self, search: Search) -> tuple[Floats, bool]:  # noqa: ARG002
        return np.array([0.0, 1.0]), False


@dataclass(frozen=True)
class Variance(Mean):
    """s² = Σ(y − ȳ)²/(n − 1), 0 below n = 2. Error √((m₄ − s⁴(n − 3)/(n − 1))/n), m₄ = Σ(y − ȳ)⁴/n; 0 below n = 2."""

    name = "variance"
    empty = 0.0
    order = VARIANCE

    @property
    def scale(self) -> float:
        return self.y.width**2


@compiled
def _sums(y: Floats, skip: int) -> Sums:
    """n, an origin, the mean less the origin, Σd², Σd³ and Σd⁴ of the deviations d, without row `skip` (−1: none)."""
    origin = y[1 if skip == 0 else 0]
    n = len(y) - (1 if skip >= 0 else 0)
    mean, slip = 0.0, 0.0
    for i in range(len(y)):
        if i != skip:
            mean += y[i] - origin
    mean /= n
    for i in range(len(y)):  # rounding error of the mean
        if i != skip:
            slip += (y[i] - origin) - mean
    mean += slip / n
    d2, d3, d4 = 0.0, 0.0, 0.0
    for i in range(len(y)):
        if i != skip:
            d = (y[i] - origin) - mean
            square = d * d
            d2 += square
            d3 += square * d
            d4 += square * square
    return n, origin, mean, d2, d3, d4


@compiled
def _with(sums: Sums, v: float) -> Sums:
    """The sums with one more observation, v above the mean."""
    n, origin, mean, d2, d3, d4 = sums
    c = v / (n + 1)
    more = v - c
    return (
        n + 1,
        origin,
        mean + c,
        d2 + v * more,
        d3 - 3 * c * d2 - n * c**3 + more**3,
        d4 - 4 * c * d3 + 6 * c * c * d2 + n * c**4 + more**4,
    )


@compiled
def _without(y: Floats, sums: Sums, i: int, order: int) -> Sums:
    """The sums of the other rows, at least one: downdated, or recomputed where digits would be lost."""
    n, origin, mean, d2, d3, d4 = sums
    v = (y[i] - origin) - mean
    c = v / (n - 1)  # the decrease of the mean
    gone = v + c
    left = d2 - v * gone
    if left < ILL * d2:
        return _sums(y, i)
    if order == MEAN:
        return n - 1, origin, mean - c, left, 0.0, 0.0
    left4 = d4 + 4 * c * d3 + 6 * c * c * d2 + n * c**4 - gone**4
    if left4 < ILL * d4:
        return _sums(y, i)
    return n - 1, origin, mean - c, left, d3 + 3 * c * d2 + n * c**3 - gone**3, left4


@compiled
def _error(sums: Sums, order: int) -> float:
    """s/√n, or √((m₄ − s⁴(n − 3)/(n − 1))/n)."""
    n, _, _, d2, _, d4 = sums
    if n < 2:
        return 0.0
    s2 = max(d2, 0.0) / (n - 1)
    return sqrt(s2 / n) if order == MEAN else sqrt(max(d4 / n - s2 * s2 * (n - 3) / (n - 1), 0.0) / n)


@compiled
def _value(sums: Sums, order: int) -> float:
    n, origin, mean, d2, _, _ = sums
    if order == MEAN:
        return origin + mean
    return max(d2, 0.0) / (n - 1) if n >= 2 else 0.0


@compiled
def _worst(
    y: Floats, sums: Sums, order: int, tried: Floats, empty: float, exact: bool
) -> tuple[float, float, bool, float]:
    """The statistic, its largest change, whether by an addition, and the observation."""
    n, origin, mean, _, _, _ = sums
    value = _value(sums, order)
    most, added, point = 0.0, True, tried[0]
    for j in range(len(tried) + (1 if exact else 0)):  # an observation at the mean lowers the variance most
        v = (tried[j] - origin) - mean if j < len(tried) else 0.0
        change = v / (n + 1) if order == MEAN else _value(_with(sums, v), order) - value
        if abs(change) > abs(most):
            most, added, point = change, True, tried[j] if j < len(tried) else origin + mean
    for i in range(n):
        if n == 1:
            change = empty - value
        elif order == MEAN:
            change = -((y[i] - origin) - mean) / (n - 1)
        else:
            change = _value(_without(y, sums, i, order), order) - value
        if abs(change) > abs(most):
            most, added, point = change, False, y[i]
    return value, most, added, point


@compiled
def _worst_error(y: Floats, sums: Sums, order: int, tried: Floats, exact: bool) -> tuple[float, float]:
    """The standard error and its largest change."""
    n, origin, mean, d2, d3, _ = sums
    error, most = _error(sums, order), 0.0
    stationary, turns = np.zeros(MOST), 0
    if exact and order == MEAN:
        turns = 1  # at v = 0: the error's square is quadratic in v
    elif exact:
        # (n+1)·V of the variance is quartic in v; its derivative over 4.
        up = n + 1.0
        spread = (n - 2.0) / (n * n * n)
        linear, cubic = 3.0 * d2 / up**3 - spread * d2 * n / up, n * (n * n - n + 1.0) / up**4 - spread * (n / up) ** 2
        slopes = np.array([-d3 / up**2, linear, 0.0, cubic])
        turns = real_roots(slopes, (tried[0] - origin) - mean, (tried[-1] - origin) - mean, stationary)
    for j in range(len(tried) + turns):
        v = (tried[j] - origin) - mean if j < len(tried) else stationary[j - len(tried)]
        most = max(most, abs(_error(_with(sums, v), order) - error))
    if n == 1:
        return error, max(most, error)
    for i in range(n):
        most = max(most, abs(_error(_without(y, sums, i, order), order) - error))
    return error, most


@compiled
def _moments(y: Floats, starts: Int64s, order: int, tried: Floats, empty: float, exact: bool, errors: bool) -> Floats:
    """The statistic, its sensitivity, its error and the sensitivity of that, in every cell."""
    out = np.zeros((4, len(starts) - 1))
    for j in range(len(starts) - 1):
        cell = y[starts[j] : starts[j + 1]]
        sums = _sums(cell, -1)
        out[0, j], change, _, _ = _worst(cell, sums, order, tried, empty, exact)
        out[1, j] = abs(change)
        if errors:
            out[2, j], out[3, j] = _worst_error(cell, sums, order, tried, exact)
    return out
