"""Engines run the relational work: methods write Ibis expressions and kernels, an engine reads, stores and runs."""

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
    """The operations a method may use. Memory use is bounded by the batch, not by the table."""

    @property
    def unreadable(self) -> int:
        """Number of source lines read so far that were skipped because they are not valid records."""

    @property
    def unclosed(self) -> int:
        """How many of these lines end inside an open quote."""

    def open(self, source: Any, base: Path, wanted: Collection[str]) -> Scan:
        """Open a source of confidential records: the types of those wanted columns that exist are known afterwards
        (others may be, too), and no record has been read."""

    def ingest(self, scan: Scan, intake: Intake) -> ibis.Table:
        """Derived columns of every record, lazily: the only way for confidential values into an engine. A source is
        read once: what is used twice is stored first, or refused, because the source may change in between."""

    def check_unchanged(self) -> None:
        """Refuse if the source may have changed since it was read, for engines that might read it again."""

    def load_table(self, table: pa.Table) -> ibis.Table:
        """Load a small table from memory, such as a code list."""

    def store(self, table: ibis.Table) -> ibis.Table:
        """Compute once and keep the result on the confidential side."""

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        """Fetch rows, in the order of the expression: for results that are small on any data."""

    def with_priorities(self, table: ibis.Table, columns: Sequence[str], name: str, secret: Secret) -> ibis.Table:
        """The table with one more column: a keyed pseudo-random int64 (PRF) of each row's values."""

    def map(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> ibis.Table:
        """Apply a kernel to every span of a table, occupied or not; the result stays in the engine."""

    def gather(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> Iterator[pa.RecordBatch]:
        """As `map`, but fetched, with spans in any order: for kernels that return a few rows per span."""


@contextmanager
def open_engine(spec: EngineSpec, session: Any = None) -> Iterator[Engine]:
    """Open DuckDB in this process, or Spark on an existing session or a new one."""
    if spec == "duckdb" and session is None:
        from discreet.engine.duckdb import duckdb_engine

        with duckdb_engine() as engine:
            yield engine
        return
    from discreet.engine.spark import spark_engine

    with spark_engine(None if spec == "duckdb" else spec, session) as engine:
        yield engine
