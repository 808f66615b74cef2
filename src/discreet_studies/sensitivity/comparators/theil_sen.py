"""Private Theil–Sen: the median prediction of random pairs (Alabi et al. 2022, k matchings). Proof: formal.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet_studies.sensitivity.comparators import Estimates, Floats, FormalMethod, Int64s, with_fallback
from discreet_studies.sensitivity.comparators.choice import IntegerChoice
from discreet_studies.sensitivity.comparators.moments import check_cells

BLOCK = 2048  # cells whose scores are in memory at once
POINTS, REACH = 1001, 5  # candidates, and half-width of the widened mechanism


@dataclass(frozen=True)
class TheilSen(FormalMethod):
    """The exponential mechanism for the median of the predictions at x0 of the pairs of k random matchings.

    A prediction is snapped to 1,001 candidates from 0 to 1, those outside to the ends. The score of a candidate is
    | #below − #above |, or the least of it within 1/200: the widened mechanism. One record changes one pair in each
    matching, whether it is added, removed, or replaced in its cell.
    """

    name = "theil-sen"
    matchings: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.matchings) is not int or not 1 <= self.matchings <= 1000:
            raise ParameterError(
                "matchings is not an integer from 1 to 1,000", where="matchings", do="give a small integer"
            )

    @property
    def choice(self) -> IntegerChoice:
        """The score has sensitivity 2 per matching."""
        return IntegerChoice(self.epsilon, 2 * self.matchings)

    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """An answer in every cell, even where it carries no information."""
        check_cells(x, y, starts)
        orders = np.stack([self._order(starts, key, t) for t in range(self.matchings)])
        chosen = np.empty(starts.size - 1, dtype=np.int64)
        for first in range(0, chosen.size, BLOCK):
            part = starts[first : first + BLOCK + 1]
            scores = median_scores(x, y, part, orders, float(self.x0), POINTS, REACH)
            stream = self.stream(key, f"choice {first}")
            chosen[first : first + BLOCK] = self.choice.draw(scores, stream)
        return with_fallback(chosen / (POINTS - 1), np.ones(chosen.size, dtype=np.bool_))

    def _order(self, starts: Int64s, key: ReleaseKey, matching: int) -> Int64s:
        """The rows of every cell in random order: neighbours in it are pairs."""
        stream = self.stream(key, f"matching {matching}")
        blocks = [block.copy() for block in stream.words(0, int(starts[-1]))]
        words = np.concatenate([np.empty((0, 2), np.uint64), *blocks])
        cells = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        return np.lexsort((words[:, 1], words[:, 0], cells))  # both words of a block: no two blocks are equal


@compiled
def median_scores(x: Floats, y: Floats, starts: Int64s, orders: Int64s, x0: float, points: int, reach: int) -> Int64s:
    """| #below − #above | of every candidate, the least within `reach` candidates. Pairs of equal x do not count."""
    out = np.empty((starts.shape[0] - 1, points), dtype=np.int64)
    for cell in range(starts.shape[0] - 1):
        counts = np.zeros(points, dtype=np.int64)
        for t in range(orders.shape[0]):
            for i in range(starts[cell], starts[cell + 1] - 1, 2):
                a, b = orders[t, i], orders[t, i + 1]
                if x[a] != x[b]:
                    value = y[a] + (y[b] - y[a]) / (x[b] - x[a]) * (x0 - x[a])
                    if not np.isnan(value):  # 0 · ∞ where the difference of x underflows
                        counts[int(min(max(value, 0.0), 1.0) * (points - 1) + 0.5)] += 1
        _balance(counts, reach, out[cell])
    return out


@compiled
def _balance(counts: Int64s, reach: int, out: Int64s) -> None:
    points = counts.shape[0]
    below, total = 0, counts.sum()
    balance = np.empty(points, dtype=np.int64)  # #below − #above: it never falls
    crossing = points
    for i in range(points):
        balance[i] = 2 * below + counts[i] - total
        below += counts[i]
        if balance[i] >= 0 and crossing == points:
            crossing = i
    for i in range(points):
        low, high = max(i - reach, 0), min(i + reach, points - 1)
        if balance[low] >= 0:
            out[i] = balance[low]
        elif balance[high] < 0:
            out[i] = -balance[high]
        else:
            out[i] = min(balance[crossing], -balance[crossing - 1])
