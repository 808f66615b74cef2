"""Signed magnitudes from key-stream words: compiled where 63 bits decide, exact where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.noise import kernels
from discreet.noise.samplers.exact import Uniform, resolve
from discreet.noise.samplers.magnitude import Magnitude, Thresholds, threshold_table
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, Rounding, settle
from discreet.noise.stream import Stream

More = Callable[[int], Iterator[int]]


class Names(Protocol):
    """Which extension belongs to which draw."""

    def __call__(self, i: int) -> tuple[int, int]:
        """The (draw, part) of the i-th word in the stream's family."""


@dataclass(frozen=True)
class Signed:
    """A law ready to be drawn: ±|K| from word 0 of each row, then its further columns, then the extension."""

    law: Magnitude
    family: str
    table: Thresholds | None

    @classmethod
    def of(cls, law: Magnitude, family: str) -> Signed:
        """By thresholds where they fit, else by the rounded logarithm: the same function of the same bits."""
        return cls(law, family, threshold_table(law))

    def run(self, stream: Stream, words: NDArray[np.uint64], names: Names, out: NDArray[np.int64], add: bool) -> None:
        """Draw into out, or add to it."""

        def more(i: int) -> Iterator[int]:
            yield from (int(word) for word in words[i, 1:])
            yield from stream.extension(self.family, *names(i))

        if self.table is None:
            flags = self._by_logarithm(words, more, out, add)
        else:
            flags = int(kernels.integers(words, self.table.thresholds, self.table.bases, out, add))
            if flags & kernels.UNDECIDED:
                self._break_ties(self.table, words, more, out)
        if flags & kernels.SUSPECT and words.shape[1] == 2:  # half a block that repeats proves nothing
            stream.check_fresh(words)

    def _by_logarithm(self, words: NDArray[np.uint64], more: More, out: NDArray[np.int64], add: bool) -> int:
        rounding = Rounding((self.law,), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=True)
        noise = np.empty_like(out) if add else out
        flags = rounding.draw(words, ONE, noise)
        if flags & kernels.UNDECIDED:
            settle(rounding, words, more, ONE, noise)
        if add:
            out += noise
        return flags

    def _break_ties(self, table: Thresholds, words: NDArray[np.uint64], more: More, out: NDArray[np.int64]) -> None:
        """The kernel has used base for u = threshold; put the exact value in its place."""
        prefix = words[:, 0] & np.uint64(kernels.PREFIX)
        for i in np.flatnonzero(np.isin(prefix, table.thresholds)).tolist():
            used = np.empty(1, dtype=np.int64)
            if kernels.integers(words[i : i + 1], table.thresholds, table.bases, used, False) & kernels.UNDECIDED:
                word = int(words[i, 0])
                exact = resolve(self.law.at, Uniform(word, more(i)), LARGEST_LIMIT)
                out[i] += (-exact if word >> 63 else exact) - int(used[0])
