"""Teenage births and single parents: noise-infused against count-suppressed (004, Figure 3, Appendix Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.methods.sensitivity.utility.weighted import Fit, fitted
from discreet.synth.atlas import BLACK, GIRLS
from discreet_studies.sensitivity.cells import PLAIN, measured, observations, one_group
from discreet_studies.sensitivity.suppression import Binned, binned_scatter, suppressed, winsorised
from discreet_studies.sensitivity.table1 import BIRTHS

SEEDS = 5
POOR = 0.07  # tracts with less poverty are looked at
INFUSED, HIDDEN = (0.136, 0.015), (0.028, 0.017)  # the paper's slopes and standard errors


@dataclass(frozen=True)
class Slopes:
    """One atlas: the slope of noise-infused rates, without noise, and after suppression."""

    seed: int
    infused: Fit
    exact: Fit
    hidden: Fit


@dataclass(frozen=True)
class Births:
    """One atlas with its pictures."""

    slopes: Slopes
    infused: Binned
    hidden: Binned
    by_births: Binned  # rates against their numerators
    by_girls: Binned  # and their denominators


def births(children: int, seed: int) -> Births:
    """Black girls in tracts with little poverty, weighted by those of parents below the median; rates winsorised at
    1% and 99%; suppressed where the implied count rounds to 1 … 4."""
    made = one_group(children, seed, BLACK, GIRLS)
    cells = measured(observations(made, BIRTHS, by_group=False), made, PLAIN)
    rate = cells.noisy(f"births, seed {seed}")
    mine = (made.tracts.poverty_rate[cells.tract] < POOR) & (cells.low > 0)
    x, low, noisy = made.tracts.single_parent_share[cells.tract][mine], cells.low[mine], rate[mine]
    y, kept = winsorised(noisy), ~suppressed(noisy, low)
    slopes = Slopes(
        seed,
        fitted(x, y, low),
        fitted(x, winsorised(cells.theta[mine]), low),
        fitted(x[kept], y[kept], low[kept]),
    )
    return Births(
        slopes,
        binned_scatter(x, y, low),
        binned_scatter(x[kept], y[kept], low[kept]),
        binned_scatter(rate * cells.low, rate),
        binned_scatter(cells.low, rate),
    )
