"""DuckDB relations on a connection of the caller, and Ibis tables.

A relation is computed when it is read, and only its wanted columns: no value of another column can make it fail. Texts
have 64-bit offsets, because 32-bit offsets end at 2 GiB.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from discreet.engine.readers import BATCH_ROWS, duckdb_table, redact, rows_without_columns

# A connection refuses concurrent calls, and it is unknown which relations share one.
_ONE_AT_A_TIME = threading.Lock()
_SETTING = "arrow_large_buffer_size"


@dataclass(frozen=True)
class Relation:
    """A relation. It is fetched as a whole, because its connection can do nothing else meanwhile."""

    relation: duckdb.DuckDBPyRelation
    where: str
    owner: Any = None  # kept alive: tables that Ibis registered are dropped with it

    def columns(self) -> list[tuple[str, pa.DataType]]:
        """Column names and types; types that Arrow cannot represent exactly keep their own names."""
        unsupported = duckdb_table.unsupported(self.relation)
        empty = self._fetched(self.relation.limit(0), self.relation.columns)
        return [(field.name, unsupported.get(field.name, field.type)) for field in empty.schema]

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        table = redact(
            lambda: self._fetched(self.relation, columns),
            (Exception,),
            "cannot be read from its DuckDB connection",
            self.where,
            "check that it can be computed, and that no other result of the connection is open",
        )
        for batch in table.to_batches():
            yield batch if columns else rows_without_columns(batch.num_rows)

    def _fetched(self, relation: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> pa.Table:
        chosen = ", ".join(duckdb_table.selected(relation, columns)) or "1 AS one"
        with _ONE_AT_A_TIME, _large_buffers(relation):
            fetched: pa.Table = relation.project(chosen).to_arrow_table(BATCH_ROWS)
            return fetched


@contextmanager
def _large_buffers(relation: duckdb.DuckDBPyRelation) -> Iterator[None]:
    """Change the setting of the caller's database while a relation of it is computed."""
    ((before,),) = relation.query("discreet", f"SELECT current_setting('{_SETTING}')").fetchall()
    if before:
        yield
        return
    relation.query("discreet", f"SET {_SETTING} = true")
    try:
        yield
    finally:
        relation.query("discreet", f"SET {_SETTING} = false")


def of_ibis(table: Any) -> Any:
    """The native frame of an Ibis table's backend: a DuckDB relation, or a Polars lazy frame. Ibis's own conversion has
    32-bit offsets."""
    backend = table.get_backend()
    backend._run_pre_execute_hooks(table)  # public tables that it mentions
    if backend.name == "polars":
        lazy = backend.compile(table)
        return lazy.rename(dict(zip(lazy.collect_schema().names(), table.columns, strict=True)))  # as Ibis has to
    relation = backend.con.sql(backend.compile(table))
    # A sum of integers has 128 bits in DuckDB and 64 in Ibis: one that does not fit is missing.
    to_string = backend.compiler.type_mapper.to_string
    narrow = {
        name: to_string(kind)
        for name, kind, own in zip(table.columns, table.schema().types, relation.types, strict=True)
        if kind.is_integer() and own.id in ("hugeint", "uhugeint")
    }
    if not narrow:
        return relation
    names = {name: duckdb_table.quoted(name) for name in relation.columns}
    chosen = (f"TRY_CAST({q} AS {narrow[n]}) AS {q}" if n in narrow else q for n, q in names.items())
    return relation.project(", ".join(chosen))
