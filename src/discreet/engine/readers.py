"""Confidential records from where they lie: Parquet, CSV, SAS, Stata, DuckDB, PostgreSQL, any Arrow frame.

Formats that DuckDB cannot scan itself are converted in pieces to Parquet in the private workspace.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engine import csvfile
from discreet.errors import SourceError
from discreet.spec import DuckDBSource, FileSource, PostgresSource, Source

if TYPE_CHECKING:
    import ibis

CHUNK_ROWS = 200_000
_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".txt": "csv",
    ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip


def read(backend: Any, source: Source | Any, base: Path, workspace: Path) -> tuple[ibis.Table, int]:
    """The source as a lazy table of the DuckDB backend, and how many unreadable lines were left out of it."""
    match source:
        case FileSource():
            return _file(backend, source, base, workspace)
        case DuckDBSource():
            return _duckdb(backend, source, base), 0
        case PostgresSource():
            return _parquet(backend, [_postgres(source, workspace)], f"table {source.table}"), 0
        case _:
            return _frame(backend, source), 0


def _file(backend: Any, source: FileSource, base: Path, workspace: Path) -> tuple[ibis.Table, int]:
    where, left_out = f"source {source.path}", 0
    paths, kind = _find(base / source.path, source.format, where)
    if kind == "csv":
        paths, left_out = _csv(paths, source, workspace, where)
    elif kind != "parquet":
        paths = [_statistical(path, kind, source, base, workspace) for path in paths]
    return _parquet(backend, paths, where), left_out


def _find(path: Path, kind: str | None, where: str) -> tuple[list[Path], str]:
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


def _parquet(backend: Any, paths: list[Path], where: str) -> ibis.Table:
    try:
        for path in paths:
            pq.read_schema(path)  # DuckDB's own message would quote bytes of the file
        return backend.read_parquet([str(p) for p in paths])
    except Exception as error:
        raise SourceError(
            f"is not readable as Parquet ({type(error).__name__})", where=where, do="check the file"
        ) from None


def _csv(paths: list[Path], source: FileSource, workspace: Path, where: str) -> tuple[list[Path], int]:
    """Each file as Parquet, and how many lines were left out."""
    targets, left_out = [], 0
    for path in paths:
        delimiter = source.delimiter or ("\t" if path.name.lower().endswith(".tsv") else ",")
        targets.append(_target(workspace, path))
        left_out += csvfile.to_parquet(path, delimiter, targets[-1], where)
    return targets, left_out


def _target(workspace: Path, path: Path) -> Path:
    return workspace / f"{path.name}-{len(list(workspace.iterdir()))}.parquet"


def _statistical(path: Path, kind: str, source: FileSource, base: Path, workspace: Path) -> Path:
    """SAS or Stata → Parquet, in pieces."""
    import pyreadstat

    options: dict[str, Any] = {}
    if source.catalog is not None:
        options["catalog_file"] = str(base / source.catalog)
    reader = pyreadstat.read_sas7bdat if kind == "sas" else pyreadstat.read_dta
    target = _target(workspace, path)
    try:
        _, meta = reader(str(path), metadataonly=True, **options)
        labels = meta.variable_value_labels if source.labels == "text" else {}
        schema = pa.schema([(name, _arrow_type(meta, name, labels)) for name in meta.column_names])
        pieces = pyreadstat.read_file_in_chunks(reader, str(path), chunksize=CHUNK_ROWS, output_format="dict")
        _write(target, (_piece(columns, schema, labels) for columns, _ in pieces), schema)
    except (pyreadstat.ReadstatError, OSError, pa.ArrowException, ValueError) as error:
        raise SourceError(
            f"is not readable as {'SAS' if kind == 'sas' else 'Stata'} ({type(error).__name__})",
            where=f"source {source.path}",
            do="check the file",
        ) from None
    return target


def _arrow_type(meta: Any, name: str, labels: dict[str, Any]) -> pa.DataType:
    declared = meta.readstat_variable_types[name]
    if declared == "string" or name in labels:
        return pa.string()
    return pa.float64() if declared in ("double", "float") else pa.int64()


def _piece(columns: dict[str, Any], schema: pa.Schema, labels: dict[str, Any]) -> pa.RecordBatch:
    arrays = [_column(columns[field.name], field.type, labels.get(field.name, {})) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Any, kind: pa.DataType, labels: dict[Any, str]) -> pa.Array:
    if kind == pa.string():  # a blank is how these formats write a missing text
        texts = (labels.get(value, value) for value in values)
        return pa.array([None if text is None or text == "" else str(text) for text in texts], pa.string())
    return pa.array(values, from_pandas=True).cast(kind, safe=False)


def _duckdb(backend: Any, source: DuckDBSource, base: Path) -> ibis.Table:
    where, path = f"source {source.duckdb}, table {source.table}", base / source.duckdb
    if not path.is_file():
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")
    try:
        backend.attach(str(path), "confidential_source", read_only=True)
        schema, _, table = source.table.rpartition(".")
        return backend.table(table, database=("confidential_source", schema or "main"))
    except Exception as error:
        raise SourceError(
            f"is not readable as a table of a DuckDB database ({type(error).__name__})",
            where=where,
            do="check the table's name, and that no other process has the database open for writing",
        ) from None


def _postgres(source: PostgresSource, workspace: Path) -> Path:
    """A PostgreSQL table, streamed through Arrow into the workspace within one snapshot."""
    where = f"source table {source.table}"
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError("needs the PostgreSQL driver", where=where, do="pip install 'discreet[postgres]'") from None
    target = workspace / "postgres.parquet"
    name = ".".join('"' + part.replace('"', '""') + '"' for part in source.table.split("."))
    try:
        with dbapi.connect(source.postgres) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")  # noqa: S608 - the identifier is quoted above
            reader = cursor.fetch_record_batch()
            _write(target, reader, reader.schema)
    except dbapi.Error as error:
        raise SourceError(
            f"cannot be read from PostgreSQL ({type(error).__name__})",
            where=where,
            do="check the connection and the table's name",
        ) from None
    return target


def _write(target: Path, batches: Iterator[pa.RecordBatch] | pa.RecordBatchReader, schema: pa.Schema) -> None:
    target.touch(mode=0o600)
    with pq.ParquetWriter(target, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _arrow(frame: Any) -> pa.Table:
    """As Arrow. A pandas column of mixed types, which Arrow refuses, becomes text."""
    try:
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if not hasattr(frame, "items") or not hasattr(frame, "isna"):
            raise
    return pa.table({str(name): _mixed(column) for name, column in frame.items()})


def _mixed(column: Any) -> pa.Array:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        missing = column.isna()
        return pa.array([None if m else str(v) for v, m in zip(column, missing, strict=True)], pa.string())


def _frame(backend: Any, frame: Any) -> ibis.Table:
    """Any Arrow-speaking frame: Polars, pandas, PyArrow, DuckDB relations, Ibis tables."""
    try:
        if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
            frame = frame.collect()  # a lazy frame
        if hasattr(frame, "to_pyarrow"):
            frame = frame.to_pyarrow()
        elif hasattr(frame, "to_arrow_table"):
            frame = frame.to_arrow_table()
        table = frame if isinstance(frame, pa.Table) else _arrow(frame)
    except Exception as error:
        raise SourceError(
            f"a {type(frame).__name__} does not speak Arrow ({type(error).__name__})",
            do="pass a path or a PyArrow, Polars, pandas or DuckDB table",
        ) from None
    return backend.create_table("confidential_frame", table, temp=True)
