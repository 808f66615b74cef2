"""The ledger: what has been spent on which asset, append-only and hash-chained. It fails closed.

Every writing step is one exclusive transaction that first checks the whole chain: reserve → commit, or abandon.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from discreet.errors import LedgerError, LedgerUnavailable, LedgerUncertain, OverBudget
from discreet.noise.key import nonce as fresh_nonce
from discreet.privacy.events import (
    Abandon,
    Budget,
    Commit,
    Entry,
    Event,
    Genesis,
    LedgerKind,
    Recorded,
    Reserve,
    entry_hash,
    link,
)
from discreet.privacy.exact import written
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.store import Store, Writer

Clock = Callable[[], dt.datetime]
Dated = TypeVar("Dated", Budget, Reserve, Abandon, Recorded)
TOLERANCE = dt.timedelta(minutes=1)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


@dataclass(frozen=True)
class ReleaseState:
    """One release as the ledger sees it."""

    reserve: Reserve
    reserved_at: Entry
    commit: Commit | None = None
    committed_at: Entry | None = None
    abandon: Abandon | None = None

    @property
    def status(self) -> str:
        return "abandoned" if self.abandon else "committed" if self.commit else "reserved"


@dataclass(frozen=True)
class Balance:
    """A budget and what has been charged to it."""

    budget: Budget
    charged: tuple[Guarantee, ...]

    @property
    def epsilon(self) -> Fraction:
        return sum((g.epsilon for g in self.charged), Fraction(0))

    @property
    def delta(self) -> Fraction:
        return sum((g.delta for g in self.charged), Fraction(0))

    @property
    def epsilon_left(self) -> Fraction:
        return self.budget.epsilon - self.epsilon

    @property
    def delta_left(self) -> Fraction:
        return self.budget.delta - self.delta

    def left(self) -> str:
        """What is left, in words; outside releases may have taken more than there was."""
        over = -self.epsilon_left
        return f"left 0 (overspent by {written(over)})" if over > 0 else f"left {written(self.epsilon_left)}"

    def charge(self, cost: Guarantee) -> Balance:
        """The balance after one more release, or a refusal that says what was asked, spent and left."""
        asked = cost.for_budget(self.budget.unit, self.budget.neighbours)
        if asked.epsilon > self.epsilon_left or asked.delta > self.delta_left:
            parts = [("epsilon", asked.epsilon, self.epsilon, self.epsilon_left)]
            if asked.delta or self.budget.delta:
                parts.append(("delta", asked.delta, self.delta, self.delta_left))
            text = "; ".join(
                f"{n}: asked {written(a)}, spent {written(s)}, left {written(max(x, Fraction(0)))}"
                for n, a, s, x in parts
            )
            raise OverBudget(
                f"the budget of asset {self.budget.asset!r} does not cover this release ({text})",
                do="ask for less, or have the budget raised with `discreet ledger budget`",
            )
        return Balance(self.budget, (*self.charged, asked))


class Chain:
    """All entries, checked: numbers, hashes and kinds. Built anew for every decision."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        previous = ""
        for place, entry in enumerate(self.entries, start=1):
            if entry.number != place:
                raise _broken(place, f"is missing (entry {entry.number} stands in its place)")
            if entry.previous != previous or entry.hash != entry_hash(place, previous, entry.body):
                raise _broken(place, "was changed after it was written: its hash does not fit")
            previous = entry.hash
        self.events: tuple[Event, ...] = tuple(entry.event for entry in self.entries)
        if not self.events or not isinstance(self.events[0], Genesis):
            raise _broken(1, "is not the beginning of a ledger")

    @property
    def kind(self) -> LedgerKind:
        first = self.events[0]
        return first.ledger if isinstance(first, Genesis) else "real"

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    @property
    def nonce(self) -> str:
        first = self.events[0]
        return first.nonce if isinstance(first, Genesis) else ""

    def latest(self) -> dt.datetime:
        """The last time that an entry states."""
        return max(event.time for event in self.events if not isinstance(event, Commit))

    def releases(self) -> dict[str, ReleaseState]:
        states: dict[str, ReleaseState] = {}
        for entry, event in zip(self.entries, self.events, strict=True):
            if isinstance(event, Reserve):
                if event.release in states:
                    raise _broken(entry.number, f"reserves a second time what was reserved: {event.release!r}")
                states[event.release] = ReleaseState(event, entry)
            elif isinstance(event, Commit | Abandon):
                old = states.get(event.release)
                if old is None:
                    raise _broken(entry.number, f"ends a release that was never reserved: {event.release!r}")
                if old.abandon is not None or (old.commit is not None):
                    raise _broken(entry.number, f"ends a release that had ended: {event.release!r}")
                commit, at = (event, entry) if isinstance(event, Commit) else (old.commit, old.committed_at)
                abandon = event if isinstance(event, Abandon) else old.abandon
                states[event.release] = ReleaseState(old.reserve, old.reserved_at, commit, at, abandon)
        return states

    def open_release(self, release: str) -> ReleaseState:
        """A release that has been reserved and not abandoned, or a refusal."""
        state = self.releases().get(release)
        if state is None:
            raise LedgerError(f"release {release!r} is not in the ledger", do="see `discreet ledger show`")
        if state.abandon is not None:
            raise LedgerError(f"release {release!r} was abandoned", do="a new release needs a new name")
        return state

    def refuse_used(self, release: str) -> None:
        """A name is used once: running a release again is another release, with another cost."""
        if release not in self.names():
            return
        state = self.releases().get(release)
        reserved = state is not None and state.status == "reserved"
        raise LedgerError(
            f"release {release!r} is in the ledger already ({state.status if state else 'recorded'})",
            do="complete it with `discreet resume`" if reserved else "a new release needs a new name",
        )

    def names(self) -> set[str]:
        return {e.release for e in self.events if isinstance(e, Reserve | Recorded)}

    def balance(self, asset: str, day: dt.date) -> Balance:
        """The budget in force and everything charged to it: reserved, committed, abandoned and recorded alike."""
        budgets = [e for e in self.events if isinstance(e, Budget) and e.asset == asset]
        current = [b for b in budgets if b.in_force(day)]
        if not current:
            state = "has no budget" if not budgets else f"has no budget in force on {day}"
            raise LedgerError(
                f"asset {asset!r} {state}",
                do=f"set one: `discreet ledger budget {asset} --epsilon … --unit …`",
            )
        budget = current[-1]
        spent = [
            event.guarantee.for_budget(budget.unit, budget.neighbours)
            for event in self.spending(asset)
            if budget.in_force(event.time.date())
        ]
        return Balance(budget, tuple(spent))

    def spending(self, asset: str) -> list[Reserve | Recorded]:
        """Everything ever spent on an asset."""
        return [e for e in self.events if isinstance(e, Reserve | Recorded) and e.asset == asset]

    def lifetime(self, asset: str, who: str | None = None) -> Guarantee | None:
        """The total ever spent on an asset (by one user), whatever the periods: loss does not expire with a budget."""
        spent = [event.guarantee for event in self.spending(asset) if who in (None, event.who)]
        return compose(spent) if spent else None


class Ledger:
    """The front door to a store of entries."""

    def __init__(self, store: Store, clock: Clock = now) -> None:
        self.store, self.clock = store, clock

    def create(self, kind: LedgerKind, *, exist_ok: bool = False, nonce: str | None = None) -> None:
        """Begin a ledger. It stays of this kind: a real one takes no simulation, a simulation no release."""
        genesis = Genesis(ledger=kind, nonce=nonce or fresh_nonce(), time=self.clock())
        if not self.store.create(link(1, "", genesis)) and not exist_ok:
            raise LedgerError("exists already", where=f"ledger {self.store.place}", do="use it, or name another")

    def chain(self) -> Chain:
        return Chain(self.store.entries())

    def verify(self, head: str | None = None) -> Chain:
        """Check every link; `head` (from a manifest) must be one of them, or the ledger was rolled back."""
        chain = self.chain()
        chain.releases()  # every commit and abandon must end something that was reserved
        if head is not None and head not in {entry.hash for entry in chain.entries}:
            raise LedgerError(
                f"does not contain the head {head[:16]}…: it was rolled back, replaced, or is another ledger",
                where=f"ledger {self.store.place}",
                do="restore the copy that the manifest was written from",
            )
        return chain

    def who(self) -> str:
        """Who is spending: the store's word for it."""
        return self.store.who()

    def set_budget(self, budget: Budget) -> Entry:
        """Replace an asset's budget. What was spent must be chargeable to it, or nothing could be spent any more."""

        def check(chain: Chain, budget: Budget) -> None:
            for spent in chain.spending(budget.asset):
                spent.guarantee.for_budget(budget.unit, budget.neighbours)

        return self._append(budget, check)

    def record(self, recorded: Recorded) -> Entry:
        """Enter a release made earlier or elsewhere. It is a fact: it may exceed the budget; then nothing is left."""

        def check(chain: Chain, recorded: Recorded) -> None:
            chain.refuse_used(recorded.release)
            balance = chain.balance(recorded.asset, recorded.time.date())
            recorded.guarantee.for_budget(balance.budget.unit, balance.budget.neighbours)

        return self._append(recorded, check)

    def reserve(self, reserve: Reserve, *, simulated: bool) -> Entry:
        """Spend: one transaction against the budget. From here on only commit or abandon ends it."""

        def check(chain: Chain, reserve: Reserve) -> None:
            self.fits(chain, simulated=simulated)
            chain.refuse_used(reserve.release)
            chain.balance(reserve.asset, reserve.time.date()).charge(reserve.guarantee)

        return self._append(reserve, check)

    def commit(self, release: str, files: dict[str, str]) -> Entry:
        """Fix the bytes of a reserved release. Committing the same bytes again is no new entry."""

        def decide(writer: Writer, chain: Chain) -> Entry:
            state = chain.open_release(release)
            if state.commit is not None and state.committed_at is not None:
                if state.commit.files != files:
                    raise LedgerError(f"release {release!r} was committed with other bytes", do="do not publish these")
                return state.committed_at
            return _add(writer, chain, Commit(release=release, files=files))

        return self._write(decide)

    def abandon(self, release: str, reason: str) -> Entry:
        def check(chain: Chain, _: Abandon) -> None:
            if chain.open_release(release).commit is not None:
                raise LedgerError(
                    f"release {release!r} is committed: its bytes are fixed and may have been seen",
                    do="if its folder has no manifest, complete it with `discreet resume`",
                )

        return self._append(Abandon(release=release, reason=reason, who=self.who(), time=self.clock()), check)

    def fits(self, chain: Chain, *, simulated: bool) -> None:
        """A simulation belongs into a simulation ledger, a release into a real one."""
        if simulated != (chain.kind == "simulation"):
            one, other = ("simulation", "real releases") if simulated else ("real release", "simulations")
            raise LedgerError(
                f"is a ledger for {other} and takes no {one}",
                where=f"ledger {self.store.place}",
                do="name a ledger of the right kind",
            )

    def _append(self, event: Dated, check: Callable[[Chain, Dated], None]) -> Entry:
        def decide(writer: Writer, chain: Chain) -> Entry:
            dated = _in_order(event, chain.latest())
            check(chain, dated)
            return _add(writer, chain, dated)

        return self._write(decide)

    def _write(self, decide: Callable[[Writer, Chain], Entry]) -> Entry:
        """One transaction. If the store broke off in its last instant, the next transaction tells what became of it."""
        entry: Entry | None = None
        try:
            with self.store.transaction() as writer:
                entry = decide(writer, Chain(writer.entries()))
        except LedgerUncertain as error:
            try:
                with (
                    self.store.transaction() as writer
                ):  # exclusive: whoever was writing has ended, one way or the other
                    written = entry in writer.entries()
            except LedgerError:
                raise error from None
            if not written:
                raise LedgerUnavailable(
                    "broke off; nothing was written", where=f"ledger {self.store.place}", do="try again"
                ) from None
        if entry is None:
            raise LedgerError("a transaction ended without an entry", where=f"ledger {self.store.place}")
        return entry


def _in_order(event: Dated, latest: dt.datetime) -> Dated:
    """Machines' clocks differ a little, and a writer may have waited for another one: a small step back is none."""
    return event.model_copy(update={"time": latest}) if latest - TOLERANCE <= event.time < latest else event


def _add(writer: Writer, chain: Chain, event: Event) -> Entry:
    entry = link(len(chain.entries) + 1, chain.head, event)
    _ = entry.event  # what could not be read again must not be written
    if (time := getattr(event, "time", None)) is not None and time < chain.latest():
        raise LedgerError(
            f"the clock ({time}) is behind the ledger's last entry ({chain.latest()})",
            do="set the clock right: periods are told apart by it",
        )
    writer.append(entry)
    return entry


def _broken(number: int, what: str) -> LedgerError:
    return LedgerError(
        what, where=f"ledger entry {number}", do="restore the ledger from a copy; spend nothing until then"
    )
