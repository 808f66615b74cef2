"""Confidential records from where they lie: Parquet, CSV, SAS, Stata, DuckDB, PostgreSQL, any Arrow frame.

Only the wanted columns are read, by their exact names. How a value is read depends on the declared types and on the
value, never on another record; what it becomes is decided by the intake, the same for every source.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal, cast

from discreet.engine.scan import Scan
from discreet.errors import SourceError
from discreet.spec import DuckDBSource, FileSource, PostgresSource

_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".csv.gz": "csv", ".tsv.gz": "csv", ".txt.gz": "csv", ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip
UNPACK = "unpack it; CSV is also read packed by gzip, as .csv.gz"
_PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".lz4", ".lzma", ".rar", ".tar", ".tgz", ".z"}


def open_source(source: Any, base: Path) -> Scan:
    """A declared source, or a frame, opened: columns and types are known, no record has been read."""
    match source:  # only the reader that is needed is loaded, and its library
        case FileSource():
            return _files(source, base)
        case DuckDBSource():
            from discreet.engine.readers import duckdb_table

            return duckdb_table.scan(source, base)
        case PostgresSource():
            from discreet.engine.readers import postgres

            return postgres.scan(source)
        case _:
            from discreet.engine.readers import frames

            return frames.scan(source)


def _files(source: FileSource, base: Path) -> Scan:
    where = f"source {source.path}"
    paths, kind = find(base / source.path, source.format, where)
    if kind == "parquet":
        from discreet.engine.readers import parquet

        return parquet.scan(paths, where)
    if kind == "csv":
        from discreet.engine.readers import csvfile

        return csvfile.scan(paths, source.delimiter, where)
    from discreet.engine.readers import statistical

    catalog = None if source.catalog is None else base / source.catalog
    return statistical.scan(paths, cast(Literal["sas", "stata"], kind), source.labels == "text", catalog)


def find(path: Path, kind: str | None, where: str) -> tuple[list[Path], str]:
    """The files behind a path, folder or glob, in name order, and their common format."""
    if path.is_dir():
        found = [p for p in sorted(path.rglob("*")) if p.is_file() and is_data(p.relative_to(path).parts)]
    elif path.is_file():
        found = [path]
    else:
        said = [part for part in path.parts if part.startswith((".", "_"))]
        listed = (Path(p) for p in sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207
        found = [p for p in listed if p.is_file() and is_data(p.parts, said)]
    if not found:
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")
    for each in found:
        _refuse_packed(each, kind or _format(each), where)
    kinds = {kind or _format(p) for p in found}
    if len(kinds) != 1 or None in kinds:
        raise SourceError(
            "cannot tell the format" if None in kinds else "mixes several formats",
            where=where,
            do="name it with `format:` parquet, csv, sas or stata",
        )
    return found, str(kinds.pop())


def is_data(parts: Sequence[str], said: Sequence[str] = ()) -> bool:
    """Not left there by a program, `_temporary/`, `_SUCCESS`, `.ipynb_checkpoints/`, unless the declaration says so."""
    odd = (part for part in parts if part.startswith((".", "_")))
    return all(any(fnmatch(part, pattern) for pattern in said) for part in odd)


def _format(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def _refuse_packed(path: Path, kind: str | None, where: str) -> None:
    ending = path.suffix.lower()
    if ending in _PACKED and (ending, kind) != (".gz", "csv"):
        raise SourceError(f"{path.name} is packed as {ending}", where=where, do=UNPACK)
