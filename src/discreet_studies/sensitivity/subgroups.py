"""Income ranks by tract, race and gender: how far corners fall short, what winsorising does to χ, how 1/N fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.methods.sensitivity.statistics import EXACT, Floats, Int64s, Search, WorstRecord
from discreet.synth.atlas import GENDERS, GROUPS, RACES, Atlas
from discreet_studies.sensitivity.cells import (
    LEAST,
    PLAIN,
    WINSORISED,
    Bools,
    CellObservations,
    chi_of,
    observations,
    size_groups,
    states,
)
from discreet_studies.sensitivity.table1 import RANK

SMALLEST = 3  # children of a cell that corners are looked at in
SIZES = ((3, 5), (6, 9), (10, 19), (20, 49), (50, 99), (100, None))
ESTIMATORS = ("plain", "winsorised")
SHORT = 1 + 1e-9  # beyond it a sensitivity is larger than that of corners, not rounded otherwise
CORNERS = Search("corners")
PAPERS_CELL = (0.212, 0.137)  # θ and local sensitivity of 004, Figure 1


@dataclass(frozen=True)
class ByEstimator:
    """Exact sensitivities, or what is made of them, and those of corners: plain and winsorised."""

    plain: Floats
    plain_corners: Floats
    drawn_in: Floats
    drawn_in_corners: Floats

    def pair(self, estimator: str) -> tuple[Floats, Floats]:
        """Exact, and of corners."""
        return (self.plain, self.plain_corners) if estimator == "plain" else (self.drawn_in, self.drawn_in_corners)


@dataclass(frozen=True)
class Subgroups(ByEstimator):
    """Cells with their observations and sensitivities."""

    rows: CellObservations
    pool: Int64s
    theta: Floats

    @property
    def n(self) -> Int64s:
        return self.rows.n

    @property
    def published(self) -> Bools:
        """Cells that are not too small."""
        return self.n >= LEAST


def subgroups(made: Atlas) -> Subgroups:
    """Every cell of three children or more."""
    rows = observations(made, RANK, by_group=True, least=SMALLEST)
    columns = (rows.x, rows.y)
    plain, plain_corners, drawn_in, drawn_in_corners = (
        line.local(columns, rows.starts, search, errors=False)
        for line in (PLAIN, WINSORISED)
        for search in (EXACT, CORNERS)
    )
    pool = states(made)[rows.tract] * GROUPS + rows.group
    return Subgroups(
        plain.sensitivity,
        plain_corners.sensitivity,
        drawn_in.sensitivity,
        drawn_in_corners.sensitivity,
        rows,
        pool,
        plain.statistic,
    )


@dataclass(frozen=True)
class Corners:
    """How corners compare with the exact maximum in cells of one size."""

    estimator: str
    sizes: str
    cells: int
    unbounded: int  # cells whose exact sensitivity is infinite
    short: float  # share of the others where corners find less
    median: float  # of exact over corners, where they find less
    largest: float


def corners(found: Subgroups) -> list[Corners]:
    """By estimator and size."""
    out = []
    for name in ESTIMATORS:
        exact, at_corners = found.pair(name)
        for said, mine in size_groups(found.n, SIZES):
            finite = mine & np.isfinite(exact)
            ratio = exact[finite] / at_corners[finite]
            less = ratio[ratio > SHORT]
            share = len(less) / max(len(ratio), 1)
            middle, most = (float(np.median(less)), float(less.max())) if len(less) else (1.0, 1.0)
            out.append(Corners(name, said, int(mine.sum()), int((mine & ~finite).sum()), share, middle, most))
    return out


@dataclass(frozen=True)
class Chis(ByEstimator):
    """χ of every state, race and gender with cells of twenty children or more."""

    pool: Int64s
    cells: Int64s

    @property
    def kept(self) -> Floats:
        """What winsorising leaves of χ."""
        return self.drawn_in / self.plain

    def short(self, estimator: str) -> tuple[float, float]:
        """Share of pools whose χ corners understate, and the largest factor."""
        exact, at_corners = self.pair(estimator)
        ratio = exact / at_corners
        return float(np.mean(ratio > SHORT)), float(ratio.max())


def chis(found: Subgroups) -> Chis:
    """Over published cells."""
    mine = found.published
    pools, first, counts = np.unique(found.pool[mine], return_index=True, return_counts=True)

    def largest(sensitivity: Floats) -> Floats:
        return chi_of(found.n[mine], sensitivity[mine], found.pool[mine])[first]

    (plain, plain_corners), (drawn_in, corners) = (map(largest, found.pair(name)) for name in ESTIMATORS)
    return Chis(plain, plain_corners, drawn_in, corners, pools, counts)


@dataclass(frozen=True)
class Envelope:
    """The cells of the pool with most of them, winsorised or not, below χ/N; how near, and how they fall with N."""

    label: str
    n: Int64s
    sensitivity: Floats
    chi: float
    estimator: str

    @property
    def reach(self) -> Floats:
        """N·LS/χ, at most 1."""
        ratio: Floats = self.n * self.sensitivity / self.chi
        return ratio

    @property
    def rate(self) -> float:
        """r of LS ~ N^−r, by least squares of logarithms."""
        return -float(np.polyfit(np.log(self.n), np.log(self.sensitivity), 1)[0])


def envelopes(found: Subgroups, made: Atlas) -> tuple[Envelope, Envelope]:
    """Winsorised first, as in the paper."""
    mine = found.published
    pools, counts = np.unique(found.pool[mine], return_counts=True)
    pool = int(pools[counts.argmax()])
    mine &= found.pool == pool
    state, group = divmod(pool, GROUPS)
    race, gender = divmod(group, len(GENDERS))
    code = sorted(set(made.tracts.state))[state]
    label = f"state {code}, {RACES[race].label}, {GENDERS[gender].label.lower()}"
    n = found.n[mine]

    def one(name: str, local: Floats) -> Envelope:
        return Envelope(label, n, local, float((n * local).max()), name)

    return one("winsorised", found.drawn_in[mine]), one("plain", found.plain[mine])


@dataclass(frozen=True)
class Example:
    """A cell of twenty, the most like the paper's, and the observation that moves it most (004, Figure 1)."""

    x: Floats
    y: Floats
    theta: float
    worst: WorstRecord


def example(found: Subgroups) -> Example | None:
    """Nearest by prediction and sensitivity."""
    twenty = np.flatnonzero(found.n == LEAST)
    if not len(twenty):
        return None
    gap = np.hypot(found.theta[twenty] - PAPERS_CELL[0], found.plain[twenty] - PAPERS_CELL[1])
    cell = int(twenty[gap.argmin()])
    x, y = found.rows.cell(cell)
    return Example(x.copy(), y.copy(), float(found.theta[cell]), PLAIN.worst((x, y)))
