"""Frames of Python libraries as Arrow, converted value by value: no value affects how another one is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from discreet.engine.intake.normalise import OBJECTS
from discreet.engine.readers import BATCH_ROWS, Scan, UnsupportedType, redact, relations, rows_without_columns
from discreet.engine.readers.objects import objects
from discreet.errors import SourceError

WHERE = "source frame"


def scan(frame: Any) -> Scan:
    """Open a Polars, pandas, PyArrow, DuckDB or Ibis table."""
    given = frame
    if hasattr(frame, "to_pyarrow"):  # Ibis
        frame = _converted(lambda: _of_ibis(given), given)
    if hasattr(frame, "collect") and not hasattr(frame, "__arrow_c_stream__"):
        frame = _converted(frame.collect, frame)  # a lazy frame
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes"):
        return _pandas_scan(frame)
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return _relation_scan(frame, given)
    table, unsupported = _converted(lambda: _as_table(frame), frame)
    kinds = _distinct([(field.name, field.type) for field in table.schema]) | unsupported
    return Scan.of(WHERE, [kinds], [ArrowTable(table)])


def _converted(call: Any, frame: Any) -> Any:
    return redact(
        call,
        (Exception,),
        f"a {type(frame).__name__} cannot be converted to Arrow",
        WHERE,
        "pass a path or a PyArrow, Polars, pandas or DuckDB table",
    )


def _as_table(frame: Any) -> tuple[pa.Table, dict[str, pa.DataType]]:
    """A frame as Arrow, and the columns that have no equivalent type there."""
    unsupported: dict[str, pa.DataType] = {}
    if hasattr(frame, "get_columns"):  # Polars
        unsupported = {
            name: UnsupportedType(str(kind)) for name, kind in frame.schema.items() if str(kind) in _POLARS_ALONE
        }
        frame = _narrowed(frame, unsupported, frame.schema)
    elif hasattr(frame, "to_arrow_table"):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    return frame if isinstance(frame, pa.Table) else pa.table(frame), unsupported


def _of_ibis(frame: Any) -> Any:
    """Most Ibis backends fetch through pandas, which converts integers to floats if one value is missing."""
    if (name := str(frame.get_backend().name)) not in ("duckdb", "polars"):
        raise SourceError(
            f"an Ibis table on {name} cannot be read as Arrow",
            where=WHERE,
            do="use Ibis on DuckDB or Polars, or pass an Arrow table whose columns have the right types",
        )
    return relations.of_ibis(frame)


_POLARS_ALONE = {"Int128", "UInt128", "Object"}


def _narrowed(frame: Any, without: Collection[str], names: Collection[str]) -> Any:
    if len(without) == len(names):
        raise SourceError("has no column that can be read", where=WHERE, do="provide columns of texts or numbers")
    return frame.drop(*without) if without else frame


def _distinct(columns: Sequence[tuple[Any, pa.DataType]]) -> dict[str, pa.DataType]:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise SourceError("has two columns with the same name", where=WHERE, do="rename one of them")
    return {name: kind for name, kind in columns if isinstance(name, str)}


def _relation_scan(relation: duckdb.DuckDBPyRelation, given: Any) -> Scan:
    piece = relations.Relation(relation, WHERE, given)
    kinds = _distinct(_converted(piece.columns, given))
    return Scan.of(WHERE, [kinds], [piece])


@dataclass(frozen=True)
class ArrowTable:
    """A table in memory."""

    table: pa.Table

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        if not columns:
            yield rows_without_columns(self.table.num_rows)
            return
        yield from self.table.select(list(columns)).to_batches(BATCH_ROWS)


# --- pandas ---------------------------------------------------------------------------------------------------------


def _pandas_scan(frame: Any) -> Scan:
    kinds = _distinct([(name, _pandas_type(frame.dtypes.iloc[i])) for i, name in enumerate(frame.columns)])
    return Scan.of(WHERE, [kinds], [PandasFrame(frame, kinds)])


def _pandas_type(dtype: Any) -> pa.DataType:
    """A column's type by its dtype. Objects and categories can hold anything: each value is converted to its text."""
    if _name(dtype) == "category":
        return pa.float64() if getattr(dtype.categories.dtype, "kind", "") == "f" else OBJECTS
    if _of_objects(dtype):
        return OBJECTS
    if isinstance(dtype, np.dtype) and (dtype.kind not in "biufMm" or not dtype.isnative):
        return UnsupportedType(_name(dtype))
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize:
        return pa.float64()  # long doubles are rounded
    try:
        return _empty(dtype)
    except (pa.ArrowException, TypeError, ValueError):  # Arrow cannot represent it
        return UnsupportedType(_name(dtype))


def _name(dtype: Any) -> str:
    return str(dtype)


def _of_objects(dtype: Any) -> bool:
    """Whether values are Python objects, such as strings that may not be valid Unicode."""
    return _name(dtype) == "object" or (hasattr(dtype, "na_value") and getattr(dtype, "storage", None) == "python")


def _empty(dtype: Any) -> pa.DataType:
    import pandas as pd  # type: ignore[import-untyped]

    kind: pa.DataType = pa.array(pd.Series([], dtype=dtype), from_pandas=True).type
    return kind


@dataclass(frozen=True)
class PandasFrame:
    """A frame of pandas in memory."""

    frame: Any
    kinds: dict[str, pa.DataType]

    def read(self, columns: Sequence[str], repeated: Collection[str] = ()) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        if not columns:
            yield rows_without_columns(len(self.frame))
            return
        for start in range(0, len(self.frame), BATCH_ROWS):
            part = self.frame.iloc[start : start + BATCH_ROWS]
            arrays = [self._array(part[name], self.kinds[name]) for name in columns]
            # Chunks of texts or dictionaries are never concatenated: 32-bit offsets and 8-bit indices could overflow.
            yield from pa.table(arrays, names=list(columns)).to_batches()

    def _array(self, values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if _name(values.dtype) == "category":
            codes = (
                values.cat.codes.to_numpy()
            )  # the type of categories was inferred from values: convert each on its own
            categories = values.cat.categories.array
            known = objects(categories) if kind == OBJECTS else _reals(np.asarray(categories))
            return known.take(pa.array(codes, mask=codes < 0))
        if _of_objects(values.dtype):
            return objects(values.array)
        if kind == pa.float64() and isinstance(values.dtype, np.dtype):
            return _reals(values.to_numpy())
        return _converted(lambda: pa.array(values, kind, from_pandas=True), values)


def _reals(values: Any) -> pa.Array:
    """Floats of any width as doubles, without NumPy's errors or warnings: NaN becomes missing later, and a number that
    is too large becomes infinite."""
    with np.errstate(all="ignore"):
        return pa.array(values.astype(np.float64))
