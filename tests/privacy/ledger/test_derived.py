"""Derived releases: post-processing of kept measurements, an entry without cost. In every kind of store."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from discreet.cli.output import ledger_lines
from discreet.errors import LedgerError
from discreet.noise.keystore import FileKeyStore
from discreet.privacy.confidential import Derivation
from discreet.privacy.guarantee import Guarantee, Record
from discreet.privacy.ledger.events import DerivedRelease, canonical
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import entry_hash
from support.ledger_fakes import TIME, Place, Row, forge, funded_ledger, open_ledger, record_event, reserve, rows

DAY = TIME.date()
KEPT = {"measurements.json": "bb", "t~measured.parquet": "cc"}


def derived(release: str = "new", of: str = "one", **more: Any) -> DerivedRelease:
    fields = {"asset": "a", "spec": "00", "code": "0", "output": "out", "files": {"t.csv": "dd"}, "manifest": "ab"}
    return DerivedRelease(**{"release": release, "of": of, **fields, "who": "me", "time": TIME, **more})


@pytest.fixture
def ledger(place: Place) -> Ledger:
    """With a release that has kept its measurements, and one that has not."""
    ledger = funded_ledger(place)
    ledger.reserve(reserve("one", keep="inside"), simulated=False)
    ledger.commit("one", {"t.csv": "aa"}, "ab", KEPT)
    ledger.reserve(reserve("bare"), simulated=False)
    ledger.commit("bare", {"t.csv": "aa"}, "ab")
    return ledger


def test_a_day_that_changes_meanwhile_is_not_entered_with_files_of_the_day_before(ledger: Ledger) -> None:
    """Another writer was first, a moment after midnight; files and manifest have the day before."""
    midnight = (TIME + dt.timedelta(days=1)).replace(hour=0, minute=0, second=0)
    ledger.record(record_event("late", time=midnight))
    head = ledger.chain().head
    with pytest.raises(LedgerError, match="the day has changed meanwhile"):
        ledger.derive(derived(time=midnight - dt.timedelta(seconds=20)), simulated=False)
    assert ledger.chain().head == head
    ledger.derive(derived(time=midnight + dt.timedelta(seconds=1)), simulated=False)


def test_a_derivation_has_no_cost(ledger: Ledger) -> None:
    before = ledger.chain()
    entry = ledger.derive(derived(), simulated=False)
    after = ledger.verify()
    assert after.balance("a", DAY) == before.balance("a", DAY)
    assert after.lifetime("a") == before.lifetime("a")
    assert after.spending("a") == before.spending("a")
    assert len(after.entries) == len(before.entries) + 1
    assert after.derived() == {"new": (derived(), entry)}
    assert after.head == entry.hash


def test_it_needs_no_budget(place: Place) -> None:
    ledger = funded_ledger(place, epsilon=1)
    ledger.reserve(reserve("one", keep="inside"), simulated=False)
    ledger.commit("one", {}, "ab", KEPT)
    assert ledger.chain().balance("a", DAY).epsilon_left == 0
    ledger.derive(derived(), simulated=False)


def test_a_cost_cannot_be_written(ledger: Ledger) -> None:
    for cost in ("1", "", 0, None):
        with pytest.raises(ValidationError):
            derived(cost=cost)
    assert json.loads(ledger.derive(derived(), simulated=False).body)["cost"] == "0"


def test_a_name_is_used_once(ledger: Ledger) -> None:
    ledger.record(record_event("old"))
    ledger.reserve(reserve("open"), simulated=False)
    for name in ("one", "bare", "old", "open"):
        with pytest.raises(LedgerError, match="in the ledger already"):
            ledger.derive(derived(name), simulated=False)
    ledger.derive(derived(), simulated=False)
    assert "new" in ledger.chain().names()
    with pytest.raises(LedgerError, match=r"in the ledger already \(derived\)"):
        ledger.reserve(reserve("new"), simulated=False)
    with pytest.raises(LedgerError, match=r"in the ledger already \(derived\)"):
        ledger.record(record_event("new"))


def test_only_what_was_kept_can_be_derived_from(ledger: Ledger) -> None:
    ledger.record(record_event("old"))
    ledger.reserve(reserve("open", keep="inside"), simulated=False)
    ledger.reserve(reserve("gone", keep="inside"), simulated=False)
    ledger.abandon("gone", "a test")
    head = ledger.chain().head
    for of, match in (
        ("bare", "has kept no measurements"),
        ("open", "is reserved, not committed"),
        ("gone", "was abandoned"),
        ("old", "is not in the ledger"),
        ("nobody", "is not in the ledger"),
        ("new", "is not in the ledger"),
    ):
        with pytest.raises(LedgerError, match=match):
            ledger.derive(derived(of=of), simulated=False)
    assert ledger.chain().head == head


def test_the_same_bytes_again_are_no_new_entry(ledger: Ledger) -> None:
    first = ledger.derive(derived(kept=KEPT), simulated=False)
    assert ledger.derive(derived(kept=KEPT), simulated=False) == first
    later = derived(kept=KEPT, time=TIME + dt.timedelta(days=3))
    assert ledger.derive(later, simulated=False) == first
    assert ledger.chain().head == first.hash


@pytest.mark.parametrize(
    "change",
    [
        {"files": {}},
        {"files": {"t.csv": "de"}},
        {"files": {"t.csv": "dd", "u.csv": "dd"}},
        {"kept": {}},
        {"kept": {**KEPT, "measurements.json": "bc"}},
        {"of": "two"},
        {"asset": "b"},
        {"spec": "01"},
        {"code": "1"},
        {"output": "elsewhere"},
        {"keep": "elsewhere"},
        {"who": "you"},
    ],
)
def test_other_bytes_are_refused(ledger: Ledger, change: Any) -> None:
    head = ledger.derive(derived(kept=KEPT), simulated=False).hash
    with pytest.raises(LedgerError, match="was derived with other bytes"):
        ledger.derive(derived(**{"kept": KEPT, **change}), simulated=False)
    assert ledger.chain().head == head


def test_the_ledger_lists_kept_measurements(ledger: Ledger) -> None:
    ledger.derive(derived(kept={"measurements.json": "ee"}), simulated=False)
    chain = ledger.chain()
    assert chain.kept("one") == KEPT
    assert chain.kept("bare") == {}
    assert chain.kept("new") == {"measurements.json": "ee"}


def test_a_chain_of_derivations_leads_back_to_its_noise(ledger: Ledger) -> None:
    ledger.derive(derived("new", kept=KEPT), simulated=False)
    ledger.derive(derived("newer", "new"), simulated=False)
    assert ledger.chain().origin("newer").reserve.release == "one"
    assert ledger.chain().origin("one").reserve.release == "one"
    with pytest.raises(LedgerError, match="has kept no measurements"):
        ledger.derive(derived("newest", "newer"), simulated=False)


def test_a_commit_with_other_measurements_is_refused(ledger: Ledger) -> None:
    ledger.commit("one", {"t.csv": "aa"}, "ab", KEPT)
    for kept in ({}, None, {**KEPT, "more": "dd"}):
        with pytest.raises(LedgerError, match="committed with other bytes"):
            ledger.commit("one", {"t.csv": "aa"}, "ab", kept)


def test_a_derivation_is_not_abandoned(ledger: Ledger) -> None:
    ledger.derive(derived(), simulated=False)
    with pytest.raises(LedgerError, match="was derived: nothing was reserved for it"):
        ledger.abandon("new", "a test")


def test_simulations_stay_apart(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="takes no simulation"):
        ledger.derive(derived(), simulated=True)
    assert "new" not in ledger.chain().names()


def test_a_clock_a_little_behind_is_set_right_and_one_far_behind_refused(place: Place, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="the clock"):
        ledger.derive(derived(time=TIME - dt.timedelta(hours=1)), simulated=False)
    entry = ledger.derive(derived(time=TIME - dt.timedelta(seconds=9)), simulated=False)
    event = entry.event
    assert isinstance(event, DerivedRelease)
    assert event.time == TIME


def test_the_terminal_shows_no_cost(ledger: Ledger) -> None:
    entry = ledger.derive(derived(), simulated=False)
    line = f"  {entry.number:>4} 2026-06-01 12:00 new: epsilon 0 on a, derived from one, by me"
    lines = ledger_lines(ledger)
    assert line in lines
    assert any("spent 2, left 8" in line for line in lines)


# --- ledgers from before, and forged ones ---------------------------------------------------------------------------


def rewritten(place: Place, change: Any) -> Ledger:
    """Every body changed, and linked again as the first author would have."""
    previous, made = "", list[Row]()
    for number, _, body, _ in rows(place):
        text = canonical(change(json.loads(body)))
        digest = entry_hash(number, previous, text)
        made.append((number, previous, text, digest))
        previous = digest
    forge(place, made)
    return open_ledger(place)


def test_a_ledger_from_before_is_read(place: Place, ledger: Ledger, tmp_path: Path) -> None:
    """Entries without `keep` and `kept`, as they were written before there were any."""

    def before(body: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in body.items() if key not in ("keep", "kept")}

    assert '"kept"' in rows(place)[3][2]
    old = rewritten(place, before).remembered_by(FileKeyStore(tmp_path / "keys"))  # of somebody who has it from then
    assert '"kept"' not in rows(place)[3][2]
    chain = old.verify()
    assert {name: state.status for name, state in chain.releases().items()} == {"one": "committed", "bare": "committed"}
    assert chain.kept("one") == {}
    assert chain.releases()["one"].reserve.keep == ""
    assert chain.balance("a", DAY).epsilon == 2
    with pytest.raises(LedgerError, match="has kept no measurements"):
        old.derive(derived(), simulated=False)
    assert len(ledger_lines(old)) > 4


@pytest.mark.parametrize("key", ["of", "files", "spec", "code", "output", "who", "time", "release"])
def test_an_entry_that_lacks_something_is_refused(place: Place, ledger: Ledger, key: str) -> None:
    number = ledger.derive(derived(), simulated=False).number

    def without(body: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in body.items() if body["kind"] != "derive" or k != key}

    with pytest.raises(LedgerError, match=f"ledger entry {number}"):
        rewritten(place, without).verify()


def test_a_derivation_that_claims_a_cost_is_refused(place: Place, ledger: Ledger) -> None:
    number = ledger.derive(derived(), simulated=False).number

    def costly(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "cost": "1"} if body["kind"] == "derive" else body

    with pytest.raises(LedgerError, match=f"ledger entry {number}"):
        rewritten(place, costly).verify()


@pytest.mark.parametrize("name", ["new", "one"])
def test_a_name_that_is_derived_twice_is_refused_and_named(place: Place, ledger: Ledger, name: str) -> None:
    ledger.derive(derived("new"), simulated=False)
    number = ledger.derive(derived("second"), simulated=False).number

    def twice(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "release": name} if body["release" if "release" in body else "kind"] == "second" else body

    with pytest.raises(LedgerError, match=f"ledger entry {number}"):
        rewritten(place, twice).verify()


def test_a_derivation_of_nothing_is_refused_and_named(place: Place, ledger: Ledger) -> None:
    number = ledger.derive(derived(), simulated=False).number

    def nobody(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "of": "nobody"} if body["kind"] == "derive" else body

    with pytest.raises(LedgerError, match=f"ledger entry {number}"):
        rewritten(place, nobody).verify()


# --- the licence ----------------------------------------------------------------------------------------------------


def test_only_bytes_that_the_ledger_has_are_read_back() -> None:
    grant = Derivation("new", TIME, True, KEPT)
    promise = Guarantee(unit=Record(), epsilon=Fraction(1))
    actual = grant.read_back({"t~measured.parquet": "cc"}, 7, promise)
    assert (actual.value, actual.guarantee, actual.simulated) == (7, promise, True)
    for files in ({"t~measured.parquet": "cd"}, {"other.parquet": "cc"}, {**KEPT, "more": "dd"}):
        with pytest.raises(LedgerError, match="is not what the ledger has committed"):
            grant.read_back(files, 7, promise)
