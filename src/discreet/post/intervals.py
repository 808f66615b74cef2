"""Confidence limits for percentiles of the noise-free histogram, from the protected histogram. Proof: intervals.md.

Let x be the true histogram, x̃ = x + K the protected one, each K_i the sum of s discrete Laplace draws. For a value v
at fraction f of bin J put c_i = 1 − y (i < J), f − y (i = J), −y (i > J), and G(v) = Σ c_i·x_i. The percentile v* by
Eq. 4 has G(v*) = 0, so G̃(v*) = Σ c_i·K_i = W is a pivot: its distribution depends on (J, f), not on the data. The
limits are the first and the last v with |G̃(v)| ≤ t(v), where P(|W| ≤ t) ≥ level for every f in v's part of the bin.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import lcm, sqrt

import numpy as np

from discreet.domain.bins import Bins
from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.post.laplace_sum import (
    check_level,
    clamped_rate,
    expansion,
    fft_grid,
    fourth_cumulant,
    half_pmf,
    inverse_transform,
    log_phi,
    support_radius,
    variance,
)
from discreet.post.percentiles import Floats, Int64s, checked_counts, percentiles

PARTS = 8  # of a bin: t is constant on each part
SEVERAL, WIDE = 8, 8.0  # summands and standard deviation of W from which the expansion is accurate
FINEST = 0.125  # for smaller rates the bounds at this rate are rescaled
SLACK = 2.0**-30  # against rounding: |G̃| = t exactly has positive probability
NINE_TENTHS = Fraction(9, 10)
Thresholds = tuple[
    Floats, Floats, Int64s, Floats
]  # t on each part, the largest of each bin; its row and √s of each cell


def limits(
    counts: Int64s,
    bins: Bins,
    points: tuple[Fraction, ...],
    rate: Fraction,
    summands: int | Int64s = 1,
    level: Fraction = NINE_TENTHS,
) -> tuple[Floats, Floats]:
    """Lower and upper limits (cells, points); NaN where the total is not positive. They enclose the estimate.

    `summands` is s: how many measured cells each histogram is the sum of, one number or one for each cell.
    """
    histograms, estimates = checked_counts(counts, bins), percentiles(counts, bins, points)
    check_level(level)
    sums, table = np.unique(np.broadcast_to(np.asarray(summands, np.int64), len(histograms)), return_inverse=True)
    if sums.size and sums[0] < 1:
        raise ParameterError(
            "a histogram is a sum of at least one cell", where="summands", do="give the number of cells summed"
        )
    roots = np.sqrt(sums)
    low, high = np.empty_like(estimates), np.empty_like(estimates)
    for p, point in enumerate(points):
        bounds, which = _bounds(clamped_rate(rate), sums, bins.count, point, level)
        tops = bounds.reshape(len(bounds), 3, bins.count, PARTS).max(axis=3)
        thresholds = bounds, tops, which[table], roots[table]
        _search(histograms, bins.edge_array(), float(point), thresholds, low[:, p], high[:, p])
    return np.fmin(low, estimates), np.fmax(high, estimates)


def round_outward(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Limits rounded outwards to integers, which cannot reduce coverage: ⌊low⌋ and ⌈high⌉."""
    return np.floor(low), np.ceil(high)


def _bounds(rate: float, sums: Int64s, bins: int, y: Fraction, level: Fraction) -> tuple[Floats, Int64s]:
    """Rows (b₀, b₁, b₂) with t = b₀·√s + b₁ + b₂/√s on each part of each bin, and the row of each s."""
    rows, which = [_expanded(rate, bins, y, level)], np.zeros(sums.size, np.int64)
    narrowest = float(_spreads(bins, y)[0].min())
    for i in np.flatnonzero((sums < SEVERAL) | (sums * variance(rate) * narrowest < WIDE**2)):
        which[i] = len(rows)
        exact = exact_bounds(rate, int(sums[i]), bins, y, level)
        rows.append(np.stack((np.zeros_like(exact), exact, np.zeros_like(exact))))
    return np.stack(rows), which


def _spreads(bins: int, y: Fraction) -> tuple[Floats, Floats]:
    """Σ c_i² and Σ c_i⁴ on each part, at the end where |f − y| is larger: there W is widest."""
    ends = np.arange(PARTS + 1) / PARTS - float(y)
    widest = np.maximum(np.abs(ends[:-1]), np.abs(ends[1:]))
    below = np.arange(bins)[:, None]

    def total(power: int) -> Floats:
        powers: Floats = below * float(1 - y) ** power + (bins - 1 - below) * float(y) ** power + widest**power
        return powers.ravel()

    return total(2), total(4)


@lru_cache(maxsize=256)
def _expanded(rate: float, bins: int, y: Fraction, level: Fraction) -> Floats:
    """Cornish–Fisher expansion to the fourth cumulant, plus half the largest step of W's lattice."""
    z, e = expansion(level)
    squares, fourths = _spreads(bins, y)
    deviation = np.sqrt(variance(rate) * squares)
    step = np.full_like(deviation, float(max(y, 1 - y)) / 2)
    return np.stack((z * deviation, step, e * fourth_cumulant(rate) * fourths / deviation**3))


@lru_cache(maxsize=8192)
def exact_bounds(rate: float, summands: int, bins: int, y: Fraction, level: Fraction) -> Floats:
    """The smallest t (bins · PARTS) with P(|W| ≤ t at both ends of the part) ≥ level, in multiples of 1/(lattice).

    W = U + (f − y)·B, where B is the bin's own noise and U = (1 − y)·(noise below) − y·(noise above) lies on the
    multiples of 1/denominator: its distribution is one Fourier transform. |W| is convex in f, so a part's ends decide.
    """
    if rate < FINEST:
        stretch = sqrt(variance(rate) / variance(FINEST))
        stretched: Floats = exact_bounds(FINEST, summands, bins, y, level) * stretch
        return stretched
    numerator, denominator = y.numerator, y.denominator
    lattice = lcm(denominator, PARTS)
    ends = np.arange(PARTS + 1) * (lattice // PARTS) - numerator * (lattice // denominator)
    reach = max(numerator, denominator - numerator) * support_radius(rate, (bins - 1) * summands)
    size, angles = fft_grid(reach)
    one_below = summands * log_phi(rate, (denominator - numerator) * angles)
    one_above = summands * log_phi(rate, numerator * angles)
    own = half_pmf(rate, summands)
    own[1:] *= 2
    bounds = np.empty((bins, PARTS), np.int64)
    for j in range(bins):
        half = inverse_transform(j * one_below + (bins - 1 - j) * one_above, size)[: reach + 1]
        cumulated = np.cumsum(np.concatenate((half[:0:-1], half)))
        _smallest(cumulated, own, lattice // denominator, ends, float(level), bounds[j])
    return bounds.ravel() / lattice


@compiled
def _smallest(cumulated: Floats, own: Floats, unit: int, ends: Int64s, level: float, bounds: Int64s) -> None:
    """For each part the smallest integer τ (t times the lattice) that suffices, by doubling steps and bisection."""
    tau = 0
    for part in range(bounds.shape[0]):
        step = 1
        short = tau  # too small
        while short >= 0 and _mass(cumulated, own, unit, ends[part], ends[part + 1], short) >= level:
            tau, short, step = short, max(short - step, -1), 2 * step
        step = 1
        while _mass(cumulated, own, unit, ends[part], ends[part + 1], tau) < level:
            short, tau, step = tau, tau + step, 2 * step
        while tau - short > 1:
            middle = (tau + short) // 2
            if _mass(cumulated, own, unit, ends[part], ends[part + 1], middle) >= level:
                tau = middle
            else:
                short = middle
        bounds[part] = tau


@compiled
def _mass(cumulated: Floats, own: Floats, unit: int, first: int, last: int, tau: int) -> float:
    """P(|U + c·B| ≤ τ for c = first and c = last), all in multiples of 1/lattice, U itself in multiples of `unit`."""
    reach = cumulated.shape[0] // 2
    total = 0.0
    for b in range(own.shape[0]):  # |b|, with the weight of both signs: the distribution of U is symmetric
        top = min((tau - max(first * b, last * b)) // unit, reach)
        bottom = max(-((tau + min(first * b, last * b)) // unit), -reach)
        if top >= bottom:
            below = cumulated[bottom + reach - 1] if bottom > -reach else 0.0
            total += own[b] * (cumulated[top + reach] - below)
    return total


@compiled
def _search(counts: Int64s, edges: Floats, y: float, thresholds: Thresholds, low: Floats, high: Floats) -> None:
    """The first and the last v with |G̃(v)| ≤ t, cell by cell."""
    bounds, tops, which, roots = thresholds
    bins = counts.shape[1]
    at_border = np.empty(bins + 1)
    for cell in range(counts.shape[0]):
        total = np.int64(0)
        for j in range(bins):
            total += counts[cell, j]
        low[cell] = high[cell] = np.nan
        if total > 0:
            sofar = np.int64(0)
            at_border[0] = -y * total
            for j in range(bins):
                sofar += counts[cell, j]
                at_border[j + 1] = sofar - y * total
            row, root = which[cell], roots[cell]
            low[cell] = _walk(at_border, edges, bounds[row], tops[row], root, True)
            high[cell] = _walk(at_border, edges, bounds[row], tops[row], root, False)


@compiled
def _walk(at_border: Floats, edges: Floats, bounds: Floats, tops: Floats, root: float, upwards: bool) -> float:
    """The first v from one end with |G̃(v)| ≤ t. G̃ is linear and t constant on each part of a bin."""
    bins = tops.shape[1]
    for i in range(bins):
        j = i if upwards else bins - 1 - i
        top = tops[0, j] * root + tops[1, j] + tops[2, j] / root + SLACK
        if min(at_border[j], at_border[j + 1]) > top or max(at_border[j], at_border[j + 1]) < -top:
            continue
        growth = (at_border[j + 1] - at_border[j]) / PARTS
        for k in range(PARTS):
            h = k if upwards else PARTS - 1 - k
            start = at_border[j] + growth * (h if upwards else h + 1)
            change = growth if upwards else -growth
            part = j * PARTS + h
            t = bounds[0, part] * root + bounds[1, part] + bounds[2, part] / root + SLACK
            gap = min(max(start, -t), t) - start  # from G̃ here to the nearest of −t … t
            if gap * change >= 0.0 and abs(gap) <= abs(change):
                ahead = gap / change if gap != 0.0 else 0.0
                place = h + ahead if upwards else h + 1 - ahead
                return float(edges[j] + (edges[j + 1] - edges[j]) * (place / PARTS))
    return np.nan
