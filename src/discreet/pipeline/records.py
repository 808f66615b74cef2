"""The confidential records as a release reads them: its columns, checked, with the bins that its tables use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.engine import Engine
from discreet.engine.audit import Audit, audit, coded, inspected
from discreet.engine.derived_values import Binned, Observed, with_bins
from discreet.engine.intake.derived import Cell
from discreet.engine.lookups import Records, take_in
from discreet.engine.tabulate import derived_columns
from discreet.errors import SourceError
from discreet.methods.employer.method import EmployerMethod
from discreet.methods.protocol import Method
from discreet.spec import Release

if TYPE_CHECKING:
    from discreet.domain import Domain


def domains_of(tables: list[Method]) -> list[Domain]:
    """Everything that will be counted."""
    return [domain for table in tables for domain in table.domains]


def binned_of(tables: list[Method]) -> list[Binned]:
    """Every column of bins that will be made."""
    return [made for table in tables for made in table.binned]


def observed_of(tables: list[Method]) -> list[Observed]:
    """Every value that will be made of a record; one that several tables make alike counts once."""
    return list(dict.fromkeys(made for table in tables for made in table.observed))


def audited(engine: Engine, release: Release, tables: list[Method], records: Records) -> Audit:
    """What the declared rules will do to these records."""
    recorded = [t.what.by for t in tables if isinstance(t, EmployerMethod) and not t.listed and t.what.by.attributes]
    domains, binned = domains_of(tables), binned_of(tables)
    return audit(engine, records, domains, release.unit, binned, recorded, observed_of(tables))


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
    by_cell = [] if inspect else [t.what for t in tables if isinstance(t, EmployerMethod)]
    numbered = [Cell(domain) for what in by_cell for domain in (what.by, what.workers) if domain.attributes]
    others = domains_of([t for t in tables if inspect or not isinstance(t, EmployerMethod)]) + [w.only for w in by_cell]
    wanted = [*numbered, *derived_columns(others, binned, observed)]
    if inspect:
        extra = inspected(coded(domains), binned, observed)
        wanted = list({column.name: column for column in (*wanted, *extra)}.values())
    entity = release.unit.entity
    names = {name for column in wanted for name in column.reads} | {*release.join.values()} | {entity or ""}
    scans = {
        name: engine.open(frames.get(name, source), release.base, names) for name, source in release.source.items()
    }
    records = take_in(engine, scans, release.join, wanted, entity, counted)
    for table in tables:
        if isinstance(table, EmployerMethod):
            table.inspect(records)
    if not binned:
        return records
    return replace(records, table=with_bins(records.joined(engine), binned), lookups=(), divided=())
