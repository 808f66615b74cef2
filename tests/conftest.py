"""What every test needs: an isolated home, its tier, and a look at what was left elsewhere. And what many use: the
small agency, a PostgreSQL server, an object store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import hypothesis_profile  # noqa: F401 (for all tests)
from support.agency import Agency
from support.object_store import S3Server, s3_server, set_s3_credentials
from support.postgres_server import PostgresServer
from support.tidiness import pytest_sessionfinish, pytest_sessionstart, pytest_terminal_summary
from support.tiers import pytest_collection_modifyitems, pytest_configure, pytest_xdist_make_scheduler

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
]


@pytest.fixture(autouse=True, scope="session")
def away_from_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nor does a fixture that many tests share."""
    home = tmp_path_factory.mktemp("away")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        yield


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's keys or temporary folder."""
    home = tmp_path_factory.mktemp("isolated")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("DISCREET_KEYS", str(home / "keys"))
    monkeypatch.setenv("DISCREET_TMP", str(home / "tmp"))
    return home


@pytest.fixture
def agency(tmp_path: Path) -> Agency:
    return Agency(tmp_path / "agency")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """One for all tests of this process; each takes a schema of its own."""
    server = PostgresServer()
    try:
        server.begin()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def object_server() -> Iterator[int]:
    """The port of an object store, one for all tests of this process; each takes a prefix of its own."""
    with s3_server() as port:
        yield port


@pytest.fixture
def store(object_server: int, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    set_s3_credentials(monkeypatch)
    return S3Server(object_server)
