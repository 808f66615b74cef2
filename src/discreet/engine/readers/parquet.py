"""Parquet, row group by row group: columns are located by their exact names, in every file separately.

No value is compared while a file is read, so its statistics, dictionaries and filters have no effect; and texts are
read as texts, whatever schema Arrow stored in the metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engine.intake.normalise import plain_type
from discreet.engine.readers import BATCH_ROWS, Reader, Scan, UnsupportedType, rows_without_columns
from discreet.errors import SourceError

_ENCODINGS = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}  # that Arrow can read as dictionaries
DICTIONARY = (
    1 << 30
)  # bytes of a column in a row group: with more than twice as many Arrow cannot build a dictionary of texts
_NOTE = b"\x18\x0cARROW:schema\x18"  # a metadata key, as Thrift serializes it, and the beginning of its value


@dataclass(frozen=True)
class RowGroup(Reader):
    """One row group of a file."""

    failure = "is not readable as Parquet"

    path: str
    number: int
    where: str

    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:
        metadata = _without_note(self.path)
        known = _as_dictionaries(metadata.row_group(self.number), [name for name in columns if name in repeated])
        with pq.ParquetFile(self.path, metadata=metadata, read_dictionary=known) as file:
            if not columns:
                yield rows_without_columns(file.metadata.row_group(self.number).num_rows)
                return
            for batch in file.iter_batches(BATCH_ROWS, [self.number], columns, use_threads=False):
                yield batch.select(columns)


def _without_note(path: str) -> pq.FileMetaData:
    """A file's metadata without the Arrow schema it was written from. If that has dictionary types, Arrow insists on
    them, and fails on encodings it cannot convert, or on more entries than their indices can count."""
    footer = BytesIO()
    pq.read_metadata(path).write_metadata_file(footer)
    return pq.read_metadata(BytesIO(footer.getvalue().replace(_NOTE, _NOTE.replace(b"A", b"a"))))


def _as_dictionaries(group: pq.RowGroupMetaData, repeated: list[str]) -> list[str]:
    """The columns that Arrow can read as dictionaries, by encodings and size: both depend on the values, and no value
    may stop a release. The result is the same either way."""
    columns = (group.column(i) for i in range(group.num_columns))
    fit = {
        column.path_in_schema
        for column in columns
        if _ENCODINGS.issuperset(column.encodings) and column.total_uncompressed_size < DICTIONARY
    }
    return [name for name in repeated if name in fit]


def scan(paths: Sequence[Path], where: str) -> Scan:
    """Open these files and no others: folder names do not become columns, and each file has its own types."""
    kinds: list[dict[str, pa.DataType]] = []
    pieces: list[RowGroup] = []
    for path in paths:
        types, groups = RowGroup.redact(lambda path=path: _header(path), where)  # type: ignore[misc]
        if len(dict(types)) < len(types):
            raise SourceError("has two columns with the same name", where=where, do="rename one of them")
        kinds.append(dict(types))
        pieces += [RowGroup(str(path), number, where) for number in range(groups)]
    return Scan.of(where, kinds, pieces)


def _header(path: Path) -> tuple[list[tuple[str, pa.DataType]], int]:
    with pq.ParquetFile(path) as file:
        metadata, leaves = file.metadata, (file.schema.column(i) for i in range(len(file.schema)))
        risky: set[str] = set()
        # Arrow fails on large deltas of 32-bit integers as DuckDB encodes them in Parquet version 2.
        if str(metadata.created_by).startswith("DuckDB") and not str(metadata.format_version).startswith("1"):
            risky = {leaf.path for leaf in leaves if leaf.physical_type == "INT32"}
        types = [
            (
                f.name,
                UnsupportedType(f"{f.type} in DuckDB's PARQUET_VERSION v2") if f.name in risky else plain_type(f.type),
            )
            for f in file.schema_arrow
        ]
        return types, file.num_row_groups
