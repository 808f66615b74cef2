"""The ledger: it adds up, it fails closed, and a row changed by hand is named."""

import datetime as dt
import json
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from ledger_fakes import TIME, budget, cost, forge, open_ledger, recorded, reserve, rows, started
from pydantic import ValidationError

from discreet.errors import GuaranteeError, LedgerError, OverBudget
from discreet.privacy.events import Commit, entry_hash, link
from discreet.privacy.ledger import Ledger
from discreet.privacy.store import SQLiteStore
from discreet.privacy.unit import Establishment, Person, Record

DAY = TIME.date()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return started(path)


@pytest.fixture
def full(path: Path) -> Ledger:
    """Every kind of entry: genesis, budget, reserve, commit, reserve, abandon, record."""
    ledger = started(path)
    ledger.reserve(reserve("one"), simulated=False)
    ledger.commit("one", {"t.csv": "aa"})
    ledger.reserve(reserve("two"), simulated=False)
    ledger.abandon("two", "disk full")
    ledger.record(recorded("old"))
    return ledger


def left(ledger: Ledger, asset: str = "a", day: dt.date = DAY) -> Fraction:
    return ledger.chain().balance(asset, day).epsilon_left


# --- spending -----------------------------------------------------------------------------------------------------


def test_reserve_spends_and_commit_costs_nothing_more(ledger: Ledger) -> None:
    ledger.reserve(reserve("r", "1.5"), simulated=False)
    assert left(ledger) == Fraction(17, 2)
    assert ledger.chain().releases()["r"].status == "reserved"
    ledger.commit("r", {"t.csv": "aa"})
    assert left(ledger) == Fraction(17, 2)
    assert ledger.chain().releases()["r"].status == "committed"


def test_over_budget_says_asked_spent_and_left_and_writes_nothing(ledger: Ledger) -> None:
    ledger.reserve(reserve("r", "9.5"), simulated=False)
    head = ledger.chain().head
    with pytest.raises(OverBudget) as caught:
        ledger.reserve(reserve("s", "2/3"), simulated=False)
    assert "asked 2/3, spent 9.5, left 0.5" in str(caught.value)
    assert "'a'" in str(caught.value)
    assert ledger.chain().head == head


def test_a_budget_can_be_spent_to_the_last_bit_and_no_further(ledger: Ledger) -> None:
    for i in range(3):
        ledger.reserve(reserve(f"r{i}", "10/3"), simulated=False)
    assert left(ledger) == 0
    with pytest.raises(OverBudget):
        ledger.reserve(reserve("more", Fraction(1, 10**30)), simulated=False)


def test_abandoned_stays_spent(full: Ledger) -> None:
    assert full.chain().releases()["two"].status == "abandoned"
    assert left(full) == 7
    with pytest.raises(LedgerError, match="abandoned"):
        full.commit("two", {})
    with pytest.raises(LedgerError, match="abandoned"):
        full.abandon("two", "again")
    with pytest.raises(LedgerError, match="new name"):
        full.reserve(reserve("two"), simulated=False)


def test_record_may_exceed_the_budget_and_then_nothing_is_left(ledger: Ledger) -> None:
    ledger.record(recorded("old", 25))
    assert left(ledger) == -15
    with pytest.raises(OverBudget, match="spent 25, left 0"):
        ledger.reserve(reserve("r", Fraction(1, 10**9)), simulated=False)
    with pytest.raises(OverBudget):
        ledger.reserve(reserve("r", 0), simulated=False)


def test_record_needs_a_budget_it_can_be_charged_to(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no budget"):
        ledger.record(recorded(asset="b"))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.record(recorded(guarantee=cost(unit=Record())))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.record(recorded(guarantee=cost(neighbours="substitution")))


@pytest.mark.parametrize("name", ["one", "two", "old"])
def test_a_name_is_used_once(full: Ledger, name: str) -> None:
    for action in (
        lambda: full.reserve(reserve(name), simulated=False),
        lambda: full.record(recorded(name)),
    ):
        with pytest.raises(LedgerError, match="already"):
            action()


def test_a_reserved_name_points_to_resume(ledger: Ledger) -> None:
    ledger.reserve(reserve("r"), simulated=False)
    with pytest.raises(LedgerError, match="discreet resume"):
        ledger.reserve(reserve("r"), simulated=False)


def test_commit_is_idempotent_for_the_same_bytes_and_refused_for_others(ledger: Ledger) -> None:
    ledger.reserve(reserve("r"), simulated=False)
    first = ledger.commit("r", {"a": "1", "b": "2"})
    assert ledger.commit("r", {"b": "2", "a": "1"}) == first
    for other in ({"a": "1"}, {"a": "1", "b": "3"}, {}, {"a": "1", "b": "2", "c": "3"}):
        with pytest.raises(LedgerError, match="other bytes"):
            ledger.commit("r", other)
    assert ledger.chain().head == first.hash


def test_commit_and_abandon_need_a_reservation(ledger: Ledger) -> None:
    for action in (lambda: ledger.commit("x", {}), lambda: ledger.abandon("x", "why")):
        with pytest.raises(LedgerError, match="not in the ledger"):
            action()
    ledger.record(recorded("old"))
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.commit("old", {})


def test_a_committed_release_cannot_be_abandoned(full: Ledger) -> None:
    with pytest.raises(LedgerError, match="is committed"):
        full.abandon("one", "regret")


def test_no_budget_no_release(path: Path) -> None:
    ledger = open_ledger(path)
    with pytest.raises(LedgerError, match="does not exist"):
        ledger.chain()
    ledger.create("real")
    with pytest.raises(LedgerError, match="'a' has no budget"):
        ledger.reserve(reserve(), simulated=False)


def test_assets_do_not_share(ledger: Ledger) -> None:
    ledger.set_budget(budget(1, asset="b"))
    ledger.reserve(reserve("r", 9), simulated=False)
    assert left(ledger, "b") == 1
    ledger.reserve(reserve("s", 1, asset="b"), simulated=False)
    with pytest.raises(OverBudget):
        ledger.reserve(reserve("t", 1, asset="b"), simulated=False)
    assert ledger.chain().lifetime("a") == cost(9)
    assert ledger.chain().lifetime("c") is None


def test_a_later_budget_replaces_an_earlier_one_but_forgets_nothing(ledger: Ledger) -> None:
    ledger.reserve(reserve("r", 9), simulated=False)
    ledger.set_budget(budget(5))
    assert left(ledger) == -4
    ledger.set_budget(budget(12))
    assert left(ledger) == 3


# --- units, delta, neighbours, periods ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [Record(), Person(column="household", max_records=1), Establishment(column="pid", alpha=1, adversary="weak")],
)
def test_a_promise_for_another_unit_is_not_charged(ledger: Ledger, unit: Any) -> None:
    head = ledger.chain().head
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.reserve(reserve(guarantee=cost(unit=unit)), simulated=False)
    assert ledger.chain().head == head


def test_alpha_budgets(path: Path) -> None:
    def unit(alpha: str, adversary: Any = "strong") -> Establishment:
        return Establishment(column="e", alpha=alpha, adversary=adversary)

    ledger = started(path, unit=unit("0.1"))
    ledger.reserve(reserve("r", guarantee=cost(2, unit=unit("0.2"))), simulated=False)
    assert left(ledger) == 8
    for weaker in (unit("0.05"), unit("0.1", "weak")):
        with pytest.raises(GuaranteeError):
            ledger.reserve(reserve("s", guarantee=cost(unit=weaker)), simulated=False)


def test_a_substitution_budget_charges_double(path: Path) -> None:
    ledger = started(path, neighbours="substitution")
    ledger.reserve(reserve("r", 2), simulated=False)
    ledger.reserve(reserve("s", guarantee=cost(2, neighbours="substitution")), simulated=False)
    assert left(ledger) == 4


def test_an_add_remove_budget_takes_no_substitution(ledger: Ledger) -> None:
    with pytest.raises(GuaranteeError):
        ledger.reserve(reserve(guarantee=cost(neighbours="substitution")), simulated=False)


def test_delta_has_a_budget_of_its_own(path: Path) -> None:
    ledger = started(path, delta="0.001")
    ledger.reserve(reserve("r", guarantee=cost(1, delta="0.0006")), simulated=False)
    with pytest.raises(OverBudget, match=r"delta: asked 0\.0006, spent 0\.0006, left 0\.0004"):
        ledger.reserve(reserve("s", guarantee=cost(1, delta="0.0006")), simulated=False)
    ledger.reserve(reserve("s", guarantee=cost(1, delta="0.0004")), simulated=False)
    assert ledger.chain().balance("a", DAY).delta_left == 0


def test_a_pure_budget_takes_no_delta(ledger: Ledger) -> None:
    with pytest.raises(OverBudget, match="delta"):
        ledger.reserve(reserve(guarantee=cost(1, delta=Fraction(1, 10**12))), simulated=False)


def test_a_period_has_its_own_budget_and_a_lifetime_has_none(path: Path) -> None:
    ledger = started(path, 2, start="2026-01-01", end="2026-12-31")
    ledger.set_budget(budget(3, start="2027-01-01", end="2027-12-31"))
    ledger.reserve(reserve("r", 2), simulated=False)
    with pytest.raises(OverBudget):
        ledger.reserve(reserve("s", 1), simulated=False)
    ledger.reserve(reserve("s", 3, time=dt.datetime(2027, 1, 1, tzinfo=dt.UTC)), simulated=False)
    assert left(ledger, day=dt.date(2027, 12, 31)) == 0
    assert left(ledger) == 0
    for day in (dt.date(2025, 12, 31), dt.date(2028, 1, 1)):
        with pytest.raises(LedgerError, match=f"no budget in force on {day}"):
            left(ledger, day=day)
    spent = ledger.chain().lifetime("a")
    assert spent is not None
    assert spent.epsilon == 5


def test_bad_budgets_are_refused() -> None:
    for bad in (
        {"epsilon": 0},
        {"epsilon": 1.5},
        {"epsilon": "-1"},
        {"delta": "2"},
        {"delta": "-1"},
        {"start": "2026-02-01", "end": "2026-01-01"},
        {"neighbours": "any"},
        {"asset": 5},
        {"surprise": 1},
    ):
        with pytest.raises(ValidationError):
            budget(**bad)


# --- simulations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["real", "simulation"])
def test_simulations_and_releases_do_not_mix(path: Path, kind: Any) -> None:
    ledger = started(path, kind=kind)
    right = kind == "simulation"
    with pytest.raises(LedgerError, match="takes no"):
        ledger.reserve(reserve(), simulated=not right)
    assert len(ledger.chain().entries) == 2
    ledger.reserve(reserve(), simulated=right)
    assert ledger.chain().kind == kind


def test_a_ledger_is_begun_once(ledger: Ledger) -> None:
    for kind in ("real", "simulation"):
        with pytest.raises(LedgerError, match="exists already"):
            ledger.create(kind)  # type: ignore[arg-type]
    assert ledger.chain().kind == "real"


def test_a_kind_that_is_none_is_refused(path: Path) -> None:
    with pytest.raises(ValidationError):
        open_ledger(path).create("pretend")  # type: ignore[arg-type]


# --- the chain ----------------------------------------------------------------------------------------------------


def test_verify_accepts_any_head_it_ever_had(full: Ledger) -> None:
    for entry in full.chain().entries:
        assert full.verify(entry.hash).head == full.chain().head
    with pytest.raises(LedgerError, match="rolled back"):
        full.verify("0" * 64)


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET body = body", "DELETE FROM entries", "DELETE FROM entries WHERE 1"]
)
def test_the_table_is_append_only(full: Ledger, path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(sql)
    full.verify()


def test_replacing_a_row_does_not_get_past_verify(full: Ledger, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT OR REPLACE INTO entries SELECT number, previous, body || ' ', hash FROM entries")
        connection.commit()
    with pytest.raises(LedgerError, match="ledger entry 1"):
        full.verify()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "ledger.sqlite"
    ledger = started(path)
    for i in range(3):
        ledger.reserve(reserve(f"r{i}"), simulated=False)
    ledger.commit("r0", {"t.csv": "aa"})
    ledger.abandon("r1", "why not")
    ledger.record(recorded("old"))
    return path


def forged(template: Path, change: Any) -> Ledger:
    copy = Path(tempfile.mkdtemp(dir=template.parent)) / "ledger.sqlite"
    shutil.copy(template, copy)
    forge(copy, change(rows(copy)))
    return open_ledger(copy)


@settings(max_examples=70, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_character_is_found_and_its_entry_named(template: Path, data: st.DataObject) -> None:
    before = rows(template)
    number = data.draw(st.integers(1, len(before)))
    column = data.draw(st.sampled_from([1, 2, 3]))
    text = before[number - 1][column]
    action = data.draw(st.sampled_from(["change", "insert", "delete"] if text else ["insert"]))
    place = data.draw(st.integers(0, len(text) - (action != "insert")))
    char = data.draw(st.characters(codec="utf-8", exclude_characters="\0"))
    tail = place + (action != "insert")
    changed = text[:place] + (char if action != "delete" else "") + text[tail:]
    if changed == text:
        return

    def change(old: list[Any]) -> list[Any]:
        row = list(old[number - 1])
        row[column] = changed
        return [*old[: number - 1], tuple(row), *old[number:]]

    ledger = forged(template, change)
    with pytest.raises(LedgerError) as caught:
        ledger.verify()
    assert caught.value.where == f"ledger entry {number}"
    with pytest.raises(LedgerError):
        ledger.reserve(reserve("next"), simulated=False)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_missing_moved_and_renumbered_entries_are_found(template: Path, data: st.DataObject) -> None:
    size = len(rows(template))
    i = data.draw(st.integers(1, size - 1))
    j = data.draw(st.integers(i + 1, size))

    def swap(old: list[Any], columns: slice) -> list[Any]:
        new = [list(row) for row in old]
        new[i - 1][columns], new[j - 1][columns] = new[j - 1][columns], new[i - 1][columns]
        return new

    change = data.draw(
        st.sampled_from(
            [
                lambda old: [row for row in old if row[0] != i],
                lambda old: [(n - (n > i), *rest) for n, *rest in old if n != i],
                lambda old: swap(old, slice(1, 4)),
                lambda old: swap(old, slice(2, 3)),
                lambda old: swap(old, slice(2, 4)),
                lambda old: [(n + (n >= i), *rest) for n, *rest in old],
                lambda old: [(n + (n > i) * 5, *rest) for n, *rest in old],
                lambda old: [*old[:i], (i, *old[i - 1][1:]), *old[i:]],
            ]
        )
    )
    with pytest.raises(LedgerError) as caught:
        forged(template, change).verify()
    assert caught.value.where in {f"ledger entry {i}", f"ledger entry {i + 1}"}


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_cut_tail_shows_only_against_an_outside_head(template: Path, lost: int) -> None:
    head = rows(template)[-1][3]
    ledger = forged(template, lambda old: old[:-lost])
    ledger.verify()
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.verify(head)


def test_a_ledger_written_anew_shows_only_against_an_outside_head(template: Path) -> None:
    """Who can recompute every hash can tell any story, but not one that contains a published head."""
    head = rows(template)[-1][3]

    def cheaper(old: list[Any]) -> list[Any]:
        new, previous = [], ""
        for number, _, written, _ in old:
            body = written.replace('"epsilon":"1"', '"epsilon":"0.001"')
            new.append((number, previous, body, entry_hash(number, previous, body)))
            previous = new[-1][3]
        return new

    ledger = forged(template, cheaper)
    ledger.verify()
    with pytest.raises(LedgerError, match="replaced"):
        ledger.verify(head)


def relinked(old: list[Any], body: str) -> list[Any]:
    """One more entry, correctly chained."""
    number, previous = len(old) + 1, old[-1][3]
    return [*old, (number, previous, body, entry_hash(number, previous, body))]


@pytest.mark.parametrize(
    "body",
    [
        '{"kind":"refund","release":"r0","epsilon":"1"}',
        '{"release":"r0"}',
        '{"kind":"commit","release":"r0","files":{},"surprise":1}',
        '{"kind":"commit","release":"r0"}',
        "not json",
        "",
        "null",
        "[]",
    ],
)
def test_an_unknown_event_is_refused_and_named(template: Path, body: str) -> None:
    ledger = forged(template, lambda old: relinked(old, body))
    number = len(rows(template)) + 1
    for action in (ledger.verify, ledger.chain, lambda: ledger.reserve(reserve("next"), simulated=False)):
        with pytest.raises(LedgerError, match="not an event this version knows") as caught:
            action()
        assert caught.value.where == f"ledger entry {number}"


def test_an_inexact_or_unconvertible_guarantee_is_refused(template: Path) -> None:
    good = rows(template)[2][2]
    floating = good.replace('"epsilon":"1"', '"epsilon":0.5')
    assert floating != good
    with pytest.raises(LedgerError, match="a float"):
        forged(template, lambda old: relinked(old, floating)).verify()
    foreign = json.loads(good)
    foreign["guarantee"]["unit"] = {"kind": "record"}
    foreign["release"] = "foreign"
    ledger = forged(template, lambda old: relinked(old, json.dumps(foreign)))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.reserve(reserve("next"), simulated=False)


def test_an_end_without_a_beginning_is_refused_and_named(template: Path) -> None:
    orphan = link(1, "", Commit(release="ghost", files={})).body
    ledger = forged(template, lambda old: relinked(old, orphan))
    with pytest.raises(LedgerError, match="never reserved") as caught:
        ledger.chain().releases()
    assert caught.value.where == f"ledger entry {len(rows(template)) + 1}"


def test_a_ledger_begins_with_its_genesis(template: Path) -> None:
    with pytest.raises(LedgerError, match="beginning"):
        forged(template, lambda _: []).verify()
    second = rows(template)[1][2]
    with pytest.raises(LedgerError, match="beginning"):
        forged(template, lambda _: [(1, "", second, entry_hash(1, "", second))]).verify()


@pytest.mark.parametrize(
    ("column", "value"), [(2, b"\xff"), (2, None), (3, None), (1, None), (0, "two"), (0, None), (3, 5), (2, 2.5)]
)
def test_a_field_of_another_type_is_refused_and_its_entry_named(template: Path, column: int, value: Any) -> None:
    def change(old: list[Any]) -> list[Any]:
        row = list(old[1])
        row[column] = value
        return [old[0], tuple(row), *old[2:]]

    with pytest.raises(LedgerError) as caught:
        forged(template, change).verify()
    assert caught.value.where.startswith("ledger entry")


# --- the file -----------------------------------------------------------------------------------------------------


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


def test_a_transaction_that_fails_leaves_nothing(ledger: Ledger) -> None:
    head = ledger.chain().head

    def interrupted_write() -> None:
        with ledger.store.transaction() as writer:
            writer.append(link(3, head, budget(99)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_write()
    assert ledger.chain().head == head


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
    started(path).verify()
    assert path.exists()


def interrupted(path: Path, where: Path) -> Path:
    """A copy of a ledger as a power cut in the middle of a write leaves it: with a hot journal."""
    where.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", [(n, f"p{n}", "x" * 3000, f"h{n}") for n in range(100, 150)]
        )
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


def test_a_budget_begins_a_ledger_whose_beginning_was_interrupted(path: Path) -> None:
    from discreet.api import set_budget

    path.touch()
    set_budget(open_ledger(path), "a", epsilon="1", unit="record")
    assert left(open_ledger(path)) == 1


def test_every_write_reaches_the_disk(path: Path) -> None:
    """In journal mode DELETE only synchronous = EXTRA also syncs the folder after a commit."""
    started(path)
    with SQLiteStore(path).transaction() as writer:
        (level,) = writer._connection.execute("PRAGMA synchronous").fetchone()  # type: ignore[attr-defined]
        (journal,) = writer._connection.execute("PRAGMA journal_mode").fetchone()  # type: ignore[attr-defined]
    assert (level, journal) in {(3, "delete"), (2, "wal"), (3, "wal")}


# --- any sequence of operations -----------------------------------------------------------------------------------

names = st.sampled_from(["r1", "r2", "r3"])
amounts = st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)])


class AnySequence(RuleBasedStateMachine):
    """Whatever is done in whatever order: the chain holds, the sums are right, nothing is overspent."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = started(Path(self.folder.name) / "l.sqlite", 4)
        self.limit, self.spent, self.status = Fraction(4), Fraction(0), dict[str, str]()
        self.files: dict[str, dict[str, str]] = {}
        self.facts = Fraction(0)  # recorded, or spent under a larger budget
        self.heads = [self.ledger.chain().head]

    def teardown(self) -> None:
        self.folder.cleanup()

    def attempt(self, allowed: bool, action: Any) -> bool:
        if allowed:
            entry = action()
            if entry.hash not in self.heads:
                self.heads.append(entry.hash)
        else:
            with pytest.raises(LedgerError):
                action()
        return allowed

    @rule(name=names, amount=amounts)
    def reserve(self, name: str, amount: Fraction) -> None:
        allowed = name not in self.status and self.spent + amount <= self.limit
        if self.attempt(allowed, lambda: self.ledger.reserve(reserve(name, amount), simulated=False)):
            self.status[name] = "reserved"
            self.spent += amount

    @rule(name=names, files=st.sampled_from([{"t": "1"}, {"t": "2"}]))
    def commit(self, name: str, files: dict[str, str]) -> None:
        status = self.status.get(name)
        allowed = status == "reserved" or (status == "committed" and self.files[name] == files)
        if self.attempt(allowed, lambda: self.ledger.commit(name, files)):
            self.status[name], self.files[name] = "committed", files

    @rule(name=names)
    def abandon(self, name: str) -> None:
        if self.attempt(self.status.get(name) == "reserved", lambda: self.ledger.abandon(name, "why")):
            self.status[name] = "abandoned"

    @rule(name=names, amount=amounts)
    def record(self, name: str, amount: Fraction) -> None:
        if self.attempt(name not in self.status, lambda: self.ledger.record(recorded(name, amount))):
            self.status[name] = "recorded"
            self.spent += amount
            self.facts = max(self.facts, self.spent)

    @rule(limit=st.sampled_from([Fraction(1), Fraction(4), Fraction(6)]))
    def set_budget(self, limit: Fraction) -> None:
        self.attempt(True, lambda: self.ledger.set_budget(budget(limit)))
        self.limit, self.facts = limit, max(self.facts, self.spent)

    @invariant()
    def adds_up(self) -> None:
        chain = self.ledger.verify(self.heads[0])
        assert [entry.hash for entry in chain.entries][1:] == self.heads
        balance = chain.balance("a", DAY)
        assert (balance.epsilon, balance.budget.epsilon) == (self.spent, self.limit)
        assert balance.epsilon <= max(self.limit, self.facts)
        assert {n: s.status for n, s in chain.releases().items()} == {
            n: s for n, s in self.status.items() if s != "recorded"
        }


AnySequence.TestCase.settings = settings(max_examples=12, stateful_step_count=14, deadline=None, derandomize=True)
TestAnySequence = AnySequence.TestCase


def test_the_clock_may_not_run_backwards(path: Path) -> None:
    """Or a spent period could be opened again."""
    ledger = started(path)
    early = reserve("r1").model_copy(update={"time": ledger.chain().latest() - dt.timedelta(days=365)})
    with pytest.raises(LedgerError, match="behind the ledger's last entry"):
        ledger.reserve(early, simulated=False)


def test_what_could_not_be_read_again_is_not_written(path: Path) -> None:
    """Two costs of 1,900 digits each have a sum that no longer parses: refused, and the ledger stays readable."""
    ledger = started(path, 10)
    d = 10**1900 + 7
    cost = reserve("r1", Fraction(d + 1, d) + Fraction(d + 3, d + 2))
    with pytest.raises(LedgerError):
        ledger.reserve(cost, simulated=False)
    assert len(ledger.chain().entries) == 2


def test_ledgers_begun_in_the_same_second_differ(tmp_path: Path) -> None:
    heads = {started(tmp_path / f"{i}.sqlite").chain().entries[0].hash for i in range(3)}
    assert len(heads) == 3
