"""The ledger: budgets add up, it fails closed, and an edited row is named. In every kind of store."""

import datetime as dt
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from pydantic import ValidationError

from discreet.errors import BudgetExceeded, GuaranteeError, LedgerError
from discreet.privacy.guarantee import Establishment, Person, Record
from discreet.privacy.ledger.events import Commit, canonical
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.state import entry_hash, link
from discreet.uris import is_postgres
from support.hypothesis_profile import examples
from support.ledger_fakes import (
    TIME,
    Place,
    Row,
    budget,
    cost,
    forge,
    funded_ledger,
    open_ledger,
    record_event,
    reserve,
    rows,
)

DAY = TIME.date()


class Template(NamedTuple):
    """The rows of a ledger with every kind of entry, and where to put others."""

    rows: list[Row]
    copy: Place


@pytest.fixture
def ledger(place: Place) -> Ledger:
    return funded_ledger(place)


def left(ledger: Ledger, asset: str = "a", day: dt.date = DAY) -> Fraction:
    return ledger.chain().balance(asset, day).epsilon_left


# --- spending -----------------------------------------------------------------------------------------------------


def test_reserve_spends_and_commit_has_no_further_cost(ledger: Ledger) -> None:
    ledger.reserve(reserve("r", "1.5"), simulated=False)
    assert left(ledger) == Fraction(17, 2)
    assert ledger.chain().releases()["r"].status == "reserved"
    ledger.commit("r", {"t.csv": "aa"}, "ab")
    assert left(ledger) == Fraction(17, 2)
    assert ledger.chain().releases()["r"].status == "committed"


def test_over_budget_says_asked_spent_and_left_and_writes_nothing(ledger: Ledger) -> None:
    ledger.reserve(reserve("r", "9.5"), simulated=False)
    head = ledger.chain().head
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(reserve("s", "2/3"), simulated=False)
    assert "asked 2/3, spent 9.5, left 0.5" in str(caught.value)
    assert "'a'" in str(caught.value)
    assert ledger.chain().head == head


def test_a_budget_can_be_spent_to_the_last_bit_and_no_further(ledger: Ledger) -> None:
    for i in range(3):
        ledger.reserve(reserve(f"r{i}", "10/3"), simulated=False)
    assert left(ledger) == 0
    with pytest.raises(BudgetExceeded):
        ledger.reserve(reserve("more", Fraction(1, 10**30)), simulated=False)


def test_abandoned_stays_spent(full: Ledger) -> None:
    assert full.chain().releases()["two"].status == "abandoned"
    assert left(full) == 7
    with pytest.raises(LedgerError, match="abandoned"):
        full.commit("two", {}, "ab")
    with pytest.raises(LedgerError, match="abandoned"):
        full.abandon("two", "again")
    with pytest.raises(LedgerError, match="new name"):
        full.reserve(reserve("two"), simulated=False)


def test_record_may_exceed_the_budget_and_then_nothing_is_left(ledger: Ledger) -> None:
    ledger.record(record_event("old", 25))
    assert left(ledger) == -15
    with pytest.raises(BudgetExceeded, match="spent 25, left 0"):
        ledger.reserve(reserve("r", Fraction(1, 10**9)), simulated=False)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(reserve("r", 0), simulated=False)


def test_record_needs_a_budget_it_can_be_charged_to(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no budget"):
        ledger.record(record_event(asset="b"))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.record(record_event(guarantee=cost(unit=Record())))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.record(record_event(guarantee=cost(neighbours="substitution")))


@pytest.mark.parametrize("name", ["one", "two", "old"])
def test_a_name_is_used_once(full: Ledger, name: str) -> None:
    for action in (
        lambda: full.reserve(reserve(name), simulated=False),
        lambda: full.record(record_event(name)),
    ):
        with pytest.raises(LedgerError, match="already"):
            action()


def test_a_reserved_name_points_to_resume(ledger: Ledger) -> None:
    ledger.reserve(reserve("r"), simulated=False)
    with pytest.raises(LedgerError, match="discreet resume"):
        ledger.reserve(reserve("r"), simulated=False)


def test_commit_is_idempotent_for_the_same_bytes_and_refused_for_others(ledger: Ledger) -> None:
    ledger.reserve(reserve("r"), simulated=False)
    first = ledger.commit("r", {"a": "1", "b": "2"}, "ab")
    assert ledger.commit("r", {"b": "2", "a": "1"}, "ab") == first
    for other in ({"a": "1"}, {"a": "1", "b": "3"}, {}, {"a": "1", "b": "2", "c": "3"}):
        with pytest.raises(LedgerError, match="other bytes"):
            ledger.commit("r", other, "ab")
    assert ledger.chain().head == first.hash


def test_commit_and_abandon_need_a_reservation(ledger: Ledger) -> None:
    for action in (lambda: ledger.commit("x", {}, "ab"), lambda: ledger.abandon("x", "why")):
        with pytest.raises(LedgerError, match="not in the ledger"):
            action()
    ledger.record(record_event("old"))
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.commit("old", {}, "ab")


def test_a_committed_release_cannot_be_abandoned(full: Ledger) -> None:
    with pytest.raises(LedgerError, match="is committed"):
        full.abandon("one", "regret")


def test_no_budget_no_release(place: Place) -> None:
    ledger = open_ledger(place)
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
    with pytest.raises(BudgetExceeded):
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
def test_a_guarantee_for_another_unit_is_not_charged(ledger: Ledger, unit: Any) -> None:
    head = ledger.chain().head
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.reserve(reserve(guarantee=cost(unit=unit)), simulated=False)
    assert ledger.chain().head == head


def test_alpha_budgets(place: Place) -> None:
    def unit(alpha: str, adversary: Any = "strong") -> Establishment:
        return Establishment(column="e", alpha=alpha, adversary=adversary)

    ledger = funded_ledger(place, unit=unit("0.1"))
    ledger.reserve(reserve("r", guarantee=cost(2, unit=unit("0.2"))), simulated=False)
    assert left(ledger) == 8
    for weaker in (unit("0.05"), unit("0.1", "weak")):
        with pytest.raises(GuaranteeError):
            ledger.reserve(reserve("s", guarantee=cost(unit=weaker)), simulated=False)


def test_a_substitution_budget_charges_double(place: Place) -> None:
    ledger = funded_ledger(place, neighbours="substitution")
    ledger.reserve(reserve("r", 2), simulated=False)
    ledger.reserve(reserve("s", guarantee=cost(2, neighbours="substitution")), simulated=False)
    assert left(ledger) == 4


def test_an_add_remove_budget_takes_no_substitution(ledger: Ledger) -> None:
    with pytest.raises(GuaranteeError):
        ledger.reserve(reserve(guarantee=cost(neighbours="substitution")), simulated=False)


def test_delta_has_a_budget_of_its_own(place: Place) -> None:
    ledger = funded_ledger(place, delta="0.001")
    ledger.reserve(reserve("r", guarantee=cost(1, delta="0.0006")), simulated=False)
    with pytest.raises(BudgetExceeded, match=r"delta: asked 0\.0006, spent 0\.0006, left 0\.0004"):
        ledger.reserve(reserve("s", guarantee=cost(1, delta="0.0006")), simulated=False)
    ledger.reserve(reserve("s", guarantee=cost(1, delta="0.0004")), simulated=False)
    assert ledger.chain().balance("a", DAY).delta_left == 0


def test_a_pure_budget_takes_no_delta(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match="delta"):
        ledger.reserve(reserve(guarantee=cost(1, delta=Fraction(1, 10**12))), simulated=False)


def test_a_period_has_its_own_budget_and_a_lifetime_has_none(place: Place) -> None:
    ledger = funded_ledger(place, 2, start="2026-01-01", end="2026-12-31")
    ledger.set_budget(budget(3, start="2027-01-01", end="2027-12-31"))
    ledger.reserve(reserve("r", 2), simulated=False)
    with pytest.raises(BudgetExceeded):
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
def test_simulations_and_releases_do_not_mix(place: Place, kind: Any) -> None:
    ledger = funded_ledger(place, kind=kind)
    right = kind == "simulation"
    with pytest.raises(LedgerError, match="takes no"):
        ledger.reserve(reserve(), simulated=not right)
    assert len(ledger.chain().entries) == 2
    ledger.reserve(reserve(), simulated=right)
    assert ledger.chain().kind == kind


def test_a_ledger_is_begun_once(ledger: Ledger) -> None:
    for kind in ("real", "simulation"):
        with pytest.raises(LedgerError, match="already exists"):
            ledger.create(kind)  # type: ignore[arg-type]
    assert ledger.chain().kind == "real"


def test_a_kind_that_is_none_is_refused(place: Place) -> None:
    with pytest.raises(ValidationError):
        open_ledger(place).create("pretend")  # type: ignore[arg-type]


# --- the chain ----------------------------------------------------------------------------------------------------


def test_verify_accepts_any_head_it_ever_had(full: Ledger) -> None:
    for entry in full.chain().entries:
        assert full.verify(entry.hash).head == full.chain().head
    with pytest.raises(LedgerError, match="rolled back"):
        full.verify("0" * 64)


@pytest.fixture(scope="module")
def template(new_place: Callable[[], Place]) -> Template:
    ledger = funded_ledger(place := new_place())
    for i in range(3):
        ledger.reserve(reserve(f"r{i}"), simulated=False)
    ledger.commit("r0", {"t.csv": "aa"}, "ab")
    ledger.abandon("r1", "why not")
    ledger.record(record_event("old"))
    open_ledger(copy := new_place()).create("real")
    return Template(rows(place), copy)


def drawn(number: int) -> Any:
    """A test on that many drawn examples; on a server, where each takes three connections, on a few."""

    def decorate(check: Callable[[Template, st.DataObject], None]) -> Callable[[Template], None]:
        @pytest.mark.hypothesis
        def test(template: Template) -> None:
            some = examples(8 if is_postgres(str(template.copy)) else number)
            some(given(data=st.data())(lambda data: check(template, data)))()

        return test

    return decorate


def forged(template: Template, change: Any) -> Ledger:
    """A ledger with these rows. There is one at a time."""
    forge(template.copy, change(template.rows))
    return open_ledger(template.copy)


@drawn(70)
def test_any_changed_character_is_found_and_its_entry_named(template: Template, data: st.DataObject) -> None:
    before = template.rows
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


@drawn(60)
def test_missing_moved_and_renumbered_entries_are_found(template: Template, data: st.DataObject) -> None:
    size = len(template.rows)
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
def test_a_cut_tail_shows_only_against_an_outside_head(template: Template, lost: int) -> None:
    head = template.rows[-1][3]
    ledger = forged(template, lambda old: old[:-lost])
    ledger.verify()
    with pytest.raises(LedgerError, match="rolled back"):
        ledger.verify(head)


def test_a_ledger_written_anew_shows_only_against_an_outside_head(template: Template) -> None:
    """Who can recompute every hash can tell any story, but not one that contains a published head."""
    head = template.rows[-1][3]

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
def test_an_unknown_event_is_refused_and_named(template: Template, body: str) -> None:
    ledger = forged(template, lambda old: relinked(old, body))
    number = len(template.rows) + 1
    for action in (ledger.verify, ledger.chain, lambda: ledger.reserve(reserve("next"), simulated=False)):
        with pytest.raises(LedgerError, match="not an event this version knows") as caught:
            action()
        assert caught.value.where == f"ledger entry {number}"


def test_an_inexact_or_unconvertible_guarantee_is_refused(template: Template) -> None:
    good = template.rows[2][2]
    floating = good.replace('"epsilon":"1"', '"epsilon":0.5')
    assert floating != good
    with pytest.raises(LedgerError, match="a float"):
        forged(template, lambda old: relinked(old, floating)).verify()
    foreign = json.loads(good)
    foreign["guarantee"]["unit"] = {"kind": "record"}
    foreign["release"] = "foreign"
    ledger = forged(template, lambda old: relinked(old, canonical(foreign)))
    with pytest.raises(GuaranteeError, match="cannot be charged"):
        ledger.reserve(reserve("next"), simulated=False)


@pytest.mark.parametrize("change", [lambda t: t.replace(",", ", ", 1), lambda t: t[:-1] + ',"kind":"reserve"}'])
def test_an_entry_that_says_a_thing_twice_or_otherwise_is_refused(template: Template, change: Any) -> None:
    body = change(canonical({**json.loads(template.rows[2][2]), "release": "again"}))
    with pytest.raises(LedgerError, match="not written as a ledger writes it"):
        forged(template, lambda old: relinked(old, body)).verify()


def test_what_happens_twice_is_refused_and_named(template: Template) -> None:
    """A second reservation would stand for the first one, a second commit for other bytes."""
    once = [json.loads(row[2]) for row in template.rows]
    reserved = next(event for event in once if event["kind"] == "reserve")
    committed = next(event for event in once if event["kind"] == "commit")
    for event, says in (
        ({**reserved, "output": "elsewhere"}, "a second time"),
        ({**committed, "files": {"other": "bb"}}, "had ended"),
    ):
        ledger = forged(template, lambda old, event=event: relinked(old, canonical(event)))
        with pytest.raises(LedgerError, match=says) as caught:
            ledger.verify()
        assert f"ledger entry {len(template.rows) + 1}" in str(caught.value)


def test_an_end_without_a_beginning_is_refused_and_named(template: Template) -> None:
    orphan = link(1, "", Commit(release="ghost", files={}, manifest="ab")).body
    ledger = forged(template, lambda old: relinked(old, orphan))
    with pytest.raises(LedgerError, match="never reserved") as caught:
        ledger.chain().releases()
    assert caught.value.where == f"ledger entry {len(template.rows) + 1}"


def test_a_ledger_begins_with_its_genesis(template: Template) -> None:
    with pytest.raises(LedgerError, match="beginning"):
        forged(template, lambda _: []).verify()
    second = template.rows[1][2]
    with pytest.raises(LedgerError, match="beginning"):
        forged(template, lambda _: [(1, "", second, entry_hash(1, "", second))]).verify()


# --- failures -----------------------------------------------------------------------------------------------------


def test_a_transaction_that_fails_leaves_nothing(ledger: Ledger) -> None:
    head = ledger.chain().head

    def interrupted_write() -> None:
        with ledger.store.transaction() as writer:
            writer.append(link(3, head, budget(99)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_write()
    assert ledger.chain().head == head


# --- any sequence of operations -----------------------------------------------------------------------------------

names = st.sampled_from(["r1", "r2", "r3"])
amounts = st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)])


class AnySequence(RuleBasedStateMachine):
    """Whatever is done in whatever order: the chain holds, the sums are right, nothing is overspent."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.ledger = funded_ledger(place, 4)
        self.limit, self.spent, self.status = Fraction(4), Fraction(0), dict[str, str]()
        self.files: dict[str, dict[str, str]] = {}
        self.facts = Fraction(0)  # recorded, or spent under a larger budget
        self.heads = [self.ledger.chain().head]

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
        if self.attempt(allowed, lambda: self.ledger.commit(name, files, "ab")):
            self.status[name], self.files[name] = "committed", files

    @rule(name=names)
    def abandon(self, name: str) -> None:
        if self.attempt(self.status.get(name) == "reserved", lambda: self.ledger.abandon(name, "why")):
            self.status[name] = "abandoned"

    @rule(name=names, amount=amounts)
    def record(self, name: str, amount: Fraction) -> None:
        if self.attempt(name not in self.status, lambda: self.ledger.record(record_event(name, amount))):
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


@pytest.mark.hypothesis
def test_any_sequence(new_place: Callable[[], Place]) -> None:
    number = 2 if is_postgres(str(new_place())) else 12
    run_state_machine_as_test(
        lambda: AnySequence(new_place()),
        settings=examples(number, stateful_step_count=14),
    )


def test_the_clock_may_not_run_backwards(place: Place) -> None:
    """Or a spent period could be opened again."""
    ledger = funded_ledger(place)
    early = reserve("r1").model_copy(update={"time": ledger.chain().latest() - dt.timedelta(days=365)})
    with pytest.raises(LedgerError, match="behind the ledger's last entry"):
        ledger.reserve(early, simulated=False)


def test_a_writer_who_waited_or_whose_clock_is_a_little_behind_is_not_refused(place: Place) -> None:
    """Two machines, or two processes that wait for each other: the entry takes the time of the one before."""
    ledger = funded_ledger(place)
    late = reserve("r1", time=TIME - dt.timedelta(seconds=50))
    assert ledger.reserve(late, simulated=False).event.time == TIME  # type: ignore[union-attr]
    with pytest.raises(LedgerError, match="behind the ledger's last entry"):
        ledger.reserve(reserve("r2", time=TIME - dt.timedelta(seconds=61)), simulated=False)


def test_what_could_not_be_read_again_is_not_written(place: Place) -> None:
    """Two costs of 1,900 digits each have a sum that no longer parses: refused, and the ledger stays readable."""
    ledger = funded_ledger(place, 10)
    d = 10**1900 + 7
    cost = reserve("r1", Fraction(d + 1, d) + Fraction(d + 3, d + 2))
    with pytest.raises(LedgerError):
        ledger.reserve(cost, simulated=False)
    assert len(ledger.chain().entries) == 2


def test_ledgers_begun_in_the_same_second_differ(new_place: Callable[[], Place]) -> None:
    heads = {funded_ledger(new_place()).chain().entries[0].hash for i in range(3)}
    assert len(heads) == 3


def relabelled(old: list[Row], version: object) -> list[Row]:
    """The whole chain of another version, every hash right."""
    actual: list[Row] = []
    for number, (_, _, body, _) in enumerate(old, start=1):
        event = json.loads(body)
        if event["kind"] == "genesis":
            event["version"] = version
        if event["kind"] == "commit" and version == 1:
            del event["manifest"]
        previous, text = actual[-1][3] if actual else "", canonical(event)
        actual.append((number, previous, text, entry_hash(number, previous, text)))
    return actual


@pytest.mark.parametrize("version", [1, 2, 4, 3.0, True, "3", None])
def test_a_ledger_of_another_version_is_refused_in_one_line(template: Template, version: object) -> None:
    ledger = forged(template, lambda old: relabelled(old, version))
    for action in (ledger.verify, ledger.chain, lambda: ledger.reserve(reserve("next"), simulated=False)):
        with pytest.raises(LedgerError) as caught:
            action()
        assert str(caught.value) == (
            f"ledger: is in format {version}, and this version of discreet reads 3 alone. Begin another one and enter "
            "the costs with `discreet ledger record`: before 1.0 ledgers are not converted."
        )
