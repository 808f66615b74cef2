"""The configuration of a server: its limits and its path."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.catalogue import TableCatalogue


@dataclass(frozen=True)
class Config:
    """Limits and path of one server."""

    prefix: str = ""  # the path under which a reverse proxy serves it, such as /statistics
    max_cells: int = 100_000  # numbers in one answer
    max_calls: int = 300  # requests of one client in a time window
    window: int = 10  # seconds
    timeout: float = 10.0  # seconds for one answer
    concurrency: int = 32  # concurrent answers; further requests wait, then get 503
    max_body: int = 1 << 16  # bytes of a query
    title: str = "Protected statistics"


@dataclass(frozen=True, eq=False)
class ServerContext:
    """What every route has access to."""

    catalogue: TableCatalogue
    config: Config
