"""Frames of Python libraries as Arrow, each value by a rule of its own: no value decides how another one is read."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from discreet.engine.csvfile import as_utf8
from discreet.engine.withhold import withhold


def as_arrow(frame: Any, wanted: Sequence[str]) -> pa.Table:
    """The wanted columns of a Polars, pandas, PyArrow, DuckDB or Ibis table, as far as they are there."""
    return withhold(
        lambda: _as_arrow(frame, wanted),
        (Exception,),
        f"a {type(frame).__name__} does not speak Arrow",
        "source frame",
        "pass a path or a PyArrow, Polars, pandas or DuckDB table",
    )


def _as_arrow(frame: Any, wanted: Sequence[str]) -> pa.Table:
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        frame = frame.collect()  # a lazy frame
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes"):
        return pa.table({name: _pandas(frame[name]) for name in _there(wanted, frame.columns)})
    if hasattr(frame, "to_pyarrow"):
        frame = frame.to_pyarrow()
    elif hasattr(frame, "to_arrow_table"):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    table = frame if isinstance(frame, pa.Table) else pa.table(frame)
    return pa.table({name: _clean(table[name]) for name in _there(wanted, table.column_names)})


def _there(wanted: Sequence[str], names: Any) -> list[str]:
    """Which of the wanted columns there are; if none, any one that counts the rows."""
    return [name for name in wanted if name in names] or list(names)[:1]


def _pandas(column: Any) -> pa.Array | pa.ChunkedArray:
    """An object column can hold anything: each value is written as its code. Other types are what they are."""
    if str(column.dtype) == "object":
        return pa.array([code_text(value) for value in column], pa.string())
    return _clean(pa.chunked_array([pa.array(column, from_pandas=True)]))


def code_text(value: Any) -> str | None:  # noqa: PLR0911 - a rule a line
    """One value as the code that the engine would write for it, or nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value.isascii() or _encodes(value) else None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return code_text(value.item()) if hasattr(value, "item") and hasattr(value, "dtype") else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _clean(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without a type has only nulls; text that is not UTF-8 is missing."""
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return pa.chunked_array([as_utf8(chunk.cast(pa.large_binary())) for chunk in column.chunks], pa.string())
    return column
