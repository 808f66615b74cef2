"""Caveats and descriptions of tables of estimates."""

from __future__ import annotations

from fractions import Fraction

from discreet.formatting import plural
from discreet.methods.sensitivity.noise import EstimateNoise
from discreet.methods.sensitivity.statistics import Search, Statistic
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import INFORMAL

CHI = INFORMAL + (
    "the scale of the noise, χ, is set by the maximum sensitivity observed in these data and is "
    "published without noise. The stated epsilon would hold if χ were public and no neighbouring data set had a larger "
    "sensitivity; what χ itself discloses about one record is not bounded."
)
ROUNDED = (
    "Estimates and sensitivities are computed in floating point; χ is rounded up and one grid step is added to the "
    "sensitivity, but no bound on the rounding errors is proved."
)
TRUE_SIZE = (
    "Noise is scaled by the true number of records of a cell, as printed in Chetty & Friedman 2019: the spread of the "
    "noise discloses that number, and the privacy loss is not bounded by the stated epsilon even if χ were public."
)
PUBLIC_SIZE = (
    "Noise is scaled by a public number of records of each cell: the stated epsilon holds, given χ, where that does "
    "not exceed the true number. Under substitution of one record's values the loss is twice as large."
)
TRUE_COUNT_SUPPRESSION = (
    "Cells with too few records are suppressed by their true number of records: whether a cell is suppressed is an "
    "exact statement about it."
)
UNDEFINED = (
    "Cells in which the statistic is undefined, or whose sensitivity to one record is infinite (or above 2^16 times "
    "the natural size of the statistic over N), do not count towards χ; where they are published, an undefined "
    "statistic has a fixed fallback value, and the noise does not cover their sensitivity."
)
REFUSED_INFINITE = (
    "Run with `infinite_influence: refuse`: the existence of this release discloses that no cell large enough to be "
    "published has infinite sensitivity to one record."
)
REMOVALS = "Sensitivities cover removals of records only: adding a record may change an estimate by more."
WINSORISED = (
    "Sensitivities of the standard errors of winsorised lines are exact for removed records; added ones were searched "
    "on a grid, which can slightly underestimate the maximum."
)


def searched(search: Search, statistic: Statistic) -> str:
    """The caveat of a search that is not exact."""
    if search.kind == "removals":
        return REMOVALS
    where = (
        "at the corners of the bounds"
        if search.kind == "corners"
        else f"on a grid of {search.points} values per variable"
    )
    return f"Added records were searched {where} only: others may change a {statistic.name} by more."


def normal(epsilon: Fraction, numbers: int, charged: Fraction, delta: Fraction) -> str:
    """The actual cost of normal noise."""
    return (
        f"normal noise with the variance of Laplace noise of ε = {format_exact(epsilon)}, as in Chetty & Friedman "
        f"2019, is weaker: {plural(numbers, 'quantity', 'quantities')} together cost ε = {format_exact(charged)} at δ "
        f"= {format_exact(delta)}"
    )


def noise(distribution: EstimateNoise, decay: Fraction) -> str:
    """The mechanism, as a formula with its constants."""
    epsilon = format_exact(distribution.epsilon)
    power = "N" if decay == 1 else f"N^{format_exact(decay)}"
    n = {
        "bound": f"N a lower bound: the released count − {distribution.margin}, at least 1",
        "true": "N the true number of records",
        "public": "N a public number of records",
    }[distribution.size]
    kind = "Laplace" if distribution.distribution == "laplace" else "Normal"
    geometric = f"discrete Laplace (two-sided geometric), P(k) ∝ exp(−{epsilon}·|k|)"
    counts = geometric if distribution.distribution == "laplace" else f"Normal, √2/{epsilon}"
    return (
        f"{kind} with standard deviation √2·(χ/{power} + 1 grid step)/{epsilon}, {n}; of counts {counts}; each "
        "is drawn independently"
    )
