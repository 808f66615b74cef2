"""The noise of a cube: in all cells, or in the exact sparse form, which visits only cells with non-zero noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.domain import Coarsening, Domain
from discreet.engine.spans import CELL, Int64s, Span, dense, ranges
from discreet.errors import GuaranteeError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.stream import Stream

RANGE = 1 << 18  # numbers in memory at a time
MIN_NOISY_SHARE = 2.0**-40  # lower bound on the share of noisy cells, for the size of ranges
CODES = pa.dictionary(pa.int32(), pa.string())
CellValues = tuple[Int64s, dict[str, Int64s]]  # cells, and their protected values by column


@dataclass(frozen=True)
class CubeNoise:
    """The noise of a cell's numbers. Totals have noise of their own, or that of the count times an average weight
    (Li & Krenzke 2020, §3.2), which has no privacy guarantee."""

    cells: int  # of the whole table
    count: DiscreteLaplace | None
    total: DiscreteLaplace | None = None
    averages: Int64s | None = field(default=None, repr=False)  # by stratum, in steps of the grid
    strata: Coarsening | None = None  # None: one average for all

    @property
    def reads(self) -> tuple[str, ...]:
        """The exact columns to which the noise is added."""
        return (*(["n"] if self.count is not None else []), *(["w"] if self.weighted else []))

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns."""
        return (*(["count"] if self.count is not None else []), *(["total"] if self.weighted else []))

    @property
    def weighted(self) -> bool:
        return self.total is not None or self.averages is not None

    def weight(self, cells: Int64s) -> Int64s:
        """The average weight of each cell, in steps of the grid."""
        if self.averages is None:
            return np.ones(len(cells), np.int64)
        return self.averages[np.zeros(len(cells), np.int64) if self.strata is None else self.strata.parents(cells)]

    def add(self, first: int, n: int, occupied: Int64s, exact: list[Int64s], stream: Stream) -> dict[str, Int64s]:
        """Protected values of all cells of a range. Cell i's count takes its noise from block i of the stream, its
        total from block D + i, where D is the number of cells."""
        values = dict(zip(self.columns, (dense(first, n, occupied, numbers) for numbers in exact), strict=True))
        if self.count is not None and self.averages is not None:
            drawn = self.count.draw(stream, first, n)
            values["count"] += drawn
            values["total"] += drawn * self.weight(np.arange(first, first + n, dtype=np.int64))
            return values
        if self.count is not None:
            self.count.add_to(values["count"], stream, first)
        if self.total is not None:
            self.total.add_to(values["total"], stream, self.cells + first)
        return values

    def sparse(self, first: int, n: int, occupied: Int64s, exact: list[Int64s], stream: Stream) -> CellValues:
        """The cells of a range whose protected values are not all zero. Only counts have noise of their own."""
        if self.count is None:
            raise GuaranteeError("a sparse cube needs counts", where="form: sparse", do="declare `epsilon`")
        moved, drawn = self.count.sparse(stream, first, n)
        cells = np.union1d(occupied, moved)
        noise = np.zeros(len(cells), np.int64)
        noise[np.searchsorted(cells, moved)] = drawn
        values = {}
        for name, numbers in zip(self.columns, exact, strict=True):
            values[name] = np.zeros(len(cells), np.int64)
            values[name][np.searchsorted(cells, occupied)] = numbers
            values[name] += noise * self.weight(cells) if name == "total" else noise
        nonzero = np.any([column != 0 for column in values.values()], axis=0)
        return cells[nonzero], {name: column[nonzero] for name, column in values.items()}


@dataclass(frozen=True)
class CubeKernel:
    """Noisy measurements as int64 in cell order; in the sparse form with the cell number."""

    table: str
    noise: CubeNoise
    form: str = "dense"

    @property
    def schema(self) -> pa.Schema:
        cell = [CELL] if self.form == "sparse" else []
        return pa.schema([(name, pa.int64()) for name in [*cell, *self.noise.columns]])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        for cells, values in self.numbers(span, rows, stream):
            arrays = [*([cells] if self.form == "sparse" else []), *values.values()]
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in arrays], schema=self.schema)

    def numbers(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[CellValues]:
        """Cells with their protected values, in ranges."""
        if stream is None:
            raise GuaranteeError("a cube is never produced without noise", where=f"table {self.table}")
        size = RANGE
        if self.form == "sparse" and self.noise.count is not None:
            size = max(int(RANGE / max(float(self.noise.count.tail(1)), MIN_NOISY_SHARE)), RANGE)
        for first, n, occupied, exact in ranges(span, rows, size, len(self.noise.reads)):
            if self.form == "sparse":
                yield self.noise.sparse(first, n, occupied, exact, stream)
            else:
                values = self.noise.add(first, n, occupied, exact, stream)
                yield np.arange(first, first + n, dtype=np.int64), values


@dataclass(frozen=True)
class PublicationKernel:
    """Noisy measurements in published form, for cubes without further post-processing: with codes, and totals in their
    own unit."""

    cube: CubeKernel
    domain: Domain
    step: Fraction

    @property
    def schema(self) -> pa.Schema:
        return published_schema(self.domain, self.cube.noise.columns)

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        for cells, values in self.cube.numbers(span, rows, stream):
            arrays = [to_units(column, self.step) if name == "total" else column for name, column in values.items()]
            codes = self.domain.describe(cells)
            yield pa.RecordBatch.from_arrays([*codes, *(pa.array(a) for a in arrays)], schema=self.schema)


def published_schema(domain: Domain, columns: tuple[str, ...]) -> pa.Schema:
    """Codes, then numbers: counts and integers as int64, others as float64."""
    kinds = [(name, pa.int64() if name in ("count", "whole") else pa.float64()) for name in columns]
    return pa.schema([*((column, CODES) for column in domain.columns), *kinds])


def to_units(units: Int64s, step: Fraction) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Converts steps of the grid to units of the measure."""
    return units.astype(np.float64) * step.numerator / step.denominator


@dataclass(frozen=True)
class DeviationKernel:
    """Noisy deviations of replicates: R adjacent values per cell, each with independent noise."""

    table: str
    distribution: DiscreteLaplace
    replicates: int
    schema = pa.schema([("deviation", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("deviations are never produced without noise", where=f"table {self.table}")
        size = self.replicates
        for first, n, occupied, exact in ranges(span, rows, max(RANGE // size, 1), size):
            values = np.zeros((n, size), np.int64)
            values[occupied - first] = np.column_stack(exact)
            flat = values.reshape(-1)
            self.distribution.add_to(flat, stream, first * size)
            yield pa.RecordBatch.from_arrays([pa.array(flat)], schema=self.schema)


@dataclass(frozen=True)
class MarginKernel:
    """Exact margins of a span's rows for several tables at once (confidential): table, cell, sums."""

    tables: tuple[Coarsening, ...]
    columns: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.int64()) for name in ("margin", CELL, *self.columns)])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws no noise
        for batch in rows:
            cells, *numbers = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            for number, table in enumerate(self.tables):
                parents, places = np.unique(table.parents(cells), return_inverse=True)
                sums = np.zeros((len(numbers), len(parents)), np.int64)
                for total, values in zip(sums, numbers, strict=True):
                    np.add.at(total, places, values)
                arrays = [np.full(len(parents), number, np.int64), parents, *sums]
                yield pa.RecordBatch.from_arrays([pa.array(a) for a in arrays], schema=self.schema)
