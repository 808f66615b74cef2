"""What a server allows, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.catalogue import TableCatalogue


@dataclass(frozen=True)
class Config:
    """Limits of one server."""

    prefix: str = ""  # the path under which a reverse proxy has it, such as /statistics
    max_cells: int = 100_000  # numbers of one answer
    max_calls: int = 300  # of one client in a window of time
    window: int = 10  # seconds
    timeout: float = 10.0  # seconds for one answer
    concurrency: int = 32  # answers at once; more wait, and then are told to come back
    max_body: int = 1 << 16  # bytes of a question
    title: str = "Protected statistics"


@dataclass(frozen=True, eq=False)
class Served:
    """What every route is given."""

    catalogue: TableCatalogue
    config: Config
