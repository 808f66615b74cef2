"""Sources that Spark reads: local files by row groups, as the DuckDB engine does; other sources as Spark frames.

Below a URI Spark decodes values before the intake sees them: only types are read there whose every value it can decode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from discreet.engine import readers
from discreet.engine.readers import Scan, UnsupportedType, parquet
from discreet.engine.spark.jobs import redact_failures
from discreet.errors import SourceError
from discreet.spec import FileSource
from discreet.uris import as_path

# No predicate on a value may be evaluated for many records at once, from statistics of a file or a cache.
NO_STATISTICS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}
# Spark's own reader fails on a decimal with more digits than its column declares, and on a date that it treats as
# Julian and cannot convert; and it reads unsigned 64-bit integers as decimals.
_SAFE = (StringType, BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)

FileState = tuple[str, int, int]  # a file, its size and modification time


@dataclass(frozen=True)
class FrameScan(Scan):
    """Rows that Spark itself reads."""

    frame: DataFrame | None = None


def local_files(source: FileSource, base: Path) -> tuple[Scan, list[Path]]:
    """The files of a local path, which every worker must be able to read."""
    where = f"source {source.path}"
    files, kind = readers.find(base / as_path(source.path), source.format, where)
    only_parquet(kind, where)
    paths = [path.absolute() for path in files]
    return parquet.scan(paths, where), paths


def only_parquet(kind: str, where: str) -> None:
    if kind != "parquet":
        raise SourceError(f"is {kind}; on Spark only Parquet is read", where=where, do="convert it, or run on DuckDB")


def file_states(paths: Sequence[Path]) -> list[FileState]:
    """Files with their sizes and modification times."""
    try:
        return [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in paths]
    except OSError:
        return []


def select_exact(frame: DataFrame, wanted: Collection[str], where: str) -> DataFrame:
    """Some columns of a frame by their exact names, even if its session ignores case."""
    names = _distinct(frame, where)
    places = [i for i, name in enumerate(names) if name in wanted]
    numbered = frame.toDF(*(f"column_{i}" for i in range(len(names))))
    return numbered.select(*(f"column_{i}" for i in places)).toDF(*(names[i] for i in places))


def _distinct(frame: DataFrame, where: str) -> list[str]:
    names = frame.columns
    if len(set(names)) < len(names):
        raise SourceError("has two columns with the same name", where=where, do="rename one of them")
    return names


def scan_of_frame(frame: DataFrame, where: str) -> FrameScan:
    """A frame's columns and types."""
    _distinct(frame, where)
    kinds = {field.name: frozenset([_arrow(field.dataType)]) for field in frame.schema.fields}
    return FrameScan(where, kinds, (), {}, frame)


def scan_of_files(frame: DataFrame, where: str) -> FrameScan:
    """Columns and types of files. A type is refused if any value of it could make Spark's reader fail."""
    scan = scan_of_frame(frame, where)
    unsafe = {field.name: field.dataType for field in frame.schema.fields if not isinstance(field.dataType, _SAFE)}
    return replace(scan, kinds={**scan.kinds, **{name: frozenset([_decoded(kind)]) for name, kind in unsafe.items()}})


def _decoded(kind: DataType) -> UnsupportedType:
    return UnsupportedType(
        f"{kind.simpleString()} (below a URI Spark decodes it; on a path that all workers see, Arrow does)"
    )


def _arrow(kind: DataType) -> pa.DataType:
    try:
        return to_arrow_type(kind, prefers_large_types=True)
    except PySparkException:  # a type unknown to Arrow is refused under its name
        return UnsupportedType(kind.simpleString())


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def select_plain(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """These columns, under plain names that need no quoting."""
    plain = frame.select(*(F.col(quoted(name)) for name in columns)) if columns else frame.select(F.lit(0))
    return plain.toDF(*(f"column_{i}" for i in range(max(len(columns), 1))))


@contextmanager
def without_statistics(frame: DataFrame) -> Iterator[None]:
    """Change the settings of the user's sessions while a frame of theirs is computed."""
    settings = [session.conf() for session in _sessions(frame)]
    before = [(conf, key, conf.get(key, None)) for conf in settings for key in NO_STATISTICS]
    try:
        for conf, key, _ in before:
            conf.set(key, NO_STATISTICS[key])
        yield
    finally:
        for conf, key, old in before:
            conf.unset(key) if old is None else conf.set(key, old)


def _sessions(frame: DataFrame) -> list[Any]:
    """The frame's session, and those in which its sources were opened: their settings apply when files are read."""
    plan = redact_failures(lambda: frame._jdf.queryExecution().analyzed())
    sessions = [frame._jdf.sparkSession()]
    for part in (plan, *_each(plan.subqueriesAll())):
        for leaf in _each(part.collectLeaves()):
            for source in ("relation", "table"):  # of Spark's first and second data source interface
                with suppress(Py4JError):  # it reads nothing, or has no session of its own
                    session = getattr(leaf, source)().sparkSession()
                    new = session is not None and not any(session.equals(other) for other in sessions)
                    sessions += [session] * new
    return sessions


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
