"""The exact sparse form: only cells with non-zero discrete Laplace noise. Proof: sparse.md.

Cells are divided into fixed blocks of 2^b cells. Draw j in block B reads counter (B, j): word 0 gives the gap to the
next cell with non-zero noise, word 1 that noise. b depends on the distribution only, so the noise of a range does not
depend on how the range is split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from flint import arb, arb_series

from discreet.arrays import Int64s
from discreet.errors import ParameterError
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import exact_floor
from discreet.noise.jit import compiled
from discreet.noise.samplers.discrete import Magnitude, SignedSampler
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, Rounding, decide_open_draws
from discreet.noise.stream import CHUNK, Stream, check_range

SMALLEST_BLOCK, LARGEST_BLOCK = 12, 44
MOST_NONZERO = 2**31


@dataclass(frozen=True)
class GapQuantile:
    """The number of cells with zero noise before the next non-zero one: floor(ln U / ln(1 − p)), p = P(K ≠ 0)."""

    distribution: Magnitude

    def _rate(self) -> arb:
        return -(-self.distribution.tail(1)).log1p()

    def at(self, u: arb) -> arb:
        """ln u / ln(1 − p)."""
        return -u.log() / self._rate()

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of `at` around every point of the interval u."""
        series = arb_series([u, 1], prec=n).log() * (-1 / self._rate())
        return [series[i] for i in range(n)]


@lru_cache(maxsize=64)
def block_bits(distribution: Magnitude) -> int:
    """b, the smallest with 2^b·p ≥ 16, limited to 12 … 44: part of the stream's definition."""
    exact = exact_floor(lambda: (16 / distribution.tail(1)).log() / arb(2).log()) + 1
    return min(max(exact, SMALLEST_BLOCK), LARGEST_BLOCK)


@compiled
def _walk(gaps: Int64s, values: Int64s, position: Int64s, size: int, cells: Int64s, noise: Int64s) -> int:
    """Advance each block (a row of gaps) from its position; write row·size + offset, and the noise."""
    count = 0
    for row in range(gaps.shape[0]):
        at = position[row]
        for j in range(gaps.shape[1]):
            at += gaps[row, j] + 1
            if at >= size:
                break
            cells[count] = row * size + at
            noise[count] = values[row, j]
            count += 1
        position[row] = at
    return count


def nonzero_noise(distribution: Magnitude, stream: Stream, first: int, n: int) -> tuple[Int64s, Int64s]:
    """Cells of first … first+n−1 with non-zero noise, ascending, and that noise."""
    check_range(first, n)
    share = float(distribution.tail(1))
    if n * share > MOST_NONZERO:
        raise ParameterError(
            "more than 2^31 cells would have non-zero noise",
            where="sparse noise",
            do="use the dense form, or smaller ranges",
        )
    parts = [_empty()] + [_clip(part, first, n) for part in _parts(distribution, stream, first, n, share)]
    cells, noise = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return cells, noise


def _empty() -> tuple[Int64s, Int64s]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


def _clip(part: tuple[Int64s, Int64s], first: int, n: int) -> tuple[Int64s, Int64s]:
    cells, noise = part
    low, high = np.searchsorted(cells, [first, first + n - 1 if n else first], side="left")
    high += int(n > 0 and high < cells.size and cells[high] == first + n - 1)
    return cells[low:high], noise[low:high]


def _parts(
    distribution: Magnitude, stream: Stream, first: int, n: int, share: float
) -> Iterator[tuple[Int64s, Int64s]]:
    """The noise of all blocks that intersect the range, some blocks at a time."""
    bits = block_bits(distribution)
    mean = share * 2.0**bits
    draws = min(ceil(mean + 4 * sqrt(mean)) + 4, CHUNK)  # draws at once: affects speed only
    last = (first + n - 1) >> bits if n else -1
    group = max(CHUNK // draws, 1)
    for block in range(first >> bits, last + 1, group):
        blocks = np.arange(block, min(block + group, last + 1), dtype=np.int64)
        yield _blocks(distribution, stream, blocks, bits, draws)


def _blocks(distribution: Magnitude, stream: Stream, blocks: Int64s, bits: int, draws: int) -> tuple[Int64s, Int64s]:
    """All noise of the given blocks, in rounds of draws for blocks that are not yet complete."""
    position = np.full(blocks.size, -1, dtype=np.int64)
    open_rows = np.arange(blocks.size)
    rounds: list[tuple[Int64s, Int64s]] = []
    done = 0
    while open_rows.size:
        gaps, values = _draw_round(distribution, stream, blocks[open_rows], done, draws)
        cells, noise = np.empty(gaps.size, dtype=np.int64), np.empty(gaps.size, dtype=np.int64)
        at = position[open_rows]
        count = _walk(gaps, values, at, 1 << bits, cells, noise)
        rows, offsets = cells[:count] >> bits, cells[:count] & ((1 << bits) - 1)
        rounds.append(((blocks[open_rows][rows] << bits) + offsets, noise[:count]))
        position[open_rows] = at
        open_rows = open_rows[at < 1 << bits]
        done += draws
    if len(rounds) == 1:
        return rounds[0]
    cells, noise = (np.concatenate(arrays) for arrays in zip(*rounds, strict=True))
    order = np.argsort(cells)
    return cells[order], noise[order]


def _draw_round(
    distribution: Magnitude, stream: Stream, blocks: Int64s, start: int, draws: int
) -> tuple[Int64s, Int64s]:
    """Gaps and non-zero noise (blocks × draws) of draws start, start+1, … in each block."""
    counters = np.empty((blocks.size * draws, 2), dtype=np.uint64)
    counters[:, 0] = np.repeat(blocks, draws)
    counters[:, 1] = np.tile(np.arange(start, start + draws), blocks.size)
    words = stream.sparse_words(counters)

    def more(i: int) -> Iterator[int]:
        return stream.extension("sparse", int(counters[i, 0]), 2 * int(counters[i, 1]))

    gaps = np.empty(len(words), dtype=np.int64)
    rounding = Rounding((GapQuantile(distribution),), Fraction(1), Fraction(0), LARGEST_LIMIT, mirror=False)
    if rounding.draw(words, ONE, gaps) & kernels.UNDECIDED:
        decide_open_draws(rounding, words, more, ONE, gaps)
    values = np.empty(len(words), dtype=np.int64)
    magnitude = Magnitude(distribution.rate, distribution.cap, nonzero=True)
    signed = SignedSampler.of(magnitude, "sparse")
    column = np.ascontiguousarray(words[:, 1:])
    signed.run(stream, column, lambda i: (int(counters[i, 0]), 2 * int(counters[i, 1]) + 1), values, add=False)
    return gaps.reshape(-1, draws), values.reshape(-1, draws)
