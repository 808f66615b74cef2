"""A quantile of one bounded variable (Chetty & Friedman 2019, Step 1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import (
    SEARCHES,
    Floats,
    Int64s,
    Search,
    UnivariateStatistic,
    WorstRecord,
    one_cell,
)
from discreet.noise.jit import compiled

FINEST = 10**6  # p·(n − 1) is computed in 64-bit integers


@dataclass(frozen=True)
class Quantile(UnivariateStatistic):
    """The p-quantile, type 7 of Hyndman and Fan (R's and NumPy's): with h = (n − 1)·p, between y₍⌊h⌋₊₁₎ and the next at
    the fraction of h. The middle of the bounds where there is no observation. No standard error.

    Exact with four candidates. With y added, the j-th smallest is the median of y₍ⱼ₋₁₎, y and y₍ⱼ₎, which rises with y;
    the quantile, a mean of two of these with fixed weights, rises too: the largest changes are at the bounds. Without
    the r-th smallest, the j-th is y₍ⱼ₎ for j < r, else y₍ⱼ₊₁₎, which falls with r: remove the smallest or the largest.
    """

    p: Fraction

    name = "quantile"
    has_error = False
    parameters = 0
    kinds = SEARCHES  # the first three agree: the maximum is at the bounds

    def __post_init__(self) -> None:
        p: object = self.p  # a float may come from outside
        if not isinstance(p, Fraction) or not 0 <= p <= 1 or p.denominator > FINEST:
            raise ParameterError("p is not a fraction in 0 … 1", where="quantile", do="give one such as 1/4")

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:  # noqa: ARG002 - it has none
        changes = self._changes(columns, starts, search)
        return np.stack([changes[:, 4], np.abs(changes[:, :4]).max(axis=1)])

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        y, changes = columns[0], self._changes(columns, one_cell(columns), search)[0, :4]
        which = int(np.abs(changes).argmax())
        point = (y[0], y[-1], self.y.low, self.y.high)[which]
        return WorstRecord(which >= 2, (float(point),), float(changes[which]))

    def _changes(self, columns: list[Floats], starts: Int64s, search: Search) -> Floats:
        add = search.kind != "removals"
        p, bounds = (self.p.numerator, self.p.denominator), (self.y.low, self.y.high)
        return _quantiles(columns[0], starts, *p, *bounds, self.empty, add)


@compiled
def _quantiles(
    y: Floats, starts: Int64s, over: int, under: int, low: float, high: float, empty: float, add: bool
) -> Floats:
    """For every cell the changes without its smallest and its largest value, with the bounds added, and θ."""
    out = np.zeros((len(starts) - 1, 5))
    for j in range(len(starts) - 1):
        first, n = starts[j], starts[j + 1] - starts[j]
        theta = _between(y, first, n, 0, 0.0, over, under)
        out[j, 4] = theta
        out[j, 0] = (_between(y, first + 1, n - 1, 0, 0.0, over, under) if n > 1 else empty) - theta
        out[j, 1] = (_between(y, first, n - 1, 0, 0.0, over, under) if n > 1 else empty) - theta
        if add:
            out[j, 2] = _between(y, first, n, -1, low, over, under) - theta
            out[j, 3] = _between(y, first, n, 1, high, over, under) - theta
    return out


@compiled
def _between(y: Floats, first: int, n: int, side: int, extra: float, over: int, under: int) -> float:
    """The quantile of n sorted values, and of `extra` below (side −1) or above (side 1) them."""
    place = (n - 1 + abs(side)) * over
    rank, part = place // under, (place % under) / under
    two = np.empty(2)
    for i in range(2):
        at = rank + i - (1 if side < 0 else 0)
        two[i] = extra if at < 0 or (side > 0 and at == n) else y[first + min(at, n - 1)]
    return float((1.0 - part) * two[0] + part * two[1])
