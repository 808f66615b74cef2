"""Stores of a ledger's entries: an append-only list with one writer at a time, in SQLite or PostgreSQL."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from discreet import filelock, uris
from discreet.errors import LedgerError, LedgerUnavailable, UnconfirmedWrite
from discreet.privacy.ledger.events import Entry, broken

WAIT_SECONDS = 10.0

_SCHEMA = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, previous TEXT NOT NULL UNIQUE, body TEXT NOT NULL, "
    "hash TEXT NOT NULL UNIQUE)",
    *(
        f"CREATE TRIGGER no_{verb} BEFORE {verb} ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("update", "delete")
    ),
    # Before anything is replaced: SQLite deletes for INSERT OR REPLACE without asking the triggers above.
    "CREATE TRIGGER no_other_insert BEFORE INSERT ON entries "
    "WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries) "
    "OR NEW.previous IS NOT (SELECT coalesce(max(hash), '') FROM entries WHERE number = NEW.number - 1) "
    "OR EXISTS (SELECT 1 FROM entries WHERE hash = NEW.hash) "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)


class Writer(Protocol):
    """A write transaction: read all entries, append one."""

    def entries(self) -> list[Entry]: ...
    def append(self, entry: Entry) -> None: ...


class Store(Protocol):
    """A durable list of entries. `transaction` is exclusive: no other process reserves meanwhile."""

    @property
    def place(self) -> str: ...
    def who(self) -> str: ...
    def exists(self) -> bool: ...
    def create(self, first: Entry, *, private: bool) -> bool: ...
    def entries(self) -> list[Entry]: ...
    @contextmanager
    def transaction(self) -> Iterator[Writer]: ...
    def lock(self, name: str) -> AbstractContextManager[bool]:
        """Lock a name among all users of this store; gives whether it was free."""


def open_store(place: str | Path, base: Path = Path()) -> Store:
    """The store at a place: `postgresql://…` is a database, anything else a file, relative to `base`."""
    text = str(place)
    if uris.is_postgres(text):
        from discreet.privacy.ledger.postgres import PostgresStore

        return PostgresStore(text)
    if "://" in text or re.match(r"(?i)postgres(ql)?:", text):  # a Path has only one slash left
        raise LedgerError(
            "is neither a file nor a PostgreSQL database",
            where=f"ledger {text}" if not uris.holds_password(text) else "ledger",
            do="name a file, or write postgresql://USER@HOST/DATABASE as text",
        )
    return SQLiteStore(base / place)


def whoami() -> str:
    """The operating system's user name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as containers have
        return "unknown"


def missing(place: str) -> LedgerError:
    return LedgerError(
        "does not exist",
        where=f"ledger {place}",
        do="begin it by setting a budget: `discreet ledger budget ASSET --epsilon … --unit …`",
    )


def locked(place: str, wait: float) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"locked by another process for more than {wait:g} seconds",
        where=f"ledger {place}",
        do="wait for it to finish and try again",
    )


def uncertain(place: str, why: str) -> UnconfirmedWrite:
    return UnconfirmedWrite(
        f"{why} while an entry was written: it may be there or not",
        where=f"ledger {place}",
        do="see `discreet ledger show`; a reserved release is completed by `discreet resume`",
    )


class _SQLiteWriter:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def entries(self) -> list[Entry]:
        rows = self._connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number")
        return [_entry(place, row) for place, row in enumerate(rows, start=1)]

    def append(self, entry: Entry) -> None:
        schema = {sql for (sql,) in self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if not schema.issuperset(_SCHEMA):
            raise LedgerError(
                "its triggers were removed: entries could be changed unnoticed",
                where="ledger",
                do="find out by whom, and verify the ledger against every published manifest",
            )
        self._connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", (entry.number, entry.previous, entry.body, entry.hash)
        )


def _entry(place: int, row: tuple[Any, ...]) -> Entry:
    """SQLite stores any type in any column: a field of another type was not written by discreet."""
    if [type(field) for field in row] != [int, str, str, str]:
        raise broken(place, "was changed after it was written: a field is of another type")
    number, previous, body, digest = row
    return Entry(number=number, previous=previous, body=body, hash=digest)


class SQLiteStore:
    """One SQLite file; every transaction takes the write lock before it reads and is on disk before it returns."""

    def __init__(self, path: Path, wait: float = WAIT_SECONDS) -> None:
        self.path, self.wait = path, wait

    @property
    def place(self) -> str:
        return str(self.path)

    def who(self) -> str:
        return whoami()

    def exists(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0  # an interrupted `create` leaves an empty file

    def create(self, first: Entry, *, private: bool) -> bool:
        """Begin with this entry, in one transaction; false if a ledger exists already. SQLite gives its journal the
        permissions of the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if private and not self.exists():
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            os.fchmod(handle, 0o600)
            os.close(handle)
        with self._connect("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            begun = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone() is not None
            if not begun:
                for statement in _SCHEMA:
                    connection.execute(statement)
                _SQLiteWriter(connection).append(first)
            connection.execute("COMMIT")
        return not begun

    def entries(self) -> list[Entry]:
        if not self.exists():
            raise missing(self.place)
        # Not mode=ro: after a power cut even a reader must be able to roll the journal back.
        with self._connect("rw") as connection:
            connection.execute("PRAGMA query_only = ON")
            return _SQLiteWriter(connection).entries()

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with self._connect("rw") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _SQLiteWriter(connection)
            except BaseException:
                if connection.in_transaction:  # a full disk has ended it already
                    connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if _is_lock(error):
                    raise
                # The last steps remove the journal and sync the folder: the entry may be there in spite of the error.
                raise uncertain(self.place, f"the disk failed ({error})") from None

    def lock(self, name: str) -> AbstractContextManager[bool]:
        """A lock file beside the ledger, which all of its users share."""
        path = Path(os.path.realpath(self.path))
        tag = hashlib.sha256(name.encode()).hexdigest()[:32]
        return filelock.try_lock(path.with_name(f".discreet-{tag}.lock"))

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        try:
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            with closing(sqlite3.connect(uri, uri=True, timeout=self.wait, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # syncs the folder too
                yield connection
        except sqlite3.OperationalError as error:
            if _is_lock(error):
                raise locked(self.place, self.wait) from None
            if "full" in str(error):
                raise LedgerUnavailable(
                    "its disk is full", where=f"ledger {self.place}", do="free disk space and try again"
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


def _is_lock(error: sqlite3.Error) -> bool:
    return "locked" in str(error) or "busy" in str(error)
