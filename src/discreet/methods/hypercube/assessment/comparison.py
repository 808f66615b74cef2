"""One cube perturbed once, or every table on its own (002, §2 and §5): what either costs in accuracy and in sums.

For synthetic, public or earlier protected counts, as `tradeoff` is. Noise is drawn under a fixed public test key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import nan, sqrt

import numpy as np
from flint import arb

from discreet.arrays import Floats, Int64s
from discreet.methods.hypercube.assessment.cubes import MOST_TABLES, summed, tables
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Margin

BOTTOM_UP = "bottom-up"
SPLIT, EACH = "interactive, same total ε", "interactive, same ε for each table"
RUNS = 20
ADDS_UP = 1e-6  # sums that differ by less agree: counts are whole


@dataclass(frozen=True)
class NoiseStrategy:
    """A way to answer, and what it pays for all tables together."""

    name: str
    distribution: DiscreteLaplace  # of each table, or of the cube
    epsilon: Fraction
    delta: float


@dataclass(frozen=True)
class ErrorLine:
    """One way in one dimension. Errors are of unweighted counts; a weighted total's are as many average weights."""

    strategy: str
    dimension: int
    tables: int
    cells: int  # of all tables together
    mean_square: float  # mean over runs of the mean squared error over cells
    nonadditive: (
        float  # share of the cells one dimension lower that are not the sum of this one's; NaN if none was asked for
    )

    @property
    def rms(self) -> float:
        return sqrt(self.mean_square)


@dataclass(frozen=True)
class Comparison:
    """Every way in every dimension."""

    runs: int
    strategies: tuple[NoiseStrategy, ...]
    lines: tuple[ErrorLine, ...]


def compare(
    counts: Int64s,
    distribution: DiscreteLaplace,
    *,
    dimensions: Iterable[int] | None = None,
    most: int = MOST_TABLES,
    runs: int = RUNS,
) -> Comparison:
    """Bottom-up noise by `distribution` on the cells of the cube, against the same ε and δ spread over all tables asked for, and
    against the same distribution for each table, which costs ε and δ as often. A record is in one cell of each table. Asked for
    are the tables of these dimensions, or all, up to `most` of each; bottom-up has answered the others, too."""
    wanted = range(1, counts.ndim + 1) if dimensions is None else sorted(set(dimensions))
    asked = [margin for dimension in wanted for margin in tables(counts.shape, dimension, most)]
    ways = _ways(distribution, len(asked))
    simulation = _Simulation(counts, tuple(asked))
    lines = []
    for way in ways:
        squares, nonadditive = (
            np.array(part) for part in zip(*(simulation.run(way, run) for run in range(runs)), strict=True)
        )
        columns = (simulation.number, simulation.cells, squares.mean(axis=0), nonadditive.mean(axis=0))
        found = zip(*(column.tolist() for column in columns), strict=True)
        lines += [ErrorLine(way.name, d, *row) for d, row in enumerate(found, 1) if d in wanted]
    return Comparison(runs, tuple(ways), tuple(lines))


def _ways(distribution: DiscreteLaplace, number: int) -> list[NoiseStrategy]:
    """What the cube costs is what the tables may cost together."""
    once, split = (
        float(distribution.delta()),
        split_noise(distribution.rate, None if distribution.cap is None else distribution.delta(), number),
    )
    return [
        NoiseStrategy(BOTTOM_UP, distribution, distribution.rate, once),
        NoiseStrategy(SPLIT, split, distribution.rate, number * float(split.delta())),
        NoiseStrategy(EACH, distribution, number * distribution.rate, min(1.0, number * once)),
    ]


def split_noise(epsilon: Fraction, delta: arb | None, number: int) -> DiscreteLaplace:
    """Noise for each of so many tables that together cost ε and at most δ: rate ε/number, and the smallest cap whose δ
    is at most δ/number, or none. It is looked for: δ falls as the cap grows."""
    rate = epsilon / number
    if delta is None:
        return DiscreteLaplace(rate)

    def enough(cap: int) -> bool:
        return bool(DiscreteLaplace(rate, cap).delta() <= delta / number)

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return DiscreteLaplace(rate, high)


@dataclass(frozen=True)
class _Simulation:
    """True counts, and the tables asked for."""

    counts: Int64s
    asked: tuple[Margin, ...]

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        return [margin.places for margin in self.asked]

    @cached_property
    def truths(self) -> list[Floats]:
        return [summed(self.counts.shape, self.counts, margin) for margin in self.asked]

    @cached_property
    def number(self) -> Int64s:
        """Tables, by dimension (less 1, here and below)."""
        return self._by_dimension([1] * len(self.asked))

    @cached_property
    def cells(self) -> Int64s:
        """Cells of all tables."""
        return self._by_dimension([margin.cells for margin in self.asked])

    @cached_property
    def below(self) -> Int64s:
        """Cells of the coarser tables that sums are compared with, by dimension of the finer."""
        sizes = {places: margin.cells for places, margin in zip(self.places, self.asked, strict=True)}
        return self._by_dimension(
            [sum(sizes.get(_without(places, gone), 0) for gone in places) for places in self.places]
        )

    def _by_dimension(self, numbers: Sequence[int]) -> Int64s:
        sums = np.zeros(self.counts.ndim, np.int64)
        np.add.at(sums, [len(places) - 1 for places in self.places], numbers)
        return sums

    def run(self, way: NoiseStrategy, run: int) -> tuple[Floats, Floats]:
        """Mean squared error, and the share of sums that disagree, by dimension."""
        answers = self._answers(way, run)
        squares, wrong = np.zeros(self.counts.ndim), np.zeros(self.counts.ndim)
        for (places, answer), truth, margin in zip(answers.items(), self.truths, self.asked, strict=True):
            squares[len(places) - 1] += ((answer - truth) ** 2).sum()
            table = answer.reshape(margin.sizes)
            for axis, gone in enumerate(places):
                coarse = answers.get(_without(places, gone))
                if coarse is not None:
                    wrong[len(places) - 1] += (np.abs(table.sum(axis=axis).reshape(-1) - coarse) > ADDS_UP).sum()
        shares = np.divide(wrong, self.below, out=np.full_like(wrong, nan), where=self.below > 0)
        return squares / np.maximum(self.cells, 1), shares

    def _answers(self, way: NoiseStrategy, run: int) -> dict[tuple[int, ...], Floats]:
        """Every table as this way answers it."""
        stream = ReleaseKey.simulation("evaluate").stream("evaluate", "cubes", b"", f"{way.name}, run {run}")
        if way.name == BOTTOM_UP:
            cube = (self.counts.reshape(-1) + way.distribution.draw(stream, 0, self.counts.size)).astype(np.float64)
            found = [summed(self.counts.shape, cube, margin) for margin in self.asked]
        else:
            noise = way.distribution.draw(stream, 0, sum(margin.cells for margin in self.asked))
            ends = np.cumsum([margin.cells for margin in self.asked])
            found = [truth + noise[end - len(truth) : end] for truth, end in zip(self.truths, ends, strict=True)]
        return dict(zip(self.places, found, strict=True))


def _without(places: Sequence[int], gone: int) -> tuple[int, ...]:
    return tuple(place for place in places if place != gone)
