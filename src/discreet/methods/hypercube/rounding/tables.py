"""Which margins of a cube can be rounded jointly: their nested groupings, intersections and junction tree. Proof:
controlled_rounding.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.post.cubes.margins import Axis, Margin, Problem
from discreet.post.cubes.overlap import by_place

Levels = tuple[int, ...]  # for each axis of the cube: 0 all codes together, 1 its coarsest groups, … its codes


def non_decomposable(margins: Sequence[Margin]) -> Problem | None:
    """Why these margins may not be jointly roundable, from the declaration alone; None if they are decomposable.

    Refused: groups of an axis that overlap without being nested, and margins without a junction tree (a cycle).
    """
    if not margins:
        return None
    groupings = NestedGroupings.of(margins)
    if isinstance(groupings, Problem):
        return groupings
    for inner in family_of(groupings).values():
        _, cycle = junction_tree(inner)
        if cycle:
            names = [groupings.name(inner[i]) for i in cycle]
            detail = f"{'; '.join(names)} form a cycle: there may be no cube of integers with these rounded margins"
            return Problem("cycle", names[0], 0, detail)
    return None


@dataclass(frozen=True, eq=False)
class NestedGroupings:
    """The nested groupings of every axis that margins use, and the tables by them."""

    shape: tuple[int, ...]
    by_axis: tuple[tuple[Numbers, ...], ...]
    names: dict[Levels, str]  # of the margins

    @classmethod
    def of(cls, margins: Sequence[Margin], shape: Sequence[int] = ()) -> NestedGroupings | Problem:
        shape = margins[0].shape if margins else tuple(shape)
        if any(margin.shape != shape for margin in margins):
            raise ParameterError("the margins are of several cubes", where="margins", do="pass margins of one cube")
        if 0 in shape:
            raise ParameterError("the cube has no cells", where="margins", do="declare at least one code per axis")
        groupings = [{bytes(8 * n): np.zeros(n, np.int64), np.arange(n).tobytes(): np.arange(n)} for n in shape]
        for margin in margins:
            for axis in by_place(margin):
                groups = _relabelled(axis.groups)
                groupings[axis.place][groups.tobytes()] = groups
        by_axis = tuple(
            tuple(sorted(levels.values(), key=lambda groups: int(groups.max(initial=0)))) for levels in groupings
        )
        for place, levels in enumerate(by_axis):
            for coarse, fine in pairwise(levels):
                if not (_parents(fine, coarse)[fine] == coarse).all():
                    names = [m.name for m in margins if any(a.place == place and not a.ungrouped for a in m.axes)]
                    detail = f"groups of axis {place} overlap without being nested: {'; '.join(names)}"
                    return Problem("groups", names[0], 0, detail)
        bare = cls(shape, by_axis, {})
        return cls(shape, by_axis, {bare.levels(margin): margin.name for margin in reversed(margins)})

    @property
    def top(self) -> Levels:
        return tuple(len(levels) - 1 for levels in self.by_axis)

    def levels(self, margin: Margin) -> Levels:
        """The level of each axis in a margin."""
        levels = [0] * len(self.shape)
        for axis in by_place(margin):
            groups = _relabelled(axis.groups).tobytes()
            levels[axis.place] = next(i for i, g in enumerate(self.by_axis[axis.place]) if g.tobytes() == groups)
        return tuple(levels)

    def name(self, table: Levels) -> str:
        """A margin's name; for an intersection, the names of two margins."""
        wider = [name for levels, name in self.names.items() if shared(levels, table) == table]
        return self.names.get(table) or f"the intersection of {' and '.join(wider[:2])}"

    def sizes(self, table: Levels) -> list[int]:
        return [int(levels[level].max(initial=0)) + 1 for levels, level in zip(self.by_axis, table, strict=True)]

    def coarser(self, place: int, fine: int, coarse: int) -> Numbers:
        """The coarse group of each fine one."""
        return _parents(self.by_axis[place][fine], self.by_axis[place][coarse])

    def margin(self, table: Levels, inner: Levels) -> Margin:
        """A table within another, as a margin of it."""
        axes = []
        for place, (fine, coarse) in enumerate(zip(table, inner, strict=True)):
            if coarse:
                groups = self.coarser(place, fine, coarse)
                axes.append(Axis(place, groups, int(groups.max()) + 1))
        return Margin("", tuple(self.sizes(table)), tuple(axes))

    def numbers(self, margin: Margin, cells: Numbers) -> Numbers:
        """The margin's own cell numbers of cells of its table."""
        table = self.levels(margin)
        axes = []
        for axis in margin.axes:
            _, first = np.unique(self.by_axis[axis.place][table[axis.place]], return_index=True)
            axes.append(Axis(axis.place, axis.groups[first], axis.size))
        return Margin("", tuple(self.sizes(table)), tuple(axes)).parents(cells)


def _parents(fine: Numbers, coarse: Numbers) -> Numbers:
    """The coarse group of (the last code of) each fine one."""
    groups: Numbers = np.zeros(int(fine.max(initial=0)) + 1, np.int64)
    groups[fine] = coarse
    return groups


def _relabelled(groups: Numbers) -> Numbers:
    """The same groups, numbered by first occurrence."""
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    relabelled: Numbers = np.argsort(np.argsort(first))[which].astype(np.int64)
    return relabelled


def shared(a: Levels, b: Levels) -> Levels:
    """The intersection: the coarser level on each axis."""
    return tuple(map(min, a, b))


def family_of(groupings: NestedGroupings) -> dict[Levels, list[Levels]]:
    """The margins, their intersections, the total and the cube, coarse first; each with the maximal tables within
    it."""
    tables = {*groupings.names, (0,) * len(groupings.shape)}
    while more := {shared(a, b) for a, b in combinations(tables, 2)} - tables:
        tables |= more
    family: dict[Levels, list[Levels]] = {}
    for table in sorted({*tables, groupings.top}, key=lambda levels: (sum(levels), levels)):
        within = [other for other in tables if other != table and shared(other, table) == other]
        family[table] = sorted(a for a in within if not any(a != b and shared(a, b) == a for b in within))
    return family


def junction_tree(tables: Sequence[Levels]) -> tuple[list[tuple[int, int]], list[int]]:
    """A junction tree as pairs (table, parent), the root first with itself; or else the tables that form a cycle.
    Found by removing ears, tables whose intersection with all others lies in one of them (Graham 1979; Yu & Ozsoyoglu
    1979)."""
    left = list(range(len(tables)))
    tree: list[tuple[int, int]] = []
    while len(left) > 1:
        ear = next(((i, j) for i in left for j in left if i != j and _is_ear(tables, left, i, j)), None)
        if ear is None:
            return [], left
        left.remove(ear[0])
        tree.append(ear)
    return [(i, i) for i in left] + tree[::-1], []


def _is_ear(tables: Sequence[Levels], left: Iterable[int], ear: int, neighbour: int) -> bool:
    others = tuple(map(max, *(tables[k] for k in left if k != ear), (0,) * len(tables[ear])))
    common = shared(tables[ear], others)
    return shared(common, tables[neighbour]) == common
