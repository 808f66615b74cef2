"""Histogram bins of a numeric column, such as annual earnings: public edges, declared before any record is read.

Bin j of M is [b_j, b_{j+1}). The last bin is open above: b_{M+1} is only its nominal end, used to interpolate. A value
below b_1 belongs to the first bin; to exclude such values, declare a sample rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, floor
from statistics import NormalDist, StatisticsError

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.errors import ParameterError

LARGEST = 2**40  # absolute value of an edge: far above any earnings, far below where float64 loses integers
MOST = 1000  # bins


@dataclass(frozen=True)
class Bins:
    """M + 1 ascending integer edges, and their provenance."""

    edges: tuple[int, ...]
    provenance: str = "declared edges"

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MOST + 1:
            raise ParameterError(f"{len(self.edges)} edges", where="bins", do=f"give 2 to {MOST + 1} of them")
        if any(type(b) is not int or abs(b) > LARGEST for b in self.edges):
            raise ParameterError("an edge is not an integer within ±2^40", where="bins", do="give integer edges")
        if low := next(((a, b) for a, b in pairwise(self.edges) if a >= b), None):
            raise ParameterError(f"edge {low[1]} is not above {low[0]}", where="bins", do="give ascending edges")

    @property
    def count(self) -> int:
        """M, the number of bins."""
        return len(self.edges) - 1

    def edge_array(self) -> Floats:
        """The edges as float64."""
        return np.array(self.edges, np.float64)

    def number(self, values: Floats | Int64s) -> Int64s:
        """The bin of each value, from 0; values below the first edge belong to the first bin."""
        return np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int64)

    def indexed(self, ratio: Fraction, provenance: str) -> Bins:
        """The same bins at another year's prices: every edge times a price ratio, rounded to the nearest integer."""
        if ratio <= 0:
            raise ParameterError(f"a price ratio of {ratio}", where="bins", do="give a positive one")
        return Bins(tuple(floor(b * ratio + Fraction(1, 2)) for b in self.edges), provenance)


def lognormal(mean: Fraction, deviation: Fraction, floor: int) -> Bins:
    """PSEO's construction: a floor, every 5th percentile of a lognormal, the 97.5th; nominal end at the 99.9th.

    U.S. Census Bureau, PSEO Beta Appendix, §2.
    """
    if deviation <= 0:
        raise ParameterError("the standard deviation is not positive", where="bins.lognormal", do="give a positive one")
    shares = [*(i / 20 for i in range(1, 20)), 0.975, 0.999]
    try:
        distribution = NormalDist(float(mean), float(deviation))
        edges = (floor, *(round(exp(distribution.inv_cdf(share))) for share in shares))
    except (OverflowError, StatisticsError):
        raise ParameterError(
            "mean and deviation are too large", where="bins.lognormal", do="give those of the logarithm of earnings"
        ) from None
    return Bins(edges, f"percentiles of lognormal({float(mean):g}, {float(deviation):g}) above a floor of {floor:,}")


# PSEO Beta Appendix and PSEO Technical Appendices, Table 1, in 2016 dollars. The edges are data: the printed
# parameters, 11.003 and 0.753, do not reproduce them.
PSEO = Bins(
    (
        10000, 17403, 22876, 27512, 31857, 36128, 40449, 44914, 49605, 54609, 60027,
        65982, 72639, 80226, 89080, 99735, 113106, 130970, 157509, 207050, 262475, 614597,
    ),
    "PSEO technical appendix, Table 1 (2016 dollars)",
)  # fmt: skip
