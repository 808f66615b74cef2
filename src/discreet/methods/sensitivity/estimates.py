"""Confidence intervals from protected estimates and public noise scales (after Chetty & Friedman 2019, Step 4; they
cover sampling and noise together). Proof: estimates.md.

θ̃ = θ̂ + L and s̃ = s + M: an estimate and its standard error, each with noise of a public scale. The error of θ̃ is
s·T + L, T of Student's distribution. The interval is θ̃ ± h with P(|s·T + L| ≤ h) = level. Where L is
wide enough compared with M, max(s̃, 0) is used for s; elsewhere P is averaged over s given s̃. T is Z/√V with V ~
χ²/df, so every term is the distribution of a normal variable plus L.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erf, erfc, exp, lgamma, pi, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.post.laplace_sum import check_level, expansion
from discreet.post.percentiles import Floats, Int64s

Distribution = Literal["laplace", "normal"]

NINETEEN_IN_TWENTY = Fraction(19, 20)
ENOUGH = 2.6  # ratio of the noise of θ̃ to that of s̃ from which on max(s̃, 0) is used for s: by simulation
LOWEST, HIGHEST = Fraction(1, 2), Fraction(99, 100)  # beyond, the mass that the quadrature omits would matter
MIXED = 14  # nodes in V
CUT = 11.0  # −ln of the mass that the quadrature in V omits
SPREAD = 8  # nodes in s on each side of s̃
TAIL = 12.0  # −ln of the density, relative to its peak, where the distribution of s given s̃ is truncated
CLOSE = 2.0**-12  # relative step after which h is wrong by its square
STEPS = 60  # Newton converges from below, mostly in 4; a limit that is not reached
LARGEST_DF = 10**6  # for larger ones the nodes are practically 1


@dataclass(frozen=True)
class Intervals:
    """One entry per cell."""

    low: Floats
    high: Floats
    error: Floats  # √(max(s̃, 0)² + Var L)


def noise_deviation(scale: Floats, distribution: Distribution) -> Floats:
    """The standard deviation of noise of a scale: √2·b for Laplace(b), the scale itself for the normal distribution."""
    factor: Floats = scale * (sqrt(2) if _is_laplace(distribution) else 1.0)
    return factor


def intervals(
    estimate: Floats,
    error: Floats,
    scale: Floats,
    error_scale: Floats,
    df: Int64s,
    distribution: Distribution,
    level: Fraction = NINETEEN_IN_TWENTY,
) -> Intervals:
    """θ̃ ± h and the total standard error √(max(s̃, 0)² + Var L), cell by cell.

    `estimate` is θ̃ and `error` is s̃, which may be negative; `scale` and `error_scale` are those of their noise: b of
    Laplace(b), or a standard deviation; `error_scale` is 0 where s is public. `df` are the degrees of freedom of s.
    """
    check_level(level)
    if not LOWEST <= level <= HIGHEST:
        raise ParameterError("a level outside 1/2 … 99/100", where="level", do="try Fraction(19, 20)")
    cells = np.broadcast_arrays(estimate, error, scale, error_scale)
    theta, s, b, c = (np.ascontiguousarray(column, np.float64) for column in cells)
    degrees = np.ascontiguousarray(np.broadcast_to(np.asarray(df), theta.shape))
    _check(theta, s, b, c, degrees)
    distinct, row = np.unique(np.minimum(degrees, LARGEST_DF), return_inverse=True)
    roots, weights = student_nodes(distinct)
    nodes, node_weights = np.polynomial.legendre.leggauss(SPREAD)
    error_noise = np.where(b >= ENOUGH * c, 0.0, c)
    half, (start, _) = np.empty_like(theta), expansion(level)
    rules = roots, weights, nodes, node_weights
    _half_widths(s, b, error_noise, row, *rules, _is_laplace(distribution), float(level), start, half)
    return Intervals(theta - half, theta + half, np.hypot(np.maximum(s, 0.0), noise_deviation(b, distribution)))


def student_nodes(df: Int64s) -> tuple[Floats, Floats]:
    """1/√V and weights for V ~ χ²/df, one row for each df: E f(V) ≈ Σ w·f(V), the trapezoidal rule in x = ln V.

    The density of x is a·e^(df·(x − e^x)/2), ln a = (df/2)·ln(df/2) − ln Γ(df/2). The rule ends where it, times √V as
    f(V) falls towards V = 0, is e^−CUT of its value at 0; the mass beyond counts as not covered.
    """
    degrees = np.asarray(df, np.float64)[:, None]
    left, right = _fallen(degrees, -2 * CUT), _fallen(degrees, 2 * CUT)
    x = left + (right - left) * np.linspace(0, 1, MIXED)
    log_a = degrees / 2 * np.log(degrees / 2) - np.array([lgamma(d / 2) for d in degrees[:, 0]])[:, None]
    density = np.exp(log_a + degrees / 2 * (x - np.exp(x)))
    return np.exp(-x / 2), density * (right - left) / (MIXED - 1)


def _fallen(degrees: Floats, end: float) -> Floats:
    """The x between 0 and `end` at which √V times the density of x = ln V is e^−CUT of its value at 0: bisection."""
    near, far = np.zeros_like(degrees), np.full_like(degrees, end)
    for _ in range(60):
        x = (near + far) / 2
        inside = (degrees * (np.exp(x) - 1 - x) - x) / 2 < CUT
        near, far = np.where(inside, x, near), np.where(inside, far, x)
    return far


def _is_laplace(distribution: Distribution) -> bool:
    if distribution not in ("laplace", "normal"):
        raise ParameterError(
            "noise is laplace or normal", where="distribution", do="name the distribution of the noise"
        )
    return distribution == "laplace"


def _check(theta: Floats, s: Floats, b: Floats, c: Floats, df: NDArray[np.generic]) -> None:
    if theta.ndim != 1 or not np.issubdtype(df.dtype, np.integer):
        raise ParameterError(
            "not one number per cell, or degrees of freedom are not integers", where="estimates", do="give arrays"
        )
    if not (np.isfinite(theta).all() and np.isfinite(s).all()):
        raise ParameterError("a protected number is not finite", where="estimates", do="omit the cell")
    if not (np.isfinite(b).all() and np.isfinite(c).all() and (b > 0).all() and (c >= 0).all()):
        raise ParameterError("a scale of noise is not positive", where="scale", do="give the scales of the noise")
    if df.size and int(df.min()) < 1:
        raise ParameterError("degrees of freedom below 1", where="df", do="publish no interval for such a small cell")


@compiled
def _half_widths(
    s: Floats,
    b: Floats,
    c: Floats,
    row: Int64s,
    roots: Floats,
    weights: Floats,
    nodes: Floats,
    node_weights: Floats,
    laplace: bool,
    level: float,
    start: float,
    half: Floats,
) -> None:
    """h of every cell, by Newton from P and its density. P is concave in h, so iterates converge from below."""
    values, masses = np.empty(2 * SPREAD), np.empty(2 * SPREAD)
    for cell in range(s.size):
        used = _given(s[cell], c[cell], laplace, nodes, node_weights, values, masses)
        noise, mixed, mix = b[cell], roots[row[cell]], weights[row[cell]]
        h = start * sqrt(max(s[cell], 0.0) ** 2 + 2 * noise**2)
        for _ in range(STEPS):
            inside, density = _inside(h, noise, laplace, values[:used], masses[:used], mixed, mix)
            step = (level - inside) / density if density > 0.0 else -h
            step = max(step, -0.75 * h)
            h += step
            if abs(step) <= CLOSE * h:
                break
        half[cell] = h


@compiled
def _given(
    s: float, c: float, laplace: bool, nodes: Floats, node_weights: Floats, values: Floats, masses: Floats
) -> int:
    """Values of the standard error with their masses given s̃, for a flat prior on s ≥ 0: Gauss–Legendre nodes on
    either side of s̃, where the Laplace density has its kink. Without noise max(s̃, 0) itself."""
    peak = max(s, 0.0)
    if laplace:
        low, high = max(peak - TAIL * c, 0.0), peak + TAIL * c
    else:
        low, high = max(peak - sqrt(2 * TAIL) * c, 0.0), s + sqrt((peak - s) ** 2 + 2 * TAIL * c**2)
    used, total = 0, 0.0
    for side in range(2):
        first, last = (low, peak) if side == 0 else (peak, high)
        if last <= first:
            continue
        for i in range(nodes.size):
            x = first + (last - first) * (nodes[i] + 1) / 2
            away, nearest = abs(x - s) / c, abs(peak - s) / c
            density = exp(nearest - away) if laplace else exp((nearest**2 - away**2) / 2)
            values[used] = x
            masses[used] = density * node_weights[i] * (last - first)
            total += masses[used]
            used += 1
    if used == 0:
        values[0], masses[0] = peak, 1.0
        return 1
    for i in range(used):
        masses[i] /= total
    return used


@compiled
def _inside(
    h: float, b: float, laplace: bool, values: Floats, masses: Floats, roots: Floats, weights: Floats
) -> tuple[float, float]:
    """P(|s·T + L| ≤ h) and its derivative."""
    inside, density = 0.0, 0.0
    for i in range(values.size):
        for k in range(roots.size):
            sigma = values[i] * roots[k]
            p, d = _laplace_inside(h, sigma, b) if laplace else _normal_inside(h, sqrt(sigma**2 + b**2))
            inside += masses[i] * weights[k] * p
            density += masses[i] * weights[k] * d
    return inside, density


@compiled
def _normal_inside(h: float, sigma: float) -> tuple[float, float]:
    """P(|σZ| ≤ h) = erf(h/(σ√2)), and twice the density at h."""
    z = h / sigma
    return erf(z / sqrt(2.0)), sqrt(2 / pi) / sigma * exp(-z * z / 2)


@compiled
def _laplace_inside(h: float, sigma: float, b: float) -> tuple[float, float]:
    """P(|σZ + b·Laplace| ≤ h) = erf(z/√2) − (q(−z) − q(z))/2 with z = h/σ, a = σ/b and
    q(z) = e^(a²/2 + az)·erfc((a + z)/√2); twice the density at h is (q(−z) + q(z))/(2b)."""
    a = sigma / b
    if a < 1e-4:  # to the second order in a
        far = exp(-h / b) * (1 + a * a / 2)
        return 1 - far, far / b
    z = h / sigma
    near, far = _tilted(a, -z), _tilted(a, z)
    return erf(z / sqrt(2.0)) - (near - far) / 2, (near + far) / (2 * b)


@compiled
def _tilted(a: float, z: float) -> float:
    """e^(a²/2 + az)·erfc((a + z)/√2); where erfc underflows, by the first terms of its expansion."""
    x = (a + z) / sqrt(2.0)
    if x < 20.0:
        return exp(a * a / 2 + a * z) * erfc(x)
    return exp(-z * z / 2) / (x * sqrt(pi)) * (1 - 0.5 / (x * x) + 0.75 / x**4)
