"""Protected histograms: discrete Laplace (two-sided geometric) noise in every bin of every cell, empty or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import Attribute, Domain, Key, Numbers
from discreet.engine.spans import Span, Spans, dense, ranges
from discreet.errors import GuaranteeError, PublishError
from discreet.noise.jit import compiled
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.stream import Stream
from discreet.privacy.protected import Protected
from discreet.publish.parquet import table_of
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable

Histograms = NDArray[np.int64]  # (cells, bins)
RANGE = 1 << 18  # bins in memory at a time
PART = 1 << 22  # bins in a file


def histogram_domain(groups: Domain, column: str, bins: int) -> Domain:
    """The cells that noise is added to: every bin of every group, the bins of a group contiguous."""
    numbers = tuple((str(number),) for number in range(1, bins + 1))
    lookup: dict[Key, int] = {key: i for i, key in enumerate(numbers)}
    attribute = Attribute(column, (column,), (column,), numbers, lookup, numbered=True)
    return Domain((*groups.attributes, attribute))


def histogram_spans(groups: int, bins: int) -> Spans:
    """Spans of whole groups."""
    return Spans(groups * bins, max(PART // bins, 1) * bins)


@dataclass(frozen=True)
class HistogramKernel:
    """Adds noise to every bin of a span."""

    table: str
    rate: Fraction
    schema = pa.schema([("count", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("histograms are never released without noise", where=f"table {self.table}")
        distribution = DiscreteLaplace(self.rate)
        for first, n, occupied, (counts,) in ranges(span, rows, RANGE):
            values = dense(first, n, occupied, counts)
            distribution.add_to(values, stream, first)
            yield pa.RecordBatch.from_arrays([pa.array(values)], schema=self.schema)


def read_histograms(place: Storage, parts: Protected[WrittenTable], bins: int) -> Iterator[tuple[int, Histograms]]:
    """The protected histograms that workers wrote, file by file: the first group, and one row of bins per group."""
    first = 0
    for name in sorted(parts.value.files):
        counts = read_histogram_part(place, parts, name, bins)
        yield first, counts
        first += len(counts)


def read_histogram_part(place: Storage, parts: Protected[WrittenTable], name: str, bins: int) -> Histograms:
    """The histograms in one file that workers wrote, one row per group."""
    content = place.read(name)
    if sha256(content).hexdigest() != parts.value.files[name]:  # other processes may write to an object store
        raise PublishError(
            "is not the file that was written", where=name, do="complete the release with `discreet resume`"
        )
    counts = table_of(content).column("count").to_numpy().reshape(-1, bins)
    return np.ascontiguousarray(counts)


@compiled
def add_rows(sums: Histograms, rows: Numbers, histograms: Histograms) -> None:
    """sums[rows[i]] += histograms[i] for every i."""
    for i in range(histograms.shape[0]):
        for j in range(histograms.shape[1]):
            sums[rows[i], j] += histograms[i, j]
