"""The hash chain of a ledger's entries, and the state that follows from it: releases, names, spent budgets."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import BudgetExceeded, LedgerError
from discreet.privacy.exact import format_exact
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.ledger.events import (
    Abandon,
    Budget,
    Commit,
    DerivedRelease,
    Entry,
    Event,
    ExternalRelease,
    Genesis,
    LedgerKind,
    LostEntry,
    Reserve,
    Restoration,
    broken,
    canonical,
)


@dataclass(frozen=True)
class ReleaseState:
    """The state of one release."""

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
    """A privacy budget and the costs charged to it."""

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
        """What is left, as text; external releases may have exceeded the budget."""
        over = -self.epsilon_left
        return f"left 0 (overspent by {format_exact(over)})" if over > 0 else f"left {format_exact(self.epsilon_left)}"

    def charge(self, cost: Guarantee) -> Balance:
        """The balance after one more release; refused, with what is asked, spent and left, if it exceeds the budget."""
        charged = cost.for_budget(self.budget.unit, self.budget.neighbours)
        if charged.epsilon > self.epsilon_left or charged.delta > self.delta_left:
            parts = [("epsilon", charged.epsilon, self.epsilon, self.epsilon_left)]
            if charged.delta or self.budget.delta:
                parts.append(("delta", charged.delta, self.delta, self.delta_left))
            text = "; ".join(
                f"{n}: asked {format_exact(a)}, spent {format_exact(s)}, left {format_exact(max(x, Fraction(0)))}"
                for n, a, s, x in parts
            )
            raise BudgetExceeded(
                f"the budget of asset {self.budget.asset!r} does not cover this release ({text})",
                do="declare a smaller epsilon, or have the budget raised with `discreet ledger budget`",
            )
        return Balance(self.budget, (*self.charged, charged))


def link(number: int, previous: str, event: Event) -> Entry:
    """The entry that follows `previous`: hash = SHA-256(number, previous hash, body)."""
    body = canonical(event.model_dump(mode="json"))
    return Entry(number=number, previous=previous, body=body, hash=entry_hash(number, previous, body))


def entry_hash(number: int, previous: str, body: str) -> str:
    return hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()


def _linked(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries, if each has its number, the hash of its body, and the hash of the entry before it."""
    chain, previous = tuple(entries), ""
    for place, entry in enumerate(chain, start=1):
        if entry.number != place:
            raise broken(place, f"is missing (entry {entry.number} is in its place)")
        if entry.previous != previous or entry.hash != entry_hash(place, previous, entry.body):
            raise broken(place, "was changed after it was written: its hash does not fit")
        previous = entry.hash
    return chain


class Chain:
    """All entries, with their numbers, hashes and kinds verified. Built anew for every decision."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = _linked(entries)
        self.events: tuple[Event, ...] = tuple(entry.event for entry in self.entries)
        if not self.events or not isinstance(self.events[0], Genesis):
            raise broken(1, "is not the beginning of a ledger")

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
        """The latest time of any entry."""
        return max(event.time for event in self.events if not isinstance(event, Commit))

    def releases(self) -> dict[str, ReleaseState]:
        states: dict[str, ReleaseState] = {}
        for entry, event in zip(self.entries, self.events, strict=True):
            if isinstance(event, Reserve):
                if event.release in states:
                    raise broken(entry.number, f"reserves release {event.release!r} a second time")
                states[event.release] = ReleaseState(event, entry)
            elif isinstance(event, Commit | Abandon):
                old = states.get(event.release)
                if old is None:
                    raise broken(entry.number, f"ends a release that was never reserved: {event.release!r}")
                if old.abandon is not None or (old.commit is not None):
                    raise broken(entry.number, f"ends a release that had ended: {event.release!r}")
                commit, at = (event, entry) if isinstance(event, Commit) else (old.commit, old.committed_at)
                abandon = event if isinstance(event, Abandon) else old.abandon
                states[event.release] = ReleaseState(old.reserve, old.reserved_at, commit, at, abandon)
        return states

    def open_release(self, release: str) -> ReleaseState:
        """A release that has been reserved and not abandoned; anything else is refused."""
        state = self.releases().get(release)
        if state is None and release in self.derived():
            raise LedgerError(f"release {release!r} was derived: nothing was reserved for it", do="leave it as it is")
        if state is None:
            raise LedgerError(f"release {release!r} is not in the ledger", do="see `discreet ledger show`")
        if state.abandon is not None:
            raise LedgerError(f"release {release!r} was abandoned", do="a new release needs a new name")
        return state

    def refuse_used(self, release: str) -> None:
        """Refuse a name that was used: running a release again is another release, with another cost."""
        if release not in self.names():
            return
        state = self.releases().get(release)
        lost = {spent.release for spent in self._lost()}
        status = state.status if state else "derived" if release in self.derived() else "recorded"
        status = "lost, and spent" if release in lost and state is None else status
        do = "a new release needs a new name"
        if status == "reserved":
            do = "complete it with `discreet resume`"
        elif status == "derived":
            do = "a new release needs a new name; if its folder has no manifest, complete it with `discreet resume`"
        raise LedgerError(f"release {release!r} is in the ledger already ({status})", do=do)

    def names(self) -> set[str]:
        own = {e.release for e in self.events if isinstance(e, Reserve | ExternalRelease | DerivedRelease)}
        return own | {spent.release for spent in self._lost()}

    def derived(self) -> dict[str, tuple[DerivedRelease, Entry]]:
        """Releases derived from measurements of earlier ones; a derivation from anything else is refused."""
        kept: dict[str, str] = {}  # releases that have kept measurements so far → their assets
        assets: dict[str, str] = {}
        derived: dict[str, tuple[DerivedRelease, Entry]] = {}
        for entry, event in zip(self.entries, self.events, strict=True):
            if isinstance(event, Reserve):
                assets[event.release] = event.asset
            elif isinstance(event, Commit) and event.kept:
                kept[event.release] = assets.get(event.release, "")
            elif isinstance(event, DerivedRelease):
                if kept.get(event.of) != event.asset or event.release in derived or event.release in assets:
                    raise broken(entry.number, f"derives {event.release!r} from what was not kept, or a second time")
                derived[event.release] = (event, entry)
                kept |= {event.release: event.asset} if event.kept else {}
        return derived

    def origin(self, release: str) -> ReleaseState:
        """The release that drew the noise of a release's numbers: itself, or the first one it was derived from."""
        derived, seen = self.derived(), set[str]()
        while release in derived and release not in seen:
            seen.add(release)
            release = derived[release][0].of
        return self.open_release(release)

    def kept(self, release: str) -> dict[str, str]:
        """The kept measurements of a committed or derived release: file name → SHA-256."""
        if release in (derived := self.derived()):
            return derived[release][0].kept
        commit = self.open_release(release).commit
        if commit is None:
            raise LedgerError(
                f"release {release!r} is reserved, not committed", do="complete it with `discreet resume`"
            )
        return commit.kept

    def balance(self, asset: str, day: dt.date) -> Balance:
        """The budget in force and all costs charged to it: reserved, committed, abandoned and recorded alike."""
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

    def spending(self, asset: str) -> list[Reserve | ExternalRelease | LostEntry]:
        """All costs ever spent on an asset, in this ledger or in entries that it has lost."""
        own = [e for e in self.events if isinstance(e, Reserve | ExternalRelease) and e.asset == asset]
        return [*own, *(spent for spent in self._lost() if spent.asset == asset)]

    def _lost(self) -> list[LostEntry]:
        return [spent for e in self.events if isinstance(e, Restoration) for spent in e.lost]

    def lifetime(self, asset: str, who: str | None = None) -> Guarantee | None:
        """The total ever spent on an asset (by one user), in all periods: privacy loss does not expire."""
        spent = [event.guarantee for event in self.spending(asset) if who in (None, event.who)]
        return compose(spent) if spent else None
