"""The ledger in a file: triggers, locks, power cuts, and files that are not ledgers."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import LedgerError, LedgerUnavailable, UnconfirmedWrite
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import link
from discreet.privacy.ledger.store import SQLiteStore
from support.ledger_fakes import TIME, budget, forge, funded_ledger, ledger_with_all_events, open_ledger, reserve, rows


@pytest.fixture
def full(path: Path) -> Ledger:
    return ledger_with_all_events(path)


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET body = body", "DELETE FROM entries", "DELETE FROM entries WHERE 1"]
)
def test_the_table_is_append_only(full: Ledger, path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(sql)
    full.verify()


def test_replacing_a_row_does_not_get_past_verify(full: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER no_other_insert")
        connection.execute("INSERT OR REPLACE INTO entries SELECT number, previous, body || ' ', hash FROM entries")
        connection.commit()
    with pytest.raises(LedgerError, match="ledger entry 1"):
        full.verify()


@pytest.mark.parametrize(
    ("column", "value"), [(2, b"\xff"), (2, None), (3, None), (1, None), (0, "two"), (0, None), (3, 5), (2, 2.5)]
)
def test_a_field_of_another_type_is_refused_and_its_entry_named(
    full: Ledger, path: Path, column: int, value: Any
) -> None:
    first, second, *others = rows(path)
    changed = list(second)
    changed[column] = value
    forge(path, [first, (changed[0], changed[1], changed[2], changed[3]), *others])
    with pytest.raises(LedgerError) as caught:
        full.verify()
    assert caught.value.where.startswith("ledger entry")


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_locked_ledger_is_a_clear_refusal_and_quick(full: Ledger, path: Path, lock: str) -> None:
    impatient = open_ledger(path, wait=0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(lock)
        start = time.monotonic()
        with pytest.raises(LedgerError, match=r"locked by another process for more than 0\.2 seconds"):
            impatient.reserve(reserve("r"), simulated=False)
        assert time.monotonic() - start < 2
        if lock == "BEGIN EXCLUSIVE":
            with pytest.raises(LedgerError, match="locked"):
                impatient.chain()
        other.execute("ROLLBACK")
    impatient.reserve(reserve("r"), simulated=False)


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to look at" * 50, os.urandom(8192)])
def test_a_file_that_is_no_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    ledger = open_ledger(path)
    for action in (ledger.verify, lambda: ledger.reserve(reserve(), simulated=False)):
        with pytest.raises(LedgerError) as caught:
            action()
        assert str(path) in caught.value.where


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_refused_unless_every_entry_is_there(full: Ledger, path: Path, keep: float) -> None:
    head, content = full.chain().head, path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    try:
        assert full.verify().head == head
    except LedgerError:
        assert keep < 1


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be used"):
        open_ledger(tmp_path).verify()


def test_reading_creates_nothing(path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        open_ledger(path).verify()
    with pytest.raises(LedgerError):
        open_ledger(path).reserve(reserve(), simulated=False)
    assert not path.exists()


def test_odd_file_names(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory&b#c %41é.sqlite"
    funded_ledger(path).verify()
    assert path.exists()


def interrupted(path: Path, where: Path) -> Path:
    """A copy of a ledger as a power cut in the middle of a write leaves it: with a hot journal."""
    where.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        ((last, head),) = connection.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1")
        hashes = [head, *(f"h{n}" for n in range(50))]
        rows = [(last + 1 + n, hashes[n], "x" * 3000, hashes[n + 1]) for n in range(50)]
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, where / file.name)
        connection.execute("ROLLBACK")
    assert (where / f"{path.name}-journal").stat().st_size > 512
    return where / path.name


def test_a_ledger_can_be_read_after_a_power_cut(full: Ledger, path: Path, tmp_path: Path) -> None:
    after = open_ledger(interrupted(path, tmp_path / "after"))
    assert after.verify().head == full.chain().head


def test_a_ledger_can_be_written_after_a_power_cut(full: Ledger, path: Path, tmp_path: Path) -> None:
    after = open_ledger(interrupted(path, tmp_path / "after"))
    entry = after.reserve(reserve("next"), simulated=False)
    assert entry.previous == full.chain().head


def test_a_beginning_that_was_interrupted_can_be_begun_again(path: Path) -> None:
    path.touch()  # SQLite makes the file, and a crash comes before the first entry
    open_ledger(path).create("real")
    assert len(open_ledger(path).chain().entries) == 1


def test_every_write_reaches_the_disk(path: Path) -> None:
    """In journal mode DELETE only synchronous = EXTRA also syncs the folder after a commit."""
    funded_ledger(path)
    with SQLiteStore(path).transaction() as writer:
        (level,) = writer._connection.execute("PRAGMA synchronous").fetchone()  # type: ignore[attr-defined]
        (journal,) = writer._connection.execute("PRAGMA journal_mode").fetchone()  # type: ignore[attr-defined]
    assert (level, journal) in {(3, "delete"), (2, "wal"), (3, "wal")}


def test_a_budget_begins_a_ledger_whose_beginning_was_interrupted(path: Path) -> None:
    from discreet.api import set_budget

    path.touch()
    set_budget(open_ledger(path), "a", epsilon="1", unit="record")
    assert open_ledger(path).chain().balance("a", TIME.date()).epsilon_left == 1


class Failing(sqlite3.Connection):
    """A disk that fails in the instant of the commit: the journal is gone or not, and nobody can tell."""

    happens = True

    def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            super().execute("COMMIT" if Failing.happens else "ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *more)


@pytest.mark.parametrize("happens", [True, False])
def test_an_entry_whose_commit_failed_is_looked_up(path: Path, monkeypatch: pytest.MonkeyPatch, happens: bool) -> None:
    """An error of the last sync comes after the fact: the reservation is there, and its key must be kept."""
    ledger, connect = funded_ledger(path), sqlite3.connect
    calls = iter([Failing])  # once, when it is written
    monkeypatch.setattr("sqlite3.connect", lambda *a, **k: connect(*a, **k, factory=next(calls, sqlite3.Connection)))
    monkeypatch.setattr(Failing, "happens", happens)
    if happens:
        entry = ledger.reserve(reserve("r"), simulated=False)
        assert ledger.verify().head == entry.hash
    else:
        with pytest.raises(LedgerUnavailable, match="nothing was written"):
            ledger.reserve(reserve("r"), simulated=False)
        assert len(ledger.verify().entries) == 2


def test_an_entry_that_cannot_be_looked_up_is_uncertain(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, connect = funded_ledger(path), sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda *a, **k: connect(*a, **k, factory=Failing))
    with pytest.raises(UnconfirmedWrite, match="may be there or not"), ledger.store.transaction() as writer:
        writer.append(link(3, ledger.chain().head, budget(3)))
