"""Spearman's correlation of noisy rankings with those of noise infusion and of the truth (Haney et al. 2017, Fig. 2,
5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.formatting import Observer
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet_studies.employer.mechanism_grid import GEOMETRIC, TRUNCATED, MechanismGrid
from discreet_studies.employer.ratios import EVERY, OCCUPIED
from discreet_studies.employer.workloads import GRADUATE_WOMAN, PARTS, Floats, Int64s, TabulatedFrame

RANKED = {1: (1, 0), 2: (2, GRADUATE_WOMAN)}  # ranking -> workload, column
TRIALS = {OCCUPIED: 10, EVERY: 1}  # correlations over this many cells vary little; all cells are only for comparison


class MechanismSetting(NamedTuple):
    """A mechanism with its parameters."""

    name: str
    alpha: Fraction | None
    epsilon: Fraction
    theta: int | None
    mechanism: Mechanism


@dataclass(frozen=True)
class Correlation:
    """Mean correlation over trials, for the cells of a stratum."""

    ranking: int
    mechanism: str
    alpha: Fraction | None
    epsilon: Fraction
    theta: int | None
    stratum: str
    cells: str
    number: int
    trials: int
    infusion: float  # with the ranking by noise infusion, as in the paper
    truth: float  # with the true ranking, which no agency publishes

    @property
    def setting(self) -> tuple[object, ...]:
        """Mechanism, parameters and cells, without the ranking."""
        return self.mechanism, self.alpha, self.epsilon, self.theta, self.stratum, self.cells


@dataclass(frozen=True)
class StrataCells:
    """Indices of all cells and of the cells of each stratum."""

    stratum: NDArray[np.int8]
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, stratum: NDArray[np.int8]) -> StrataCells:
        """All cells, then each stratum."""
        some = (np.flatnonzero(stratum == position) for position in range(len(PARTS) - 1))
        return cls(stratum, (np.arange(len(stratum)), *some))

    def ranks(self, values: Floats | Int64s) -> list[Floats]:
        """Centred ranks within all cells and within each stratum; ties share their mean rank. Sorted once."""
        order = np.argsort(values, kind="stable")
        tied, where, by_cell = values[order], self.stratum[order], np.empty(len(order))
        ranks = []
        for position, members in enumerate(self.members):
            mine = where == position - 1 if position else slice(None)
            by_cell[order[mine]] = _shared(tied[mine])
            ranks.append(by_cell[members])
        return ranks


def _shared(tied: Floats | Int64s) -> Floats:
    """Centred ranks of sorted values."""
    _, where, sizes = np.unique(tied, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(sizes) - (sizes + len(tied)) / 2)[where]
    return ranks


def spearman(one: list[Floats], other: list[Floats]) -> Floats:
    """Pearson's correlation of centred ranks; NaN where all are tied or there are none."""

    def dot(a: Floats, b: Floats) -> float:
        return float(np.einsum("i,i", a, b))  # not a @ b: BLAS would start threads

    pairs = [(dot(a, b), dot(a, a) * dot(b, b)) for a, b in zip(one, other, strict=True)]
    return np.array([product / scale**0.5 if scale > 0 else np.nan for product, scale in pairs])


@dataclass(frozen=True)
class Ranking:
    """Cells to rank, with the reference ranks of noise infusion and of the truth."""

    number: int
    cells: str
    cell_numbers: NDArray[np.intp]
    groups: StrataCells
    counts: Int64s
    largest: Int64s
    references: tuple[list[Floats], list[Floats]]

    @classmethod
    def of(cls, world: TabulatedFrame, number: int, cells: str) -> Ranking:
        """Over all cells, or over those with establishments."""
        workload, column = RANKED[number]
        table = world.of(workload)
        cell_numbers = np.flatnonzero(world.occupied if cells == OCCUPIED else np.ones_like(world.occupied))
        groups, counts = StrataCells.of(world.stratum[cell_numbers]), table.counts[cell_numbers, column]
        references = groups.ranks(table.infused.values[cell_numbers, column]), groups.ranks(counts)
        return cls(number, cells, cell_numbers, groups, counts, table.largest[cell_numbers, column], references)

    def correlations(self, world: TabulatedFrame, setting: MechanismSetting) -> Iterator[Correlation]:
        """Mean correlations of a mechanism over trials. Truncated jobs are removed before ranking."""
        counts, trials = self.counts, TRIALS[self.cells]
        if setting.theta is not None:
            workload, column = RANKED[self.number]
            counts = counts - world.removed(setting.theta, workload)[self.cell_numbers, column]
        total = np.zeros((2, len(PARTS)))
        for trial in range(trials):
            stream = world.stream("ranking", self.number, self.cells, *setting[:4], trial)
            noisy = self.groups.ranks(setting.mechanism.draw(counts, self.largest, stream, 0))
            total += [spearman(noisy, reference) for reference in self.references]
        for position, stratum in enumerate(PARTS):
            yield Correlation(
                self.number,
                *setting[:4],
                stratum,
                self.cells,
                len(self.groups.members[position]),
                trials,
                *(total[:, position] / trials).tolist(),
            )


def settings(grid: MechanismGrid) -> list[MechanismSetting]:
    """Every mechanism at every admissible pair. Ranking 2 is a single query: ε is not divided."""
    rows = [
        MechanismSetting(c.name, alpha, epsilon, None, mechanism) for c, alpha, epsilon, mechanism in grid.admissible(1)
    ]
    rows += [MechanismSetting(GEOMETRIC, None, epsilon, None, Geometric(epsilon)) for epsilon in grid.epsilons]
    for theta in grid.thetas:
        rows += [
            MechanismSetting(TRUNCATED, None, epsilon, theta, Truncated(epsilon, theta, "printed"))
            for epsilon in grid.epsilons
        ]
    return rows


def correlations(world: TabulatedFrame, grid: MechanismGrid, observe: Observer) -> Iterator[Correlation]:
    """Both rankings, mechanism by mechanism: tables of distributions are large, and few are cached."""
    wanted = [Ranking.of(world, number, cells) for number in RANKED for cells in TRIALS]
    chosen = settings(grid)
    for done, setting in enumerate(chosen, 1):
        for ranking in wanted:
            yield from ranking.correlations(world, setting)
        observe("rankings", done, len(chosen))
