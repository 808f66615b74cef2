"""Symmetric noise rounded to a grid: common base of the distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from discreet.arrays import Int64s, Words
from discreet.errors import ParameterError
from discreet.noise import kernels
from discreet.noise.interval_arithmetic import ball, conservative_floor, positive_fraction
from discreet.noise.samplers.rounded import LARGEST_LIMIT, ONE, QuantileFunction, Rounding, decide_open_draws
from discreet.noise.stream import Stream, check_range

SCALES = 2**100


def grid_limit(grid: Fraction, bound: Fraction) -> int:
    """The declared bound in grid units, rounded down."""
    limit = bound // grid
    if not 1 <= limit <= LARGEST_LIMIT:
        raise ParameterError(
            "the bound is outside 1 … 2^52 grid units", where="bound", do="choose a coarser grid or another bound"
        )
    return int(limit)


def check_scale(scale: Fraction) -> None:
    """Check that a scale in grid units is a normal float64 number, for the compiled path."""
    if not Fraction(1, SCALES) <= scale <= SCALES:
        raise ParameterError("the scale is outside 2^-100 … 2^100 grid units", where="scale", do="choose another grid")


def draw_rounded(rounding: Rounding, stream: Stream, first: int, n: int, multiples: Int64s | None) -> Int64s:
    """The rounded values of cells first … first+n−1; `multiples` scales each cell by a positive integer."""
    check_range(first, n)
    factors = _checked(multiples, n)
    out = np.empty(n, dtype=np.int64)
    start = 0
    for words in stream.raw_words(first, n):
        part = slice(start, start + len(words))
        mine = factors if multiples is None else factors[part]
        flags = rounding.draw(words, mine, out[part])
        if flags & kernels.SUSPECT:
            stream.check_fresh(words)
        if flags & kernels.UNDECIDED:
            decide_open_draws(rounding, words, _more(stream, words, first + start), mine, out[part])
        start += len(words)
    return out


def _more(stream: Stream, words: Words, first: int) -> Callable[[int], Iterator[int]]:
    def more(i: int) -> Iterator[int]:
        yield int(words[i, 1])
        yield from stream.extension("cells", first + i, 0)

    return more


def _checked(multiples: Int64s | None, n: int) -> Int64s:
    if multiples is None:
        return ONE
    if multiples.dtype != np.int64 or multiples.shape != (n,):
        raise ParameterError("multiples must be one int64 per cell", where="multiples", do="convert them first")
    if n and int(multiples.min()) < 1:
        raise ParameterError("a multiple is below 1", where="multiples", do="use positive multiples")
    return np.ascontiguousarray(multiples)


@dataclass(frozen=True)
class GridNoise(ABC):
    """±min(floor(scale/grid·G(U) + ½), bound/grid): scale·Z on the grid, G the tail quantile of |Z|."""

    scale: Fraction
    grid: Fraction
    bound: Fraction

    def __post_init__(self) -> None:
        for name in ("scale", "grid", "bound"):
            object.__setattr__(self, name, positive_fraction(name, getattr(self, name)))
        grid_limit(self.grid, self.bound)
        check_scale(self.scale / self.grid)

    @property
    @abstractmethod
    def distribution(self) -> QuantileFunction:
        """G, with P(|Z| > G(u)) = u."""

    @property
    def rounding(self) -> Rounding:
        """The rule that maps words to grid units."""
        limit = grid_limit(self.grid, self.bound)
        return Rounding((self.distribution,), self.scale / self.grid, Fraction(1, 2), limit, mirror=True)

    def draw(self, stream: Stream, first: int, n: int, multiples: Int64s | None = None) -> Int64s:
        """The noise of cells first … first+n−1 in grid units; cell i has scale multiples[i]·scale."""
        return draw_rounded(self.rounding, stream, first, n, multiples)

    def margin(self, level: Fraction, multiple: int = 1) -> int:
        """The smallest m in grid units with P(|k| ≤ m) ≥ level; possibly one more, if no precision can decide."""
        alpha = 1 - positive_fraction("level", level)
        if alpha <= 0:
            raise ParameterError(
                "a level lies strictly between 0 and 1", where="level", do='for example Fraction("0.9")'
            )

        def value() -> arb:
            return self.distribution.at(ball(alpha)) * ball(multiple * self.scale / self.grid) + ball(Fraction(1, 2))

        return min(conservative_floor(value), grid_limit(self.grid, self.bound))
