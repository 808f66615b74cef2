"""Whole, non-negative cubes with the margins of a calibrated one, rounded to whole numbers too. Proof: integers.md.

Tables are rounded from the coarsest, the total, to the finest, the cube, each given the tables within it. A pure
function of protected numbers and public words, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.methods.hypercube.raking.rake import rake
from discreet.methods.hypercube.rounding import kernel
from discreet.methods.hypercube.rounding.fill import Fill
from discreet.methods.hypercube.rounding.tables import Ladder, Levels, decomposable, family_of, shared
from discreet.post.cubes.margins import Floats, Margin, Problem

Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

TOLERANCE = 1e-6  # a sum that is this near to a whole number is taken for it
LARGEST_TOTAL = 10.0**11  # up to which the rounding errors of sums are far from one half
CYCLES = 100  # of raking, where negative cells have to be made good

__all__ = ["Whole", "decomposable", "whole"]


@dataclass(frozen=True, eq=False)
class Whole:
    """A cube of whole numbers ≥ 0, and its margins.

    In the sparse form cells that were not listed can have become 1: `cells` are those of `values`.
    """

    values: Int64s
    cells: Numbers | None
    targets: list[Int64s]  # of each margin, which the cube meets
    largest_gap: int  # max |margin of the cube − target|: 0, as measured on this very cube
    problems: tuple[Problem, ...]


def whole(
    values: Floats,
    margins: Sequence[Margin],
    *,
    words: Words,
    cells: Numbers | None = None,
    tolerance: float = TOLERANCE,
) -> Whole:
    """Whole numbers ≥ 0 near a cube's, whose margins are the cube's own, rounded down or up.

    The cells of a margin are at the floor or the ceiling of their sums, and these are their means over all words, if
    the margins within it lie within each other; if not, nearly always, and what is neither is named. A sum within the
    tolerance of a whole number is that number. Negative cells become 0 and the rest is raked to the margins; negative
    sums become 0 and are named.
    """
    if (problem := decomposable(margins)) is not None:
        raise ParameterError(problem.detail, where="controls", do="leave out one of them, or publish real numbers")
    flat, seed = _checked(values, margins, words, cells)
    shape = margins[0].shape if margins else np.shape(values)
    ladder = Ladder.of(margins, shape)
    if isinstance(ladder, Problem):
        raise ParameterError(ladder.detail, where="controls", do="nest them")
    run = _Run(ladder, margins, flat, cells, tolerance, seed)
    for table, inner in family_of(ladder).items():
        run.round(table, inner)
    units = run.units[ladder.top]
    targets = [run.target(margin) for margin in margins]
    real = units.astype(np.float64)
    gaps = [np.abs(m.add_up(real, run.cells) - t).max(initial=0) for m, t in zip(margins, targets, strict=True)]
    shaped = units.reshape(np.shape(values)) if cells is None else units
    return Whole(shaped, run.cells, targets, int(max(gaps, default=0)), tuple(run.problems))


def _checked(
    values: Floats, margins: Sequence[Margin], words: Words, cells: Numbers | None
) -> tuple[Floats, np.uint64]:
    flat = np.ascontiguousarray(values, np.float64).reshape(-1)
    size = prod(margins[0].shape) if margins else len(flat)
    if cells is None and len(flat) != size:
        raise ParameterError(
            "not a value for each cell of the margins' cube", where="values", do="give all, or `cells`"
        )
    if cells is not None:
        if not margins:
            raise ParameterError("a sparse cube of unknown shape", where="margins", do="give the total as a margin")
        inside = not len(cells) or (cells[0] >= 0 and cells[-1] < size and (np.diff(cells) > 0).all())
        if cells.shape != flat.shape or not inside:
            raise ParameterError("not ascending numbers of cells, one a value", where="cells", do="sort them")
    if not np.isfinite(flat).all() or np.abs(flat).sum() > LARGEST_TOTAL:
        raise ParameterError("not finite numbers of a total below 10^11", where="values", do="count in larger units")
    if words.dtype != np.uint64 or words.ndim != 1 or not len(words):
        raise ParameterError("no uint64 words", where="words", do="give at least one")
    seed = np.uint64(0)
    for word in words.tolist():
        seed = kernel.seeded(word, seed)
    return flat, seed


class _Run:
    """The rounding of one cube: real tables, and whole ones as far as it has come."""

    def __init__(
        self,
        ladder: Ladder,
        margins: Sequence[Margin],
        x: Floats,
        cells: Numbers | None,
        tolerance: float,
        seed: np.uint64,
    ) -> None:
        self.ladder, self.cells, self.tolerance, self.seed = ladder, cells, tolerance, seed
        self.declared = {ladder.levels(margin): margin for margin in reversed(margins)}
        self.real: dict[Levels, Floats] = {ladder.top: x}
        for table in reversed(family_of(ladder)):
            if table not in self.real:
                wider = [t for t in self.real if shared(t, table) == table]
                source = min(wider, key=lambda t: prod(ladder.sizes(t)))
                numbers = cells if source == ladder.top else None
                self.real[table] = ladder.margin(source, table).add_up(self.real[source], numbers)
        self.units: dict[Levels, Int64s] = {}
        self.problems: list[Problem] = []

    def round(self, table: Levels, inner: list[Levels]) -> None:
        """One table, given those within it."""
        margins = [self.ladder.margin(table, levels) for levels in inner]
        cells = self.cells if table == self.ladder.top else None
        x = self._positive(table, inner, margins, cells)
        self.seed = kernel.seeded(len(self.units), self.seed)
        if not inner:
            self.units[table] = self._total(x)
            return
        fill = Fill(x, cells, margins, [self.units[levels] for levels in inner], self.tolerance, self.seed)
        fill.run()
        if fill.lacks.any():
            fill.join(self.ladder, table, inner)
        fill.repair(self.ladder, table, inner)
        self.units[table] = fill.out
        if cells is not None:
            self.cells = fill.cells
        if table in self.declared:
            slack = self._slack(fill.x)
            far = (fill.out < np.floor(fill.x + slack)) | (fill.out > np.ceil(fill.x - slack))
            self._name("beyond", table, far, "neither rounded down nor up")

    def target(self, margin: Margin) -> Int64s:
        """A declared margin's whole numbers."""
        table = self.ladder.levels(margin)
        units, at = self.units[table], np.arange(len(self.units[table]))
        if table == self.ladder.top and self.cells is not None:
            at = self.cells
        found = np.zeros(margin.cells, np.int64)
        found[self.ladder.numbers(margin, at)] = units
        return found

    def _slack(self, x: Floats) -> Floats:
        return self.tolerance + kernel.WHOLE * x

    def _total(self, x: Floats) -> Int64s:
        """⌊x⌋, and one more with the chance x − ⌊x⌋."""
        low = np.floor(x + self._slack(x))
        more = (x - low > self._slack(x)) & (kernel.uniform(np.uint64(0), self.seed) < x - low)
        return (low + more).astype(np.int64)

    def _positive(self, table: Levels, inner: list[Levels], margins: list[Margin], cells: Numbers | None) -> Floats:
        """The table without negative numbers, and with the sums of those within it."""
        low = self.real[table] < -self.tolerance
        x: Floats = np.maximum(self.real[table], 0)
        if table in self.declared:
            self._name("negative", table, low, "negative, and become 0")
        if low.any() and inner:  # a table within this one has changed only if this one has a negative number, too
            goals = [self.real[levels] for levels in inner]
            x = rake(x, margins, goals, tolerance=self.tolerance, cycles=CYCLES, cells=cells).values
        self.real[table] = x
        return x

    def _name(self, kind: str, table: Levels, where: NDArray[np.bool_], what: str) -> None:
        """Say of a declared margin how many of its cells are so, and which is the first."""
        if where.any():
            first = np.flatnonzero(where)[:1]
            if table == self.ladder.top and self.cells is not None:
                first = self.cells[first]
            margin = self.declared[table]
            cell = int(self.ladder.numbers(margin, first)[0])
            detail = f"{int(where.sum())} of {margin.cells} sums of cells are {what}"
            self.problems.append(Problem(kind, margin.name, cell, detail))
