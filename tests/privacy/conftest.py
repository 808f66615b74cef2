"""One suite for every store: a place is a file, or a schema of a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.privacy.ledger.ledger import Ledger
from support.ledger_fakes import Place, ledger_with_all_events
from support.postgres_server import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    """Makes places where no ledger is yet, all in the same kind of store."""
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("server")
        return server.schema
    return lambda: tmp_path_factory.mktemp("place") / "ledger.sqlite"


@pytest.fixture
def place(new_place: Callable[[], Place]) -> Place:
    return new_place()


@pytest.fixture
def full(place: Place) -> Ledger:
    return ledger_with_all_events(place)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"
