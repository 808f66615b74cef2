"""Every attack (Haney et al. 2017, §5.2, and two more) on every mechanism: noise infusion and formally private ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.methods.employer.mechanisms.smooth_gamma import SmoothGamma
from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet_studies.attacks import attacks
from discreet_studies.attacks.attacks import Attack, AveragingError, Bools
from discreet_studies.attacks.releases import InfusionPublication, MechanismPublication, Publication, strong, weak
from discreet_studies.attacks.runs import targets
from discreet_studies.employer.mechanism_grid import ALPHA, DELTA
from discreet_studies.employer.workloads import GRADUATES, WORKER_CELLS, Int64s, TabulatedFrame

EPSILON = Fraction(4)  # the smallest of the grid at which every mechanism is admissible in eight cells
THETA = 1000
TIMES = (1, 16)  # publications of the same table
MOST = 200  # cells for the differencing attack
GROWTH = (-5, 25)  # percent from one year to the next


@dataclass(frozen=True)
class AttackResults:
    """Results of every attack on one method."""

    method: str
    cost: Fraction | None
    attacks: tuple[Attack, ...]  # one worker's attribute, size, shape; size and shape by differencing; growth
    averaged: tuple[AveragingError, ...]


def methods(world: TabulatedFrame) -> tuple[Publication, ...]:
    """Noise infusion, and all mechanisms at α = .1, ε = 4 for all worker cells together."""
    each, delta = EPSILON / WORKER_CELLS, DELTA / WORKER_CELLS
    return (
        InfusionPublication(world.infusion),
        InfusionPublication(world.infusion, rounded=True),
        MechanismPublication("one job: geometric", Geometric(EPSILON), "cell"),
        MechanismPublication("whole establishments: truncated", Truncated(EPSILON, THETA), "cell", THETA),
        strong(LaplacePareto(ALPHA, EPSILON, cells=WORKER_CELLS)),
        strong(SmoothGamma(ALPHA, EPSILON, cells=WORKER_CELLS)),
        strong(SmoothLaplace(ALPHA, EPSILON, DELTA, cells=WORKER_CELLS)),
        weak(LaplacePareto(ALPHA, each), WORKER_CELLS),
        weak(SmoothGamma(ALPHA, each), WORKER_CELLS),
        weak(SmoothLaplace(ALPHA, each, delta), WORKER_CELLS),
        weak(LogLaplace(ALPHA, each), WORKER_CELLS),
    )


def attack_results(world: TabulatedFrame) -> tuple[AttackResults, ...]:
    """Run every attack; empty if no establishment qualifies as a target."""
    target_set = targets(world.workers, world.frame.cell, GRADUATES, world.infusion.limit)
    rows, cell, target = _differing(world)
    if not len(target_set.unreplaced) or not len(target_set.with_one) or not target.any():
        return ()
    later = _grown(target_set.unreplaced)
    return tuple(
        AttackResults(
            method=method.name,
            cost=method.cost,
            attacks=(
                attacks.reidentification(method, target_set.with_one, target_set.columns, world.key),
                attacks.size(method, target_set.unreplaced, world.key),
                attacks.shape(method, target_set.unreplaced, world.key),
                *reversed(attacks.differencing(method, rows, cell, target, world.key)),
                attacks.growth(method, target_set.unreplaced, later, world.key),
            ),
            averaged=tuple(attacks.averaging(method, target_set.unreplaced, TIMES, world.key)),
        )
        for method in methods(world)
    )


def _differing(world: TabulatedFrame) -> tuple[Int64s, Int64s, Bools]:
    """Cells with a target and further establishments: their establishments, renumbered cells, and one target in
    each."""
    seen = np.bincount(world.frame.cell, minlength=world.frame.cells)
    able = attacks.unreplaced(world.workers, world.infusion.limit) & (seen[world.frame.cell] > 1)
    chosen, first = np.unique(world.frame.cell[able], return_index=True)
    chosen, first = chosen[:MOST], np.flatnonzero(able)[first[:MOST]]
    mine = np.flatnonzero(np.isin(world.frame.cell, chosen))
    return world.workers[mine], np.searchsorted(chosen, world.frame.cell[mine]), np.isin(mine, first)


def _grown(workers: Int64s) -> Int64s:
    """The same establishments a year later, each grown at its own rate."""
    low, high = GROWTH
    rates = low + np.arange(len(workers)) * 7 % (high - low + 1)
    grown: Int64s = workers + workers * rates[:, None] // 100
    return grown
