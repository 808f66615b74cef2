"""Generates people and their records in fixed blocks of rows; a record is person x degree x years after."""

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

BLOCK = 1 << 16  # rows per random stream: part of the meaning of a seed, so not a tuning parameter

COHORTS = ("2010", "2013", "2016", "2019", "2022")  # first year of a three-year graduation cohort
YEARS_AFTER = ("1", "5", "10")
LAST_YEAR = 2025  # last year of known earnings

DEGREES = {1: 0.85, 2: 0.135, 3: 0.015}  # number of degrees of a person, before truncation
SAME_SCHOOL = 0.5  # share of later degrees from the institution of the first
MOVES = 0.1  # share of records in which the person has moved since graduating
NEW_LINE = 0.2  # share of records in which the person has changed sector since graduating

LOG_MEAN = 11.0  # with the two spreads below: lognormal(11.0, 0.75), shifted by programme and years
PERSON_SPREAD, YEAR_SPREAD = 0.60, 0.45
YEARS_SHIFT = np.array([-0.30, 0.0, 0.25], dtype=np.float32)
EMPLOYED, EMPLOYED_BY_PAY = 0.80, 0.10
ROUNDED = 0.15  # share of earnings reported to the nearest thousand

FAMILY = np.array([FAMILIES.index(field.cip2) for field in FIELDS])


@dataclass(frozen=True)
class GraduateRows:
    """Rows, as positions in the public lists; -1 is null. Earnings and industry apply only where `employed`."""

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
        """All columns."""
        return iter(vars(self).values())


@dataclass(frozen=True)
class CareerTable:
    """The records of every possible career (the cohorts of a person's degrees), concatenated.

    Drawing a career number then gives all records of a person by lookup.
    """

    quantiles: Array  # draw -> career
    degrees: Array  # career -> number of degrees
    start: Array  # career -> its first record
    length: Array  # career -> number of records
    degree: Array  # record -> which of the person's degrees
    cohort: Array
    years: Array


def block(number: int, rows: int, seed: int, public: EducationCatalogue) -> GraduateRows:
    """Rows of block `number`; the last person's records are truncated at the end of the block."""
    rng = generator(seed, StreamPurpose.RECORDS, number)
    table = career_table()
    career = table.quantiles[draw_quantiles(rng, rows)]  # one person per row is always enough
    ends = np.cumsum(table.length[career])
    people = int(np.searchsorted(ends, rows)) + 1
    career, starts = career[:people], (ends - table.length[career])[:people]
    person = np.repeat(np.arange(people, dtype=np.int32), table.length[career])[:rows]
    record = table.start[career][person] + np.arange(rows) - starts[person]

    first_degree = np.cumsum(table.degrees[career]) - table.degrees[career]
    programme = _programmes_taken(rng, table.degrees[career], first_degree, public.programmes)
    degree = first_degree[person] + table.degree[record]
    taken, years = programme[degree], table.years[record]
    pay = public.programmes.shift[taken] + YEARS_SHIFT[years]
    institution, field = public.programmes.institution[taken], public.programmes.field[taken]
    state = destinations()[_home(public)[institution], _lasting(rng, len(programme), degree, MOVES)]
    work = _lasting(generator(seed, StreamPurpose.WORK, number), len(programme), degree, NEW_LINE)
    return GraduateRows(
        person=1 + number * BLOCK + person.astype(np.int64),
        institution=institution,
        level=public.programmes.level[taken],
        field=field,
        cohort=table.cohort[record],
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
    """All careers of one to three degrees, three only in different cohorts: hence at most 8 records."""
    combinations: list[tuple[tuple[int, ...], float]] = []
    for count, share in DEGREES.items():
        options = [
            cohorts
            for cohorts in combinations_with_replacement(range(len(COHORTS)), count)
            if count < 3 or len(set(cohorts)) == count
        ]
        combinations += [(cohorts, share / len(options)) for cohorts in options]
    records = [
        [(degree, cohort, years) for degree, cohort in enumerate(cohorts) for years in known_years(cohort)]
        for cohorts, _ in combinations
    ]
    length = np.array([len(own) for own in records])
    degree, cohort, years = np.array([record for own in records for record in own], dtype=np.int32).T
    return CareerTable(
        quantiles=quantile_table(np.array([share for _, share in combinations])),
        degrees=np.array([len(cohorts) for cohorts, _ in combinations]),
        start=np.cumsum(length) - length,
        length=length,
        degree=degree.copy(),
        cohort=cohort.copy(),
        years=years.copy(),
    )


def _programmes_taken(rng: np.random.Generator, degrees: Array, first_degree: Array, programmes: Programmes) -> Array:
    """The programme of every degree, by popularity; half of the later ones at the institution of the first."""
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
    """Quantiles of a choice made at graduation (residence, sector), and redrawn for those who change it."""
    initial = draw_quantiles(rng, degrees)[degree]
    changed = rng.random(len(degree), dtype=np.float32) < changes
    chosen: Array = np.where(changed, draw_quantiles(rng, len(degree)), initial)
    return chosen


def _earnings(rng: np.random.Generator, pay: Array, person: Array, people: int) -> Array:
    """Annual earnings in dollars, lognormal with a persistent personal component, some rounded to thousands."""
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
