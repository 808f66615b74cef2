"""The confidential records as a release reads them: its columns, checked, with the bins that its tables use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.engine import Engine
from discreet.engine.audit import Audit, audit
from discreet.engine.joining import Records, looked_up
from discreet.engine.tabulate import check_columns, used_columns, wanted_columns
from discreet.engine.values import Binned, Observed, value_columns, with_bins
from discreet.errors import SourceError
from discreet.methods import Method
from discreet.methods.employer import EmployerMethod
from discreet.spec import Release

if TYPE_CHECKING:
    import ibis

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


def read_records(engine: Engine, release: Release, tables: list[Method], frame: Any, clean: bool) -> Records:
    """Open the source, or the frame in its place (or one frame for each of its names)."""
    domains, binned = domains_of(tables), binned_of(tables)
    frames = frame if isinstance(frame, Mapping) else {} if frame is None else {next(iter(release.source)): frame}
    if strange := next((name for name in frames if name not in release.source), None):
        raise SourceError(f"there is no source {strange!r}", where="frame", do=f"name {', '.join(release.source)}")
    if frames and (left := next((n for n in release.source if n not in frames and _nowhere(release, n)), None)):
        raise SourceError(f"there is no frame for source {left!r}", where="frame", do="give one, or where its file is")
    observed = observed_of(tables)
    wanted = wanted_columns(domains, release.unit, binned, observed)
    keys = list(dict.fromkeys(release.join.values()))

    def read(name: str) -> ibis.Table:
        columns = list(dict.fromkeys([*wanted, *keys]))
        return engine.read(frames.get(name, release.source[name]), release.base, columns, clean)

    engine.unreadable = 0
    name, *further = release.source
    found = looked_up(name, read(name), [(other, read(other), release.join[other]) for other in further], wanted)
    entity = [release.unit.entity] if release.unit.entity is not None else []
    values = value_columns(binned, [*used_columns(domains), *entity], observed)
    check_columns(found.joined(), wanted, f"source {', '.join(release.source)}", values)
    for table in tables:
        if isinstance(table, EmployerMethod):
            table.inspect(found)
    return found if not binned else Records(with_bins(found.joined(), binned))
