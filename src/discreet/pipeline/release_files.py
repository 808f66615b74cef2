"""The files of a release: tables, codebook, and the manifest that makes it one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from discreet.engine import Engine
from discreet.engine.fingerprint import Bound
from discreet.methods.description import Measurement, Published
from discreet.methods.protocol import Method
from discreet.methods.writing import Made, Places
from discreet.pipeline.plan import composition
from discreet.privacy.confidential import Confidential
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.events import LedgerKind
from discreet.privacy.reservation import Grant
from discreet.publish import codebook
from discreet.publish.lehd.sidecars import joined
from discreet.publish.manifest import DomainEntry, Said, TableEntry
from discreet.publish.measurements import FILE as MEASUREMENTS
from discreet.publish.measurements import MeasuredAttribute, MeasuredTable, Measurements
from discreet.publish.storage import Storage
from discreet.publish.tables import SIMULATION, file_names, in_words, stem
from discreet.spec import Release

NOTICE = "Protected statistics. What is promised, and what is not, stands under `guarantee`."


@dataclass(frozen=True)
class Tabulated:
    """The exact numbers of every table where an engine keeps them, and the fingerprints that the key is bound to."""

    engine: Engine
    tables: list[Method]
    cells: list[list[Confidential[Bound]]]  # by table, then by domain


@dataclass(frozen=True)
class Recoded:
    """What readers must know of tables that were made of an earlier release's measurements."""

    about: str
    tables: Mapping[str, str]  # of transitions, by the measurement they are about

    def files(self, simulated: bool) -> dict[str, str]:
        """The name of each table of transitions, and what it is."""
        return {
            _transitions(name, simulated): f"{name}: where each old code went, and by which share"
            for name in self.tables
        }


@dataclass(frozen=True)
class Staged:
    """Everything but the manifest: published files and kept measurements, with their digests."""

    files: dict[str, str]
    kept: dict[str, str]


def _transitions(name: str, simulated: bool) -> str:
    return f"{stem(f'{name}_transitions', simulated)}.csv"


def announced(release: Release, tables: list[Method], simulated: bool) -> tuple[str, ...]:
    """The names of all that a release may write, from the declaration alone: what a crash may leave. A table of parts
    is named by its folder, and what is written aside for it by `NAME~`."""
    measured = [m.name for table in tables for m in table.measurements()]
    published = [p for table in tables for p in table.published()]
    names = {file_names(p.name, simulated, 1, (kind,))[0] for p in published for kind in p.kinds}
    names |= {f"{name}~" for name in (*measured, *(p.name for p in published), *(table.name for table in tables))}
    names |= {_transitions(name, simulated) for name in measured} if release.recode is not None else set()
    return tuple(sorted({*names, *_layouts(tables, simulated), *codebook.FILES, MEASUREMENTS}))


Protect = Callable[[Method, Callable[[int, int], None]], Made]


def stage(
    places: Places,
    release: Release,
    tables: list[Method],
    grant: Grant,
    guarantee: Guarantee,
    protect: Protect,
    observe: Callable[[str, int, int], None],
    recoded: Recoded | None = None,
) -> Staged:
    """Protect every table, and write everything but the manifest. Measurements stay only if they are to be kept."""
    docs: list[codebook.TableDoc] = []
    files: dict[str, str] = {}
    kept: dict[str, str] = {}
    measured: list[MeasuredTable] = []
    for declared, table in zip(release.tables, tables, strict=True):

        def progress(done: int, total: int, name: str = table.name) -> None:
            observe(f"protect {name}", done, total)

        made = protect(table, progress)
        docs += [_doc(published, grant.simulated) for published in table.published()]
        files |= made.files
        kept |= {name: digest for parts in made.measured.values() for name, digest in parts.value.files.items()}
        measured += [_measured(declared.method, m, made) for m in table.measurements()]
    if release.keep is None:
        for name in kept:
            places.measured.remove(name)
        kept = {}
    else:
        about = Measurements(
            release=release.release,
            asset=release.asset,
            simulation=grant.simulated,
            guarantee=guarantee,
            tables=tuple(measured),
        )
        kept |= _written(places.measured, {MEASUREMENTS: about.text()})
    layouts = _layouts(tables, grant.simulated) | ({} if recoded is None else recoded.files(grant.simulated))
    small = joined(table.sidecars() for table in tables)
    texts = small.texts(grant.simulated, grant.time.date(), release.release)
    if recoded is not None:
        texts |= dict(zip(recoded.files(grant.simulated), recoded.tables.values(), strict=True))
    said = "" if recoded is None else recoded.about
    books = (
        codebook.as_json(release.release, docs, layouts, grant.simulated, said),
        codebook.as_markdown(release.release, guarantee, docs, layouts, grant.simulated, said),
    )
    texts |= dict(zip(codebook.FILES, books, strict=True))
    return Staged(files | _written(places.published, texts), kept)


def _written(place: Storage, texts: Mapping[str, str]) -> dict[str, str]:
    """Small files, and their digests."""
    files = {}
    for name, text in texts.items():
        with place.create(name) as file:
            file.write(text.encode())
        files[name] = file.sha256()
    return files


def _measured(method: str, measurement: Measurement, made: Made) -> MeasuredTable:
    return MeasuredTable(
        name=measurement.name,
        method=method,
        attributes=tuple(
            MeasuredAttribute(name=a.name, columns=a.columns, categories=a.published)
            for a in measurement.groups.attributes
        ),
        width=measurement.width,
        about=measurement.about,
        rate=measurement.rate,
        draws=made.draws.get(measurement.name),
        guarantee=measurement.guarantee,
        files=made.measured[measurement.name].value.files,
    )


def _layouts(tables: list[Method], simulated: bool) -> dict[str, str]:
    """The files of every layout, then those that layouts share: what each is."""
    own = {name: about for table in tables for name, about in table.layouts(simulated).items()}
    return own | joined(table.sidecars() for table in tables).files(simulated)


def _doc(table: Published, simulated: bool) -> codebook.TableDoc:
    columns = tuple((c.name, c.type, c.meaning) for c in table.columns)
    names = tuple(file_names(table.name, simulated, table.parts, table.kinds))
    about = " ".join(text for text in (table.about, f"Noise: {table.noise}." if table.noise else "") if text)
    attributes = (*table.domain.attributes, *table.further)
    additive = None if table.additive is None else asdict(table.additive)
    return codebook.TableDoc(table.name, names, about, columns, attributes, additive)


@dataclass(frozen=True)
class Entered:
    """What the ledger says about a release, or is about to."""

    guarantee: Guarantee
    day: dt.date
    code: str
    spec: str
    files: dict[str, str]
    kind: LedgerKind
    of: str = ""  # the release whose measurements it was made of
    recoded: Recoded | None = None


def manifest(release: Release, entered: Entered, tables: list[Method]) -> Said:
    """Everything a reader needs to know about the release, all of it from the protected side."""
    simulated = entered.kind == "simulation"
    guarantee = entered.guarantee
    published = [(t.method, p) for t, table in zip(release.tables, tables, strict=True) for p in table.published()]
    attributes = {a.name: a for _, p in published for a in (*p.domain.attributes, *p.further)}
    return Said(
        release=release.release,
        asset=release.asset,
        simulation=simulated,
        notice=SIMULATION if simulated else NOTICE,
        reserved=entered.day,
        derived_from=entered.of,
        code=entered.code,
        spec=entered.spec,
        guarantee=guarantee,
        guarantee_in_words=in_words(guarantee, simulated),
        composition=composition(guarantee, sum(len(table.domains) for table in tables), entered.of),
        domains=[
            DomainEntry(
                name=a.name,
                columns=list(a.columns),
                categories=a.size,
                undeclared=a.undeclared or "dropped",
                provenance=a.provenance,
            )
            for a in attributes.values()
        ],
        tables=[_entry(method, p, simulated, entered.recoded) for method, p in published],
        layouts=_layouts(tables, simulated) | ({} if entered.recoded is None else entered.recoded.files(simulated)),
        files=entered.files,
    )


def _entry(method: str, table: Published, simulated: bool, recoded: Recoded | None) -> TableEntry:
    return TableEntry(
        name=table.name,
        method=method,
        by=list(table.by),
        cells=table.domain.cells,
        form=table.form,
        about=" ".join(text for text in (table.about, "" if recoded is None else recoded.about) if text),
        noise=table.noise,
        margin90=None if table.error is None or recoded is not None else table.error.margin90,
        sum_of=table.sum_of,
        guarantee=table.guarantee,
        guarantee_in_words=in_words(table.guarantee, simulated),
        files=file_names(table.name, simulated, table.parts, table.kinds),
    )
