"""The embedded engine: DuckDB through Ibis, spilling only into the private workspace."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
from ibis.common.exceptions import IbisError

from discreet.engine.intake.parallel import ingest_pieces
from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Scan, open_source, redact, second_read_error
from discreet.engine.spans import CELL, Ascending, Kernel, Progress, Spans, no_progress
from discreet.engine.workspace import workspace
from discreet.errors import DiscreetError, EngineError
from discreet.noise.key import Secret
from discreet.noise.stream import Stream

BATCH_ROWS = 1 << 18
MEMORY_ENVIRONMENT = "DISCREET_MEMORY"
SMALL = 4  # batches of a table that is kept in memory between two passes
T = TypeVar("T")


class DuckDBEngine:
    """An in-memory database, configured not to download extensions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("spill", "tables"):  # DuckDB's files, and ours
            (folder / name).mkdir(mode=0o700)
        self._backend: Any = ibis.duckdb.connect(
            temp_directory=str(folder / "spill"),
            temp_file_encryption=True,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
        )
        # DuckDB's own cipher, without which it cannot spill. DuckDB does not consider its key generator secure, so the
        # protection is that of the private folder (operations.md).
        self._backend.con.execute("SET force_mbedtls_unsafe = true")
        if limit := os.environ.get(MEMORY_ENVIRONMENT):
            self._limit(limit)
        self._backend.con.execute("SET enable_progress_bar = false")  # it would write to standard output
        self._backend.con.execute("SET arrow_large_buffer_size = true")  # texts of any length
        self._names, self._files = count(), count()
        self._small: dict[Any, list[pa.RecordBatch]] = {}
        self._scans: list[Scan] = []
        self._refusals: list[DiscreetError] = []
        self._halt = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1)

    def _limit(self, size: str) -> None:
        """Limit the memory for tables; beyond it they spill to the private folder."""
        if not re.fullmatch(r"[1-9][0-9]{0,5}(\.[0-9]{1,3})? ?[MGT]i?B", size):
            raise EngineError(
                f"{size!r} is not a memory size",
                where=MEMORY_ENVIRONMENT,
                do="write it like 4GB or 512MiB, or unset it",
            )
        self._backend.con.execute(f"SET memory_limit = '{size}'")

    @property
    def unreadable(self) -> int:
        return sum(sum(scan.unreadable.values()) for scan in self._scans)

    @property
    def unclosed(self) -> int:
        """How many of these lines end inside an open quote."""
        return sum(sum(scan.unclosed.values()) for scan in self._scans)

    def open(self, source: Any, base: Path, wanted: Collection[str] = ()) -> Scan:  # noqa: ARG002 - the reader reads only wanted columns
        self._scans.append(open_source(source, base))
        return self._scans[-1]

    def ingest(self, scan: Scan, intake: Intake) -> ibis.Table:
        name = self._name()
        self._backend.con.register(name, _SingleReading(scan, intake, self._refusals, self._halt))
        return self._table(name)

    def check_unchanged(self) -> None:
        """Nothing is read twice: a second reading is refused."""

    def load_table(self, table: pa.Table) -> ibis.Table:
        return ibis.memtable(table)

    def _table(self, name: str) -> ibis.Table:
        table: ibis.Table = self._backend.table(name)
        return table

    def store(self, table: ibis.Table) -> ibis.Table:
        name = self._name()
        self._run_redacted(lambda: self._create(name, table))
        return self._table(name)

    def _create(self, name: str, table: ibis.Table) -> None:
        """In one statement: Ibis's create_table uses three, and is a fifth slower on a small table."""
        self._backend._run_pre_execute_hooks(table)
        # The casts are for sums, which have 128 bits in DuckDB and are int64 in Ibis.
        cast = self._backend.compiler.type_mapper.to_string
        columns = ", ".join(f"CAST({_quoted(c)} AS {cast(kind)}) AS {_quoted(c)}" for c, kind in table.schema().items())
        query = f"SELECT {columns} FROM ({self._backend.compile(table)})"  # noqa: S608 - names are quoted
        self._backend.con.execute(f"CREATE TEMP TABLE {name} AS {query}")

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        # Ibis 12 streams by a method that DuckDB 2 has renamed.
        self._backend._run_pre_execute_hooks(table)  # registers the public tables and functions it refers to
        sql = self._backend.compile(table)
        reader = self._run_redacted(lambda: self._backend.con.sql(sql).to_arrow_reader(BATCH_ROWS))
        while (batch := self._run_redacted(lambda: next(reader, None))) is not None:
            yield batch

    def with_priorities(self, table: ibis.Table, columns: Sequence[str], name: str, secret: Secret) -> ibis.Table:
        from discreet.noise.prf import priorities

        key = secret.expose()

        def priority(*values: pa.ChunkedArray) -> pa.Array:
            return priorities(key, values)

        # The key is in this closure, never in the text of a query. Ibis expects one parameter per column.
        priority.__name__ = self._name()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([inspect.Parameter(f"column_{i}", kind) for i in range(len(columns))])
        priority.__signature__ = signature  # type: ignore[attr-defined]
        inputs = tuple(table[column].type() for column in columns)
        udf = ibis.udf.scalar.pyarrow(priority, signature=(inputs, "int64"), null_handling="special")
        return table.mutate(**{name: udf(*(table[column] for column in columns))})

    def map(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> ibis.Table:
        target = self.folder / "tables" / f"{next(self._files)}.parquet"
        target.touch(mode=0o600)
        # Without statistics: no predicate on a value may be evaluated for many rows at once.
        with pq.ParquetWriter(target, kernel.schema, write_statistics=False) as writer:
            for batch in self.gather(table, spans, kernel, secret, progress):
                writer.write_batch(batch)
        stored: ibis.Table = self._backend.read_parquet(str(target))
        return stored

    def gather(
        self,
        table: ibis.Table,
        spans: Spans,
        kernel: Kernel,
        secret: Secret | None = None,
        progress: Progress = no_progress,
    ) -> Iterator[pa.RecordBatch]:
        stream = None if secret is None else Stream.from_secret(secret.expose())
        rows = Ascending(self._ordered(table))
        for span in spans:
            own = rows.until(span.end)
            yield from kernel(span, own, stream)
            for _ in own:  # a kernel need not read all rows
                pass
            progress(span.number + 1, len(spans))

    def _ordered(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        """A table in cell order; a small one is queried only once."""
        if (known := self._small.get(table.op())) is not None:
            yield from known
            return
        small: list[pa.RecordBatch] | None = []
        for batch in self.batches(table.order_by([CELL, *(c for c in table.columns if c != CELL)])):
            yield batch
            small = [*small, batch] if small is not None and len(small) < SMALL else None
        if small is not None:
            self._small[table.op()] = small

    def close(self) -> None:
        self._thread.shutdown()
        self._backend.disconnect()

    def _run_redacted(self, call: Callable[[], T]) -> T:
        """call(), in a separate thread so that Ctrl-C is handled meanwhile; error messages are redacted."""
        future = self._thread.submit(call)
        try:
            wait([future])
        except BaseException:
            self._halt.set()
            self._backend.con.interrupt()
            wait([future])
            raise
        try:
            return redact(
                future.result,
                (duckdb.Error, pa.ArrowException, IbisError),
                "could not be computed; the engine's message is redacted because it may quote confidential values",
                "source",
                "check that it is complete and of the declared types",
                EngineError,
            )
        except EngineError:
            if not self._refusals:
                raise
        refusal = self._refusals.pop()  # our own error, which DuckDB has wrapped in another
        raise refusal

    def _name(self) -> str:
        return f"discreet_{next(self._names)}"


@dataclass(frozen=True)
class _SingleReading:
    """Derived columns as a stream that DuckDB requests in every query and receives once: a second reading might find
    other records. DuckDB pushes nothing into such a stream except the selection of columns."""

    scan: Scan
    intake: Intake
    refusals: list[DiscreetError]
    halt: threading.Event
    once: threading.Lock = field(default_factory=threading.Lock)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self.intake.schema, self._batches()).__arrow_c_stream__(
            requested_schema
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            if not self.once.acquire(blocking=False):
                raise second_read_error(self.scan.where)
            yield from ingest_pieces(self.intake, self.scan.pieces, self.halt)
        except DiscreetError as error:
            self.refusals.append(error)
            raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def duckdb_engine() -> Iterator[DuckDBEngine]:
    """An engine and its private folder, both removed afterwards."""
    with workspace() as folder:
        engine = DuckDBEngine(folder)
        try:
            yield engine
        finally:
            with contextlib.suppress(duckdb.Error):
                engine.close()
