"""Confidential records from where they lie: Parquet, CSV, SAS, Stata, DuckDB, PostgreSQL, any Arrow frame.

Only the wanted columns are read, by their exact names. How a value is read depends on the declared types and on the
value, never on another record; what it becomes is decided by the intake, the same for every source.
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
    """Some rows of a source. It may be pickled, and read on another machine."""

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """These columns, by their exact names and in this order; without any, batches that count the rows.
        Those that `repeated` names have few values: a reader may hand them over as dictionaries."""


class Reader(Piece):
    """A piece whose library may fail anywhere: what fails is told without its message, which may quote a record."""

    faults: ClassVar[tuple[type[BaseException], ...]] = (Exception,)
    failure: ClassVar[str]
    remedy: ClassVar[str] = "check the file"
    where: str  # the source, as errors name it

    @abstractmethod
    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:
        """As `read`, with the library's own failures."""

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        batches = self.batches(list(columns), repeated)
        while (batch := self.redact(lambda: next(batches, None), self.where)) is not None:
            yield batch

    @classmethod
    def redact(cls, call: Callable[[], T], where: str) -> T:
        return redact(call, cls.faults, cls.failure, where, cls.remedy)


@dataclass(frozen=True)
class Scan:
    """A source that was opened: which columns it has, of which types, and the pieces that its rows come in."""

    where: str
    kinds: Mapping[str, frozenset[pa.DataType]]  # one type for each column, or several where files differ
    pieces: Sequence[Piece]
    unreadable: dict[str, int] = field(default_factory=dict)  # lines that are no records, by file, once it was read
    unclosed: dict[str, int] = field(default_factory=dict, kw_only=True)  # those of them that end inside an open quote
    uncoded: Callable[[Collection[str]], Scan] | None = field(default=None, kw_only=True, repr=False)

    @classmethod
    def of(cls, where: str, files: Sequence[Mapping[str, pa.DataType]], pieces: Sequence[Piece]) -> Scan:
        """The columns that all files have, by the types that each has."""
        common = [name for name in files[0] if all(name in other for other in files)]
        return cls(where, {name: frozenset(file[name] for file in files) for name in common}, pieces)

    def as_codes(self, columns: Collection[str]) -> Scan:
        """The same source, without labels in the place of some columns' codes."""
        return self if self.uncoded is None else self.uncoded(columns)


def second_read_error(where: str) -> EngineError:
    """What an engine says instead of reading a source again: it may have changed, and two tables, or two steps of one,
    would be of different records."""
    return EngineError(
        "would be read a second time", where=where, do="report this: a fault of discreet's, not of the records"
    )


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """Rows of which no column is wanted."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"])


def redact(
    call: Callable[[], T],
    kinds: tuple[type[BaseException], ...],
    what: str,
    where: str,
    do: str,
    refusal: type[SourceError] = SourceError,
) -> T:
    """call(), its failures told as «`what` (kind)». Raised after the handler has ended, so that not even the
    exception's context leads back to the message."""
    try:
        return call()
    except SourceError:
        raise
    except kinds as error:
        kind = type(error).__name__
    raise refusal(f"{what} ({kind})", where=where, do=do)


# --- types that Arrow has no word for: a column is refused under the name that its source gives them ------------------


class UnsupportedType(pa.ExtensionType):
    """A type that a reader would have to change: no column of it is used."""

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

    def __ne__(self, other: object) -> bool:  # Arrow has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), self._kind))

    def __str__(self) -> str:
        return self._kind


class DecimalText(UnsupportedType):
    """Decimals of any scale, handed over as texts: they are numbers, but one is written in several ways."""


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
