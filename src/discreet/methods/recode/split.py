"""Signed integer counts split at random among destinations; the parts add up to the count. Proof: split.md.

Random 64-bit words are an argument: those of the first cell, then those of the second, and so on. How many a cell
uses follows from its count and the shares alone (`words_needed`), so results do not depend on batching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import lcm
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.noise.jit import compiled

Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]
Rule = Literal["multinomial", "balanced"]
LARGEST_COUNT = 2**62
UNIT_BY_UNIT = 1 << 20  # the largest count of which every unit is drawn separately


@dataclass(frozen=True)
class SplitShares:
    """Positive shares of the destinations that add up to 1."""

    parts: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if any(type(part) is not Fraction or part <= 0 for part in self.parts) or sum(self.parts) != 1:
            raise ParameterError(
                "are not positive fractions that add up to 1", where="shares", do="normalise them exactly"
            )

    @cached_property
    def terms(self) -> tuple[int, list[int]]:
        """A common denominator d, and the integers d·p_1 … d·p_m."""
        whole = lcm(*(part.denominator for part in self.parts))
        return whole, [part.numerator * (whole // part.denominator) for part in self.parts]

    @cached_property
    def sums(self) -> list[int]:
        """d·C_1 … d·C_(m−1)."""
        return list(accumulate(self.terms[1][:-1]))

    @cached_property
    def thresholds(self) -> Words:
        """⌊C_j·2⁶⁴⌋ for all but the last."""
        return _thresholds(self.sums, self.terms[0])

    def rest(self, count: int) -> tuple[list[int], list[int]]:
        """The integer parts ⌊count·p_j⌋, and the fractional parts of count·p_j, times d."""
        whole, numerators = self.terms
        return [count * n // whole for n in numerators], [count * n % whole for n in numerators]


def words_needed(counts: Int64s, shares: SplitShares, rule: Rule = "multinomial") -> Int64s:
    """The number of words each cell uses: none if there is one destination.

    Multinomial: one per unit; above 2²⁰ units, one per unit that the integer parts leave. Balanced: one, if the count
    is not zero.
    """
    sizes = _sizes(counts, rule)
    if len(shares.parts) == 1:
        return np.zeros_like(sizes)
    if rule == "balanced":
        return (sizes > 0).astype(np.int64)
    words = sizes.copy()
    for i in np.flatnonzero(sizes > UNIT_BY_UNIT).tolist():
        words[i] = int(sizes[i]) - sum(shares.rest(int(sizes[i]))[0])
    return words


def split(counts: Int64s, shares: SplitShares, words: Words, rule: Rule = "multinomial") -> Int64s:
    """The parts (cells, destinations) of signed counts; |count| units are split, and all parts have its sign.

    Multinomial, as published (PSEO Technical Appendices, B.2): each unit goes to the first destination j with word <
    ⌊C_j·2⁶⁴⌋. Of more than 2²⁰ units each destination first gets ⌊count·share⌋, and only the rest, fewer units than
    destinations, is drawn, in proportion to the fractional parts: the same means, and less variance.

    Balanced: the cumulated parts are count·C_j − U rounded up, with one U per cell. Each part is count·share rounded
    down or up: the same means, and the smallest variance of any integer part with that mean.
    """
    sizes = _sizes(counts, rule)
    used = words_needed(counts, shares, rule)
    if words.dtype != np.uint64 or words.shape != (int(used.sum()),):
        raise ParameterError(
            "are not as many uint64 as are used",
            where="words",
            do="draw as many words as `words_needed` adds up to",
        )
    out = np.zeros((len(counts), len(shares.parts)), np.int64)
    if len(shares.parts) == 1:
        out[:, 0] = counts
        return out
    starts = np.cumsum(used) - used
    if rule == "balanced":
        _balanced(sizes, shares, words, starts, out)
    else:
        _units(sizes, starts, words, shares.thresholds, out, UNIT_BY_UNIT)
        for i in np.flatnonzero(sizes > UNIT_BY_UNIT).tolist():
            _large(int(sizes[i]), shares, words[starts[i] : starts[i] + used[i]], out[i])
    out[counts < 0] *= -1
    return out


def _sizes(counts: Int64s, rule: str) -> Int64s:
    """The absolute counts."""
    if rule not in ("multinomial", "balanced"):
        raise ParameterError(f"no rule {rule!r}", where="rule", do="choose multinomial or balanced")
    if counts.ndim != 1 or counts.dtype != np.int64:
        raise ParameterError("no int64 row of cells", where="counts", do="give one count per cell")
    if counts.size and (int(counts.min()) < -LARGEST_COUNT or int(counts.max()) > LARGEST_COUNT):
        raise ParameterError("a count beyond ±2^62", where="counts", do="check the table")
    return np.abs(counts)


def _thresholds(numerators: Sequence[int], denominator: int) -> Words:
    """⌊x·2⁶⁴⌋ for fractions 0 ≤ x < 1."""
    return np.array([(n << 64) // denominator for n in numerators], np.uint64)


def _large(size: int, shares: SplitShares, words: Words, out: Int64s) -> None:
    """Integer parts, and the rest unit by unit in proportion to the fractional parts."""
    whole, lacking = shares.rest(size)
    out[:] = whole
    if words.size:
        places = np.flatnonzero([lack > 0 for lack in lacking])
        sums = list(accumulate(lacking[j] for j in places.tolist()))
        drawn = np.searchsorted(_thresholds(sums[:-1], sums[-1]), words, side="right")
        np.add.at(out, places[drawn], 1)


def _balanced(sizes: Int64s, shares: SplitShares, words: Words, starts: Int64s, out: Int64s) -> None:
    """⌈size·C_j − word/2⁶⁴⌉ = ⌊size·C_j⌋ + [word < 2⁶⁴·its fraction]: exact for each size that occurs."""
    distinct, which = np.unique(sizes, return_inverse=True)
    floors = np.empty((distinct.size, len(shares.sums)), np.int64)
    fractions = np.empty(floors.shape, np.uint64)
    whole = shares.terms[0]
    for row, size in enumerate(distinct.tolist()):
        floors[row] = [size * n // whole for n in shares.sums]
        fractions[row] = _thresholds([size * n % whole for n in shares.sums], whole)
    some = sizes > 0
    up = words[starts[some], None] < fractions[which[some]]
    out[some, :-1] = floors[which[some]] + up
    out[some, -1] = sizes[some]
    out[:, 1:] -= out[:, :-1].copy()


@compiled
def _units(sizes: Int64s, starts: Int64s, words: Words, thresholds: Words, out: Int64s, largest: int) -> None:
    """Every unit of the counts up to `largest`, each by its own word."""
    for i in range(sizes.shape[0]):
        if sizes[i] > largest:
            continue
        for k in range(starts[i], starts[i] + sizes[i]):
            j = 0
            while j < thresholds.shape[0] and words[k] >= thresholds[j]:
                j += 1
            out[i, j] += 1
