"""Tasks on Spark's workers: kernels over the spans that a task was given. Nothing here knows a session.

A task gets its rows sorted by span and cell, with one marker per span, so that empty spans are visited, too. The noise
of a cell depends on the cell only, so a task may run twice, concurrently or elsewhere: it gives the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Piece
from discreet.engine.spans import CELL, Kernel, Spans
from discreet.engine.workspace import no_core_dumps
from discreet.errors import DiscreetError, EngineError
from discreet.noise.prf import priorities
from discreet.noise.stream import Stream
from discreet.version import code_version

SPAN = "discreet_span"
SAFE = "discreet on a worker: "  # the rest of an error's message has no confidential value


@dataclass(frozen=True)
class KernelTask:
    """Runs a kernel over all spans of a task. The secret is a broadcast variable: its value is not in this closure."""

    kernel: Kernel
    spans: Spans
    columns: tuple[str, ...]
    secret: Any
    driver_versions: tuple[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return guarded_results(self._run(batches), self.driver_versions)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stream = None if self.secret is None else Stream.from_secret(self.secret.value)
        for number, pieces in groupby(_pieces(batches, self.columns), key=lambda piece: piece[0]):
            rows = (batch for _, batch in pieces if batch.num_rows)
            yield from self.kernel(self.spans[number], rows, stream)


def _pieces(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches split where the span changes, without markers and without the span's column, which is the first."""
    for batch in batches:
        numbers = batch.column(0).to_numpy()
        rows = pa.RecordBatch.from_arrays(batch.columns[1:], names=list(columns))
        borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(borders):
            if start < end:
                piece = rows.slice(start, end - start)
                yield int(numbers[start]), piece.filter(pc.is_valid(piece.column(CELL)))


@dataclass(frozen=True)
class PriorityTask:
    """Adds a column with each row's keyed pseudo-random number."""

    columns: tuple[int, ...]
    name: str
    secret: Any
    driver_versions: tuple[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return guarded_results(self._run(batches), self.driver_versions)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            order = priorities(self.secret.value, [batch.column(column) for column in self.columns])
            yield batch.append_column(self.name, order)


@dataclass(frozen=True)
class FrameIntakeTask:
    """Derives columns from raw values of a frame."""

    intake: Intake
    driver_versions: tuple[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return guarded_results(self.intake(batches), self.driver_versions)


@dataclass(frozen=True)
class PieceIntakeTask:
    """Reads the pieces with given numbers, and derives columns from their rows."""

    intake: Intake
    pieces: tuple[Piece, ...]
    driver_versions: tuple[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        return guarded_results(self.intake.over(self.pieces[number] for number in numbers), self.driver_versions)


def versions() -> tuple[str, str]:
    """The versions of discreet and Arrow, which must be the same everywhere: otherwise bytes could differ."""
    return code_version(), pa.__version__


def guarded_results(results: Iterator[pa.RecordBatch], driver_versions: tuple[str, str]) -> Iterator[pa.RecordBatch]:
    """The results, if this worker has the driver's versions; error messages are redacted: Spark would log them, and
    they may quote a record."""
    no_core_dumps()
    try:
        if versions() != driver_versions:  # a worker that joined after the check
            raise EngineError("it has a different version of discreet or Arrow than the driver")
        yield from results
    except DiscreetError as error:
        raise EngineError(SAFE + str(error)) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "no reason given"
        raise EngineError(f"{SAFE}{type(error).__name__}, {reason}") from None
    except Exception as error:  # noqa: BLE001 - any message may quote a record
        raise EngineError(f"{SAFE}{type(error).__name__} in {_place(error)}") from None


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "an unknown place"


def worker_versions(_: Iterable[int]) -> Iterator[tuple[str, str, str]]:
    """A worker's host name and versions."""
    no_core_dumps()
    yield os.uname().nodename, *versions()
