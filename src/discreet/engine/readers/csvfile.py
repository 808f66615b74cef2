"""CSV, one record per line: lines are parsed independently, so no record can stop or change the reading of another.

Quoted fields end within their line; a line with too many or too few fields, with malformed quotes, or longer than
`LONGEST` is skipped and counted, and counted separately if it ends inside an open quote. Every column is text: 00123
stays 00123. A byte-order mark is removed in front of the header only: elsewhere it belongs to its field.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from discreet.engine.readers import DECOMPRESS, Reader, Scan, rows_without_columns
from discreet.errors import SourceError

BLOCK = 1 << 24
HEADER = 1 << 16  # bytes read at a time to find the column names
LONGEST = 1 << 26  # largest length of a line in bytes
_TABS = (".tsv", ".tsv.gz")


def scan(paths: Sequence[Path], delimiter: str | None, where: str) -> Scan:
    """Open these files, with fields separated by commas (`.tsv`: tabs) or by the declared delimiter."""
    unreadable: dict[str, int] = {}
    unclosed: dict[str, int] = {}
    files = [
        CsvFile(path, delimiter or ("\t" if path.name.lower().endswith(_TABS) else ","), where, unreadable, unclosed)
        for path in paths
    ]
    kinds = [dict.fromkeys(file.names(), pa.large_string()) for file in files]
    return replace(Scan.of(where, kinds, files), unreadable=unreadable, unclosed=unclosed)


@dataclass(frozen=True)
class CsvFile(Reader):
    """One file."""

    faults = (gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError, pa.ArrowException, OSError)
    failure = "is not readable as CSV"

    path: Path
    delimiter: str
    where: str
    unreadable: dict[str, int] = field(repr=False)
    unclosed: dict[str, int] = field(repr=False)  # of these, lines that end inside an open quote

    def names(self) -> list[str]:
        """The column names in the header."""
        return self.redact(self._names, self.where)

    def _names(self) -> list[str]:
        with closing(_open(self.path)) as file:
            if (format := _compression(file.read(len(_BZIP)))) is not None:
                what = f"{self.path.name} is not CSV, but compressed with {format}"
                raise SourceError(what, where=self.where, do=DECOMPRESS)
            file.seek(0)
            return _header(_blocks(file, HEADER), self.delimiter, self.where)[0]

    def batches(self, columns: list[str], repeated: Collection[str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        skipped = unclosed = 0
        with closing(_open(self.path)) as file:
            blocks = _blocks(file, BLOCK)
            names, first = _header(blocks, self.delimiter, self.where)
            for block, dropped in chain([first], blocks):
                table, invalid, open_quotes = _parse(block, names, self.delimiter)
                skipped += invalid + dropped
                unclosed += open_quotes
                yield from table.select(columns).to_batches() if columns else [rows_without_columns(table.num_rows)]
        self.unreadable[str(self.path)], self.unclosed[str(self.path)] = skipped, unclosed


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


_BZIP = b"BZh91AY&SY"
_MAGIC = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def _compression(start: bytes) -> str | None:
    """The compression format of a file. The signatures have no line feed: all inspected bytes belong to the header."""
    if start[:3] + start[4:] == _BZIP[:3] + _BZIP[4:]:
        return "bzip2"
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def _header(blocks: Iterator[tuple[bytes, int]], delimiter: str, where: str) -> tuple[list[str], tuple[bytes, int]]:
    """The column names, which are not confidential, and the rest of their block. Only this line can make a file be
    refused. It ends as any other line does; otherwise a record could be read as part of it."""
    line, feed, rest, dropped = b"", b"", b"", 0
    while not (line or feed or dropped) and (block := next(blocks, None)) is not None:
        line, feed, rest = block[0].partition(b"\n")
        dropped = block[1]  # without a line feed it was the header that was too long
    names = [(field or b"").decode() for field in _quoted(line.removeprefix(BOM_UTF8), delimiter)]
    if not names or not all(names) or len(set(names)) < len(names):
        raise SourceError(
            "has no header line with one name for each column",
            where=where,
            do="put the column names into the first line",
        )
    return names, (rest, dropped)


def _blocks(file: IO[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    """Complete lines that end in a line feed, about `size` bytes at a time, and how many were skipped as too long. A
    line ends with a line feed, a carriage return, or both."""
    rest, skipping = b"", False
    while piece := file.read(size):
        piece = rest + piece
        pending = piece.endswith(b"\r")  # a line feed may follow
        lines = (piece[:-1] if pending else piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        block, feed, rest = lines.rpartition(b"\n")
        rest += b"\r" if pending else b""
        if skipping and feed:
            _, _, block = block.partition(b"\n")
            skipping = False
        dropped = 0
        if not skipping and len(rest) - pending > LONGEST:
            skipping, dropped = True, 1
        if skipping:
            rest = rest[-1:] if pending else b""
        yield block + feed, dropped
    if rest and not skipping:
        yield rest.replace(b"\r", b"\n"), 0


def _parse(block: bytes, names: list[str], delimiter: str) -> tuple[pa.Table, int, int]:
    """The records of some lines: those without quotes by Arrow's fast reader, those with quotes one by one; the number
    of invalid lines; and how many of these end inside an open quote."""
    plain, quoted, invalid = _split(block, delimiter, len(names))
    fields = [_quoted(line, delimiter) for line in quoted]
    rows = [row for row in fields if len(row) == len(names)]
    _, unclosed = _grammar(delimiter)
    open_quotes = sum(unclosed.fullmatch(line) is not None for line, row in zip(quoted, fields, strict=True) if not row)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    texts = pa.table([_unchecked(pa.array(column, pa.large_binary())) for column in columns], names=names)
    return pa.concat_tables([_plain(plain, names, delimiter), texts]), invalid + len(quoted) - len(rows), open_quotes


def _split(block: bytes, delimiter: str, fields: int) -> tuple[bytes, list[bytes], int]:
    """Lines without quotes, lines with quotes, and how many have a wrong number of fields. Blank lines do not count."""
    data = np.frombuffer(block, np.uint8)
    ends = np.append(np.flatnonzero(data == ord("\n")), data.size)
    quoted = np.zeros(ends.size, bool)
    quoted[np.searchsorted(ends, np.flatnonzero(data == ord('"')))] = True
    marks = np.bincount(np.searchsorted(ends, np.flatnonzero(data == ord(delimiter))), minlength=ends.size)
    size = np.diff(ends, prepend=-1) - 1
    long = size > LONGEST
    wrong = (marks != fields - 1) & ~quoted & (size > 0) | long
    removed = np.flatnonzero(quoted | wrong)
    if not removed.size:
        return block, [], 0
    lines = block.split(b"\n")
    with_quotes = [lines[i] for i in np.flatnonzero(quoted & ~long).tolist()]
    for i in removed.tolist():
        lines[i] = b""
    return b"\n".join(lines), with_quotes, int(wrong.sum())


def _plain(block: bytes, names: list[str], delimiter: str) -> pa.Table:
    """Lines known to have the right number of fields: nothing in them can make the reader fail."""
    if not block.strip(b"\n"):
        return pa.table([pa.array([], pa.large_string()) for _ in names], names=names)
    block = b"\n" + block  # Arrow strips a byte-order mark from the first line: let that be a blank one
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
    return pa.table([_unchecked(column.combine_chunks()) for column in table.columns], names=names)


def _quoted(line: bytes, delimiter: str) -> list[bytes | None]:
    """The fields of one line; empty if its quotes are malformed. Not Python's own reader: it limits the length of a
    field, and any library may change that limit for the whole process."""
    field, _ = _grammar(delimiter)
    fields, end = [], -1
    while end < len(line):
        if (match := field.match(line, end + 1)) is None:
            return []
        quoted, plain = match.groups()
        fields.append((plain if quoted is None else quoted.replace(b'""', b'"')) or None)
        end = match.end()
    return fields


@cache
def _grammar(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Patterns of a field that ends before a delimiter or with its line, and of a line that ends inside an open quote.
    A quote within a quoted field is doubled; within another it is an ordinary character. Neither backtracks."""
    mark = re.escape(delimiter.encode())
    quoted, plain = rb'"((?:[^"]++|"")*+)', rb'[^"%b][^%b]*+|' % (mark, mark)
    field = rb'(?:%b"|(%b))(?=%b|\Z)' % (quoted, plain, mark)
    return re.compile(field), re.compile(rb"(?:%b%b)*+%b" % (field, mark, quoted))


def _unchecked(column: pa.Array) -> pa.Array:
    """Bytes as text that is not yet validated."""
    return column.view(pa.large_string())
