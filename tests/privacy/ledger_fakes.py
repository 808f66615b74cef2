"""Small ledgers for tests, and the attacker's tools."""

import datetime as dt
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from discreet.privacy.events import Budget, Recorded, Reserve
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger
from discreet.privacy.store import SQLiteStore
from discreet.privacy.unit import Person

TIME = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
UNIT = Person(column="pid")
Row = tuple[Any, Any, Any, Any]


def open_ledger(path: Path, wait: float = 10.0) -> Ledger:
    return Ledger(SQLiteStore(path, wait), clock=lambda: TIME)


def cost(epsilon: Any = 1, **more: Any) -> Guarantee:
    return Guarantee(**{"unit": Person(column="pid", max_records=2), "epsilon": epsilon, **more})


def budget(epsilon: Any = 10, **more: Any) -> Budget:
    return Budget(**{"asset": "a", "unit": UNIT, "epsilon": epsilon, "delta": 0, "who": "me", "time": TIME, **more})


def reserve(release: str = "r", epsilon: Any = 1, **more: Any) -> Reserve:
    fields = {"asset": "a", "guarantee": cost(epsilon), "binding": "00", "spec": "00", "code": "0", "key": "k"}
    return Reserve(**{"release": release, **fields, "output": "out", "who": "me", "time": TIME, **more})


def recorded(release: str = "old", epsilon: Any = 1, **more: Any) -> Recorded:
    fields = {"asset": "a", "guarantee": cost(epsilon), "note": "2019", "who": "me", "time": TIME}
    return Recorded(**{"release": release, **fields, **more})


def started(path: Path, epsilon: Any = 10, kind: Any = "real", wait: float = 10.0, **more: Any) -> Ledger:
    """A ledger with one budget, for asset `a`."""
    ledger = open_ledger(path, wait)
    ledger.create(kind)
    ledger.set_budget(budget(epsilon, **more))
    return ledger


def rows(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number"))


def forge(path: Path, forged: list[Row]) -> None:
    """Replace the table by one without types, constraints or triggers: nothing stops these rows."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE entries")
        connection.execute("CREATE TABLE entries (number, previous, body, hash)")
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", forged)
        connection.commit()
