"""Where relational work runs. Methods write Ibis expressions and kernels; an engine reads, stores and runs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.engine.spans import Kernel, Progress, Spans, no_progress

if TYPE_CHECKING:
    import ibis
    import pyarrow as pa

    from discreet.engine.intake.stream import Intake
    from discreet.engine.readers import Scan
    from discreet.noise.key import Secret
    from discreet.spec import EngineSpec


class Engine(Protocol):
    """What a method may ask of an engine. Memory is bounded by the batch, not by the table."""

    @property
    def unreadable(self) -> int:
        """Lines of the sources that are no records and were left out, of all that was read so far."""

    @property
    def unclosed(self) -> int:
        """Those of them that end inside an open quote."""

    def open(self, source: Any, base: Path, wanted: Collection[str]) -> Scan:
        """Confidential records, opened: the types of the wanted columns are known, as far as they are there (others may
        be), and no record has been read."""

    def ingest(self, scan: Scan, intake: Intake) -> ibis.Table:
        """Derived columns of every record, lazily: the only way for confidential values into an engine. They are read
        once: what is looked at twice is stored first, or refused, for the source may have changed in between."""

    def check_unchanged(self) -> None:
        """Refuse if the source may have changed since it was read, where the engine might read it again."""

    def load_public(self, table: pa.Table) -> ibis.Table:
        """A public table to join with: a code list."""

    def store(self, table: ibis.Table) -> ibis.Table:
        """Compute once, keep inside."""

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        """Bring rows here, in the order the expression asks for: for results that are small on any data."""

    def with_priorities(self, table: ibis.Table, columns: Sequence[str], name: str, secret: Secret) -> ibis.Table:
        """The table and one more column: a keyed pseudo-random int64 of each row's content."""

    def map(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> ibis.Table:
        """What a kernel makes of every span of a table, occupied or not; it stays in the engine."""

    def gather(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> Iterator[pa.RecordBatch]:
        """As `map`, brought here in any order of spans: for kernels that return a few rows a span."""


@contextmanager
def open_engine(spec: EngineSpec, session: Any = None) -> Iterator[Engine]:
    """DuckDB in this process, or Spark: on an existing session, or on one of our own."""
    if spec == "duckdb" and session is None:
        from discreet.engine.duckdb import duckdb_engine

        with duckdb_engine() as engine:
            yield engine
        return
    from discreet.engine.spark import spark_engine

    with spark_engine(None if spec == "duckdb" else spec, session) as engine:
        yield engine
