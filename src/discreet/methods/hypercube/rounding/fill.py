"""One table filled with whole numbers, given those of the tables within it. Proof: integers.md."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from discreet.arrays import Flags, Int64s
from discreet.domain import Numbers
from discreet.methods.hypercube.rounding import kernel
from discreet.methods.hypercube.rounding.tables import Ladder, Levels, ears, shared
from discreet.post.cubes.margins import Floats, Margin

EVERY = 2**52  # units: more than any cell has
TRIES, ROUNDS = 100, 3  # of swapping codes with a partner
JOIN, REPAIR, DRAW = 0, 1 << 31, 1 << 32  # where the purposes of words begin


class Fill:
    """One table being filled: its whole numbers so far, and what its margins lack."""

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
        self.lacks = np.concatenate(targets)
        self.out = np.zeros(len(x), np.int64)

    def run(self) -> None:
        """Floors, and then units one by one, to cells that have room on all margins."""
        frame = (self.sizes, self.first, self.shares, self.starts[:-1])
        rests = np.zeros(len(self.lacks))
        kernel.floors(self.x, frame, self.tolerance, self.lacks, self.out, rests)
        if len(self.shares) == 1 and self.lacks.any():
            begin, stretch = self._begin(rests)
            kernel.systematic(self.x, frame, self.tolerance, begin, stretch, self.lacks, self.out)
        for most in (1, 1, EVERY):
            if self.lacks.min(initial=0) < 0:
                order = np.flatnonzero(self.out)
                kernel.take(order, most, frame, self.lacks, self.out)
        if self.lacks.any():
            rows, keys = kernel.ranks(self.x, self.tolerance, self.seed, self.out)
            kernel.give(rows[np.argsort(keys)], frame, self.lacks, self.out)

    def _begin(self, rests: Floats) -> tuple[Floats, Floats]:
        """Where systematic sampling begins, and by how much rests are stretched, for it to give what is lacking.

        With F the sum of the rests and U uniform, ⌈F − U⌉ is ⌊F⌋ + 1 if U < F − ⌊F⌋, else ⌊F⌋: U given which it is."""
        u = kernel.uniforms(np.arange(len(rests)), self.seed)
        floor = np.floor(rests)
        over = rests - floor
        more, less = self.lacks == floor + 1, self.lacks == floor
        begin = np.where(more, u * over, np.where(less, over + u * (1 - over), u))
        stretch = np.where(more | less, 1.0, self.lacks / np.maximum(rests, 1e-300))
        return begin, stretch

    def join(self, ladder: Ladder, table: Levels, inner: list[Levels]) -> None:
        """Place what is still lacking: along the tree, units of neighbours that agree on what both share are joined;
        what no margin says is drawn."""
        lists = [self.lacks[low:high] for low, high in pairwise(self.starts.tolist())]
        count = int(lists[0].sum())
        codes = np.zeros((count, len(table)), np.int64)
        have = (0,) * len(table)
        for step, (i, j) in enumerate(ears(inner)[0]):
            common = shared(inner[i], inner[j]) if i != j else (0,) * len(table)
            cells = np.repeat(np.arange(len(lists[i])), lists[i])
            theirs = np.stack(np.unravel_index(cells, ladder.sizes(inner[i])), axis=1)
            ours = self._shuffled(_key(ladder, codes, have, common), JOIN + 2 * step)
            matched = theirs[self._shuffled(_key(ladder, theirs, inner[i], common), JOIN + 2 * step + 1)]
            for place, (known, new) in enumerate(zip(have, inner[i], strict=True)):
                if new > known:
                    codes[ours, place] = matched[:, place]
            have = tuple(map(max, have, inner[i]))
        for place, (known, fine) in enumerate(zip(have, table, strict=True)):
            if known < fine:
                codes[:, place] = self._drawn(ladder.coarser(place, fine, known), codes[:, place], place)
        numbers, more = np.unique(np.ravel_multi_index(codes.T, ladder.sizes(table)), return_counts=True)
        self.out[numbers] += more
        self.lacks[:] = 0

    def repair(self, ladder: Ladder, table: Levels, inner: list[Levels]) -> None:
        """Swap codes between units, of which no margin knows, while that brings cells back to floor or ceiling.

        Such swaps along the tree connect all cubes with these margins (Dobra 2003)."""
        for step, (common, swapped) in enumerate(_swaps(table, inner) * ROUNDS):
            bad = kernel.outliers(self.x, self.out, self.tolerance)
            if not len(bad):
                return
            margin = ladder.margin(table, common)
            raised = np.flatnonzero(self.out > self.x)
            key = margin.parents(raised)
            order = np.argsort(key, kind="stable")
            wanted = margin.parents(bad)
            low, high = (np.searchsorted(key, wanted, side, order).astype(np.int64) for side in ("left", "right"))
            seed = kernel.seeded(REPAIR + step, self.seed)
            pairs = (bad, raised[order], low, high, self.sizes, swapped)
            kernel.exchange(*pairs, self.x, self.tolerance, TRIES, seed, self.out)

    def _shuffled(self, key: Numbers, purpose: int) -> Numbers:
        """Places in the order of their keys, in an order of chance where these are equal."""
        u = kernel.uniforms(np.arange(len(key)), kernel.seeded(purpose, self.seed))
        return np.lexsort((u, key))

    def _drawn(self, groups: Numbers, known: Int64s, place: int) -> Numbers:
        """For each of these groups one of its members."""
        members = np.argsort(groups, kind="stable")
        size = np.bincount(groups)
        first = np.cumsum(size) - size
        u = kernel.uniforms(np.arange(len(known)), kernel.seeded(DRAW + place, self.seed))
        found: Numbers = members[first[known] + (u * size[known]).astype(np.int64)]
        return found


def _key(ladder: Ladder, codes: Int64s, levels: Levels, common: Levels) -> Numbers:
    """The cell of a coarser table that each row of codes lies in."""
    coarse = [ladder.coarser(p, levels[p], common[p])[codes[:, p]] for p in range(len(levels))]
    return np.ravel_multi_index(coarse, ladder.sizes(common))


def _swaps(table: Levels, inner: list[Levels]) -> list[tuple[Levels, Flags]]:
    """What two units have to share, and which axes they then may swap: for each edge of the tree the axes on one side
    of it, and each axis of which margins know groups at most."""
    tree, _ = ears(inner)
    found = []
    for edge, (i, j) in enumerate(tree[1:], 1):
        side = {i}  # and what hangs on it, further from the root
        for k, parent in tree[edge + 1 :]:
            side |= {k} if parent in side else set()
        near, far = _known(inner[k] for k, _ in tree if k not in side), _known(inner[k] for k in side)
        found.append((shared(inner[i], inner[j]), np.array([b > a for a, b in zip(near, far, strict=True)])))
    known = _known(inner)
    for place, (level, fine) in enumerate(zip(known, table, strict=True)):
        if level < fine:
            only = np.arange(len(table)) == place
            found.append((tuple(level if p == place else 0 for p in range(len(table))), only))
    return found


def _known(tables: Iterable[Levels]) -> Levels:
    """What any of these tables knows of each axis."""
    return tuple(max(levels) for levels in zip(*tables, strict=True))
