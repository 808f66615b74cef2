"""Raking (iterative proportional fitting): scale a cube to one margin after another until all are met (Li & Krenzke
2020, §3.3). The algorithm: rake.md.

A pure function of the cube and the targets: post-processing if both are protected or public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.arrays import Flags
from discreet.errors import ParameterError
from discreet.methods.hypercube.raking.blocks import Block, RakingPlan
from discreet.methods.hypercube.raking.kernel import NOT, add_up, adjust, fold, furthest, largest, meets
from discreet.methods.hypercube.raking.problems import obstacles, unmet
from discreet.post.cubes.margins import Floats, Margin, Problem

RANGE = 1e300  # bound on cells and sums of cells, below the largest float64
CACHED = 1 << 20  # cells of all margins up to which a plan is cached


@dataclass(frozen=True, eq=False)
class RakedCube:
    """A raked cube, and the gaps between its margins and their targets.

    `converged`: |sum − target| ≤ tolerance·max(1, |target|) in every cell of every margin of this very cube.
    """

    values: Floats
    largest_gap: float  # max |sum − target|, in units of the cube
    cycles: int  # completed
    converged: bool
    problems: tuple[Problem, ...]
    scaled_gap: float  # max |sum − target| / max(1, |target|), compared with the tolerance


def rake(
    values: Floats, margins: Sequence[Margin], targets: Sequence[Floats], *, tolerance: float, cycles: int
) -> RakedCube:
    """x ← x·target/sum, slice by slice, margin after margin; at most `cycles` times over all margins.

    Stops as soon as |sum − target| ≤ tolerance·max(1, |target|) for all cells of all margins, checked on the cube
    before the first cycle and after each cycle. Negative cells are kept, and factors may be negative. A slice with the
    sum 0 is not scaled. Also stops before a cell would exceed the floating-point range.
    """
    small = sum(margin.cells for margin in margins) <= CACHED
    plan = _cached_plan(tuple(margins)) if small else RakingPlan.of(tuple(margins))
    cube = np.array(values, np.float64, order="C").reshape(-1)
    if len(cube) != plan.cells:
        raise ParameterError("expected one value per cell", where="values", do="pass all cells of the cube")
    if not 0 <= tolerance < math.inf:
        raise ParameterError("a tolerance is a finite number from 0", where="tolerance", do="pass, for example, 1e-9")
    if cycles < 1:
        raise ParameterError("at least one cycle is needed", where="cycles", do="pass 1 or more")
    goals = _listed(plan.margins, targets)
    run = _Raking(plan, cube, goals)
    run.add_up()
    problems = list(obstacles(plan.margins, run.sums, goals, run.empty()))
    gap, done, within = furthest(run.sums, goals), 0, True
    while gap > tolerance and done < cycles and within:
        within = run.cycle()
        done += within
        if within and done < cycles and not run.first_met(tolerance):
            continue  # another cycle follows in any case: the other blocks need not be added up
        run.add_up()
        gap = furthest(run.sums, goals)
    if gap > tolerance:
        problems += unmet(plan.margins, run.sums, goals, tolerance, problems)
    plain = float(np.abs(run.sums - goals).max())
    return RakedCube(cube.reshape(np.shape(values)), plain, done, gap <= tolerance, tuple(problems), gap)


_cached_plan = lru_cache(maxsize=8)(RakingPlan.of)  # many cubes have the same margins; margins compare by identity


def _listed(margins: Sequence[Margin], targets: Sequence[Floats]) -> Floats:
    """All targets in one list."""
    if len(targets) != len(margins):
        raise ParameterError("expected one array of targets per margin", where="targets", do="pass one for each margin")
    for margin, target in zip(margins, targets, strict=True):
        if np.size(target) != margin.cells:
            raise ParameterError("expected one target per cell", where=f"margin {margin.name}", do="pass all its cells")
    goals = np.concatenate([np.asarray(target, np.float64).reshape(-1) for target in targets])
    if not largest(goals) < RANGE:
        raise ParameterError(
            "a target is not finite, or too large", where="targets", do="pass finite numbers below 1e300"
        )
    return goals


class _Raking:
    """The state of raking one cube."""

    def __init__(self, plan: RakingPlan, cube: Floats, goals: Floats) -> None:
        self.blocks, self.goals = plan.blocks, goals
        self.cube = cube.reshape(plan.rows, -1)
        self.tables = [np.empty(block.size) for block in plan.blocks]
        self.waiting: Floats | None = None  # factors of the only block, not yet applied to the cube
        self.sums = np.empty(len(goals))  # of all margins, when last added up
        self.bound = self._largest_sum()
        if not self.bound < RANGE:
            raise ParameterError(
                "a cell is not finite, or too large",
                where="values",
                do="pass finite numbers; cells × largest below 1e300",
            )

    def add_up(self) -> None:
        """Adds up all margins of the current cube."""
        self._apply_factors()
        for i, block in enumerate(self.blocks):
            self._fold(block, self.tables[i], i, NOT)
            add_up(self.tables[i], block.parents, block.starts, self.sums[block.targets])

    def first_met(self, tolerance: float) -> bool:
        """Whether the margins of the first block are met: its table was added up last in a cycle."""
        block = self.blocks[0]
        return meets(self.tables[0], block.parents, block.starts, self.goals[block.targets], tolerance)

    def cycle(self) -> bool:
        """Rakes to every margin once. False if stopped before a block whose factors are too large."""
        for i, block in enumerate(self.blocks):
            factors = np.empty(block.size)
            grown = adjust(self.tables[i], block.parents, block.starts, self.goals[block.targets], factors)
            self.bound *= grown
            if not self.bound < RANGE:
                self.bound = self._largest_sum() * grown  # from the current cube, not from the running bound
                if not self.bound < RANGE:
                    return False
            if len(self.blocks) == 1:  # no other block reads the cube: the table is enough
                self.tables[0] *= factors
                self.waiting = factors if self.waiting is None else self.waiting * factors
            else:
                self._fold(block, factors, (i + 1) % len(self.blocks), block.kind)
        return True

    def _largest_sum(self) -> float:
        """A bound on the size of any sum of cells."""
        self._apply_factors()
        return largest(self.cube.reshape(-1)) * self.cube.size

    def _apply_factors(self) -> None:
        if self.waiting is not None:
            self._fold(self.blocks[0], self.waiting, 0, self.blocks[0].kind)
            self.waiting = None

    def empty(self) -> Flags:
        """Which cells of the margins add up zeros only."""
        none: Flags = self.sums == 0
        if none.any():
            negative = np.signbit(self.cube)
            np.abs(self.cube, out=self.cube)
            self.add_up()
            none = self.sums == 0
            np.negative(self.cube, out=self.cube, where=negative)
            self.add_up()
        return none

    def _fold(self, by: Block, factors: Floats, i: int, how: int) -> None:
        """Scales the cube by one block's factors, and adds up the table of another."""
        to, table = self.blocks[i], self.tables[i]
        table[:] = 0.0
        scale = factors.reshape(-1, by.width)
        fold(self.cube, scale, by.rows, by.steps, how, table.reshape(-1, to.width), to.rows, to.steps, to.kind)
