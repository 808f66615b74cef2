"""SAS and Stata files, in pieces, converted value by value.

Dates become 2026-01-31, other numbers stay as they are; codes stay codes unless labels are requested. An empty text is
missing in these formats. The library fails on a file if one text is not in the file's encoding, so files are opened as
Latin-1, where each byte is a character, and every text is decoded here on its own; an invalid one is missing.
"""

from __future__ import annotations

import codecs
import datetime as dt
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from discreet.engine.intake import normalise
from discreet.engine.readers import Scan, UnsupportedType, redact, rows_without_columns
from discreet.engine.readers.objects import objects
from discreet.errors import SourceError

T = TypeVar("T")
Kind = Literal["sas", "stata"]
CHUNK_ROWS = 200_000
_EPOCH = dt.date(1960, 1, 1)  # of both formats
_DATES = re.compile(r"%(td|d)|(DATE(?!TIME|AMPM)|DDMMYY|MMDDYY|YYMMDD|WEEKDAT[EX]|(E8601|B8601|IS8601)DA)")
_BYTES = "LATIN1"  # every byte is one character
_NAMES = {"BIG-5": "big5", "WINDOWS-936": "gbk"}  # of encodings, in Python


def scan(paths: Sequence[Path], kind: Kind, labelled: bool, catalog: Path | None) -> Scan:
    """Open these files."""
    return _together([StatisticalFile.opened(path, kind, labelled, catalog) for path in paths])


def _together(files: Sequence[StatisticalFile]) -> Scan:
    def without_labels(columns: Collection[str]) -> Scan:
        return _together([file.without_labels(columns) for file in files])

    return replace(Scan.of(files[0].where, [file.kinds for file in files], files), without_labels=without_labels)


@dataclass(frozen=True)
class StatisticalFile:
    """One file, with its metadata about columns."""

    path: Path
    kind: Kind
    encoding: str
    rows: int
    names: Mapping[str, str]  # each as the library's raw name
    kinds: Mapping[str, pa.DataType]
    codes: Mapping[str, pa.DataType]  # types of labelled columns, without labels
    labels: Mapping[str, Mapping[Any, str | None]]
    dates: frozenset[str]

    @classmethod
    def opened(cls, path: Path, kind: Kind, labelled: bool, catalog: Path | None) -> StatisticalFile:
        return _redact(lambda: cls._opened(path, kind, labelled, catalog), kind, path)

    @classmethod
    def _opened(cls, path: Path, kind: Kind, labelled: bool, catalog: Path | None) -> StatisticalFile:
        encoding = _encoding(path, kind)
        _, meta = _reader(kind)(str(path), metadataonly=True, output_format="dict", encoding=_BYTES)
        names = {_decoded(name, encoding): name for name in meta.column_names}
        known = {name: raw for name, raw in names.items() if name is not None}
        if len(known) < len(meta.column_names):
            where = f"source {path.name}"
            raise SourceError(f"has a column whose name is not encoded in {encoding}", where=where, do="rename it")
        labels = {}
        if labelled:
            every = _labels(meta, encoding, catalog)
            labels = {name: every[raw] for name, raw in known.items() if every.get(raw)}
        dates = frozenset(name for name, raw in known.items() if _is_date(meta, raw))
        kinds = {name: _type(meta, raw, name in labels or name in dates) for name, raw in known.items()}
        codes = {name: _type(meta, known[name], name in dates) for name in labels}
        return cls(path, kind, encoding, meta.number_rows, known, kinds, codes, labels, dates)

    @property
    def where(self) -> str:
        return f"source {self.path.name}"

    def without_labels(self, columns: Collection[str]) -> StatisticalFile:
        """The file with codes in these columns: several codes may share a label, and identifiers must not."""
        kinds = {**self.kinds, **{name: kind for name, kind in self.codes.items() if name in columns}}
        labels = {name: labels for name, labels in self.labels.items() if name not in columns}
        return replace(self, kinds=kinds, labels=labels)

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        if not columns:
            yield rows_without_columns(self.rows)
            return
        for start in range(0, self.rows, CHUNK_ROWS):
            yield _redact(lambda: self._batch(list(columns), start), self.kind, self.path)  # noqa: B023

    def _batch(self, columns: list[str], start: int) -> pa.RecordBatch:
        values, _ = _reader(self.kind)(
            str(self.path),
            output_format="dict",
            encoding=_BYTES,
            usecols=[self.names[name] for name in columns],
            disable_datetime_conversion=True,
            row_offset=start,
            row_limit=CHUNK_ROWS,
        )
        return pa.RecordBatch.from_arrays([self._column(n, values[self.names[n]]) for n in columns], names=columns)

    def _column(self, name: str, values: Any) -> pa.Array:
        kind, labels = self.kinds[name], self.labels.get(name, {})
        if name in self.dates:
            return pa.array([_day(value) for value in values], kind)
        if kind != pa.large_string():
            return pa.array(values, kind, from_pandas=True)
        texts = (_decoded(value, self.encoding) if isinstance(value, str) else value for value in values)
        if labels:
            texts = (labels.get(value, value) for value in texts)
        return normalise.texts(objects(None if text == "" else text for text in texts))


def _reader(kind: Kind) -> Any:
    import pyreadstat

    return pyreadstat.read_sas7bdat if kind == "sas" else pyreadstat.read_dta


def _redact(call: Callable[[], T], kind: Kind, path: Path) -> T:
    import pyreadstat

    return redact(
        call,
        (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, pa.ArrowException, ValueError, OverflowError),
        f"is not readable as {'SAS' if kind == 'sas' else 'Stata'}",
        f"source {path.name}",
        "check the file",
    )


# --- metadata -------------------------------------------------------------------------------------------------------


def _encoding(path: Path, kind: Kind) -> str:
    """The encoding of a file's texts: SAS files name it; Stata uses UTF-8 since version 14, Windows-1252 before."""
    if kind == "stata":
        with path.open("rb") as file:
            release = re.match(rb"<stata_dta><header><release>(\d+)<", file.read(40))
        return "utf-8" if release and int(release[1]) >= 118 else "windows-1252"
    _, meta = _reader(kind)(str(path), metadataonly=True, output_format="dict")
    try:
        return codecs.lookup(_NAMES.get(meta.file_encoding, meta.file_encoding)).name
    except LookupError:
        raise SourceError(
            f"is in the encoding {meta.file_encoding}", where=f"source {path.name}", do="write it in UTF-8"
        ) from None


def _labels(meta: Any, encoding: str, catalog: Path | None) -> dict[str, Mapping[Any, str | None]]:
    """The labels of each column, by the library's raw name."""
    import pyreadstat

    if catalog is None:
        sets = {
            name: {value: _decoded(label, encoding) for value, label in labels.items()}
            for name, labels in meta.value_labels.items()
        }
        return {name: sets.get(label, {}) for name, label in meta.variable_to_label.items()}
    sets = pyreadstat.read_sas7bcat(str(catalog), output_format="dict")[1].value_labels
    return {name: sets.get(_decoded(label, encoding), {}) for name, label in meta.variable_to_label.items()}


def _is_date(meta: Any, name: str) -> bool:
    date_format = _DATES.match(str(meta.original_variable_types.get(name) or ""))
    return bool(date_format) and meta.readstat_variable_types[name] != "string"


def _type(meta: Any, name: str, text: bool) -> pa.DataType:
    declared = meta.readstat_variable_types[name]
    if declared == "string" and not meta.variable_storage_width[name]:
        return UnsupportedType("strL")  # the library fails on such columns if one text is not UTF-8
    if declared == "string" or text:
        return pa.large_string()
    return pa.float64() if declared in ("double", "float") else pa.int64()


# --- one value ------------------------------------------------------------------------------------------------------


def _decoded(text: str, encoding: str) -> str | None:
    try:
        return text.encode("latin-1").decode(encoding)
    except UnicodeError:
        return None


def _day(value: Any) -> str | None:
    try:
        return (_EPOCH + dt.timedelta(days=math.floor(value))).isoformat()
    except (TypeError, ValueError, OverflowError):
        return None
