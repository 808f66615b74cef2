"""The exponential mechanism over a finite list, drawn in integers (McSherry & Talwar 2007). Proof: formal.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, exact_floor, positive_fraction
from discreet.noise.stream import Stream
from discreet_studies.sensitivity.comparators import Int64s

TOP, LEAST = 2**48, 2**16  # weights of the best candidate, and of any other at least
SLACK = Fraction(1, 2**15)  # of ε/2, for weights rounded to integers
CANDIDATES = 2**14  # so that sums of weights fit in 63 bits


@dataclass(frozen=True)
class IntegerChoice:
    """P(candidate) ∝ e^(−rate·score) for integer scores ≥ 0 of sensitivity at most `step`: pure ε-DP.

    Weights are max(⌊2⁴⁸·e^(−rate·score)⌋, 2¹⁶), rate = (ε/2 − 2⁻¹⁵)/step.
    """

    epsilon: Fraction
    step: int

    def __post_init__(self) -> None:
        if positive_fraction("epsilon", self.epsilon) <= 4 * SLACK:
            raise ParameterError("epsilon is too small for a choice", where="epsilon", do="give more than 2^-13")
        if type(self.step) is not int or self.step < 1:
            raise ParameterError("step is not a positive integer", where="step", do="give the sensitivity of the score")

    @property
    def rate(self) -> Fraction:
        """(ε/2 − 2⁻¹⁵)/step."""
        return (self.epsilon / 2 - SLACK) / self.step

    @property
    def weights(self) -> Int64s:
        """Weights by score; the last one is used for all larger scores."""
        return _weights(self.rate)

    def draw(self, scores: Int64s, stream: Stream) -> Int64s:
        """A candidate for each row of scores (cells, candidates); row i uses the 128 bits of cell i of the stream."""
        if not 0 < scores.shape[1] <= CANDIDATES:
            raise ParameterError("no candidates, or more than 2^14", where="candidates", do="widen their grid")
        table = self.weights
        chosen = np.empty(len(scores), dtype=np.int64)
        row = 0
        for words in stream.words(0, len(scores)):
            for high, low in words.tolist():
                sums = np.cumsum(table[np.minimum(scores[row], table.size - 1)])
                target = (high << 64 | low) * int(sums[-1]) >> 128
                chosen[row] = np.searchsorted(sums, target, side="right")
                row += 1
        return chosen


@lru_cache(maxsize=32)
def _weights(rate: Fraction) -> Int64s:
    weights = [TOP]  # e^0 is an integer, whose floor no interval could decide
    while weights[-1] > LEAST:
        score = len(weights)
        weight = exact_floor(lambda score=score: TOP * (-ball(rate * score)).exp())  # type: ignore[misc]
        weights.append(max(weight, LEAST))
    table = np.array(weights, dtype=np.int64)
    table.flags.writeable = False
    return table
