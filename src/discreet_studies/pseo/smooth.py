"""Percentiles with smooth sensitivity (Nissim, Raskhodnikova & Smith 2007): a comparator. Proof: smooth.md.

Foote, Machanavajjhala & McKinney (2019) compared it with the histogram. Neighbours are by addition and removal of a
record, so a cell's size, and with it the rank of a percentile, is confidential too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.power import Power
from discreet.post.percentiles import Floats, Int64s
from discreet_studies.streams import simulation_stream

SLIDE = Fraction("2.279507056954778")  # just above 3^(3/4): privacy loss of 1/(1 + z⁴) per unit of shift
DILATION = 3  # and per unit of log scale
UNIT = Fraction(1, 2**20)  # of a dollar, to which sensitivities are rounded up
SLACK = Fraction(1, 2**19)  # upper bound of what rounding up adds to the log ratio of two sensitivities of 1 or more
BOUND = Fraction(2**50)  # dollars at which noise is truncated, far beyond the clamping of the result
LARGEST = 2**40


@dataclass(frozen=True)
class SmoothPercentiles:
    """Percentiles of one cell with ε in total, split equally; cells are disjoint. Values are clamped to bounds.

    `share` of a percentile's ε covers the change of sensitivity between neighbours, the rest the shift.
    """

    points: tuple[Fraction, ...]
    lower: int
    upper: int
    epsilon: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        positive_fraction("epsilon", self.epsilon)
        if not self.points or any(not 0 < point < 1 or point.denominator > 1000 for point in self.points):
            raise ParameterError("a percentile outside 0 … 1", where="points", do="give shares such as 1/4")
        if not -LARGEST < self.lower < self.upper < LARGEST:
            raise ParameterError("bounds out of order, or beyond 2^40", where="bounds", do="give the lower one first")
        if not 0 < self.share < 1:
            raise ParameterError("a share outside 0 … 1", where="share", do="give a half")
        if self.beta <= 0:
            raise ParameterError("no epsilon left for beta", where="share", do="give a larger share or epsilon")

    @property
    def each(self) -> Fraction:
        """ε of one percentile."""
        return self.epsilon / len(self.points)

    @property
    def beta(self) -> Fraction:
        """β: sensitivities of neighbours differ by at most e^β, before they are rounded up."""
        return self.share * self.each / DILATION - SLACK

    @property
    def noise(self) -> Power:
        """The noise of a percentile of sensitivity UNIT, in whole dollars."""
        return Power(UNIT * SLIDE / ((1 - self.share) * self.each), Fraction(1), BOUND, Fraction(4))

    def truth(self, values: Int64s, start: Int64s) -> Int64s:
        """The percentiles (cells, P), x_(r) with r = ⌈y·n⌉, of ascending values start[i] … start[i+1] − 1 of each cell;
        the lower bound in an empty cell."""
        clamped = self._checked(values, start)
        size, values_at_rank = np.diff(start), np.full((len(start) - 1, len(self.points)), self.lower, np.int64)
        some = size > 0
        for p, point in enumerate(self.points):
            rank = -(-point.numerator * size // point.denominator)
            values_at_rank[some, p] = clamped[start[:-1][some] + rank[some] - 1]
        return values_at_rank

    def sensitivity(self, values: Int64s, start: Int64s) -> Floats:
        """max(S, 1) for each cell and percentile, S the smooth bound of smooth.md. Confidential."""
        numerators, denominators = (
            np.array([getattr(point, part) for point in self.points], np.int64) for part in ("numerator", "denominator")
        )
        clamped = self._checked(values, start)
        return _bounds(clamped, start, numerators, denominators, float(self.beta), self.lower, self.upper)

    def protect(self, values: Int64s, start: Int64s, key: ReleaseKey) -> Int64s:
        """Protected percentiles (cells, P), within the bounds and in order. For simulations: no ledger is charged."""
        scales = self.sensitivity(values, start)
        multiples = np.ceil(scales * (1 / float(UNIT)) * (1 + 2.0**-40)).astype(np.int64)
        stream = simulation_stream(key, "smooth", b"", "percentiles")
        drawn = self.noise.draw(stream, 0, multiples.size, multiples.reshape(-1)).reshape(multiples.shape)
        noisy: Int64s = np.clip(self.truth(values, start) + drawn, self.lower, self.upper)
        return np.sort(noisy, axis=1)  # points ascend, so sorting is post-processing

    def _checked(self, values: Int64s, start: Int64s) -> Int64s:
        if values.dtype != np.int64 or start.dtype != np.int64 or not len(start) or int(start[-1]) != len(values):
            raise ParameterError(
                "values and start are not matching int64 arrays", where="values", do="give where each cell starts"
            )
        return np.clip(values, self.lower, self.upper)


@compiled
def _bounds(
    values: Int64s, start: Int64s, numerators: Int64s, denominators: Int64s, beta: float, lower: int, upper: int
) -> Floats:
    """max over k of e^(−βk)·G_k, stopped when even the whole range could not raise it."""
    out = np.ones((len(start) - 1, len(numerators)))
    for cell in range(len(start) - 1):
        x = values[start[cell] : start[cell + 1]]
        for p in range(len(numerators)):
            k, decay = 0, 1.0
            while decay * (upper - lower) > out[cell, p]:
                gap = _gap(x, numerators[p], denominators[p], k, lower, upper)
                out[cell, p] = max(out[cell, p], decay * gap)
                k += 1
                decay = np.exp(-beta * k)
    return out


@compiled
def _gap(x: Int64s, numerator: int, denominator: int, k: int, lower: int, upper: int) -> int:
    """G_k: the widest x_(t+1+b) − x_(t−a), a + b = k, t one of ⌈y(N+1)⌉ − 1 and ⌈y(N−1)⌉, N = n + a − b."""
    n, widest = len(x), 0
    for b in range(k + 1):
        a = k - b
        for side in (-1, 1):
            t = -((-numerator * (n + a - b + side)) // denominator) - (1 if side > 0 else 0)
            top, bottom = t + 1 + b, t - a
            high = upper if top > n else (lower if top < 1 else x[top - 1])
            low = lower if bottom < 1 else (upper if bottom > n else x[bottom - 1])
            widest = max(widest, high - low)
    return widest
