"""Cells of the synthetic atlas: sorted observations, statistics with their sensitivities, and the paper's noise.

The paper: Chetty & Friedman (2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.methods.sensitivity.statistics import EXACT, Floats, Int64s, Search, Statistic, Variable
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.statistics.winsorised import WinsorisedLine
from discreet.methods.sensitivity.utility.tradeoff import DISTRIBUTIONS, GRID, TO_UNIT, Distribution
from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet.synth.atlas import BLOCK, GENDERS, GROUPS, Atlas, block, generate_tracts

CHILDREN_A_TRACT = Fraction(20_000_000, 70_000)  # as in the paper
LEAST = 20  # children of a cell: smaller cells are left out (§III)
MANY = 50  # Table 1 uses cells with more
AT = 0.25  # the 25th percentile of parents
MEDIAN = 0.5
EPSILON = Fraction(8)

PARENT, CHILD = Variable("parent_rank", 0, 1), Variable("child", 0, 1)
PLAIN = Line(PARENT, CHILD, "prediction", AT)
WINSORISED = WinsorisedLine(PARENT, CHILD, "prediction", AT, points=2)  # the sensitivity of its error is not needed

Bools = NDArray[np.bool_]


def tracts_for(children: int) -> int:
    """The number of tracts that gives the paper's children per tract."""
    return max(1, round(children / CHILDREN_A_TRACT))


def stream(purpose: str) -> Stream:
    """Noise of the study, from a fixed simulation key."""
    return ReleaseKey.simulation("reproduce sensitivity").stream("reproduce", "sensitivity", b"", purpose)


def omega(cells: int, purpose: str, distribution: Distribution = "normal") -> Floats:
    """ω of mean 0 and variance 1 (Step 4)."""
    return DISTRIBUTIONS[distribution].draw(stream(purpose), 0, cells).astype(np.float64) * (
        float(GRID) * TO_UNIT[distribution]
    )


@dataclass(frozen=True)
class CellObservations:
    """Children of many cells: x and y, cell by cell, sorted by x; and the tract and group of each cell."""

    x: Floats
    y: Floats
    starts: Int64s
    tract: Int64s
    group: Int64s  # race · 2 + gender; 0 where groups are pooled

    @property
    def n(self) -> Int64s:
        return np.diff(self.starts)

    @property
    def low(self) -> Int64s:
        """Children of parents below the median: the weights of Table 1 and Figure 3."""
        return np.add.reduceat((self.x < MEDIAN).astype(np.int64), self.starts[:-1])

    def cell(self, number: int) -> tuple[Floats, Floats]:
        """One cell's x and y."""
        rows = slice(self.starts[number], self.starts[number + 1])
        return self.x[rows], self.y[rows]

    def only(self, cells: Int64s) -> CellObservations:
        """These cells, in this order."""
        sizes = self.n[cells]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.repeat(self.starts[cells] - starts[:-1], sizes) + np.arange(starts[-1])
        return CellObservations(self.x[rows], self.y[rows], starts, self.tract[cells], self.group[cells])


def observations(
    world: Atlas,
    outcome: str,
    race: int | None = None,
    gender: int | None = None,
    *,
    by_group: bool,
    least: int = LEAST,
) -> CellObservations:
    """Children of one race or gender, or all; a cell is a tract, or a group within a tract. Small cells are left
    out."""
    rows = np.ones(len(world), np.bool_)
    if race is not None:
        rows &= world.race == race
    if gender is not None:
        rows &= world.gender == gender
    label = world.tract.astype(np.int64)
    if by_group:
        label = label * GROUPS + world.race * len(GENDERS) + world.gender
    counts = np.bincount(label[rows], minlength=len(world.tracts) * (GROUPS if by_group else 1))
    rows &= (counts >= least)[label]
    cells = np.flatnonzero(counts >= least)
    starts = np.concatenate([[0], np.cumsum(counts[cells])]).astype(np.int64)
    x, y = world.parent_rank[rows], getattr(world, outcome)[rows].astype(np.float64)
    order = np.lexsort((x, np.repeat(np.arange(cells.size), counts[cells])))
    tract, group = np.divmod(cells, GROUPS if by_group else 1)
    return CellObservations(x[order], y[order], starts, tract, group)


def one_group(children: int, seed: int, race: int, gender: int) -> Atlas:
    """The atlas with the children of one group only; generated block by block to bound memory."""
    tracts = tracts_for(children)
    frame = generate_tracts(children, tracts, seed)
    parts, places = [], []
    for number in range(-(-tracts // BLOCK)):
        rows = block(frame, number, seed)
        mine = (rows["race"] == race) & (rows["gender"] == gender)
        part = slice(number * BLOCK, (number + 1) * BLOCK)
        sizes = frame.size[part]
        places.append(np.repeat(np.arange(part.start, part.start + len(sizes), dtype=np.int32), sizes)[mine])
        parts.append({name: column[mine] for name, column in rows.items()})
    return Atlas(
        frame, np.concatenate(places), **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    )


@dataclass(frozen=True)
class AtlasCells:
    """A statistic of every cell, and what the paper's method needs to release it."""

    tract: Int64s
    n: Int64s
    low: Int64s
    theta: Floats
    error: Floats
    sensitivity: Floats
    pool: Int64s  # the state, and the group where cells are of one: χ is the maximum within it

    @property
    def chi(self) -> Floats:
        """χ = max N·LS over the pool, for each cell (Step 2)."""
        return chi_of(self.n, self.sensitivity, self.pool)

    @property
    def deviation(self) -> Floats:
        """√2·χ/(εN) at ε = 8 (Step 4)."""
        spread: Floats = np.sqrt(2) * self.chi / (float(EPSILON) * self.n)
        return spread

    def noisy(self, purpose: str) -> Floats:
        """θ̃ = θ + √2·χ/(εN)·ω, ω normal."""
        return self.theta + self.deviation * omega(len(self.n), purpose)


def chi_of(n: Int64s, sensitivity: Floats, pool: Int64s) -> Floats:
    """max N·LS over each cell's pool, over cells with finite sensitivity."""
    reach = np.where(np.isfinite(sensitivity), n * sensitivity, 0.0)
    most = np.zeros(int(pool.max(initial=-1)) + 1)
    np.maximum.at(most, pool, reach)
    return most[pool]


def size_groups(n: Int64s, sizes: Iterable[tuple[int, int | None]]) -> Iterator[tuple[str, Bools]]:
    """Cells by number of children, with a label for each size group; empty groups are left out."""
    for low, high in sizes:
        mine = (n >= low) & (n <= (n.max(initial=0) if high is None else high))
        if mine.any():
            yield f"{low} or more" if high is None else f"{low}–{high}", mine


def states(world: Atlas) -> Int64s:
    """The number of each tract's state."""
    _, number = np.unique(np.array(world.tracts.state), return_inverse=True)
    return number.astype(np.int64)


def cell_statistics(rows: CellObservations, world: Atlas, statistic: Statistic, search: Search = EXACT) -> AtlasCells:
    """Estimates, standard errors and exact local sensitivities (Steps 0 and 1)."""
    local = statistic.local((rows.x, rows.y), rows.starts, search)
    error = np.zeros(len(local.n)) if local.error is None else local.error
    pool = states(world)[rows.tract] * GROUPS + rows.group
    return AtlasCells(rows.tract, local.n, rows.low, local.statistic, error, local.sensitivity, pool)
