"""Occupied cells of a table, streamed in cell order, and dense or sparse ranges made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import ibis

    from discreet.engine import Engine

Int64s = NDArray[np.int64]
SMALL = 4  # batches that may stay in memory


class Cells:
    """Cell numbers and counts on an engine; read as often as needed, a small table from the engine only once."""

    def __init__(self, engine: Engine, table: ibis.Table) -> None:
        self._engine, self._table = engine, table
        self._small: list[tuple[Int64s, Int64s]] | None = None

    def pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Batches of (cell, n), ascending."""
        if self._small is not None:
            yield from self._small
            return
        seen: list[tuple[Int64s, Int64s]] | None = []
        for batch in self._engine.batches(self._table):
            cells, counts = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            yield cells, counts
            seen = [*seen, (cells, counts)] if seen is not None and len(seen) < SMALL else None
        self._small = seen

    def digest(self) -> bytes:
        """SHA-256 over all (cell, n), however they are split into batches."""
        digest = hashlib.sha256()
        for cells, counts in self.pairs():
            digest.update(np.stack([cells, counts], axis=1).astype("<i8").tobytes())
        return digest.digest()

    def ranges(self, total: int, size: int) -> Iterator[tuple[int, int, Int64s, Int64s]]:
        """Cut 0 … total into ranges of `size` cells: (first, n, occupied cells in it, their counts)."""
        source = self.pairs()
        cells, counts = _EMPTY, _EMPTY
        for first in range(0, total, size):
            end = min(first + size, total)
            while cells.size == 0 or cells[-1] < end:
                more = next(source, None)
                if more is None:
                    break
                cells, counts = np.concatenate([cells, more[0]]), np.concatenate([counts, more[1]])
            cut = int(np.searchsorted(cells, end))
            yield first, end - first, cells[:cut], counts[:cut]
            cells, counts = cells[cut:], counts[cut:]


_EMPTY: Int64s = np.empty(0, np.int64)


def dense(first: int, n: int, cells: Int64s, counts: Int64s) -> Int64s:
    """All n counts of a range, zeros included."""
    out = np.zeros(n, np.int64)
    out[cells - first] = counts
    return out


def merge(cells: Int64s, counts: Int64s, other: Int64s, noise: Int64s) -> tuple[Int64s, Int64s]:
    """The sum of two sparse vectors, without its zeros, ascending."""
    union, place = np.unique(np.concatenate([cells, other]), return_inverse=True)
    total = np.zeros(union.size, np.int64)
    np.add.at(total, place, np.concatenate([counts, noise]))
    kept = total != 0
    return union[kept], total[kept]
