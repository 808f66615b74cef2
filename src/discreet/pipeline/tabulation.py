"""Tabulation on the confidential side: from the source to the exact cells of every table, in an engine, with the
fingerprints that bind a key to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

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
    from discreet.engine.frames import Frames
    from discreet.pipeline.run import ReleaseJob


def domains_of(tables: list[Method]) -> list[Domain]:
    """Every domain that is tabulated."""
    return [domain for table in tables for domain in table.domains]


def binned_of(tables: list[Method]) -> list[BinnedValue]:
    """Every binned column."""
    return [column for table in tables for column in table.binned]


def observed_of(tables: list[Method]) -> list[ObservedValue]:
    """Every derived value of a record, once if several tables share it."""
    return list(dict.fromkeys(value for table in tables for value in table.observed))


def audited(engine: Engine, release: Release, tables: list[Method], records: Records) -> Audit:
    """What the declared rules will do to these records."""
    from discreet.engine.audit import audit

    recorded = [domain for t in tables if (domain := t.unit_constants()) is not None]
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
    """The records as tables are tabulated from them."""
    by_record = [table for table in tables if table.counts_records]
    counted, binned = tuple(domains_of(by_record)), tuple(binned_of(by_record))
    return RecordReading(engine, records, release.unit, secret, counted, binned, progress)


def _nowhere(release: Release, name: str) -> bool:
    """Whether the declaration leaves open where a source is."""
    return getattr(release.source[name], "path", None) == ""


def read_records(
    engine: Engine,
    release: Release,
    tables: list[Method],
    frame: Frames | None,
    *,
    inspect: bool = False,
    counted: bool = False,
) -> Records:
    """Open the source, or the frame in its place (or one frame for each of its names), and take in the columns that the
    tables use. `inspect`: also those of the preflight check. `counted`: equal records may be merged with a count."""
    frames = frame if isinstance(frame, Mapping) else {} if frame is None else {next(iter(release.source)): frame}
    if strange := next((name for name in frames if name not in release.source), None):
        raise SourceError(f"there is no source {strange!r}", where="frame", do=f"name {', '.join(release.source)}")
    if frames and (left := next((n for n in release.source if n not in frames and _nowhere(release, n)), None)):
        raise SourceError(f"there is no frame for source {left!r}", where="frame", do="give one, or where its file is")
    domains, binned, observed = domains_of(tables), binned_of(tables), observed_of(tables)
    as_cells, as_codes = [], domains
    if not inspect:
        as_cells = [domain for t in tables for domain in t.intake_domains()[0] if domain.attributes]
        as_codes = [domain for t in tables for domain in t.intake_domains()[1]]
    columns = [*map(Cell, as_cells), *derived_columns(as_codes, binned, observed)]
    if inspect:
        from discreet.engine.audit import coded_attributes, preflight_columns

        extra = preflight_columns(coded_attributes(domains), binned, observed)
        columns = list({column.name: column for column in (*columns, *extra)}.values())
    entity = release.unit.entity
    names = {name for column in columns for name in column.reads} | {*release.join.values()} | {entity or ""}
    scans = {
        name: engine.open(frames.get(name, source), release.base, names) for name, source in release.source.items()
    }
    records = ingest_tables(engine, scans, release.join, columns, entity, counted)
    for table in tables:
        table.refuse_sources(records)
    if not binned:
        return records
    return replace(records, table=with_bins(records.with_lookups(engine), binned), lookups=(), divided=())


@dataclass(frozen=True)
class Tabulated:
    """A method's exact cells, table by table in an engine, with the fingerprints that the key is bound to."""

    method: Method
    cells: list[Confidential[FingerprintedTable]]


@contextmanager
def tabulated(job: ReleaseJob, methods: list[Method], key: ReleaseKey) -> Iterator[tuple[Engine, list[Tabulated]]]:
    """The exact cells of every table, in an engine that is closed afterwards."""
    with open_engine(job.release.engine, job.session) as engine:
        reading = _read(job, engine, methods, key)
        job.observe("tabulate", 0, len(methods))  # may take long: report the start
        exact = [(method, method.tabulate(reading)) for method in methods]
        tables = [
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
        yield engine, tables


def _read(job: ReleaseJob, engine: Engine, methods: list[Method], key: ReleaseKey) -> RecordReading:
    """Read every source once, for all tables."""
    release = job.release
    counting = sum(method.counts_records for method in methods)
    alike = counting == len(methods) and not release.strict  # then equal records are interchangeable
    records = read_records(engine, release, methods, job.frame, inspect=release.strict, counted=alike)
    job.observe("read", 1, 1)
    passes = bool(counting) + len(methods) - counting  # tables of records are counted in one pass
    if release.strict or passes > 1 or (records.lookups and counting < len(methods)):
        records = records.store(engine)
    if release.strict and not audited(engine, release, methods, records).clean:
        raise SourceError(
            "strict mode: records break the declared rules",
            where=f"source {release.describe_source()}",
            do="see `discreet check`, correct the records, or release without `strict`",
        )
    secret = key.secret("records", release.release, length=16)
    return reading_of(engine, release, methods, records, secret, partial(job.observe, "estimate"))
