"""Protected counts of jobs: every cell of a span, occupied or not, with a margin of error where it discloses
nothing."""

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
HALF = (1 + LEVEL) / 2  # two statements at this level hold jointly at LEVEL (union bound)
MOST = 1 << 40  # jobs: no bound is published beyond it, and α times it fits into 62 bits
CODES = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class EmployerKernel:
    """Draws the published numbers of a span: counts, and upper bounds on largest establishments if they have an ε."""

    table: str
    domain: Domain
    mechanism: Mechanism
    bound: LogLaplace | None  # for the largest establishment of each cell, or of each workplace cell
    shared: int  # adjacent cells with the same largest establishment: the worker cells of a workplace cell
    nonnegative: bool

    @property
    def schema(self) -> pa.Schema:
        codes = [(column, CODES) for column in self.domain.columns]
        return pa.schema([*codes, *((name, pa.int64()) for name in self.numbers)])

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns other than codes."""
        columns = ["count"]
        if isinstance(self.mechanism, LogLaplace):
            columns += ["low90", "high90"]
        elif self.bound is not None:
            columns += ["moe90", "largest95"]
        elif self.mechanism.protects != "size":
            columns += ["moe90"]
        return (*columns, *(["count_nonnegative"] if self.nonnegative else []))

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("counts are never published without noise", where=f"table {self.table}")
        size = max(RANGE // self.shared, 1) * self.shared
        for first, n, occupied, (counts, largest) in ranges(span, rows, size, 2):
            most = dense(first, n, occupied, largest)
            values = self.mechanism.draw(dense(first, n, occupied, counts), most, stream, first)
            columns = [values, *self._margins(values, most, stream, first)]
            columns += [nonnegative(values)] if self.nonnegative else []
            codes = self.domain.describe(np.arange(first, first + n, dtype=np.int64))
            yield pa.RecordBatch.from_arrays([*codes, *(pa.array(c) for c in columns)], schema=self.schema)

    def _margins(self, values: Int64s, largest: Int64s, stream: Stream, first: int) -> list[Int64s]:
        """Margins that do not depend on the largest establishment, or only on a protected bound on it. In the stream
        the noise of these bounds follows that of all counts: block numbers from the size of the domain on."""
        if isinstance(self.mechanism, LogLaplace):
            return list(self.mechanism.limits(values, LEVEL))
        if self.bound is not None:
            own = largest[:: self.shared]
            drawn = self.bound.draw(own, own, stream, self.domain.cells + first // self.shared)
            most = np.repeat(np.minimum(self.bound.limits(drawn, LEVEL)[1], MOST), self.shared)
            return [*self._within(HALF, most), most]
        return [] if self.mechanism.protects == "size" else self._within(LEVEL, np.zeros(values.size, np.int64))

    def _within(self, level: Fraction, largest: Int64s) -> list[Int64s]:
        margin = self.mechanism.margin(level, largest)
        if margin is None:
            raise GuaranteeError("the mechanism has no margin of error of this kind", where=f"table {self.table}")
        return [margin]
