"""Synthetic places: many hamlets, a few cities, and some employment centres with far more workers than residents."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.synth.draws import Array
from discreet.synth.education.catalogue import FIRST, LAST
from discreet.synth.lists import name_parts
from discreet.synth.states import STATES, population

REFERENCE_JOBS = 10_900_000  # the three states of Haney et al. 2017, §10
REFERENCE_PLACES, FEWEST_PLACES, MOST_PLACES = 1_200, 36, 25_000  # 36: one of them is a city
THINNING = 0.5  # a smaller agency is a sample: fewer places, by the root of the jobs, of unchanged population
SPREADING = 1.1  # a larger one covers more of the country: 18,000 places at 130 million jobs
REFERENCE_STATES, STATE_GROWTH = 3, 1.144  # all 51 at 130 million jobs

MEDIAN, SPREAD = 1_300.0, 2.2  # population of a place, lognormal: an eighth below 100, a fortieth above 100,000
AROUND = 150  # people who live outside all places and work in the nearest
COMMUTING = 0.4  # spread of log jobs about log population
CENTRES, CENTRE_PULL = (
    0.05,
    3.0,
)  # share of places above 10,000 people that are employment centres; factor of their jobs
METROPOLIS_PULL = 2.5  # factor of jobs in the largest place of each state

FIRST_NUMBER = 90_001  # within a state; real places have lower numbers
STRATA = ("0-100", "100-10k", "10k-100k", "100k+")  # by population (Haney et al. 2017, §10)
BOUNDS = (100, 10_000, 100_000)

KINDS = ("hamlet", "town", "city", "city")  # by stratum
WHICH = tuple(f"{word} " if word else "" for word in name_parts("which"))


@dataclass(frozen=True)
class CensusPlace:
    """A place: a code of two digits for the state and five for the place, a label, the population."""

    code: str
    label: str
    population: int

    @property
    def state(self) -> str:
        """FIPS code of the state."""
        return self.code[:2]

    @property
    def stratum(self) -> int:
        """Position in `STRATA`."""
        return int(np.searchsorted(BOUNDS, self.population, side="right"))


def place_count(jobs: int) -> int:
    """1,200 places at the reference scale, a few dozen for ten thousand jobs."""
    scale = jobs / REFERENCE_JOBS
    count = REFERENCE_PLACES * scale ** (THINNING if scale < 1 else SPREADING)
    return int(np.clip(round(count), FEWEST_PLACES, MOST_PLACES))


def state_count(jobs: int) -> int:
    """Three states up to the reference scale, then more of the country."""
    return int(np.clip(round(REFERENCE_STATES * (jobs / REFERENCE_JOBS) ** STATE_GROWTH), 3, len(STATES)))


def places(jobs: int, rng: np.random.Generator) -> tuple[CensusPlace, ...]:
    """The public list of places, by code. Populations are stratified by quantile: every stratum has its share."""
    count = place_count(jobs)
    quantiles = (np.arange(count) + 0.25 + 0.5 * rng.random(count)) / count  # bounded away from 0 and 1
    people = [max(1, round(MEDIAN * np.exp(SPREAD * NormalDist().inv_cdf(quantile)))) for quantile in quantiles]
    home = _homes(count, state_count(jobs), rng)
    numbers = np.empty(count, dtype=np.int64)
    for state in np.unique(home):
        members = np.flatnonzero(home == state)
        numbers[members] = rng.permutation(len(members))
    names = rng.permutation([which + first + last for which in WHICH for first in FIRST for last in LAST])
    entries = [
        (f"{STATES[state].code}{FIRST_NUMBER + number}", str(names[number]), people[place])
        for place, (state, number) in enumerate(zip(home, numbers, strict=True))
    ]
    return tuple(CensusPlace(code, _label(name, living), living) for code, name, living in sorted(entries))


def _homes(count: int, states: int, rng: np.random.Generator) -> Array:
    """The state of each place, in proportion to population; at least one per state."""
    chosen = rng.choice(len(STATES), states, replace=False, p=population())
    share = population()[chosen] / population()[chosen].sum()
    drawn = rng.choice(chosen, count, p=share)
    drawn[rng.permutation(count)[:states]] = chosen[:count]
    return drawn


def _label(name: str, living: int) -> str:
    return f"{name} {KINDS[CensusPlace('', name, living).stratum]}"


def working(frame: tuple[CensusPlace, ...], rng: np.random.Generator) -> Array:
    """Relative number of jobs in each place: residents, people living around it, and commuters."""
    people = np.array([place.population for place in frame], dtype=np.float64)
    pull = rng.lognormal(0.0, COMMUTING, len(frame))
    pull[(people >= BOUNDS[1]) & (rng.random(len(frame)) < CENTRES)] *= CENTRE_PULL
    for state in sorted({place.state for place in frame}):
        members = np.flatnonzero([place.state == state for place in frame])
        pull[members[np.argmax(people[members])]] = METROPOLIS_PULL
    jobs: Array = (people + AROUND) * pull
    return jobs
