"""What a ledger can say: frozen entries, strictly parsed. An entry of an unknown kind is refused, never skipped."""

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
    """The first entry: what kind of ledger this is, for good."""

    kind: Literal["genesis"] = "genesis"
    ledger: LedgerKind
    version: Literal[3] = 3
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]  # so that no two ledgers are alike
    time: dt.datetime


class Budget(_Event):
    """How much may be spent on an asset, for which unit, and when; a later one replaces an earlier one."""

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
    """A release is about to draw noise: its cost is spent from here on. `binding` ties its key to its data."""

    kind: Literal["reserve"] = "reserve"
    release: str
    asset: str
    guarantee: Guarantee
    binding: str
    spec: str
    code: str
    key: str
    output: str
    keep: str = ""  # where the measurements stay, inside; nowhere
    names: tuple[str, ...]  # everything that may be written there: whoever cleans up removes nothing else
    who: str
    time: dt.datetime


class Commit(_Event):
    """The bytes of a release are fixed, and those of the measurements that stay inside: file name → SHA-256; and what
    its manifest says, by the SHA-256 of it. It has no time of its own, so that a resumed run commits exactly what an
    undisturbed one would have."""

    kind: Literal["commit"] = "commit"
    release: str
    files: dict[str, str]
    manifest: str
    kept: dict[str, str] = {}


class Abandon(_Event):
    """A reservation ended without a release. Its cost stays spent: nobody can prove that nothing was seen."""

    kind: Literal["abandon"] = "abandon"
    release: str
    reason: str
    who: str
    time: dt.datetime


class ExternalRelease(_Event):
    """A release made earlier or elsewhere, entered by hand so that the budget knows of it."""

    kind: Literal["record"] = "record"
    release: Name
    asset: Name
    guarantee: Guarantee
    note: Annotated[str, Field(min_length=1)]
    who: str
    time: dt.datetime


class DerivedRelease(_Event):
    """More was published of the measurements of an earlier release: post-processing, at no cost. Its bytes are fixed
    by this one entry: they follow from the measurements, so whoever has those can make them again."""

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
    """What was spent in an entry that is lost."""

    release: str
    asset: str
    guarantee: Guarantee
    who: str
    time: dt.datetime


class Restoration(_Event):
    """The ledger was put back from a copy, knowingly. Entries that it lacked were entered again, as they were, before
    this one; or, where it has others in their place, what they had spent stays spent by this one."""

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
    """One link of the chain."""

    model_config = ConfigDict(frozen=True)
    number: int
    previous: str
    body: str
    hash: str

    @property
    def event(self) -> Event:
        return _read(self.number, self.body)


@lru_cache(maxsize=4096)  # a release looks at the chain a dozen times; bodies are immutable, and so are events
def _read(number: int, body: str) -> Event:
    if number == 1:
        _refuse_other_version(body)
    try:
        event = _EVENT.validate_json(body)
    except ValidationError as error:
        raise LedgerError(
            f"is not an event this version knows ({error.errors()[0]['msg']})",
            where=f"ledger entry {number}",
            do="use the version of discreet that wrote it; nothing is assumed about it",
        ) from None
    if canonical(json.loads(body)) != body:  # it may say a thing twice
        raise broken(number, "is not written as a ledger writes it")
    return event


def _refuse_other_version(body: str) -> None:
    """A ledger of another version is told by its first entry, before any other is looked at."""
    try:
        first = json.loads(body)
    except (ValueError, RecursionError):
        return  # no event at all: whoever reads it will say so
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
            "begin another and enter what was spent with `discreet ledger record`: before 1.0 nothing is converted",
        )


def broken(number: int, what: str) -> LedgerError:
    return LedgerError(
        what, where=f"ledger entry {number}", do="restore the ledger from a copy; spend nothing until then"
    )


def canonical(value: Any) -> str:
    """One text for one value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
