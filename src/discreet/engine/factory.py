"""The engine that a release names, for as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.engine import Engine
from discreet.spec import EngineSpec


@contextmanager
def open_engine(spec: EngineSpec, session: Any = None) -> Iterator[Engine]:
    """DuckDB in this process, or Spark: on an existing session, or on one of our own."""
    if spec == "duckdb" and session is None:
        from discreet.engine.duckdb import duckdb_engine

        with duckdb_engine() as engine:
            yield engine
        return
    from discreet.engine.spark import spark_engine

    with spark_engine(None if spec == "duckdb" else spec, session) as engine:
        yield engine
