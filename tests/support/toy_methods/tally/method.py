"""A tally: noise for every cell, one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.engine.spans import Span, Spans, dense, ranges
from discreet.engine.tabulate import RecordReading, count_cells
from discreet.methods.protocol import Method, refuse_size_units
from discreet.methods.writing import MethodOutput, OutputLocations, write_parts
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.privacy.confidential import Confidential
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.publish.description import Column, PublishedTable, code_columns
from discreet.spec import Release

from .spec import Tally


@dataclass(frozen=True)
class TallyMethod(Method):
    spec: Tally
    domain: Domain
    unit: Unit

    @classmethod
    def of(cls, release: Release, table: Tally) -> TallyMethod:
        refuse_size_units(release.unit, table.place)
        return cls(table, table.cells(release), release.unit)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.domain,)

    @property
    def spans(self) -> tuple[Spans, ...]:
        return (Spans(self.domain.cells, self.domain.cells),)

    def guarantee(self) -> Guarantee:
        return Guarantee(unit=self.unit, epsilon=self.spec.epsilon)

    def published_tables(self) -> list[PublishedTable]:
        columns = (*code_columns(self.domain), Column("count", "integer", "records, plus noise"))
        words = "two-sided geometric"
        return [PublishedTable(self.name, tuple(self.spec.by), self.domain, self.guarantee(), "", words, None, columns)]

    def tabulate(self, reading: RecordReading) -> list[Confidential[Any]]:
        return [Confidential(count_cells(reading.engine, reading.bounded, self.domain))]

    def protect(
        self, engine: Any, cells: Any, reservation: Any, places: OutputLocations, progress: Any
    ) -> MethodOutput:
        written = write_parts(
            *(engine, cells[0].open_confidential(), self, reservation),
            name=self.name,
            purpose="tally",
            guarantee=self.guarantee(),
            place=places.published,
            progress=progress,
        )
        return MethodOutput(written.value.files, {})

    @property
    def schema(self) -> pa.Schema:
        codes = [(name, pa.dictionary(pa.int32(), pa.string())) for name in self.domain.columns]
        return pa.schema([*codes, ("count", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Any) -> Iterator[pa.RecordBatch]:
        for first, n, occupied, (counts,) in ranges(span, rows, self.domain.cells):
            values = dense(first, n, occupied, counts)
            DiscreteLaplace(self.spec.epsilon / self.unit.records).add_to(values, stream, first)
            arrays = [*self.domain.code_arrays(np.arange(first, first + n)), pa.array(values)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
