"""The ledger: privacy budgets spent on each asset, append-only and hash-chained. It fails closed.

Every write (reserve → commit, or abandon) is one exclusive transaction that first verifies the whole chain, and that no
entry is missing that the key store has seen. The key store has a copy of the entries as they were last seen, apart from
the ledger: an old copy of the ledger put in its place is detected, however many entries were added to it since.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import TypeVar

from discreet import formats
from discreet.errors import LedgerError, LedgerUnavailable, PublishError, ReleaseKeyError, UnconfirmedWrite
from discreet.noise.key import nonce as fresh_nonce
from discreet.noise.keystore import KeyStore, default_keys
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
)
from discreet.privacy.ledger.state import Chain, link
from discreet.privacy.ledger.store import Store, Writer


class LedgerMemory:
    """The entries of one ledger, by its nonce, that the key store has seen."""

    def __init__(self, keys: KeyStore, nonce: str) -> None:
        self.keys, self.nonce = keys, nonce
        self.seen = self._seen()

    @classmethod
    @contextmanager
    def locked(cls, keys: KeyStore, nonce: str) -> Iterator[LedgerMemory]:
        """An exclusive lock: meanwhile no other user of this key store writes to the ledger, or to a copy of it."""
        with keys.lock(nonce):
            yield cls(keys, nonce)

    def lost(self, chain: Chain) -> tuple[Entry, ...]:
        """Seen entries that the chain lacks: all that follow the last one in common."""
        pairs = zip(self.seen, chain.entries, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0].hash == pair[1].hash, pairs))
        return self.seen[common:]

    def refuse_rollback(self, chain: Chain, place: str) -> None:
        """Refuse a chain that lacks an entry that was ever seen."""
        if chain.nonce != self.nonce:
            raise LedgerError("was replaced by another ledger meanwhile", where=f"ledger {place}", do="put it back")
        if lost := self.lost(chain):
            raise rolled_back(lost, place)

    def note(self, chain: Chain) -> None:
        """Store all entries as seen. If that fails, the ledger has them all the same."""
        if self.seen and self.seen[-1] == chain.entries[-1]:
            return
        content = {"format": formats.MEMORY, "entries": [entry.model_dump() for entry in chain.entries]}
        try:
            self.keys.remember(self.nonce, json.dumps(content, ensure_ascii=False).encode())
        except OSError as error:
            raise UnconfirmedWrite(
                f"could not note the ledger's last entry ({error.strerror})",
                where="key store",
                do="free disk space; a reserved release is completed by `discreet resume`",
            ) from None

    def _seen(self) -> tuple[Entry, ...]:
        if not (content := self.keys.recall(self.nonce)):
            return ()
        try:
            data = formats.parsed(content, formats.MEMORY, "what the key store remembers of the ledger")
            return Chain(Entry.model_validate(entry) for entry in data["entries"]).entries
        except (ValueError, KeyError, TypeError, LedgerError, PublishError):
            raise ReleaseKeyError(
                "what it remembers of the ledger is damaged or of another version",
                where="key store",
                do=f"restore {self.nonce}.ledger there from a copy; spend nothing until then",
            ) from None


def rolled_back(lost: tuple[Entry, ...], place: str) -> LedgerError:
    number = f"entry {lost[0].number} is" if len(lost) == 1 else f"entries {lost[0].number} to {lost[-1].number} are"
    return LedgerError(
        f"was rolled back or replaced: {number} not those that this key store has seen",
        where=f"ledger {place}",
        do="put the ledger back as it was; if that is impossible, `discreet ledger restore --reason …` counts the "
        "costs of lost entries as spent",
    )


Clock = Callable[[], dt.datetime]
Dated = TypeVar("Dated", Budget, Reserve, Abandon, ExternalRelease, DerivedRelease, Restoration)
TOLERANCE = dt.timedelta(minutes=1)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


class Ledger:
    """A ledger in a store of entries. Rollbacks are detected by the entries that a key store (by default the user's)
    has seen."""

    def __init__(self, store: Store, clock: Clock = now, keys: KeyStore | None = None) -> None:
        self.store, self.clock, self.keys = store, clock, keys or default_keys()
        self._nonce = ""

    def remembered_by(self, keys: KeyStore) -> Ledger:
        """The same ledger, compared with the entries that another key store has seen."""
        return Ledger(self.store, self.clock, keys)

    def create(self, kind: LedgerKind, *, exist_ok: bool = False, nonce: str | None = None) -> None:
        """Begin a ledger. Its kind never changes: a real one takes no simulation, a simulation ledger no release."""
        genesis = Genesis(ledger=kind, nonce=nonce or fresh_nonce(), time=self.clock())
        if not self.store.create(link(1, "", genesis), private=kind == "simulation") and not exist_ok:
            raise LedgerError("already exists", where=f"ledger {self.store.place}", do="use it, or name another")

    def chain(self) -> Chain:
        """The entries as they are, verified, but not compared with the key store."""
        return Chain(self.store.entries())

    def lost(self) -> tuple[Entry, ...]:
        """Entries that the key store has seen and the ledger lacks."""
        lost: tuple[Entry, ...] = ()
        for _ in range(2):  # another process may have written in between
            chain = self.chain()
            if not (lost := LedgerMemory(self.keys, chain.nonce).lost(chain)):
                break
        return lost

    def remember(self) -> Chain:
        """The entries, none of them missing; the key store has seen them all from now on."""
        with LedgerMemory.locked(self.keys, self.nonce) as memory:
            memory.refuse_rollback(chain := self.chain(), self.store.place)
            memory.note(chain)
        return chain

    @property
    def nonce(self) -> str:
        """Identifies the ledger in the key store: another ledger in its place, even now, is refused."""
        self._nonce = self._nonce or self.chain().nonce
        return self._nonce

    def verify(self, head: str | None = None) -> Chain:
        """Verify every hash; `head` (from a manifest) must be one of them, or the ledger was rolled back."""
        chain = self.chain()
        chain.releases()  # every commit and abandon must end a reservation
        chain.derived()  # every derived release must have kept measurements as its source
        if lost := self.lost():
            raise rolled_back(lost, self.store.place)
        if head is not None and head not in {entry.hash for entry in chain.entries}:
            raise LedgerError(
                f"does not contain the head {head[:16]}…: it was rolled back, replaced, or is another ledger",
                where=f"ledger {self.store.place}",
                do="restore the copy that the manifest was written from",
            )
        return chain

    def who(self) -> str:
        """The user who is spending, as the store knows them."""
        return self.store.who()

    def set_budget(self, budget: Budget) -> Entry:
        """Set or replace an asset's budget. Past costs must be chargeable to it, or no more could ever be spent."""

        def check(chain: Chain, budget: Budget) -> None:
            for spent in chain.spending(budget.asset):
                spent.guarantee.for_budget(budget.unit, budget.neighbours)

        return self._append(budget, check)

    def record(self, recorded: ExternalRelease) -> Entry:
        """Enter a release made earlier or elsewhere. As a fact it may exceed the budget; then nothing is left of it."""

        def check(chain: Chain, recorded: ExternalRelease) -> None:
            chain.refuse_used(recorded.release)
            balance = chain.balance(recorded.asset, recorded.time.date())
            recorded.guarantee.for_budget(balance.budget.unit, balance.budget.neighbours)

        return self._append(recorded, check)

    def reserve(self, reserve: Reserve, *, simulated: bool) -> Entry:
        """Spend: one transaction against the budget. Only commit or abandon ends the reservation."""

        def check(chain: Chain, reserve: Reserve) -> None:
            self.refuse_other_kind(chain, simulated=simulated)
            chain.refuse_used(reserve.release)
            chain.balance(reserve.asset, reserve.time.date()).charge(reserve.guarantee)

        return self._append(reserve, check)

    def derive(self, derived: DerivedRelease, *, simulated: bool) -> Entry:
        """Record post-processing at no cost. Recording the same bytes again adds no entry."""

        def decide(writer: Writer, chain: Chain) -> Entry:
            self.refuse_other_kind(chain, simulated=simulated)
            if derived.release in (known := chain.derived()):
                before, entry = known[derived.release]
                if before.model_copy(update={"time": derived.time}) != derived:
                    raise LedgerError(
                        f"release {derived.release!r} was derived with other bytes", do="do not publish these"
                    )
                return entry
            dated = _in_order(derived, chain.latest())
            chain.refuse_used(dated.release)
            if dated.time.date() != derived.time.date():
                raise LedgerError("the day has changed meanwhile, and files have its date", do="run it again")
            if not chain.kept(dated.of):
                raise LedgerError(
                    f"release {dated.of!r} has kept no measurements",
                    do="derive from a release that has `keep_measurements`",
                )
            return _add(writer, chain, dated)

        return self._write(decide)

    def commit(self, release: str, files: dict[str, str], manifest: str, kept: dict[str, str] | None = None) -> Entry:
        """Fix the bytes of a reserved release and the digest of its manifest. Repeating it adds no entry."""
        commit = Commit(release=release, files=files, manifest=manifest, kept=kept or {})

        def decide(writer: Writer, chain: Chain) -> Entry:
            state = chain.open_release(release)
            if state.commit is not None and state.committed_at is not None:
                if state.commit != commit:
                    raise LedgerError(f"release {release!r} was committed with other bytes", do="do not publish these")
                return state.committed_at
            return _add(writer, chain, commit)

        return self._write(decide)

    def abandon(self, release: str, reason: str) -> Entry:
        def check(chain: Chain, _: Abandon) -> None:
            if chain.open_release(release).commit is not None:
                raise LedgerError(
                    f"release {release!r} is committed: its bytes are fixed and may have been seen",
                    do="if its folder has no manifest, complete it with `discreet resume`",
                )

        return self._append(Abandon(release=release, reason=reason, who=self.who(), time=self.clock()), check)

    def restore(self, reason: str) -> tuple[Restoration, tuple[Entry, ...]]:
        """Continue from an older copy: entries that it lacks are entered again as they were; or, if it has other
        entries instead, their costs stay spent. Returns the restoration, and the entries that are gone."""
        gone: tuple[Entry, ...] = ()

        def decide(writer: Writer, chain: Chain) -> Entry:
            nonlocal gone
            lost = LedgerMemory(self.keys, chain.nonce).lost(chain)
            if not lost:
                raise LedgerError(
                    "lacks nothing that this key store has seen",
                    where=f"ledger {self.store.place}",
                    do="continue as usual; enter costs that only others have seen with `discreet ledger record`",
                )
            again = lost[0].previous == chain.head and all(
                getattr(entry.event, "who", self.who()) == self.who() for entry in lost
            )  # a shared ledger takes no entry in another user's name
            for entry in lost if again else ():
                writer.append(entry)
            gone = () if again else lost
            restored = Restoration(
                again=len(lost) if again else 0,
                lost=tuple(spent for entry in gone for spent in _spent(entry.event)),
                reason=reason,
                who=self.who(),
                time=self.clock(),
            )
            chain = Chain(writer.entries())
            return _add(writer, chain, _in_order(restored, chain.latest()))

        event = self._write(decide, restoring=True).event
        if not isinstance(event, Restoration):
            raise LedgerError("was restored without an entry", where=f"ledger {self.store.place}")
        return event, gone

    def refuse_other_kind(self, chain: Chain, *, simulated: bool) -> None:
        """Refuse a simulation in a real ledger, and a real release in a simulation ledger."""
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

    def _write(self, decide: Callable[[Writer, Chain], Entry], *, restoring: bool = False) -> Entry:
        """One transaction, then the key store stores it as seen. If the commit itself failed, the next transaction
        tells whether the entry was written."""
        entry: Entry | None = None
        with LedgerMemory.locked(self.keys, self.nonce) as memory:
            try:
                with self.store.transaction() as writer:
                    chain = Chain(writer.entries())
                    if not restoring or chain.nonce != memory.nonce:
                        memory.refuse_rollback(chain, self.store.place)
                    entry = decide(writer, chain)
                    chain = Chain(writer.entries())
            except UnconfirmedWrite as error:
                try:
                    with self.store.transaction() as writer:  # the transaction in doubt has ended, one way or the other
                        chain = Chain(writer.entries())
                except LedgerError:
                    raise error from None
                if entry not in chain.entries:
                    raise LedgerUnavailable(
                        "broke off; nothing was written", where=f"ledger {self.store.place}", do="try again"
                    ) from None
            memory.note(chain)
        if entry is None:
            raise LedgerError("a transaction ended without an entry", where=f"ledger {self.store.place}")
        return entry


def _spent(event: Event) -> tuple[LostEntry, ...]:
    """The costs of an entry."""
    if isinstance(event, Restoration):
        return event.lost
    if not isinstance(event, Reserve | ExternalRelease):
        return ()
    fields = {name: getattr(event, name) for name in LostEntry.model_fields}
    return (LostEntry(**fields),)


def _in_order(event: Dated, latest: dt.datetime) -> Dated:
    """The event, not before the latest entry: clocks differ a little, and a writer may have waited for another one."""
    return event.model_copy(update={"time": latest}) if latest - TOLERANCE <= event.time < latest else event


def _add(writer: Writer, chain: Chain, event: Event) -> Entry:
    entry = link(len(chain.entries) + 1, chain.head, event)
    _ = entry.event  # an event that could not be read again must not be written
    if (time := getattr(event, "time", None)) is not None and time < chain.latest():
        raise LedgerError(
            f"the clock ({time}) is behind the ledger's last entry ({chain.latest()})",
            do="correct the clock: budget periods depend on it",
        )
    writer.append(entry)
    return entry
