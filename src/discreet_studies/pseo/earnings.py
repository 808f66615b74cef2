"""Published percentiles beside the truth: PSEO's rule, ours, and the smooth-sensitivity percentile.

For simulations on invented records: it holds the records' exact percentiles, so it is as confidential as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.domain.bins import Bins
from discreet.methods.earnings.shrinkage import estimate
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.percentiles import Floats, Int64s, percentiles
from discreet.post.summary import Question, Summary, summarise
from discreet_studies.pseo.smooth import SmoothPercentiles

SMOOTH_SHARE = Fraction(13, 20)  # of ε for the sensitivity: about the best on the synthetic graduates, in its favour


@dataclass(frozen=True)
class GraduateCells:
    """Exact values of many cells: sorted within a cell, one cell after the other."""

    values: Int64s
    start: Int64s  # of each cell in `values`, and the end
    histograms: Int64s
    bins: Bins

    @property
    def sizes(self) -> Int64s:
        return np.diff(self.start)

    def raw(self, points: Sequence[Fraction]) -> Floats:
        """The percentiles of the values themselves: the ⌈yn⌉-th smallest; NaN in an empty cell."""
        out = np.full((len(self.sizes), len(points)), np.nan)
        some = self.sizes > 0
        for p, y in enumerate(points):
            rank = -(-self.sizes[some] * y.numerator // y.denominator)
            out[some, p] = self.values[self.start[:-1][some] + rank - 1]
        return out

    def noise_free(self, points: tuple[Fraction, ...]) -> Floats:
        """The percentiles of the exact histograms, by Eq. 4: what the limits are about."""
        return percentiles(self.histograms, self.bins, points)


def cells_of(values: Int64s, cells: Int64s, count: int, bins: Bins) -> GraduateCells:
    """Sort values into cells numbered 0 … count − 1."""
    order = np.lexsort((values, cells))
    start = np.searchsorted(cells[order], np.arange(count + 1))
    numbers = np.bincount(cells * bins.count + bins.number(values), minlength=count * bins.count)
    return GraduateCells(values[order], start.astype(np.int64), numbers.reshape(count, bins.count), bins)


@dataclass(frozen=True)
class Trial:
    """One draw of the noise: what would be published by PSEO's rule and by ours, from the same histograms."""

    pseo: Summary
    shrunk: Summary


def trial(
    cells: GraduateCells,
    families: Sequence[Int64s],
    points: tuple[Fraction, ...],
    minimum: int,
    rate: Fraction,
    key: ReleaseKey,
) -> Trial:
    """Protect every cell's histogram and publish it both ways."""
    stream = key.stream("evaluate", "earnings", b"", f"histogram/{rate}")
    noise = DiscreteLaplace(rate).draw(stream, 0, cells.histograms.size)
    noisy = cells.histograms + noise.reshape(cells.histograms.shape)
    asked = Question(cells.bins, points, minimum, rate)
    ones, nothing = np.ones(len(noisy), np.int64), np.zeros(len(noisy), np.bool_)
    guess = estimate(noisy, families, float(rate), cells.bins, points)
    return Trial(summarise(noisy, asked, ones, nothing), summarise(noisy, asked, ones, nothing, guess))


def smooth(cells: GraduateCells, points: tuple[Fraction, ...], epsilon: Fraction, key: ReleaseKey) -> Floats:
    """The smooth-sensitivity percentiles of the same cells, for the same ε."""
    lower, upper = cells.bins.borders[0], cells.bins.borders[-1]
    mechanism = SmoothPercentiles(points, lower, upper, epsilon, SMOOTH_SHARE)
    clamped = np.clip(cells.values, lower, upper)
    return mechanism.protect(clamped, cells.start, key).astype(np.float64)
