"""The public side: synthetic institutions and the programmes they offer, some of them without graduates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, generator
from discreet.synth.education.economy import Economy, generate_economy
from discreet.synth.education.fields import FIELDS, LEVELS
from discreet.synth.lists import column, entries, name_parts
from discreet.synth.states import STATES, population

FEWEST, MOST = 24, 300  # institutions
ZIPF = 0.9  # the r-th largest institution has a size in proportion to r^-0.9
WITHOUT_GRADUATES = 0.08  # share of listed programmes without a single graduate
RESOLUTION = 1 << 40  # programme weights are integers, so that an empty programme is never drawn

FIRST, LAST = name_parts("first"), name_parts("last")


class InstitutionKind(NamedTuple):
    """A kind of institution: the pattern of its name and the degree levels it awards."""

    name: str
    levels: tuple[str, ...]


ROTATION = entries("institutions", InstitutionKind)  # assigned in rotation, the largest first


@dataclass(frozen=True)
class Institution:
    """One synthetic institution; `state` is an index into `STATES`."""

    code: str
    label: str
    kind: InstitutionKind
    state: int
    size: float


@dataclass(frozen=True)
class Programmes:
    """The public list of programmes, one row each: positions in the institution, level and field lists.

    `upto` is the cumulative popularity; a programme of width zero has no graduates.
    """

    institution: Array
    level: Array
    field: Array
    upto: Array
    shift: Array


@dataclass(frozen=True)
class EducationCatalogue:
    """The public lists, and the latent popularity, pay and employment behind the records."""

    institutions: tuple[Institution, ...]
    programmes: Programmes
    economy: Economy


def generate_catalogue(rows: int, seed: int) -> EducationCatalogue:
    """Generate the institutions and programmes of an agency with this many records."""
    rng = generator(seed, StreamPurpose.CATALOGUE)
    institutions = _institutions(institution_count(rows), rng)
    return EducationCatalogue(institutions, _programmes(institutions, rng), generate_economy(seed))


def institution_count(rows: int) -> int:
    """24 institutions for ten thousand records, growing slowly to three hundred."""
    return int(np.clip(round(FEWEST * (rows / 10_000) ** 0.3), FEWEST, MOST))


def _institutions(count: int, rng: np.random.Generator) -> tuple[Institution, ...]:
    """Institutions in order of size. Codes start at 09…, above every OPEID in use, so none is real."""
    places = rng.permutation([first + last for first in FIRST for last in LAST])[:count]
    states = rng.choice(len(STATES), count, p=population())
    institutions = []
    for rank, (place, state) in enumerate(zip(places, states, strict=True)):
        kind = ROTATION[rank % len(ROTATION)]
        label, size = kind.name.format(place), float((rank + 1) ** -ZIPF)
        institutions.append(Institution(f"09{rank + 1:04d}00", label, kind, int(state), size))
    return tuple(institutions)


def _programmes(institutions: tuple[Institution, ...], rng: np.random.Generator) -> Programmes:
    """Larger institutions offer more; popularity varies by field, level and chance."""
    institution, level, field = (
        np.array(column, dtype=np.int32) for column in zip(*_offers(institutions, rng), strict=True)
    )
    size = np.array([school.size for school in institutions])[institution]
    popularity = column(LEVELS, "weight")[level] * column(FIELDS, "weight")[field]
    popularity *= rng.lognormal(0.0, 0.8, len(field))
    # popularity is relative within an institution: its total is the institution's size
    share = popularity / np.bincount(institution, popularity)[institution]
    empty = rng.random(len(field)) < WITHOUT_GRADUATES
    empty[np.unique(institution, return_index=True)[1]] = False  # every institution has some graduates
    weight = np.where(empty, 0, np.maximum(1, size * share / size[0] * RESOLUTION)).astype(np.int64)
    prestige = rng.normal(0.0, 0.10, len(institutions))[institution]
    shift = column(LEVELS, "shift")[level] + column(FIELDS, "shift")[field] + prestige
    return Programmes(institution, level, field, np.cumsum(weight), shift.astype(np.float32))


def _offers(institutions: tuple[Institution, ...], rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Institution, level and field of every programme on offer, in the order of the public list."""
    offers = []
    for number, school in enumerate(institutions):
        possible = [
            (number, level, field)
            for level, degree in enumerate(LEVELS)
            for field, subject in enumerate(FIELDS)
            if degree.code in school.kind.levels and degree.code in subject.levels
        ]
        breadth = 0.25 + 0.6 * school.size**0.5
        taught = rng.random(len(possible)) < breadth
        taught[rng.integers(len(possible))] = True  # every institution has a programme
        offers += [offer for offer, kept in zip(possible, taught, strict=True) if kept]
    return offers
