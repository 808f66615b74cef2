"""From batches of raw values to batches of derived columns: record by record, or counted by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.intake.derived import DerivedColumn
from discreet.engine.readers import Piece

N = "discreet_n"
DENSE = 1 << 21  # combinations that are counted in one array
PACKED = 2**62
FEW = 1000  # rows that are not dictionary-encoded


@dataclass(frozen=True)
class Intake:
    """The derived columns of a table. `counted`: equal rows are merged, with their number in a column `N`; rows may
    still repeat from batch to batch."""

    columns: tuple[DerivedColumn, ...]
    counted: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the source that are read."""
        return tuple(dict.fromkeys(name for column in self.columns for name in column.reads))

    @cached_property
    def schema(self) -> pa.Schema:
        own = [pa.field(column.name, column.type) for column in self.columns]
        return pa.schema(own + [pa.field(N, pa.int64())] * (self.counted or not own))

    @property
    def countable(self) -> bool:
        """Whether equal rows can be merged: all columns have few enough values to number their combinations."""
        return all(column.values is not None for column in self.columns) and prod(self._sizes) < PACKED

    def over(self, pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
        """The derived columns of some pieces of a source."""
        return self(batch for piece in pieces for batch in piece.read(self.reads, self._repeated))

    @cached_property
    def _repeated(self) -> frozenset[str]:
        """Columns that are only read as codes."""
        codes = {name for column in self.columns if column.repeats for name in column.reads}
        return frozenset(codes - {name for column in self.columns if not column.repeats for name in column.reads})

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        derived = (self._derive(batch) for batch in batches)
        return self._counts(derived) if self.counted or not self.columns else derived

    def _derive(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.columns:
            return batch
        raw = {name: _encoded(batch.column(i), name in self._repeated) for i, name in enumerate(self.reads)}
        arrays = [column.through([raw[name] for name in column.reads]) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(c.name, c.type) for c in self.columns]))

    # --- counting by value ------------------------------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """For each column its number of values, including null."""
        return tuple((column.values or 0) + 1 for column in self.columns)

    def _counts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        combinations = prod(self._sizes)
        if combinations > DENSE:
            for batch in batches:
                yield self._unpacked(*np.unique(self._packed(batch), return_counts=True))
            return
        total = np.zeros(combinations, np.int64)
        for batch in batches:
            total += np.bincount(self._packed(batch), minlength=combinations)
        occupied = np.flatnonzero(total)
        yield self._unpacked(occupied, total[occupied])

    def _packed(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """One number for each combination of values; null comes last."""
        combinations = np.zeros(batch.num_rows, np.int64)
        for i, size in enumerate(self._sizes):
            own = batch.column(i)
            numbers = own.cast(pa.int32()) if pa.types.is_boolean(own.type) else own
            combinations *= size
            combinations += (numbers.fill_null(size - 1) if numbers.null_count else numbers).to_numpy(
                zero_copy_only=False
            )
        return combinations

    def _unpacked(self, combinations: NDArray[np.int64], counts: NDArray[np.int64]) -> pa.RecordBatch:
        arrays: list[pa.Array] = []
        for column, size in reversed(list(zip(self.columns, self._sizes, strict=True))):
            own = combinations % size
            arrays.append(pa.array(own, mask=own == size - 1).cast(column.type))
            combinations = combinations // size
        return pa.RecordBatch.from_arrays([*reversed(arrays), pa.array(counts)], schema=self.schema)


def _encoded(values: pa.Array, repeated: bool) -> pa.Array:
    """Dictionary-encode codes, so that each is looked up once. Not floats: a dictionary treats −0 as 0."""
    plain = pa.types.is_large_string(values.type) or pa.types.is_string(values.type) or pa.types.is_integer(values.type)
    return values.dictionary_encode() if repeated and plain and len(values) > FEW else values
