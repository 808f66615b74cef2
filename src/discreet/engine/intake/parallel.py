"""Pieces of a source, read by as many threads as there are cores: Arrow and NumPy give up the interpreter's lock."""

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

AHEAD = 4  # batches that wait for each thread
SECONDS = 0.1


def ingest_pieces(
    intake: Intake, pieces: Sequence[Piece], halt: threading.Event | None = None
) -> Iterator[pa.RecordBatch]:
    """What is made of all pieces, in any order; until somebody wants it to halt."""
    stop = _Stop(halt or threading.Event(), threading.Event())
    watched = [_Watched(piece, stop) for piece in pieces]
    threads = min(len(pieces), os.cpu_count() or 1)
    return _shared(intake, watched, stop, threads) if threads > 1 else intake.over(watched)


@dataclass(frozen=True)
class _Stop:
    """Somebody asks for the end, or nobody asks for more."""

    halt: threading.Event
    done: threading.Event

    def __bool__(self) -> bool:
        return self.halt.is_set() or self.done.is_set()


@dataclass(frozen=True)
class _Watched:
    """A piece that is left in the middle when reading is to stop."""

    piece: Piece
    stop: _Stop

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        for batch in self.piece.read(columns, repeated):
            if self.stop:
                raise EngineError("interrupted", where="source")
            yield batch


def _shared(intake: Intake, pieces: Sequence[Piece], stop: _Stop, threads: int) -> Iterator[pa.RecordBatch]:
    left, lock = iter(pieces), threading.Lock()
    ready: queue.Queue[pa.RecordBatch | None] = queue.Queue(AHEAD * threads)

    def mine() -> Iterator[Piece]:
        while True:
            with lock:
                piece = next(left, None)
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
            for batch in intake.over(mine()):
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
                        worker.result()  # its failure, if it failed
            for worker in workers:
                worker.result()
        finally:
            stop.done.set()
