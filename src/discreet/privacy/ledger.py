"""The ledger: what has been spent on which asset, append-only and hash-chained. It fails closed.

Every writing step is one exclusive transaction that first checks the whole chain: reserve → commit, or abandon.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TypeVar

from discreet.errors import LedgerError, LedgerUnavailable, LedgerUncertain
from discreet.noise.key import nonce as fresh_nonce
from discreet.privacy.chain import Chain
from discreet.privacy.events import (
    Abandon,
    Budget,
    Commit,
    Derived,
    Entry,
    Event,
    Genesis,
    LedgerKind,
    Recorded,
    Reserve,
    link,
)
from discreet.privacy.store import Store, Writer

Clock = Callable[[], dt.datetime]
Dated = TypeVar("Dated", Budget, Reserve, Abandon, Recorded, Derived)
TOLERANCE = dt.timedelta(minutes=1)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


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
        chain.derived()  # everything derived is of something kept
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

    def derive(self, derived: Derived, *, simulated: bool) -> Entry:
        """Record post-processing: nothing is spent. Recording the same bytes again is no new entry."""

        def decide(writer: Writer, chain: Chain) -> Entry:
            self.fits(chain, simulated=simulated)
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
                    f"release {dated.of!r} has kept no measurements", do="only what was kept can be derived from"
                )
            return _add(writer, chain, dated)

        return self._write(decide)

    def commit(self, release: str, files: dict[str, str], manifest: str, kept: dict[str, str] | None = None) -> Entry:
        """Fix the bytes of a reserved release and the digest of its manifest. The same again is no new entry."""
        made = Commit(release=release, files=files, manifest=manifest, kept=kept or {})

        def decide(writer: Writer, chain: Chain) -> Entry:
            state = chain.open_release(release)
            if state.commit is not None and state.committed_at is not None:
                if state.commit != made:
                    raise LedgerError(f"release {release!r} was committed with other bytes", do="do not publish these")
                return state.committed_at
            return _add(writer, chain, made)

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
