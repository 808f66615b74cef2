"""The files of a release: tables, codebook, and the manifest that makes it one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.methods import Method
from discreet.pipeline.plan import composition
from discreet.privacy.confidential import Confidential
from discreet.privacy.events import Commit, Entry, LedgerKind
from discreet.privacy.ledger import ReleaseState
from discreet.privacy.reservation import Reservation
from discreet.publish import codebook
from discreet.publish.manifest import DomainEntry, LedgerEntry, Manifest, TableEntry
from discreet.publish.tables import SIMULATION, in_words, stem, write_table
from discreet.spec import Release

NOTICE = "Protected statistics. What is promised, and what is not, stands under `guarantee`."


def stage(
    folder: Path,
    release: Release,
    reservation: Reservation,
    tables: list[Method],
    cells: list[Confidential[Any]],
    observe: Callable[[str, int, int], None],
) -> None:
    """Draw the noise and write everything but the manifest."""
    docs = []
    for table, content in zip(tables, cells, strict=True):

        def progress(done: int, total: int, name: str = table.name) -> None:
            observe(f"protect {name}", done, total)

        batches = table.protect(content, reservation, progress)
        written = write_table(folder, table.name, table.schema(), batches, reservation.simulated)
        columns = tuple((c.name, c.type, c.meaning) for c in table.columns())
        docs.append(codebook.TableDoc(table.name, written.files, table.noise(), columns, table.domain.attributes))
    guarantee, simulated = reservation.reserve.guarantee, reservation.simulated
    for name, text in zip(
        codebook.FILES,
        (
            codebook.as_json(release.release, docs, simulated),
            codebook.as_markdown(release.release, guarantee, docs, simulated),
        ),
        strict=True,
    ):
        (folder / name).write_text(text, encoding="utf-8")


def manifest(
    release: Release,
    state: ReleaseState,
    commit: Commit,
    committed_at: Entry,
    kind: LedgerKind,
    tables: list[Method],
) -> Manifest:
    """Everything a reader needs to know about the release, all of it from the protected side."""
    simulated = kind == "simulation"
    guarantee = state.reserve.guarantee
    attributes = {a.name: a for t in tables for a in t.domain.attributes}
    return Manifest(
        release=release.release,
        asset=release.asset,
        simulation=simulated,
        notice=SIMULATION if simulated else NOTICE,
        reserved=state.reserve.time.date(),
        code=state.reserve.code,
        spec=state.reserve.spec,
        guarantee=guarantee,
        guarantee_in_words=in_words(guarantee, simulated),
        composition=composition(guarantee, len(tables)),
        domains=[
            DomainEntry(
                name=a.name,
                columns=list(a.columns),
                categories=a.size,
                undeclared=a.other or "dropped",
                provenance=a.provenance,
            )
            for a in attributes.values()
        ],
        tables=[_entry(spec_table, table, simulated) for spec_table, table in zip(release.tables, tables, strict=True)],
        files=commit.files,
        ledger=LedgerEntry(kind=kind, entry=committed_at.number, head=committed_at.hash),
    )


def _entry(spec: Any, table: Method, simulated: bool) -> TableEntry:
    name, guarantee = stem(table.name, simulated), table.guarantee()
    return TableEntry(
        name=table.name,
        method=spec.method,
        by=list(spec.by),
        cells=table.domain.cells,
        form=spec.form,
        noise=table.noise(),
        margin90=table.error().margin90,
        guarantee=guarantee,
        guarantee_in_words=in_words(guarantee, simulated),
        files=[f"{name}.parquet", f"{name}.csv"],
    )
