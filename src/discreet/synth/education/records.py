"""People and their records, a fixed block of rows at a time: a record is person x degree x years after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, draw_quantiles, generator, quantile_table
from discreet.synth.education.catalogue import EducationCatalogue, Programmes
from discreet.synth.education.fields import FAMILIES, FIELDS
from discreet.synth.states import destinations

BLOCK = 1 << 16  # rows per random stream: part of what a seed means, so never a tuning knob

COHORTS = ("2010", "2013", "2016", "2019", "2022")  # first year of a three-year graduation cohort
YEARS_AFTER = ("1", "5", "10")
LAST_YEAR = 2025  # earnings are known up to here; later ones have not happened

DEGREES = {1: 0.85, 2: 0.135, 3: 0.015}  # how many degrees a person has, before later ones are cut off
SAME_SCHOOL = 0.5  # later degrees taken where the first was
MOVES = 0.1  # records in which the person has moved since graduating
NEW_LINE = 0.2  # records in which the person has gone into other work since graduating

LOG_MEAN = 11.0  # with the two spreads below: lognormal(11.0, 0.75), shifted by programme and years
PERSON_SPREAD, YEAR_SPREAD = 0.60, 0.45
YEARS_SHIFT = np.array([-0.30, 0.0, 0.25], dtype=np.float32)
EMPLOYED, EMPLOYED_BY_PAY = 0.80, 0.10
ROUNDED = 0.15  # earnings reported to the nearest thousand

FAMILY = np.array([FAMILIES.index(field.cip2) for field in FIELDS])


@dataclass(frozen=True)
class GraduateRows:
    """Some rows, as positions in the public lists; -1 means null. Earnings and industry count where `employed`."""

    person: Array
    institution: Array
    level: Array
    field: Array
    cohort: Array
    years: Array
    state: Array
    employed: Array
    earnings: Array
    industry: Array

    def columns(self) -> Iterator[Array]:
        """All columns, for what is done to whole rows."""
        return iter(vars(self).values())


@dataclass(frozen=True)
class CareerTable:
    """Every possible career (cohorts of a person's degrees), laid end to end as its records.

    A draw of a career number then gives all of a person's records by look-up.
    """

    quantiles: Array  # draw -> career
    degrees: Array  # career -> how many degrees
    start: Array  # career -> its first record below
    length: Array  # career -> how many records
    degree: Array  # record -> which of the person's degrees
    cohort: Array
    years: Array


def block(number: int, rows: int, seed: int, public: EducationCatalogue) -> GraduateRows:
    """Rows of block `number`; the last person's records are cut where the block ends."""
    rng = generator(seed, StreamPurpose.RECORDS, number)
    life = career_table()
    career = life.quantiles[draw_quantiles(rng, rows)]  # one person a row is always enough
    ends = np.cumsum(life.length[career])
    people = int(np.searchsorted(ends, rows)) + 1
    career, starts = career[:people], (ends - life.length[career])[:people]
    person = np.repeat(np.arange(people, dtype=np.int32), life.length[career])[:rows]
    record = life.start[career][person] + np.arange(rows) - starts[person]

    first_degree = np.cumsum(life.degrees[career]) - life.degrees[career]
    programme = _programmes_taken(rng, life.degrees[career], first_degree, public.programmes)
    degree = first_degree[person] + life.degree[record]
    taken, years = programme[degree], life.years[record]
    pay = public.programmes.shift[taken] + YEARS_SHIFT[years]
    institution, field = public.programmes.institution[taken], public.programmes.field[taken]
    state = destinations()[_home(public)[institution], _lasting(rng, len(programme), degree, MOVES)]
    work = _lasting(generator(seed, StreamPurpose.WORK, number), len(programme), degree, NEW_LINE)
    return GraduateRows(
        person=1 + number * BLOCK + person.astype(np.int64),
        institution=institution,
        level=public.programmes.level[taken],
        field=field,
        cohort=life.cohort[record],
        years=years,
        state=state,
        employed=rng.random(rows, dtype=np.float32) < EMPLOYED + EMPLOYED_BY_PAY * pay,
        earnings=_earnings(rng, pay, person, people),
        industry=public.economy.work[FAMILY[field], state, work],
    )


def known_years(cohort: int) -> list[int]:
    """Positions of the years after graduation whose earnings are known."""
    return [place for place, after in enumerate(YEARS_AFTER) if int(COHORTS[cohort]) + 2 + int(after) <= LAST_YEAR]


@cache
def career_table() -> CareerTable:
    """All careers of one to three degrees, three only in different cohorts: so at most 8 records."""
    found: list[tuple[tuple[int, ...], float]] = []
    for count, share in DEGREES.items():
        options = [
            cohorts
            for cohorts in combinations_with_replacement(range(len(COHORTS)), count)
            if count < 3 or len(set(cohorts)) == count
        ]
        found += [(cohorts, share / len(options)) for cohorts in options]
    records = [
        [(degree, cohort, years) for degree, cohort in enumerate(cohorts) for years in known_years(cohort)]
        for cohorts, _ in found
    ]
    length = np.array([len(own) for own in records])
    degree, cohort, years = np.array([record for own in records for record in own], dtype=np.int32).T
    return CareerTable(
        quantiles=quantile_table(np.array([share for _, share in found])),
        degrees=np.array([len(cohorts) for cohorts, _ in found]),
        start=np.cumsum(length) - length,
        length=length,
        degree=degree.copy(),
        cohort=cohort.copy(),
        years=years.copy(),
    )


def _programmes_taken(rng: np.random.Generator, degrees: Array, first_degree: Array, programmes: Programmes) -> Array:
    """The programme of every degree, by popularity; half of the later ones at the first one's institution."""
    upto = programmes.upto
    count = int(degrees.sum())
    taken = np.searchsorted(upto, rng.integers(0, upto[-1], count), side="right")
    first = np.repeat(first_degree, degrees)
    stays = np.flatnonzero((first != np.arange(count)) & (rng.random(count) < SAME_SCHOOL))
    school = programmes.institution[taken[first[stays]]]
    last = np.searchsorted(programmes.institution, school, side="right") - 1
    before = np.searchsorted(programmes.institution, school, side="left") - 1
    low = np.where(before < 0, 0, upto[before])
    taken[stays] = np.searchsorted(upto, rng.integers(low, upto[last]), side="right")
    return taken


def _lasting(rng: np.random.Generator, degrees: int, degree: Array, changes: float) -> Array:
    """Quantiles of a choice made at graduation (where to live, what to work in), and again by those who change."""
    settled = draw_quantiles(rng, degrees)[degree]
    changed = rng.random(len(degree), dtype=np.float32) < changes
    chosen: Array = np.where(changed, draw_quantiles(rng, len(degree)), settled)
    return chosen


def _earnings(rng: np.random.Generator, pay: Array, person: Array, people: int) -> Array:
    """Annual dollars, lognormal with a lasting personal part, some reported in round thousands."""
    personal = rng.standard_normal(people, dtype=np.float32)[person]
    yearly = rng.standard_normal(len(person), dtype=np.float32)
    dollars = np.exp(LOG_MEAN + pay + PERSON_SPREAD * personal + YEAR_SPREAD * yearly)
    exact = np.maximum(np.rint(dollars), 1).astype(np.int64)
    thousands = np.maximum(np.rint(dollars / 1000), 1).astype(np.int64) * 1000
    rounded = rng.random(len(person), dtype=np.float32) < ROUNDED
    reported: Array = np.where(rounded, thousands, exact)
    return reported


def _home(public: EducationCatalogue) -> Array:
    return np.array([school.state for school in public.institutions])
