"""The least-squares line of each cell, compiled: the change of its estimate and standard error when an observation is
added or removed (Chetty & Friedman 2019, Step 1).

θ = w·ȳ + τ·β, τ = t − w·x̄, β = Sxy/Sxx: w = 1 and t = x₀ for a prediction, w = 0 and t = 1 for the slope. Cells are
sorted by x. Sums run in the order of rows, about the first row, so that a narrow cell loses no digits. Proofs:
sensitivity.md.
"""

from __future__ import annotations

from math import copysign, hypot, sqrt

import numpy as np

from discreet.methods.sensitivity.statistics import Floats, Int64s
from discreet.methods.sensitivity.statistics.roots import MOST, real_roots
from discreet.noise.jit import compiled

Fit = tuple[int, float, float, float, float, float, float]

SAME = 1e-40  # x that differ by no more count as equal: powers of their ratio to 1 would overflow
ILL = 2.0**-10  # a sum that falls below this fraction of itself is recomputed; at most five per cell (sensitivity.md)


@compiled
def is_flat(x: Floats, skip: int) -> bool:
    """Whether all x are equal, apart from row `skip` (−1: none). A rule on values, not on sums."""
    first, last = (1 if skip == 0 else 0), (len(x) - 2 if skip == len(x) - 1 else len(x) - 1)
    return last <= first or x[last] - x[first] <= SAME


@compiled
def centred(x: Floats, y: Floats, skip: int) -> Fit:
    """n, an origin (x and y), the means less the origin, Sxx and Sxy, without row `skip` (−1: none); n ≥ 1.

    Two passes; the second also sums the deviations, which would be 0 without rounding, and corrects the means. Sxx and
    Sxy need no correction: it would be of the order of the square of that rounding.
    """
    start = 1 if skip == 0 else 0
    ox, oy = x[start], y[start]
    n = len(x) - (1 if skip >= 0 else 0)
    mx, my = 0.0, 0.0
    for i in range(len(x)):
        if i != skip:
            mx += x[i] - ox
            my += y[i] - oy
    mx /= n
    my /= n
    dx, dy, sxx, sxy = 0.0, 0.0, 0.0, 0.0
    for i in range(len(x)):
        if i != skip:
            u = (x[i] - ox) - mx
            v = (y[i] - oy) - my
            dx += u
            dy += v
            sxx += u * u
            sxy += u * v
    return n, ox, oy, mx + dx / n, my + dy / n, sxx, sxy


@compiled
def value_of(fit: Fit, flat: bool, w: float, t: float) -> float:
    """θ; w·ȳ where all x are equal: the slope of such a cell is 0 by definition."""
    _, ox, oy, mx, my, sxx, sxy = fit
    if flat:
        return w * (oy + my)
    return w * (oy + my) + ((t - w * ox) - w * mx) * (sxy / sxx)


@compiled
def _without(x: Floats, y: Floats, i: int, w: float, t: float, middle: float) -> float:
    """θ of the other rows; w·middle if there are none."""
    if len(x) == 1:
        return w * middle
    return value_of(centred(x, y, i), is_flat(x, i), w, t)


@compiled
def worst_of(
    x: Floats, y: Floats, fit: Fit, w: float, t: float, xs: Floats, ys: Floats, exact: bool
) -> tuple[float, float, bool, float, float]:
    """θ, its largest change, whether by an addition, and the observation: over xs × ys (which hold the bounds), all
    rows removed, and if exact the stationary points in x."""
    middle = 0.5 * (ys[0] + ys[-1])
    if is_flat(x, -1):
        return _worst_flat(x, y, fit, w, t, ys, middle)
    n, ox, oy, mx, my, sxx, sxy = fit
    value, slope, tau = value_of(fit, False, w, t), sxy / sxx, (t - w * ox) - w * mx
    most, at = 0.0, 0
    constant, lever, rest = w / n, tau / sxx, 1.0 - 1.0 / n
    for i in range(n):
        u = (x[i] - ox) - mx
        free = rest - u * u / sxx
        if free < ILL:
            change = _without(x, y, i, w, t, middle) - value
        else:
            change = -(constant + lever * u) * (((y[i] - oy) - my) - slope * u) / free
        if abs(change) > abs(most):
            most, at = change, i
    added, px, py = False, x[at], y[at]
    reach, base = sxx * (n + 1) / n, w * sxx / n
    low, high = (xs[0] - ox) - mx, (xs[-1] - ox) - mx
    for end in range(2):  # Δ is linear in y
        new = ys[0] if end == 0 else ys[-1]
        rise = (new - oy) - my
        # (base + τu)(rise − βu)/(reach + u²) is stationary where p·u² + 2k·u − p·reach = 0.
        p, k = tau * rise - base * slope, tau * slope * reach + base * rise
        m = k + copysign(hypot(k, p * sqrt(reach)), k)
        for j in range(len(xs) + (2 if exact and m != 0.0 else 0)):
            if j < len(xs):
                u = (xs[j] - ox) - mx
            elif j == len(xs):
                u = p * reach / m
            else:
                u = -m / p if p != 0.0 else high
            u = min(max(u, low), high)
            change = (base + tau * u) * (rise - slope * u) / (reach + u * u)
            if abs(change) > abs(most):
                most, added, py = change, True, new
                px = xs[j] if j < len(xs) else min(max((ox + mx) + u, xs[0]), xs[-1])
    return value, most, added, px, py


@compiled
def _worst_flat(
    x: Floats, y: Floats, fit: Fit, w: float, t: float, ys: Floats, middle: float
) -> tuple[float, float, bool, float, float]:
    """All x are c: a new x close to c turns the line by any angle about (c, ȳ), and only t = c stays where it is."""
    n, _, oy, _, my, _, _ = fit
    mean = oy + my
    far = ys[0] if mean - ys[0] > ys[-1] - mean else ys[-1]
    if w == 0.0 or t != x[0]:
        return w * mean, np.inf, True, x[0], far
    most, added, py = ((far - oy) - my) / (n + 1), True, far  # at x = c
    for i in range(n):
        change = middle - mean if n == 1 else -((y[i] - oy) - my) / (n - 1)
        if abs(change) > abs(most):
            most, added, py = change, False, y[i]
    return w * mean, most, added, x[0], py


@compiled
def _error(n: int, sse: float, sxx: float, tau: float, w: float) -> float:
    """√(SSE/(n − 2)·(w²/n + τ²/Sxx)), n ≥ 3."""
    return sqrt(max(sse, 0.0) / (n - 2) * (w * w / n + tau * tau / sxx))


@compiled
def _unexplained(x: Floats, y: Floats, fit: Fit, skip: int) -> float:
    """SSE without row `skip`."""
    _, ox, oy, mx, my, sxx, sxy = fit
    slope, sse = sxy / sxx, 0.0
    for i in range(len(x)):
        if i != skip:
            e = ((y[i] - oy) - my) - slope * ((x[i] - ox) - mx)
            sse += e * e
    return sse


@compiled
def _error_without(x: Floats, y: Floats, i: int, w: float, t: float) -> float:
    """The standard error of the other rows, at least three; 0 where their x are equal."""
    if is_flat(x, i):
        return 0.0
    fit = centred(x, y, i)
    _, ox, _, mx, _, sxx, _ = fit
    return _error(fit[0], _unexplained(x, y, fit, i), sxx, (t - w * ox) - w * mx, w)


@compiled
def error_of(
    x: Floats, y: Floats, fit: Fit, w: float, t: float, xs: Floats, ys: Floats, exact: bool
) -> tuple[float, float]:
    """The standard error (0 below three rows or where x are equal) and its largest change, as `worst_of`."""
    n, ox, oy, mx, my, sxx, sxy = fit
    if is_flat(x, -1):
        return 0.0, _error_flat(y, fit, w == 0.0 or t != x[0])
    slope, tau = sxy / sxx, (t - w * ox) - w * mx
    sse = _unexplained(x, y, fit, -1)
    error = _error(n, sse, sxx, tau, w) if n >= 3 else 0.0
    least, most = _added_errors(fit, sse, w, tau, xs, ys, exact)
    if n == 3:
        least = 0.0
    if n > 3:
        rest = 1.0 - 1.0 / n
        for i in range(n):
            u = (x[i] - ox) - mx
            e = ((y[i] - oy) - my) - slope * u
            free = rest - u * u / sxx
            left = sse - e * e / free if free >= ILL else 0.0
            if free < ILL or left < ILL * sse:
                new = _error_without(x, y, i, w, t)
            else:
                new = _error(n - 1, left, sxx - u * u * n / (n - 1), tau + w * u / (n - 1), w)
            least, most = min(least, new), max(most, new)
    return error, max(most - error, error - least)


@compiled
def _error_flat(y: Floats, fit: Fit, unbounded: bool) -> float:
    """All x are c: the error is 0, and with a new x of any other value √(Syy/(n − 1)·(w²/(n+1) + τ'²/S'xx)).

    That grows beyond bounds as x nears c, unless y is constant; for t = c it is √(Syy/(n(n − 1))) wherever x is.
    """
    n, _, oy, _, my, _, _ = fit
    syy = 0.0
    for i in range(n):
        syy += ((y[i] - oy) - my) ** 2
    if n < 2 or syy == 0.0:
        return 0.0
    return np.inf if unbounded else sqrt(syy / n / (n - 1))


@compiled
def _added_errors(
    fit: Fit, sse: float, w: float, tau: float, xs: Floats, ys: Floats, exact: bool
) -> tuple[float, float]:
    """The least and the largest standard error with one more observation; n ≥ 2, x not all equal.

    In v = u/σ, σ² = Sxx(n+1)/n, its square is Q₁Q₂/((n − 1)(1 + v²)²), Q₁ = SSE(1+v²) + (E − βσv)²n/(n+1) and
    Q₂ = w²/(n+1) + τ²/Sxx − 2wτσv/((n+1)Sxx) + w²v²/n.
    """
    n, ox, oy, mx, my, sxx, sxy = fit
    sigma, share = sqrt(sxx * (n + 1) / n), n / (n + 1)
    turn = sxy / sxx * sigma  # βσ
    b0, b1, b2 = w * w / (n + 1) + tau * tau / sxx, -2.0 * w * tau * sigma / ((n + 1) * sxx), w * w / n
    low, high = ((xs[0] - ox) - mx) / sigma, ((xs[-1] - ox) - mx) / sigma
    least, most = np.inf, 0.0
    roots, c = np.empty(MOST), np.empty(5)
    for j in range(len(ys)):
        rise = (ys[j] - oy) - my
        turns = 0
        if exact:
            a0, a1, a2 = sse + share * rise * rise, -2.0 * share * rise * turn, sse + share * turn * turn
            g0, g1, g2, g3, g4 = a0 * b0, a0 * b1 + a1 * b0, a0 * b2 + a1 * b1 + a2 * b0, a1 * b2 + a2 * b1, a2 * b2
            c[0], c[1], c[2], c[3], c[4] = g1, 2.0 * g2 - 4.0 * g0, 3.0 * (g3 - g1), 4.0 * g4 - 2.0 * g2, -g3
            turns = real_roots(c, low, high, roots)
        for i in range(len(xs) + turns):
            v = ((xs[i] - ox) - mx) / sigma if i < len(xs) else roots[i - len(xs)]
            new = (sse + share * (rise - turn * v) ** 2 / (1 + v * v)) * (b0 + b1 * v + b2 * v * v) / (1 + v * v)
            least, most = min(least, new), max(most, new)
    if exact:  # the least may lie on the line itself, where it runs within the bounds of y
        bottom, top = (ys[0] - oy) - my, (ys[-1] - oy) - my
        centre = (n + 1) * tau / (w * sigma) if w != 0.0 else 0.0  # x₀ becomes the new mean of x
        for v in (low, high, centre, 0.0):
            if low <= v <= high and bottom <= turn * v <= top:
                least = min(least, sse * (b0 + b1 * v + b2 * v * v) / (1 + v * v))
    return sqrt(max(least, 0.0) / (n - 1)), sqrt(most / (n - 1))


@compiled
def lines(
    x: Floats, y: Floats, starts: Int64s, w: float, t: float, xs: Floats, ys: Floats, exact: bool, errors: bool
) -> Floats:
    """θ, its sensitivity, its standard error and the sensitivity of that, in every cell."""
    out = np.zeros((4, len(starts) - 1))
    for j in range(len(starts) - 1):
        cx, cy = x[starts[j] : starts[j + 1]], y[starts[j] : starts[j + 1]]
        fit = centred(cx, cy, -1)
        out[0, j], change, _, _, _ = worst_of(cx, cy, fit, w, t, xs, ys, exact)
        out[1, j] = abs(change)
        if errors:
            out[2, j], out[3, j] = error_of(cx, cy, fit, w, t, xs, ys, exact)
    return out
