"""Where a table is written: beside its noise, one file a span, by whichever worker drew it.

A span's fingerprint is taken again on the way. Had a worker been lost and its rows been read anew from a source that
changed meanwhile, noise bound to other data would have been drawn: such parts are refused before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.engine.fingerprint import Fingerprint
from discreet.engine.spans import Kernel, Progress, Span, Spans, quiet
from discreet.noise.stream import Stream
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected
from discreet.privacy.reservation import License, Reservation
from discreet.publish.place import Place
from discreet.publish.tables import write_table

if TYPE_CHECKING:
    import ibis

    from discreet.engine import Engine


@dataclass(frozen=True)
class Parts:
    """The files of one table with their digests, and the fingerprint of what each span was made of."""

    files: dict[str, str]
    rows: int
    fingerprints: tuple[bytes, ...]


@dataclass(frozen=True)
class WriteKernel:
    """Runs a kernel and writes what it protects; one row comes back for each file."""

    kernel: Kernel
    table: str
    place: Place
    spans: Spans
    license: License
    schema = pa.schema(
        [("span", pa.int64()), ("fingerprint", pa.binary()), ("file", pa.string()), ("sha256", pa.string()),
         ("rows", pa.int64())]
    )  # fmt: skip

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        found = Fingerprint()
        batches = (self.license.protect(batch) for batch in self.kernel(span, found.watch(rows), stream))
        part = span.number if len(self.spans) > 1 else None
        written = write_table(self.place, self.table, self.kernel.schema, batches, self.license.simulated, part)
        lines = [(span.number, found.digest(), name, digest, written.rows) for name, digest in written.files.items()]
        yield pa.RecordBatch.from_arrays([list(column) for column in zip(*lines, strict=True)], schema=self.schema)


def write_parts(
    engine: Engine,
    table: ibis.Table,
    spans: Spans,
    kernel: Kernel,
    reservation: Reservation,
    *,
    name: str,
    purpose: str,
    guarantee: Guarantee,
    place: Place,
    progress: Progress = quiet,
) -> Protected[Parts]:
    """Run a kernel over every span of a table and write its rows."""
    writer = WriteKernel(kernel, name, place, spans, reservation.license(guarantee))
    secret = reservation.secret(name, purpose)
    receipts = [row for batch in engine.gather(table, spans, writer, secret, progress) for row in batch.to_pylist()]
    receipts.sort(key=lambda row: (row["span"], row["file"]))
    marks = {row["span"]: row["fingerprint"] for row in receipts}
    sizes = {row["span"]: row["rows"] for row in receipts}
    parts = Parts({row["file"]: row["sha256"] for row in receipts}, sum(sizes.values()), tuple(marks.values()))
    return reservation.protect(parts, guarantee)
