"""Confidential records from where they lie: Parquet, CSV, SAS, Stata, DuckDB, PostgreSQL, any Arrow frame.

Only the wanted columns are read. What DuckDB cannot scan itself, or would read otherwise than a plain file, is
converted in pieces to Parquet in the private workspace. How a value is read depends on the declared types and on the
value, never on another record.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engine import csvfile, frames, statistical
from discreet.engine.withhold import withhold
from discreet.errors import SourceError
from discreet.spec import DuckDBSource, FileSource, PostgresSource, Source

if TYPE_CHECKING:
    import ibis

_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".txt": "csv",
    ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip


def read(
    backend: Any, source: Source | Any, base: Path, workspace: Path, wanted: Sequence[str], clean: bool = False
) -> tuple[ibis.Table, int]:
    """The wanted columns, as far as they are there, as a lazy table; and how many unreadable lines were left out."""
    match source:
        case FileSource():
            return _file(backend, source, base, workspace, wanted, clean)
        case DuckDBSource():
            target = _duckdb(backend, source, base, workspace, wanted)
            return _parquet(backend, [target], f"table {source.table}", wanted), 0
        case PostgresSource():
            return _parquet(backend, [_postgres(source, workspace)], f"table {source.table}", wanted), 0
        case _:
            target = numbered(workspace)
            table = frames.as_arrow(source, wanted)
            write(target, table.to_batches(), table.schema)
            return _parquet(backend, [target], "source frame", wanted), 0


def numbered(workspace: Path) -> Path:
    """A new file of the workspace: its name says nothing and means nothing to a glob."""
    return workspace / f"{len(list(workspace.iterdir()))}.parquet"


def write(target: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Parquet that only we can read."""
    target.touch(mode=0o600)
    with pq.ParquetWriter(target, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _file(
    backend: Any, source: FileSource, base: Path, workspace: Path, wanted: Sequence[str], clean: bool
) -> tuple[ibis.Table, int]:
    where, left_out = f"source {source.path}", 0
    paths, kind = find(base / source.path, source.format, where)
    if kind == "csv":
        converted = []
        for path in paths:
            delimiter = source.delimiter or ("\t" if path.name.lower().endswith(".tsv") else ",")
            converted.append(numbered(workspace))
            left_out += csvfile.to_parquet(path, delimiter, converted[-1], where)
        paths = converted
    elif kind == "parquet" and clean:
        paths = [_cleaned(path, numbered(workspace), wanted, where) for path in paths]
    elif kind != "parquet":
        catalog = None if source.catalog is None else base / source.catalog
        paths = [
            statistical.to_parquet(path, kind, numbered(workspace), wanted, source.labels == "text", catalog)
            for path in paths
        ]
    return _parquet(backend, paths, where, wanted), left_out


def find(path: Path, kind: str | None, where: str) -> tuple[list[Path], str]:
    """The files behind a path, folder or glob, in name order, and their common format."""
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
    elif path.is_file():
        found = [path]
    else:
        found = [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if Path(p).is_file()]  # noqa: PTH207
    if not found:
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")
    kinds = {kind or _format(p) for p in found}
    if len(kinds) != 1 or None in kinds:
        raise SourceError(
            "cannot tell the format" if None in kinds else "mixes several formats",
            where=where,
            do="name it with `format:` parquet, csv, sas or stata",
        )
    return found, str(kinds.pop())


def _format(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def _parquet(backend: Any, paths: list[Path], where: str, wanted: Sequence[str]) -> ibis.Table:
    """A scan of exactly these files: no second globbing, no columns made from folder names."""

    def scan() -> ibis.Table:
        first = types(paths, wanted, where)
        table = backend.read_parquet([_literal(path) for path in paths], hive_partitioning=False)
        names = pq.read_schema(paths[0]).names  # DuckDB renames what differs only in case
        columns = {name: table[table.columns[names.index(name)]] for name in first}
        # A column that was written without a type has nothing but nulls in it.
        columns |= {name: columns[name].cast("string") for name, kind in first.items() if pa.types.is_null(kind)}
        return table.select(**columns) if columns else table

    return withhold(scan, (Exception,), "is not readable as Parquet", where, "check the file")


def types(paths: Sequence[Path], wanted: Sequence[str], where: str) -> dict[str, pa.DataType]:
    """The types of the wanted columns, as far as they are there; refused if the files do not agree about them."""
    found = [pq.read_schema(path) for path in paths]
    each = [{name: schema.field(name).type for name in wanted if name in schema.names} for schema in found]
    if any(other != each[0] for other in each):
        raise SourceError("its files disagree about a column's type", where=where, do="write all files with one schema")
    return each[0]


def _cleaned(path: Path, target: Path, wanted: Sequence[str], where: str) -> Path:
    """A copy in which text that is not UTF-8 is missing: DuckDB would stop at it. Slower, and otherwise the same."""

    def copy() -> None:
        with pq.ParquetFile(path) as file:
            names = [name for name in wanted if name in file.schema_arrow.names] or file.schema_arrow.names[:1]
            target.touch(mode=0o600)
            writer = None
            for batch in (*file.iter_batches(columns=names), file.schema_arrow.empty_table().select(names)):
                table = frames.as_arrow(batch, names)
                writer = writer or pq.ParquetWriter(target, table.schema)
                writer.write_table(table)
            if writer is not None:
                writer.close()

    withhold(copy, (Exception,), "is not readable as Parquet", where, "check the file")
    return target


def _literal(path: Path) -> str:
    """A path in which DuckDB finds nothing to expand."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))


def _duckdb(backend: Any, source: DuckDBSource, base: Path, workspace: Path, wanted: Sequence[str]) -> Path:
    """One snapshot of a table, as Parquet: a view may answer differently each time, a collation merges codes."""
    where, path, target = f"source {source.duckdb}, table {source.table}", base / source.duckdb, numbered(workspace)
    if not path.is_file():
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")

    def copy() -> None:
        backend.attach(str(path), "confidential_source", read_only=True)
        try:
            schema, _, name = source.table.rpartition(".")
            table = backend.table(name, database=("confidential_source", schema or "main"))
            kept = [column for column in wanted if column in table.columns] or list(table.columns)
            target.touch(mode=0o600)
            backend.con.execute(f"COPY ({backend.compile(table.select(*kept))}) TO '{target}' (FORMAT parquet)")
        finally:
            backend.detach("confidential_source")  # another table of it may be read, or this one again

    withhold(
        copy,
        (Exception,),
        "is not readable as a table of a DuckDB database",
        where,
        "check the table's name, and that no other process has the database open for writing",
    )
    return target


def _postgres(source: PostgresSource, workspace: Path) -> Path:
    """A PostgreSQL table, streamed through Arrow into the workspace within one snapshot."""
    where, target = f"source table {source.table}", numbered(workspace)
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError("needs the PostgreSQL driver", where=where, do="pip install 'discreet[postgres]'") from None
    name = ".".join('"' + part.replace('"', '""') + '"' for part in source.table.split("."))

    def copy() -> None:
        with dbapi.connect(source.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")  # noqa: S608 - the identifier is quoted above
            reader = cursor.fetch_record_batch()
            write(target, reader, reader.schema)

    withhold(
        copy,
        (dbapi.Error, pa.ArrowException),
        "cannot be read from PostgreSQL",
        where,
        "check the connection and the table's name",
    )
    return target
