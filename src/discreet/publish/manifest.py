"""The manifest of a release. It contains nothing confidential, not even the number of records read."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from discreet import formats
from discreet.errors import PublishError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import canonical
from discreet.publish.description import SIMULATION, guarantee_text
from discreet.publish.storage import storage_at
from discreet.uris import as_path, is_uri

if TYPE_CHECKING:
    from discreet.publish.description import PublishedTable, ReleaseDescription

FILE = "manifest.json"
NOTICE = "Protected statistics. `guarantee` states the privacy guarantee, its `caveats` what it does not cover."
CHECK = (
    "`files` has the SHA-256 of every file. `digest` is the SHA-256 of this manifest without `digest` and `ledger`, as "
    "JSON with sorted keys, without spaces, in UTF-8. They detect accidental changes. A consistent change of files and "
    "manifest is detected only by comparison with the ledger: `discreet ledger verify --manifest FOLDER`."
)


class _ManifestPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DomainEntry(_ManifestPart):
    """An attribute of the published tables."""

    name: str
    columns: list[str]
    categories: int
    undeclared: str
    provenance: str


class TableEntry(_ManifestPart):
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


class LedgerEntry(_ManifestPart):
    """The head of the ledger when this release was committed: a ledger without it has been rolled back."""

    kind: Literal["real", "simulation"]
    entry: int
    head: str


class ManifestBody(_ManifestPart):
    """The manifest without the head of the ledger; the ledger's entry has its digest."""

    format: Literal["discreet-manifest/2"] = "discreet-manifest/2"
    release: str
    asset: str
    simulation: bool
    notice: str
    reserved: dt.date  # a date: the time would reveal how long reading took
    derived_from: str = ""  # the release whose noisy measurements it post-processes
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
        """The digest of all fields except `digest` and `ledger`."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude={"digest", "ledger"})
        return hashlib.sha256(canonical(data).encode()).hexdigest()

    def with_ledger_entry(self, ledger: LedgerEntry) -> Manifest:
        """The manifest as published, after the ledger has committed it."""
        return Manifest(**dict(self), digest=self.sha256(), ledger=ledger)


class Manifest(ManifestBody):
    """The last file written: a folder without a manifest is not a release."""

    digest: str
    ledger: LedgerEntry

    def text(self) -> str:
        data: dict[str, Any] = self.model_dump(mode="json")
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def manifest_body(
    description: ReleaseDescription, *, reserved: dt.date, code: str, spec: str, files: dict[str, str]
) -> ManifestBody:
    """The manifest of a described release, computed from public and protected values only."""
    return ManifestBody(
        release=description.release,
        asset=description.asset,
        simulation=description.simulated,
        notice=SIMULATION if description.simulated else NOTICE,
        reserved=reserved,
        derived_from="" if description.recoding_source is None else description.recoding_source.release,
        code=code,
        spec=spec,
        guarantee=description.guarantee,
        guarantee_in_words=guarantee_text(description.guarantee, description.simulated),
        composition=description.composition,
        domains=[
            DomainEntry(
                name=a.name,
                columns=list(a.columns),
                categories=a.size,
                undeclared=a.undeclared or "dropped",
                provenance=a.provenance,
            )
            for a in description.attributes.values()
        ],
        tables=[_entry(table, description) for table in description.tables],
        layouts=description.further_files,
        files=files,
    )


def _entry(table: PublishedTable, description: ReleaseDescription) -> TableEntry:
    recoded = description.recoding_source
    return TableEntry(
        name=table.name,
        method=table.method,
        by=list(table.by),
        cells=table.cells,
        form=table.form,
        about=" ".join(text for text in (table.about, "" if recoded is None else recoded.about) if text),
        noise=table.noise,
        margin90=None if table.error is None or recoded is not None else table.error.margin90,
        sum_of=table.sum_of,
        guarantee=table.guarantee,
        guarantee_in_words=guarantee_text(table.guarantee, description.simulated),
        files=table.files(description.simulated),
    )


def read(where: str | Path) -> Manifest:
    """The manifest of a release; a folder without one is refused."""
    if not is_uri(str(where)) and Path(as_path(str(where))).is_file():
        raise PublishError("is a file", where=str(where), do="name the folder of a release")
    try:
        text = storage_at(str(where)).read(FILE)
        if formats.COMPARATOR.encode() in text and b'"discreet-manifest/' not in text:
            raise PublishError(
                "is a comparator without any privacy guarantee, not a release", where=str(where), do="do not publish it"
            )
        manifest = Manifest.model_validate(formats.parsed(text, formats.MANIFEST, str(where)))
        if manifest.digest != manifest.sha256() or manifest.text().encode() != text:
            raise PublishError(
                "has a manifest that was changed: its digest does not match",
                where=str(where),
                do="restore it from a copy",
            )
        return manifest
    except FileNotFoundError:
        present = is_uri(str(where)) or Path(as_path(str(where))).exists()
        what = "it is not a release, or an unfinished one" if present else "there is no such folder"
        raise PublishError(
            f"has no manifest: {what}",
            where=str(where),
            do="name the folder of a release; run `discreet resume` if a run was interrupted",
        ) from None
    except (ValueError, OSError):
        raise PublishError(
            "has a manifest that cannot be read", where=str(where), do="restore it from a copy"
        ) from None
