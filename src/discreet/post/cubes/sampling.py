"""Sampling variances from protected numbers: noisy replicate deviations, and a generalised variance function.

Replication gives var = (c/R) Σ_r (θ_r − θ)², an exact confidential number (Li & Krenzke 2020, §3.4). Here it is
estimated from deviations with noise of known variance, by cell, or through var(x) = a·x² + b·x fitted to a few
protected tables. Proofs: sampling.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from math import inf, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import ParameterError
from discreet.post.cubes.margins import Floats
from discreet.post.laplace_sum import check_level, expansion
from discreet.post.portable import inner

Basis = Literal["both", "a", "b", "bound", "nothing"]
Spread = Callable[[Floats], Floats]

LAPLACE_EXCESS = 3.0  # excess kurtosis, κ₄/σ⁴, of Laplace noise; sums have less
ROUNDS = 100  # of reweighting, at most; about ten suffice
SETTLED = 1e-10  # relative change of both coefficients at convergence
RELATIVE = 4.0  # upper bound on the squared relative deviation from the curve in the weights
SIGNIFICANT = 3.0  # standard errors of a, above which it is fitted: below, it would only make b imprecise
LARGEST = 1e60  # input of a fit: far beyond any table, and its fourth power is still finite
DETACHED = 1e-9  # determinant over product of the diagonal, below which a and b are not identified


def replicate_variance(deviations: ArrayLike, *, factor: float, noise: ArrayLike) -> Floats:
    """v̂ = (c/R) Σ_r d̃_r² − c·s², unbiased for (c/R) Σ_r d_r²; it may be negative (sampling.md).

    `deviations` are (…, R); `factor` is c (4 for successive differences); `noise` is the variance s² of each d̃_r, for a
    sum of k cells k times that of one.

    >>> replicate_variance([[3.0, -1.0], [0.0, 0.0]], factor=4, noise=2.0).tolist()
    [12.0, -8.0]
    """
    d, s2 = np.asarray(deviations, np.float64), np.asarray(noise, np.float64)
    _check_replicates(d.shape[-1] if d.ndim else 0, factor, s2)
    variances: Floats = factor * np.mean(d**2, axis=-1) - factor * s2
    return variances


def replicate_noise(
    variances: ArrayLike, *, replicates: int, factor: float, noise: ArrayLike, fourth: ArrayLike = 0.0
) -> Floats:
    """Var(v̂ | d) = 4c·s²·v/R + c²(2s⁴ + κ₄)/R, with max(v̂, 0) for v (sampling.md).

    `fourth` is κ₄ of the noise of one d̃_r, for a sum of k cells k times that of one. Unbiased without truncation at 0;
    truncation makes it too large on average, never too small.
    """
    s2, v = np.asarray(noise, np.float64), np.maximum(np.asarray(variances, np.float64), 0.0)
    _check_replicates(replicates, factor, s2)
    variance: Floats = (4 * factor * s2 * v + factor**2 * (2 * s2**2 + np.asarray(fourth, np.float64))) / replicates
    return variance


@dataclass(frozen=True)
class Gvf:
    """var(x) = a·x² + b·x·(1 − x/total), that is relvar = a + b/x where no total is fixed.

    `basis` says what was fitted: both coefficients, one of them (the other is 0), a `bound` (the pairs show no positive
    variance: b is an upper limit at two standard deviations), or `nothing` (nothing to fit: 0).
    """

    a: float
    b: float
    total: float = inf
    basis: Basis = "both"
    cells: int = 0
    a_error: float = 0.0
    b_error: float = 0.0
    relative: float = 0.0  # standard deviation of v̂ about the curve, beyond its noise, over the curve

    def __post_init__(self) -> None:
        if not (0 <= self.a < inf and 0 <= self.b < inf and self.total > 0):
            raise ParameterError(
                "a and b must not be negative, and a total must be positive", where="gvf", do="fit with fit_gvf"
            )

    def at(self, x: ArrayLike) -> Floats:
        """The curve at known values; below 0 and above the total its value at that end."""
        clamped = np.clip(np.asarray(x, np.float64), 0.0, self.total)
        curve: Floats = self.a * clamped**2 + self.b * clamped * (1 - clamped / self.total)
        return curve

    def variance(self, x: ArrayLike) -> Floats:
        """The sampling variance to publish at a noisy x̃: the curve at max(x̃, 0) + b, about one more record.

        A cell without records has an estimate of 0 and, by the curve, an error of 0, though the population may have
        some. b is the variance that a record contributes over its weight: about its weight. Near x̃ = 0 the half-width
        at 95% is that of `interval`, whose allowance is (z²/4)·b.
        """
        return self.at(np.minimum(np.maximum(np.asarray(x, np.float64), 0.0) + self.b, self._middle(x)))

    def interval(
        self, x: ArrayLike, perturbation: ArrayLike, level: Fraction, fourth: ArrayLike = 0.0
    ) -> tuple[Floats, Floats]:
        """A confidence interval: all X ≥ 0 with (x̃ − X)² ≤ z²·(var(X) + s²), the variance at the estimand, not at the
        estimate (a score interval).

        With A = a − b/total these are the X between the roots of (1 − z²A)X² − (2x̃ + z²b)X + x̃² − z²s² (Wilson 1927).
        x̃ is clamped to 0 … total, which only widens. Where z²A ≥ 1 there is no upper limit. The curve's own standard
        error widens z as in Student's distribution.
        """
        clamped = np.clip(np.asarray(x, np.float64), 0.0, self.total)
        s2 = _variances("perturbation", perturbation)
        variance = self.variance(clamped) + s2
        z = _deviations(variance, level, fourth, self._relative_error(clamped, variance))
        bent = 1 - z**2 * (self.a - self.b / self.total)
        half = clamped + z**2 * self.b / 2
        # The discriminant is z²·(var(x̃) + (1 − z²A)·s² + (z·b/2)²). Below 0 the interval is 0 … ∞.
        root = np.sqrt(np.maximum(half**2 - bent * (clamped**2 - z**2 * s2), 0.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            high = np.where(bent > 0, (half + root) / bent, inf)
            low = np.where(half + root > 0, (clamped**2 - z**2 * s2) / (half + root), 0.0)
        return np.maximum(low, 0.0), np.minimum(high, self.total)

    def _relative_error(self, x: Floats, variance: Floats) -> Floats:
        """Squared relative error of the total variance, from those of a and b. Their covariance, which is negative, is
        left out."""
        more = x + self.b
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = ((self.a_error * more**2) ** 2 + (self.b_error * more) ** 2) / variance**2
        relative: Floats = np.nan_to_num(np.minimum(squared, 1.0), nan=0.0)
        return relative

    def _middle(self, x: ArrayLike) -> Floats:
        """The maximum of the curve, or x̃ itself beyond it: one more record never lowers the variance."""
        bend = self.b / self.total - self.a
        top = self.b / (2 * bend) if bend > 0 else inf
        return np.maximum(np.asarray(x, np.float64), top)


def fit_gvf(
    estimates: ArrayLike,
    variances: ArrayLike,
    *,
    noise_of_estimates: ArrayLike,
    spread_of_variances: ArrayLike | Spread,
    fourth_of_estimates: ArrayLike = 0.0,
    total: float = inf,
) -> Gvf:
    """Fits a ≥ 0 and b ≥ 0 by weighted least squares of v̂ on x² and x·(1 − x/total), corrected for the noise in x̃.

    `noise_of_estimates` is the variance s² of x̃, `spread_of_variances` that of v̂, or a function that gives it at the
    fitted variances: a spread evaluated at v̂ itself (`replicate_noise`) would overweight low v̂ and bias the curve
    down. The moments of x̃ are replaced by unbiased ones of x: x̃² − s², x̃³ − 3s²x̃, x̃⁴ − 6s²x̃² + 3s⁴ − κ₄. Pairs
    have the weight 1/(spread + (ρ·v)² + (2Ax + b)²s²) with the fitted curve v and its estimated relative error ρ,
    iterated to convergence. a stays 0 unless it is three standard errors above 0 beside b.
    """
    spread: Spread = spread_of_variances if callable(spread_of_variances) else _constant(spread_of_variances)
    least = spread(np.zeros(np.size(estimates)))
    x, v, s2, least, fourth = _pairs(estimates, variances, noise_of_estimates, least, fourth_of_estimates)
    if not total > 0:
        raise ParameterError("a total must be positive", where="total", do="leave it out if the design fixes none")
    across = max(float(np.abs(x).max(initial=0.0)), sqrt(s2.max(initial=0.0)))
    up = max(float(np.abs(v).max(initial=0.0)), sqrt(least.max(initial=0.0)))
    if min(across, up) < 1 / LARGEST:
        return _bound(x, v, s2, least, total)
    scaled = x / across, v / up, s2 / across**2, fourth / across**4
    fit = _Scaled(*scaled, lambda curve: spread(curve * up) / up**2, total / across).fitted()
    if fit.basis == "nothing":
        return _bound(x, v, s2, least, total)
    a, b = up / across**2, up / across
    return Gvf(fit.a * a, fit.b * b, total, fit.basis, len(x), fit.a_error * a, fit.b_error * b, fit.relative)


def standard_error(x: ArrayLike, sampling: Gvf | ArrayLike, perturbation: ArrayLike) -> Floats:
    """√(max(sampling, 0) + perturbation) of two variances; the first may be a variance function, evaluated at x̃.

    >>> standard_error([100.0, 0.0], [9.0, -1.0], 16.0).tolist()
    [5.0, 4.0]
    >>> standard_error([100.0, 0.0], Gvf(a=0.0, b=10.0), 16.0).round(2).tolist()
    [33.41, 10.77]
    """
    variance = sampling.variance(x) if isinstance(sampling, Gvf) else np.asarray(sampling, np.float64)
    error: Floats = np.sqrt(np.maximum(variance, 0.0) + _variances("perturbation", perturbation))
    return error


def interval(x: ArrayLike, se: ArrayLike, level: Fraction, fourth: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """x̃ ± (z + e·κ₄/se⁴)·se, with κ₄ the fourth cumulant of the perturbation (Cornish and Fisher 1938).

    One cell's noise has heavier tails than the normal distribution: at 95% a plain z covers 93.7% of Laplace noise.
    """
    centre, error = np.asarray(x, np.float64), np.asarray(se, np.float64)
    half = _deviations(error**2, level, fourth) * error
    return centre - half, centre + half


def tail(variance: Floats, fourth: Floats | None) -> Floats:
    """The fourth cumulant to use for a sum of noise with this variance: the known one, or that of Laplace noise, which
    is also its upper bound."""
    most: Floats = LAPLACE_EXCESS * variance**2
    return most if fourth is None else np.minimum(fourth, most)


def round_outward(x: ArrayLike, low: Floats, high: Floats, unit: float) -> tuple[Floats, Floats]:
    """An interval about x̃ with limits rounded outward to whole units of noise and clamped at 0: no count or total is
    negative.

    Noise of few steps is far from normal: the sum of 100 cells at ε = 7 is exact with probability 0.84, and ± 0.7 at
    90% would cover no more than ± 0. Rounded outward, all levels that were computed hold (sampling.md).
    """
    centre = np.asarray(x, np.float64)
    below, above = (np.ceil((part / unit) * (1 - 1e-12)) * unit for part in (centre - low, high - centre))
    return np.maximum(centre - below, 0.0), np.maximum(centre + above, 0.0)


class Reliability(IntEnum):
    """Reliability classes of estimates."""

    RELIABLE = 0
    CAUTION = 1
    WITHHOLD = 2


def reliability(x: ArrayLike, se: ArrayLike, *, caution: float, withhold: float) -> NDArray[np.int8]:
    """The class of each cell by its coefficient of variation se/x̃: CAUTION above one threshold, WITHHOLD above the
    other. An x̃ ≤ 0 has no coefficient of variation and is WITHHOLD. From public numbers, so the classes are public.

    >>> reliability([100, 100, 100, -3], [5, 20, 60, 5], caution=0.15, withhold=0.3).tolist()
    [0, 1, 2, 2]
    """
    if not 0 < caution <= withhold:
        raise ParameterError(
            "thresholds must satisfy 0 < caution ≤ withhold", where="caution", do="pass, for example, 0.15 and 0.3"
        )
    value, error = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(se, np.float64))
    marks = np.full(value.shape, Reliability.RELIABLE, np.int8)
    marks[error > caution * value] = Reliability.CAUTION
    marks[(error > withhold * value) | (value <= 0)] = Reliability.WITHHOLD
    return marks


def _deviations(variance: Floats, level: Fraction, fourth: ArrayLike, relative_error: ArrayLike = 0.0) -> Floats:
    """The half-width in standard deviations: z + e·κ₄/variance² + (z³ + z)·u/8.

    The second term allows for the tails of the noise, with at most the excess of Laplace noise; below a level of 11/12,
    where it would narrow the interval, it is left out. The third is the leading correction of Student's distribution
    with 2/u degrees of freedom, u the squared relative error of the variance (Satterthwaite 1946).
    """
    check_level(level)
    z, e = expansion(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.nan_to_num(np.asarray(fourth, np.float64) / variance**2, nan=0.0, posinf=LAPLACE_EXCESS)
    wide: Floats = (
        z + max(e, 0.0) * np.clip(excess, 0.0, LAPLACE_EXCESS) + (z**3 + z) / 8 * np.asarray(relative_error, np.float64)
    )
    return wide


def _constant(given: ArrayLike) -> Spread:
    spread = np.asarray(given, np.float64)
    return lambda _: spread


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Pairs in units of the largest, so that nothing overflows and both coefficients have similar size."""

    x: Floats
    v: Floats
    s2: Floats
    fourth: Floats
    spread: Spread
    total: float

    def fitted(self) -> Gvf:
        """b alone; a too if it is significant beside b under the weights of b alone: weights that already follow an a
        would make it significant."""
        ratio = max(float(self.v.sum()), 1e-3) / max(float(np.maximum(self.x, 0).sum()), 1e-3)
        alone, weight = self._converged(Gvf(0.0, ratio, self.total, relative=1.0), threshold=inf)
        return alone if self._solved(weight, SIGNIFICANT).basis == "b" else self._converged(alone, threshold=0.0)[0]

    def _converged(self, fit: Gvf, threshold: float) -> tuple[Gvf, Floats]:
        """Iteratively reweighted until a and b converge, and the last weights."""
        near = np.maximum(self.x, np.sqrt(self.s2))  # where the curve is evaluated: a noisy 0 is not an exact one
        for _ in range(ROUNDS):
            curve = fit.at(near)
            spread = self.spread(curve)
            slope = (2 * (fit.a - fit.b / self.total) * near + fit.b) ** 2 * self.s2
            weight: Floats = 1 / np.maximum(spread + fit.relative**2 * curve**2 + slope, 1e-12)
            last, fit = fit, self._solved(weight, threshold)
            left = self.v - fit.b * self.x - (fit.a - fit.b / self.total) * (self.x**2 - self.s2)
            size = inner(weight, curve**2)
            beyond = inner(weight, left**2 - spread - slope) / size if size > 0 else 0.0
            fit = replace(fit, relative=float(np.sqrt(np.clip(beyond, 0.0, RELATIVE))))
            if fit.basis == "nothing" or (_close(last.a, fit.a) and _close(last.b, fit.b)):
                break
        return fit, weight

    def _solved(self, weight: Floats, threshold: float) -> Gvf:
        """min (a, b)·G·(a, b)ᵀ − 2h·(a, b)ᵀ over a, b ≥ 0; b alone if a is not `threshold` standard errors above 0."""
        x, s2 = self.x, self.s2
        second, third = x**2 - s2, x**3 - 3 * s2 * x
        power = x**4 - 6 * s2 * x**2 + 3 * s2**2 - self.fourth
        less = 1 / self.total  # x − x²/total, from x and x²
        aa, mixed, ha = inner(weight, power), inner(weight, third), inner(weight, self.v * second)
        ab = mixed - less * aa
        bb = inner(weight, second) - less * (mixed + ab)
        hb = inner(weight, self.v * x) - less * ha
        determinant, cells = aa * bb - ab**2, len(x)
        significant = False
        if aa > 0 and bb > 0 and determinant > DETACHED * aa * bb:
            a, b = (bb * ha - ab * hb) / determinant, (aa * hb - ab * ha) / determinant
            errors = sqrt(bb / determinant), sqrt(aa / determinant)
            significant = a > threshold * errors[0]
            if significant and b > 0:
                return Gvf(a, b, self.total, "both", cells, *errors)
        only_b, only_a = bb > 0 and hb > 0, aa > 0 and ha > 0
        if only_b and not (significant and only_a):
            return Gvf(0.0, hb / bb, self.total, "b", cells, b_error=1 / sqrt(bb))
        if only_a:
            return Gvf(ha / aa, 0.0, self.total, "a", cells, a_error=1 / sqrt(aa))
        return Gvf(0.0, 0.0, self.total, "nothing", cells)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= SETTLED * max(one, other)


def _bound(x: Floats, v: Floats, s2: Floats, spread: Floats, total: float) -> Gvf:
    """b = (Σv̂ + 2·√Σ spread)/Σx̃: an upper limit where the pairs show no positive variance. Σx̃ is taken as at least its
    noise."""
    most = float(v.sum() + 2 * np.sqrt(spread.sum()))
    size = max(float(x.sum()), float(np.sqrt(s2.sum())))
    if most <= 0 or size < 1 / LARGEST:
        return Gvf(0.0, 0.0, total, "nothing", len(x))
    return Gvf(0.0, most / size, total, "bound", len(x))


def _pairs(*columns: ArrayLike) -> list[Floats]:
    """Checked columns of equal length; the third and fourth are variances."""
    try:
        parts = np.broadcast_arrays(*(np.asarray(column, np.float64).reshape(-1) for column in columns))
    except ValueError as error:
        raise ParameterError(
            "the columns differ in length", where="pairs", do="pass one value per cell in each"
        ) from error
    variances = parts[2:4]  # a fourth cumulant may be negative
    if not all((np.abs(part) < LARGEST**2).all() for part in parts) or any((part < 0).any() for part in variances):
        raise ParameterError(
            "a value is not finite, or a noise variance is negative", where="pairs", do="leave that cell out"
        )
    return [np.ascontiguousarray(part) for part in parts]


def _variances(where: str, given: ArrayLike) -> Floats:
    variances = np.asarray(given, np.float64)
    if not np.isfinite(variances).all() or (variances < 0).any():
        raise ParameterError("a noise variance is negative or not finite", where=where, do="pass that of the noise")
    return variances


def _check_replicates(replicates: int, factor: float, noise: Floats) -> None:
    if replicates < 1:
        raise ParameterError("there are no replicates", where="deviations", do="pass an array (…, R) with R at least 1")
    if not 0 < factor < inf:
        raise ParameterError(
            "a replication factor must be positive and finite", where="factor", do="pass 4 for successive differences"
        )
    _variances("noise", noise)
