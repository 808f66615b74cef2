"""What a table's confidential rows are, in 32 bytes a span: the key is bound to it, and it is looked at again where
the noise is drawn. It stays inside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.engine.spans import Span, Spans
from discreet.errors import EngineError

if TYPE_CHECKING:
    import ibis

    from discreet.engine import Engine
    from discreet.noise.stream import Stream


class Fingerprint:
    """SHA-256 over rows of numbers, however they are split into batches: one hash a column, then one of those."""

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
        """The same batches, looked at as they pass."""
        for batch in batches:
            self.update(batch)
            yield batch

    def digest(self) -> bytes:
        return hashlib.sha256(b"".join(hasher.digest() for hasher in self._columns)).digest()


def _bytes(column: pa.Array) -> bytes:
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise EngineError("a table for a kernel has whole or real numbers in every row", where=f"type {column.type}")
    values = column.to_numpy(zero_copy_only=False)
    return bytes(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).data)


@dataclass(frozen=True)
class FingerprintKernel:
    """One row a span: its number and its fingerprint."""

    schema = pa.schema([("span", pa.int64()), ("fingerprint", pa.binary())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        found = Fingerprint()
        for batch in rows:
            found.update(batch)
        yield pa.RecordBatch.from_arrays([[span.number], [found.digest()]], schema=self.schema)


@dataclass(frozen=True)
class Bound:
    """A table whose key is bound to these fingerprints, one a span."""

    table: ibis.Table
    spans: Spans
    fingerprints: tuple[bytes, ...]


def bound(engine: Engine, table: ibis.Table, spans: Spans) -> Bound:
    """Look at every row before a key is bound to them."""
    return Bound(table, spans, tuple(fingerprints(engine, table, spans)))


def fingerprints(engine: Engine, table: ibis.Table, spans: Spans) -> list[bytes]:
    """The fingerprint of every span of a table, in order."""
    rows = [row for batch in engine.gather(table, spans, FingerprintKernel()) for row in batch.to_pylist()]
    return [row["fingerprint"] for row in sorted(rows, key=lambda row: int(row["span"]))]
