"""Reads small tables that the release key is bound to, checking their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from discreet.engine import Engine
from discreet.engine.spans import CELL, Fingerprint, FingerprintedTable, Int64s
from discreet.errors import EngineError


def read_fingerprinted(
    engine: Engine, fingerprinted: FingerprintedTable, names: Sequence[str], where: str
) -> list[Int64s]:
    """These columns of a table, one number per cell, 0 where it has no row; refused if a fingerprint differs."""
    batches = list(engine.batches(fingerprinted.table.order_by(CELL)))
    size = 1 + len(names)
    columns = [np.concatenate([_EMPTY, *(_numbers(batch, i) for batch in batches)]) for i in range(size)]
    for span, expected in zip(fingerprinted.spans, fingerprinted.fingerprints, strict=True):
        fingerprint = Fingerprint()
        inside = (columns[0] >= span.first) & (columns[0] < span.end)
        fingerprint.update(pa.RecordBatch.from_arrays([pa.array(c[inside]) for c in columns], names=[CELL, *names]))
        if fingerprint.digest() != expected:
            raise EngineError("its source changed while it was read", where=where)
    tables = [np.zeros(fingerprinted.spans.cells, np.int64) for _ in names]
    for values, column in zip(tables, columns[1:], strict=True):
        values[columns[0]] = column
    return tables


def _numbers(batch: pa.RecordBatch, place: int) -> Int64s:
    numbers: Int64s = batch.column(place).to_numpy(zero_copy_only=False)
    return numbers


_EMPTY: Int64s = np.empty(0, np.int64)
