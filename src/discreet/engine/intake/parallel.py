"""Pieces of a source, read by one thread per core: Arrow and NumPy release the interpreter's lock."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Piece
from discreet.errors import EngineError

AHEAD = 4  # queued batches per thread
SECONDS = 0.1


def ingest_pieces(
    intake: Intake, pieces: Sequence[Piece], halt: threading.Event | None = None
) -> Iterator[pa.RecordBatch]:
    """The derived columns of all pieces, in any order, until `halt` is set."""
    stop = _StopSignal(halt or threading.Event(), threading.Event())
    interruptible = [_InterruptiblePiece(piece, stop) for piece in pieces]
    threads = min(len(pieces), os.cpu_count() or 1)
    return _in_threads(intake, interruptible, stop, threads) if threads > 1 else intake.over(interruptible)


@dataclass(frozen=True)
class _StopSignal:
    """Set when the caller interrupts, or when the consumer is done."""

    halt: threading.Event
    done: threading.Event

    def __bool__(self) -> bool:
        return self.halt.is_set() or self.done.is_set()


@dataclass(frozen=True)
class _InterruptiblePiece:
    """A piece whose reading ends when the stop signal is set."""

    piece: Piece
    stop: _StopSignal

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        for batch in self.piece.read(columns, repeated):
            if self.stop:
                raise EngineError("interrupted", where="source")
            yield batch


def _in_threads(intake: Intake, pieces: Sequence[Piece], stop: _StopSignal, threads: int) -> Iterator[pa.RecordBatch]:
    remaining, lock = iter(pieces), threading.Lock()
    ready: queue.Queue[pa.RecordBatch | None] = queue.Queue(AHEAD * threads)

    def claimed() -> Iterator[Piece]:
        while True:
            with lock:
                piece = next(remaining, None)
            if piece is None:
                return
            yield piece

    def put(item: pa.RecordBatch | None) -> None:
        while not stop.done.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=SECONDS)
                return

    def work() -> None:
        try:
            for batch in intake.over(claimed()):
                put(batch)
        finally:
            put(None)

    with ThreadPoolExecutor(threads) as pool:
        try:
            workers = [pool.submit(work) for _ in range(threads)]
            while threads:
                if (batch := ready.get()) is not None:
                    yield batch
                    continue
                threads -= 1
                for worker in workers:
                    if worker.done():
                        worker.result()  # raises if it failed
            for worker in workers:
                worker.result()
        finally:
            stop.done.set()
