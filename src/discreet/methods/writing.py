"""Where a table is written: beside its noise, one file a span, by whichever worker drew it.

A span's fingerprint is taken again on the way, and must be the one that the key is bound to. Had a worker been lost and
its rows been read anew from a source that changed meanwhile, noise bound to other data would have been drawn: such a
part never becomes a file. The worker knows what is right by a seal under the stream's secret, which says nothing about
the rows.
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
from discreet.publish.description import KINDS, Kinds, file_names
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable, write_table

if TYPE_CHECKING:
    from discreet.engine import Engine


@dataclass(frozen=True)
class OutputLocations:
    """Where published files are written, and where measurements are: inside, or in the same place for a while."""

    published: Storage
    measured: Storage


@dataclass(frozen=True)
class MethodOutput:
    """What a method has written: published files with their digests, and the measurements they were made of."""

    files: dict[str, str]
    measured: Mapping[str, Protected[WrittenTable]]
    draws: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of each group, after a recoding


def measured_name(table: str) -> str:
    """Under which name measurements are written; no table can be called so."""
    return f"{table}~measured"


@dataclass(frozen=True)
class WriteKernel:
    """Runs a kernel and writes what it protects; one row comes back for each file."""

    kernel: Kernel
    table: str
    place: Storage
    spans: Spans
    grant: WorkerGrant
    seals: tuple[bytes, ...]
    kinds: Kinds = KINDS
    packed: bool = False
    schema = pa.schema([("span", pa.int64()), ("file", pa.string()), ("sha256", pa.string()), ("rows", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise EngineError("nothing is written without noise", where=f"table {self.table}")
        part = span.number if len(self.spans) > 1 else None
        batches = (self.grant.protect(batch) for batch in self._checked(span, rows, stream))
        written = write_table(
            *(self.place, self.table, self.kernel.schema, batches, self.grant.simulated, part, self.kinds),
            packed=self.packed,
        )
        lines = [(span.number, name, digest, written.rows) for name, digest in written.files.items()]
        yield pa.RecordBatch.from_arrays([list(column) for column in zip(*lines, strict=True)], schema=self.schema)

    def _checked(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream) -> Iterator[pa.RecordBatch]:
        """What the kernel makes of the rows, if they turn out to be the right ones."""
        found = Fingerprint()
        watched = found.watch(rows)
        yield from self.kernel(span, watched, stream)
        for _ in watched:  # a kernel need not look at everything
            pass
        if not hmac.compare_digest(_seal(stream, span.number, found.digest()), self.seals[span.number]):
            raise EngineError("its source changed while it was read", where=f"table {self.table}")


def _seal(stream: Stream, number: int, fingerprint: bytes) -> bytes:
    """Of this span alone: equal rows in two spans must not show."""
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
    kinds: Kinds = KINDS,
    aside: bool = False,
) -> Protected[WrittenTable]:
    """Run a kernel over every span of a table and write its rows; `aside` those that more is made of."""
    if aside:
        name, kinds = measured_name(name), ("parquet",)
    secret = reservation.secret(name, purpose)
    stream = Stream.from_secret(secret.expose())
    seals = tuple(_seal(stream, number, mark) for number, mark in enumerate(bound.fingerprints))
    writer = WriteKernel(kernel, name, place, bound.spans, reservation.worker_grant(guarantee), seals, kinds, aside)
    gathered = engine.gather(bound.table, bound.spans, writer, secret, progress)
    receipts = [row for batch in gathered for row in batch.to_pylist()]
    receipts.sort(key=lambda row: (row["span"], row["file"]))
    expected = file_names(name, reservation.simulated, len(bound.spans), kinds)
    if sorted(row["file"] for row in receipts) != sorted(expected):
        raise EngineError("not every part was written", where=f"table {name}")
    rows = sum({row["span"]: row["rows"] for row in receipts}.values())
    return reservation.protect(WrittenTable({row["file"]: row["sha256"] for row in receipts}, rows), guarantee)


def rehearse(kernel: Kernel, cells: int, method: str) -> None:
    """Protect nothing once, with noise that anybody may know: what cannot be drawn must show before it is paid for."""
    for _ in kernel(Span(0, 0, cells), iter(()), public_stream(method, "rehearsal")):
        pass
