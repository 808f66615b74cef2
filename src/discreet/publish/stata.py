"""Stata's .dta, release 118 (Stata 14 and later): equal rows give equal bytes, for no time is written.

The layout is that of Stata's own description: tagged sections, a map of where they begin, fixed-width rows.
"""

from __future__ import annotations

import re
import struct

import numpy as np
import pyarrow as pa

from discreet.errors import PublishError
from discreet.publish.storage import Hashed

LONGEST_NAME, LONGEST_LABEL = 32, 80  # characters
LONGEST_TEXT = 2045  # bytes of a code
DOUBLE = 65526
MISSING = 2.0**1023  # Stata's "."
_RESERVED = {
    "_all", "_b", "byte", "_coef", "_cons", "double", "float", "if", "in", "int", "long", "_n", "_N", "_pi", "_pred",
    "_rc", "_skip", "str", "strL", "using", "with",
}  # fmt: skip


def names(columns: list[str]) -> list[str]:
    """Names that Stata takes: letters, digits and underscores, at most 32; each once.

    >>> names(["low95", "degree level", "2020", "degree_level"])
    ['low95', 'degree_level', '_2020', 'degree_level_2']
    """
    found: list[str] = []
    for column in columns:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", column)
        taken = plain in _RESERVED or re.fullmatch(r"str[0-9]+", plain)
        plain = f"_{plain}" if not plain or plain[0].isdigit() or taken else plain
        name, number = plain[:LONGEST_NAME], 1
        while name in found:
            number += 1
            name = f"{plain[: LONGEST_NAME - 1 - len(str(number))]}_{number}"
        found.append(name)
    return found


class StataFile:
    """Rows are kept until the file is closed: its head says how many there are, and how wide a text is."""

    def __init__(self, file: Hashed, schema: pa.Schema, label: str) -> None:
        self._file, self._schema, self._label = file, schema, label
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def close(self) -> None:
        rows = sum(batch.num_rows for batch in self._batches)
        fields = [self._field(i) for i in range(len(self._schema))]
        codes = [DOUBLE if kind == "<f8" else int(kind[1:]) for kind in fields]
        head = _head(self._schema.names, codes, rows, self._label)
        record = np.dtype([(f"c{i}", kind) for i, kind in enumerate(fields)])
        # Where each section begins, and where the file ends.
        begin, data = head.places, rows * record.itemsize
        after = begin["data"] + len(b"<data>") + data + len(b"</data>")
        labels = after + len(b"<strls></strls>")
        end = labels + len(b"<value_labels></value_labels>")
        places = [*begin.values(), after, labels, end, end + len(b"</stata_dta>")]
        self._file.write(head.bytes(places))
        self._file.write(b"<data>")
        for batch in self._batches:
            self._file.write(self._rows(batch, record))
        self._file.write(b"</data><strls></strls><value_labels></value_labels></stata_dta>")

    def _field(self, i: int) -> str:
        """A number is a double, in which whole numbers to 2^53 are exact; a text as wide as the widest code."""
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
    found: list[str] = column.dictionary.to_pylist()
    return found


class _Head:
    """Everything before the rows, in sections."""

    def __init__(self, header: bytes, sections: dict[str, bytes]) -> None:
        self._header, self._sections = header, sections
        place = len(b"<stata_dta>") + len(header)
        self.places = {"stata_dta": 0, "map": place}
        place += len(b"<map></map>") + 14 * 8
        for name, body in sections.items():
            self.places[name] = place
            place += len(body)
        self.places["data"] = place

    def bytes(self, places: list[int]) -> bytes:
        table = b"<map>" + struct.pack("<14Q", *places) + b"</map>"
        return b"<stata_dta>" + self._header + table + b"".join(self._sections.values())


def _head(columns: list[str], codes: list[int], rows: int, label: str) -> _Head:
    text = label[:LONGEST_LABEL].encode()
    header = (
        b"<header><release>118</release><byteorder>LSF</byteorder>"
        + _tagged("K", struct.pack("<H", len(columns)))
        + _tagged("N", struct.pack("<Q", rows))
        + _tagged("label", struct.pack("<H", len(text)) + text)
        + _tagged("timestamp", b"\0")
        + b"</header>"
    )
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
    return _Head(header, {name: _tagged(name, body) for name, body in sections.items()})


def _tagged(name: str, body: bytes) -> bytes:
    return f"<{name}>".encode() + body + f"</{name}>".encode()


def _fixed(text: str, width: int) -> bytes:
    """UTF-8, cut between characters, with zeros to the width."""
    cut = text.encode()[: width - 1].decode(errors="ignore").encode()
    return cut + b"\0" * (width - len(cut))
