"""Sampling variances from protected numbers: replicate deviations, and a generalised variance function.

Replication gives var = (c/R) Σ_r (θ_r − θ)², an exact confidential number (002, §3.4). Here it is estimated from
deviations that carry noise of a known variance, cell by cell, or through var(x) = a·x² + b·x fitted on a few protected
tables. Proofs: sampling.md.
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

LAPLACE_EXCESS = 3.0  # fourth cumulant over squared variance; sums have less, and rare lumps of noise need no more
ROUNDS = 100  # of reweighting; ten or so settle it
SETTLED = 1e-10  # relative change of both coefficients
RELATIVE = 4.0  # largest squared relative deviation from the curve that the weights believe
SHOWN = 3.0  # standard errors of a from which it is fitted: below, it would only make b unsure
LARGEST = 1e60  # of what goes into a fit: far beyond any table, and its fourth power is still a number
DETACHED = 1e-9  # determinant over product of the diagonal, below which a and b are not told apart


def replicate_variance(deviations: ArrayLike, *, factor: float, noise: ArrayLike) -> Floats:
    """v̂ = (c/R) Σ_r d̃_r² − c·s², unbiased for (c/R) Σ_r d_r²; it may be negative (sampling.md).

    `deviations` are (…, R); `factor` is c (4 for successive differences); `noise` is the variance s² of each d̃_r, which
    for a sum of k cells is k times that of one.

    >>> replicate_variance([[3.0, -1.0], [0.0, 0.0]], factor=4, noise=2.0).tolist()
    [12.0, -8.0]
    """
    found, s2 = np.asarray(deviations, np.float64), np.asarray(noise, np.float64)
    _check_replicates(found.shape[-1] if found.ndim else 0, factor, s2)
    variances: Floats = factor * np.mean(found**2, axis=-1) - factor * s2
    return variances


def replicate_noise(
    variances: ArrayLike, *, replicates: int, factor: float, noise: ArrayLike, fourth: ArrayLike = 0.0
) -> Floats:
    """Var(v̂ | d) = 4c·s²·v/R + c²(2s⁴ + κ₄)/R, with max(v̂, 0) for v (sampling.md).

    `fourth` is κ₄ of the noise of one d̃_r, for a sum of k cells k times that of one. Without the cut at zero this
    would be unbiased; the cut makes it too large on average, never too small.
    """
    s2, v = np.asarray(noise, np.float64), np.maximum(np.asarray(variances, np.float64), 0.0)
    _check_replicates(replicates, factor, s2)
    own: Floats = (4 * factor * s2 * v + factor**2 * (2 * s2**2 + np.asarray(fourth, np.float64))) / replicates
    return own


@dataclass(frozen=True)
class Gvf:
    """var(x) = a·x² + b·x·(1 − x/total), that is relvar = a + b/x where no total is fixed.

    `basis` says what was fitted: both coefficients, one of them (the other is 0), a `bound` (no pair told of any
    variance: b is the largest that two standard deviations allow), or `nothing` (there was nothing to fit: 0).
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
            raise ParameterError("a and b are not negative, a total is positive", where="gvf", do="fit with fit_gvf")

    def at(self, x: ArrayLike) -> Floats:
        """The curve at known values; below 0 and beyond the total it is that at the end."""
        inside = np.clip(np.asarray(x, np.float64), 0.0, self.total)
        curve: Floats = self.a * inside**2 + self.b * inside * (1 - inside / self.total)
        return curve

    def variance(self, x: ArrayLike) -> Floats:
        """The sampling variance to publish at a noisy x̃: the curve at max(x̃, 0) + b, one record more than was seen.

        A cell without records has an estimate of 0 and, by the curve, an error of 0; yet the population may have
        some. b is the variance that a record brings over its weight: about its weight. Near x̃ = 0 the half-width at
        19 in 20 is that of `interval`, whose allowance is (z²/4)·b.
        """
        return self.at(np.minimum(np.maximum(np.asarray(x, np.float64), 0.0) + self.b, self._middle(x)))

    def interval(
        self, x: ArrayLike, perturbation: ArrayLike, level: Fraction, fourth: ArrayLike = 0.0
    ) -> tuple[Floats, Floats]:
        """All X ≥ 0 with (x̃ − X)² ≤ z²·(var(X) + s²): the variance is taken at the value sought, not at the noisy one.

        With A = a − b/total these are the X between the roots of (1 − z²A)X² − (2x̃ + z²b)X + x̃² − z²s² (Wilson 1927).
        x̃ outside 0 … total counts as the end, which only widens. Where z²A ≥ 1 there is no upper end. The curve's own
        standard error widens z as Student's distribution does.
        """
        seen = np.clip(np.asarray(x, np.float64), 0.0, self.total)
        s2 = _variances("perturbation", perturbation)
        whole = self.variance(seen) + s2
        z = _deviations(whole, level, fourth, self._unsure(seen, whole))
        bent = 1 - z**2 * (self.a - self.b / self.total)
        half = seen + z**2 * self.b / 2
        # The discriminant is z²·(var(x̃) + (1 − z²A)·s² + (z·b/2)²). Below 0 all X ≥ 0 are inside: the ends are 0, ∞.
        root = np.sqrt(np.maximum(half**2 - bent * (seen**2 - z**2 * s2), 0.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            high = np.where(bent > 0, (half + root) / bent, inf)
            low = np.where(half + root > 0, (seen**2 - z**2 * s2) / (half + root), 0.0)
        return np.maximum(low, 0.0), np.minimum(high, self.total)

    def _unsure(self, x: Floats, whole: Floats) -> Floats:
        """Squared relative error of a whole variance, from those of a and b: their covariance, which is negative, is
        left out."""
        more = x + self.b
        with np.errstate(divide="ignore", invalid="ignore"):
            found = ((self.a_error * more**2) ** 2 + (self.b_error * more) ** 2) / whole**2
        relative: Floats = np.nan_to_num(np.minimum(found, 1.0), nan=0.0)
        return relative

    def _middle(self, x: ArrayLike) -> Floats:
        """Where the curve is highest, or x̃ itself beyond that: one record more never lowers a variance."""
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
    """a ≥ 0 and b ≥ 0 by weighted least squares of v̂ on x² and x·(1 − x/total), corrected for the noise in x̃.

    `noise_of_estimates` is the variance s² of x̃, `spread_of_variances` that of v̂, or a function that gives it at the
    fitted variances: a spread taken at v̂ itself (`replicate_noise`) would weigh low ones more, and bend the curve down.
    The moments of x̃ are replaced by unbiased ones of x: x̃² − s², x̃³ − 3s²x̃, x̃⁴ − 6s²x̃² + 3s⁴ − κ₄. A pair weighs
    1/(spread + (ρ·v)² + (2Ax + b)²s²), v the fitted curve and ρ its estimated relative error, until both settle.
    a stays 0 unless it shows beside b, by three standard errors.
    """
    given: Spread = spread_of_variances if callable(spread_of_variances) else _constant(spread_of_variances)
    least = given(np.zeros(np.size(estimates)))
    x, v, s2, least, fourth = _pairs(estimates, variances, noise_of_estimates, least, fourth_of_estimates)
    if not total > 0:
        raise ParameterError("a total is positive", where="total", do="leave it out if none is fixed")
    across = max(float(np.abs(x).max(initial=0.0)), sqrt(s2.max(initial=0.0)))
    up = max(float(np.abs(v).max(initial=0.0)), sqrt(least.max(initial=0.0)))
    if min(across, up) < 1 / LARGEST:
        return _bound(x, v, s2, least, total)
    scaled = x / across, v / up, s2 / across**2, fourth / across**4
    fit = _Scaled(*scaled, lambda curve: given(curve * up) / up**2, total / across).fitted()
    if fit.basis == "nothing":
        return _bound(x, v, s2, least, total)
    a, b = up / across**2, up / across
    return Gvf(fit.a * a, fit.b * b, total, fit.basis, len(x), fit.a_error * a, fit.b_error * b, fit.relative)


def standard_error(x: ArrayLike, sampling: Gvf | ArrayLike, perturbation: ArrayLike) -> Floats:
    """√(max(sampling, 0) + perturbation), of two variances; the first may be the curve that gives it at x̃.

    >>> standard_error([100.0, 0.0], [9.0, -1.0], 16.0).tolist()
    [5.0, 4.0]
    >>> standard_error([100.0, 0.0], Gvf(a=0.0, b=10.0), 16.0).round(2).tolist()
    [33.41, 10.77]
    """
    variance = sampling.variance(x) if isinstance(sampling, Gvf) else np.asarray(sampling, np.float64)
    error: Floats = np.sqrt(np.maximum(variance, 0.0) + _variances("perturbation", perturbation))
    return error


def interval(x: ArrayLike, se: ArrayLike, level: Fraction, fourth: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """x̃ ± (z + e·κ₄/se⁴)·se, κ₄ the fourth cumulant of the perturbation (Cornish and Fisher 1938).

    One cell's noise has longer tails than the normal distribution: at 19 in 20 a plain z covers 93.7 % of Laplace noise.
    """
    centre, error = np.asarray(x, np.float64), np.asarray(se, np.float64)
    half = _deviations(error**2, level, fourth) * error
    return centre - half, centre + half


def tail(variance: Floats, fourth: Floats | None) -> Floats:
    """The fourth cumulant to reckon with, of a sum of noise with this variance: what it is known to be, or that of
    Laplace noise; and never more than that."""
    most: Floats = LAPLACE_EXCESS * variance**2
    return most if fourth is None else np.minimum(fourth, most)


def round_outward(x: ArrayLike, low: Floats, high: Floats, unit: float) -> tuple[Floats, Floats]:
    """An interval about x̃ whose ends are whole units of noise away, cut at 0: no count and no total is negative.

    Noise of few steps is no normal distribution: of 100 cells at ε = 7 the sum is right with probability 0.84, and ± 0.7 at 9 in
    10 would say no more than ± 0. Rounded outwards every level holds (sampling.md).
    """
    centre = np.asarray(x, np.float64)
    below, above = (np.ceil((part / unit) * (1 - 1e-12)) * unit for part in (centre - low, high - centre))
    return np.maximum(centre - below, 0.0), np.maximum(centre + above, 0.0)


class Reliability(IntEnum):
    """How an estimate may be used."""

    RELIABLE = 0
    CAUTION = 1
    WITHHOLD = 2


def reliability(x: ArrayLike, se: ArrayLike, *, caution: float, withhold: float) -> NDArray[np.int8]:
    """The mark of each cell by its coefficient of variation se/x̃: CAUTION above one threshold, WITHHOLD above the
    other. An x̃ ≤ 0 has no such coefficient and is WITHHOLD. Of public numbers, so the marks are public.

    >>> reliability([100, 100, 100, -3], [5, 20, 60, 5], caution=0.15, withhold=0.3).tolist()
    [0, 1, 2, 2]
    """
    if not 0 < caution <= withhold:
        raise ParameterError("thresholds are not 0 < caution ≤ withhold", where="caution", do="try 0.15 and 0.3")
    value, error = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(se, np.float64))
    marks = np.full(value.shape, Reliability.RELIABLE, np.int8)
    marks[error > caution * value] = Reliability.CAUTION
    marks[(error > withhold * value) | (value <= 0)] = Reliability.WITHHOLD
    return marks


def _deviations(variance: Floats, level: Fraction, fourth: ArrayLike, unsure: ArrayLike = 0.0) -> Floats:
    """How many standard deviations wide: z + e·κ₄/variance² + (z³ + z)·u/8.

    The second term is for the tails of the noise, with the excess of Laplace noise at most; below 11 in 12, where it
    would make the interval narrower, it is left out. The third is the first of
    Student's distribution with 2/u degrees of freedom, u the squared relative error of the variance (Satterthwaite 1946).
    """
    check_level(level)
    z, e = expansion(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.nan_to_num(np.asarray(fourth, np.float64) / variance**2, nan=0.0, posinf=LAPLACE_EXCESS)
    wide: Floats = (
        z + max(e, 0.0) * np.clip(excess, 0.0, LAPLACE_EXCESS) + (z**3 + z) / 8 * np.asarray(unsure, np.float64)
    )
    return wide


def _constant(given: ArrayLike) -> Spread:
    spread = np.asarray(given, np.float64)
    return lambda _: spread


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Pairs in units of the largest, so that nothing overflows and the two coefficients are alike in size."""

    x: Floats
    v: Floats
    s2: Floats
    fourth: Floats
    spread: Spread
    total: float

    def fitted(self) -> Gvf:
        """b alone; a too if it shows beside it, by the weights that b alone gives: weights that already follow an a
        would find it."""
        ratio = max(float(self.v.sum()), 1e-3) / max(float(np.maximum(self.x, 0).sum()), 1e-3)
        alone, weight = self._settled(Gvf(0.0, ratio, self.total, relative=1.0), shown=inf)
        return alone if self._solved(weight, SHOWN).basis == "b" else self._settled(alone, shown=0.0)[0]

    def _settled(self, fit: Gvf, shown: float) -> tuple[Gvf, Floats]:
        """Reweighted until a and b change no more, and the last weights."""
        near = np.maximum(self.x, np.sqrt(self.s2))  # where to take the curve: a noisy zero is not a sure one
        for _ in range(ROUNDS):
            curve = fit.at(near)
            spread = self.spread(curve)
            slope = (2 * (fit.a - fit.b / self.total) * near + fit.b) ** 2 * self.s2
            weight: Floats = 1 / np.maximum(spread + fit.relative**2 * curve**2 + slope, 1e-12)
            last, fit = fit, self._solved(weight, shown)
            left = self.v - fit.b * self.x - (fit.a - fit.b / self.total) * (self.x**2 - self.s2)
            size = inner(weight, curve**2)
            beyond = inner(weight, left**2 - spread - slope) / size if size > 0 else 0.0
            fit = replace(fit, relative=float(np.sqrt(np.clip(beyond, 0.0, RELATIVE))))
            if fit.basis == "nothing" or (_close(last.a, fit.a) and _close(last.b, fit.b)):
                break
        return fit, weight

    def _solved(self, weight: Floats, shown: float) -> Gvf:
        """min (a, b)·G·(a, b)ᵀ − 2h·(a, b)ᵀ over a, b ≥ 0; b alone if a is not `shown` standard errors above 0."""
        x, s2 = self.x, self.s2
        second, third = x**2 - s2, x**3 - 3 * s2 * x
        power = x**4 - 6 * s2 * x**2 + 3 * s2**2 - self.fourth
        less = 1 / self.total  # x − x²/total, from x and x²
        aa, mixed, ha = inner(weight, power), inner(weight, third), inner(weight, self.v * second)
        ab = mixed - less * aa
        bb = inner(weight, second) - less * (mixed + ab)
        hb = inner(weight, self.v * x) - less * ha
        determinant, cells = aa * bb - ab**2, len(x)
        showing = False
        if aa > 0 and bb > 0 and determinant > DETACHED * aa * bb:
            a, b = (bb * ha - ab * hb) / determinant, (aa * hb - ab * ha) / determinant
            errors = sqrt(bb / determinant), sqrt(aa / determinant)
            showing = a > shown * errors[0]
            if showing and b > 0:
                return Gvf(a, b, self.total, "both", cells, *errors)
        only_b, only_a = bb > 0 and hb > 0, aa > 0 and ha > 0
        if only_b and not (showing and only_a):
            return Gvf(0.0, hb / bb, self.total, "b", cells, b_error=1 / sqrt(bb))
        if only_a:
            return Gvf(ha / aa, 0.0, self.total, "a", cells, a_error=1 / sqrt(aa))
        return Gvf(0.0, 0.0, self.total, "nothing", cells)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= SETTLED * max(one, other)


def _bound(x: Floats, v: Floats, s2: Floats, spread: Floats, total: float) -> Gvf:
    """b = (Σv̂ + 2·√Σ spread)/Σx̃: the most that the pairs allow, when they tell of no variance. Σx̃ counts as no less
    than its noise."""
    most = float(v.sum() + 2 * np.sqrt(spread.sum()))
    size = max(float(x.sum()), float(np.sqrt(s2.sum())))
    if most <= 0 or size < 1 / LARGEST:
        return Gvf(0.0, 0.0, total, "nothing", len(x))
    return Gvf(0.0, most / size, total, "bound", len(x))


def _pairs(*columns: ArrayLike) -> list[Floats]:
    """Columns of one length; the third and fourth are variances."""
    try:
        found = np.broadcast_arrays(*(np.asarray(column, np.float64).reshape(-1) for column in columns))
    except ValueError as error:
        raise ParameterError("pairs are not one of each a cell", where="pairs", do="give equal lengths") from error
    variances = found[2:4]  # a fourth cumulant may be negative
    if not all((np.abs(part) < LARGEST**2).all() for part in found) or any((part < 0).any() for part in variances):
        raise ParameterError("a pair is not finite, or a variance of noise negative", where="pairs", do="leave it out")
    return [np.ascontiguousarray(part) for part in found]


def _variances(where: str, given: ArrayLike) -> Floats:
    found = np.asarray(given, np.float64)
    if not np.isfinite(found).all() or (found < 0).any():
        raise ParameterError("a variance of noise is negative or not finite", where=where, do="give that of the noise")
    return found


def _check_replicates(replicates: int, factor: float, noise: Floats) -> None:
    if replicates < 1:
        raise ParameterError("there are no replicates", where="deviations", do="give (…, R), R at least 1")
    if not 0 < factor < inf:
        raise ParameterError("a replication factor is positive", where="factor", do="give 4 for successive differences")
    _variances("noise", noise)
