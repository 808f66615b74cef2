"""SAS and Stata files → Parquet, in pieces, only the wanted columns, each value by a rule of its own.

Dates are written 2026-01-31, other numbers as they are; codes stay codes unless their labels are asked for.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engine.withhold import withhold

CHUNK_ROWS = 200_000
_EPOCH = dt.date(1960, 1, 1)  # of both formats
_DATES = ("%td", "%d", "DATE", "DDMMYY", "MMDDYY", "YYMMDD", "E8601DA")


def to_parquet(
    path: Path, kind: str, target: Path, wanted: Sequence[str], labelled: bool, catalog: Path | None
) -> Path:
    """Convert one file; refused as a whole if it is no such file."""
    import pyreadstat

    return withhold(
        lambda: _convert(path, kind, target, wanted, labelled, catalog),
        (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, pa.ArrowException, ValueError, OverflowError),
        f"is not readable as {'SAS' if kind == 'sas' else 'Stata'}",
        f"source {path.name}",
        "check the file",
    )


def _convert(path: Path, kind: str, target: Path, wanted: Sequence[str], labelled: bool, catalog: Path | None) -> Path:
    import pyreadstat

    reader = pyreadstat.read_sas7bdat if kind == "sas" else pyreadstat.read_dta
    extra = {} if catalog is None else {"catalog_file": str(catalog)}
    _, meta = reader(str(path), metadataonly=True, **extra)
    names = [name for name in meta.column_names if name in wanted] or meta.column_names[:1]
    labels = {name: meta.variable_value_labels.get(name, {}) for name in names} if labelled else {}
    schema = pa.schema([(name, _type(meta, name, labels.get(name))) for name in names])
    target.touch(mode=0o600)
    with pq.ParquetWriter(target, schema) as writer:
        for columns, _ in pyreadstat.read_file_in_chunks(
            reader,
            str(path),
            chunksize=CHUNK_ROWS,
            output_format="dict",
            usecols=names,
            disable_datetime_conversion=True,
        ):
            arrays = [_column(columns[f.name], f.type, labels.get(f.name, {}), _is_date(meta, f.name)) for f in schema]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return target


def _is_date(meta: Any, name: str) -> bool:
    return str(meta.original_variable_types.get(name) or "").startswith(_DATES)


def _type(meta: Any, name: str, labels: dict[Any, str] | None) -> pa.DataType:
    declared = meta.readstat_variable_types[name]
    if declared == "string" or labels or _is_date(meta, name):
        return pa.string()
    return pa.float64() if declared in ("double", "float") else pa.int64()


def _column(values: Any, kind: pa.DataType, labels: dict[Any, str], date: bool) -> pa.Array:
    if date:
        return pa.array([_day(value) for value in values], pa.string())
    if kind == pa.string():  # a blank is how these formats write a missing text
        texts = (labels.get(value, value) for value in values)
        return pa.array([None if text is None or text == "" else str(text) for text in texts], pa.string())
    return pa.array(values, from_pandas=True).cast(kind, safe=False)


def _day(value: Any) -> str | None:
    try:
        return (_EPOCH + dt.timedelta(days=int(value))).isoformat()
    except (TypeError, ValueError, OverflowError):
        return None
