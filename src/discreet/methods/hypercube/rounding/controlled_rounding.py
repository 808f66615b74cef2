"""Controlled rounding: a cube of non-negative integers whose margins are the rounded margins of a calibrated cube.
Proof: controlled_rounding.md.

Tables are rounded from the coarsest, the total, to the finest, the cube, each given the tables within it. A pure
function of protected numbers and public random words: post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from discreet.arrays import Flags, Int64s, Words
from discreet.errors import ParameterError
from discreet.methods.hypercube.raking.rake import rake
from discreet.methods.hypercube.rounding import kernel
from discreet.methods.hypercube.rounding.fill import TableRounding
from discreet.methods.hypercube.rounding.tables import Levels, NestedGroupings, family_of, non_decomposable, shared
from discreet.post.cubes.margins import Floats, Margin, Problem

TOLERANCE = 1e-6  # sums closer than this to an integer count as that integer
LARGEST_TOTAL = 10.0**11  # up to which floating-point errors of sums are far below one half
CYCLES = 100  # of raking, where negative cells were set to 0

__all__ = ["IntegerCube", "non_decomposable", "round_cube"]


@dataclass(frozen=True, eq=False)
class IntegerCube:
    """A cube of non-negative integers, and its margins."""

    values: Int64s
    targets: list[Int64s]  # integer totals of each margin, which the cube meets
    largest_gap: int  # max |margin of the cube − target|, measured on this cube: 0
    problems: tuple[Problem, ...]


def round_cube(values: Floats, margins: Sequence[Margin], *, words: Words) -> IntegerCube:
    """Non-negative integers near a cube's values, whose margins are the cube's margins, each rounded down or up.

    If the margins are nested, every cell of a margin is the floor or the ceiling of its sum, without bias over random
    words. If not, this holds in nearly all cells, and exceptions are listed. Sums within the tolerance of an integer
    count as that integer. Negative cells are set to 0 and the rest is raked to the margins; negative sums are set to 0
    and listed.
    """
    if (problem := non_decomposable(margins)) is not None:
        raise ParameterError(problem.detail, where="controls", do="leave out one of them, or publish unrounded numbers")
    flat, seed = _checked(values, margins, words)
    shape = margins[0].shape if margins else np.shape(values)
    groupings = NestedGroupings.of(margins, shape)
    if isinstance(groupings, Problem):
        raise ParameterError(groupings.detail, where="controls", do="use nested groups")
    run = _Rounding(groupings, margins, flat, seed)
    for table, inner in family_of(groupings).items():
        run.round(table, inner)
    units = run.units[groupings.top]
    targets = [run.target(margin) for margin in margins]
    real = units.astype(np.float64)
    gaps = [np.abs(m.add_up(real) - t).max(initial=0) for m, t in zip(margins, targets, strict=True)]
    return IntegerCube(units.reshape(np.shape(values)), targets, int(max(gaps, default=0)), tuple(run.problems))


def _checked(values: Floats, margins: Sequence[Margin], words: Words) -> tuple[Floats, np.uint64]:
    flat = np.ascontiguousarray(values, np.float64).reshape(-1)
    if margins and len(flat) != prod(margins[0].shape):
        raise ParameterError("expected one value per cell of the margins' cube", where="values", do="pass all cells")
    if not np.isfinite(flat).all() or np.abs(flat).sum() > LARGEST_TOTAL:
        raise ParameterError(
            "values are not finite, or |values| add up to 10^11 or more", where="values", do="use larger units"
        )
    if words.dtype != np.uint64 or words.ndim != 1 or not len(words):
        raise ParameterError("expected uint64 words", where="words", do="pass at least one")
    seed = np.uint64(0)
    for word in words.tolist():
        seed = kernel.seeded(word, seed)
    return flat, seed


class _Rounding:
    """The state of rounding one cube: its real-valued tables, and the integer tables so far."""

    def __init__(self, groupings: NestedGroupings, margins: Sequence[Margin], x: Floats, seed: np.uint64) -> None:
        self.groupings, self.seed = groupings, seed
        self.declared = {groupings.levels(margin): margin for margin in reversed(margins)}
        self.real: dict[Levels, Floats] = {groupings.top: x}
        for table in reversed(family_of(groupings)):
            if table not in self.real:
                wider = [t for t in self.real if shared(t, table) == table]
                source = min(wider, key=lambda t: prod(groupings.sizes(t)))
                self.real[table] = groupings.margin(source, table).add_up(self.real[source])
        self.units: dict[Levels, Int64s] = {}
        self.problems: list[Problem] = []

    def round(self, table: Levels, inner: list[Levels]) -> None:
        """Rounds one table, given the tables within it."""
        margins = [self.groupings.margin(table, levels) for levels in inner]
        x = self._positive(table, inner, margins)
        self.seed = kernel.seeded(len(self.units), self.seed)
        if not inner:
            self.units[table] = self._total(x)
            return
        fill = TableRounding(x, margins, [self.units[levels] for levels in inner], TOLERANCE, self.seed)
        fill.run()
        if fill.deficits.any():
            fill.join(self.groupings, table, inner)
        fill.repair(self.groupings, table, inner)
        self.units[table] = fill.out
        if table in self.declared:
            slack = self._slack(x)
            far = (fill.out < np.floor(x + slack)) | (fill.out > np.ceil(x - slack))
            self._report("not adjacent", table, far, "rounded neither to the floor nor to the ceiling")

    def target(self, margin: Margin) -> Int64s:
        """The integer totals of a declared margin."""
        table = self.groupings.levels(margin)
        units, totals = self.units[table], np.zeros(margin.cells, np.int64)
        totals[self.groupings.numbers(margin, np.arange(len(units)))] = units
        return totals

    def _slack(self, x: Floats) -> Floats:
        return TOLERANCE + kernel.ROUNDING_ERROR * x

    def _total(self, x: Floats) -> Int64s:
        """⌊x⌋, or ⌈x⌉ with probability x − ⌊x⌋."""
        low = np.floor(x + self._slack(x))
        more = (x - low > self._slack(x)) & (kernel.uniform(np.uint64(0), self.seed) < x - low)
        return (low + more).astype(np.int64)

    def _positive(self, table: Levels, inner: list[Levels], margins: list[Margin]) -> Floats:
        """The table with negative values set to 0, raked to the sums of the tables within it."""
        low = self.real[table] < -TOLERANCE
        x: Floats = np.maximum(self.real[table], 0)
        if table in self.declared:
            self._report("negative", table, low, "negative and set to 0")
        if low.any() and inner:  # a table within this one has changed only if this one has a negative cell, too
            goals = [self.real[levels] for levels in inner]
            x = rake(x, margins, goals, tolerance=TOLERANCE, cycles=CYCLES).values
        self.real[table] = x
        return x

    def _report(self, kind: str, table: Levels, where: Flags, what: str) -> None:
        """Records how many cells of a declared margin have a problem, and the first of them."""
        if where.any():
            margin = self.declared[table]
            cell = int(self.groupings.numbers(margin, np.flatnonzero(where)[:1])[0])
            detail = f"{int(where.sum())} of {margin.cells} sums of cells are {what}"
            self.problems.append(Problem(kind, margin.name, cell, detail))
