"""What tables of estimates say about themselves."""

from __future__ import annotations

from fractions import Fraction

from discreet.formatting import plural
from discreet.methods.sensitivity.noise import EstimateNoise
from discreet.methods.sensitivity.statistics import Search, Statistic
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import INFORMAL

CHI = INFORMAL + (
    "the scale of the noise, χ, is the largest sensitivity observed in these data and is "
    "published as it is. The stated epsilon holds as if χ were known beforehand and no neighbouring data were more "
    "sensitive; what χ itself tells about one record is not bounded."
)
ROUNDED = (
    "Estimates and sensitivities are computed in floating point; χ is rounded up and one step of the grid is added for "
    "it, but the error of this arithmetic is not proved."
)
TRUE_SIZE = (
    "Noise is scaled by the true number of records of a cell, as printed in 004: how widely estimates scatter tells "
    "about that number, and the loss is not bounded by the stated epsilon even if χ were public."
)
PUBLIC_SIZE = (
    "Noise is scaled by a public number of records of each cell: the stated epsilon holds where that is not above the "
    "true number. Replacing one record's values costs twice as much."
)
TRUE_MINIMUM = (
    "Cells with too few records are left out by their true number of records: that a cell is missing, or is not, is an "
    "exact statement about it."
)
UNDEFINED = (
    "Cells in which the statistic is not defined, or which one record can move beyond all bounds (or more than 2^16 "
    "times its natural size over N), have no say in χ; where they are published, it is with a stated value in place "
    "of a statistic that is not defined, and noise that does not cover them."
)
REFUSED = (
    "Run with `infinite: refuse`: that this release exists tells that no cell large enough to be published could be "
    "moved beyond all bounds by one record."
)
REMOVALS = "Sensitivities were searched among removals only: an added record may move an estimate further."


WINSORISED = (
    "Sensitivities of the standard errors of winsorised lines are exact for removed records; added ones were tried on "
    "a grid, which can miss a little."
)


def searched(search: Search, statistic: Statistic) -> str:
    """What a search that is not exact leaves open."""
    if search.kind == "removals":
        return REMOVALS
    where = (
        "at the corners of the bounds"
        if search.kind == "corners"
        else f"on a grid of {search.points} values a variable"
    )
    return (
        f"Added records were tried {where} only: another one may move a {statistic.name} further, for corners are not "
        "always worst."
    )


def normal(epsilon: Fraction, numbers: int, charged: Fraction, delta: Fraction) -> str:
    """What normal noise really costs."""
    return (
        f"normal noise scaled for ε = {format_exact(epsilon)} as in 004 is weaker than Laplace noise of that ε: "
        f"{plural(numbers, 'number')} together cost ε = {format_exact(charged)} at δ = {format_exact(delta)}"
    )


def noise(distribution: EstimateNoise, decay: Fraction) -> str:
    """The mechanism, in words and symbols."""
    epsilon = format_exact(distribution.epsilon)
    power = "N" if decay == 1 else f"N^{format_exact(decay)}"
    n = {
        "bound": f"N a lower bound: the released count − {distribution.margin}, at least 1",
        "true": "N the true number of records",
        "public": "N a public number of records",
    }[distribution.size]
    kind = "Laplace" if distribution.distribution == "laplace" else "Normal"
    geometric = f"two-sided geometric, P(k) ∝ exp(−{epsilon}·|k|)"
    counts = geometric if distribution.distribution == "laplace" else f"Normal, √2/{epsilon}"
    return (
        f"{kind} with standard deviation √2·(χ/{power} + 1 grid step)/{epsilon}, {n}; of counts {counts}; each "
        "is drawn independently"
    )
