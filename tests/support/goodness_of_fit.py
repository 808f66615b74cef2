"""Goodness of fit of integer noise to a claimed distribution, by two tests: of its shape and of its lowest bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Tail = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # P(K ≥ m) for integers m

ACCEPT, REJECT = 1e-6, 1e-20


def shape(sample: NDArray[np.int64], upper: Tail, bins: int = 60) -> float:
    """p-value of χ² over bins cut at the sample's own range of quantiles under the distribution, both signs apart."""
    low, high = -1, 1
    while upper(np.array([float(high)]))[0] > 1e-4:
        high *= 2
    while 1 - upper(np.array([float(low)]))[0] > 1e-4:
        low *= 2
    grid = np.unique(np.linspace(low, high, 200_001).round())
    tails = upper(grid)
    wanted = np.linspace(0, 1, bins + 1)[1:-1]
    cuts = np.unique(grid[np.clip(np.searchsorted(-tails, -wanted), 0, grid.size - 1)])
    cut_tails = upper(cuts)
    expected = sample.size * -np.diff(np.concatenate([[1.0], cut_tails, [0.0]]))
    observed = np.bincount(np.searchsorted(cuts, sample, side="right"), minlength=cuts.size + 1)
    keep = expected >= 10
    pooled = np.append(observed[keep], observed[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    if pooled[1][-1] < 10:
        if pooled[0][-1] > 200:
            return 0.0
        pooled = pooled[0][:-1], pooled[1][:-1]
    statistic = float(((pooled[0] - pooled[1]) ** 2 / pooled[1]).sum())
    return float(stats.chi2.sf(statistic, pooled[0].size - 1))


def low_bits(sample: NDArray[np.int64], bits: int = 4) -> float:
    """p-value of uniform low bits: wide exact noise has them, noise computed in short floats does not."""
    observed = np.bincount(sample & ((1 << bits) - 1), minlength=1 << bits)
    return float(stats.chisquare(observed).pvalue)
