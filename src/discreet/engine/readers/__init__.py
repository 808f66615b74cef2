"""Readers of confidential records: Parquet, CSV, SAS, Stata, DuckDB, PostgreSQL, any Arrow-compatible frame.

Only the wanted columns are read, by their exact names. How a value is read depends on the declared types and on the
value, never on another record; the intake then derives columns from it, in the same way for every source.
"""

from __future__ import annotations

import glob
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, cast

import pyarrow as pa

from discreet.errors import EngineError, SourceError
from discreet.spec import DuckDBSource, FileSource, PostgresSource

BATCH_ROWS = 1 << 18
T = TypeVar("T")


class Piece(Protocol):
    """Some rows of a source. A piece may be pickled, and read on another machine."""

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """These columns, by their exact names and in this order; without columns, batches with the number of rows.
        Columns in `repeated` have few different values: a reader may return them dictionary-encoded."""


class Reader(Piece):
    """A piece read by a library that may fail; its error messages are redacted because they may quote a record."""

    faults: ClassVar[tuple[type[BaseException], ...]] = (Exception,)
    failure: ClassVar[str]
    remedy: ClassVar[str] = "check the file"
    where: str  # the source, as errors name it

    @abstractmethod
    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:
        """As `read`, with the library's own exceptions."""

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        batches = self.batches(list(columns), repeated)
        while (batch := self.redact(lambda: next(batches, None), self.where)) is not None:
            yield batch

    @classmethod
    def redact(cls, call: Callable[[], T], where: str) -> T:
        return redact(call, cls.faults, cls.failure, where, cls.remedy)


@dataclass(frozen=True)
class Scan:
    """An opened source: its columns, their types, and the pieces that its rows are read in."""

    where: str
    kinds: Mapping[str, frozenset[pa.DataType]]  # one type for each column, or several where files differ
    pieces: Sequence[Piece]
    unreadable: dict[str, int] = field(
        default_factory=dict
    )  # lines that are not valid records, by file, once it was read
    unclosed: dict[str, int] = field(
        default_factory=dict, kw_only=True
    )  # of these, lines that end inside an open quote
    without_labels: Callable[[Collection[str]], Scan] | None = field(default=None, kw_only=True, repr=False)

    @classmethod
    def of(cls, where: str, files: Sequence[Mapping[str, pa.DataType]], pieces: Sequence[Piece]) -> Scan:
        """The columns that all files have, with the types that they have in these."""
        common = [name for name in files[0] if all(name in other for other in files)]
        return cls(where, {name: frozenset(file[name] for file in files) for name in common}, pieces)

    def as_codes(self, columns: Collection[str]) -> Scan:
        """The same source, with codes instead of labels in some columns."""
        return self if self.without_labels is None else self.without_labels(columns)


def second_read_error(where: str) -> EngineError:
    """The error instead of reading a source a second time: it may have changed, and two tables, or two steps of one,
    would be computed from different records."""
    return EngineError(
        "would be read a second time", where=where, do="report this: it is a bug in discreet, not in the records"
    )


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch with this many rows, when no column is wanted."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"])


def redact(
    call: Callable[[], T],
    kinds: tuple[type[BaseException], ...],
    what: str,
    where: str,
    do: str,
    refusal: type[SourceError] = SourceError,
) -> T:
    """call(), with failures reported as «`what` (exception class)». Raised after the handler has ended, so that not
    even the exception's context leads back to the original message."""
    try:
        return call()
    except SourceError:
        raise
    except kinds as error:
        kind = type(error).__name__
    raise refusal(f"{what} ({kind})", where=where, do=do)


# --- types that Arrow lacks: a column is refused under the name that its source gives the type ------------------------


class UnsupportedType(pa.ExtensionType):
    """A type that a reader would have to convert with losses: columns of it are refused."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        super().__init__(pa.null(), f"discreet.{type(self).__name__.lower()}")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._kind.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> Self:
        return cls(serialized.decode())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(other) == self._kind

    def __ne__(self, other: object) -> bool:  # Arrow defines its own
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), self._kind))

    def __str__(self) -> str:
        return self._kind


class DecimalText(UnsupportedType):
    """Decimals of any scale, returned as texts: numeric, but one number can be written in several ways."""


_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".csv.gz": "csv", ".tsv.gz": "csv", ".txt.gz": "csv", ".sas7bdat": "sas", ".dta": "stata",
}  # fmt: skip
DECOMPRESS = "decompress it; CSV may be compressed with gzip, as .csv.gz"
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".lz4", ".lzma", ".rar", ".tar", ".tgz", ".z"}


def open_source(source: Any, base: Path) -> Scan:
    """Open a declared source, or a frame: columns and types are known, no record has been read."""
    match source:  # only the reader that is needed is imported, and its library
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
    """The files of a path, folder or glob pattern, in name order, and their common format."""
    if path.is_dir():
        paths = [p for p in sorted(path.rglob("*")) if p.is_file() and is_data(p.relative_to(path).parts)]
    elif path.is_file():
        paths = [path]
    else:
        named = [part for part in path.parts if part.startswith((".", "_"))]
        listed = (Path(p) for p in sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207
        paths = [p for p in listed if p.is_file() and is_data(p.parts, named)]
    if not paths:
        raise SourceError("does not exist", where=where, do="check the path; it is relative to the release file")
    for each in paths:
        _refuse_compressed(each, kind or _format(each), where)
    kinds = {kind or _format(p) for p in paths}
    if len(kinds) != 1 or None in kinds:
        raise SourceError(
            "has an unknown file name extension" if None in kinds else "mixes several formats",
            where=where,
            do="declare `format:` parquet, csv, sas or stata",
        )
    return paths, str(kinds.pop())


def is_data(parts: Sequence[str], named: Sequence[str] = ()) -> bool:
    """Not a program's own file (`_temporary/`, `_SUCCESS`, `.ipynb_checkpoints/`), unless the declaration names it."""
    hidden = (part for part in parts if part.startswith((".", "_")))
    return all(any(fnmatch(part, pattern) for pattern in named) for part in hidden)


def _format(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def _refuse_compressed(path: Path, kind: str | None, where: str) -> None:
    ending = path.suffix.lower()
    if ending in _COMPRESSED and (ending, kind) != (".gz", "csv"):
        raise SourceError(f"{path.name} is compressed as {ending}", where=where, do=DECOMPRESS)
