"""Table 1 of Chetty & Friedman 2019: variance decomposition of the estimates, with and without winsorising."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.weighted import variance, weighted
from discreet.synth.atlas import Atlas
from discreet_studies.sensitivity.cells import MANY, PLAIN, WINSORISED, AtlasCells, cell_statistics, observations
from discreet_studies.texts import published


@dataclass(frozen=True)
class VarianceShares:
    """Parts of the weighted variance of noisy estimates; they add to 1.

    Signal is a residual, so it may be negative by chance: then only noise is visible.
    """

    signal: float
    sampling: float
    privacy: float


def decomposition(
    estimates: ArrayLike, errors: ArrayLike, noise_variances: ArrayLike, weights: ArrayLike
) -> VarianceShares:
    """Var(θ̃) = signal + E[SE(θ)²] + E[2(χ/(εN))²], each weighted (Table 1, note).

    `errors` are sampling standard errors, without privacy noise.
    """
    estimate, error, noise, weight = weighted(estimates, errors, noise_variances, weights)
    total = variance(estimate, weight)
    if not total > 0:
        raise ParameterError(
            "all estimates are equal, so there is no variance to decompose", where="estimates", do="give more cells"
        )
    sampling, privacy = (float(np.average(part, weights=weight)) / total for part in (error**2, noise))
    return VarianceShares(1 - sampling - privacy, sampling, privacy)


BIRTHS, JAIL, RANK = "teen_birth", "incarcerated", "kid_rank"
NAMES = {BIRTHS: "teenage birth rate", JAIL: "share incarcerated", RANK: "income rank"}


@dataclass(frozen=True)
class PrintedShares:
    """A row of the paper: outcome, group and three percentages."""

    outcome: str
    label: str
    race: int | None
    gender: int | None
    signal: float
    sampling: float
    privacy: float

    @property
    def name(self) -> str:
        return NAMES[self.outcome]

    @property
    def binary(self) -> bool:
        return self.outcome != RANK

    @property
    def sum(self) -> float:
        return self.signal + self.sampling + self.privacy


ROWS = published("sensitivity", "table-1", PrintedShares)


@dataclass(frozen=True)
class Decomposition:
    """Shares of the variance at ε = 8 with Normal noise, over cells of more than fifty."""

    cells: int
    chi: float  # the median state's
    shares: VarianceShares

    @property
    def reliability_before(self) -> float:
        """Reliability without privacy noise."""
        return self.shares.signal / (self.shares.signal + self.shares.sampling)

    @property
    def fall(self) -> float:
        """The loss of reliability due to privacy noise."""
        return self.reliability_before - self.shares.signal


@dataclass(frozen=True)
class VarianceRow:
    """One row; None where no cells are large enough, or where winsorising does not apply."""

    printed: PrintedShares
    plain: Decomposition | None
    winsorised: Decomposition | None
    flat: float | None  # binary outcome: share of cells whose outcomes winsorising would make equal

    @property
    def as_published(self) -> Decomposition | None:
        """Ranks winsorised, binary outcomes not."""
        return self.plain if self.printed.binary else self.winsorised


def table1(world: Atlas, seed: int) -> Iterator[VarianceRow]:
    """Rows with the paper's cells, weights and noise."""
    for printed in ROWS:
        rows = observations(world, printed.outcome, printed.race, printed.gender, by_group=False)
        if not len(rows.n):
            yield VarianceRow(printed, None, None, None)
            continue
        purpose = f"table 1, {printed.outcome}, {printed.label}, seed {seed}"
        winsorised = cell_statistics(rows, world, WINSORISED)
        plain = decompose_cells(cell_statistics(rows, world, PLAIN), purpose)
        flat = float(np.mean(winsorised.error[winsorised.n > MANY] == 0)) if plain and printed.binary else None
        yield VarianceRow(printed, plain, None if printed.binary else decompose_cells(winsorised, purpose), flat)


def decompose_cells(cells: AtlasCells, purpose: str) -> Decomposition | None:
    """χ is over all cells that are published, shares over those of more than fifty; weights: low-income children."""
    large = (cells.n > MANY) & (cells.low > 0)
    if large.sum() < 2:
        return None
    columns = cells.noisy(purpose), cells.error, cells.deviation**2, cells.low
    chi = np.median([cells.chi[cells.pool == pool][0] for pool in np.unique(cells.pool)])
    return Decomposition(int(large.sum()), float(chi), decomposition(*(column[large] for column in columns)))
