"""Tables of DuckDB files, streamed through Arrow. Column types are checked before any row is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from discreet.engine.readers import BATCH_ROWS, Reader, Scan, UnsupportedType, rows_without_columns
from discreet.errors import SourceError
from discreet.spec import DuckDBSource

# DuckDB's types that Arrow has, too; further ones can be converted to text without merging values.
_AS_IT_IS = {
    "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float",
    "double", "varchar", "date", "decimal",
}  # fmt: skip
_AS_TEXT = {"enum", "uuid"}


def scan(source: DuckDBSource, base: Path) -> Scan:
    """Open a table of a DuckDB file. A type without lossless equivalent in Arrow keeps its own name, and is refused."""
    where, path = f"source {source.duckdb}, table {source.table}", base / source.duckdb
    if not path.is_file():
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")
    table = DuckDBTable(str(path), source.table, where)
    return Scan.of(where, [table.kinds()], [table])


@dataclass(frozen=True)
class DuckDBTable(Reader):
    """One table, opened read-only."""

    failure = "is not readable as a table of a DuckDB database"
    remedy = "check the table's name, and that no other process has the database open for writing"

    path: str
    table: str
    where: str

    def _connected(self) -> duckdb.DuckDBPyConnection:
        settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        connection = duckdb.connect(self.path, read_only=True, config=settings)
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET arrow_large_buffer_size = true")
        return connection

    @property
    def _name(self) -> str:
        schema, _, name = self.table.rpartition(".")
        return f"{quoted(schema or 'main')}.{quoted(name)}"

    def kinds(self) -> dict[str, pa.DataType]:
        def types() -> dict[str, pa.DataType]:
            with self._connected() as connection:
                relation = self._relation(connection)
                empty = relation.limit(0).project(", ".join(selected(relation, relation.columns))).to_arrow_table()
                return {field.name: field.type for field in empty.schema} | unsupported(relation)

        return self.redact(types, self.where)

    def _relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        return connection.sql(f"SELECT * FROM {self._name}")  # noqa: S608 - quoted above

    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        with self._connected() as connection:
            relation = self._relation(connection)
            chosen = ", ".join(selected(relation, columns)) or "1 AS one"
            reader = relation.project(chosen).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                yield batch if columns else rows_without_columns(batch.num_rows)


def selected(relation: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> list[str]:
    """Columns as expressions that Arrow can represent; others are null."""
    types, without = dict(zip(relation.columns, relation.types, strict=True)), unsupported(relation)
    as_text = {name for name, kind in types.items() if kind.id in _AS_TEXT}
    values = {name: f"CAST({quoted(name)} AS VARCHAR)" if name in as_text else quoted(name) for name in types}
    return [f"{'NULL' if name in without else values[name]} AS {quoted(name)}" for name in columns]


def unsupported(relation: duckdb.DuckDBPyRelation) -> dict[str, pa.DataType]:
    """The columns that Arrow cannot represent exactly: a HUGEINT becomes a decimal, and 2^128 - 1 becomes -1."""
    return {
        name: UnsupportedType(str(kind))
        for name, kind in zip(relation.columns, relation.types, strict=True)
        if kind.id not in _AS_IT_IS | _AS_TEXT or str(kind) == "JSON"
    }


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
