"""Kept measurements, opened: compared with the ledger, and with the release that is to be made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import GuaranteeError, LedgerError, SpecError
from discreet.methods.protocol import Method
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.recoding import Recoding
from discreet.privacy.ledger.state import Chain
from discreet.publish import measurements
from discreet.publish.description import MEASUREMENTS, Measurement, Recoded
from discreet.publish.measurements import MeasuredTable, Measurements
from discreet.publish.storage import Storage, storage_at
from discreet.spec import Recode, Release, unknown
from discreet.uris import is_uri


@dataclass(frozen=True)
class Source:
    """The measurements of an earlier release, as the ledger has them."""

    place: Storage
    where: str
    about: Measurements
    digests: dict[str, str]

    def verify(self) -> None:
        """Every kept file is there, byte for byte; refused before anything is made of them."""
        for name, digest in self.digests.items():
            try:
                found = self.place.sha256(name)
            except OSError:
                found = ""
            if found != digest:
                raise LedgerError(
                    f"{name!r} is not what the ledger has committed", where=self.where, do="restore it from a copy"
                )


def open_source(release: Release, asked: Recode, chain: Chain) -> Source:
    """The measurements, if the ledger has committed what they say about themselves."""
    where = asked.measurements if is_uri(asked.measurements) else str(release.base / asked.measurements)
    place = storage_at(where)
    about, digest = measurements.read(place, where)
    digests = chain.kept(about.release)
    if digests.get(MEASUREMENTS) != digest:
        raise LedgerError(
            f"the measurements of {about.release!r} are not those that were committed",
            where=where,
            do="restore them from a copy, or name the ledger that has them",
        )
    paid = chain.origin(about.release).reserve
    if (about.asset, about.guarantee) != (paid.asset, paid.guarantee):
        raise LedgerError(
            f"the measurements of {about.release!r} claim another asset or promise than was paid for",
            where=where,
            do="do not publish them: find out who made this folder",
        )
    return Source(place, where, about, digests)


def refuse_asset(release: Release, source: Source) -> None:
    """What was paid for one asset is published under its name."""
    if release.asset != source.about.asset:
        raise SpecError(
            f"the measurements are about asset {source.about.asset!r}, not {release.asset!r}",
            where="asset",
            do="name the asset that was paid for",
        )


def plan_recoding(release: Release, asked: Recode, tables: list[Method], source: Source) -> dict[str, Recoding]:
    """What becomes of every measured table; refused before anything is written."""
    found: dict[str, Recoding] = {}
    files = Classifications(asked, release.base)
    known = {table.name: table for table in source.about.tables}
    published = {made.name for table in tables for made in table.published()}
    for declared, table in zip(release.tables, tables, strict=True):
        for measurement in table.measurements():
            old = known.get(measurement.name)
            if old is None or old.method != declared.method:
                raise SpecError(
                    f"{measurement.name!r} was not measured by {declared.method}",
                    where=f"table {table.name}",
                    do=f"measured were {', '.join(known)}",
                )
            if (taken := f"{measurement.name}_transitions") in published:
                raise SpecError(f"two files are called {taken!r}", where="tables", do="rename a table or a level")
            _refuse_other(measurement, old, table.name)
            found[measurement.name] = Recoding(measurement.name, old, measurement.groups, files)
    if not any(recoding.columns for recoding in found.values()):
        columns = sorted({c for r in found.values() for a in r.old.attributes for c in a.columns})
        raise SpecError(
            unknown(next(iter(asked.columns)), columns, "column"), where="recode.columns", do="name a published column"
        )
    return found


def recoded_in_words(source: Source, recodings: Mapping[str, Recoding]) -> Recoded:
    """What stands in codebook and manifest about it, and the tables of transitions."""
    changed = {name: recoding for name, recoding in recodings.items() if recoding.place is not None}
    files = next(iter(changed.values())).files
    about = (
        f"Post-processing of the noisy measurements of release {source.about.release}, recoded: no record was read, no "
        f"privacy budget was spent. {files.description()} Cells into which a code was divided at random have an additional "
        "error of unknown size, and no margins of error or confidence limits; there, counts and bins are estimates "
        "based on these shares, and biased."
    )
    tables = {name: recoding.table() for name, recoding in changed.items()}
    return Recoded(source.about.release, source.about.guarantee, about, tables)


def _refuse_other(new: Measurement, old: MeasuredTable, table: str) -> None:
    """A recoding publishes what was measured, under the promise that it was measured with."""
    if new.guarantee != old.guarantee or new.rate != old.rate:
        raise GuaranteeError(
            "declares another unit or epsilon than it was measured with",
            where=f"table {table}",
            do=f"measured was: {old.guarantee.in_words()}",
        )
    if (new.width, new.about) != (old.width, old.about):
        changed = next((key for key in new.about if new.about.get(key) != old.about.get(key)), "width")
        raise SpecError(
            f"has another {changed!r} than it was measured with", where=f"table {table}", do="declare it as it was"
        )
