"""Rounding of one table to integers, given those of the tables within it. Proof: controlled_rounding.md."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from discreet.arrays import Flags, Int64s
from discreet.domain import Numbers
from discreet.methods.hypercube.rounding import kernel
from discreet.methods.hypercube.rounding.tables import Levels, NestedGroupings, junction_tree, shared
from discreet.post.cubes.margins import Floats, Margin

EVERY = 2**52  # more units than any cell has
TRIES, ROUNDS = 100, 3  # partners per cell for swaps, and passes
JOIN, REPAIR, DRAW = 0, 1 << 31, 1 << 32  # first word of each purpose


class TableRounding:
    """The state of rounding one table: its integers so far, and the deficits of its margins."""

    def __init__(
        self, x: Floats, margins: list[Margin], targets: list[Int64s], tolerance: float, seed: np.uint64
    ) -> None:
        self.x, self.tolerance, self.seed = x, tolerance, seed
        shape = margins[0].shape
        self.sizes = np.array(shape, np.int64)
        self.first = np.cumsum(self.sizes) - self.sizes
        self.shares = np.zeros((len(margins), int(self.sizes.sum())), np.int64)
        for row, margin in zip(self.shares, margins, strict=True):
            for place, share in margin.steps():
                row[self.first[place] : self.first[place] + shape[place]] += share
        self.starts = np.cumsum([0, *(len(units) for units in targets)])
        self.deficits = np.concatenate(targets)
        self.out = np.zeros(len(x), np.int64)

    def run(self) -> None:
        """Rounds down, then adds units one by one to cells that have a deficit on all margins."""
        frame = (self.sizes, self.first, self.shares, self.starts[:-1])
        rests = np.zeros(len(self.deficits))
        kernel.floors(self.x, frame, self.tolerance, self.deficits, self.out, rests)
        if len(self.shares) == 1 and self.deficits.any():
            begin, stretch = self._begin(rests)
            kernel.systematic(self.x, frame, self.tolerance, begin, stretch, self.deficits, self.out)
        for most in (1, 1, EVERY):
            if self.deficits.min(initial=0) < 0:
                order = np.flatnonzero(self.out)
                kernel.take(order, most, frame, self.deficits, self.out)
        if self.deficits.any():
            rows, keys = kernel.ranks(self.x, self.tolerance, self.seed, self.out)
            kernel.give(rows[np.argsort(keys)], frame, self.deficits, self.out)

    def _begin(self, rests: Floats) -> tuple[Floats, Floats]:
        """The start U of systematic sampling, and the factor of the fractional parts, so that it fills the deficits.

        With F the sum of the fractional parts and U uniform, ⌈F − U⌉ is ⌊F⌋ + 1 if U < F − ⌊F⌋, else ⌊F⌋: U is drawn
        conditionally on which of these the deficit is."""
        u = kernel.uniforms(np.arange(len(rests)), self.seed)
        floor = np.floor(rests)
        over = rests - floor
        more, less = self.deficits == floor + 1, self.deficits == floor
        begin = np.where(more, u * over, np.where(less, over + u * (1 - over), u))
        stretch = np.where(more | less, 1.0, self.deficits / np.maximum(rests, 1e-300))
        return begin, stretch

    def join(self, groupings: NestedGroupings, table: Levels, inner: list[Levels]) -> None:
        """Fills the remaining deficits: along the junction tree, units of neighbouring margins with equal shared codes
        are matched; codes that no margin determines are sampled."""
        lists = [self.deficits[low:high] for low, high in pairwise(self.starts.tolist())]
        count = int(lists[0].sum())
        codes = np.zeros((count, len(table)), np.int64)
        have = (0,) * len(table)
        for step, (i, j) in enumerate(junction_tree(inner)[0]):
            common = shared(inner[i], inner[j]) if i != j else (0,) * len(table)
            cells = np.repeat(np.arange(len(lists[i])), lists[i])
            theirs = np.stack(np.unravel_index(cells, groupings.sizes(inner[i])), axis=1)
            ours = self._shuffled(_key(groupings, codes, have, common), JOIN + 2 * step)
            matched = theirs[self._shuffled(_key(groupings, theirs, inner[i], common), JOIN + 2 * step + 1)]
            for place, (known, new) in enumerate(zip(have, inner[i], strict=True)):
                if new > known:
                    codes[ours, place] = matched[:, place]
            have = tuple(map(max, have, inner[i]))
        for place, (known, fine) in enumerate(zip(have, table, strict=True)):
            if known < fine:
                codes[:, place] = self._sampled(groupings.coarser(place, fine, known), codes[:, place], place)
        numbers, more = np.unique(np.ravel_multi_index(codes.T, groupings.sizes(table)), return_counts=True)
        self.out[numbers] += more
        self.deficits[:] = 0

    def repair(self, groupings: NestedGroupings, table: Levels, inner: list[Levels]) -> None:
        """Swaps codes between units, which leaves all margins unchanged, while that brings cells back to floor or
        ceiling. Such swaps along the tree connect all tables with these margins (Dobra 2003)."""
        for step, (common, swapped) in enumerate(_swaps(table, inner) * ROUNDS):
            bad = kernel.outliers(self.x, self.out, self.tolerance)
            if not len(bad):
                return
            margin = groupings.margin(table, common)
            raised = np.flatnonzero(self.out > self.x)
            key = margin.parents(raised)
            order = np.argsort(key, kind="stable")
            parents = margin.parents(bad)
            low, high = (np.searchsorted(key, parents, side, order).astype(np.int64) for side in ("left", "right"))
            seed = kernel.seeded(REPAIR + step, self.seed)
            pairs = (bad, raised[order], low, high, self.sizes, swapped)
            kernel.exchange(*pairs, self.x, self.tolerance, TRIES, seed, self.out)

    def _shuffled(self, key: Numbers, purpose: int) -> Numbers:
        """Positions sorted by key, in random order where keys are equal."""
        u = kernel.uniforms(np.arange(len(key)), kernel.seeded(purpose, self.seed))
        return np.lexsort((u, key))

    def _sampled(self, groups: Numbers, known: Int64s, place: int) -> Numbers:
        """A random member of each of these groups."""
        members = np.argsort(groups, kind="stable")
        size = np.bincount(groups)
        first = np.cumsum(size) - size
        u = kernel.uniforms(np.arange(len(known)), kernel.seeded(DRAW + place, self.seed))
        sampled: Numbers = members[first[known] + (u * size[known]).astype(np.int64)]
        return sampled


def _key(groupings: NestedGroupings, codes: Int64s, levels: Levels, common: Levels) -> Numbers:
    """The cell of a coarser table for each row of codes."""
    coarse = [groupings.coarser(p, levels[p], common[p])[codes[:, p]] for p in range(len(levels))]
    return np.ravel_multi_index(coarse, groupings.sizes(common))


def _swaps(table: Levels, inner: list[Levels]) -> list[tuple[Levels, Flags]]:
    """The codes that two units must share, and the axes that they may then swap: for each edge of the tree the axes on
    one side of it, and each axis that margins have in groups at most."""
    tree, _ = junction_tree(inner)
    swaps = []
    for edge, (i, j) in enumerate(tree[1:], 1):
        side = {i}  # with its descendants
        for k, parent in tree[edge + 1 :]:
            side |= {k} if parent in side else set()
        near, far = _known(inner[k] for k, _ in tree if k not in side), _known(inner[k] for k in side)
        swaps.append((shared(inner[i], inner[j]), np.array([b > a for a, b in zip(near, far, strict=True)])))
    known = _known(inner)
    for place, (level, fine) in enumerate(zip(known, table, strict=True)):
        if level < fine:
            only = np.arange(len(table)) == place
            swaps.append((tuple(level if p == place else 0 for p in range(len(table))), only))
    return swaps


def _known(tables: Iterable[Levels]) -> Levels:
    """The finest level of each axis in any of these tables."""
    return tuple(max(levels) for levels in zip(*tables, strict=True))
