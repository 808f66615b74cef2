"""Where relational work runs. Methods write Ibis expressions; an engine reads, stores and streams them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa


class Engine(Protocol):
    """What a method may ask of an engine. Memory is bounded by the batch, not by the table."""

    unreadable: int  # lines of the source that are no records and were left out

    def read(self, source: Any, base: Path, wanted: Sequence[str], clean: bool = False) -> ibis.Table:
        """The wanted columns of confidential records, as far as they are there, lazily; `clean` makes text that is not
        UTF-8 missing where the engine would stop at it."""

    def public(self, table: pa.Table) -> ibis.Table:
        """A public table to join with: a code list."""

    def store(self, table: ibis.Table) -> ibis.Table:
        """Compute once, keep in the private workspace."""

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        """Stream rows, in the order the expression asks for."""

    def priority(self, text: ibis.Value, key: bytes) -> ibis.Value:
        """A keyed pseudo-random int64 of a text: SipHash-2-4."""
