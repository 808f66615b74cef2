"""The winsorised line's local sensitivity, compiled: one loop over cells. Derivation: winsorised.md.

Everything is a sum over three blocks of rows (sorted by x): `ends` rows below, the middle, `ends` rows above. x of the
outer rows equals a cut, so different cuts in x need no separate pass. Cuts in y need one each.
"""

from __future__ import annotations

import numpy as np

from discreet.methods.sensitivity.statistics import Floats, Int64s
from discreet.noise.jit import compiled

Blocks = tuple[float, float, float, float, float]  # Σv below, Σv middle, Σxv middle, Σv above, Σv²
Marks = tuple[float, float, float, float]  # of an added value: its clamping bounds, and the range of the cuts
Tried = tuple[Floats, Floats]  # the values of x and of y; none: the exact search
Middle = tuple[float, float]  # Σx, Σx² of the middle rows

Setting = tuple[tuple[float, float], Marks, Marks, Middle, Blocks, Blocks, Blocks]


@compiled
def cut_rows(n: int, over: int, under: int) -> int:
    """k(n): max(1, ⌊share·n⌋) values at each side, fewer where none would be left in the middle."""
    return min(max(1, n * over // under), max(n - 1, 0) // 2)


@compiled
def blocks(x: Floats, y: Floats, ends: int, low: float, high: float, x0: float, y0: float) -> Blocks:
    """Sums of v = clamp(y; low, high) − y0 over the blocks of rows, and with x − x0 over the middle."""
    n = len(x)
    below, middle, cross, above, square = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(ends):
        v = min(max(y[i], low), high) - y0
        below += v
        square += v * v
    for i in range(ends, n - ends):
        v = min(max(y[i], low), high) - y0
        middle += v
        cross += v * (x[i] - x0)
        square += v * v
    for i in range(n - ends, n):
        v = min(max(y[i], low), high) - y0
        above += v
        square += v * v
    return below, middle, cross, above, square


@compiled
def middle_of(x: Floats, ends: int, x0: float) -> Middle:
    total, square = 0.0, 0.0
    for i in range(ends, len(x) - ends):
        u = x[i] - x0
        total += u
        square += u * u
    return total, square


@compiled
def fit(n: int, sx: float, sxx: float, sy: float, sxy: float, flat: bool, weight: float, target: float) -> float:
    """θ = w·ȳ + (t − w·x̄)·Sxy/Sxx from raw sums; w·ȳ where x has no spread."""
    mean = sx / n
    spread = sxx - mean * sx
    if flat or spread <= 0.0:
        return weight * sy / n
    return weight * sy / n + (target - weight * mean) * ((sxy - mean * sy) / spread)


@compiled
def fit_variance(
    n: int, sx: float, sxx: float, sy: float, sxy: float, syy: float, flat: bool, weight: float, target: float
) -> float:
    """SSE/(n − 2)·(w²/n + (t − w·x̄)²/Sxx), the squared standard error; 0 below three observations and where x has no
    spread."""
    mean = sx / n
    spread = sxx - mean * sx
    if n < 3 or flat or spread <= 0.0:
        return 0.0
    cross, reach = sxy - mean * sy, target - weight * mean
    left = max((syy - sy * sy / n) * spread - cross * cross, 0.0)
    return left * (weight * weight * spread + n * reach * reach) / ((n - 2) * n * spread * spread)


@compiled
def marks(z: Floats, k: int, low: float, high: float) -> Marks:
    """z(k), z(k+1), z(n−k), z(n−k+1) of sorted values; the variable's bounds where k = 0 and there is none."""
    n = len(z)
    return (z[k - 1] if k else low), z[k], z[n - k - 1], (z[n - k] if k else high)


@compiled
def at_y(k: int, u: float, y: Marks, lower: Blocks, inner: Blocks, upper: Blocks) -> Blocks:
    """The sums over the old rows where y = u is added: linear in u from mark to mark, the last one quadratic."""
    if u < y[1]:
        part, other, mark = (y[1] - u) / (y[1] - y[0]), lower, y[1]
    elif u > y[2]:
        part, other, mark = (u - y[2]) / (y[3] - y[2]), upper, y[2]
    else:
        return inner
    rest = 1.0 - part
    return (
        rest * inner[0] + part * other[0],
        rest * inner[1] + part * other[1],
        rest * inner[2] + part * other[2],
        rest * inner[3] + part * other[3],
        inner[4] + k * (u * u - mark * mark),
    )


@compiled
def at_x(k: int, piece: int, x: Marks, middle: Middle, v: Blocks, u: float) -> tuple[float, float, int, float, float]:
    """Where x = s is added, as functions of s: Σx = G + M·s, Σx² = GG + M·s², Σxy = P + Q·s. The cut below moves
    with s in piece 0, the one above in piece 2, none in piece 1."""
    below, above = (0.0 if piece == 0 else x[1]), (0.0 if piece == 2 else x[2])
    G = middle[0] + k * (below + above)
    GG = middle[1] + k * (below * below + above * above)
    P = v[2] + below * v[0] + above * v[3]
    Q = u + (v[0] if piece == 0 else 0.0) + (v[3] if piece == 2 else 0.0)
    return G, GG, (1 if piece == 1 else k + 1), P, Q


@compiled
def turning(
    n: int, sums: tuple[float, float, int, float, float], sy: float, weight: float, target: float
) -> tuple[float, float]:
    """Where θ turns in s: roots of r'q − rq' of θ − w·ȳ = r/q, both quadratic in s; NaN where there is none."""
    G, GG, M, P, Q = sums
    p0, p1 = P - G * sy / n, Q - M * sy / n
    t0, t1 = target - weight * G / n, -weight * M / n
    r0, r1, r2 = t0 * p0, t0 * p1 + t1 * p0, t1 * p1
    q0, q1, q2 = GG - G * G / n, -2.0 * G * M / n, M - M * M / n
    a, half, c = r2 * q1 - r1 * q2, r2 * q0 - r0 * q2, r1 * q0 - r0 * q1
    inside = half * half - a * c
    if inside < 0.0:
        return np.nan, np.nan
    sum_ = -(half + np.copysign(np.sqrt(inside), half))  # no difference of near numbers
    return (sum_ / a if a != 0.0 else np.nan), (c / sum_ if sum_ != 0.0 else np.nan)


@compiled
def among(y: Floats, first: int, stop: int, mark: float, above: bool) -> int:
    """How many of these rows have their y at the mark or beyond it."""
    rows = 0
    for i in range(first, stop):
        rows += (y[i] >= mark) if above else (y[i] <= mark)
    return rows


@compiled
def unbounded(y: Floats, k: int, x: Marks, z: Marks, weight: float, target: float) -> tuple[bool, bool]:
    """Whether adding can move θ, and its standard error, without bound: only where the inner x are all equal.

    Then the k outer rows and the added one stand at s, all others at the mark, and s → mark gives Sxx → 0. The slope
    stays bounded only if both groups have equal means of y whatever y is added, the error only if y is constant in
    each group: decided by counting rows, not by sums. The line stays bounded where it goes through t itself.
    """
    n = len(y)
    theta, error = False, False
    if x[1] == x[2] and target != weight * x[1]:
        for side in range(2):
            if not (x[0] < x[1] if side == 0 else x[2] < x[3]):
                continue
            first = 0 if side == 0 else n - k
            if z[1] < z[2]:
                theta, error = True, True
            for end in range(2):
                if z[0] < z[1] if end == 0 else z[2] < z[3]:
                    own = among(y, first, first + k, z[0] if end == 0 else z[3], end == 1)
                    theta |= (1 + own) * (n - k) != (k - own) * (k + 1)
                    error |= own != k
    return theta, error and n >= 2


@compiled
def removed(
    x: Floats, y: Floats, z: Floats, over: int, under: int, weight: float, target: float, theta: float, error: float
) -> tuple[float, int, float]:
    """The largest |Δθ| of a removal with its row, and the largest change of the standard error. At most three pairs
    of cuts for x (row i below, in the middle, above), and for y: sums of the nine, less what row i has there."""
    n = len(x)
    ends = cut_rows(n - 1, over, under) + 1
    x0, y0 = 0.5 * (x[ends] + x[n - ends - 1]), 0.5 * (z[ends] + z[n - ends - 1])
    X, XX = middle_of(x, ends, x0)
    lows = (x[ends] - x0, x[ends - 1] - x0, x[ends - 1] - x0)
    highs = (x[n - ends] - x0, x[n - ends] - x0, x[n - ends - 1] - x0)
    cut_low = (z[ends], z[ends - 1], z[ends - 1])
    cut_high = (z[n - ends], z[n - ends], z[n - ends - 1])
    sums = (
        blocks(x, y, ends, cut_low[0], cut_high[0], x0, y0),
        blocks(x, y, ends, cut_low[1], cut_high[1], x0, y0),
        blocks(x, y, ends, cut_low[2], cut_high[2], x0, y0),
    )
    goal, base = target - weight * x0, weight * y0
    most, row, widest = -1.0, 0, 0.0
    for i in range(n):
        p = 0 if i < ends else (2 if i >= n - ends else 1)
        q = 0 if y[i] <= z[ends - 1] else (2 if y[i] >= z[n - ends] else 1)
        low, high, s = lows[p], highs[p], sums[q]
        u = low if p == 0 else (high if p == 2 else x[i] - x0)
        v = min(max(y[i], cut_low[q]), cut_high[q]) - y0
        sx = X + ends * (low + high) - u
        sxx = XX + ends * (low * low + high * high) - u * u
        sy = s[0] + s[1] + s[3] - v
        sxy = s[2] + low * s[0] + high * s[3] - u * v
        change = abs(base + fit(n - 1, sx, sxx, sy, sxy, low == high, weight, goal) - theta)
        if change > most:
            most, row = change, i
        if error >= 0.0:
            moved = fit_variance(n - 1, sx, sxx, sy, sxy, s[4] - v * v, low == high, weight, goal)
            widest = max(widest, abs(np.sqrt(moved) - error))
    return most, row, widest


@compiled
def centre(x: Floats, y: Floats, z: Floats, over: int, under: int, weight: float, target: float) -> tuple[float, float]:
    """θ and its standard error, the residuals summed one by one."""
    n = len(x)
    k = cut_rows(n, over, under)
    left, right = x[k], x[n - k - 1]
    x0, y0 = 0.5 * (left + right), 0.5 * (z[k] + z[n - k - 1])
    X, XX = middle_of(x, k, x0)
    s = blocks(x, y, k, z[k], z[n - k - 1], x0, y0)
    low, high, goal = left - x0, right - x0, target - weight * x0
    sx, sxx = X + k * (low + high), XX + k * (low * low + high * high)
    sy, sxy = s[0] + s[1] + s[3], s[2] + low * s[0] + high * s[3]
    theta = weight * y0 + fit(n, sx, sxx, sy, sxy, left == right, weight, goal)
    mean, spread = sx / n, sxx - sx / n * sx
    if n < 3 or left == right or spread <= 0.0:
        return theta, 0.0
    slope, squares, reach = (sxy - mean * sy) / spread, 0.0, goal - weight * mean
    for i in range(n):
        u, v = min(max(x[i], left), right) - x0, min(max(y[i], z[k]), z[n - k - 1]) - y0
        squares += (v - sy / n - slope * (u - mean)) ** 2
    return theta, float(np.sqrt(squares / (n - 2) * (weight * weight / n + reach * reach / spread)))


@compiled
def prepared(x: Floats, y: Floats, z: Floats, bounds: Floats, k: int) -> Setting:
    """The marks, and the sums over the old rows with y's cuts at each of its marks; all less the origins x0 and y0."""
    a, b, c, d = marks(x, k, bounds[0], bounds[1])
    e, f, g, h = marks(z, k, bounds[2], bounds[3])
    x0, y0 = 0.5 * (b + c), 0.5 * (f + g)
    lower = blocks(x, y, k, e, g, x0, y0)
    inner = blocks(x, y, k, f, g, x0, y0)
    upper = blocks(x, y, k, f, h, x0, y0)
    mx, my = (a - x0, b - x0, c - x0, d - x0), (e - y0, f - y0, g - y0, h - y0)
    return (x0, y0), mx, my, middle_of(x, k, x0), lower, inner, upper


@compiled
def added(
    n: int, k: int, here: Setting, weight: float, target: float, theta: float, tried: Tried
) -> tuple[float, float, float]:
    """The largest |Δθ| of an addition, its x and its y: of those tried, or without any of all."""
    (x0, y0), mx, my, middle, lower, inner, upper = here
    goal, base, flat, exact = target - weight * x0, weight * y0 - theta, mx[1] == mx[2], len(tried[0]) == 0
    most, at, by = -1.0, 0.0, 0.0
    for j in range(4 if exact else len(tried[1])):
        u = my[j] if exact else min(max(tried[1][j] - y0, my[0]), my[3])
        v = at_y(k, u, my, lower, inner, upper)
        sy = v[0] + v[1] + v[3] + u
        for piece in range(3):
            sums = at_x(k, piece, mx, middle, v, u)
            G, GG, M, P, Q = sums
            turns = turning(n + 1, sums, sy, weight, goal) if exact and not flat else (np.nan, np.nan)
            for i in range(4 if exact else len(tried[0])):
                ends_or_turns = mx[piece + i % 2] if i < 2 else turns[i % 2]
                s = ends_or_turns if exact else min(max(tried[0][i] - x0, mx[0]), mx[3])
                if mx[piece] <= s <= mx[piece + 1]:
                    level = flat and s == mx[1]
                    change = abs(base + fit(n + 1, G + M * s, GG + M * s * s, sy, P + Q * s, level, weight, goal))
                    if change > most:
                        most, at, by = change, s + x0, u + y0
    return most, at, by


@compiled
def added_error(
    n: int, k: int, here: Setting, weight: float, target: float, error: float, tried: Tried, points: int
) -> float:
    """The largest change of the standard error by an addition, of those tried, or without any of a grid of `points` in
    each piece of each variable."""
    (x0, y0), mx, my, middle, lower, inner, upper = here
    goal, flat, exact = target - weight * x0, mx[1] == mx[2], len(tried[0]) == 0
    least, largest = np.inf, 0.0
    for j in range(3 * points if exact else len(tried[1])):
        u = on_grid(my, j // points, j % points, points) if exact else min(max(tried[1][j] - y0, my[0]), my[3])
        v = at_y(k, u, my, lower, inner, upper)
        sy, syy = v[0] + v[1] + v[3] + u, v[4] + u * u
        for piece in range(3):
            G, GG, M, P, Q = at_x(k, piece, mx, middle, v, u)
            for i in range(points if exact else len(tried[0])):
                s = on_grid(mx, piece, i, points) if exact else min(max(tried[0][i] - x0, mx[0]), mx[3])
                if exact and flat and mx[0] < s < mx[3]:
                    s = mx[1]  # elsewhere between them it is as at the ends, and ill-conditioned
                if mx[piece] <= s <= mx[piece + 1]:
                    level, sx, sxx = flat and s == mx[1], G + M * s, GG + M * s * s
                    moved = fit_variance(n + 1, sx, sxx, sy, P + Q * s, syy, level, weight, goal)
                    least, largest = min(least, moved), max(largest, moved)
    return float(max(error - np.sqrt(least), np.sqrt(largest) - error))


@compiled
def on_grid(z: Marks, piece: int, step: int, points: int) -> float:
    """One of `points` values from mark to mark."""
    return z[piece + 1] if step == points - 1 else z[piece] + (z[piece + 1] - z[piece]) * (step / (points - 1))


@compiled
def extended(
    x: Floats,
    y: Floats,
    z: Floats,
    bounds: Floats,
    k: int,
    weight: float,
    target: float,
    theta: float,
    error: float,
    tried: Tried,
    points: int,
) -> tuple[float, float, float, float]:
    """The largest |Δθ| of an addition with its x and y, and the largest change of the standard error; `k` rows are cut
    at each side of n + 1."""
    n = len(x)
    mx, mz = marks(x, k, bounds[0], bounds[1]), marks(z, k, bounds[2], bounds[3])
    if 2 * k == n:  # every x becomes the median, every y too, and that moves from the one mark to the other
        low, high = mz[2], mz[1]
        if len(tried[1]):
            low, high = min(max(tried[1][0], mz[2]), mz[1]), min(max(tried[1][-1], mz[2]), mz[1])
        down, up = abs(weight * low - theta), abs(weight * high - theta)
        return max(down, up), mx[2], (low if down > up else high), error
    wild, wild_error = unbounded(y, k, mx, mz, weight, target)
    here = prepared(x, y, z, bounds, k)
    most, at, by = added(n, k, here, weight, target, theta, tried)
    if wild:
        most, at, by = np.inf, mx[1], mz[3]
    wider = 0.0
    if error >= 0.0:
        wider = np.inf if wild_error else added_error(n, k, here, weight, target, error, tried, points)
    return most, at, by, wider


@compiled
def cells(
    x: Floats,
    y: Floats,
    starts: Int64s,
    bounds: Floats,
    over: int,
    under: int,
    weight: float,
    target: float,
    add: bool,
    tried: Tried,
    points: int,
) -> tuple[Floats, Floats]:
    """By cell θ, its sensitivity, the error, its sensitivity; and of the worst observation added, x, y. `points` = 0:
    without standard errors."""
    out, worst = np.empty((4, len(starts) - 1)), np.empty((len(starts) - 1, 3))
    empty = weight * 0.5 * (bounds[2] + bounds[3])
    longest = 0
    for j in range(len(starts) - 1):
        longest = max(longest, starts[j + 1] - starts[j])
    scratch = np.empty(longest)
    for j in range(len(starts) - 1):
        cx, cy = x[starts[j] : starts[j + 1]], y[starts[j] : starts[j + 1]]
        n = len(cx)
        z = scratch[:n]
        z[:] = cy
        z.sort()
        theta, spread = centre(cx, cy, z, over, under, weight, target)
        own = spread if points else -1.0
        if n == 1:
            most, row, widest = abs(empty - theta), 0, 0.0
        else:
            most, row, widest = removed(cx, cy, z, over, under, weight, target, theta, own)
        worst[j] = (0.0, cx[row], cy[row])
        if add:
            k = cut_rows(n + 1, over, under)
            change, at, by, wider = extended(cx, cy, z, bounds, k, weight, target, theta, own, tried, points)
            widest = max(widest, wider)
            if change > most:
                most = change
                worst[j] = (1.0, at, by)
        out[0, j], out[1, j], out[2, j], out[3, j] = theta, most, spread, widest
    return out, worst
