"""Whole, non-negative cubes with the margins of a calibrated one, rounded to whole numbers too. Proof: integers.md.

Tables are rounded from the coarsest, the total, to the finest, the cube, each given the tables within it. A pure
function of protected numbers and public words, so it costs nothing.
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

TOLERANCE = 1e-6  # a sum that is this near to a whole number is taken for it
LARGEST_TOTAL = 10.0**11  # up to which the rounding errors of sums are far from one half
CYCLES = 100  # of raking, where negative cells have to be made good

__all__ = ["IntegerCube", "non_decomposable", "round_cube"]


@dataclass(frozen=True, eq=False)
class IntegerCube:
    """A cube of whole numbers ≥ 0, and its margins."""

    values: Int64s
    targets: list[Int64s]  # of each margin, which the cube meets
    largest_gap: int  # max |margin of the cube − target|: 0, as measured on this very cube
    problems: tuple[Problem, ...]


def round_cube(values: Floats, margins: Sequence[Margin], *, words: Words) -> IntegerCube:
    """Whole numbers ≥ 0 near a cube's, whose margins are the cube's own, rounded down or up.

    The cells of a margin are at the floor or the ceiling of their sums, and these are their means over all words, if
    the margins within it lie within each other; if not, nearly always, and what is neither is named. A sum within the
    tolerance of a whole number is that number. Negative cells become 0 and the rest is raked to the margins; negative
    sums become 0 and are named.
    """
    if (problem := non_decomposable(margins)) is not None:
        raise ParameterError(problem.detail, where="controls", do="leave out one of them, or publish real numbers")
    flat, seed = _checked(values, margins, words)
    shape = margins[0].shape if margins else np.shape(values)
    groupings = NestedGroupings.of(margins, shape)
    if isinstance(groupings, Problem):
        raise ParameterError(groupings.detail, where="controls", do="nest them")
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
        raise ParameterError("not a value for each cell of the margins' cube", where="values", do="give all")
    if not np.isfinite(flat).all() or np.abs(flat).sum() > LARGEST_TOTAL:
        raise ParameterError("not finite numbers of a total below 10^11", where="values", do="count in larger units")
    if words.dtype != np.uint64 or words.ndim != 1 or not len(words):
        raise ParameterError("no uint64 words", where="words", do="give at least one")
    seed = np.uint64(0)
    for word in words.tolist():
        seed = kernel.seeded(word, seed)
    return flat, seed


class _Rounding:
    """The rounding of one cube: real tables, and whole ones as far as it has come."""

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
        """One table, given those within it."""
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
            self._name("beyond", table, far, "neither rounded down nor up")

    def target(self, margin: Margin) -> Int64s:
        """A declared margin's whole numbers."""
        table = self.groupings.levels(margin)
        units, found = self.units[table], np.zeros(margin.cells, np.int64)
        found[self.groupings.numbers(margin, np.arange(len(units)))] = units
        return found

    def _slack(self, x: Floats) -> Floats:
        return TOLERANCE + kernel.ROUNDING_ERROR * x

    def _total(self, x: Floats) -> Int64s:
        """⌊x⌋, and one more with the chance x − ⌊x⌋."""
        low = np.floor(x + self._slack(x))
        more = (x - low > self._slack(x)) & (kernel.uniform(np.uint64(0), self.seed) < x - low)
        return (low + more).astype(np.int64)

    def _positive(self, table: Levels, inner: list[Levels], margins: list[Margin]) -> Floats:
        """The table without negative numbers, and with the sums of those within it."""
        low = self.real[table] < -TOLERANCE
        x: Floats = np.maximum(self.real[table], 0)
        if table in self.declared:
            self._name("negative", table, low, "negative, and become 0")
        if low.any() and inner:  # a table within this one has changed only if this one has a negative number, too
            goals = [self.real[levels] for levels in inner]
            x = rake(x, margins, goals, tolerance=TOLERANCE, cycles=CYCLES).values
        self.real[table] = x
        return x

    def _name(self, kind: str, table: Levels, where: Flags, what: str) -> None:
        """Say of a declared margin how many of its cells are so, and which is the first."""
        if where.any():
            margin = self.declared[table]
            cell = int(self.groupings.numbers(margin, np.flatnonzero(where)[:1])[0])
            detail = f"{int(where.sum())} of {margin.cells} sums of cells are {what}"
            self.problems.append(Problem(kind, margin.name, cell, detail))
