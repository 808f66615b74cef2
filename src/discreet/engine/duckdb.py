"""The embedded engine: DuckDB through Ibis, spilling only into the private workspace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import ibis
import numpy as np
import pyarrow as pa
from ibis.common.exceptions import IbisError

from discreet.engine import readers
from discreet.engine.withhold import withhold
from discreet.engine.workspace import workspace
from discreet.errors import EngineError
from discreet.noise.prf import siphash_text

BATCH_ROWS = 1 << 18
T = TypeVar("T")


class DuckDBEngine:
    """One in-memory database; `SET` closes it to the network and to extensions that would be fetched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._backend: Any = ibis.duckdb.connect(
            temp_directory=str(folder),
            temp_file_encryption=True,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
        )
        self._backend.con.execute("SET enable_progress_bar = false")  # it would write to standard output
        self._backend.con.execute("SET arrow_large_buffer_size = true")  # texts of any length
        self._names = count()
        self.unreadable = 0

    def read(self, source: Any, base: Path, wanted: Sequence[str], clean: bool = False) -> ibis.Table:
        table, self.unreadable = readers.read(self._backend, source, base, self.folder, wanted, clean)
        return table

    def public(self, table: pa.Table) -> ibis.Table:
        return ibis.memtable(table)

    def store(self, table: ibis.Table) -> ibis.Table:
        name = self._name()
        _discreetly(lambda: self._create(name, table))
        return self._backend.table(name)

    def _create(self, name: str, table: ibis.Table) -> None:
        """Ibis's create_table declares, inserts and renames; one statement is a fifth faster on a small table."""
        self._backend._run_pre_execute_hooks(table)
        # The casts are for sums, which DuckDB makes 128 bits wide and Ibis takes for int64.
        cast = self._backend.compiler.type_mapper.to_string
        columns = ", ".join(f"CAST({_quoted(c)} AS {cast(kind)}) AS {_quoted(c)}" for c, kind in table.schema().items())
        query = f"SELECT {columns} FROM ({self._backend.compile(table)})"  # noqa: S608 - names are quoted
        self._backend.con.execute(f"CREATE TEMP TABLE {name} AS {query}")

    def batches(self, table: ibis.Table) -> Iterator[pa.RecordBatch]:
        # Ibis 12 streams through a method that DuckDB 2 renamed.
        sql = self._backend.compile(table)
        reader = _discreetly(lambda: self._backend.con.sql(sql).to_arrow_reader(BATCH_ROWS))
        while (batch := _discreetly(lambda: next(reader, None))) is not None:
            yield batch

    def priority(self, text: ibis.Value, key: bytes) -> ibis.Value:
        def siphash(texts: pa.Array) -> pa.Array:
            return pa.array(siphash_text(key, texts).view(np.int64))

        # The key lives in this closure, never in the text of a query.
        siphash.__name__ = self._name()
        return ibis.udf.scalar.pyarrow(siphash, signature=(("string",), "int64"))(text)

    def close(self) -> None:
        self._backend.disconnect()

    def _name(self) -> str:
        return f"discreet_{next(self._names)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def duckdb_engine() -> Iterator[DuckDBEngine]:
    """An engine and its private folder; both are gone afterwards."""
    with workspace() as folder:
        engine = DuckDBEngine(folder)
        try:
            yield engine
        finally:
            with contextlib.suppress(Exception):
                engine.close()


def _discreetly(call: Callable[[], T]) -> T:
    return withhold(
        call,
        (duckdb.Error, pa.ArrowException, IbisError),
        "could not be computed; the engine's message is withheld, for it may quote confidential values",
        "source",
        "check that it is complete and of the declared types",
        EngineError,
    )
