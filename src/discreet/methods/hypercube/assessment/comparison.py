"""Bottom-up against interactive noise (Li & Krenzke 2020, §2 and §5): accuracy and additivity of a cube perturbed once
and of tables perturbed separately.

For synthetic, public or previously protected counts, as for `tradeoff`; in `assess`, for the confidential side. Noise
is drawn under a fixed public test key.
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
ADDS_UP = 1e-6  # sums that differ by less are equal: counts are integers


@dataclass(frozen=True)
class NoiseStrategy:
    """A strategy for adding noise, and its privacy loss over all tables."""

    name: str
    distribution: DiscreteLaplace  # of each table's cells, or of the cube's
    epsilon: Fraction
    delta: float


@dataclass(frozen=True)
class ErrorLine:
    """The errors of one strategy in one dimension, of unweighted counts."""

    strategy: str
    dimension: int
    tables: int
    cells: int  # of all tables together
    mean_square: float  # mean over runs of the mean squared error over cells
    nonadditive: (
        float  # share of cells one dimension lower that differ from the sum of this one's; NaN if none compared
    )

    @property
    def rms(self) -> float:
        return sqrt(self.mean_square)


@dataclass(frozen=True)
class Comparison:
    """Every strategy in every dimension."""

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
    """Simulates three strategies: noise by `distribution` on the cells of the cube; the same total ε and δ split over
    the requested tables; and the same distribution for each table, whose ε and δ add up by sequential composition. A
    record is in one cell of each table. Requested are the tables of these dimensions, or all, up to `most` of each;
    the cube answers all others, too."""
    requested = range(1, counts.ndim + 1) if dimensions is None else sorted(set(dimensions))
    tabulated = [margin for dimension in requested for margin in tables(counts.shape, dimension, most)]
    strategies = _strategies(distribution, len(tabulated))
    simulation = _Simulation(counts, tuple(tabulated))
    lines = []
    for strategy in strategies:
        squares, nonadditive = (
            np.array(part) for part in zip(*(simulation.run(strategy, run) for run in range(runs)), strict=True)
        )
        columns = (simulation.number, simulation.cells, squares.mean(axis=0), nonadditive.mean(axis=0))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lines += [ErrorLine(strategy.name, d, *row) for d, row in enumerate(rows, 1) if d in requested]
    return Comparison(runs, tuple(strategies), tuple(lines))


def _strategies(distribution: DiscreteLaplace, number: int) -> list[NoiseStrategy]:
    """The strategies: with the cube's ε and δ for all tables together, or for each."""
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
    """Noise for each of `number` tables with total privacy loss ε and at most δ: rate ε/number, and the smallest cap
    whose δ is at most δ/number, or none. Found by bisection, since δ falls as the cap grows."""
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
    """True counts, and the requested tables."""

    counts: Int64s
    requested: tuple[Margin, ...]

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        return [margin.places for margin in self.requested]

    @cached_property
    def truths(self) -> list[Floats]:
        return [summed(self.counts.shape, self.counts, margin) for margin in self.requested]

    @cached_property
    def number(self) -> Int64s:
        """Numbers of tables by dimension (from index 0)."""
        return self._by_dimension([1] * len(self.requested))

    @cached_property
    def cells(self) -> Int64s:
        """Numbers of cells by dimension."""
        return self._by_dimension([margin.cells for margin in self.requested])

    @cached_property
    def below(self) -> Int64s:
        """Numbers of cells of coarser tables that sums are compared with, by dimension of the finer table."""
        sizes = {places: margin.cells for places, margin in zip(self.places, self.requested, strict=True)}
        return self._by_dimension(
            [sum(sizes.get(_without(places, gone), 0) for gone in places) for places in self.places]
        )

    def _by_dimension(self, numbers: Sequence[int]) -> Int64s:
        sums = np.zeros(self.counts.ndim, np.int64)
        np.add.at(sums, [len(places) - 1 for places in self.places], numbers)
        return sums

    def run(self, strategy: NoiseStrategy, run: int) -> tuple[Floats, Floats]:
        """Mean squared error, and the share of sums that are not additive, by dimension."""
        answers = self._answers(strategy, run)
        squares, wrong = np.zeros(self.counts.ndim), np.zeros(self.counts.ndim)
        for (places, answer), truth, margin in zip(answers.items(), self.truths, self.requested, strict=True):
            squares[len(places) - 1] += ((answer - truth) ** 2).sum()
            table = answer.reshape(margin.sizes)
            for axis, gone in enumerate(places):
                coarse = answers.get(_without(places, gone))
                if coarse is not None:
                    wrong[len(places) - 1] += (np.abs(table.sum(axis=axis).reshape(-1) - coarse) > ADDS_UP).sum()
        shares = np.divide(wrong, self.below, out=np.full_like(wrong, nan), where=self.below > 0)
        return squares / np.maximum(self.cells, 1), shares

    def _answers(self, strategy: NoiseStrategy, run: int) -> dict[tuple[int, ...], Floats]:
        """Every requested table under this strategy."""
        stream = ReleaseKey.simulation("evaluate").stream("evaluate", "cubes", b"", f"{strategy.name}, run {run}")
        if strategy.name == BOTTOM_UP:
            cube = (self.counts.reshape(-1) + strategy.distribution.draw(stream, 0, self.counts.size)).astype(
                np.float64
            )
            answers = [summed(self.counts.shape, cube, margin) for margin in self.requested]
        else:
            noise = strategy.distribution.draw(stream, 0, sum(margin.cells for margin in self.requested))
            ends = np.cumsum([margin.cells for margin in self.requested])
            answers = [truth + noise[end - len(truth) : end] for truth, end in zip(self.truths, ends, strict=True)]
        return dict(zip(self.places, answers, strict=True))


def _without(places: Sequence[int], gone: int) -> tuple[int, ...]:
    return tuple(place for place in places if place != gone)
