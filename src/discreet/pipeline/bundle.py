"""The files of a release: tables, codebook, and the manifest that makes it one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.engine import Engine
from discreet.engine.fingerprint import Bound
from discreet.methods import Method, Published
from discreet.pipeline.plan import composition
from discreet.privacy.confidential import Confidential
from discreet.privacy.events import Commit, Entry, LedgerKind
from discreet.privacy.ledger import ReleaseState
from discreet.privacy.reservation import Reservation
from discreet.publish import codebook
from discreet.publish.manifest import DomainEntry, LedgerEntry, Manifest, TableEntry
from discreet.publish.place import Place
from discreet.publish.tables import SIMULATION, file_names, in_words
from discreet.spec import Release

NOTICE = "Protected statistics. What is promised, and what is not, stands under `guarantee`."


@dataclass(frozen=True)
class Tabulated:
    """The exact numbers of every table where an engine keeps them, and the fingerprints that the key is bound to."""

    engine: Engine
    tables: list[Method]
    cells: list[list[Confidential[Bound]]]  # by table, then by domain


def stage(
    place: Place,
    release: Release,
    reservation: Reservation,
    found: Tabulated,
    observe: Callable[[str, int, int], None],
) -> dict[str, str]:
    """Draw the noise and write everything but the manifest: the files and their digests."""
    docs: list[codebook.TableDoc] = []
    files: dict[str, str] = {}
    for table, content in zip(found.tables, found.cells, strict=True):

        def progress(done: int, total: int, name: str = table.name) -> None:
            observe(f"protect {name}", done, total)

        parts = table.protect(found.engine, content, reservation, place, progress).value
        docs += [_doc(published, reservation.simulated) for published in table.published()]
        files |= parts.files
    guarantee, simulated = reservation.reserve.guarantee, reservation.simulated
    layouts = {name: about for table in found.tables for name, about in table.layouts(simulated).items()}
    texts = (
        codebook.as_json(release.release, docs, layouts, simulated),
        codebook.as_markdown(release.release, guarantee, docs, layouts, simulated),
    )
    for name, text in zip(codebook.FILES, texts, strict=True):
        with place.create(name) as file:
            file.write(text.encode())
        files[name] = file.sha256()
    return files


def _doc(table: Published, simulated: bool) -> codebook.TableDoc:
    columns = tuple((c.name, c.type, c.meaning) for c in table.columns)
    names = tuple(file_names(table.name, simulated, table.parts))
    about = " ".join(text for text in (table.about, f"Noise: {table.noise}.") if text)
    return codebook.TableDoc(table.name, names, about, columns, table.domain.attributes)


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
    published = [(t.method, p) for t, table in zip(release.tables, tables, strict=True) for p in table.published()]
    attributes = {a.name: a for _, p in published for a in p.domain.attributes}
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
        composition=composition(guarantee, sum(len(table.domains) for table in tables)),
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
        tables=[_entry(method, p, simulated) for method, p in published],
        layouts={name: about for table in tables for name, about in table.layouts(simulated).items()},
        files=commit.files,
        ledger=LedgerEntry(kind=kind, entry=committed_at.number, head=committed_at.hash),
    )


def _entry(method: str, table: Published, simulated: bool) -> TableEntry:
    return TableEntry(
        name=table.name,
        method=method,
        by=list(table.by),
        cells=table.domain.cells,
        form=table.form,
        about=table.about,
        noise=table.noise,
        margin90=table.error.margin90,
        sum_of=table.sum_of,
        guarantee=table.guarantee,
        guarantee_in_words=in_words(table.guarantee, simulated),
        files=file_names(table.name, simulated, table.parts),
    )
