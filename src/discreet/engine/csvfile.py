"""CSV → Parquet, one record a line: every line stands for itself, so no record can stop or change another's.

Quoted fields are understood within their line; a line with too many or too few fields, or with broken quotes, is left
out and counted. Bytes that are not UTF-8 make their field null. Every column is text: 00123 stays 00123.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from discreet.engine.withhold import withhold
from discreet.errors import SourceError

BLOCK = 1 << 24


def to_parquet(path: Path, delimiter: str, target: Path, where: str) -> int:
    """Convert one file; returns how many lines were left out."""
    faults = (gzip.BadGzipFile, EOFError, UnicodeDecodeError, pa.ArrowException)
    return withhold(
        lambda: _convert(path, delimiter, target, where), faults, "is not readable as CSV", where, "check the file"
    )


def _convert(path: Path, delimiter: str, target: Path, where: str) -> int:
    target.touch(mode=0o600)
    left_out = 0
    with closing(_open(path)) as file:
        names = _header(file, delimiter, where)
        schema = pa.schema([(name, pa.string()) for name in names])
        with pq.ParquetWriter(target, schema) as writer:
            for block in _blocks(file):
                table, bad = _parse(block, names, delimiter)
                writer.write_table(table)
                left_out += bad
    return left_out


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _header(file: IO[bytes], delimiter: str, where: str) -> list[str]:
    """The column names: not confidential, and the only line that may refuse a file."""
    names = next(csv.reader([file.readline().decode("utf-8-sig")], delimiter=delimiter), [])
    if not names or not all(names) or len(set(names)) < len(names):
        raise SourceError(
            "has no header line with one name for each column",
            where=where,
            do="give the column names in the first line",
        )
    return names


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at a time."""
    while block := file.read(BLOCK):
        yield block + file.readline()


def _parse(block: bytes, names: list[str], delimiter: str) -> tuple[pa.Table, int]:
    """The records of some lines: those without a quote at the speed of Arrow, those with one each for itself."""
    block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    plain, quoted, bad = _split(block, delimiter, len(names))
    rows = [row for row in (_quoted(line, delimiter) for line in quoted) if len(row) == len(names)]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    texts = pa.table([as_utf8(pa.array(column, pa.large_binary())) for column in columns], names=names)
    return pa.concat_tables([_plain(plain, names, delimiter), texts]), bad + len(quoted) - len(rows)


def _split(block: bytes, delimiter: str, fields: int) -> tuple[bytes, list[bytes], int]:
    """Whole lines without a quote, lines with one, and how many have another number of fields. Blank lines are none."""
    data = np.frombuffer(block, np.uint8)
    ends = np.append(np.flatnonzero(data == ord("\n")), data.size)
    quoted = np.zeros(ends.size, bool)
    quoted[np.searchsorted(ends, np.flatnonzero(data == ord('"')))] = True
    marks = np.bincount(np.searchsorted(ends, np.flatnonzero(data == ord(delimiter))), minlength=ends.size)
    blank = np.diff(ends, prepend=-1) == 1
    wrong = (marks != fields - 1) & ~quoted & ~blank
    odd = np.flatnonzero(quoted | wrong)
    if not odd.size:
        return block, [], 0
    lines = block.split(b"\n")
    apart = [lines[i] for i in np.flatnonzero(quoted).tolist()]
    for i in odd.tolist():
        lines[i] = b""
    return b"\n".join(lines), apart, int(wrong.sum())


def _plain(block: bytes, names: list[str], delimiter: str) -> pa.Table:
    """Lines that are known to have the right number of fields: nothing in them can stop the reader."""
    if not block.strip(b"\n"):
        return pa.table([pa.array([], pa.string()) for _ in names], names=names)
    table = pcsv.read_csv(
        io.BytesIO(block),
        read_options=pcsv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
        parse_options=pcsv.ParseOptions(delimiter=delimiter, quote_char=False),
        convert_options=pcsv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.large_binary()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return pa.table([as_utf8(column.combine_chunks()) for column in table.columns], names=names)


def _quoted(line: bytes, delimiter: str) -> list[bytes | None]:
    """One line's fields; none at all if its quotes are broken."""
    try:  # latin-1 maps every byte to one character and back, whatever the encoding
        (row,) = csv.reader([line.decode("latin-1")], delimiter=delimiter, strict=True)
    except (csv.Error, ValueError):
        return []
    return [field.encode("latin-1") or None for field in row]


def as_utf8(column: pa.Array) -> pa.Array:
    """Bytes as text; null where they are not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
