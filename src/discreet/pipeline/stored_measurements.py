"""Kept measurements: verified against the ledger, and compared with the release that is to be made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import GuaranteeError, LedgerError, SpecError
from discreet.methods.protocol import Method
from discreet.methods.recode.classifications import Classifications
from discreet.methods.recode.recoding import Recoding
from discreet.privacy.ledger.state import Chain
from discreet.publish import measurements
from discreet.publish.description import MEASUREMENTS, Measurement, RecodingSource
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
        """Refuse measurements unless every kept file has the committed bytes."""
        for name, digest in self.digests.items():
            try:
                current = self.place.sha256(name)
            except OSError:
                current = ""
            if current != digest:
                raise LedgerError(
                    f"{name!r} is not what the ledger has committed", where=self.where, do="restore it from a copy"
                )


def open_source(release: Release, spec: Recode, chain: Chain) -> Source:
    """The measurements, if the ledger has committed their description."""
    where = spec.measurements if is_uri(spec.measurements) else str(release.base / spec.measurements)
    place = storage_at(where)
    about, digest = measurements.read(place, where)
    digests = chain.kept(about.release)
    if digests.get(MEASUREMENTS) != digest:
        raise LedgerError(
            f"the measurements of {about.release!r} are not those that were committed",
            where=where,
            do="restore them from a copy, or name the ledger that has them",
        )
    reserve = chain.origin(about.release).reserve
    if (about.asset, about.guarantee) != (reserve.asset, reserve.guarantee):
        raise LedgerError(
            f"the measurements of {about.release!r} claim another asset or guarantee than was reserved",
            where=where,
            do="do not publish them: find out who created this folder",
        )
    return Source(place, where, about, digests)


def refuse_asset(release: Release, source: Source) -> None:
    """Refuse to publish measurements of one asset under the name of another."""
    if release.asset != source.about.asset:
        raise SpecError(
            f"the measurements are about asset {source.about.asset!r}, not {release.asset!r}",
            where="asset",
            do="name the asset that the measurements belong to",
        )


def plan_recoding(release: Release, spec: Recode, tables: list[Method], source: Source) -> dict[str, Recoding]:
    """The recoding of every measured table; refused before anything is written."""
    recodings: dict[str, Recoding] = {}
    files = Classifications(spec, release.base)
    known = {table.name: table for table in source.about.tables}
    published = {output.name for table in tables for output in table.published_tables()}
    for declared, table in zip(release.tables, tables, strict=True):
        for measurement in table.measurements():
            old = known.get(measurement.name)
            if old is None or old.method != declared.method:
                raise SpecError(
                    f"{measurement.name!r} was not measured by {declared.method}",
                    where=f"table {table.name}",
                    do=f"there are measurements of {', '.join(known)}",
                )
            if (taken := f"{measurement.name}_transitions") in published:
                raise SpecError(f"two files are called {taken!r}", where="tables", do="rename a table or a level")
            _refuse_other(measurement, old, table.name)
            recodings[measurement.name] = Recoding(measurement.name, old, measurement.groups, files)
    if not any(recoding.columns for recoding in recodings.values()):
        columns = sorted({c for r in recodings.values() for a in r.old.attributes for c in a.columns})
        raise SpecError(
            unknown(next(iter(spec.columns)), columns, "column"), where="recode.columns", do="name a published column"
        )
    return recodings


def describe_recoding(source: Source, recodings: Mapping[str, Recoding]) -> RecodingSource:
    """The text about a recoding in codebook and manifest, and the tables of transitions."""
    changed = {name: recoding for name, recoding in recodings.items() if recoding.place is not None}
    files = next(iter(changed.values())).files
    about = (
        f"Post-processing of the noisy measurements of release {source.about.release}: no record was read, no budget "
        f"spent. {files.description()} Cells into which a code was divided at random have an additional "
        "error of unknown size, and no margins of error or confidence limits; there, counts and bins are estimates "
        "based on these shares, and biased."
    )
    tables = {name: recoding.table() for name, recoding in changed.items()}
    return RecodingSource(source.about.release, source.about.guarantee, about, tables)


def _refuse_other(new: Measurement, old: MeasuredTable, table: str) -> None:
    """Refuse to recode under another guarantee or other parameters than those of the measurements."""
    if new.guarantee != old.guarantee or new.rate != old.rate:
        raise GuaranteeError(
            "declares another unit or epsilon than it was measured with",
            where=f"table {table}",
            do=f"the measurements have: {old.guarantee.in_words()}",
        )
    if (new.width, new.about) != (old.width, old.about):
        changed = next((key for key in new.about if new.about.get(key) != old.about.get(key)), "width")
        raise SpecError(
            f"has another {changed!r} than it was measured with", where=f"table {table}", do="declare it as it was"
        )
