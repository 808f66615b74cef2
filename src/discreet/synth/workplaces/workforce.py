"""Who works in an establishment: sex, education, age, race and ethnicity, by sector and by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.synth.draws import Array, quantile_tables
from discreet.synth.industries import Code
from discreet.synth.sectors import SECTORS

# The codes of LODES; labels are ours.
SEXES = (Code("CS01", "Male"), Code("CS02", "Female"))
EDUCATIONS = (
    Code("CD01", "Less than high school"),
    Code("CD02", "High school"),
    Code("CD03", "Some college"),
    Code("CD04", "Bachelor's degree or more"),
)
AGES = (Code("CA01", "29 or younger"), Code("CA02", "30 to 54"), Code("CA03", "55 or older"))
RACES = (
    Code("CR01", "White"),
    Code("CR02", "Black"),
    Code("CR03", "American Indian or Alaska Native"),
    Code("CR04", "Asian"),
    Code("CR05", "Pacific Islander"),
    Code("CR07", "Two or more"),
)
ETHNICITIES = (Code("CT01", "Not Hispanic or Latino"), Code("CT02", "Hispanic or Latino"))
CELLS = len(SEXES) * len(EDUCATIONS)

RACE_SHARES = (76.0, 13.0, 1.0, 7.0, 0.3, 2.7)
HISPANIC = 15.0  # per cent
WOMEN_STUDY = (0.85, 0.95, 1.05, 1.1)  # how much likelier each education is among women than in the sector
ALIKE = 10.0  # Dirichlet weight of the sector in an establishment's shares: the lower, the more they differ
MIXES, MIX_ALIKE = 16, 40.0  # how many mixes of age, race and ethnicity a sector has, and how alike they are


class Staff(NamedTuple):
    """A sector's workers, in per cent: women, the four educations, the youngest and the oldest."""

    women: float
    educations: tuple[float, float, float, float]
    young: float
    old: float


STAFF = {
    "11": Staff(28, (35, 30, 22, 13), 27, 24),
    "21": Staff(14, (12, 36, 31, 21), 20, 21),
    "22": Staff(23, (5, 27, 34, 34), 14, 26),
    "23": Staff(13, (20, 35, 29, 16), 22, 20),
    "31-33": Staff(29, (14, 33, 29, 24), 18, 25),
    "42": Staff(30, (11, 29, 29, 31), 18, 24),
    "44-45": Staff(49, (12, 33, 34, 21), 36, 21),
    "48-49": Staff(25, (12, 35, 33, 20), 20, 25),
    "51": Staff(40, (5, 18, 29, 48), 23, 18),
    "52": Staff(57, (4, 18, 30, 48), 21, 21),
    "53": Staff(47, (9, 25, 31, 35), 20, 28),
    "54": Staff(47, (4, 14, 24, 58), 22, 20),
    "55": Staff(50, (5, 19, 28, 48), 19, 22),
    "56": Staff(42, (18, 31, 30, 21), 29, 20),
    "61": Staff(68, (4, 14, 22, 60), 16, 27),
    "62": Staff(78, (7, 20, 35, 38), 22, 23),
    "71": Staff(46, (10, 26, 33, 31), 36, 21),
    "72": Staff(53, (20, 33, 31, 16), 46, 14),
    "81": Staff(53, (13, 28, 31, 28), 24, 25),
    "92": Staff(46, (3, 20, 36, 41), 14, 28),
}


def composition(sector: Array, size: Array, rng: np.random.Generator) -> NDArray[np.int32]:
    """Jobs by sex x education: multinomial, with shares of the establishment's own about those of its sector."""
    weight = rng.standard_gamma(ALIKE * sex_by_education()[sector])
    return rng.multinomial(size, weight / weight.sum(axis=1, keepdims=True)).astype(np.int32)


def sex_by_education() -> Array:
    """Sector x cell: shares that sum to 1."""
    rows = []
    for sector in SECTORS:
        staff = STAFF[sector.code]
        taught = np.array(staff.educations) / 100
        women = staff.women / 100 * taught * WOMEN_STUDY / (taught @ WOMEN_STUDY)
        rows.append([*((1 - staff.women / 100) * taught), *women])
    return np.array(rows)


def mixes(rng: np.random.Generator) -> Array:
    """Sector x mix x quantile -> (age · 6 + race) · 2 + ethnicity: one look-up for all three."""
    others = np.outer(RACE_SHARES, (100 - HISPANIC, HISPANIC)).ravel()
    shares = []
    for sector in SECTORS:
        young, old = STAFF[sector.code].young, STAFF[sector.code].old
        shares.append(np.outer((young, 100 - young - old, old), others).ravel())
    expected = np.array(shares) / np.sum(shares[0])
    return quantile_tables(rng.standard_gamma(MIX_ALIKE * np.repeat(expected[:, None], MIXES, axis=1)))
