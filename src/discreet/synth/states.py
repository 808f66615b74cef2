"""The fifty states and DC, their census divisions, and rough sizes: where graduates go to live."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array, quantile_table


class State(NamedTuple):
    """A state: FIPS code, census division, name, and people in millions (rounded, only a weight)."""

    code: str
    division: str
    label: str
    millions: float


STATES = tuple(
    State(*row)
    for row in [
        ("01", "6", "Alabama", 5.1), ("02", "9", "Alaska", 0.7), ("04", "8", "Arizona", 7.4),
        ("05", "7", "Arkansas", 3.1), ("06", "9", "California", 39.0), ("08", "8", "Colorado", 5.9),
        ("09", "1", "Connecticut", 3.6), ("10", "5", "Delaware", 1.0),
        ("11", "5", "District of Columbia", 0.7),
        ("12", "5", "Florida", 22.6), ("13", "5", "Georgia", 11.0), ("15", "9", "Hawaii", 1.4),
        ("16", "8", "Idaho", 2.0), ("17", "3", "Illinois", 12.5), ("18", "3", "Indiana", 6.9),
        ("19", "4", "Iowa", 3.2), ("20", "4", "Kansas", 2.9), ("21", "6", "Kentucky", 4.5),
        ("22", "7", "Louisiana", 4.6), ("23", "1", "Maine", 1.4), ("24", "5", "Maryland", 6.2),
        ("25", "1", "Massachusetts", 7.0), ("26", "3", "Michigan", 10.0), ("27", "4", "Minnesota", 5.7),
        ("28", "6", "Mississippi", 2.9), ("29", "4", "Missouri", 6.2), ("30", "8", "Montana", 1.1),
        ("31", "4", "Nebraska", 2.0), ("32", "8", "Nevada", 3.2), ("33", "1", "New Hampshire", 1.4),
        ("34", "2", "New Jersey", 9.3), ("35", "8", "New Mexico", 2.1), ("36", "2", "New York", 19.6),
        ("37", "5", "North Carolina", 10.8), ("38", "4", "North Dakota", 0.8), ("39", "3", "Ohio", 11.8),
        ("40", "7", "Oklahoma", 4.1), ("41", "9", "Oregon", 4.2), ("42", "2", "Pennsylvania", 13.0),
        ("44", "1", "Rhode Island", 1.1), ("45", "5", "South Carolina", 5.4),
        ("46", "4", "South Dakota", 0.9),
        ("47", "6", "Tennessee", 7.1), ("48", "7", "Texas", 30.5), ("49", "8", "Utah", 3.4),
        ("50", "1", "Vermont", 0.6), ("51", "5", "Virginia", 8.7), ("53", "9", "Washington", 7.8),
        ("54", "5", "West Virginia", 1.8), ("55", "3", "Wisconsin", 5.9), ("56", "8", "Wyoming", 0.6),
    ]
)  # fmt: skip

STAYS, STAYS_NEARBY = 0.65, 0.15  # the rest goes anywhere in the country


def population() -> Array:
    """Each state's share of the country's people."""
    millions: Array = np.array([state.millions for state in STATES])
    shares: Array = millions / millions.sum()
    return shares


def destination_shares() -> Array:
    """Shares of destinations for each home state: most stay, some go next door, some anywhere."""
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
