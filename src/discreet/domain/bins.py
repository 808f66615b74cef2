"""Bins of a measured quantity, such as yearly earnings: public borders, declared before any record is read.

Bin j of M is [b_j, b_{j+1}); the last one is open above, and b_{M+1} is only its nominal end, used to interpolate. A
value below b_1 belongs to the first bin (whoever wants it left out says so in the sample rule).
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

LARGEST = 2**40  # of a border: far above any earnings, far below where float64 loses whole numbers
MOST = 1000  # bins


@dataclass(frozen=True)
class Bins:
    """M + 1 ascending whole borders, and where they come from."""

    borders: tuple[int, ...]
    provenance: str = "declared borders"

    def __post_init__(self) -> None:
        if not 2 <= len(self.borders) <= MOST + 1:
            raise ParameterError(f"{len(self.borders)} borders", where="bins", do=f"give 2 to {MOST + 1} of them")
        if any(type(b) is not int or abs(b) > LARGEST for b in self.borders):
            raise ParameterError("a border is no whole number within ±2^40", where="bins", do="give whole borders")
        if low := next(((a, b) for a, b in pairwise(self.borders) if a >= b), None):
            raise ParameterError(
                f"border {low[1]} does not lie above {low[0]}", where="bins", do="give ascending borders"
            )

    @property
    def count(self) -> int:
        """M, the number of bins."""
        return len(self.borders) - 1

    def edges(self) -> Floats:
        """The borders as an array."""
        return np.array(self.borders, np.float64)

    def number(self, values: Floats | Int64s) -> Int64s:
        """The bin of each value, from 0: Eq. 2, with what lies below the first border in the first bin."""
        return np.searchsorted(self.borders[1:-1], values, side="right").astype(np.int64)

    def indexed(self, ratio: Fraction, provenance: str) -> Bins:
        """The same bins in another year's money: every border times a ratio of prices, to the nearest unit."""
        if ratio <= 0:
            raise ParameterError(f"a price ratio of {ratio}", where="bins", do="give a positive one")
        return Bins(tuple(floor(b * ratio + Fraction(1, 2)) for b in self.borders), provenance)


def lognormal(mean: Fraction, deviation: Fraction, floor: int) -> Bins:
    """PSEO's construction (000 §2): a floor, every 5th percentile of a lognormal, the 97.5th; nominal end at 99.9."""
    if deviation <= 0:
        raise ParameterError("the standard deviation is not positive", where="bins.lognormal", do="give a positive one")
    shares = [*(i / 20 for i in range(1, 20)), 0.975, 0.999]
    try:
        distribution = NormalDist(float(mean), float(deviation))
        borders = (floor, *(round(exp(distribution.inv_cdf(share))) for share in shares))
    except (OverflowError, StatisticsError):
        raise ParameterError(
            "parameters beyond any earnings", where="bins.lognormal", do="give mean and deviation of the logarithm"
        ) from None
    return Bins(borders, f"percentiles of lognormal({float(mean):g}, {float(deviation):g}) above a floor of {floor:,}")


# 000 and 001, Table 1, in 2016 dollars. They are data: the printed parameters, 11.003 and 0.753, do not give them.
PSEO = Bins(
    (
        10000, 17403, 22876, 27512, 31857, 36128, 40449, 44914, 49605, 54609, 60027,
        65982, 72639, 80226, 89080, 99735, 113106, 130970, 157509, 207050, 262475, 614597,
    ),
    "PSEO technical appendix, Table 1 (2016 dollars)",
)  # fmt: skip
