"""Streams the lines of a published file: CSV, gzipped CSV or Parquet."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import SourceError

Line = tuple[int, list[str]]
LONGEST = 1 << 16  # bytes in a line; a longer one is not of a table


def read(path: Path) -> Iterator[Line]:
    """Number and fields of every line, the header first. The format is detected from the content, not the name.

    A row of Parquet is numbered like the corresponding line of CSV; a missing value is an empty field.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            start = file.peek(4)[:4]
            if start == b"PAR1":
                yield from _parquet(file)
            elif start[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield from _csv(cast(BinaryIO, unpacked), where)
            else:
                yield from _csv(file, where)
    except (pa.ArrowException, UnicodeDecodeError):
        raise SourceError("is not a valid Parquet file", where=where, do="write it again") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise SourceError("is a damaged gzip file", where=where, do="download or write it again") from None
    except OSError as error:
        reason = error.strerror or "damaged"
        raise SourceError(f"cannot be read ({reason})", where=where, do="give one file, CSV or Parquet") from None
    except ValueError:
        raise SourceError("cannot be read (not a valid path)", where=where, do="check the path") from None


def _csv(file: BinaryIO, where: str) -> Iterator[Line]:
    reader = csv.reader(_texts(file, where), strict=True)
    number = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise SourceError(f"line {number} is not CSV ({error})", where=where, do="correct its quotes") from None
        if fields is None:
            break
        yield number, fields
        number = reader.line_num + 1
    if number == 1:
        raise SourceError("is empty", where=where, do="give it a header and rows")


def _texts(file: BinaryIO, where: str) -> Iterator[str]:
    number = 0
    while raw := file.readline(LONGEST):
        number += 1
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text or len(raw) == LONGEST:
            raise SourceError(f"line {number} is not text in UTF-8", where=where, do="save it as UTF-8 CSV")
        yield text


def _parquet(file: BinaryIO) -> Iterator[Line]:
    table = pq.ParquetFile(file, pre_buffer=False)
    yield 1, list(table.schema_arrow.names)
    number = 2
    for batch in table.iter_batches(1 << 14, use_threads=False):
        columns = [_text(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield number, list(row)
            number += 1


def _text(column: pa.Array) -> list[str]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return ["" if value is None else value for value in column.cast(pa.string()).to_pylist()]
