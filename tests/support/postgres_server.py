"""A real PostgreSQL server from the system's package, for the tests of one process."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ADMIN, OWNER, MEMBERS = "tester", "me", ("ann", "bob")


class PostgresServer:
    """Trusts every local user. It can be killed and restarted."""

    def __init__(self) -> None:
        actual = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").exists() else []
        self.binaries = (
            actual[-1] if actual else Path(shutil.which("initdb") or pytest.fail("no server: make system")).parent
        )
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.numbers = itertools.count(1)

    def begin(self) -> None:
        self._call("initdb", "-D", str(self.folder / "data"), "-U", ADMIN, "--auth=trust", "-E", "UTF8", "--no-sync")
        self.start()
        self.admin(*(f"CREATE ROLE {name} LOGIN" for name in (OWNER, *MEMBERS)))

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        log = str(self.folder / "log")
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-w", "-o", options, "start")

    def kill(self) -> None:
        """Every process of it at once, without goodbye."""
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop", check=False)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, user: str = ADMIN, schema: str = "public") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres?options=-csearch_path%3D{schema}"

    def schema(self) -> str:
        """The address of a new, empty schema, for its owner."""
        name = f"s{next(self.numbers)}"
        self.admin(f"CREATE SCHEMA {name} AUTHORIZATION {OWNER}", f"GRANT USAGE ON SCHEMA {name} TO PUBLIC")
        return self.url(OWNER, name)

    def database(self, encoding: str) -> str:
        """The address of a new, empty database in an encoding, which is not made within a transaction."""
        from adbc_driver_postgresql import dbapi

        name = f"d{next(self.numbers)}"
        made = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        with closing(dbapi.connect(self.url(), autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(made)
        return self.url().replace("/postgres?", f"/{name}?")

    def admin(self, *statements: str) -> None:
        execute(self.url(), *statements)

    def _call(self, *arguments: str, check: bool = True) -> None:
        subprocess.run(
            [self.binaries / arguments[0], *arguments[1:]],
            user=self.user, cwd=self.folder, check=check, capture_output=True,
        )  # fmt: skip


def as_user(url: str, user: str) -> str:
    """The same URL, for another user."""
    return url.replace(f"://{OWNER}@", f"://{user}@")


def execute(url: str, *statements: str, values: Any = None) -> list[Any]:
    """One transaction, past all of discreet; the last statement's rows, where it has some."""
    from adbc_driver_postgresql import dbapi

    with closing(dbapi.connect(url)) as connection:
        rows = []
        for statement in statements:
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                rows = list(cursor.fetchall()) if cursor.description else []
        connection.commit()
    return rows
