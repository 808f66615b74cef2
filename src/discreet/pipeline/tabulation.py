"""From the source to the exact numbers of every table, inside an engine: the confidential records as a release reads
them, with the bins that its tables use, and the fingerprints that bind a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.engine import Engine, open_engine
from discreet.engine.derived_values import BinnedValue, ObservedValue, with_bins
from discreet.engine.intake.derived import Cell
from discreet.engine.lookups import Records, ingest_tables
from discreet.engine.spans import FingerprintedTable, Progress, fingerprint_table, no_progress
from discreet.engine.tabulate import RecordReading, derived_columns
from discreet.errors import SourceError
from discreet.methods.protocol import Method
from discreet.noise.key import ReleaseKey, Secret
from discreet.privacy.confidential import Confidential
from discreet.spec import Release

if TYPE_CHECKING:
    from discreet.domain import Domain
    from discreet.engine.audit import Audit
    from discreet.pipeline.run import ReleaseJob


def domains_of(tables: list[Method]) -> list[Domain]:
    """Everything that will be counted."""
    return [domain for table in tables for domain in table.domains]


def binned_of(tables: list[Method]) -> list[BinnedValue]:
    """Every column of bins that will be made."""
    return [made for table in tables for made in table.binned]


def observed_of(tables: list[Method]) -> list[ObservedValue]:
    """Every value that will be made of a record; one that several tables make alike counts once."""
    return list(dict.fromkeys(made for table in tables for made in table.observed))


def audited(engine: Engine, release: Release, tables: list[Method], records: Records) -> Audit:
    """What the declared rules will do to these records."""
    from discreet.engine.audit import audit

    recorded = [domain for t in tables if (domain := t.as_recorded()) is not None]
    domains, binned = domains_of(tables), binned_of(tables)
    return audit(engine, records, domains, release.unit, binned, recorded, observed_of(tables))


def reading_of(
    engine: Engine,
    release: Release,
    tables: list[Method],
    records: Records,
    secret: Secret,
    progress: Progress = no_progress,
) -> RecordReading:
    """What every table is tabulated from."""
    by_record = [table for table in tables if table.by_record]
    counted, binned = tuple(domains_of(by_record)), tuple(binned_of(by_record))
    return RecordReading(engine, records, release.unit, secret, counted, binned, progress)


def _nowhere(release: Release, name: str) -> bool:
    """Whether the declaration says nothing about where a table is."""
    return getattr(release.source[name], "path", None) == ""


def read_records(
    engine: Engine, release: Release, tables: list[Method], frame: Any, *, inspect: bool = False, counted: bool = False
) -> Records:
    """Open the source, or the frame in its place (or one frame for each of its names), and take in what the tables use.
    `inspect`: with what the preflight looks at besides. `counted`: equal records may be put together."""
    frames = frame if isinstance(frame, Mapping) else {} if frame is None else {next(iter(release.source)): frame}
    if strange := next((name for name in frames if name not in release.source), None):
        raise SourceError(f"there is no source {strange!r}", where="frame", do=f"name {', '.join(release.source)}")
    if frames and (left := next((n for n in release.source if n not in frames and _nowhere(release, n)), None)):
        raise SourceError(f"there is no frame for source {left!r}", where="frame", do="give one, or where its file is")
    domains, binned, observed = domains_of(tables), binned_of(tables), observed_of(tables)
    as_cells, as_codes = [], domains
    if not inspect:
        as_cells = [domain for t in tables for domain in t.taken_in()[0] if domain.attributes]
        as_codes = [domain for t in tables for domain in t.taken_in()[1]]
    wanted = [*map(Cell, as_cells), *derived_columns(as_codes, binned, observed)]
    if inspect:
        from discreet.engine.audit import coded_attributes, preflight_columns

        extra = preflight_columns(coded_attributes(domains), binned, observed)
        wanted = list({column.name: column for column in (*wanted, *extra)}.values())
    entity = release.unit.entity
    names = {name for column in wanted for name in column.reads} | {*release.join.values()} | {entity or ""}
    scans = {
        name: engine.open(frames.get(name, source), release.base, names) for name, source in release.source.items()
    }
    records = ingest_tables(engine, scans, release.join, wanted, entity, counted)
    for table in tables:
        table.refuse_sources(records)
    if not binned:
        return records
    return replace(records, table=with_bins(records.with_lookups(engine), binned), lookups=(), divided=())


@dataclass(frozen=True)
class Tabulated:
    """A method's exact numbers, by what it counts, where an engine keeps them, with the fingerprints that the key is
    bound to."""

    method: Method
    cells: list[Confidential[FingerprintedTable]]


@contextmanager
def tabulated(job: ReleaseJob, methods: list[Method], key: ReleaseKey) -> Iterator[tuple[Engine, list[Tabulated]]]:
    """The exact numbers of every table, inside the engine."""
    with open_engine(job.release.engine, job.session) as engine:
        reading = _read(job, engine, methods, key)
        job.observe("tabulate", 0, len(methods))  # may take long: say that it began
        exact = [(method, method.tabulate(reading)) for method in methods]
        found = [
            Tabulated(
                method,
                [
                    Confidential(fingerprint_table(engine, c.open_confidential(), s))
                    for c, s in zip(cells, method.spans, strict=True)
                ],
            )
            for method, cells in exact
        ]
        engine.check_unchanged()
        job.observe("tabulate", len(methods), len(methods))
        yield engine, found


def _read(job: ReleaseJob, engine: Engine, methods: list[Method], key: ReleaseKey) -> RecordReading:
    """Every source is read once, and all tables are of that reading."""
    release = job.release
    counting = sum(method.by_record for method in methods)
    alike = counting == len(methods) and not release.strict  # then nothing tells equal records apart
    records = read_records(engine, release, methods, job.frame, inspect=release.strict, counted=alike)
    job.observe("read", 1, 1)
    looks = bool(counting) + len(methods) - counting  # tables of records are counted from one look at them
    if release.strict or looks > 1 or (records.lookups and counting < len(methods)):
        records = records.store(engine)
    if release.strict and not audited(engine, release, methods, records).clean:
        raise SourceError(
            "strict mode: records break the declared rules",
            where=f"source {release.describe_source()}",
            do="see `discreet check`, mend the records, or release without `strict`",
        )
    secret = key.secret("records", release.release, length=16)
    return reading_of(engine, release, methods, records, secret, partial(job.observe, "estimate"))
