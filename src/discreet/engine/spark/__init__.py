"""Spark: the same release on a cluster, bit for bit. Needs the extra `discreet[spark]` and Java 17 or 21."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from discreet.engine.workspace import workspace
from discreet.errors import EngineError
from discreet.spec import SparkEngineSpec

if TYPE_CHECKING:
    from discreet.engine.spark.engine import SparkEngine


@contextmanager
def spark_engine(spec: SparkEngineSpec | None, session: Any = None) -> Iterator[SparkEngine]:
    """An engine on a new session, or on an existing one, which stays open and keeps its settings."""
    try:
        from discreet.engine.spark.engine import SparkEngine
        from discreet.engine.spark.jobs import without_spark_logs
        from discreet.engine.spark.session import check_session, start_session
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("pyspark", "py4j", "pandas"):
            raise
        raise EngineError(
            f"needs {error.name}, which is not installed", where="engine spark", do="pip install 'discreet[spark]'"
        ) from None
    with workspace() as folder, without_spark_logs():
        if session is not None:
            with SparkEngine(check_session(session)) as engine:
                yield engine
        elif spec is not None:
            with start_session(spec, folder) as started, SparkEngine(started) as engine:
                yield engine
