"""Synthetic establishments: place, sector, ownership and employment, with the size distribution of a real frame.

Sizes are confidential, everything else about an establishment is public (Haney, Machanavajjhala, Abowd, Graham,
Kutzbach and Vilhuber 2017, *Utility Cost of Formal Privacy for Releasing National Employer-Employee Statistics*, §3 and
§10).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Int64s
from discreet.synth.draws import MOST_SEED, Array, fast_generator, refuse_unless_within, rows_of_blocks
from discreet.synth.industries import INDUSTRIES, OWNERSHIP, EstablishmentKind
from discreet.synth.sectors import SECTORS
from discreet.synth.workplaces.places import REFERENCE_JOBS, CensusPlace, places, working
from discreet.synth.workplaces.workforce import CELLS, composition

REFERENCE_ESTABLISHMENTS = 527_000
MOST_JOBS = 10**9
LARGEST, LARGEST_SHARE = 14_000, 0.02  # sizes are truncated at these (jobs; share of all jobs) before scaling
ROOM = 2  # minimum ratio of a place's population to an establishment's size
SPECIAL = 0.6  # spread of a sector's log jobs in a place relative to all jobs in the place
SERVES = 0.55  # public establishments in proportion to this power of a place's jobs: small places have a school too

BLOCK = 4_096  # establishments per random stream: part of the meaning of a seed, so not a tuning parameter


class Purpose(IntEnum):
    """The purpose of a random stream."""

    FRAME = 1
    WORKFORCE = 2
    JOBS = 3
    DATA_ERRORS = 4
    FRAME_ERRORS = 5
    MIXES = 6


def stream(seed: int, purpose: Purpose, block: int = 0) -> np.random.Generator:
    """The generator of one block; a national file draws a billion numbers."""
    return fast_generator(seed, 0xE3, int(purpose), block)


@dataclass(frozen=True)
class Employers:
    """The public frame of establishments, and their sizes. Columns are positions in the public lists."""

    seed: int
    places: tuple[CensusPlace, ...]
    place: NDArray[np.int32]
    sector: NDArray[np.int8]
    ownership: NDArray[np.int8]
    size: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.size)

    @property
    def jobs(self) -> int:
        """The total number of jobs."""
        return int(self.size.sum(dtype=np.int64))

    @property
    def cells(self) -> int:
        """The number of cells place x sector x ownership, empty ones included."""
        return len(self.places) * len(SECTORS) * len(OWNERSHIP)

    @cached_property
    def cell(self) -> Int64s:
        """The cell of each establishment: (place · 20 + sector) · 3 + ownership."""
        place = self.place.astype(np.int64)
        return (place * len(SECTORS) + self.sector) * len(OWNERSHIP) + self.ownership

    @cached_property
    def stratum(self) -> NDArray[np.int8]:
        """The position of each place's stratum in `STRATA`."""
        return np.array([place.stratum for place in self.places], dtype=np.int8)

    def workers(self, first: int, n: int) -> NDArray[np.int32]:
        """Jobs of establishments `first` … by sex x education (sex · 4 + education): rows sum to the sizes."""
        return rows_of_blocks("synth employers", (first, n, len(self)), BLOCK, self.block, CELLS, np.int32)

    def block(self, number: int) -> NDArray[np.int32]:
        """Jobs by sex x education of all establishments of a block."""
        rows = slice(number * BLOCK, (number + 1) * BLOCK)
        return composition(self.sector[rows], self.size[rows], stream(self.seed, Purpose.WORKFORCE, number))


def employers(jobs: int, seed: int = 7) -> Employers:
    """Generate the establishments of an economy with exactly this many jobs."""
    refuse_unless_within("synth employers", "jobs", jobs, 1, MOST_JOBS)
    refuse_unless_within("synth employers", "seed", seed, 0, MOST_SEED)
    rng = stream(seed, Purpose.FRAME)
    frame = places(jobs, rng)
    sector, ownership, beyond = _sized(jobs, rng)
    size = _exactly(jobs, beyond)
    place = _placed(frame, sector, ownership, size, rng)
    order = rng.permutation(len(size))
    return Employers(seed, frame, place[order], sector[order], ownership[order], size[order])


def establishment_count(jobs: int) -> int:
    """In proportion to the jobs: 527,000 at the reference scale, 6.3 million for a nation."""
    return max(1, round(jobs * REFERENCE_ESTABLISHMENTS / REFERENCE_JOBS))


def _sized(jobs: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Sector, ownership and target jobs beyond the first: truncated Lomax, P(Y > y) = (1 + y/s)^−a.

    Stratified, one draw from each quantile of each kind: the tail has the same weight for every seed.
    """
    most = max(1.0, min(LARGEST, LARGEST_SHARE * jobs))
    counts = _apportioned(
        establishment_count(jobs), np.array([kind.jobs / (1 + _mean_below(most, kind)) for kind in INDUSTRIES])
    )
    beyond = []
    for kind, count in zip(INDUSTRIES, counts, strict=True):
        cut = (1 + most / kind.scale) ** -kind.tail
        above = 1 - (1 - cut) * (np.arange(count) + rng.random(count)) / max(count, 1)
        beyond.append(kind.scale * (above ** (-1 / kind.tail) - 1))
    sector, ownership = (
        np.repeat(np.array([getattr(kind, name) for kind in INDUSTRIES], dtype=np.int8), counts)
        for name in ("sector", "ownership")
    )
    return sector, ownership, np.concatenate(beyond)


def _mean_below(most: float, kind: EstablishmentKind) -> float:
    """E[Y | Y < m] = (∫₀ᵐ P(Y > y) dy − m·P(Y > m)) / P(Y < m)."""
    reach = 1 + most / kind.scale
    cut = reach**-kind.tail
    mean: float = (kind.scale / (kind.tail - 1) * (1 - reach ** (1 - kind.tail)) - most * cut) / (1 - cut)
    return mean


def _apportioned(total: int, weights: Array) -> Array:
    """Integers in proportion to the weights, with this total, by largest remainders."""
    exact = total * weights / weights.sum()
    counts: Array = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _exactly(jobs: int, beyond: Array) -> NDArray[np.int32]:
    """Integer sizes 1 + ⌊c·y⌋ with the largest c whose total does not exceed `jobs`; the largest take the rest."""
    low, high = 0.0, 1.0
    while _total(high, beyond) <= jobs:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _total(middle, beyond) <= jobs else (low, middle)
    size = 1 + (low * beyond).astype(np.int32)
    short = jobs - int(size.sum(dtype=np.int64))
    size[np.argsort(-beyond, kind="stable")[:short]] += 1
    return size


def _total(factor: float, beyond: Array) -> int:
    return len(beyond) + int((factor * beyond).astype(np.int32).sum(dtype=np.int64))


def _placed(
    frame: tuple[CensusPlace, ...], sector: Array, ownership: Array, size: Array, rng: np.random.Generator
) -> NDArray[np.int32]:
    """A place for each establishment, in proportion to jobs there, among those that are large enough; sectors differ in
    their distribution over places."""
    people = np.array([place.population for place in frame])
    order = np.argsort(people, kind="stable")
    room = np.minimum(
        np.searchsorted(people[order], ROOM * size), len(order) - 1
    )  # the largest place can have any establishment
    jobs = working(frame, rng)[order]
    place = np.empty(len(size), dtype=np.int32)
    for kind in INDUSTRIES:
        rows = np.flatnonzero((sector == kind.sector) & (ownership == kind.ownership))
        weight = jobs ** (SERVES if kind.ownership else 1) * rng.lognormal(0.0, SPECIAL, len(jobs))
        upto = np.concatenate([[0.0], np.cumsum(weight)])
        low = upto[room[rows]]
        drawn = np.searchsorted(upto, low + (upto[-1] - low) * rng.random(len(rows)), side="right") - 1
        place[rows] = order[np.clip(drawn, room[rows], len(order) - 1)]
    return place
