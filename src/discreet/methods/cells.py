"""Occupied cells of a span: dense or sparse ranges made of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.spans import Ascending, Span

Int64s = NDArray[np.int64]


def ranges(
    span: Span, rows: Iterator[pa.RecordBatch], size: int, numbers: int = 1
) -> Iterator[tuple[int, int, Int64s, list[Int64s]]]:
    """Cut a span into ranges of `size` cells, to bound memory: (first, n, occupied cells in it, their numbers)."""
    source = Ascending(rows)
    for first in range(span.first, span.end, size):
        end = min(first + size, span.end)
        found = [[c.to_numpy(zero_copy_only=False) for c in batch.columns] for batch in source.until(end)]
        columns = [np.concatenate(c) for c in zip(*found, strict=True)] if found else [_EMPTY] * (1 + numbers)
        yield first, end - first, columns[0], columns[1:]


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
