"""Synthetic flows of graduates for a whole country, as counts: for benchmarks that need many groups but no records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.synth.draws import (
    BITS,
    MOST_SEED,
    Array,
    StreamPurpose,
    draw_quantiles,
    generator,
    refuse_unless_within,
    rows_of_blocks,
)
from discreet.synth.education.economy import Economy, generate_economy
from discreet.synth.education.fields import FAMILIES
from discreet.synth.education.records import COHORTS, YEARS_AFTER, known_years
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES, destinations, population

LEVELS = ("03", "05", "07", "17")  # offered in every family, so that the list of groups is a plain product
MOMENTS = tuple((cohort, years) for cohort in range(len(COHORTS)) for years in known_years(cohort))
SCHOOL = len(LEVELS) * len(FAMILIES) * len(MOMENTS)  # groups of one institution
CELLS = (
    len(SECTORS) * len(STATES) + 1
)  # sector by sector, a cell for each state; the last one: not employed or marginally employed

BLOCK = 256  # groups per random stream: part of the meaning of a seed, so not tunable
MEDIAN, SPREAD, LARGEST = 60.0, 1.1, 3_000  # graduates of a group: lognormal, truncated
EMPTY = 0.03  # share of listed groups without graduates
MARGINAL = 0.15
MOST_GROUPS = 10**8


@dataclass(frozen=True)
class National:
    """A public list of groups with its controls, and the true flows behind it.

    `codes` are the values of each key column; `keys` has a row for each group: positions in them.
    """

    seed: int
    codes: dict[str, tuple[str, ...]]
    keys: Array  # group x (institution, degree level, family, cohort, years after)
    home: Array  # institution -> state
    economy: Economy  # hires from each home state to each state, employment of each sector in each state

    def counts(self, first: int, n: int) -> Array:
        """True flows of groups `first` … `first + n - 1`: n x 1,021, independent of how they are requested."""
        rows = first, n, len(self.keys)
        return rows_of_blocks("synth national", rows, BLOCK, self._block, CELLS, np.int64)

    def _block(self, number: int) -> Array:
        """All groups of a block: totals, then for each graduate a state, a sector, or the marginal cell."""
        school, _, family, _, _ = self.keys[number * BLOCK : (number + 1) * BLOCK].T
        rng = np.random.Generator(np.random.Philox(key=np.array([self.seed, number], dtype=np.uint64)))
        totals = np.minimum(MEDIAN * rng.lognormal(0.0, SPREAD, len(school)), LARGEST).astype(np.int64)
        totals[rng.random(len(school)) < EMPTY] = 0
        group = np.repeat(np.arange(len(school)), totals)
        state = destinations()[self.home[school][group], draw_quantiles(rng, len(group))]
        sector = self.economy.work[family[group], state, draw_quantiles(rng, len(group))]
        cell = sector.astype(np.int64) * len(STATES) + state
        cell[draw_quantiles(rng, len(group)) < MARGINAL * (1 << BITS)] = CELLS - 1
        return np.bincount(group * CELLS + cell, minlength=len(school) * CELLS).reshape(-1, CELLS)


def national(groups: int, seed: int) -> National:
    """A country with that many groups: institution x degree level x family x cohort x years after, in this order."""
    refuse_unless_within("synth national", "groups", groups, 1, MOST_GROUPS)
    refuse_unless_within("synth national", "seed", seed, 0, MOST_SEED)
    schools = -(-groups // SCHOOL)
    school, level, family, moment = np.unravel_index(
        np.arange(groups), (schools, len(LEVELS), len(FAMILIES), len(MOMENTS))
    )
    codes = {
        "institution": tuple(f"09{number:06d}" for number in range(schools)),
        "degree_level": LEVELS,
        "cip2": FAMILIES,
        "grad_cohort": COHORTS,
        "years_after": YEARS_AFTER,
    }
    keys = np.stack([school, level, family, *np.array(MOMENTS)[moment].T], axis=1).astype(np.int32)
    home = generator(seed, StreamPurpose.NATIONAL).choice(len(STATES), schools, p=population())
    return National(seed, codes, keys, home, generate_economy(seed))
