"""Table 1 of 004: what the spread of estimates is made of, with and without winsorising, beside the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.synth.atlas import BLACK, BOYS, GIRLS, WHITE, Atlas
from discreet_studies.sensitivity.cells import MANY, PLAIN, WINSORISED, Cells, measured, observations
from discreet_studies.sensitivity.decomposition import Shares, decomposition

HISPANIC, ASIAN, NATIVE = 2, 3, 4
BIRTHS, JAIL, RANK = "teen_birth", "incarcerated", "kid_rank"
NAMES = {BIRTHS: "teenage birth rate", JAIL: "share incarcerated", RANK: "income rank"}


@dataclass(frozen=True)
class Asked:
    """A row of the paper: an outcome, whose, and its three percentages."""

    outcome: str
    label: str
    race: int | None
    gender: int | None
    signal: float
    sampling: float
    privacy: float

    @property
    def binary(self) -> bool:
        return self.outcome != RANK

    @property
    def sum(self) -> float:
        return self.signal + self.sampling + self.privacy


ROWS = (
    Asked(BIRTHS, "Black girls", BLACK, GIRLS, 71.00, 28.18, 0.82),
    Asked(BIRTHS, "White girls", WHITE, GIRLS, 70.58, 28.31, 1.11),
    Asked(JAIL, "Black boys", BLACK, BOYS, 56.39, 40.21, 2.32),
    Asked(JAIL, "White boys", WHITE, BOYS, 33.64, 38.85, 27.51),
    Asked(RANK, "all children", None, None, 90.96, 8.97, 0.08),
    Asked(RANK, "Black", BLACK, None, 75.19, 23.59, 1.22),
    Asked(RANK, "White", WHITE, None, 78.90, 20.82, 0.27),
    Asked(RANK, "Hispanic", HISPANIC, None, 69.62, 29.08, 1.30),
    Asked(RANK, "Asian", ASIAN, None, 69.99, 28.94, 1.06),
    Asked(RANK, "American Indian or Alaska Native", NATIVE, None, 81.90, 17.28, 0.82),
    Asked(RANK, "White boys", WHITE, BOYS, 64.71, 34.60, 0.69),
    Asked(RANK, "White girls", WHITE, GIRLS, 70.36, 28.93, 0.71),
    Asked(RANK, "Black boys", BLACK, BOYS, 66.58, 31.29, 2.13),
    Asked(RANK, "Black girls", BLACK, GIRLS, 73.16, 25.17, 1.67),
)


@dataclass(frozen=True)
class Parted:
    """Shares of the variance at ε = 8 with Normal noise, over cells of more than fifty."""

    cells: int
    chi: float  # the median state's
    shares: Shares

    @property
    def reliability_before(self) -> float:
        """Signal's part without the noise of privacy."""
        return self.shares.signal / (self.shares.signal + self.shares.sampling)

    @property
    def fall(self) -> float:
        """What reliability loses."""
        return self.reliability_before - self.shares.signal


@dataclass(frozen=True)
class Row:
    """One row; None where no cells are large enough, or where winsorising makes no sense."""

    asked: Asked
    plain: Parted | None
    winsorised: Parted | None
    flat: float | None  # of a 0/1 outcome: share of cells whose outcomes winsorising would make equal

    @property
    def as_published(self) -> Parted | None:
        """Ranks winsorised, 0/1 outcomes not."""
        return self.plain if self.asked.binary else self.winsorised


def table1(made: Atlas, seed: int) -> Iterator[Row]:
    """Row by row: the paper's cells, weights and noise."""
    for asked in ROWS:
        found = observations(made, asked.outcome, asked.race, asked.gender, by_group=False)
        if not len(found.n):
            yield Row(asked, None, None, None)
            continue
        purpose = f"table 1, {asked.outcome}, {asked.label}, seed {seed}"
        drawn_in = measured(found, made, WINSORISED)
        plain = parted(measured(found, made, PLAIN), purpose)
        flat = float(np.mean(drawn_in.error[drawn_in.n > MANY] == 0)) if plain and asked.binary else None
        yield Row(asked, plain, None if asked.binary else parted(drawn_in, purpose), flat)


def parted(cells: Cells, purpose: str) -> Parted | None:
    """χ is over all cells that are published, shares over those of more than fifty; weights: low-income children."""
    kept = (cells.n > MANY) & (cells.low > 0)
    if kept.sum() < 2:
        return None
    columns = cells.noisy(purpose), cells.error, cells.deviation**2, cells.low
    chi = np.median([cells.chi[cells.pool == pool][0] for pool in np.unique(cells.pool)])
    return Parted(int(kept.sum()), float(chi), decomposition(*(column[kept] for column in columns)))
