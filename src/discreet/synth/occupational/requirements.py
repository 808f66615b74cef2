"""The variables of the synthetic survey: occupations in major groups, job requirements, and functions to draw them.

Codes have the form of the Standard Occupational Classification but are not real: its major groups end at 55.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Words
from discreet.errors import ParameterError
from discreet.synth.draws import Array, refuse_unless_within
from discreet.synth.lists import column, entries
from discreet.synth.sectors import SECTORS

HOME = 12.0  # relative likelihood of a major group in its home sectors
WITHIN = 0.35  # spread of the skill and strain of occupations within a group
MOST_LEVELS, MOST_REPLICATES = 50, 160


class MajorGroup(NamedTuple):
    """A major group: code, label, per mille of jobs, skill and strain (standard normal), home sectors."""

    code: str
    label: str
    jobs: float
    skill: float
    strain: float
    homes: tuple[str, ...]


GROUPS = entries("occupation_groups", MajorGroup)


@dataclass(frozen=True)
class Requirement:
    """A question with ordered answers: their shares, and the loadings of the latent variable on skill and strain."""

    name: str
    label: str
    shares: tuple[float, ...]
    skill: float = 0.0
    strain: float = 0.0
    answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse_unless_within("synth occupations", f"levels of {self.name}", len(self.shares), 2, MOST_LEVELS)
        if min(self.shares) <= 0 or self.skill**2 + self.strain**2 >= 1:
            raise ParameterError(
                f"{self.name} has a share that is not positive, or no random component",
                where="synth occupations",
                do="give positive shares, and loadings whose squares sum to less than 1",
            )

    @property
    def levels(self) -> int:
        return len(self.shares)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(str(number) for number in range(1, self.levels + 1))

    @property
    def labels(self) -> tuple[str, ...]:
        return self.answers or tuple(f"{self.label}, level {code}" for code in self.codes)

    @property
    def chance(self) -> float:
        return sqrt(1 - self.skill**2 - self.strain**2)

    @cached_property
    def thresholds(self) -> Floats:
        """The thresholds of a standard normal between consecutive answers."""
        upto = np.cumsum(self.shares)[:-1] / sum(self.shares)
        return np.array([NormalDist().inv_cdf(share) for share in upto])


ORS = entries("requirements", Requirement)


def plain_requirements(levels: Sequence[int]) -> tuple[Requirement, ...]:
    """Requirements with these numbers of levels, lower levels more common, alternately loading on skill and strain."""
    return tuple(
        Requirement(
            f"requirement_{number}",
            f"Requirement {number}",
            tuple(1 / (1 + level) for level in range(size)),
            skill=0.0 if number % 2 else 0.6,
            strain=0.6 if number % 2 else 0.0,
        )
        for number, size in enumerate(levels, 1)
    )


PAPER, PAPER_ROWS = plain_requirements((5, 4, 3, 3, 3, 2, 2, 2, 2, 2)), 182  # the test data of Li & Krenzke 2020, §4


@dataclass(frozen=True)
class OccupationList:
    """Occupations in the order of their codes, with skill, strain and distribution over sectors."""

    codes: tuple[str, ...]
    group: NDArray[np.int16]
    skill: Floats
    strain: Floats
    ends: Floats  # sector × occupation: cumulative shares

    @property
    def public(self) -> tuple[tuple[str, ...], list[int], list[str]]:
        """Codes, groups and labels."""
        labels = [f"{GROUPS[group].label}, {code[3:]}" for code, group in zip(self.codes, self.group, strict=True)]
        return self.codes, self.group.tolist(), labels


def occupation_list(count: int, seed: int) -> OccupationList:
    """Generate `count` occupations: large groups have more; frequencies within a group follow Zipf's law."""
    jobs = column(GROUPS, "jobs")
    sizes = 1 + apportioned(count - len(GROUPS), np.sqrt(jobs))
    group = np.repeat(np.arange(len(GROUPS), dtype=np.int16), sizes)
    rank = np.concatenate([np.arange(size) for size in sizes])
    codes = tuple(f"{GROUPS[g].code}-{1011 + 10 * r}" for g, r in zip(group, rank, strict=True))
    zipf = 1 / (1 + rank)
    zipf /= np.bincount(group, zipf)[group]
    at_home = np.array([[HOME if sector.code in one.homes else 1.0 for one in GROUPS] for sector in SECTORS])
    shares = (at_home * jobs / (at_home.T @ column(SECTORS, "jobs")))[:, group] * zipf
    upto = np.cumsum(shares, axis=1)
    number = np.arange(count)
    skill, strain = (
        column(GROUPS, name)[group] + WITHIN * normal(hashed(seed, number, np.int64(-place)))
        for place, name in ((2, "skill"), (3, "strain"))
    )
    return OccupationList(codes, group, skill, strain, upto / upto[:, -1:])


def apportioned(total: int, shares: Array) -> Array:
    """Integers approximately in proportion to the shares, with this total."""
    ends = np.rint(np.cumsum(shares) / np.sum(shares) * total).astype(np.int64)
    return np.diff(ends, prepend=0)


def hashed(key: int, *numbers: Array | np.int64) -> Words:
    """A 64-bit hash of each tuple of numbers (splitmix64; Steele et al. 2014)."""
    word = np.full(np.broadcast_shapes(*(np.shape(number) for number in numbers)), key, np.uint64)
    for number in numbers:
        word = (word ^ np.asarray(number).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return word


def uniform(words: Words) -> Floats:
    """Uniform numbers in [0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(words: Words) -> Floats:
    """Approximately standard normal numbers within ±3.5: the sum of four uniform 16-bit numbers."""
    parts = words.view(np.uint16).reshape(*words.shape, 4)
    total: Floats = (parts.sum(axis=-1, dtype=np.int64) + 2) * (sqrt(3) / 2**16) - 2 * sqrt(3)
    return total


@lru_cache(maxsize=8)
def hadamard(order: int) -> NDArray[np.int8]:
    """A Hadamard matrix with a first row of ones: Paley's (1933) of order p + 1, p a prime with p ≡ 3 mod 4, doubled as
    often as necessary (Sylvester)."""
    refuse_unless_within("synth occupations", "replicates", order, 2, MOST_REPLICATES)
    odd = order
    while odd % 2 == 0 and not _paley(odd):
        odd //= 2
    if not _paley(odd) and odd > 1:
        raise ParameterError(
            f"no Hadamard matrix of order {order} is known here",
            where="synth occupations: replicates",
            do="give 20, 32, 80 or 160",
        )
    signs = np.ones((odd, odd), np.int8)
    if odd > 1:
        p, place = odd - 1, np.arange(odd - 1)
        residue = np.full(p, -1, np.int8)
        residue[np.arange(1, p) ** 2 % p] = 1
        signs[1:, 1:] = residue[(place[None, :] - place[:, None]) % p]
    while len(signs) < order:
        signs = np.kron(np.array([[1, 1], [1, -1]], np.int8), signs)
    return signs


def _paley(order: int) -> bool:
    p = order - 1
    return p % 4 == 3 and all(p % divisor for divisor in range(2, int(sqrt(p)) + 1))
