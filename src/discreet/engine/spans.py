"""Spans of cells: the units of work that an engine distributes, repeats after a failure and writes.

The partition into spans depends on the domain alone, so it is public, and the same on every engine. The SHA-256
fingerprint of a span's confidential rows is bound to the release key, and verified again where the noise is drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import EngineError

if TYPE_CHECKING:
    import ibis

    from discreet.engine import Engine
    from discreet.noise.stream import Stream

CELL = "cell"
Int64s = NDArray[np.int64]
_EMPTY: Int64s = np.empty(0, np.int64)
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """The default progress callback: reports nothing."""


@dataclass(frozen=True)
class Span:
    """Cells first … end − 1 of a table."""

    number: int
    first: int
    cells: int

    @property
    def end(self) -> int:
        return self.first + self.cells


@dataclass(frozen=True)
class Spans:
    """Cells 0 … cells − 1 in spans of `size`; a table without cells is one empty span."""

    cells: int
    size: int

    def __len__(self) -> int:
        return max(-(-self.cells // self.size), 1)

    def __getitem__(self, number: int) -> Span:
        number = range(len(self))[number]
        first = number * self.size
        return Span(number, first, min(self.size, self.cells - first))

    def __iter__(self) -> Iterator[Span]:
        return (self[number] for number in range(len(self)))


class Kernel(Protocol):
    """A pure function of a span's rows, in cell order, and of the noise of its cells.

    It may be pickled and sent to a worker, run twice, or concurrently with itself: it holds public parameters only,
    and returns the same batches each time.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of what it returns."""

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        """The results for one span. `rows` has the column `cell` and may be empty."""


class Ascending:
    """Batches in cell order, read up to one limit after another."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def until(self, end: int) -> Iterator[pa.RecordBatch]:
        """The unread rows of cells before `end`."""
        while (batch := self._rest if self._rest is not None else next(self._batches, None)) is not None:
            cut = int(np.searchsorted(cells_of(batch), end))
            self._rest = batch.slice(cut) if cut < batch.num_rows else None
            if cut:
                yield batch.slice(0, cut)
            if self._rest is not None:
                return


def cells_of(batch: pa.RecordBatch) -> Int64s:
    """The cell numbers of a batch."""
    cells: Int64s = batch.column(CELL).to_numpy(zero_copy_only=False)
    return cells


class Fingerprint:
    """SHA-256 of a table of numbers, independent of batch borders: a hash per column, then the hash of these."""

    def __init__(self) -> None:
        self._columns: list[hashlib._Hash] = []

    def update(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:  # an engine may send empty batches or none
            return
        if not self._columns:
            self._columns = [hashlib.sha256(name.encode() + b"\0") for name in batch.schema.names]
        for hasher, column in zip(self._columns, batch.columns, strict=True):
            hasher.update(_bytes(column))

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, hashed as they pass."""
        for batch in batches:
            self.update(batch)
            yield batch

    def digest(self) -> bytes:
        return hashlib.sha256(b"".join(hasher.digest() for hasher in self._columns)).digest()


def _bytes(column: pa.Array) -> bytes:
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise EngineError(
            "a kernel's table must have integers or floating-point numbers without nulls", where=f"type {column.type}"
        )
    values = column.to_numpy(zero_copy_only=False)
    return bytes(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).data)


@dataclass(frozen=True)
class FingerprintKernel:
    """One row per span: its number and its fingerprint."""

    schema = pa.schema([("span", pa.int64()), ("fingerprint", pa.binary())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        fingerprint = Fingerprint()
        for batch in rows:
            fingerprint.update(batch)
        yield pa.RecordBatch.from_arrays([[span.number], [fingerprint.digest()]], schema=self.schema)


@dataclass(frozen=True)
class FingerprintedTable:
    """A table and its fingerprints, one per span, to which the release key is bound."""

    table: ibis.Table
    spans: Spans
    fingerprints: tuple[bytes, ...]


def fingerprint_table(engine: Engine, table: ibis.Table, spans: Spans) -> FingerprintedTable:
    """Fingerprint every row, before the release key is bound to the fingerprints."""
    return FingerprintedTable(table, spans, tuple(fingerprints(engine, table, spans)))


def fingerprints(engine: Engine, table: ibis.Table, spans: Spans) -> list[bytes]:
    """The fingerprint of every span of a table, in order."""
    rows = [row for batch in engine.gather(table, spans, FingerprintKernel()) for row in batch.to_pylist()]
    return [row["fingerprint"] for row in sorted(rows, key=lambda row: int(row["span"]))]


def ranges(
    span: Span, rows: Iterator[pa.RecordBatch], size: int, numbers: int = 1
) -> Iterator[tuple[int, int, Int64s, list[Int64s]]]:
    """Split a span into ranges of `size` cells, to bound memory: (first, n, its occupied cells, their numbers)."""
    source = Ascending(rows)
    for first in range(span.first, span.end, size):
        end = min(first + size, span.end)
        batches = [[c.to_numpy(zero_copy_only=False) for c in batch.columns] for batch in source.until(end)]
        columns = [np.concatenate(c) for c in zip(*batches, strict=True)] if batches else [_EMPTY] * (1 + numbers)
        yield first, end - first, columns[0], columns[1:]


def dense(first: int, n: int, cells: Int64s, counts: Int64s) -> Int64s:
    """All n counts of a range, zeros included."""
    out = np.zeros(n, np.int64)
    out[cells - first] = counts
    return out


def merge(cells: Int64s, counts: Int64s, other: Int64s, noise: Int64s) -> tuple[Int64s, Int64s]:
    """The sum of two sparse vectors: non-zero entries, ascending."""
    union, place = np.unique(np.concatenate([cells, other]), return_inverse=True)
    total = np.zeros(union.size, np.int64)
    np.add.at(total, place, np.concatenate([counts, noise]))
    nonzero = total != 0
    return union[nonzero], total[nonzero]
