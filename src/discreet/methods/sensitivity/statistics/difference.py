"""The difference of two arms' means (Chetty & Friedman 2019, Step 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import ParameterError, SourceError
from discreet.methods.sensitivity.statistics import (
    CompiledStatistic,
    Floats,
    Int64s,
    Search,
    Variable,
    WorstRecord,
    one_cell,
)
from discreet.noise.jit import compiled

ILL = 2.0**-10  # a sum of squares that falls below this fraction of itself is recomputed
Arms = tuple[tuple[int, int], tuple[float, float], tuple[float, float]]  # n, ȳ, Σ(y − ȳ)² of arm 0 and of arm 1


@dataclass(frozen=True)
class Difference(CompiledStatistic):
    """ȳ₁ − ȳ₀, 0 where an arm is empty; `arm` is 0 or 1. Error √(s₁²/n₁ + s₀²/n₀), 0 where an arm has fewer than two.

    An observation may be added to either arm g. The mean changes by (y − ȳ_g)/(n_g + 1), linear in y: the maximum is at
    a bound. The squared error gains from Σ(y − ȳ)² + (y − ȳ_g)²·n_g/(n_g + 1), convex in y: the bounds, or the least at
    y = ȳ_g. Every removal is tried. So both sensitivities are exact.
    """

    y: Variable
    arm: Variable

    name = "difference"
    empty = 0.0
    parameters = 2

    def __post_init__(self) -> None:
        if (self.arm.low, self.arm.high) != (0, 1):
            raise ParameterError("an arm is 0 or 1", where=f"variable {self.arm.name}", do="declare bounds 0 and 1")

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.y, self.arm

    @property
    def scale(self) -> float:
        return self.y.width

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:  # noqa: ARG002
        return self._run(columns, starts, search)[0]

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        added, y, arm, change = self._run(columns, one_cell(columns), search)[1][0].tolist()
        return WorstRecord(bool(added), (y, arm), change)

    def _run(self, columns: list[Floats], starts: Int64s, search: Search) -> tuple[Floats, Floats]:
        y, arm = columns
        if not ((arm == 0) | (arm == 1)).all():
            raise SourceError("has an arm that is neither 0 nor 1", where=f"column {self.arm.name}", do="recode it")
        tried = np.empty(0) if search.kind == "removals" else search.values(self.y)
        return _differences(y, arm, starts, tried, search.kind == "exact")


@compiled
def _arms(y: Floats, arm: Floats, without: int) -> Arms:
    """n, ȳ and Σ(y − ȳ)² of each arm, without one row."""
    n, total, square = [0, 0], [0.0, 0.0], [0.0, 0.0]
    for i in range(len(y)):
        if i != without:
            g = int(arm[i])
            n[g] += 1
            total[g] += y[i]
    mean = total[0] / max(n[0], 1), total[1] / max(n[1], 1)
    for i in range(len(y)):
        if i != without:
            g = int(arm[i])
            square[g] += (y[i] - mean[g]) ** 2
    return (n[0], n[1]), mean, (square[0], square[1])


@compiled
def _theta(n: int, mean: float, m: int, other: float, g: int) -> float:
    """The difference where arm g has n observations and the other arm m."""
    if n == 0 or m == 0:
        return 0.0
    return mean - other if g == 1 else other - mean


@compiled
def _error(n: int, square: float, m: int, other: float) -> float:
    if n < 2 or m < 2:
        return 0.0
    return float(np.sqrt(square / ((n - 1.0) * n) + other / ((m - 1.0) * m)))


@compiled
def _differences(y: Floats, arm: Floats, starts: Int64s, tried: Floats, exact: bool) -> tuple[Floats, Floats]:
    """By cell θ, its sensitivity, the error, its sensitivity; and of the worst observation added, y, arm, change."""
    out, worst = np.zeros((4, len(starts) - 1)), np.empty((len(starts) - 1, 4))
    for j in range(len(starts) - 1):
        cy, ca = y[starts[j] : starts[j + 1]], arm[starts[j] : starts[j + 1]]
        n, mean, square = _arms(cy, ca, -1)
        theta = _theta(n[1], mean[1], n[0], mean[0], 1)
        error = _error(n[1], square[1], n[0], square[0])
        out[0, j], out[2, j] = theta, error
        for i in range(len(cy)):
            g = int(ca[i])
            left, far = n[g] - 1, cy[i] - mean[g]
            new_mean = mean[g] - far / max(left, 1)
            new_square = square[g] - far * far * n[g] / max(left, 1)
            if new_square < ILL * square[g]:
                new_square = _arms(cy, ca, i)[2][g]
            change = _theta(left, new_mean, n[1 - g], mean[1 - g], g) - theta
            if i == 0 or abs(change) > out[1, j]:
                out[1, j] = abs(change)
                worst[j] = (0.0, cy[i], ca[i], change)
            moved = _error(left, new_square, n[1 - g], square[1 - g])
            out[3, j] = max(out[3, j], abs(moved - error))
        for g in range(2):
            for i in range(len(tried) + (1 if exact and n[g] else 0)):
                value = tried[i] if i < len(tried) else mean[g]
                far = value - mean[g] if n[g] else 0.0
                new_mean = mean[g] + far / (n[g] + 1) if n[g] else value
                change = _theta(n[g] + 1, new_mean, n[1 - g], mean[1 - g], g) - theta
                if abs(change) > out[1, j]:
                    out[1, j] = abs(change)
                    worst[j] = (1.0, value, float(g), change)
                new_square = square[g] + far * far * n[g] / (n[g] + 1)
                moved = _error(n[g] + 1, new_square, n[1 - g], square[1 - g])
                out[3, j] = max(out[3, j], abs(moved - error))
    return out, worst
