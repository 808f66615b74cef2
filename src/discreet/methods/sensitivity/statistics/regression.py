"""A coefficient of a regression on several variables (Chetty & Friedman 2019, Step 1): removals by the hat matrix,
additions on a grid.

With X the regressors less their means, X = QR, and θ = β_j, let g = R⁻ᵀe_j and, of an observation, q = R⁻ᵀ(x − x̄),
h = 1/n + q′q, k = g′q, e its residual. Removing it changes θ by −k·e/(1 − h), adding it by k·e/(1 + h)
(Sherman–Morrison). The squared error is SSE/(n − p − 1)·V, V = g′g; a removal makes SSE − e²/(1 − h) and
V + k²/(1 − h), an addition SSE + e²/(1 + h) and V − k²/(1 + h).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import (
    SEARCHES,
    CompiledStatistic,
    Floats,
    Int64s,
    Search,
    Variable,
    WorstRecord,
    added_points,
    one_cell,
)
from discreet.noise.jit import compiled

RANK = 2.0**-30  # relative distance from the span of earlier regressors below which a regressor is collinear
ILL = 2.0**-20  # where 1 − h or the relative remainder of SSE is smaller, the regression is refitted
Fit = tuple[bool, float, float, float]  # of full rank; θ, SSE and V
Space = tuple[Floats, Floats, Floats, Floats, Floats]  # buffers of a fit: Q, R, g, the means (that of y last) and β


@dataclass(frozen=True)
class Regression(CompiledStatistic):
    """The coefficient of one of the regressors, counted from 1, of y on all of them and an intercept. The classical
    standard error, 0 where n = p + 1.

    Where a regressor is constant or collinear (within 2⁻³⁰ of its length from the span of the others), or there are no
    more observations than regressors, θ = 0 and the sensitivity is infinite, for every search. Additions are those of
    the grid, or none: the sensitivity is a lower bound on the exact one, and a release must state this.
    """

    y: Variable
    regressors: tuple[Variable, ...]
    coefficient: int

    kinds = SEARCHES[1:]
    empty = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.coefficient <= len(self.regressors):
            raise ParameterError("no such coefficient", where="regression", do="1 is the first of the regressors")

    @property
    def name(self) -> str:
        return f"coefficient of {self.regressors[self.coefficient - 1].name}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        return (*self.regressors, self.y)

    @property
    def scale(self) -> float:
        return self.y.width / self.regressors[self.coefficient - 1].width

    @property
    def parameters(self) -> int:
        return len(self.regressors) + 1

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:  # noqa: ARG002
        return self._run(columns, starts, search)[0]

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        """The observation that attains the sensitivity; an arbitrary one where that is infinite."""
        out, worst = self._run(columns, one_cell(columns), search)
        added, change, *point = worst[0].tolist()
        return WorstRecord(bool(added), tuple(point), np.inf if np.isinf(out[1, 0]) else change)

    def _run(self, columns: list[Floats], starts: Int64s, search: Search) -> tuple[Floats, Floats]:
        *xs, y = columns
        return _regressions(np.column_stack(xs), y, starts, self.coefficient, added_points(self, search))


@compiled
def _orthogonal(basis: Floats, upper: Floats, j: int) -> float:
    """Orthogonalises column j against those before it; its remaining length."""
    upper[:, j] = 0.0
    for _ in range(2):  # the second pass removes rounding errors of the first
        for m in range(j):
            along = 0.0
            for i in range(len(basis)):
                along += basis[i, m] * basis[i, j]
            upper[m, j] += along
            for i in range(len(basis)):
                basis[i, j] -= along * basis[i, m]
    left = 0.0
    for i in range(len(basis)):
        left += basis[i, j] ** 2
    upper[j, j] = np.sqrt(left)
    return float(upper[j, j])


@compiled
def _space(rows: int, p: int) -> Space:
    return np.empty((rows, p)), np.empty((p, p)), np.empty(p), np.empty(p + 1), np.empty(p)


@compiled
def _fit(xs: Floats, y: Floats, without: int, coefficient: int, space: Space) -> Fit:
    """The regression without one row (−1: with all): Gram–Schmidt, twice, on columns less their means, in their order.
    Fills the space."""
    rows, p = xs.shape
    basis, upper, _, means, _ = space
    basis = basis[:rows]
    n = rows - (1 if without >= 0 else 0)
    if n < p + 1:
        return False, 0.0, 0.0, 0.0
    for j in range(p + 1):
        total = 0.0
        for i in range(rows):
            total += 0.0 if i == without else (xs[i, j] if j < p else y[i])
        means[j] = total / n
    for j in range(p):
        length, least, most = 0.0, np.inf, -np.inf
        for i in range(rows):
            basis[i, j] = 0.0 if i == without else xs[i, j] - means[j]
            length += basis[i, j] ** 2
            if i != without:
                least, most = min(least, xs[i, j]), max(most, xs[i, j])
        left = _orthogonal(basis, upper, j)
        if least == most or left <= RANK * np.sqrt(length):
            return False, 0.0, 0.0, 0.0
        for i in range(rows):
            basis[i, j] /= left
    return _solve(xs, y, without, coefficient, space)


@compiled
def _solve(xs: Floats, y: Floats, without: int, coefficient: int, space: Space) -> Fit:
    """β = R⁻¹Q′y and g = R⁻ᵀe_j, then θ, SSE from residuals, and V (`factor`)."""
    rows, p = xs.shape
    basis, upper, g, means, beta = space
    for j in range(p - 1, -1, -1):
        along = 0.0
        for i in range(rows):
            along += basis[i, j] * (y[i] - means[p])
        for m in range(j + 1, p):
            along -= upper[j, m] * beta[m]
        beta[j] = along / upper[j, j]
    factor = 0.0
    for j in range(p):
        goal = 1.0 if j == coefficient - 1 else 0.0
        for m in range(j):
            goal -= upper[m, j] * g[m]
        g[j] = goal / upper[j, j]
        factor += g[j] ** 2
    sse = 0.0
    for i in range(rows):
        if i != without:
            sse += _residual(xs[i], y[i], means, beta) ** 2
    return True, beta[coefficient - 1], sse, factor


@compiled
def _residual(x: Floats, y: float, means: Floats, beta: Floats) -> float:
    e = y - means[-1]
    for j in range(len(beta)):
        e -= (x[j] - means[j]) * beta[j]
    return float(e)


@compiled
def _error(sse: float, factor: float, freedom: int) -> float:
    return float(np.sqrt(max(sse * factor, 0.0) / freedom)) if freedom > 0 else 0.0


@compiled
def _moved(x: Floats, y: float, n: int, space: Space, q: Floats) -> tuple[float, float, float]:
    """h, k and e of an observation."""
    _, upper, g, means, beta = space
    h, k = 1.0 / n, 0.0
    for j in range(len(beta)):
        q[j] = x[j] - means[j]
        for m in range(j):
            q[j] -= upper[m, j] * q[m]
        q[j] /= upper[j, j]
        h += q[j] ** 2
        k += g[j] * q[j]
    return h, k, _residual(x, y, means, beta)


@compiled
def _regressions(xs: Floats, y: Floats, starts: Int64s, coefficient: int, grid: Floats) -> tuple[Floats, Floats]:
    """By cell θ, its sensitivity, the error, its sensitivity; and of the worst observation added, change, values."""
    cells, p = len(starts) - 1, xs.shape[1]
    out, worst = np.zeros((4, cells)), np.zeros((cells, p + 3))
    longest = 0
    for j in range(cells):
        longest = max(longest, starts[j + 1] - starts[j])
    space, again, q = _space(longest, p), _space(longest, p), np.empty(p)
    for j in range(cells):
        cx, cy = xs[starts[j] : starts[j + 1]], y[starts[j] : starts[j + 1]]
        n = len(cy)
        full, theta, sse, factor = _fit(cx, cy, -1, coefficient, space)
        worst[j, 2:-1], worst[j, -1] = cx[0], cy[0]
        if not full:
            out[1, j], out[3, j] = np.inf, np.inf
            continue
        error = _error(sse, factor, n - p - 1)
        out[0, j], out[2, j] = theta, error
        for i in range(n):
            h, k, e = _moved(cx[i], cy[i], n, space, q)
            kept = sse - e * e / (1.0 - h) if h < 1.0 else -1.0
            if 1.0 - h > ILL and kept >= ILL * sse:
                change, moved = -k * e / (1.0 - h), _error(kept, factor + k * k / (1.0 - h), n - p - 2)
            else:
                _, theta2, sse2, factor2 = _fit(cx, cy, i, coefficient, again)
                change, moved = theta2 - theta, _error(sse2, factor2, n - p - 2)
            out[3, j] = max(out[3, j], abs(moved - error))
            if abs(change) > out[1, j]:
                out[1, j] = abs(change)
                worst[j, 0], worst[j, 1], worst[j, 2:-1], worst[j, -1] = 0.0, change, cx[i], cy[i]
        for i in range(len(grid)):
            h, k, e = _moved(grid[i, :p], grid[i, p], n, space, q)
            change = k * e / (1.0 + h)
            moved = _error(sse + e * e / (1.0 + h), factor - k * k / (1.0 + h), n - p)
            out[3, j] = max(out[3, j], abs(moved - error))
            if abs(change) > out[1, j]:
                out[1, j] = abs(change)
                worst[j, 0], worst[j, 1], worst[j, 2:] = 1.0, change, grid[i]
    return out, worst
