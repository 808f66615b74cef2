"""Counts of every cell of a declared table plus discrete Laplace (two-sided geometric) noise: pure ε-DP.

The noise is X − Y with X, Y ~ Geometric(p), p = 1 − e^−rate. With at most k records per unit the table of counts has L1
sensitivity k under addition or removal of a unit, so rate = ε/k gives ε for the unit (Ghosh, Roughgarden and
Sundararajan 2009; PSEO Beta Appendix, §1; PSEO Technical Appendices, A.1, where p = 1 − 1/ε is a misprint).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.spans import FingerprintedTable, Int64s, Progress, Span, Spans, dense, merge, ranges
from discreet.engine.tabulate import RecordReading, count_cells
from discreet.errors import GuaranteeError
from discreet.formatting import plural
from discreet.methods.counts.spec import Counts
from discreet.methods.protocol import Method, cost_of_disjoint_parts, distribution_of, refuse_clashes, refuse_size_units
from discreet.methods.writing import MethodOutput, OutputLocations, write_parts
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.stream import Stream
from discreet.post.rounding import nonnegative, to_multiple
from discreet.privacy.confidential import Confidential, Reservation
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.publish.description import AdditiveColumn, Column, ExpectedError, PublishedTable, code_columns
from discreet.publish.tables import schema_of
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

RANGE = 1 << 18  # rows in memory at a time
PART = 1 << 22  # rows per file
DENSE_LIMIT = 1 << 34
LEVEL = Fraction(9, 10)


@dataclass(frozen=True)
class CountsMethod(Method):
    """The method `counts` for one declared table."""

    spec: Counts
    domain: Domain
    unit: Unit

    @classmethod
    def of(cls, release: Release, table: Counts) -> CountsMethod:
        return cls(table, table.cells(release), release.unit)

    def __post_init__(self) -> None:
        refuse_size_units(self.unit, self.spec.place)
        if self.spec.form == "dense" and self.domain.cells > DENSE_LIMIT:
            raise GuaranteeError(
                f"{self.domain.cells:,} cells are too many to enumerate",
                where=self.spec.place,
                do="write `form: sparse`: same output distribution, only non-zero rows are written",
            )
        _ = self.distribution
        refuse_clashes((c.name for c in self.columns if c.type != "code"), self.domain, self.spec.place)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def domains(self) -> tuple[Domain, ...]:
        return (self.domain,)

    def published_tables(self) -> list[PublishedTable]:
        return [
            PublishedTable(
                name=self.name,
                by=tuple(self.spec.by),
                domain=self.domain,
                guarantee=self.guarantee(),
                composition=cost_of_disjoint_parts(self.spec.epsilon, self.unit.records),
                noise=self.noise(),
                error=self.error,
                columns=self.columns,
                form=self.spec.form,
                parts=len(self.spans[0]),
                additive=AdditiveColumn("count", self.distribution.variance(), self.distribution.fourth_cumulant()),
            )
        ]

    @cached_property
    def distribution(self) -> DiscreteLaplace:
        return distribution_of(self.spec.epsilon / self.unit.records, self.spec.place)

    def guarantee(self) -> Guarantee:
        return Guarantee(unit=self.unit, epsilon=self.spec.epsilon)

    @cached_property
    def error(self) -> ExpectedError:
        return ExpectedError(
            self.distribution.margin(LEVEL), self.distribution.variance() ** 0.5, self.distribution.mean_abs()
        )

    def noise(self) -> str:
        rows = round(self.domain.cells * float(self.distribution.tail(1)))
        sparse = (
            f"; exact sparse form: a cell without a row has count 0, up to about {plural(rows, 'row')} by noise alone"
        )
        form = sparse if self.spec.form == "sparse" else ""
        return f"discrete Laplace (two-sided geometric), P(k) ∝ exp(−{format_exact(self.distribution.rate)}·|k|){form}"

    @property
    def spans(self) -> tuple[Spans, ...]:
        return (Spans(self.domain.cells, self._cells_for(PART)),)

    def _cells_for(self, rows: int) -> int:
        """The number of cells that yield about this many rows; in the sparse form most yield none."""
        share = float(self.distribution.tail(1)) if self.spec.form == "sparse" else 1.0
        return self.domain.cells or 1 if share * self.domain.cells <= rows else int(rows / share)

    def tabulate(self, reading: RecordReading) -> list[Confidential[ibis.Table]]:
        return [Confidential(count_cells(reading.engine, reading.bounded, self.domain))]

    def protect(
        self,
        engine: Engine,
        cells: list[Confidential[FingerprintedTable]],
        reservation: Reservation,
        places: OutputLocations,
        progress: Progress,
    ) -> MethodOutput:
        written = write_parts(
            engine,
            cells[0].open_confidential(),
            self,
            reservation,
            name=self.name,
            purpose=f"counts/{self.spec.form}",
            guarantee=self.guarantee(),
            place=places.published,
            progress=progress,
        )
        return MethodOutput(written.value.files, {})

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        """The kernel: adds noise to every cell of a span; in the sparse form returns the non-zero noisy counts."""
        if stream is None:
            raise GuaranteeError("counts are never released without noise", where=self.spec.place)
        for first, n, occupied, (counts,) in ranges(span, rows, self._cells_for(RANGE)):
            if self.spec.form == "dense":
                numbers = np.arange(first, first + n, dtype=np.int64)
                values = dense(first, n, occupied, counts)
                self.distribution.add_to(values, stream, first)
            else:
                numbers, values = merge(occupied, counts, *self.distribution.sparse(stream, first, n))
            yield self._rows(numbers, values)

    def __getstate__(self) -> dict[str, object]:
        return {"spec": self.spec, "domain": self.domain, "unit": self.unit}  # cached properties are recomputed

    def _rows(self, numbers: Int64s, values: Int64s) -> pa.RecordBatch:
        extra = [np.full(values.size, self.error.margin90, np.int64)]
        extra += [nonnegative(values)] if self.spec.nonnegative else []
        extra += [to_multiple(values, self.spec.round_to)] if self.spec.round_to else []
        arrays = [*self.domain.code_arrays(numbers), pa.array(values), *(pa.array(e) for e in extra)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        return schema_of(self.columns)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        # The estimand is a number of records, not of the units they belong to.
        bound = "" if self.unit.entity is None else f"at most {self.unit.records} per unit, "
        records = f"the records used ({bound}none with a dropped code)"
        unlisted = ", listed or not," if self.spec.form == "sparse" else ""
        base, moe = self.spec.round_to, self.error.margin90
        columns = [
            *code_columns(self.domain),
            Column(
                "count", "integer", f"noisy count: {records}, plus noise; unbiased for that number, may be negative"
            ),
            Column(
                "moe90",
                "integer",
                f"90% margin of error of `count`: in each cell of the domain{unlisted} the noise is within "
                f"±{moe} with at least that probability; noise only: neither sampling nor records that were not used",
            ),
        ]
        if self.spec.nonnegative:
            columns.append(Column("count_nonnegative", "integer", "max(count, 0): biased upwards in small cells"))
        if base:
            columns.append(Column("count_rounded", "integer", f"count rounded to the nearest multiple of {base}"))
        return tuple(columns)
