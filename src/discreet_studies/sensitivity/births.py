"""Teenage births and single parents, noise-infused against count-suppressed (Chetty & Friedman 2019, Fig. 3, App. Fig.
2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats
from discreet.methods.sensitivity.utility.weighted import Fit, fitted, weighted
from discreet.synth.atlas import BLACK, GIRLS
from discreet_studies.sensitivity.cells import PLAIN, cell_statistics, observations, one_group
from discreet_studies.sensitivity.table1 import BIRTHS

LOW, HIGH = 0.5, 4.5  # implied counts that round to 1 … 4 (note 11); zero is shown
BINS = 20


def suppressed(rates: ArrayLike, people: ArrayLike) -> NDArray[np.bool_]:
    """Where the implied count, rate × people at risk, lies in [½, 4½) (note 11 and Figure 3).

    >>> suppressed([0.0, 0.1, 0.45, 0.5], [10, 10, 10, 10]).tolist()
    [False, True, False, False]
    """
    counts = np.asarray(rates, np.float64) * np.asarray(people, np.float64)
    in_range: NDArray[np.bool_] = (counts >= LOW) & (counts < HIGH)
    return in_range


def winsorised(values: ArrayLike, share: float = 0.01) -> Floats:
    """Values beyond the quantiles `share` and 1 − `share` clamped to them (Figure 3)."""
    given = np.asarray(values, np.float64)
    return np.clip(given, *np.quantile(given, [share, 1 - share]))


@dataclass(frozen=True)
class BinnedMeans:
    """Weighted means and weight of each bin, in order of x."""

    x: Floats
    y: Floats
    weight: Floats


def binned_scatter(x: ArrayLike, y: ArrayLike, weights: ArrayLike = 1.0, bins: int = BINS) -> BinnedMeans:
    """Bins of equal weight along x (Figure 3). Equal x share a bin, so there may be fewer bins than requested.

    >>> binned_scatter([4, 1, 2, 3], [1, 1, 3, 3], bins=2).y.tolist()
    [2.0, 2.0]
    """
    if bins < 1:
        raise ParameterError("the number of bins is below 1", where="bins", do="give 1 or more")
    across, up, weight = weighted(x, y, weights)
    _, place = np.unique(across, return_inverse=True)
    mass = np.bincount(place, weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    number = np.minimum((middle * bins).astype(np.int64), bins - 1)[place]
    totals, sums_x, sums_y = (
        np.bincount(number, part, bins).astype(np.float64) for part in (weight, weight * across, weight * up)
    )
    some = totals > 0
    return BinnedMeans(sums_x[some] / totals[some], sums_y[some] / totals[some], totals[some])


SEEDS = 5
POOR = 0.07  # only tracts with less poverty are used
INFUSED, SUPPRESSED = (0.136, 0.015), (0.028, 0.017)  # the paper's slopes and standard errors


@dataclass(frozen=True)
class BirthSlopes:
    """Slopes for one atlas: with noise-infused rates, without noise, and after suppression."""

    seed: int
    infused: Fit
    exact: Fit
    suppressed: Fit


@dataclass(frozen=True)
class BirthsStudy:
    """One atlas's slopes and binned scatter plots."""

    slopes: BirthSlopes
    infused: BinnedMeans
    suppressed: BinnedMeans
    by_births: BinnedMeans  # rates against their numerators
    by_girls: BinnedMeans  # and their denominators


def births(children: int, seed: int) -> BirthsStudy:
    """Black girls in tracts with little poverty, weighted by those of parents below the median; rates winsorised at
    1% and 99%; suppressed where the implied count rounds to 1 … 4."""
    group = one_group(children, seed, BLACK, GIRLS)
    cells = cell_statistics(observations(group, BIRTHS, by_group=False), group, PLAIN)
    rate = cells.noisy(f"births, seed {seed}")
    mine = (group.tracts.poverty_rate[cells.tract] < POOR) & (cells.low > 0)
    x, low, noisy = group.tracts.single_parent_share[cells.tract][mine], cells.low[mine], rate[mine]
    y, unsuppressed = winsorised(noisy), ~suppressed(noisy, low)
    slopes = BirthSlopes(
        seed,
        fitted(x, y, low),
        fitted(x, winsorised(cells.theta[mine]), low),
        fitted(x[unsuppressed], y[unsuppressed], low[unsuppressed]),
    )
    return BirthsStudy(
        slopes,
        binned_scatter(x, y, low),
        binned_scatter(x[unsuppressed], y[unsuppressed], low[unsuppressed]),
        binned_scatter(rate * cells.low, rate),
        binned_scatter(cells.low, rate),
    )
