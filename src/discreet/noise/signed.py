"""Signed magnitudes from key-stream words: compiled where 63 bits decide, exact where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.noise import kernels
from discreet.noise.exact import Uniform, resolve
from discreet.noise.magnitude import Magnitude, Thresholds, threshold_table
from discreet.noise.rounded import LARGEST_LIMIT, ONE, Rounding, settle
from discreet.noise.stream import Stream


@dataclass(frozen=True)
class Draws:
    """Signed magnitudes from words: word 0 of each row first, its further columns next, then the extension.

    `ids` are the draws' numbers in the stream's family, `parts` their sub-numbers (0 if there are none).
    """

    law: Magnitude
    family: str
    ids: range | NDArray[np.int64]
    parts: NDArray[np.int64] | None = None

    def run(self, stream: Stream, words: NDArray[np.uint64], out: NDArray[np.int64], add: bool) -> None:
        """Draw into out, or add to it: by thresholds, or for small rates by the rounded logarithm."""
        table = threshold_table(self.law)
        if table is None:
            noise = np.empty_like(out) if add else out
            flags = self._rounding().draw(words, ONE, noise)
            if flags & kernels.UNDECIDED:
                settle(self._rounding(), words, lambda i: self._more(stream, words, i), ONE, noise)
            if add:
                out += noise
        else:
            flags = kernels.integers(words, table.thresholds, table.bases, out, add)
            if flags & kernels.UNDECIDED:
                self._break_ties(stream, words, table, out)
        if flags & kernels.SUSPECT and words.shape[1] == 2:  # half a block that repeats proves nothing
            stream.check_fresh(words)

    def _rounding(self) -> Rounding:
        return Rounding((self.law,), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=True)

    def _more(self, stream: Stream, words: NDArray[np.uint64], i: int) -> Iterator[int]:
        yield from (int(word) for word in words[i, 1:])
        yield from stream.extension(
            self.family, int(self.ids[i]), 0 if self.parts is None else int(self.parts[i])
        )

    def _break_ties(
        self,
        stream: Stream,
        words: NDArray[np.uint64],
        table: Thresholds,
        out: NDArray[np.int64],
    ) -> None:
        """The kernel has written base for u = threshold; put the exact value in its place."""
        tie = kernels.UNDECIDED
        prefix = words[:, 0] & np.uint64(kernels.PREFIX)
        for i in np.flatnonzero(np.isin(prefix, table.thresholds)).tolist():
            provisional = np.empty(1, dtype=np.int64)
            if kernels.integers(words[i : i + 1], table.thresholds, table.bases, provisional, False) == tie:
                word = int(words[i, 0])
                exact = resolve(self.law.at, Uniform(word, self._more(stream, words, i)), LARGEST_LIMIT)
                out[i] += (-exact if word >> 63 else exact) - int(provisional[0])
