"""Summaries of protected histograms: count, percentiles and their limits, and suppression of small cells.

Post-processing: computed from protected numbers and public bins alone, no additional ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from discreet.arrays import Flags
from discreet.domain.bins import Bins
from discreet.post.intervals import limits, round_outward
from discreet.post.laplace_sum import count_margin
from discreet.post.percentiles import Floats, Int64s, interpolate, locate, to_dollars

PUBLISHED, SUPPRESSED = 1, 5  # LEHD's status flags
LEVEL = Fraction(9, 10)


@dataclass(frozen=True)
class SummaryParameters:
    """What is computed for every cell, and the rate of the noise in its bins."""

    bins: Bins
    points: tuple[Fraction, ...]
    suppress_below: int
    rate: Fraction


@dataclass(frozen=True)
class Summary:
    """Arrays with one row per cell. The numbers of suppressed cells are placeholders and must not be published."""

    published: Flags
    counts: Int64s
    margins: Int64s
    percentiles: Int64s  # (cells, points)
    low: Int64s
    high: Int64s
    widths: Int64s  # of the bin that a percentile lies in

    @property
    def status(self) -> Int64s:
        return np.where(self.published, PUBLISHED, SUPPRESSED)

    @staticmethod
    def concatenate(parts: Sequence[Summary]) -> Summary:
        """The parts of a level in one summary."""
        return Summary(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Summary)))


def summarise(
    histograms: Int64s,
    parameters: SummaryParameters,
    summands: Int64s,
    suppressed: Flags,
    estimates: Floats | None = None,
) -> Summary:
    """Percentiles by PSEO's rule (PSEO Beta Appendix, Eq. 4), suppressed below a threshold of the protected count.

    `estimates` replace those percentiles, clamped to the limits.
    """
    counts = histograms.sum(axis=1)
    published = (counts >= parameters.suppress_below) & ~suppressed
    shown = np.where(published[:, None], histograms, 1)  # placeholder with a positive total: it is not published
    low, high = round_outward(*limits(shown, parameters.bins, parameters.points, parameters.rate, summands, LEVEL))
    edges = np.array(parameters.bins.edges)
    if estimates is None:
        bin_numbers, fractions = locate(shown, parameters.bins, parameters.points)
        amounts = to_dollars(interpolate(bin_numbers, fractions, parameters.bins))
    else:
        amounts = to_dollars(np.where(published[:, None], estimates, edges[0]))
        amounts = np.maximum.accumulate(np.clip(amounts, low, high), axis=1)
        low, high = np.minimum(low, amounts), np.maximum(high, amounts)
        bin_numbers = np.searchsorted(edges[1:-1], amounts, side="right")
    return Summary(
        published=published,
        counts=counts,
        margins=margins(parameters.rate, summands * parameters.bins.count),
        percentiles=amounts.astype(np.int64),
        low=low.astype(np.int64),
        high=high.astype(np.int64),
        widths=edges[bin_numbers + 1] - edges[bin_numbers],
    )


def margins(rate: Fraction, draws: Int64s) -> Int64s:
    """The 90% margin of error of a sum of this many draws, for each cell."""
    distinct, place = np.unique(draws, return_inverse=True)
    return np.array([count_margin(rate, int(n), LEVEL) for n in distinct], np.int64)[place]
