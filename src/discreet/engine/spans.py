"""A table's cells cut into spans: the pieces of work that an engine hands out, repeats after a failure and writes.

The cut follows from the domain alone, so it is public, and the same on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from discreet.noise.stream import Stream

CELL = "cell"
Progress = Callable[[int, int], None]


def quiet(done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Span:
    """Cells first … end − 1 of a table."""

    number: int
    first: int
    cells: int

    @property
    def end(self) -> int:
        return self.first + self.cells


@dataclass(frozen=True)
class Spans:
    """Cells 0 … cells − 1 in spans of `size`; a table without cells is one empty span."""

    cells: int
    size: int

    def __len__(self) -> int:
        return max(-(-self.cells // self.size), 1)

    def __getitem__(self, number: int) -> Span:
        number = range(len(self))[number]
        first = number * self.size
        return Span(number, first, min(self.size, self.cells - first))

    def __iter__(self) -> Iterator[Span]:
        return (self[number] for number in range(len(self)))


class Kernel(Protocol):
    """A pure function of a span's rows, in cell order, and of the noise that belongs to its cells.

    It may be pickled and sent to a worker, run twice, or beside itself: it holds public parameters only, and gives
    the same batches each time.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of what it returns."""

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        """The results for one span. `rows` has the column `cell` and may be empty."""


class Ascending:
    """Batches in cell order, read up to one border after another."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def until(self, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of cells before `end` that were not read yet."""
        while (batch := self._rest if self._rest is not None else next(self._batches, None)) is not None:
            cut = int(np.searchsorted(cells_of(batch), end))
            self._rest = batch.slice(cut) if cut < batch.num_rows else None
            if cut:
                yield batch.slice(0, cut)
            if self._rest is not None:
                return


def cells_of(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The cell numbers of a batch."""
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = batch.column(CELL).to_numpy(zero_copy_only=False)
    return found
