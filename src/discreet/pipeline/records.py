"""The confidential records as a release reads them: its columns, checked, with the bins that its tables use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.engine import Engine
from discreet.engine.tabulate import check_columns, used_columns, wanted_columns
from discreet.engine.values import Binned, value_columns, with_bins
from discreet.methods import Method
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


def read_records(engine: Engine, release: Release, tables: list[Method], frame: Any, clean: bool) -> ibis.Table:
    """Open the source, or the frame in its place."""
    domains, binned = domains_of(tables), binned_of(tables)
    name, source = next(iter(release.source.items()))
    wanted = wanted_columns(domains, release.unit, binned)
    table = engine.read(frame if frame is not None else source, release.base, wanted, clean)
    entity = [release.unit.entity] if release.unit.entity is not None else []
    check_columns(table, wanted, f"source {name}", value_columns(binned, [*used_columns(domains), *entity]))
    return with_bins(table, binned)
