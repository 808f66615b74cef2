"""The ledger in PostgreSQL: privileges, undetected actions of an administrator, and a server that goes away."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from adbc_driver_postgresql import dbapi

from discreet.cli.output import ledger_lines
from discreet.errors import DiscreetError, LedgerError, LedgerUnavailable, UnconfirmedWrite
from discreet.noise.keystore import FileKeyStore
from discreet.privacy.ledger.events import Commit, Genesis, canonical
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.postgres import PostgresStore
from discreet.privacy.ledger.state import entry_hash, link
from discreet.privacy.ledger.store import open_store
from support.ledger_fakes import (
    TIME,
    budget,
    funded_ledger,
    ledger_with_all_events,
    open_ledger,
    record_event,
    reserve,
    tamper,
)
from support.postgres_server import ADMIN, PostgresServer, as_user, execute
from support.repository import ROOT

INSERT = "INSERT INTO discreet_entries VALUES ($1, $2, $3, $4, $5)"


@pytest.fixture
def url(server: PostgresServer) -> str:
    return server.schema()


@pytest.fixture
def team(url: str) -> str:
    """A ledger begun by its owner and opened to Ann."""
    funded_ledger(url)
    execute(url, "GRANT SELECT, INSERT ON discreet_entries TO ann")
    return as_user(url, "ann")


@pytest.fixture
def restarted(server: PostgresServer) -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    yield server
    server.kill()
    server.start()


def one_line(error: DiscreetError) -> str:
    text = str(error)
    assert "\n" not in text
    assert "libpq" not in text
    assert error.__suppress_context__ or error.__context__ is None
    assert error.do
    return text


# --- who may do what ----------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_member_spends_and_everybody_sees_who_spent_what(url: str, team: str) -> None:
    open_ledger(url).reserve(reserve("mine", 2), simulated=False)
    ann = open_ledger(team)
    assert ann.who() == "ann"
    ann.reserve(reserve("hers", 3, who="ann"), simulated=False)
    ann.record(record_event("old", "0.5", who="ann"))
    ann.commit("hers", {"t.csv": "aa"}, "ab")
    assert ann.verify().balance("a", TIME.date()).epsilon_left == Fraction(9, 2)
    shown = "\n".join(ledger_lines(ann))
    assert (
        "  ever spent: epsilon 5.5, delta 0\n    by me: epsilon 2, delta 0\n    by ann: epsilon 3.5, delta 0" in shown
    )


def test_only_the_owner_sets_budgets(url: str, team: str) -> None:
    with pytest.raises(LedgerError, match="budgets are set by the owner") as caught:
        open_ledger(team).set_budget(budget(99, who="ann"))
    one_line(caught.value)
    execute(as_user(url, ADMIN), "GRANT me TO ann")
    try:
        open_ledger(team).set_budget(budget(99, who="ann"))
    finally:
        execute(as_user(url, ADMIN), "REVOKE me FROM ann")
    assert open_ledger(url).chain().balance("a", TIME.date()).budget.epsilon == 99


def test_nobody_writes_in_the_name_of_another(url: str, team: str) -> None:
    head = open_ledger(url).chain().head
    with pytest.raises(LedgerError, match="must name the user who writes it"):
        open_ledger(team).reserve(reserve("r", who="me"), simulated=False)
    body = canonical(reserve("r", who="me").model_dump(mode="json"))
    doubled = '{"who":"me",' + canonical(reserve("r", who="ann").model_dump(mode="json"))[1:]
    unnamed = '{"kind":"reserve"}'
    for forged in (body, doubled, unnamed, '{"kind":"budget","who":"ann"}', '{"kind":"genesis"}', "no json", "[]"):
        row = (3, head, forged, entry_hash(3, head, forged), "me")
        with pytest.raises(dbapi.Error):
            execute(team, INSERT, values=row)
    assert open_ledger(url).verify().head == head


def insert(url: str, event: Any) -> None:
    """An entry written by hand, as a member could."""
    chain = open_ledger(url).chain()
    body = event if isinstance(event, str) else canonical(event.model_dump(mode="json"))
    number = len(chain.entries) + 1
    execute(url, INSERT, values=(number, chain.head, body, entry_hash(number, chain.head, body), "x"))


def test_nobody_takes_over_what_another_reserved(url: str, team: str) -> None:
    """A second reservation of the name, or a commit of other bytes, would publish in the first one's name."""
    open_ledger(url).reserve(reserve("mine", 2), simulated=False)
    head = open_ledger(url).chain().head
    for event in (
        reserve("mine", 1, who="ann"),
        record_event("mine", "0.1", who="ann"),
        Commit(release="mine", files={}, manifest="ab"),
    ):
        with pytest.raises(dbapi.Error, match="reserved once, and committed by who reserved it"):
            insert(team, event)
    with pytest.raises(LedgerError, match="must name the user who writes it"):
        open_ledger(team).commit("mine", {"t.csv": "aa"}, "ab")
    assert open_ledger(url).verify().head == head
    open_ledger(url).commit("mine", {"t.csv": "aa"}, "ab")
    with pytest.raises(dbapi.Error, match="reserved once"):
        insert(url, Commit(release="mine", files={"t.csv": "bb"}, manifest="ab"))


def test_an_entry_of_no_known_kind_is_refused_by_the_server(url: str, team: str) -> None:
    """It would make the ledger unreadable for everybody."""
    with pytest.raises(dbapi.Error, match="no such kind"):
        insert(team, '{"kind":"nonsense","who":"ann"}')
    open_ledger(url).verify()


def test_an_operator_in_the_path_is_not_called(url: str, team: str) -> None:
    """What a member may create in a schema of the path must not run with the owner's rights."""
    schema = execute(url, "SELECT current_schema()::text")[0][0]
    execute(as_user(url, ADMIN), f'GRANT CREATE ON SCHEMA "{schema}" TO ann')
    execute(team, "CREATE TABLE called (who text)")
    execute(team, "GRANT ALL ON called TO PUBLIC")
    execute(
        team,
        "CREATE FUNCTION trap(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS "
        f'$$ BEGIN INSERT INTO "{schema}".called VALUES (session_user); RETURN $1 = $2::oid; END $$',
    )
    execute(team, "CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = trap)")
    owner = open_ledger(url)
    owner.set_budget(budget("9"))
    owner.verify()
    assert execute(url, "SELECT count(*) FROM called") == [(0,)]


def test_the_server_notes_the_writer_whatever_is_claimed(url: str, team: str) -> None:
    head = open_ledger(url).chain().head
    body = canonical(reserve("r", who="ann").model_dump(mode="json"))
    execute(team, INSERT, values=(3, head, body, entry_hash(3, head, body), "me"))
    assert execute(url, "SELECT written_by FROM discreet_entries WHERE number = 3") == [("ann",)]
    open_ledger(url).verify()


def test_only_the_end_of_the_chain_can_be_written(url: str, team: str) -> None:
    head = open_ledger(url).chain().head
    body = canonical(reserve("r", who="ann").model_dump(mode="json"))
    for row in (
        (4, head, body, entry_hash(4, head, body), "ann"),
        (3, "x", body, entry_hash(3, "x", body), "ann"),
        (3, head, body, "0" * 64, "ann"),
    ):
        with pytest.raises(dbapi.Error, match="continues the chain"):
            execute(team, INSERT, values=row)
    open_ledger(url).verify()


@pytest.mark.parametrize(
    "sql", ["UPDATE discreet_entries SET body = body", "DELETE FROM discreet_entries", "TRUNCATE discreet_entries"]
)
def test_not_even_the_owner_changes_or_removes_an_entry(url: str, sql: str) -> None:
    ledger = ledger_with_all_events(url)
    for user in ("me", ADMIN):
        with pytest.raises(dbapi.Error, match="append-only"):
            execute(as_user(url, user), sql)
    ledger.verify()


def test_a_user_without_access_is_told(url: str, team: str) -> None:
    bob = open_ledger(as_user(url, "bob"))
    for action in (bob.verify, lambda: bob.reserve(reserve("r", who="bob"), simulated=False)):
        with pytest.raises(LedgerError, match="lacks the right") as caught:
            action()
        assert "GRANT SELECT, INSERT" in one_line(caught.value)
    execute(url, "GRANT SELECT ON discreet_entries TO bob")
    bob.verify()
    with pytest.raises(LedgerError, match="lacks the right"):
        bob.reserve(reserve("r", who="bob"), simulated=False)


def test_a_member_cannot_begin_a_ledger_where_only_the_owner_may(url: str) -> None:
    with pytest.raises(LedgerError, match=r"lacks the right|schema does not exist") as caught:
        open_ledger(as_user(url, "ann")).create("real")
    one_line(caught.value)
    assert not open_store(url).exists()


# --- an administrator ---------------------------------------------------------------------------------------------


def test_a_row_edited_by_an_administrator_is_detected(url: str) -> None:
    ledger = ledger_with_all_events(url)
    tamper(
        url, 'UPDATE discreet_entries SET body = replace(body, \'"epsilon":"1"\', \'"epsilon":"0"\') WHERE number = 3'
    )
    with pytest.raises(LedgerError, match="its hash does not fit") as caught:
        ledger.verify()
    assert caught.value.where == "ledger entry 3"
    with pytest.raises(LedgerError):
        ledger.reserve(reserve("next"), simulated=False)


def test_an_entry_noted_under_another_writer_is_named(url: str) -> None:
    ledger = ledger_with_all_events(url)
    tamper(url, "UPDATE discreet_entries SET written_by = 'bob' WHERE number = 5")
    with pytest.raises(LedgerError, match="names 'me', but was written by 'bob'") as caught:
        ledger.verify()
    assert caught.value.where == "ledger entry 5"


def test_a_cut_tail_shows_against_a_head_from_outside(url: str, tmp_path: Path) -> None:
    ledger = ledger_with_all_events(url)
    head = ledger.chain().head
    tamper(url, "DELETE FROM discreet_entries WHERE number > 4")
    with pytest.raises(LedgerError, match="entries 5 to 7 are not those that this key store has seen"):
        ledger.verify()
    ledger = ledger.remembered_by(FileKeyStore(tmp_path / "keys of somebody who has not seen it"))
    ledger.verify()
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.verify(head)


def test_nothing_is_written_past_a_guard_that_is_off(url: str) -> None:
    ledger = ledger_with_all_events(url)
    execute(url, "ALTER TABLE discreet_entries DISABLE TRIGGER discreet_guard_rows")
    with pytest.raises(LedgerError, match="guard is switched off") as caught:
        ledger.reserve(reserve("next"), simulated=False)
    one_line(caught.value)
    ledger.verify()  # it can still be looked at
    execute(url, "ALTER TABLE discreet_entries ENABLE TRIGGER ALL")
    ledger.reserve(reserve("next"), simulated=False)


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE discreet_entries (id int)", "CREATE VIEW discreet_entries AS SELECT 1 AS number"],
)
def test_a_table_of_another_kind_is_no_ledger(url: str, sql: str) -> None:
    execute(url, sql)
    for action in (open_ledger(url).verify, lambda: open_ledger(url).reserve(reserve(), simulated=False)):
        with pytest.raises(LedgerError, match="is no ledger") as caught:
            action()
        one_line(caught.value)


# --- one writer at a time -----------------------------------------------------------------------------------------


def test_a_locked_ledger_is_a_clear_refusal(url: str) -> None:
    ledger, impatient = ledger_with_all_events(url), open_ledger(url, wait=0.2)
    with ledger.store.transaction():
        for action in (
            lambda: impatient.reserve(reserve("r"), simulated=False),
            lambda: impatient.abandon("one", "why"),
        ):
            with pytest.raises(LedgerUnavailable, match=r"locked by another process for more than 0\.2 seconds"):
                action()
        impatient.verify()  # reading waits for nobody
    impatient.reserve(reserve("r"), simulated=False)


def test_a_table_locked_by_hand_is_a_clear_refusal(url: str) -> None:
    impatient = open_ledger(url, wait=0.2)
    ledger_with_all_events(url)
    with dbapi.connect(url) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE discreet_entries")
        with pytest.raises(LedgerUnavailable, match="locked"):
            impatient.verify()


def test_of_four_who_begin_at_once_one_wins(url: str) -> None:
    gate, won = threading.Barrier(4), []

    def begin(i: int) -> None:
        first = link(1, "", Genesis(ledger="real", nonce=f"{i:032x}", time=TIME))
        store = PostgresStore(url)
        gate.wait(20)
        won.append(store.create(first, private=False))

    threads = [threading.Thread(target=begin, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(won) == [False, False, False, True]
    assert len(open_ledger(url).verify().entries) == 1


def test_a_release_is_worked_on_by_one_at_a_time(url: str) -> None:
    one, other = PostgresStore(url), PostgresStore(as_user(url, "ann"))
    with one.lock("n-r") as first, other.lock("n-r") as second, other.lock("n-s") as third:
        assert (first, second, third) == (True, False, True)
    with other.lock("n-r") as again:
        assert again


def test_settings_of_the_server_do_not_weaken_a_transaction(url: str) -> None:
    funded_ledger(url)
    lax = url + "%20-csynchronous_commit%3Doff%20-cdefault_transaction_isolation%3Dserializable"
    lax += "%20-cdefault_transaction_read_only%3Don"
    store = PostgresStore(lax)
    with store._transaction("READ WRITE") as session:
        names = ("synchronous_commit", "transaction_isolation", "transaction_read_only")
        assert [session.ask(f"SELECT current_setting('{name}')")[0][0] for name in names] == [
            "on",
            "read committed",
            "off",
        ]
    open_ledger(lax).reserve(reserve("r"), simulated=False)


# --- a server that goes away --------------------------------------------------------------------------------------


def disconnect(url: str) -> None:
    """End every other connection of the ledger's owner."""
    execute(
        as_user(url, ADMIN),
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'me'",
    )


def test_a_connection_lost_inside_a_transaction_wrote_nothing(url: str) -> None:
    ledger = funded_ledger(url)
    head = ledger.chain().head

    def lost() -> None:
        with ledger.store.transaction() as writer:
            writer.append(link(3, head, budget(99)))
            disconnect(url)
            writer.entries()

    with pytest.raises(LedgerUnavailable, match="connection to the server was lost; nothing was written") as caught:
        lost()
    one_line(caught.value)
    assert ledger.verify().head == head


def test_a_server_killed_inside_a_transaction_kept_nothing(url: str, restarted: PostgresServer) -> None:
    ledger = funded_ledger(url)
    head = ledger.chain().head

    def killed() -> None:
        with ledger.store.transaction() as writer:
            writer.append(link(3, head, budget(99)))
            restarted.kill()

    with pytest.raises(UnconfirmedWrite):
        killed()
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        ledger.verify()
    restarted.start()
    assert ledger.verify().head == head


class Cut(PostgresStore):
    """The connection is cut in the instant of the commit: before it, after it, or after it with the server."""

    when, server = "after", None

    def _commit(self, session: Any) -> None:
        if self.when == "before":
            disconnect(self.url)
        else:
            super()._commit(session)
        if isinstance(self.server, PostgresServer):
            self.server.kill()
        if self.when != "never":
            when, self.when = self.when, "never"
            if when == "before":
                super()._commit(session)
            raise UnconfirmedWrite("cut", where="test", do="look")


def cut(url: str, when: str, server: PostgresServer | None = None) -> Ledger:
    store = Cut(url)
    store.when, store.server = when, server  # type: ignore[assignment]
    return Ledger(store, clock=lambda: TIME)


def test_an_entry_whose_commit_was_not_confirmed_is_looked_up(url: str) -> None:
    ledger = funded_ledger(url)
    entry = cut(url, "after").reserve(reserve("r"), simulated=False)
    assert ledger.verify().releases()["r"].reserved_at == entry
    with pytest.raises(LedgerUnavailable, match="nothing was written") as caught:
        cut(url, "before").reserve(reserve("s"), simulated=False)
    assert not isinstance(caught.value, UnconfirmedWrite)
    assert ledger.verify().head == entry.hash


def test_an_entry_that_cannot_be_looked_up_is_uncertain(url: str, restarted: PostgresServer) -> None:
    ledger = funded_ledger(url)
    with pytest.raises(UnconfirmedWrite):
        cut(url, "after", restarted).reserve(reserve("r"), simulated=False)
    restarted.start()
    assert ledger.verify().releases()["r"].status == "reserved"


# --- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("postgresql://me@127.0.0.1:1/postgres", "server cannot be reached"),
        ("postgresql://me@nowhere.invalid/postgres", "server cannot be reached"),
        ("postgresql://me@127.0.0.1:{port}/nowhere", "database does not exist"),
        ("postgresql://stranger@127.0.0.1:{port}/postgres", "does not let this user in"),
        ("postgresql://me@127.0.0.1:{port}/postgres?sslmode=require", "as secure as `sslmode` requires"),
        ("postgresql://me@127.0.0.1:{port}/postgres?surprise=1", "no PostgreSQL address"),
        ("postgresql://me@127.0.0.1:port/postgres", "no PostgreSQL address"),
        ("postgresql://%zz", "no PostgreSQL address"),
        ("postgres://me@127.0.0.1:{port}/postgres?options=-csearch_path%3Dnowhere", "does not exist"),
    ],
)
def test_every_bad_address_is_one_clear_line(server: PostgresServer, address: str, says: str) -> None:
    ledger = open_ledger(address.format(port=server.port), wait=2)
    for action in (ledger.verify, lambda: ledger.create("real"), lambda: ledger.reserve(reserve(), simulated=False)):
        with pytest.raises(LedgerError, match=says) as caught:
            action()
        one_line(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:XSECRETX@127.0.0.1/postgres",
        "postgresql://127.0.0.1/postgres?password=XSECRETX",
        "postgresql://127.0.0.1/postgres?p%61ssword=XSECRETX",
        "POSTGRESQL://me:XSECRETX@127.0.0.1/postgres",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(LedgerError) as caught:
        open_store(address)
    assert "XSECRETX" not in str(caught.value)


@pytest.mark.parametrize("place", ["mysql://db/x", "postgresql:db", Path("postgresql://db/x"), "Postgres://db/x"])
def test_what_looks_like_an_address_never_becomes_a_file(place: Any, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="neither a file nor a PostgreSQL database"):
        open_store(place, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_its_driver_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(LedgerError, match=r"discreet\[postgres\]"):
        open_ledger("postgresql://db/x").verify()


def test_the_steps_of_the_manual(server: PostgresServer) -> None:
    """The SQL of docs/operations.md, as the administrator and as the ledger's owner; then Carla spends."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    first, second, third = re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    def run(user: str, database: str, sql: str) -> None:
        with dbapi.connect(address(user, database), autocommit=True) as connection, connection.cursor() as cursor:
            for statement in sql.split(";\n"):
                if statement:
                    cursor.execute(statement)

    def address(user: str, database: str) -> str:
        return f"postgresql://{user}@127.0.0.1:{server.port}/{database}?options=-csearch_path%3Dgraduates"

    run(ADMIN, "postgres", first)
    run(ADMIN, "ledgers", second)
    office, carla = (open_ledger(address(user, "ledgers")) for user in ("office", "carla"))
    office.create("real")
    office.set_budget(budget(who="office"))
    run("office", "ledgers", third)
    carla.reserve(reserve("r", who="carla"), simulated=False)
    with pytest.raises(LedgerError, match="budgets are set by the owner"):
        carla.set_budget(budget(99, who="carla"))
    assert [entry[0] for entry in execute(office.store.place, "SELECT written_by FROM discreet_entries")] == [
        "office", "office", "carla",
    ]  # fmt: skip
