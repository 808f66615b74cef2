"""A tiny SAS7BDAT writer for tests, through the ReadStat library inside pyreadstat (which only exposes its reader)."""

from __future__ import annotations

import ctypes
from pathlib import Path

from pyreadstat import _readstat_writer

STRING, DOUBLE = 0, 5


def write_sas7bdat(path: Path, columns: dict[str, list[str | float | None]]) -> None:
    lib = ctypes.CDLL(_readstat_writer.__file__)
    for name in ("readstat_writer_init", "readstat_add_variable"):
        getattr(lib, name).restype = ctypes.c_void_p
    pieces: list[bytes] = []
    callback = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

    def collect(data: int, length: int, _context: int) -> int:
        pieces.append(ctypes.string_at(data, length))
        return length

    sink = callback(collect)
    writer = ctypes.c_void_p(lib.readstat_writer_init())
    _ok(lib.readstat_set_data_writer(writer, sink))
    variables = []
    for name, values in columns.items():
        text = any(isinstance(v, str) for v in values)
        width = max((len(v) for v in values if isinstance(v, str)), default=8)
        kind, size = (STRING, width) if text else (DOUBLE, 0)
        variable = lib.readstat_add_variable(writer, name.encode(), kind, ctypes.c_size_t(size))
        variables.append((ctypes.c_void_p(variable), values, text))
    rows = len(next(iter(columns.values())))
    _ok(lib.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(rows)))
    for i in range(rows):
        _ok(lib.readstat_begin_row(writer))
        for variable, values, text in variables:
            value = values[i]
            if value is None:
                _ok(lib.readstat_insert_missing_value(writer, variable))
            elif text:
                _ok(lib.readstat_insert_string_value(writer, variable, str(value).encode()))
            else:
                _ok(lib.readstat_insert_double_value(writer, variable, ctypes.c_double(float(value))))
        _ok(lib.readstat_end_row(writer))
    _ok(lib.readstat_end_writing(writer))
    lib.readstat_writer_free(writer)
    path.write_bytes(b"".join(pieces))


def _ok(code: int) -> None:
    if code:
        raise RuntimeError(f"ReadStat error {code}")
