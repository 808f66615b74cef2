"""A synthetic Occupational Requirements Survey: establishments, quotes (jobs) in them, and requirements of the jobs.

Modelled on the survey of Li and Krenzke (2020), *A Proposed 'Bottom-Up' Differential Privacy Approach for Disclosure
Prevention in Data Query Tool*, §1. Two-stage sampling: establishments in strata (sector × size), systematic with
probability proportional to size in the frame; then quotes in the establishment, systematic with probability
proportional to current workers. The attributes of a job are a hash of its number, so the population behind every sample
is known and need not be stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Int64s
from discreet.errors import ParameterError
from discreet.synth.draws import MOST_SEED, Array, fast_generator, refuse_unless_within
from discreet.synth.lists import column
from discreet.synth.occupational.requirements import (
    GROUPS,
    ORS,
    OccupationList,
    Requirement,
    apportioned,
    hadamard,
    hashed,
    normal,
    occupation_list,
    uniform,
)
from discreet.synth.sectors import SECTORS

Floats = NDArray[np.float64]

# Size classes by workers in the frame: smallest, one past the largest, share of establishments, share of quotes, quotes
# per establishment.
CLASSES = ((4, 50, 0.84, 0.50, 4), (50, 250, 0.13, 0.35, 6), (250, 4_000, 0.03, 0.15, 8))
STRATA = len(SECTORS) * len(CLASSES)
MOST_ROWS, MOST_DRAW, MOST_OCCUPATIONS = 10**8, 10**6, 2_000
A_QUOTE = 4  # establishments of the frame for each quote of the sample
TAIL = 1.1  # of sizes within a class: P(size > s) falls like s^−1.1
STALE = 0.45  # spread of log (current workers / workers in the frame), which makes weights unequal
JOBS, JOBS_POWER, NEXT_JOB = 1.5, 0.45, 0.8  # an establishment has 1.5·size^0.45 jobs, each 0.8 of the one before
GRID = 100  # weights are multiples of 1/100
BLOCK = 1 << 18  # quotes in memory at a time; results do not depend on it
FIRST = 10**7  # id of establishment 0
TAKEN = {"establishment", "quote", "occupation", "major_group", "weight", "occupations", "major_groups", "requirements"}
FACTOR = 2**-1.5  # of a replicate: 1 + 2^(−3/2)(h_a − h_b)


class DrawPurpose(IntEnum):
    """The purpose of a random stream."""

    SIZES = 1
    SAMPLE = 2


@dataclass(frozen=True)
class Stratum:
    """Establishments of a sector and a size class, and the number of quotes sampled from them."""

    number: int
    first: int  # number of its first establishment
    establishments: int
    rows: int

    @property
    def sector(self) -> int:
        return self.number % len(SECTORS)

    @property
    def bounds(self) -> tuple[int, int]:
        return CLASSES[self.number // len(SECTORS)][:2]

    @property
    def selections(self) -> int:
        """The number of selections; an establishment larger than the sampling interval is selected several times."""
        return -(-self.rows // CLASSES[self.number // len(SECTORS)][4])

    def quotes(self) -> Array:
        """The number of quotes of each selection; they differ by at most one."""
        even, more = divmod(self.rows, self.selections)
        return np.where(np.arange(self.selections) < more, even + 1, even)


@dataclass(frozen=True)
class SurveyDesign:
    """The population and the sampling design. The population is a function of the fields; samples differ by draw."""

    rows: int
    seed: int = 7
    requirements: tuple[Requirement, ...] = ORS
    replicates: int = 20
    occupations: int = 600

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("rows", self.rows, STRATA, MOST_ROWS),
            ("seed", self.seed, 0, MOST_SEED),
            ("occupations", self.occupations, len(GROUPS), MOST_OCCUPATIONS),
        ):
            refuse_unless_within("synth occupations", name, value, least, most)
        names = {one.name for one in self.requirements}
        if len(names) < len(self.requirements) or names & TAKEN:
            raise ParameterError("a requirement's name is taken", where="synth occupations", do="rename it")
        hadamard(self.replicates)  # refuses an order without a known matrix

    @cached_property
    def listed(self) -> OccupationList:
        """The public list of occupations, with their latent variables."""
        return occupation_list(self.occupations, self.seed)

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """Strata by size, then sector, in proportion to the sector, with at least one establishment and one quote."""
        sector = column(SECTORS, "jobs")
        shares, quotes = (np.outer([one[place] for one in CLASSES], sector).ravel() for place in (2, 3))
        sizes = 1 + apportioned(A_QUOTE * self.rows - STRATA, shares)
        rows = 1 + apportioned(self.rows - STRATA, quotes)
        first = np.cumsum(sizes) - sizes
        return tuple(Stratum(h, *map(int, of)) for h, of in enumerate(zip(first, sizes, rows, strict=True)))

    @cached_property
    def next_selection(self) -> Int64s:
        """For each selection, numbered across strata, the one it is compared with for variance estimation: the next of
        its stratum, and the first for the last. A stratum with a single selection is merged with its neighbour."""
        ends = np.cumsum([stratum.selections for stratum in self.strata])
        after, first = np.arange(1, ends[-1] + 1), 0
        for end in ends:
            if end == ends[-1] or (end - first > 1 and end + 1 < ends[-1]):
                after[end - 1], first = first, end
        return after

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes of a table, besides the major group."""
        return ("occupation", *(one.name for one in self.requirements))

    def shape(self, names: Sequence[str]) -> tuple[int, ...]:
        """The shape of a table by these attributes, which may include "major_group"."""
        sizes = {one.name: one.levels for one in self.requirements}
        sizes |= {"occupation": self.occupations, "major_group": len(GROUPS)}
        if unknown := next((name for name in names if name not in sizes), None):
            raise ParameterError(
                f"there is no {unknown!r}", where="synth occupations", do=f"choose from {sorted(sizes)}"
            )
        return tuple(sizes[name] for name in names)


@dataclass(frozen=True)
class QuoteRows:
    """A batch of quotes; `selection` numbers the selections across all strata."""

    establishment: Int64s
    codes: NDArray[np.int16]
    weight: Floats
    selection: Int64s


def sample(design: SurveyDesign, draw: int) -> Iterator[QuoteRows]:
    """The sample, stratum by stratum. A quote's weight is (S/(m·s))·(e/q): S is the stratum's size in the frame, m its
    number of selections, s and e the establishment's size in the frame and now, q its number of quotes."""
    refuse_unless_within("synth occupations", "draw", draw, 0, MOST_DRAW)
    before = 0
    for stratum in design.strata:
        rng = _stream(design, DrawPurpose.SAMPLE, stratum, draw)
        size = _sizes(design, stratum)
        upto, m = np.cumsum(size), stratum.selections
        points = (np.arange(m) + rng.random()) * (upto[-1] / m)
        chosen = np.minimum(np.searchsorted(upto, points, side="right"), len(size) - 1)
        start, quotes = rng.random(m), stratum.quotes()
        step = max(1, BLOCK // quotes.max())
        for first in range(0, m, step):
            part = slice(first, first + step)
            q, mine = quotes[part], chosen[part]
            number = stratum.first + mine
            row = np.repeat(np.arange(len(mine)), q)
            hit = np.arange(len(row)) - np.repeat(np.cumsum(q) - q, q)
            place = (hit + start[part][row]) / q[row]  # among the establishment's workers, in 0 … 1
            job = _job_at(place, _job_count(size[mine])[row])
            weight = (upto[-1] / m * _growth(design, number) / q)[row]
            codes = _jobs(design, stratum.sector, number[row], job)
            yield QuoteRows(FIRST + number[row], codes, _rounded(weight), before + first + row)
        before += m


def replicated(design: SurveyDesign, block: QuoteRows) -> Floats:
    """Replicate weights w(1 + 2^(−3/2)(h_a − h_b)): a is the row of a Hadamard matrix assigned to the selection in
    rotation, excluding the row of ones, b that of the selection it is compared with (Fay & Train 1995)."""
    signs = hadamard(design.replicates)[1:].astype(np.float64)
    after = design.next_selection[block.selection]
    factors = 1 + FACTOR * (signs[block.selection % len(signs)] - signs[after % len(signs)])
    return _rounded(block.weight * factors.T)


def _rounded(weight: Floats) -> Floats:
    return np.maximum(np.rint(weight * GRID), 1) / GRID


def _stream(design: SurveyDesign, purpose: DrawPurpose, stratum: Stratum, draw: int = 0) -> np.random.Generator:
    return fast_generator(design.seed, 0x0C, int(purpose), stratum.number, draw)


def _sizes(design: SurveyDesign, stratum: Stratum) -> Floats:
    """Workers in the frame: Pareto truncated to the bounds of the class, in random order."""
    low, high = stratum.bounds
    u = _stream(design, DrawPurpose.SIZES, stratum).random(stratum.establishments)
    size: Floats = np.floor(low * (1 - u * (1 - (low / high) ** TAIL)) ** (-1 / TAIL))
    return size


def _growth(design: SurveyDesign, establishment: Array) -> Floats:
    """Ratio of current workers to those in the frame."""
    factor: Floats = np.exp(STALE * normal(hashed(design.seed, establishment, np.int64(-1))))
    return factor


def _job_count(size: Array) -> Array:
    return np.rint(JOBS * size**JOBS_POWER).astype(np.int64)


def _job_at(place: Array, jobs: Array) -> Array:
    """The job of the worker at this quantile of the establishment: job j ends at (1 − a^(j+1))/(1 − a^J)."""
    job = np.floor(np.log1p(-place * (1 - NEXT_JOB**jobs)) / np.log(NEXT_JOB))
    number: Array = np.minimum(job.astype(np.int64), jobs - 1)
    return number


def _jobs(design: SurveyDesign, sector: int, establishment: Array, job: Array) -> NDArray[np.int16]:
    """Attributes of jobs, column × job: the occupation given the sector; requirements given the skill and strain of the
    occupation, those of the job, and random effects."""
    key = hashed(design.seed, establishment, job)
    listed = design.listed
    occupation = np.searchsorted(listed.ends[sector], uniform(hashed(1, key)), side="right")
    skill = listed.skill[occupation] + 0.4 * normal(hashed(2, key))
    strain = listed.strain[occupation] + 0.4 * normal(hashed(3, key))
    codes = np.empty((1 + len(design.requirements), len(job)), np.int16)
    codes[0] = occupation
    for place, one in enumerate(design.requirements, 1):
        latent = one.skill * skill + one.strain * strain + one.chance * normal(hashed(3 + place, key))
        codes[place] = np.searchsorted(one.thresholds, latent)
    return codes


def cells_of(design: SurveyDesign, names: Sequence[str], codes: NDArray[np.int16]) -> Array:
    """Cell numbers of a table by these names, the first most significant."""
    cells = np.zeros(codes.shape[1], np.int64)
    for name, size in zip(names, design.shape(names), strict=True):
        group = name == "major_group"
        code = design.listed.group[codes[0]] if group else codes[design.names.index(name)]
        cells = cells * size + code
    return cells
