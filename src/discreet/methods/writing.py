"""Writes tables where their noise is drawn: one file per span, by the worker that protects it.

The fingerprint of a span is recomputed while its rows are read, and must be the one that the key is bound to. Otherwise
a task that is repeated after its source changed would add noise bound to other data: such a part never becomes a file.
The worker compares with a seal, an HMAC of the fingerprint under the stream's secret, which reveals nothing about the
rows.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.engine.spans import Fingerprint, FingerprintedTable, Kernel, Progress, Span, Spans, no_progress
from discreet.errors import EngineError
from discreet.noise.key import public_stream
from discreet.noise.stream import Stream
from discreet.privacy.confidential import Reservation, WorkerGrant
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected
from discreet.publish.description import FORMATS, FileFormats, file_names
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable, write_table

if TYPE_CHECKING:
    from discreet.engine import Engine


@dataclass(frozen=True)
class OutputLocations:
    """Storage of published files, and of measurements: on the confidential side, or temporarily the same storage."""

    published: Storage
    measurements: Storage


@dataclass(frozen=True)
class MethodOutput:
    """The output of a method: published files with their digests, and the measurements they are computed from."""

    files: dict[str, str]
    measurements: Mapping[str, Protected[WrittenTable]]
    draws: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # draws of noise in each group, after a recoding


def measurements_name(table: str) -> str:
    """The name of a table's measurements; no table can have this name."""
    return f"{table}~measured"


@dataclass(frozen=True)
class WriteKernel:
    """Runs a kernel and writes its protected rows; returns one row per file."""

    kernel: Kernel
    table: str
    place: Storage
    spans: Spans
    grant: WorkerGrant
    seals: tuple[bytes, ...]
    formats: FileFormats = FORMATS
    packed: bool = False
    schema = pa.schema([("span", pa.int64()), ("file", pa.string()), ("sha256", pa.string()), ("rows", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise EngineError("tables are never written without noise", where=f"table {self.table}")
        part = span.number if len(self.spans) > 1 else None
        batches = (self.grant.protect(batch) for batch in self._checked(span, rows, stream))
        written = write_table(
            *(self.place, self.table, self.kernel.schema, batches, self.grant.simulated, part, self.formats),
            packed=self.packed,
        )
        lines = [(span.number, name, digest, written.rows) for name, digest in written.files.items()]
        yield pa.RecordBatch.from_arrays([list(column) for column in zip(*lines, strict=True)], schema=self.schema)

    def _checked(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream) -> Iterator[pa.RecordBatch]:
        """The kernel's output, refused unless the rows are those that the key is bound to."""
        fingerprint = Fingerprint()
        watched = fingerprint.watch(rows)
        yield from self.kernel(span, watched, stream)
        for _ in watched:  # a kernel need not read all rows
            pass
        if not hmac.compare_digest(_seal(stream, span.number, fingerprint.digest()), self.seals[span.number]):
            raise EngineError("its source changed while it was read", where=f"table {self.table}")


def _seal(stream: Stream, number: int, fingerprint: bytes) -> bytes:
    """Depends on the span's number: equal rows in two spans must have different seals."""
    return stream.seal(number.to_bytes(8, "big") + fingerprint)


def write_parts(
    engine: Engine,
    bound: FingerprintedTable,
    kernel: Kernel,
    reservation: Reservation,
    *,
    name: str,
    purpose: str,
    guarantee: Guarantee,
    place: Storage,
    progress: Progress = no_progress,
    formats: FileFormats = FORMATS,
    intermediate: bool = False,
) -> Protected[WrittenTable]:
    """Run a kernel over every span of a table and write its rows; `intermediate` ones are post-processed later."""
    if intermediate:
        name, formats = measurements_name(name), ("parquet",)
    secret = reservation.secret(name, purpose)
    stream = Stream.from_secret(secret.expose())
    seals = tuple(_seal(stream, number, mark) for number, mark in enumerate(bound.fingerprints))
    writer = WriteKernel(
        kernel, name, place, bound.spans, reservation.worker_grant(guarantee), seals, formats, intermediate
    )
    gathered = engine.gather(bound.table, bound.spans, writer, secret, progress)
    receipts = [row for batch in gathered for row in batch.to_pylist()]
    receipts.sort(key=lambda row: (row["span"], row["file"]))
    expected = file_names(name, reservation.simulated, len(bound.spans), formats)
    if sorted(row["file"] for row in receipts) != sorted(expected):
        raise EngineError("some parts were not written", where=f"table {name}")
    rows = sum({row["span"]: row["rows"] for row in receipts}.values())
    return reservation.protect(WrittenTable({row["file"]: row["sha256"] for row in receipts}, rows), guarantee)


def dry_run(kernel: Kernel, cells: int, method: str) -> None:
    """Run a kernel on no rows with public noise: what cannot be drawn must fail before budget is reserved."""
    for _ in kernel(Span(0, 0, cells), iter(()), public_stream(method, "rehearsal")):
        pass
