"""Real roots of polynomials of low degree in an interval: candidates of an exact maximum. Proof: sensitivity.md."""

from __future__ import annotations

import numpy as np

from discreet.methods.sensitivity.statistics import Floats
from discreet.noise.jit import compiled

DEGREE = 6  # at most
MOST = 2 * DEGREE + 2  # capacity of `out`: roots, double roots, the ends
ROUNDING = 2.0**-49  # Horner's error is at most 2·6·2⁻⁵³ of the sum of the terms' sizes
STEPS = 200  # of which at least half are bisections where Newton's are slow


@compiled
def horner(c: Floats, v: float) -> tuple[float, float, float]:
    """Σ c_k·v^k, its derivative, and Σ |c_k|·|v|^k, to which the rounding error is proportional."""
    value, slope, size = 0.0, 0.0, 0.0
    for k in range(len(c) - 1, -1, -1):
        slope = slope * v + value
        value = value * v + c[k]
        size = size * abs(v) + abs(c[k])
    return value, slope, size


@compiled
def _between(c: Floats, a: float, b: float, rising: bool) -> float:
    """The root between a and b, where the sign changes: Newton's steps that stay between, else bisection."""
    v, last = 0.5 * (a + b), b - a
    for step in range(STEPS):
        value, slope, _ = horner(c, v)
        if value == 0.0:
            return v
        if (value < 0.0) == rising:
            a = v
        else:
            b = v
        moved = v - value / slope if slope != 0.0 else a
        if not a < moved < b or (step % 4 == 3 and abs(moved - v) > 0.5 * last):
            moved = 0.5 * (a + b)
        last = abs(moved - v)
        if last <= 2.0**-52 * abs(moved) or not a < moved < b:
            return moved
        v = moved
    return v


@compiled
def real_roots(coefficients: Floats, low: float, high: float, out: Floats) -> int:
    """Write the roots in [low, high] of Σ c_k·v^k, of degree 6 or less, to `out`, ascending; returns their number.

    Between the roots of its derivative a polynomial is monotone: it has a root there only if its sign changes. So from
    the last derivative up to the polynomial itself. A point where a derivative vanishes and the polynomial is zero
    within rounding is a root as well: double roots are not lost.
    """
    degree = len(coefficients) - 1
    count, breaks, c = 0, np.empty(MOST + 2), np.empty(degree + 1)
    for order in range(degree - 1, -1, -1):
        for k in range(degree + 1 - order):  # the derivative of this order, over order!
            binomial = 1.0
            for i in range(order):
                binomial = binomial * (k + order - i) / (i + 1)
            c[k] = coefficients[k + order] * binomial
        part = c[: degree + 1 - order]
        breaks[0] = low
        breaks[1 : count + 1] = out[:count]
        breaks[count + 1] = high
        ends, count = count + 2, 0
        before, _, size = horner(part, low)
        if abs(before) <= ROUNDING * size:
            out[0], count = low, 1
        for j in range(1, ends):
            value, _, size = horner(part, breaks[j])
            if before < 0.0 < value or value < 0.0 < before:
                out[count] = _between(part, breaks[j - 1], breaks[j], before < 0.0)
                count += 1
            elif abs(value) <= ROUNDING * size:
                out[count] = breaks[j]
                count += 1
            before = value
    return count
