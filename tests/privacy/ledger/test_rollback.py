"""An old copy of the ledger allows no second draw: entries that the key store has seen must be present."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import discreet
from discreet.cli.output import ledger_lines
from discreet.errors import DiscreetError, LedgerError, ReleaseKeyError, UnconfirmedWrite
from discreet.noise.key import ReleaseKey
from discreet.noise.keystore import FileKeyStore, default_keys
from discreet.pipeline.abandon import restore
from discreet.privacy.guarantee import Guarantee, Person
from discreet.privacy.ledger.events import ExternalRelease, Restoration
from discreet.privacy.ledger.ledger import Ledger, now
from support.agency import Agency
from support.ledger_fakes import budget, funded_ledger, open_ledger, record_event, reserve

ROLLED_BACK = "was rolled back or replaced"
TRIES = [pytest.param(2, id="few"), pytest.param(20, id="many", marks=pytest.mark.full)]


# --- five ways to have a second draw for one price ------------------------------------------------------------------
# Each takes a copy of what it likes while nothing is spent, lets a release be paid for and published, and puts its copy
# back. What is counted is how often noise was drawn again: an output besides the first.


def ledger_alone(agency: Agency, copy: Path) -> None:
    shutil.copy(copy / "discreet-ledger.sqlite", agency.ledger_path)
    agency.release().run(agency.folder / "again")


def ledger_and_folder(agency: Agency, copy: Path) -> None:
    """Everything but the key store: the records, the declaration, the outputs as if nothing had been published."""
    shutil.rmtree(agency.folder)
    shutil.copytree(copy, agency.folder)
    agency.release().run(agency.folder / "again")


def longer_fork(agency: Agency, copy: Path) -> None:
    """As many entries and more, written by somebody with a key store of their own."""
    shutil.copy(copy / "discreet-ledger.sqlite", agency.ledger_path)
    other = discreet.ledger(agency.ledger_path).remembered_by(FileKeyStore(agency.folder / "other"))
    for i in range(5):
        other.record(outside(f"old{i}"))
    agency.release().run(agency.folder / "again")


def another_path(agency: Agency, copy: Path) -> None:
    discreet.release(agency.spec(), ledger=copy / "discreet-ledger.sqlite").run(agency.folder / "again")


def outside(name: str) -> ExternalRelease:
    """A release from elsewhere, of 1/1000 for the agency's budget."""
    guarantee = Guarantee(unit=Person(column="person_id", max_records=2), epsilon="1/1000")
    return record_event(name, asset="graduates", guarantee=guarantee, time=now())


@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("way", [ledger_alone, ledger_and_folder, longer_fork, another_path])
def test_an_old_ledger_allows_no_second_draw(way: Callable[[Agency, Path], None], tries: int, tmp_path: Path) -> None:
    for i in range(tries):
        agency, copy = Agency(tmp_path / f"agency{i}"), tmp_path / f"copy{i}"
        shutil.copytree(agency.folder, copy)
        agency.release().run(agency.folder / "out")
        with pytest.raises(LedgerError, match=ROLLED_BACK):
            way(agency, copy)
        assert not (agency.folder / "again").exists()
        assert not default_keys().names()


def race(spec: Path, ledger: Path, out: Path) -> str:
    try:
        discreet.release(spec, ledger=ledger).run(out)
    except DiscreetError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("tries", TRIES)
def test_of_runs_that_race_on_copies_one_draws(tries: int, tmp_path: Path) -> None:
    """Both copies have what the key store has seen, until one of them goes on."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for i in range(tries):
            agency = Agency(tmp_path / f"agency{i}")
            copy, spec = tmp_path / f"copy{i}.sqlite", agency.spec()
            shutil.copy(agency.ledger_path, copy)
            pairs = [(agency.ledger_path, agency.folder / "one"), (copy, agency.folder / "two")]
            refused = [f.result() for f in [pool.submit(race, spec, *pair) for pair in pairs]]
            assert sorted(ROLLED_BACK in text for text in refused) == [False, True], refused
            assert sorted(out.exists() for _, out in pairs) == [False, True]


# --- what is asked of a ledger, and when ----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def behind(place: Path) -> Ledger:
    """A ledger that lacks its last entry, a reservation of 1 of 10."""
    ledger = funded_ledger(place)
    copy = place.with_name("copy")
    shutil.copy(place, copy)
    ledger.reserve(reserve("lost"), simulated=False)
    shutil.copy(copy, place)
    return ledger


@pytest.mark.parametrize(
    "step",
    [
        lambda ledger: ledger.reserve(reserve("r"), simulated=False),
        lambda ledger: ledger.commit("lost", {}, "ab"),
        lambda ledger: ledger.abandon("lost", "a test"),
        lambda ledger: ledger.record(record_event()),
        lambda ledger: ledger.set_budget(budget(20)),
        lambda ledger: ledger.remember(),
        lambda ledger: ledger.verify(),
    ],
    ids=["reserve", "commit", "abandon", "record", "budget", "remember", "verify"],
)
def test_nothing_is_written_to_an_old_ledger(step: Callable[[Ledger], object], place: Path) -> None:
    ledger = behind(place)
    before = place.read_bytes()
    with pytest.raises(LedgerError, match=ROLLED_BACK + ": entry 3 is not"):
        step(ledger)
    assert place.read_bytes() == before


def test_an_old_ledger_can_be_shown_and_says_so(place: Path) -> None:
    lines = ledger_lines(behind(place))
    assert "ROLLED BACK: 1 of the entries that this key store has seen are missing" in lines


def test_what_others_add_is_no_rollback(place: Path, tmp_path: Path) -> None:
    ledger = funded_ledger(place)
    ledger.remembered_by(FileKeyStore(tmp_path / "other")).record(record_event())
    ledger.reserve(reserve("r"), simulated=False)
    assert len(ledger.verify().entries) == 4


def test_an_unseen_reservation_is_stored_as_seen_before_it_is_resumed(agency: Agency) -> None:
    """A crash between the ledger's entry and the note: nothing was drawn yet. Before anything is, the note is made."""
    nonce = agency.release().ledger.chain().nonce
    noted = default_keys().recall(nonce)
    with pytest.raises(KeyboardInterrupt):
        agency.release().run(agency.folder / "out", observe=stop_at("reserve"))
    default_keys().remember(nonce, noted)

    def look(step: str, done: int, total: int) -> None:
        assert default_keys().recall(nonce) != noted

    agency.release().resume(observe=look)


def stop_at(step: str) -> Callable[[str, int, int], None]:
    def observe(name: str, done: int, total: int) -> None:
        if name == step:
            raise KeyboardInterrupt

    return observe


def test_an_entry_that_the_key_store_cannot_store_keeps_the_key(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is in the ledger: without its key nobody could complete it."""
    remember = FileKeyStore.remember

    def full(self: FileKeyStore, ledger: str, content: bytes) -> None:
        if b'\\"reserve\\"' in content:
            raise OSError(28, "No space left on device")
        remember(self, ledger, content)

    with monkeypatch.context() as patch:
        patch.setattr(FileKeyStore, "remember", full)
        with pytest.raises(UnconfirmedWrite, match="could not note"):
            agency.release().run(agency.folder / "out")
    assert len(default_keys().names()) == 1
    agency.release().resume()
    assert not default_keys().names()


@pytest.mark.parametrize("content", [b"x", b"{}", b'{"format": "discreet-ledger-memory/1"}', b'{"format": '
    b'"discreet-ledger-memory/2", "entries": []}'])  # fmt: skip
def test_a_damaged_memory_stops_everything(content: bytes, place: Path) -> None:
    ledger = funded_ledger(place)
    default_keys().remember(ledger.chain().nonce, content)
    with pytest.raises(ReleaseKeyError, match="damaged or of another version"):
        ledger.reserve(reserve(), simulated=False)


# --- a restore that is meant ----------------------------------------------------------------------------------------


def test_lost_entries_are_entered_again_as_they_were(agency: Agency, tmp_path: Path) -> None:
    """Heads of manifests are in the ledger again, the cost is spent, and what was reserved can be resumed."""
    copy = tmp_path / "copy"
    shutil.copy(agency.ledger_path, copy)
    made = agency.release().run(agency.folder / "out")
    with pytest.raises(KeyboardInterrupt):
        agency.release(release="r2").run(agency.folder / "out2", observe=stop_at("reserve"))
    shutil.copy(copy, agency.ledger_path)
    ledger = agency.release().ledger
    restored, unfinished = restore(ledger, default_keys(), "the disk failed")
    assert (restored.again, restored.lost, unfinished) == (3, (), ())
    assert made.ledger.head in {entry.hash for entry in ledger.verify(made.ledger.head).entries}
    assert ledger.chain().balance("graduates", ledger.clock().date()).epsilon == 4
    agency.release(release="r2").resume()
    assert (agency.folder / "out2" / "manifest.json").exists()


def test_what_a_fork_has_lost_stays_spent(agency: Agency, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(agency.ledger_path, copy)
    with pytest.raises(KeyboardInterrupt):
        agency.release().run(agency.folder / "out", observe=stop_at("reserve"))
    shutil.copy(copy, agency.ledger_path)
    other = discreet.ledger(agency.ledger_path).remembered_by(FileKeyStore(tmp_path / "other"))
    other.record(outside("old"))
    ledger = agency.release().ledger
    restored, unfinished = restore(ledger, default_keys(), "two ledgers were mixed up")
    assert (restored.again, [lost.release for lost in restored.lost], unfinished) == (0, ["r1"], ("r1",))
    assert not default_keys().names()
    assert float(ledger.chain().balance("graduates", ledger.clock().date()).epsilon) == pytest.approx(2.001)
    with pytest.raises(LedgerError, match=r"in the ledger already \(lost, and spent\)"):
        agency.release().run(agency.folder / "out")


def test_what_was_lost_once_is_not_lost_a_second_time(place: Path, tmp_path: Path) -> None:
    """A ledger that lost entries, was restored, and is put back again: the first loss stays spent, too."""
    ledger, copy = funded_ledger(place), tmp_path / "copy"
    shutil.copy(place, copy)
    for i in range(2):
        ledger.reserve(reserve(f"r{i}"), simulated=False)
        shutil.copy(copy, place)
        ledger.remembered_by(FileKeyStore(tmp_path / f"other{i}")).record(record_event(f"old{i}"))
        ledger.restore("a test")
    balance = ledger.verify().balance("a", ledger.clock().date())
    assert balance.epsilon == 4  # r0, r1, old1, and old0, which was in the ledger that the second copy replaced
    assert isinstance(ledger.chain().events[-1], Restoration)


def test_a_ledger_that_lacks_nothing_is_not_restored(place: Path) -> None:
    ledger = funded_ledger(place)
    before = place.read_bytes()
    with pytest.raises(LedgerError, match="lacks nothing"):
        ledger.restore("a test")
    assert place.read_bytes() == before


# --- locks and guards -----------------------------------------------------------------------------------------------


def test_another_temporary_folder_is_no_way_around_the_lock(
    agency: Agency, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock lies with the ledger, whichever name it is reached by."""
    link = tmp_path / "link.sqlite"
    link.symlink_to(agency.ledger_path)

    def second(name: str, done: int, total: int) -> None:
        if name == "reserve":
            monkeypatch.setenv("DISCREET_TMP", str(tmp_path / "elsewhere"))
            for ledger in (agency.ledger_path, link):
                with pytest.raises(LedgerError, match="another process is working on release 'r1'"):
                    discreet.release(agency.spec(), ledger=ledger).resume()

    agency.release().run(agency.folder / "out", observe=second)
    assert not list(agency.folder.glob(".discreet-*"))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO entries SELECT number, previous, '{}', hash FROM entries WHERE number = 2",
        "INSERT OR REPLACE INTO entries SELECT number, 'p', '{}', 'h' FROM entries WHERE number = 2",
        "INSERT OR REPLACE INTO entries SELECT 3, (SELECT hash FROM entries WHERE number = 2), '{}', hash FROM entries "
        "WHERE number = 1",
        "INSERT OR REPLACE INTO entries VALUES (NULL, 'p', '{}', 'h')",
        "REPLACE INTO entries VALUES (1, '', '{}', 'h')",
        "INSERT INTO entries VALUES (7, 'p', '{}', 'h')",
        "UPDATE OR REPLACE entries SET number = 2 WHERE number = 1",
        "DELETE FROM entries",
    ],
)
def test_sqlite_takes_entries_at_the_end_alone(statement: str, place: Path) -> None:
    funded_ledger(place)
    with closing(sqlite3.connect(place)) as connection:
        before = list(connection.execute("SELECT * FROM entries"))
        with pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"):
            connection.execute(statement)
        assert list(connection.execute("SELECT * FROM entries")) == before


@pytest.mark.parametrize("trigger", ["no_update", "no_delete", "no_other_insert"])
def test_a_ledger_without_its_guards_takes_no_entry(trigger: str, place: Path) -> None:
    ledger = funded_ledger(place)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(f"DROP TRIGGER {trigger}")
        connection.commit()
    with pytest.raises(LedgerError, match="its triggers were removed"):
        ledger.reserve(reserve(), simulated=False)
    assert len(open_ledger(place).chain().entries) == 2


# --- simulations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("simulated", [True, False])
def test_a_key_of_the_other_kind_fits_no_reservation(simulated: bool, tmp_path: Path, isolated: Path) -> None:
    agency = Agency(tmp_path / "agency", kind="simulation" if simulated else "real")
    seed = "a test" if simulated else None
    with pytest.raises(KeyboardInterrupt):
        agency.release().run(agency.folder / "out", simulation=seed, observe=stop_at("reserve"))
    (name,) = default_keys().names()
    path = isolated / "keys" / f"{name}.key"
    path.write_bytes(path.read_bytes().replace(*(b"simulation", b"real") if simulated else (b"real", b"simulation")))
    with pytest.raises(LedgerError, match="is a ledger for"):
        agency.release().resume()
    assert not (agency.folder / "out").exists()


def test_the_kind_of_a_key_is_part_of_all_that_is_drawn_from_it() -> None:
    secret = bytes(range(32))
    real, test = ReleaseKey(secret, simulated=False), ReleaseKey(secret, simulated=True)
    assert real.mac([b"x"]) != test.mac([b"x"])
    assert real.subkey("name") != test.subkey("name")


def test_simulations_are_for_their_owner_alone(tmp_path: Path) -> None:
    agency = Agency(tmp_path / "agency", kind="simulation")
    agency.release().run(agency.folder / "out", simulation="a test")
    assert agency.ledger_path.stat().st_mode & 0o777 == 0o600
    assert (agency.folder / "out").stat().st_mode & 0o777 == 0o700
