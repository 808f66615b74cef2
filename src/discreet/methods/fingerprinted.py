"""Small tables that a key is bound to, read back as they were bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from discreet.engine import Engine
from discreet.engine.spans import CELL, Fingerprint, FingerprintedTable, Int64s
from discreet.errors import EngineError


def read_fingerprinted(engine: Engine, bound: FingerprintedTable, names: Sequence[str], where: str) -> list[Int64s]:
    """These columns of a table, one number a cell, zeros where it has no row; refused if it has changed."""
    batches = list(engine.batches(bound.table.order_by(CELL)))
    size = 1 + len(names)
    columns = [np.concatenate([_EMPTY, *(_numbers(batch, i) for batch in batches)]) for i in range(size)]
    for span, mark in zip(bound.spans, bound.fingerprints, strict=True):
        seen = Fingerprint()
        inside = (columns[0] >= span.first) & (columns[0] < span.end)
        seen.update(pa.RecordBatch.from_arrays([pa.array(c[inside]) for c in columns], names=[CELL, *names]))
        if seen.digest() != mark:
            raise EngineError("its source changed while it was read", where=where)
    found = [np.zeros(bound.spans.cells, np.int64) for _ in names]
    for values, column in zip(found, columns[1:], strict=True):
        values[columns[0]] = column
    return found


def _numbers(batch: pa.RecordBatch, place: int) -> Int64s:
    found: Int64s = batch.column(place).to_numpy(zero_copy_only=False)
    return found


_EMPTY: Int64s = np.empty(0, np.int64)
