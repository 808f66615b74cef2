"""A ledger in PostgreSQL, for teams: one table of one schema, guarded by a trigger, written under one lock.

The server says who writes (`session_user`); a member of the team spends, only the table's owner sets budgets. Keys
never come here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from discreet import uris
from discreet.errors import LedgerError
from discreet.privacy.ledger import postgres_errors
from discreet.privacy.ledger.events import Entry, broken
from discreet.privacy.ledger.postgres_errors import APPEND_ONLY, FORGED, NOT_LINKED, NOT_OWNER
from discreet.privacy.ledger.store import WAIT_SECONDS, Writer, locked, missing, uncertain

TABLE, GUARD = "discreet_entries", "discreet_guard"
COLUMNS = "number bigint, previous text, body text, hash text, written_by text"

_FIND = f"""
SELECT n.nspname::text, c.relkind = 'r' AND '{COLUMNS}' = (
    SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
  2 = (SELECT count(*) FROM pg_trigger
    WHERE tgrelid = c.oid AND tgname IN ('{GUARD}_rows', '{GUARD}_table') AND tgenabled IN ('O', 'A') AND tgfoid = (
      SELECT p.oid FROM pg_proc p WHERE p.proname = '{GUARD}' AND p.pronamespace = c.relnamespace AND p.pronargs = 0))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = '{TABLE}'
"""  # noqa: S608 - constants
# A transaction that hangs must not hold the others up; a server or client that is gone must be noticed within a minute.
_IDLE_IN_TRANSACTION = "60s"
_URL = {"keepalives_idle": "20", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "50000"}
_SESSION = {"tcp_keepalives_idle": "20", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3"}


class _LedgerTable(NamedTuple):
    """The table of entries, as this user sees it."""

    schema: str
    is_ledger: bool
    guarded: bool


class _Session:
    """One connection. Results are fetched as a whole: the driver reports errors only then."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.schemas: list[str] = []

    def pin_search_path(self) -> None:
        """Resolve names in pg_catalog alone: others may own functions and operators in the search path."""
        ((schemas,),) = self.ask("SELECT pg_catalog.to_json(pg_catalog.current_schemas(false))::pg_catalog.text")
        self.schemas = json.loads(schemas)
        self.do("SET search_path = pg_catalog, pg_temp")

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def do(self, sql: str, *values: Any) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)

    def settings(self, values: dict[str, str], *, local: bool) -> None:
        """Settings of this transaction or session; those that this server version lacks are left out."""
        pairs = ", ".join(f"('{name}', '{value}')" for name, value in values.items())
        self.ask(
            f"SELECT set_config(name, value, {local}) FROM (VALUES {pairs}) AS wanted (name, value) "  # noqa: S608
            "WHERE name IN (SELECT name FROM pg_settings)"
        )

    def find(self) -> _LedgerTable | None:
        """The ledger in the first schema of the path that has one."""
        tables = {row[0]: _LedgerTable(*row) for row in self.ask(_FIND)}
        return next((tables[schema] for schema in self.schemas if schema in tables), None)


class _PostgresWriter:
    def __init__(self, session: _Session, schema: str) -> None:
        self._session, self._table = session, f"{_quoted(schema)}.{TABLE}"

    def entries(self) -> list[Entry]:
        columns = "number, previous, body, hash, written_by"
        return [_entry(*row) for row in self._session.ask(f"SELECT {columns} FROM {self._table} ORDER BY number")]  # noqa: S608

    def append(self, entry: Entry) -> None:
        self._session.do(
            f"INSERT INTO {self._table} (number, previous, body, hash) VALUES ($1, $2, $3, $4)",  # noqa: S608
            entry.number, entry.previous, entry.body, entry.hash,
        )  # fmt: skip


class PostgresStore:
    """One schema of a database; every transaction takes the lock before it reads and is on disk before it returns."""

    def __init__(self, url: str, wait: float = WAIT_SECONDS) -> None:
        if uris.holds_password(url):
            raise LedgerError("its address " + uris.PASSWORD, where="ledger")
        self.url, self.wait = url, wait

    @property
    def place(self) -> str:
        return self.url

    def who(self) -> str:
        """The user who is spending, by the server's `session_user`."""
        return self._who

    @cached_property
    def _who(self) -> str:
        with self._transaction() as session:
            return str(session.ask("SELECT session_user::text")[0][0])

    def exists(self) -> bool:
        with self._transaction() as session:
            return session.find() is not None

    def create(self, first: Entry, *, private: bool) -> bool:  # noqa: ARG002 - the database's owner says who may read
        """Begin with this entry, in one transaction; false if a ledger exists already."""
        with self._transaction("READ WRITE") as session:
            ((encoding,),) = session.ask("SELECT current_setting('server_encoding')")
            schema = session.schemas[0] if session.schemas else None
            if encoding != "UTF8":
                raise LedgerError(
                    f"its database is in {encoding}", where=self._where, do="create one WITH ENCODING 'UTF8'"
                )
            if schema is None:
                raise LedgerError("its schema does not exist", where=self._where, do="let its owner CREATE SCHEMA")
            self._lock(session, schema)
            if session.find() is not None:
                return False
            for statement in _beginning(schema):
                session.do(statement)
            _PostgresWriter(session, schema).append(first)
            self._commit(session)
        return True

    def entries(self) -> list[Entry]:
        with self._transaction() as session:
            return _PostgresWriter(session, self._ledger(session).schema).entries()

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        with self._transaction("READ WRITE") as session:
            table = self._ledger(session)
            if not table.guarded:
                raise LedgerError(
                    "its guard is switched off: entries could be changed unnoticed",
                    where=self._where,
                    do=f"have its owner ask why, verify it, and ALTER TABLE {TABLE} ENABLE TRIGGER ALL",
                )
            self._lock(session, table.schema)
            yield _PostgresWriter(session, table.schema)
            self._commit(session)

    @contextmanager
    def lock(self, name: str) -> Iterator[bool]:
        """Lock a name on a connection of its own: it is released when this process ends, however it ends."""
        with self._connection(autocommit=True) as session:
            session.pin_search_path()
            session.settings({**_SESSION, "idle_session_timeout": "0"}, local=False)
            ((free,),) = session.ask("SELECT pg_try_advisory_lock($1)", _key("release", name))
            yield bool(free)

    @property
    def _where(self) -> str:
        return f"ledger {self.place}"

    def _ledger(self, session: _Session) -> _LedgerTable:
        table = session.find()
        if table is None:
            raise missing(self.place)
        if not table.is_ledger:
            raise LedgerError(
                f"is no ledger: its table {TABLE} is another one", where=self._where, do="name another schema"
            )
        return table

    def _lock(self, session: _Session, schema: str) -> None:
        """Wait for the ledger's lock. Later statements see everything that was written before."""
        session.ask("SELECT pg_advisory_xact_lock($1) IS NULL", _key("ledger", schema))

    def _commit(self, session: _Session) -> None:
        try:
            session.connection.commit()
        except self._driver.Error:
            raise uncertain(self.place, "the connection was lost") from None

    @contextmanager
    def _transaction(self, access: str = "READ ONLY") -> Iterator[_Session]:
        """A transaction that is rolled back unless it is committed."""
        with self._connection(autocommit=False) as session:
            session.do(f"SET TRANSACTION ISOLATION LEVEL READ COMMITTED {access}")
            session.pin_search_path()
            settings = {
                "lock_timeout": f"{max(1, math.ceil(self.wait * 1000))}ms",
                "synchronous_commit": "on",
                "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION,
            }
            session.settings({**settings, **_SESSION}, local=True)
            yield session

    @contextmanager
    def _connection(self, *, autocommit: bool) -> Iterator[_Session]:
        driver, connection = self._driver, None
        defaults = _URL if "PGCONNECT_TIMEOUT" in os.environ else {"connect_timeout": self._patience, **_URL}
        try:
            connection = driver.connect(uris.with_defaults(self.url, defaults), autocommit=autocommit)
            yield _Session(connection)
        except driver.Error as error:
            if connection is None:
                raise postgres_errors.unreachable(str(error), self._where) from None
            if error.sqlstate == postgres_errors.LOCKED:
                raise locked(self.place, self.wait) from None
            raise postgres_errors.refused(error.sqlstate, self._where) from None
        finally:
            if connection is not None:
                with suppress(driver.Error):
                    connection.close()

    @property
    def _patience(self) -> str:
        return str(max(2, math.ceil(self.wait)))  # libpq takes whole seconds, at least two

    @cached_property
    def _driver(self) -> Any:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise LedgerError(
                "needs the PostgreSQL driver", where=self._where, do="pip install 'discreet[postgres]'"
            ) from None
        return dbapi


def _beginning(schema: str) -> list[str]:
    """The statements that create a ledger: its table, and the guard of it."""
    text = Path(__file__).with_name("postgres_guard.sql").read_text(encoding="utf-8")
    codes = {"append_only": APPEND_ONLY, "forged": FORGED, "not_linked": NOT_LINKED, "not_owner": NOT_OWNER}
    names = {"table": f"{_quoted(schema)}.{TABLE}", "guard": f"{_quoted(schema)}.{GUARD}"}
    return text.format(**names, **codes).split(";\n\n")


def _entry(number: int, previous: str, body: str, digest: str, written_by: str) -> Entry:
    """An entry whose body names another user than the server recorded was not written through the guard."""
    try:
        who = json.loads(body).get("who", written_by)
    except (ValueError, AttributeError, RecursionError):
        who = written_by  # not an event: parsing the chain will say so
    if who != written_by:
        raise broken(number, f"names {who!r}, but was written by {written_by!r}")
    return Entry(number=number, previous=previous, body=body, hash=digest)


def _key(kind: str, name: str) -> int:
    """The 64-bit key of a PostgreSQL advisory lock, from a name."""
    return int.from_bytes(hashlib.sha256(f"discreet {kind}\n{name}".encode()).digest()[:8], "big", signed=True)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
