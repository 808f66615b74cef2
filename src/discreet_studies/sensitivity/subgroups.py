"""Income ranks by tract, race and gender: shortfall of corners, effect of winsorising on χ, fit of 1/N."""

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

SMALLEST = 3  # children of a cell for which corners are examined
SIZES = ((3, 5), (6, 9), (10, 19), (20, 49), (50, 99), (100, None))
ESTIMATORS = ("plain", "winsorised")
SHORT = 1 + 1e-9  # ratios above it are a shortfall, not rounding
CORNERS = Search("corners")
PAPERS_CELL = (0.212, 0.137)  # θ and local sensitivity of the paper's Figure 1


@dataclass(frozen=True)
class ByEstimator:
    """Exact sensitivities (or χ), and those from corners, plain and winsorised."""

    plain: Floats
    plain_corners: Floats
    winsorised: Floats
    winsorised_corners: Floats

    def pair(self, estimator: str) -> tuple[Floats, Floats]:
        """Exact, and from corners."""
        return (self.plain, self.plain_corners) if estimator == "plain" else (self.winsorised, self.winsorised_corners)


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
        """Cells that are large enough to publish."""
        return self.n >= LEAST


def subgroups(world: Atlas) -> Subgroups:
    """Every cell of three children or more."""
    rows = observations(world, RANK, by_group=True, least=SMALLEST)
    columns = (rows.x, rows.y)
    plain, plain_corners, winsorised, winsorised_corners = (
        line.local(columns, rows.starts, search, errors=False)
        for line in (PLAIN, WINSORISED)
        for search in (EXACT, CORNERS)
    )
    pool = states(world)[rows.tract] * GROUPS + rows.group
    return Subgroups(
        plain.sensitivity,
        plain_corners.sensitivity,
        winsorised.sensitivity,
        winsorised_corners.sensitivity,
        rows,
        pool,
        plain.statistic,
    )


@dataclass(frozen=True)
class CornerShortfall:
    """Comparison of corners with the exact maximum in cells of one size."""

    estimator: str
    sizes: str
    cells: int
    unbounded: int  # cells whose exact sensitivity is infinite
    short: float  # share of the others where corners give less
    median: float  # exact over corners, where they give less
    largest: float


def corners(groups: Subgroups) -> list[CornerShortfall]:
    """Rows by estimator and size."""
    out = []
    for name in ESTIMATORS:
        exact, at_corners = groups.pair(name)
        for sizes, mine in size_groups(groups.n, SIZES):
            finite = mine & np.isfinite(exact)
            ratio = exact[finite] / at_corners[finite]
            less = ratio[ratio > SHORT]
            share = len(less) / max(len(ratio), 1)
            middle, most = (float(np.median(less)), float(less.max())) if len(less) else (1.0, 1.0)
            out.append(CornerShortfall(name, sizes, int(mine.sum()), int((mine & ~finite).sum()), share, middle, most))
    return out


@dataclass(frozen=True)
class PoolSensitivities(ByEstimator):
    """χ of every state, race and gender with cells of twenty children or more."""

    pool: Int64s
    cells: Int64s

    @property
    def kept(self) -> Floats:
        """χ winsorised over χ plain."""
        return self.winsorised / self.plain

    def short(self, estimator: str) -> tuple[float, float]:
        """Share of pools whose χ corners understate, and the largest factor."""
        exact, at_corners = self.pair(estimator)
        ratio = exact / at_corners
        return float(np.mean(ratio > SHORT)), float(ratio.max())


def chis(groups: Subgroups) -> PoolSensitivities:
    """χ over published cells."""
    mine = groups.published
    pools, first, counts = np.unique(groups.pool[mine], return_index=True, return_counts=True)

    def largest(sensitivity: Floats) -> Floats:
        return chi_of(groups.n[mine], sensitivity[mine], groups.pool[mine])[first]

    (plain, plain_corners), (winsorised, corners) = (map(largest, groups.pair(name)) for name in ESTIMATORS)
    return PoolSensitivities(plain, plain_corners, winsorised, corners, pools, counts)


@dataclass(frozen=True)
class Envelope:
    """The cells of the largest pool, winsorised or not, below χ/N: how close they come, and their decrease with N."""

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
        """r in LS ~ N^−r, by least squares on logarithms."""
        return -float(np.polyfit(np.log(self.n), np.log(self.sensitivity), 1)[0])


def envelopes(groups: Subgroups, world: Atlas) -> tuple[Envelope, Envelope]:
    """Winsorised first, as in the paper."""
    mine = groups.published
    pools, counts = np.unique(groups.pool[mine], return_counts=True)
    pool = int(pools[counts.argmax()])
    mine &= groups.pool == pool
    state, group = divmod(pool, GROUPS)
    race, gender = divmod(group, len(GENDERS))
    code = sorted(set(world.tracts.state))[state]
    label = f"state {code}, {RACES[race].label}, {GENDERS[gender].label.lower()}"
    n = groups.n[mine]

    def one(name: str, local: Floats) -> Envelope:
        return Envelope(label, n, local, float((n * local).max()), name)

    return one("winsorised", groups.winsorised[mine]), one("plain", groups.plain[mine])


@dataclass(frozen=True)
class Example:
    """The cell of twenty most like the paper's, and the observation that changes it most (Figure 1)."""

    x: Floats
    y: Floats
    theta: float
    worst: WorstRecord


def example(groups: Subgroups) -> Example | None:
    """The nearest cell by prediction and sensitivity."""
    twenty = np.flatnonzero(groups.n == LEAST)
    if not len(twenty):
        return None
    gap = np.hypot(groups.theta[twenty] - PAPERS_CELL[0], groups.plain[twenty] - PAPERS_CELL[1])
    cell = int(twenty[gap.argmin()])
    x, y = groups.rows.cell(cell)
    return Example(x.copy(), y.copy(), float(groups.theta[cell]), PLAIN.worst((x, y)))
