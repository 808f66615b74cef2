"""Events of a ledger: frozen, strictly parsed. An event of an unknown kind is refused, never skipped."""

from __future__ import annotations

import datetime as dt
import json
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from discreet import formats
from discreet.errors import LedgerError
from discreet.privacy.exact import Exact, Positive
from discreet.privacy.guarantee import Guarantee, Neighbours, Unit

LedgerKind = Literal["real", "simulation"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Genesis(_Event):
    """The first entry: whether this is a real ledger or one of simulations. It never changes."""

    kind: Literal["genesis"] = "genesis"
    ledger: LedgerKind
    version: Literal[3] = 3
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]  # identifies the ledger
    time: dt.datetime


class Budget(_Event):
    """An asset's privacy budget: privacy unit, ε, δ, period. A later one replaces an earlier one."""

    kind: Literal["budget"] = "budget"
    asset: Name
    unit: Unit
    epsilon: Positive
    delta: Exact
    neighbours: Neighbours = "add-remove"
    start: dt.date | None = None
    end: dt.date | None = None
    who: str
    time: dt.datetime

    @model_validator(mode="after")
    def _ordered(self) -> Budget:
        if not 0 <= self.delta <= 1:
            raise ValueError("needs 0 <= delta <= 1")
        if self.start and self.end and self.end < self.start:
            raise ValueError("the period ends before it starts")
        return self

    def in_force(self, day: dt.date) -> bool:
        return (self.start is None or self.start <= day) and (self.end is None or day <= self.end)


class Reserve(_Event):
    """A release is about to draw noise: its cost counts as spent from now on. `binding` ties its key to its data."""

    kind: Literal["reserve"] = "reserve"
    release: str
    asset: str
    guarantee: Guarantee
    binding: str
    spec: str
    code: str
    key: str
    output: str
    keep: str = ""  # where the noisy measurements are kept; empty: nowhere
    names: tuple[str, ...]  # every file that may be written there: cleaning up removes nothing else
    who: str
    time: dt.datetime


class Commit(_Event):
    """Fixes the bytes of a release and of its kept measurements (file name → SHA-256), and the SHA-256 of its manifest.
    It has no time of its own, so that a resumed run commits exactly what an uninterrupted one would have."""

    kind: Literal["commit"] = "commit"
    release: str
    files: dict[str, str]
    manifest: str
    kept: dict[str, str] = {}


class Abandon(_Event):
    """Ends a reservation without a release. Its cost stays spent: nobody can prove that no output was seen."""

    kind: Literal["abandon"] = "abandon"
    release: str
    reason: str
    who: str
    time: dt.datetime


class ExternalRelease(_Event):
    """A release made earlier or elsewhere, entered by hand so that it is charged to the budget."""

    kind: Literal["record"] = "record"
    release: Name
    asset: Name
    guarantee: Guarantee
    note: Annotated[str, Field(min_length=1)]
    who: str
    time: dt.datetime


class DerivedRelease(_Event):
    """A further release made from the measurements of an earlier one: post-processing, at no cost. This one entry fixes
    its bytes: they follow from the measurements, from which they can be reproduced."""

    kind: Literal["derive"] = "derive"
    release: Name
    asset: str
    of: str
    cost: Literal["0"] = "0"
    spec: str
    code: str
    output: str
    keep: str = ""
    files: dict[str, str]
    manifest: str
    kept: dict[str, str] = {}
    who: str
    time: dt.datetime


class LostEntry(_Event):
    """The cost of an entry that was lost. It stays spent."""

    release: str
    asset: str
    guarantee: Guarantee
    who: str
    time: dt.datetime


class Restoration(_Event):
    """The ledger was deliberately restored from a copy. Entries that it lacked were entered again, as they were, before
    this one; where it has other entries in their place, this one keeps the lost costs spent."""

    kind: Literal["restore"] = "restore"
    again: int
    lost: tuple[LostEntry, ...]
    reason: Annotated[str, Field(min_length=1)]
    who: str
    time: dt.datetime


Event = Annotated[
    Genesis | Budget | Reserve | Commit | Abandon | ExternalRelease | DerivedRelease | Restoration,
    Field(discriminator="kind"),
]
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class Entry(BaseModel):
    """One link of the hash chain."""

    model_config = ConfigDict(frozen=True)
    number: int
    previous: str
    body: str
    hash: str

    @property
    def event(self) -> Event:
        return _read(self.number, self.body)


@lru_cache(maxsize=4096)  # a release reads the chain a dozen times; bodies are immutable, and so are events
def _read(number: int, body: str) -> Event:
    if number == 1:
        _refuse_other_version(body)
    try:
        event = _EVENT.validate_json(body)
    except ValidationError as error:
        raise LedgerError(
            f"is not an event this version knows ({error.errors()[0]['msg']})",
            where=f"ledger entry {number}",
            do="use the version of discreet that wrote it; unknown events are never skipped",
        ) from None
    if canonical(json.loads(body)) != body:  # it may have a duplicate key
        raise broken(number, "is not written as a ledger writes it")
    return event


def _refuse_other_version(body: str) -> None:
    """A ledger of another version is recognised by its first entry, before any other is read."""
    try:
        first = json.loads(body)
    except (ValueError, RecursionError):
        return  # not an event: parsing it will say so
    if (
        isinstance(first, dict)
        and first.get("kind") == "genesis"
        and not (type(version := first.get("version")) is int and version == formats.LEDGER)
    ):
        raise formats.other(
            str(first.get("version"))[:20],
            str(formats.LEDGER),
            "ledger",
            LedgerError,
            "begin another one and enter the costs with `discreet ledger record`: before 1.0 ledgers are not converted",
        )


def broken(number: int, what: str) -> LedgerError:
    return LedgerError(
        what, where=f"ledger entry {number}", do="restore the ledger from a copy; spend nothing until then"
    )


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
