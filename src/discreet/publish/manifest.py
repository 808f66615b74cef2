"""What a release says about itself. Nothing confidential: not even how many records were read."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from discreet import formats
from discreet.errors import PublishError
from discreet.formatting import as_path, is_uri
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import canonical
from discreet.publish.storage import storage_at

FILE = "manifest.json"
CHECK = (
    "`files` has the SHA-256 of every file. `digest` is the SHA-256 of this manifest without `digest` and `ledger`, as "
    "JSON with sorted keys, without spaces, in UTF-8. Both show damage and careless edits; whoever edits them all "
    "together is found out by the ledger alone, whose entry has them: `discreet ledger verify --manifest FOLDER`."
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DomainEntry(_Part):
    """An attribute that tables are by."""

    name: str
    columns: list[str]
    categories: int
    undeclared: str
    provenance: str


class TableEntry(_Part):
    """One published table."""

    name: str
    method: str
    by: list[str]
    cells: int
    form: str
    about: str = ""
    noise: str
    margin90: int | None
    sum_of: str = ""
    guarantee: Guarantee
    guarantee_in_words: str
    files: list[str]


class LedgerEntry(_Part):
    """Where the ledger stood when this release was committed: a ledger without this head was rolled back."""

    kind: Literal["real", "simulation"]
    entry: int
    head: str


class Said(_Part):
    """All that a manifest says, but where the ledger stood: the ledger's entry has the digest of it."""

    format: Literal["discreet-manifest/2"] = "discreet-manifest/2"
    release: str
    asset: str
    simulation: bool
    notice: str
    reserved: dt.date  # not the time: it would tell how long reading took
    derived_from: str = ""  # the release whose measurements it was made of, at no cost
    code: str
    spec: str
    guarantee: Guarantee
    guarantee_in_words: str
    composition: str
    domains: list[DomainEntry]
    tables: list[TableEntry]
    layouts: dict[str, str] = {}
    files: dict[str, str]
    check: str = CHECK

    def sha256(self) -> str:
        """Of everything it says; what is not part of it, `digest` and `ledger`, is left out."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude={"digest", "ledger"})
        return hashlib.sha256(canonical(data).encode()).hexdigest()

    def entered(self, ledger: LedgerEntry) -> Manifest:
        """As it is published, after the ledger has it."""
        return Manifest(**dict(self), digest=self.sha256(), ledger=ledger)


class Manifest(Said):
    """The last file written: a folder without it is no release."""

    digest: str
    ledger: LedgerEntry

    def text(self) -> str:
        data: dict[str, Any] = self.model_dump(mode="json")
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read(where: str | Path) -> Manifest:
    """The manifest of a release; a folder without one is refused."""
    if not is_uri(str(where)) and Path(as_path(str(where))).is_file():
        raise PublishError("is a file", where=str(where), do="name the folder of a release")
    try:
        text = storage_at(str(where)).read(FILE)
        if formats.COMPARATOR.encode() in text and b'"discreet-manifest/' not in text:
            raise PublishError(
                "is a comparison without any guarantee, and no release", where=str(where), do="do not publish it"
            )
        made = Manifest.model_validate(formats.parsed(text, formats.MANIFEST, str(where)))
        if made.digest != made.sha256() or made.text().encode() != text:
            raise PublishError(
                "has a manifest that was changed: its digest is another",
                where=str(where),
                do="restore it from a copy, and compare it with the ledger: `discreet ledger verify --manifest`",
            )
        return made
    except FileNotFoundError:
        there = is_uri(str(where)) or Path(as_path(str(where))).exists()
        what = "it is not a release, or not a finished one" if there else "there is no such folder"
        raise PublishError(
            f"has no manifest: {what}",
            where=str(where),
            do="name the folder of a release; run `discreet resume` if a run was interrupted",
        ) from None
    except (ValueError, OSError):
        raise PublishError(
            "has a manifest that cannot be read", where=str(where), do="restore it from a copy"
        ) from None
