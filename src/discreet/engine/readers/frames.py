"""Frames of Python libraries as Arrow, each value by a rule of its own: no value decides how another one is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from discreet.engine.intake.normalise import OBJECTS
from discreet.engine.kinds import Unfit
from discreet.engine.readers import duckdb_table
from discreet.engine.scan import BATCH_ROWS, Scan, counting
from discreet.engine.withhold import withhold
from discreet.errors import SourceError

WHERE = "source frame"


def scan(frame: Any) -> Scan:
    """A Polars, pandas, PyArrow, DuckDB or Ibis table."""
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        frame = _spoken(frame.collect, frame)  # a lazy frame
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes"):
        return _pandas_scan(frame)
    table, unfit = _spoken(lambda: _as_table(frame), frame)
    kinds = _distinct([(field.name, field.type) for field in table.schema]) | unfit
    return Scan(WHERE, {name: frozenset([kind]) for name, kind in kinds.items()}, [ArrowTable(table)])


def _spoken(call: Any, frame: Any) -> Any:
    return withhold(
        call,
        (Exception,),
        f"a {type(frame).__name__} does not speak Arrow",
        WHERE,
        "pass a path or a PyArrow, Polars, pandas or DuckDB table",
    )


def _as_table(frame: Any) -> tuple[pa.Table, dict[str, pa.DataType]]:
    """A frame as Arrow, and which of its columns are not in there as they are."""
    if isinstance(frame, duckdb.DuckDBPyRelation):
        chosen = ", ".join(duckdb_table.selected(frame, frame.columns))
        return frame.project(chosen).to_arrow_table(), duckdb_table.unfit(frame)
    unfit: dict[str, pa.DataType] = {}
    if hasattr(frame, "to_pyarrow"):  # Ibis
        _check_backend(frame)
        schema = frame.schema()
        unfit = {name: Unfit(str(kind)) for name, kind in schema.items() if not _ibis_fits(kind)}
        frame = _narrowed(frame, unfit, schema).to_pyarrow()
    elif hasattr(frame, "get_columns"):  # Polars
        unfit = {name: Unfit(str(kind)) for name, kind in frame.schema.items() if str(kind) in _POLARS_ALONE}
        frame = _narrowed(frame, unfit, frame.schema)
    elif hasattr(frame, "to_arrow_table"):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    return frame if isinstance(frame, pa.Table) else pa.table(frame), unfit


def _check_backend(frame: Any) -> None:
    """Most backends of Ibis fetch through pandas, which makes real numbers of all whole ones because of one missing."""
    if (name := str(frame.get_backend().name)) not in ("duckdb", "polars"):
        raise SourceError(
            f"an Ibis table of {name} does not come as Arrow",
            where=WHERE,
            do="use Ibis on DuckDB or Polars, or pass an Arrow table whose columns have the right types",
        )


_POLARS_ALONE = {"Int128", "UInt128", "Object"}


def _ibis_fits(kind: Any) -> bool:
    """Whether Ibis makes the same Arrow of a type whatever is in it. A decimal(38, 0) may be a HUGEINT."""
    if kind.is_decimal():
        return kind.precision is not None and kind.scale is not None and (kind.precision, kind.scale) != (38, 0)
    plain = (kind.is_string(), kind.is_integer(), kind.is_floating(), kind.is_boolean(), kind.is_date(), kind.is_uuid())
    return any(plain)


def _narrowed(frame: Any, without: Collection[str], names: Collection[str]) -> Any:
    if len(without) == len(names):
        raise SourceError("has no column that can be read", where=WHERE, do="provide texts or numbers")
    return frame.drop(*without) if without else frame


def _distinct(columns: Sequence[tuple[Any, pa.DataType]]) -> dict[str, pa.DataType]:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise SourceError("has two columns of one name", where=WHERE, do="rename one of them")
    return {name: kind for name, kind in columns if isinstance(name, str)}


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory."""

    table: pa.Table

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        if not columns:
            yield counting(self.table.num_rows)
            return
        yield from self.table.select(list(columns)).to_batches(BATCH_ROWS)


# --- pandas ---------------------------------------------------------------------------------------------------------


def _pandas_scan(frame: Any) -> Scan:
    kinds = _distinct([(name, _pandas_type(frame.dtypes.iloc[i])) for i, name in enumerate(frame.columns)])
    return Scan(WHERE, {name: frozenset([kind]) for name, kind in kinds.items()}, [PandasFrame(frame, kinds)])


def _pandas_type(dtype: Any) -> pa.DataType:
    """A column's type by its dtype. Objects and categories can hold anything: each value becomes its text."""
    if _name(dtype) == "category":
        return pa.float64() if getattr(dtype.categories.dtype, "kind", "") == "f" else OBJECTS
    if _of_objects(dtype):
        return OBJECTS
    if isinstance(dtype, np.dtype) and (dtype.kind not in "biufMm" or not dtype.isnative):
        return Unfit(_name(dtype))
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize:
        return pa.float64()  # long doubles: rounded, each by itself
    try:
        return _empty(dtype)
    except (pa.ArrowException, TypeError, ValueError):  # no Arrow for any value of it
        return Unfit(_name(dtype))


def _name(dtype: Any) -> str:
    return str(dtype)


def _of_objects(dtype: Any) -> bool:
    """Whether values are objects of Python, such as texts that may not be valid ones."""
    return _name(dtype) == "object" or (hasattr(dtype, "na_value") and getattr(dtype, "storage", None) == "python")


def _empty(dtype: Any) -> pa.DataType:
    import pandas as pd  # type: ignore[import-untyped]

    return pa.array(pd.Series([], dtype=dtype), from_pandas=True).type


@dataclass(frozen=True)
class PandasFrame:
    """A frame of pandas in memory."""

    frame: Any
    kinds: dict[str, pa.DataType]

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        if not columns:
            yield counting(len(self.frame))
            return
        for start in range(0, len(self.frame), BATCH_ROWS):
            part = self.frame.iloc[start : start + BATCH_ROWS]
            arrays = [self._array(part[name], self.kinds[name]) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _array(self, values: Any, kind: pa.DataType) -> pa.Array:
        if _name(values.dtype) == "category":
            codes = values.cat.codes.to_numpy()  # what the categories are was inferred from values: each by itself
            words = values.cat.categories.array
            known = objects(words) if kind == OBJECTS else pa.array(np.asarray(words, np.float64))
            return known.take(pa.array(codes, mask=codes < 0))
        if _of_objects(values.dtype):
            return objects(values.array)
        if kind == pa.float64() and isinstance(values.dtype, np.dtype):
            return pa.array(values.to_numpy().astype(np.float64))  # not a number is none, later
        return _whole(_spoken(lambda: pa.array(values, kind, from_pandas=True), values))


def _whole(made: pa.Array | pa.ChunkedArray) -> pa.Array:
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def objects(values: Iterable[Any]) -> pa.Array:
    """Objects of Python: what is a real number as such, all else as its code is written."""
    texts: list[str | None] = []
    reals: list[float | None] = []
    for value in values:
        real = _real(value)
        texts.append(None if real is not None else code_text(value))
        reals.append(real)
    arrays = [pa.array(texts, pa.large_string()), pa.array(reals, pa.float64())]
    return pa.StructArray.from_arrays(arrays, fields=[*OBJECTS])


def _real(value: Any) -> float | None:
    kind = type(value)
    if issubclass(kind, float):
        return float.__pos__(value)
    return float(value) if issubclass(kind, np.floating) and kind is not np.longdouble else None


def code_text(value: Any) -> str | None:
    """One value as its code is written, or nothing. A class of somebody's own is asked for nothing but its value."""
    kind = type(value)
    if kind is str or issubclass(kind, str):
        text = str.__str__(value)
        return text if text.isascii() or _encodes(text) else None
    if kind is bool:
        return "true" if value else "false"
    if issubclass(kind, int):
        return int.__repr__(value) if -_LARGEST < int.__pos__(value) < _LARGEST else None
    if issubclass(kind, dt.date) and not issubclass(kind, dt.datetime):
        return dt.date.isoformat(value)
    if issubclass(kind, np.datetime64):
        day = np.datetime64.item(value)
        return day.isoformat() if type(day) is dt.date else None  # a time, or a date beyond Python's
    plain = issubclass(kind, np.generic) and not issubclass(kind, np.longdouble | np.clongdouble | np.timedelta64)
    return code_text(np.generic.item(value)) if plain else None


_LARGEST = 10**1000  # Python refuses to write numbers of thousands of digits


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
