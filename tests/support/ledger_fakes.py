"""Small ledgers for tests, and tools to tamper with them."""

import datetime as dt
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from discreet.privacy.guarantee import Guarantee, Person
from discreet.privacy.ledger.events import Budget, ExternalRelease, Reserve
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.store import open_store
from discreet.uris import is_postgres
from support.postgres_server import ADMIN, OWNER, as_user, execute

TIME = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
UNIT = Person(column="pid")
Row = tuple[Any, Any, Any, Any]
Place = Path | str


def open_ledger(place: Place, wait: float = 10.0) -> Ledger:
    store: Any = open_store(place)
    store.wait = wait
    return Ledger(store, clock=lambda: TIME)


def cost(epsilon: Any = 1, **more: Any) -> Guarantee:
    return Guarantee(**{"unit": Person(column="pid", max_records=2), "epsilon": epsilon, **more})


def budget(epsilon: Any = 10, **more: Any) -> Budget:
    return Budget(**{"asset": "a", "unit": UNIT, "epsilon": epsilon, "delta": 0, "who": "me", "time": TIME, **more})


def reserve(release: str = "r", epsilon: Any = 1, **more: Any) -> Reserve:
    fields = {"asset": "a", "guarantee": cost(epsilon), "binding": "00", "spec": "00", "code": "0", "key": "k"}
    return Reserve(**{"release": release, **fields, "output": "out", "names": (), "who": "me", "time": TIME, **more})


def record_event(release: str = "old", epsilon: Any = 1, **more: Any) -> ExternalRelease:
    fields = {"asset": "a", "guarantee": cost(epsilon), "note": "2019", "who": "me", "time": TIME}
    return ExternalRelease(**{"release": release, **fields, **more})


def funded_ledger(place: Place, epsilon: Any = 10, kind: Any = "real", wait: float = 10.0, **more: Any) -> Ledger:
    """A ledger with one budget, for asset `a`."""
    ledger = open_ledger(place, wait)
    ledger.create(kind)
    ledger.set_budget(budget(epsilon, **more))
    return ledger


def ledger_with_all_events(place: Place) -> Ledger:
    """Every kind of entry: genesis, budget, reserve, commit, reserve, abandon, record."""
    ledger = funded_ledger(place)
    ledger.reserve(reserve("one"), simulated=False)
    ledger.commit("one", {"t.csv": "aa"}, "ab")
    ledger.reserve(reserve("two"), simulated=False)
    ledger.abandon("two", "disk full")
    ledger.record(record_event("old"))
    return ledger


def rows(place: Place) -> list[Row]:
    if is_postgres(str(place)):
        return execute(str(place), "SELECT number, previous, body, hash FROM discreet_entries ORDER BY number")
    with closing(sqlite3.connect(place)) as connection:
        return list(connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number"))


def forge(place: Place, forged: list[Row]) -> None:
    """Replace all rows, past types (in SQLite), constraints and triggers: nothing stops these."""
    if is_postgres(str(place)):
        tamper(str(place), "DELETE FROM discreet_entries", *(_inserted(row) for row in forged))
        return
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("DROP TABLE entries")
        connection.execute("CREATE TABLE entries (number, previous, body, hash)")
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", forged)
        connection.commit()


def tamper(url: str, *statements: str) -> None:
    """As the database's administrator: guard and constraints off, the deed, the guard on again."""
    table = "ALTER TABLE discreet_entries"
    keys = ("pkey", "previous_key", "hash_key")
    execute(
        as_user(url, ADMIN), f"{table} DISABLE TRIGGER USER",
        *(f"{table} DROP CONSTRAINT IF EXISTS discreet_entries_{key}" for key in keys),
        *statements, f"{table} ENABLE TRIGGER USER",
    )  # fmt: skip


def _inserted(row: Row) -> str:
    number, *texts = row
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in (*texts, OWNER))
    return f"INSERT INTO discreet_entries VALUES ({number}, {quoted})"
