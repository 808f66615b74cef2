"""Choosing ε on the synthetic atlas: misclassification of tracts within counties (Chetty & Friedman 2019, §III)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.tradeoff import Point, epsilon_for, tradeoff
from discreet.synth.atlas import BLACK, GIRLS, Atlas
from discreet_studies.sensitivity.cells import PLAIN, WINSORISED, AtlasCells, cell_statistics, observations
from discreet_studies.sensitivity.table1 import BIRTHS, RANK

EPSILONS = tuple(Fraction(e) for e in ("0.25", "0.5", "1", "2", "4", "8", "16", "32"))
TARGETS = (Fraction(1, 5), Fraction(1, 10), Fraction(1, 20))
RUNS = 10
STEP = Fraction(1, 10)


@dataclass(frozen=True)
class EpsilonChoice:
    """One outcome: errors at each ε, and the ε required for each target; None where no ε reaches it."""

    label: str
    cells: int
    counties: int
    points: Sequence[Point]
    epsilons: tuple[Fraction | None, ...]


def epsilon_choices(world: Atlas) -> list[EpsilonChoice]:
    """Income ranks of all children, winsorised, and teenage births of Black girls; Normal noise."""
    outcomes = (
        ("income rank, all children", RANK, None, None, WINSORISED),
        ("teenage birth rate, Black girls", BIRTHS, BLACK, GIRLS, PLAIN),
    )
    county = np.array(world.tracts.county)
    out = []
    for label, outcome, race, gender, statistic in outcomes:
        rows = observations(world, outcome, race, gender, by_group=False)
        if len(rows.n) < 2:
            continue
        cells = cell_statistics(rows, world, statistic)
        areas = county[cells.tract]
        try:
            points = tradeoff(cells.theta, cells.n, cells.chi, EPSILONS, distribution="normal", areas=areas, runs=RUNS)
        except ParameterError:  # no county has ten such tracts
            continue
        needed = tuple(_needed(cells, areas, target) for target in TARGETS)
        out.append(EpsilonChoice(label, len(cells.n), len(np.unique(areas)), points, needed))
    return out


def _needed(cells: AtlasCells, areas: NDArray[np.str_], target: Fraction) -> Fraction | None:
    try:
        return epsilon_for(
            cells.theta, cells.n, cells.chi,
            target_misclassification=float(target), distribution="normal", areas=areas, runs=RUNS, step=STEP,
        )  # fmt: skip
    except ParameterError:  # no ε reaches it
        return None
