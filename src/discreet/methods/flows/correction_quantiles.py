"""Flows as posterior quantiles at one level: integers with the noisy total and, under the model, least expected error.

A cell's flow has a prior mean μ: the employed of the group distributed over states as hires are, over industries as the
family's flows are, and over both as employment is (raked), then shrunk towards the group's own states and industries.
Given μ it is geometric, or with probability DOUBT geometric with a wide mean, since controls can be wrong. With
discrete Laplace (two-sided geometric) noise P(flow ≤ x | measured) has a closed form. See correction.md.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.methods.flows.correction_controls import GroupControls
from discreet.methods.flows.exponential_race import sink
from discreet.noise.jit import compiled

DOUBT = 0.001  # prior probability that the controls are uninformative about a cell
WIDE = 3.0  # the mean of such a cell; more where the noise is wider
RAKED = 3  # iterations of raking
STATES, INDUSTRIES = 1.0, 0.5  # squared coefficients of variation of a group's states and industries around the prior
LEAST = 0.05  # lower bound of a state's or industry's scaling, whatever was measured there
FAR = 600  # rate·flow beyond which zero has negligible probability; e^FAR does not overflow
FARTHEST = 4000  # longest exact sum over flows: reached at rates below 0.15
COARSE, SILENT = Fraction(1, 10**6), Fraction(64)  # rates are clamped to this range

Public = tuple[Floats, Floats, Floats]  # jobs, employment, industry flow


def fill(flows: Int64s, groups: GroupControls) -> Int64s:
    """The corrected flows; `flows` are checked, one row per group."""
    c, rate = groups.controls, min(max(groups.rate, COARSE), SILENT)
    exact = Context(prec=60)
    a = float(exact.exp(exact.divide(Decimal(-rate.numerator), Decimal(rate.denominator))))
    out = np.zeros_like(flows)
    public, far = (c.jobs, c.employment, c.industry_flow), min(int(FAR / rate), FARTHEST)
    _fill(flows, public, groups.home, groups.family, a, far, out)
    return out


@compiled
def posterior_cdf(x: int, y: int, mean: float, wide: float, a: float, far: int) -> float:
    """P(flow ≤ x | measured y): the flow is geometric with this mean, or, with probability DOUBT, the wide one.

    Relative to a^|y|, flows t ≤ y weigh (ρ/a)^t and beyond y fall by ρ·a each, ρ = mean/(1 + mean).
    """
    if x < 0:
        return 0.0
    r = wide / (1.0 + wide)
    if y > far:  # the flow is surely large: two geometric tails around y
        up, down = r * a, a / r
        whole = 1.0 + up / (1.0 - up) + down / (1.0 - down)
        if x >= y:
            return 1.0 - _power(up, x - y + 1) / (1.0 - up) / whole
        return _power(down, y - x) / (1.0 - down) / whole
    under, whole = 0.0, 0.0
    for part in range(2):
        chance = (DOUBT if part else 1.0 - DOUBT) / (1.0 + (wide if part else mean))
        r = (wide if part else mean) / (1.0 + (wide if part else mean))
        weight, last = chance, max(y, 0)
        for t in range(last):
            whole += weight
            under += weight if t <= x else 0.0
            weight *= r / a
        whole += weight / (1.0 - r * a)
        if x >= last:
            under += weight * (1.0 - _power(r * a, x - last + 1)) / (1.0 - r * a)
    return under / whole


@compiled
def _power(base: float, power: int) -> float:
    """base^power by squaring."""
    result = 1.0
    while power > 0:
        if power & 1:
            result *= base
        base *= base
        power >>= 1
    return result


@compiled
def posterior_median(y: int, mean: float, wide: float, a: float, far: int) -> tuple[int, float, float]:
    """The smallest x with P(flow ≤ x) ≥ ½, P(flow < x) and P(flow ≤ x): the sums of `posterior_cdf` in one pass."""
    if y > far:
        x = y
        while posterior_cdf(x, y, mean, wide, a, far) < 0.5:
            x += 1
        while posterior_cdf(x - 1, y, mean, wide, a, far) >= 0.5:
            x -= 1
        return x, posterior_cdf(x - 1, y, mean, wide, a, far), posterior_cdf(x, y, mean, wide, a, far)
    r, r2 = mean / (1.0 + mean), wide / (1.0 + wide)
    first, other = (1.0 - DOUBT) * (1.0 - r), DOUBT * (1.0 - r2)
    weight, weight2, whole = first, other, 0.0
    for _ in range(y):
        whole += weight + weight2
        weight, weight2 = weight * (r / a), weight2 * (r2 / a)
    whole += weight / (1.0 - r * a) + weight2 / (1.0 - r2 * a)
    x, under, weight, weight2 = 0, 0.0, first, other
    while under + weight + weight2 < 0.5 * whole:
        under += weight + weight2
        step = 1.0 / a if x < y else a
        weight, weight2 = weight * (r * step), weight2 * (r2 * step)
        x += 1
    return x, under / whole, (under + weight + weight2) / whole


@compiled
def rake(jobs: Floats, employment: Floats, industry_flow: Floats, share: Floats) -> None:
    """Employment, raked to shares of industries and then of states."""
    share[:] = employment
    all_jobs, all_flow = jobs.sum(), industry_flow.sum()
    for _ in range(RAKED):
        for k in range(share.shape[0]):
            share[k] *= industry_flow[k] / all_flow / share[k].sum()
        for s in range(share.shape[1]):
            share[:, s] *= jobs[s] / all_jobs / share[:, s].sum()


@compiled
def _credibility(mean: Floats, measured: np.int64, spread: float, noise: float) -> None:
    """Scale the cells of a margin to its best linear predictor: prior variance spread·m², sampling m, and noise."""
    m = mean.sum()
    mean *= max(1.0 + spread * m * (measured - m) / (spread * m * m + m + noise), LEAST)


@compiled
def prior_means(flow: Int64s, share: Floats, noise: float, mean: Floats, expected: Floats) -> None:
    """μ of the cells of one group, via mean (N, S); for the marginal cell, which has no controls, the total."""
    (industries, states), last, total = share.shape, flow.size - 1, flow.sum()
    mean[:] = share * max(total - min(max(flow[last], 0), total), 1)
    for s in range(states):
        measured = np.int64(0)
        for k in range(industries):
            measured += flow[k * states + s]
        _credibility(mean[:, s], measured, STATES, industries * noise)
    for k in range(industries):
        _credibility(mean[k], flow[k * states : (k + 1) * states].sum(), INDUSTRIES, states * noise)
    expected[:last] = mean.ravel()
    expected[last] = total


@compiled
def _fill(noisy: Int64s, public: Public, home: Int64s, family: Int64s, a: float, far: int, out: Int64s) -> None:
    """Medians first; then greedily one more or one less where it costs least, until the total is met."""
    jobs, employment, industry_flow = public
    size, noise = noisy.shape[1], 2.0 * a / (1.0 - a) ** 2
    least = max(WIDE, 2.0 * a / (1.0 - a))
    share, mean = np.empty(employment.shape), np.empty(employment.shape)
    keys, cells, expected = np.empty(size), np.empty(size, np.int64), np.empty(size)
    under, upto = np.empty(size), np.empty(size)
    for g in range(noisy.shape[0]):
        total = noisy[g].sum()
        if total <= 0:
            continue
        if g == 0 or home[g] != home[g - 1] or family[g] != family[g - 1] or noisy[g - 1].sum() <= 0:
            rake(jobs[home[g]], employment, industry_flow[family[g]], share)
        prior_means(noisy[g], share, noise, mean, expected)
        missing = total
        for i in range(size):
            out[g, i], under[i], upto[i] = posterior_median(noisy[g, i], expected[i], max(least, expected[i]), a, far)
            missing -= out[g, i]
        step, count = 1 if missing > 0 else -1, np.int64(0)
        for i in range(size):
            cells[count], keys[i] = i, upto[i] if step > 0 else -under[i]
            count += np.int64(step > 0 or out[g, i] > 0)
        for root in range(count // 2 - 1, -1, -1):
            sink(cells, root, int(count), keys)
        for _ in range(abs(missing)):
            i = cells[0]
            out[g, i] += step
            x = out[g, i] if step > 0 else out[g, i] - 1
            keys[i] = (
                step * posterior_cdf(x, noisy[g, i], expected[i], max(least, expected[i]), a, far) if x >= 0 else np.inf
            )
            sink(cells, 0, int(count), keys)
