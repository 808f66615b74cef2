"""Where a ledger's entries lie: an append-only list with one writer at a time. SQLite by default."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from discreet.errors import LedgerError
from discreet.privacy.events import Entry

WAIT_SECONDS = 10.0

_SCHEMA = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, previous TEXT NOT NULL UNIQUE, body TEXT NOT NULL, "
    "hash TEXT NOT NULL UNIQUE)",
    *(
        f"CREATE TRIGGER no_{verb} BEFORE {verb} ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("update", "delete")
    ),
)


class Writer(Protocol):
    """What a transaction can do: see everything, add at the end."""

    def entries(self) -> list[Entry]: ...
    def append(self, entry: Entry) -> None: ...


class Store(Protocol):
    """A durable list of entries. `transaction` is exclusive: nobody else reserves meanwhile."""

    @property
    def place(self) -> str: ...
    def exists(self) -> bool: ...
    def create(self) -> None: ...
    def entries(self) -> list[Entry]: ...
    @contextmanager
    def transaction(self) -> Iterator[Writer]: ...


class _Rows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def entries(self) -> list[Entry]:
        rows = self._connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number")
        return [Entry(number=n, previous=p, body=b, hash=h) for n, p, b, h in rows]

    def append(self, entry: Entry) -> None:
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", (entry.number, entry.previous, entry.body, entry.hash)
        )


class SQLiteStore:
    """One file; every transaction takes the write lock before it reads and is on disk before it returns."""

    def __init__(self, path: Path, wait: float = WAIT_SECONDS) -> None:
        self.path, self.wait = path, wait

    @property
    def place(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def create(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
                for statement in _SCHEMA:
                    connection.execute(statement)
            connection.execute("COMMIT")

    def entries(self) -> list[Entry]:
        with self._connect("ro") as connection:
            return _Rows(connection).entries()

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with self._connect("rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Rows(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        try:
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=self.wait, isolation_level=None)) as connection:
                if mode != "ro":
                    connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise LedgerError(
                    f"locked by another process for more than {self.wait:g} seconds",
                    where=f"ledger {self.place}",
                    do="wait for it to finish and try again",
                ) from None
            raise LedgerError(
                f"cannot be used ({error})", where=f"ledger {self.place}", do="check that it is a ledger and readable"
            ) from None
        except sqlite3.DatabaseError as error:
            raise LedgerError(
                f"is damaged or no ledger ({error})",
                where=f"ledger {self.place}",
                do="restore it from a copy",
            ) from None
