"""What Spark reads: files by their row groups, as DuckDB's engine does; other sources as frames of Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from discreet.engine import readers
from discreet.engine.kinds import Unfit
from discreet.engine.readers import parquet
from discreet.engine.scan import Scan
from discreet.engine.spark.jobs import discreetly
from discreet.errors import SourceError
from discreet.spec import FileSource
from discreet.words import as_path, is_uri

# No predicate on a value may be answered for many records at once, from what a file or a cache lists of them.
NO_STATISTICS = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}


@dataclass(frozen=True)
class FrameScan(Scan):
    """Rows that Spark itself reads."""

    frame: DataFrame | None = None


def files_of(source: FileSource, base: Path) -> tuple[Scan, list[Path]]:
    """The files that a path of this machine means; every worker must be able to read them."""
    where = f"source {source.path}"
    files, kind = readers.find(base / as_path(source.path), source.format, where)
    only_parquet(kind, where)
    paths = [path.absolute() for path in files]
    return parquet.scan(paths, where), paths


def only_parquet(kind: str, where: str) -> None:
    if kind != "parquet":
        raise SourceError(f"is {kind}: Spark reads Parquet here", where=where, do="convert it, or run on DuckDB")


def states(paths: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Files with their sizes and times of change."""
    try:
        return [(str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in paths]
    except OSError:
        return []


def only(frame: DataFrame, wanted: Collection[str], where: str) -> DataFrame:
    """Some columns of a frame, found by their exact names, whatever its session takes for equal."""
    names = _distinct(frame, where)
    places = [i for i, name in enumerate(names) if name in wanted]
    numbered = frame.toDF(*(f"column_{i}" for i in range(len(names))))
    return numbered.select(*(f"column_{i}" for i in places)).toDF(*(names[i] for i in places))


def _distinct(frame: DataFrame, where: str) -> list[str]:
    names = frame.columns
    if len(set(names)) < len(names):
        raise SourceError("has two columns of one name", where=where, do="rename one of them")
    return names


def of_frame(frame: DataFrame, where: str) -> FrameScan:
    """A frame's columns and types."""
    _distinct(frame, where)
    kinds = {field.name: frozenset([_arrow(field.dataType)]) for field in frame.schema.fields}
    return FrameScan(where, kinds, (), {}, frame)


def _arrow(kind: DataType) -> pa.DataType:
    try:
        return to_arrow_type(kind, prefers_large_types=True)
    except PySparkException:  # what Arrow does not know is refused by its name
        return Unfit(kind.simpleString())


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def chosen(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """These columns, under names that are no syntax to anybody."""
    plain = frame.select(*(F.col(quoted(name)) for name in columns)) if columns else frame.select(F.lit(0))
    return plain.toDF(*(f"column_{i}" for i in range(max(len(columns), 1))))


@contextmanager
def without_statistics(session: SparkSession) -> Iterator[None]:
    """The settings of a session that is not ours, for as long as a frame of it is computed."""
    before = {key: session.conf.get(key, None) for key in NO_STATISTICS}
    for key, value in NO_STATISTICS.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)


def listed(frame: DataFrame) -> list[str]:
    """The files of a scan with their sizes and times of change, as Spark listed them."""

    def files() -> str:
        leaf = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0)
        return str(leaf.relation().location().allFiles().mkString("\n"))

    return re.sub(r"access_time=-?\d+", "", discreetly(files)).splitlines()


def uri_of(source: FileSource) -> str | None:
    """Where a source lies, if Spark is to look for it."""
    if not is_uri(source.path):
        return None
    only_parquet(source.format or "parquet", f"source {source.path}")
    return source.path
