"""Empirical-Bayes shrinkage of protected histograms towards those of their families. Method and proof: shrinkage.md.

Post-processing: a function of protected numbers alone, no additional ε. An alternative to PSEO's percentile rule, not
the default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.arrays import Flags, Floats, Int64s
from discreet.domain.bins import Bins
from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.post.elementwise import exp, log, sin
from discreet.post.percentiles import checked_counts

Families = Sequence[Int64s]  # the family of each cell: the widest first, each within the one before

TERMS = 4  # cosine terms of smooth deviations of a cell from its family: location, spread, two of shape
ATYPICAL = 1.0 / np.arange(1, TERMS + 1) ** 2  # additional variance of the terms in an atypical cell
PRIOR_ATYPICAL = 0.1  # prior share of such cells
MIN_RECORDS = 30  # smallest protected count of a histogram that informs the estimates of its family
FLOOR = 0.02  # lower bound of a fitted bin, relative to the family's share
SMOOTHING = 0.001  # of a family's records, spread evenly: no bin has probability 0
FLAT = 1e3  # prior standard deviation of a cell's total, relative to it: practically flat
ROUNDS = 4  # alternations between estimating spreads and the atypical cells
CHI_SQUARE_MEDIAN = 0.4549  # of one degree of freedom
CLEAR = 2.0  # standard errors of excess variance beyond which a cell has an overdispersion of its own
EXACT_BELOW, EXACT_RATES = 1000, (0.05, 30.0)  # counts and rates for which the posterior is summed exactly


def estimate(
    counts: Int64s,
    families: Families,
    rate: float,
    bins: Bins,
    points: tuple[Fraction, ...],
    summands: int | Int64s = 1,
) -> Floats:
    """Percentiles (cells, P) of the smoothed histograms, linear within bins (PSEO Beta Appendix, Eq. 4).

    NaN where a total is not positive.
    """
    if any(not 0 < point < 1 for point in points):
        raise ParameterError("a percentile outside 0 … 1", where="points", do="give shares such as 1/4")
    expected = smooth(checked_counts(counts, bins), families, rate, summands)
    values = _linear(expected, bins.edge_array(), np.array([float(point) for point in points]))
    values[counts.sum(axis=1) <= 0] = np.nan
    return values


def smooth(counts: Int64s, families: Families, rate: float, summands: int | Int64s = 1) -> Floats:
    """Expected bins of each cell given its protected bins (each with `summands` discrete Laplace draws of this rate)
    and those of its families, the whole level being the widest. Those of an atypical cell may be negative."""
    draws = np.broadcast_to(np.asarray(summands, np.int64), len(counts))
    x, variance = _counts_and_variance(counts, rate, draws)
    if not len(x):
        return x
    share, family = _shares(x), np.zeros(len(x), np.int64)
    for numbers in families:
        share, family = _narrower_family(x, numbers, share, family, variance)
    mean, atypical = _level(x, share, family, variance)
    dispersion = _overdispersion(x, mean, variance)
    exact = np.where((draws == 1) & (EXACT_RATES[0] <= rate <= EXACT_RATES[1]), rate, 0.0)
    expected = _posterior(x, mean, dispersion, exact, variance)
    return expected + atypical[:, None] * (x - expected)


def _counts_and_variance(counts: Int64s, rate: float, draws: Int64s) -> tuple[Floats, Floats]:
    if counts.ndim != 2 or counts.dtype != np.int64 or counts.shape[1] < 2:
        raise ParameterError("no int64 table of cells by bins", where="counts", do="give one row per cell")
    if not 0 < rate < math.inf or draws.min(initial=1) < 1:
        raise ParameterError(
            "no noise distribution", where="rate", do="give epsilon over sensitivity, and the number of draws summed"
        )
    each = 0.5 / math.sinh(min(rate, 700.0) / 2) ** 2  # 2a/(1 − a)², a = e^−rate
    return counts.astype(np.float64), draws.astype(np.float64) * each


def _shares(x: Floats) -> Floats:
    """The widest family, all cells of the level, as shares (1, M)."""
    whole = np.maximum(x.sum(axis=0, keepdims=True), 0)
    whole += SMOOTHING * whole.sum() / whole.size + 1e-9
    shares: Floats = whole / whole.sum()
    return shares


def _narrower_family(
    x: Floats, numbers: Int64s, share: Floats, family: Int64s, variance: Floats
) -> tuple[Floats, Int64s]:
    """The shares of narrower families, each shrunk towards the wider family that contains it."""
    if numbers.shape != family.shape:
        raise ParameterError("not one family per cell", where="families", do="number the family of every cell")
    _, first, own = np.unique(numbers, return_index=True, return_inverse=True)
    wider = family[first]
    if not np.array_equal(wider[own], family):
        raise ParameterError("a family that lies in two wider ones", where="families", do="give the widest first")
    total = np.zeros((len(first), x.shape[1]))
    np.add.at(total, own, x)
    noise: Floats = np.bincount(own, variance).astype(np.float64)
    mean, _ = _level(total, share, wider, noise)
    weight = mean / (mean + noise[:, None])
    expected = np.maximum(mean + weight * (total - mean), FLOOR * mean)
    expected /= expected.sum(axis=1, keepdims=True)
    return np.where(total.sum(axis=1, keepdims=True) >= MIN_RECORDS, expected, share[wider]), own.astype(np.int64)


def _level(x: Floats, share: Floats, family: Int64s, variance: Floats) -> tuple[Floats, Floats]:
    """Smooth expected bins of each cell, and its posterior probability of being atypical of its family."""
    basis = _cosines(share)
    theta, error = _coefficients(x, share, basis, family, variance)
    spread, atypical = _spreads(theta, error, x.sum(axis=1) >= MIN_RECORDS)
    return _fit(x, share, basis, family, variance, spread + atypical[:, None] * ATYPICAL), atypical


def _cosines(share: Floats) -> Floats:
    """(families, M, K): increments over the bins of the integral of √2·cos(kπu), u the rank within the family."""
    rank = np.concatenate([np.zeros((len(share), 1)), np.cumsum(share, axis=1)], axis=1)
    turns = np.pi * np.arange(1, TERMS + 1)
    increments: Floats = np.diff(math.sqrt(2) * sin(rank[:, :, None] * turns) / turns, axis=1)
    return increments


def _spreads(theta: Floats, error: Floats, enough: Flags) -> tuple[Floats, Floats]:
    """Variance of each coefficient over the cells, by moments (DerSimonian & Laird 1986), and each cell's posterior
    probability of being atypical: normal coefficients with that variance, or with that plus ATYPICAL."""
    spread, atypical = np.zeros(TERMS), np.zeros(len(theta))
    if not enough.any():
        return spread, atypical
    excess = theta**2 - error
    weight = np.where(enough[:, None], 1 / (error + 0.02) ** 2, 0.0)
    spread = np.maximum(np.median(theta[enough] ** 2 / CHI_SQUARE_MEDIAN - error[enough], axis=0), 0)
    for _ in range(ROUNDS):
        usual, odd = error + spread, error + spread + ATYPICAL
        evidence = 0.5 * (log(usual / odd) + theta**2 * (1 / usual - 1 / odd)).sum(axis=1)
        atypical = 1 / (1 + (1 - PRIOR_ATYPICAL) / PRIOR_ATYPICAL * exp(-np.clip(evidence, -300, 300)))
        typical = weight * (1 - atypical)[:, None]
        spread = np.maximum((typical * excess).sum(axis=0) / np.maximum(typical.sum(axis=0), 1e-300), 0)
    return spread, atypical


def _overdispersion(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """φ of each cell, bins having variance mean + φ·mean²: that of all cells, or the cell's own if clearly larger."""
    noise = variance[:, None]
    excess, scale = ((x - mean) ** 2 - mean - noise).sum(axis=1), (mean**2).sum(axis=1)
    sampling = (2 * (mean + noise) ** 2 + 3 * noise**2 + mean).sum(axis=1)  # variance of the excess at φ = 0
    common = max(0.0, float((excess * scale / sampling).sum() / (scale**2 / sampling).sum()))
    allowed = CLEAR * np.sqrt((2 * (mean + common * mean**2 + noise) ** 2 + 3 * noise**2 + mean).sum(axis=1))
    own: Floats = np.maximum(common, (excess - allowed) / scale)
    return own


@compiled
def _coefficients(x: Floats, share: Floats, basis: Floats, family: Int64s, variance: Floats) -> tuple[Floats, Floats]:
    """θ_k, the mean of √2·cos(kπu) over a cell's records (0 in its family), and its sampling plus noise variance."""
    theta, error = np.zeros((len(x), basis.shape[2])), np.zeros((len(x), basis.shape[2]))
    for i in range(len(x)):
        f = family[i]
        n = max(x[i].sum(), 10.0)
        for k in range(basis.shape[2]):
            for j in range(x.shape[1]):
                height = basis[f, j, k] / share[f, j]
                theta[i, k] += (x[i, j] / n - share[f, j]) * height
                error[i, k] += (share[f, j] + variance[i] / n) / n * height**2
    return theta, error


@compiled
def _solve(system: Floats, right: Floats) -> None:
    """Solve in place, by elimination without pivots: the system is positive definite."""
    terms = len(right)
    for k in range(terms):
        for h in range(k + 1, terms):
            factor = system[h, k] / system[k, k]
            right[h] -= factor * right[k]
            for g in range(k, terms):
                system[h, g] -= factor * system[k, g]
    for k in range(terms - 1, -1, -1):
        for h in range(k + 1, terms):
            right[k] -= system[k, h] * right[h]
        right[k] /= system[k, k]


@compiled
def _fit(x: Floats, share: Floats, basis: Floats, family: Int64s, variance: Floats, spread: Floats) -> Floats:
    """Best linear prediction of n·(share + Σ θ_k basis_k), n free, from x with variance n·share + noise (Woodbury).
    Element by element: an assignment to a slice takes Numba seconds to compile."""
    cells, bins = x.shape
    terms = basis.shape[2] + 1
    fit = np.empty((cells, bins))
    column, right, system = np.empty((bins, terms)), np.empty(terms), np.empty((terms, terms))
    for i in range(cells):
        f = family[i]
        n = max(x[i].sum(), 10.0)
        for k in range(terms):
            right[k] = 0.0
            for h in range(terms):
                system[k, h] = 1.0 if h == k else 0.0
        for j in range(bins):
            column[j, 0] = FLAT * n * share[f, j]
            for k in range(1, terms):
                column[j, k] = n * math.sqrt(spread[i, k - 1]) * basis[f, j, k - 1]
            certainty = 1 / (n * share[f, j] + variance[i])
            for k in range(terms):
                right[k] += column[j, k] * certainty * (x[i, j] - n * share[f, j])
                for h in range(terms):
                    system[k, h] += column[j, k] * certainty * column[j, h]
        _solve(system, right)
        for j in range(bins):
            fit[i, j] = n * share[f, j]
            for k in range(terms):
                fit[i, j] += column[j, k] * right[k]
        floor = FLOOR * max(fit[i].sum(), 1.0)
        for j in range(bins):
            fit[i, j] = max(fit[i, j], floor * share[f, j])
    return fit


@compiled
def _posterior(x: Floats, mean: Floats, dispersion: Floats, rates: Floats, variance: Floats) -> Floats:
    """E(count | protected count) under a negative binomial prior, moved to the protected count where that is nearly
    certain. Rate 0 stands for a sum of several draws: the best linear prediction instead of the exact posterior."""
    out = np.empty(x.shape)
    for i in range(x.shape[0]):
        rate = rates[i]
        a, reach = math.exp(-rate), 30 / max(rate, EXACT_RATES[0])
        for j in range(x.shape[1]):
            observed, m, phi = x[i, j], mean[i, j], dispersion[i]
            vary = m + phi * m * m
            if rate == 0.0 or max(abs(observed), m) > EXACT_BELOW:
                out[i, j] = max(m + vary / (vary + variance[i]) * (observed - m), 0.0)
                continue
            low = max(0, int(min(observed, m) - reach))
            high = int(max(observed, m) + 6 * math.sqrt(vary) + reach)
            weight, total, first, same = 1.0, 0.0, 0.0, 0.0
            step = m / (1 + phi * m)
            for count in range(low, high + 1):  # NB(count + 1)/NB(count) = (1 + φ·count)/(count + 1)·step
                total += weight
                first += weight * count
                if count == observed:
                    same = weight
                weight *= (phi * count + 1) / (count + 1) * step * (1 / a if count < observed else a)
                if count > max(observed, m) and weight < 1e-14 * total:
                    break
                if total > 1e200:
                    weight, total, first, same = weight * 1e-200, total * 1e-200, first * 1e-200, same * 1e-200
            certain = max(0.0, 2 * same / total - 1)  # above ½ the posterior median is the protected count itself
            out[i, j] = first / total + certain * (observed - first / total)
    return out


@compiled
def _linear(counts: Floats, edges: Floats, points: Floats) -> Floats:
    """PSEO Beta Appendix, Eq. 4, on real-valued bins: the smallest bin that reaches y·total, linear within it."""
    out = np.empty((len(counts), len(points)))
    for i in range(len(counts)):
        total = counts[i].sum()
        for p in range(len(points)):
            below, target = 0.0, points[p] * total
            for j in range(counts.shape[1]):
                if below + counts[i, j] >= target or j == counts.shape[1] - 1:
                    part = min(max((target - below) / max(counts[i, j], 1e-300), 0.0), 1.0)
                    out[i, p] = edges[j] + part * (edges[j + 1] - edges[j])
                    break
                below += counts[i, j]
    return out
