"""Plausible survey cases for Li & Krenzke 2020, §4, which reports how many cases and cells, but not their
distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from discreet.post.cubes.margins import Floats
from discreet.synth.occupational.occupations import SurveyDesign, cells_of, sample
from discreet.synth.occupational.requirements import PAPER, PAPER_ROWS, Requirement
from discreet_studies.hypercube.simulation import MARGINS, RakedRuns, rake_only

MOST_RUNS = 200  # on each further set of cases
MAIN = "levels as 1, 1/2, 1/3, …"
SPREADS = (  # label; frequency of each level relative to the one before; whether the variables are independent
    ("levels equally common", 1.0, False),
    ("each level 1/2 as common", 0.5, False),
    ("each level 1/4 as common", 0.25, False),
    ("equally common, independent", 1.0, True),
    ("each level 3/4, independent", 0.75, True),
    ("each level 1/2, independent", 0.5, True),
)


def counts(seed: int, requirements: tuple[Requirement, ...] = PAPER) -> Floats:
    """The cube of the synthetic survey of 182 quotes."""
    design, names = SurveyDesign(PAPER_ROWS, seed, requirements), [one.name for one in requirements]
    codes = np.concatenate([block.codes for block in sample(design, 0)], axis=1)
    return np.bincount(cells_of(design, names, codes), minlength=prod(design.shape(names))).astype(np.float64)


def requirements_like(factor: float, independent: bool) -> tuple[Requirement, ...]:
    """The ten requirements, with each level `factor` times as common as the one before."""
    spread = [replace(one, shares=tuple(factor**level for level in range(one.levels))) for one in PAPER]
    return tuple(replace(one, skill=0.0, strain=0.0) if independent else one for one in spread)


@dataclass(frozen=True, eq=False)
class Cases:
    """A set of cases and its raked runs."""

    label: str
    seed: int
    smallest: int  # cases in the smallest cell of the margins
    raked: RakedRuns


def others(seed: int) -> list[tuple[str, int, tuple[Requirement, ...]]]:
    """Further sets: another sample of the same distribution, flatter and steeper ones, and independent variables."""
    more = [(label, seed, requirements_like(factor, independent)) for label, factor, independent in SPREADS]
    return [(MAIN, seed + 1, PAPER), *more]


def raked_cases(label: str, seed: int, requirements: tuple[Requirement, ...], runs: int, noise: int) -> Cases:
    """Rake a set of cases, with the same noise seed for every set."""
    cube = counts(seed, requirements)
    smallest = int(min(margin.add_up(cube).min() for margin in MARGINS))
    return Cases(label, seed, smallest, rake_only(cube, min(runs, MOST_RUNS), noise))
