"""The fifty states and DC, their census divisions and approximate populations; destinations of graduates."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array, quantile_table
from discreet.synth.lists import column, entries


class State(NamedTuple):
    """A state: FIPS code, census division, name, and population in millions (rounded; used as a weight)."""

    code: str
    division: str
    label: str
    millions: float


STATES = entries("states", State)
STAYS, STAYS_NEARBY = 0.65, 0.15  # the others go anywhere in the country


def population() -> Array:
    """Each state's share of the population."""
    millions = column(STATES, "millions")
    shares: Array = millions / millions.sum()
    return shares


def destination_shares() -> Array:
    """Shares of destinations for each home state: most stay, some move within the division, some anywhere."""
    everywhere = population()
    divisions = np.array([state.division for state in STATES])
    rows = []
    for home, division in enumerate(divisions):
        nearby = np.where(divisions == division, everywhere, 0.0)
        shares = (1 - STAYS - STAYS_NEARBY) * everywhere + STAYS_NEARBY * nearby / nearby.sum()
        shares[home] += STAYS
        rows.append(shares)
    return np.stack(rows)


@cache
def destinations() -> Array:
    """A quantile table of destinations for each home state."""
    return np.stack([quantile_table(shares) for shares in destination_shares()])
