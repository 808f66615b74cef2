"""Types of data frames that can replace a declared source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ArrowStream(Protocol):
    """A table with the Arrow PyCapsule interface: PyArrow, Polars, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class LazyFrame(Protocol):
    """A lazy frame of Polars."""

    def collect(self) -> object: ...


class IbisTable(Protocol):
    """A table expression of Ibis."""

    def to_pyarrow(self) -> object: ...


class SparkFrame(Protocol):
    """A DataFrame of Spark."""

    @property
    def sparkSession(self) -> SparkSession: ...  # noqa: N802 - Spark's name


Frame: TypeAlias = ArrowStream | LazyFrame | IbisTable | SparkFrame
Frames: TypeAlias = Frame | Mapping[str, Frame]  # one, or one for each source by its name
