"""What Spark reads: which files, which columns, and how their values become what DuckDB would read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from discreet.engine import readers
from discreet.engine.spark.jobs import discreetly
from discreet.engine.withhold import withhold
from discreet.errors import SourceError
from discreet.spec import FileSource
from discreet.words import as_path, is_uri

_UINT64 = DecimalType(20, 0)  # how Spark reads Parquet's unsigned 64-bit integers
_TYPES: dict[pa.DataType, DataType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): _UINT64,
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.null(): IntegerType(),
}
Types = dict[str, pa.DataType]


def found_at(source: FileSource, base: Path, wanted: Sequence[str], where: str) -> tuple[list[str], Types | None]:
    """What Spark is to read: a URI as it stands, or the files that a path of this machine means, and their types."""
    if is_uri(source.path):
        _only_parquet(source.format or "parquet", where)
        return [source.path], None
    files, kind = readers.find(base / as_path(source.path), source.format, where)
    _only_parquet(kind, where)
    kinds = withhold(
        lambda: readers.types(files, wanted, where), (Exception,), "is not readable as Parquet", where, "check the file"
    )
    return [f"file://{_literal(path.absolute())}" for path in files], kinds


def _only_parquet(kind: str, where: str) -> None:
    if kind != "parquet":
        raise SourceError(f"is {kind}: Spark reads Parquet here", where=where, do="convert it, or run on DuckDB")


def schema_of(kinds: Types) -> StructType | None:
    """What Spark need not infer: it would stop at columns that nobody wants, such as times in nanoseconds."""
    known = [StructField(name, found) for name, kind in kinds.items() if (found := _type(kind)) is not None]
    return StructType(known) if len(known) == len(kinds) else None


def _type(kind: pa.DataType) -> DataType | None:
    """The type that Spark reads for a column of codes; none for others, which will be refused by name."""
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return StringType()
    return DateType() if pa.types.is_date(kind) else _TYPES.get(kind)


def _literal(path: Path) -> str:
    """A path in which Spark finds nothing to expand."""
    return re.sub(r"([\\*?\[\]{},])", r"\\\1", str(path))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def known(frame: DataFrame, wanted: Sequence[str]) -> list[Any]:
    return [F.col(quoted(name)) for name in wanted if name in frame.columns] or [F.lit(0).alias("discreet_row")]


def cleaned(frame: DataFrame, wanted: Sequence[str], unsigned: Sequence[str] | None = None) -> DataFrame:
    """The wanted columns, with text that is not UTF-8 missing, as DuckDB has it. `unsigned` says which are unsigned
    64-bit integers, where that is known."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    columns = []
    for name in wanted:
        if name in kinds:
            column = F.col(quoted(name))
            if isinstance(kinds[name], StringType):
                column = F.try_validate_utf8(column)
                if kinds[name] != StringType():  # codes are equal if their bytes are
                    column = F.collate(column, "UTF8_BINARY")
            elif kinds[name] == _UINT64 and (unsigned is None or name in unsigned):
                column = column.cast("string")
            columns.append(column.alias(name))
    return frame.select(*columns) if columns else frame.select(F.lit(0).alias("discreet_row"))


def files_of(frame: DataFrame) -> list[str]:
    """The files of a scan with their sizes and times of change, as Spark listed them."""

    def files() -> str:
        leaf = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0)
        return str(leaf.relation().location().allFiles().mkString("\n"))

    return re.sub(r"access_time=-?\d+", "", discreetly(files)).splitlines()
