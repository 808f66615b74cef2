"""The raking plan: margins in blocks, each raked in one small table of the cube. Rationale: rake.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.methods.hypercube.raking.kernel import ANY, ONE, RUN
from discreet.post.cubes.margins import Margin

Positions = NDArray[np.uint32]
Groups = tuple[Numbers, int]  # the group of each code of an axis, and how many groups there are
Groupings = dict[int, Groups]  # by axis of the cube, ascending
Part = tuple[list[Margin], Groupings]

SMALL, SHARE = 1 << 16, 32  # a block's table has at most 2^16 cells, and at most 1/32 of the cube's,
LEAST = 64  # but may always have 64
ROW = (16, 4096)  # cells of a row: enough to amortise the cost per row, few enough to stay in L1 cache


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive margins, and the table of the cube in which they are raked."""

    size: int  # cells of the table, which has rows of its own:
    width: int  # its cells over the axes within a row of the cube
    rows: Positions  # the table's row for each row of the cube
    steps: Positions  # and the position in it of each cell of the row
    kind: int  # whether these positions are all 0, are 0, 1, 2, …, or neither: ONE, RUN, ANY
    parents: Positions  # (margins, size): each margin's cell for each cell of the table
    starts: Positions  # offsets of the margins in the concatenated list of their cells
    begins: int  # offset of that list in the list of all blocks

    @property
    def targets(self) -> slice:
        """The slice of its margins' cells in the list of all margins' cells."""
        return slice(self.begins, self.begins + int(self.starts[-1]))


@dataclass(frozen=True, eq=False)
class RakingPlan:
    """A plan for raking cubes of one shape to these margins."""

    margins: tuple[Margin, ...]
    cells: int  # of the cube
    rows: int  # into which the cube is cut
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, margins: tuple[Margin, ...]) -> RakingPlan:
        """The plan for these margins."""
        shape = _shape(margins)
        parts = list(_parts(margins, prod(shape)))
        cut = _cut(shape, [groups for _, groups in parts])
        return cls(margins, prod(shape), prod(shape[:cut]), tuple(_blocks(parts, shape, cut)))


def _shape(margins: tuple[Margin, ...]) -> tuple[int, ...]:
    if not margins:
        raise ParameterError("no margins", where="margins", do="pass at least one")
    shape = margins[0].shape
    if not all(shape):
        raise ParameterError("an axis without codes", where="margins", do="leave it out")
    if any(margin.shape != shape for margin in margins):
        raise ParameterError("the margins are of different cubes", where="margins", do="pass margins of one cube")
    if any(margin.cells >= 2**32 for margin in margins):
        raise ParameterError("a margin has 2^32 cells or more", where="margins", do="use coarser margins")
    return shape


def _parts(margins: Sequence[Margin], cells: int) -> Iterator[Part]:
    """Groups consecutive margins for as long as one small table contains them all."""
    room = max(LEAST, min(SMALL, cells // SHARE))
    own: list[Margin] = []
    groups: Groupings = {}
    for margin in margins:
        wider = _finer(groups, margin)
        if own and prod(size for _, size in wider.values()) > room:
            yield own, groups
            own, wider = [], _finer({}, margin)
        own, groups = [*own, margin], wider
    yield own, groups


def _finer(groups: Groupings, margin: Margin) -> Groupings:
    """The coarsest common refinement of the given groups and the margin's, by axis."""
    refined = dict(groups)
    for axis in margin.axes:
        if axis.place not in refined:
            refined[axis.place] = _numbered(axis.groups)
            continue
        known, size = refined[axis.place]
        if size < len(known) and not np.array_equal(known, axis.groups):
            refined[axis.place] = _numbered(known * axis.size + axis.groups)
    return dict(sorted(refined.items()))


def _numbered(groups: Numbers) -> Groups:
    """Groups numbered without gaps; by code where every code is a group of its own."""
    distinct, own = np.unique(groups, return_inverse=True)
    if len(distinct) == len(groups):
        return np.arange(len(groups), dtype=np.int64), len(groups)
    return own.astype(np.int64), len(distinct)


def _cut(shape: tuple[int, ...], blocks: list[Groupings]) -> int:
    """The axis after which rows begin, chosen so that for most blocks a row maps to one cell or to a run of cells."""

    def awkward(cut: int) -> int:
        return sum(_awkward(shape, groups, cut) for groups in blocks)

    widths = [prod(shape[cut:]) for cut in range(len(shape) + 1)]
    usual = [cut for cut in range(len(shape)) if ROW[0] <= widths[cut] <= ROW[1]]
    if not usual:  # one long axis, or a very small cube
        usual = [max((cut for cut in range(len(shape)) if widths[cut] >= ROW[0]), default=0)]
    return min(usual, key=lambda cut: (awkward(cut), cut))


def _awkward(shape: tuple[int, ...], groups: Groupings, cut: int) -> bool:
    within = [place for place in groups if place >= cut]
    codes = all(groups[place][1] == shape[place] for place in within)
    return bool(within) and not (codes and len(within) == len(shape) - cut)


def _shares(shape: tuple[int, ...], groups: Groupings, cut: int) -> list[Positions]:
    """The contribution of each code of each axis to a block's row (before the cut) or to the position in it (after)."""
    shares = [np.zeros(n, np.uint32) for n in shape]
    for place, (own, _) in groups.items():
        inner = [size for other, (_, size) in groups.items() if other > place and (other >= cut) == (place >= cut)]
        shares[place] = (own * prod(inner)).astype(np.uint32)
    return shares


def _spread(shares: Iterable[Positions]) -> Positions:
    """The sums over all combinations of codes."""
    sums = np.zeros(1, np.uint32)
    for share in shares:
        sums = np.add.outer(sums, share).reshape(-1)
    return sums


def _blocks(parts: list[Part], shape: tuple[int, ...], cut: int) -> Iterator[Block]:
    begins = 0
    for margins, groups in parts:
        shares = _shares(shape, groups, cut)
        rows, steps = _spread(shares[:cut]), _spread(shares[cut:])
        width = prod(size for place, (_, size) in groups.items() if place >= cut)
        kind = ONE if width == 1 else RUN if np.array_equal(steps, np.arange(width)) else ANY
        parents = np.stack([_parents(margin, groups) for margin in margins])
        starts = np.cumsum([0, *(margin.cells for margin in margins)]).astype(np.uint32)
        yield Block(parents.shape[1], width, rows, steps, kind, parents, starts, begins)
        begins += int(starts[-1])


def _parents(margin: Margin, groups: Groupings) -> Positions:
    """The margin's cell for each cell of its block's table."""
    places = list(groups)
    shares = [np.zeros(size, np.uint32) for _, size in groups.values()]
    for place, share in margin.steps():
        own, size = groups[place]
        moved = np.zeros(size, np.uint32)
        moved[own] = share  # the same for all codes of a group
        shares[places.index(place)] = shares[places.index(place)] + moved
    return _spread(shares)
