"""Protected counts of jobs: every cell of a span, occupied or not, with its margin where that tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.engine.spans import Int64s, Span, dense, ranges
from discreet.errors import GuaranteeError
from discreet.methods.employer.mechanisms import Mechanism
from discreet.methods.employer.mechanisms.log_laplace import LogLaplace
from discreet.noise.stream import Stream
from discreet.post.rounding import nonnegative

RANGE = 1 << 18  # cells in memory at a time
LEVEL = Fraction(9, 10)
HALF = (1 + LEVEL) / 2  # two statements at this level hold together at LEVEL
MOST = 1 << 40  # jobs: no bound is published beyond it, and α times it fits into 62 bits
CODES = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class EmployerKernel:
    """Draws what is published of a span: counts, and the bounds of largest establishments that were paid for."""

    table: str
    domain: Domain
    mechanism: Mechanism
    bound: LogLaplace | None  # of the largest establishment of each cell, or of each workplace cell
    shared: int  # cells side by side that have one largest establishment: the worker cells of a workplace cell
    nonnegative: bool

    @property
    def schema(self) -> pa.Schema:
        codes = [(column, CODES) for column in self.domain.columns]
        return pa.schema([*codes, *((name, pa.int64()) for name in self.numbers)])

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns beside the codes."""
        found = ["count"]
        if isinstance(self.mechanism, LogLaplace):
            found += ["low90", "high90"]
        elif self.bound is not None:
            found += ["moe90", "largest95"]
        elif self.mechanism.hides != "size":
            found += ["moe90"]
        return (*found, *(["count_nonnegative"] if self.nonnegative else []))

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("counts are never published without noise", where=f"table {self.table}")
        size = max(RANGE // self.shared, 1) * self.shared
        for first, n, occupied, (counts, largest) in ranges(span, rows, size, 2):
            most = dense(first, n, occupied, largest)
            values = self.mechanism.draw(dense(first, n, occupied, counts), most, stream, first)
            columns = [values, *self._margins(values, most, stream, first)]
            columns += [nonnegative(values)] if self.nonnegative else []
            codes = self.domain.code_arrays(np.arange(first, first + n, dtype=np.int64))
            yield pa.RecordBatch.from_arrays([*codes, *(pa.array(c) for c in columns)], schema=self.schema)

    def _margins(self, values: Int64s, largest: Int64s, stream: Stream, first: int) -> list[Int64s]:
        """What can be said about the error without the largest establishment, or with a bound of it that was paid for.
        The noise of bounds comes after that of all counts: cells of the domain's size and beyond."""
        if isinstance(self.mechanism, LogLaplace):
            return list(self.mechanism.limits(values, LEVEL))
        if self.bound is not None:
            mine = largest[:: self.shared]
            drawn = self.bound.draw(mine, mine, stream, self.domain.cells + first // self.shared)
            most = np.repeat(np.minimum(self.bound.limits(drawn, LEVEL)[1], MOST), self.shared)
            return [*self._within(HALF, most), most]
        return [] if self.mechanism.hides == "size" else self._within(LEVEL, np.zeros(values.size, np.int64))

    def _within(self, level: Fraction, largest: Int64s) -> list[Int64s]:
        found = self.mechanism.margin(level, largest)
        if found is None:
            raise GuaranteeError("has no margin of this kind", where=f"table {self.table}")
        return [found]
