"""The workforce of an establishment: sex, education, age, race and ethnicity, by sector with random effects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.synth.draws import Array, quantile_tables
from discreet.synth.lists import by_sector, code_list
from discreet.synth.sectors import SECTORS

# The codes of LODES; labels are our own.
SEXES, EDUCATIONS, AGES = code_list("sex"), code_list("education"), code_list("age")
RACES, ETHNICITIES = code_list("race"), code_list("ethnicity")
CELLS = len(SEXES) * len(EDUCATIONS)

RACE_SHARES = (76.0, 13.0, 1.0, 7.0, 0.3, 2.7)
HISPANIC = 15.0  # per cent
WOMEN_STUDY = (0.85, 0.95, 1.05, 1.1)  # frequency of each education among women relative to the sector
ALIKE = 10.0  # Dirichlet concentration of an establishment's shares about its sector's: the lower, the more they differ
MIXES, MIX_ALIKE = 16, 40.0  # number of mixes of age, race and ethnicity in a sector, and their Dirichlet concentration


class SectorWorkforce(NamedTuple):
    """A sector's workforce, in per cent: women, the four educations, the youngest and the oldest."""

    women: float
    educations: tuple[float, ...]
    young: float
    old: float


WORKFORCES = by_sector("workforces", SectorWorkforce)


def composition(sector: Array, size: Array, rng: np.random.Generator) -> NDArray[np.int32]:
    """Jobs by sex x education: multinomial, with Dirichlet shares about those of the sector."""
    weight = rng.standard_gamma(ALIKE * sex_by_education()[sector])
    return rng.multinomial(size, weight / weight.sum(axis=1, keepdims=True)).astype(np.int32)


def sex_by_education() -> Array:
    """Sector x cell: shares that sum to 1."""
    rows = []
    for sector in SECTORS:
        workforce = WORKFORCES[sector.code]
        taught = np.array(workforce.educations) / 100
        women = workforce.women / 100 * taught * WOMEN_STUDY / (taught @ WOMEN_STUDY)
        rows.append([*((1 - workforce.women / 100) * taught), *women])
    return np.array(rows)


def mixes(rng: np.random.Generator) -> Array:
    """Sector x mix x quantile -> (age · 6 + race) · 2 + ethnicity: one lookup for all three."""
    others = np.outer(RACE_SHARES, (100 - HISPANIC, HISPANIC)).ravel()
    shares = []
    for sector in SECTORS:
        young, old = WORKFORCES[sector.code].young, WORKFORCES[sector.code].old
        shares.append(np.outer((young, 100 - young - old, old), others).ravel())
    expected = np.array(shares) / np.sum(shares[0])
    return quantile_tables(rng.standard_gamma(MIX_ALIKE * np.repeat(expected[:, None], MIXES, axis=1)))
