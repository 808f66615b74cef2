"""Stata's .dta format, release 118 (Stata 14 and later). Deterministic: no time stamp is written.

The layout follows Stata's documentation: tagged sections, a map of their offsets, fixed-width rows.
"""

from __future__ import annotations

import re
import struct
from itertools import accumulate

import numpy as np
import pyarrow as pa

from discreet.errors import PublishError
from discreet.publish.storage import HashedFile

LONGEST_NAME, LONGEST_LABEL = 32, 80  # characters
LONGEST_TEXT = 2045  # bytes of a code
DOUBLE = 65526
MAP = len(b"<map></map>") + 14 * 8
MISSING = 2.0**1023  # Stata's "."
_RESERVED = {
    "_all", "_b", "byte", "_coef", "_cons", "double", "float", "if", "in", "int", "long", "_n", "_N", "_pi", "_pred",
    "_rc", "_skip", "str", "strL", "using", "with",
}  # fmt: skip


def names(columns: list[str]) -> list[str]:
    """Unique names that Stata accepts: at most 32 letters, digits and underscores.

    >>> names(["low95", "degree level", "2020", "degree_level"])
    ['low95', 'degree_level', '_2020', 'degree_level_2']
    """
    unique: list[str] = []
    for column in columns:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", column)
        reserved = plain in _RESERVED or re.fullmatch(r"str[0-9]+", plain)
        plain = f"_{plain}" if not plain or plain[0].isdigit() or reserved else plain
        name, number = plain[:LONGEST_NAME], 1
        while name in unique:
            number += 1
            name = f"{plain[: LONGEST_NAME - 1 - len(str(number))]}_{number}"
        unique.append(name)
    return unique


class StataFile:
    """A file written on closing: its header needs the number of rows and the width of every text."""

    def __init__(self, file: HashedFile, schema: pa.Schema, label: str) -> None:
        self._file, self._schema, self._label = file, schema, label
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def close(self) -> None:
        rows = sum(batch.num_rows for batch in self._batches)
        fields = [self._field(i) for i in range(len(self._schema))]
        record = np.dtype([(f"c{i}", kind) for i, kind in enumerate(fields)])
        head, sections = _header(len(fields), rows, self._label), _sections(self._schema.names, fields)
        ends = [b"<strls></strls>", b"<value_labels></value_labels>", b"</stata_dta>"]
        data = len(b"<data></data>") + rows * record.itemsize
        lengths = [len(head), MAP, *map(len, sections), data, *map(len, ends)]
        offsets = struct.pack("<14Q", 0, *accumulate(lengths))  # of every section, and of the end of the file
        for part in (head, _tagged("map", offsets), *sections, b"<data>"):
            self._file.write(part)
        for batch in self._batches:
            self._file.write(self._rows(batch, record))
        for part in (b"</data>", *ends):
            self._file.write(part)

    def _field(self, i: int) -> str:
        """A number is a double, exact for integers up to 2^53; a text is as wide as the widest code."""
        if not _is_text(self._schema.field(i).type):
            return "<f8"
        widest = max((len(text.encode()) for batch in self._batches for text in _texts(batch.column(i))), default=1)
        if widest > LONGEST_TEXT:
            raise PublishError(
                "a code is too long for Stata", where=f"column {self._schema.names[i]}", do="leave out dta"
            )
        return f"S{max(widest, 1)}"

    def _rows(self, batch: pa.RecordBatch, record: np.dtype[np.void]) -> bytes:
        out = np.zeros(batch.num_rows, record)
        for i, column in enumerate(batch.columns):
            if _is_text(column.type):
                distinct = np.array([text.encode() for text in _texts(column)] or [b""], dtype=record[i])
                out[f"c{i}"] = distinct[column.indices.to_numpy(zero_copy_only=False)]
            else:
                plain = column.cast(pa.float64()).fill_null(MISSING)
                out[f"c{i}"] = plain.to_numpy(zero_copy_only=False)
        return out.tobytes()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _texts(column: pa.DictionaryArray) -> list[str]:
    texts: list[str] = column.dictionary.to_pylist()
    return texts


def _header(columns: int, rows: int, label: str) -> bytes:
    text = label[:LONGEST_LABEL].encode()
    return (
        b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"
        + _tagged("K", struct.pack("<H", columns))
        + _tagged("N", struct.pack("<Q", rows))
        + _tagged("label", struct.pack("<H", len(text)) + text)
        + _tagged("timestamp", b"\0")
        + b"</header>"
    )


def _sections(columns: list[str], fields: list[str]) -> list[bytes]:
    """The sections that describe the columns, between the map and the rows."""
    codes = [DOUBLE if kind == "<f8" else int(kind[1:]) for kind in fields]
    formats = ["%12.0g" if code == DOUBLE else f"%{min(code, 244)}s" for code in codes]
    sections = {
        "variable_types": struct.pack(f"<{len(codes)}H", *codes),
        "varnames": b"".join(_fixed(name, 129) for name in names(columns)),
        "sortlist": b"\0\0" * (len(columns) + 1),
        "formats": b"".join(_fixed(shown, 57) for shown in formats),
        "value_label_names": b"\0" * (129 * len(columns)),
        "variable_labels": b"".join(_fixed(column, 321) for column in columns),
        "characteristics": b"",
    }
    return [_tagged(name, body) for name, body in sections.items()]


def _tagged(name: str, body: bytes) -> bytes:
    return f"<{name}>".encode() + body + f"</{name}>".encode()


def _fixed(text: str, width: int) -> bytes:
    """UTF-8, truncated between characters and padded with zeros."""
    cut = text.encode()[: width - 1].decode(errors="ignore").encode()
    return cut + b"\0" * (width - len(cut))
