"""What a key store remembers of a ledger: its entries, as they were last seen. They lie apart from the ledger, so that
whoever puts back an old copy of the ledger alone is told, however many entries the copy has been given since."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass

from discreet import formats
from discreet.errors import KeyRefused, LedgerError, LedgerUncertain, PublishError
from discreet.noise.keystore import KeyStore
from discreet.privacy.ledger.events import Entry
from discreet.privacy.ledger.state import Chain


@dataclass(frozen=True)
class Memory:
    """Of one ledger, by its nonce."""

    keys: KeyStore
    nonce: str

    def alone(self) -> AbstractContextManager[None]:
        """From the look to the note nobody else who uses this key store writes to the ledger, or to a copy of it."""
        return self.keys.alone(self.nonce)

    def lost(self, chain: Chain) -> tuple[Entry, ...]:
        """The entries that have been seen and are not there: all that follow the last one in common."""
        seen = self._seen()
        if len(seen) <= len(chain.entries) and (not seen or chain.entries[len(seen) - 1].hash == seen[-1].hash):
            return ()
        common = 0
        for before, now in zip(seen, chain.entries, strict=False):
            if before.hash != now.hash:
                break
            common += 1
        return seen[common:]

    def refuse_rollback(self, chain: Chain, place: str) -> None:
        """Every entry that was ever seen must be there, in its place."""
        if lost := self.lost(chain):
            raise rolled_back(lost, place)

    def note(self, chain: Chain) -> None:
        """Remember all entries. What cannot be noted is in the ledger all the same."""
        if (seen := self._seen()) and seen[-1] == chain.entries[-1]:
            return
        content = {"format": formats.MEMORY, "entries": [entry.model_dump() for entry in chain.entries]}
        try:
            self.keys.remember(self.nonce, json.dumps(content, ensure_ascii=False).encode())
        except OSError as error:
            raise LedgerUncertain(
                f"could not note the ledger's last entry ({error.strerror})",
                where="key store",
                do="make room; a release that is reserved is completed by `discreet resume`",
            ) from None

    def _seen(self) -> tuple[Entry, ...]:
        if not (content := self.keys.recall(self.nonce)):
            return ()
        try:
            data = formats.parsed(content, formats.MEMORY, "what the key store remembers of the ledger")
            return Chain(Entry.model_validate(entry) for entry in data["entries"]).entries
        except (ValueError, KeyError, TypeError, LedgerError, PublishError):
            raise KeyRefused(
                "what it remembers of the ledger is damaged or of another version",
                where="key store",
                do=f"restore {self.nonce}.ledger there from a copy; spend nothing until then",
            ) from None


def rolled_back(lost: tuple[Entry, ...], place: str) -> LedgerError:
    number = f"entry {lost[0].number} is" if len(lost) == 1 else f"entries {lost[0].number} to {lost[-1].number} are"
    return LedgerError(
        f"was rolled back or replaced: {number} not those that this key store has seen",
        where=f"ledger {place}",
        do="put the ledger back as it was; if that cannot be done, `discreet ledger restore --reason …` counts what is "
        "lost as spent",
    )
