"""Confidential rows where they lie, raw, in pieces that are read independently and as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from discreet.errors import EngineError

BATCH_ROWS = 1 << 18


class Piece(Protocol):
    """Some rows of a source. It may be pickled, and read on another machine."""

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """These columns, by their exact names and in this order; without any, batches that count the rows.
        Those that `repeated` names have few values: a reader may hand them over as dictionaries."""


@dataclass(frozen=True)
class Scan:
    """A source that was opened: which columns it has, of which types, and the pieces that its rows come in."""

    where: str
    kinds: Mapping[str, frozenset[pa.DataType]]  # one type for each column, or several where files differ
    pieces: Sequence[Piece]
    unreadable: dict[str, int] = field(default_factory=dict)  # lines that are no records, by file, once it was read
    unclosed: dict[str, int] = field(default_factory=dict, kw_only=True)  # those of them that end inside an open quote
    uncoded: Callable[[Collection[str]], Scan] | None = field(default=None, kw_only=True, repr=False)

    def as_codes(self, columns: Collection[str]) -> Scan:
        """The same source, without labels in the place of some columns' codes."""
        return self if self.uncoded is None else self.uncoded(columns)


def read_twice(where: str) -> EngineError:
    """What an engine says instead of reading a source again: it may have changed, and two tables, or two steps of one,
    would be of different records."""
    return EngineError(
        "would be read a second time", where=where, do="report this: a fault of discreet's, not of the records"
    )


def counting(rows: int) -> pa.RecordBatch:
    """Rows of which no column is wanted."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"])
