"""Where a ledger's entries lie: an append-only list with one writer at a time. SQLite by default."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

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
    def create(self, first: Entry) -> bool: ...
    def entries(self) -> list[Entry]: ...
    @contextmanager
    def transaction(self) -> Iterator[Writer]: ...


class _Rows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def entries(self) -> list[Entry]:
        rows = self._connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number")
        return [_entry(place, row) for place, row in enumerate(rows, start=1)]

    def append(self, entry: Entry) -> None:
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", (entry.number, entry.previous, entry.body, entry.hash)
        )


def _entry(place: int, row: tuple[Any, ...]) -> Entry:
    """SQLite stores any type in any column: a field of another one was not written by us."""
    if [type(field) for field in row] != [int, str, str, str]:
        raise LedgerError(
            "was changed after it was written: a field is of another type",
            where=f"ledger entry {place}",
            do="restore the ledger from a copy; spend nothing until then",
        )
    number, previous, body, digest = row
    return Entry(number=number, previous=previous, body=body, hash=digest)


class SQLiteStore:
    """One file; every transaction takes the write lock before it reads and is on disk before it returns."""

    def __init__(self, path: Path, wait: float = WAIT_SECONDS) -> None:
        self.path, self.wait = path, wait

    @property
    def place(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0  # an interrupted beginning leaves an empty file

    def create(self, first: Entry) -> bool:
        """Begin with this entry, in one transaction; whether it did, or somebody had begun before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            begun = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone() is not None
            if not begun:
                for statement in _SCHEMA:
                    connection.execute(statement)
                _Rows(connection).append(first)
            connection.execute("COMMIT")
        return not begun

    def entries(self) -> list[Entry]:
        # Not mode=ro: after a power cut even a reader must be able to roll the journal back.
        with self._connect("rw") as connection:
            connection.execute("PRAGMA query_only = ON")
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
                connection.execute("PRAGMA synchronous = EXTRA")  # syncs the folder too
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
