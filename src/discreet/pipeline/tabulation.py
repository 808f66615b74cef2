"""From the source to the exact numbers of every table, inside an engine, and the fingerprints that bind a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.engine import Engine
from discreet.engine.establishments import Establishments
from discreet.engine.factory import open_engine
from discreet.engine.fingerprint import bound
from discreet.engine.observations import Observations
from discreet.engine.tabulate import keep_records
from discreet.errors import SourceError
from discreet.methods.protocol import Method
from discreet.noise.key import ReleaseKey
from discreet.pipeline.records import audited, binned_of, domains_of, read_records
from discreet.pipeline.release_files import Tabulated
from discreet.privacy.confidential import Confidential

if TYPE_CHECKING:
    from discreet.pipeline.run import Job


@contextmanager
def tabulated(job: Job, tables: list[Method], key: ReleaseKey) -> Iterator[Tabulated]:
    """The exact numbers of every table, inside the engine."""
    with open_engine(job.release.engine, job.session) as engine:
        cells = _count(job, engine, tables, key)
        counted = [
            [Confidential(bound(engine, c.open_inside(), s)) for c, s in zip(found, table.spans, strict=True)]
            for table, found in zip(tables, cells, strict=True)
        ]
        engine.unchanged()
        job.observe("tabulate", len(tables), len(tables))
        yield Tabulated(engine, tables, counted)


def _count(job: Job, engine: Engine, tables: list[Method], key: ReleaseKey) -> list[list[Confidential[Any]]]:
    """Read the source and count every table."""
    release = job.release
    by_record = [table for table in tables if table.grain == "records"]
    grains = {table.grain for table in tables}
    counted = grains == {"records"} and not release.strict  # if nothing tells equal records apart
    records = read_records(engine, release, tables, job.frame, inspect=release.strict, counted=counted)
    job.observe("read", 1, 1)
    looks = bool(by_record) + len(tables) - len(by_record)  # tables of records are counted from one look at them
    if release.strict or looks > 1 or ("establishments" in grains and records.lookups):
        records = records.stored(engine)  # every source is read once, and all tables are of that reading
    if release.strict and not audited(engine, release, tables, records).clean:
        raise SourceError(
            "strict mode: records break the declared rules",
            where=f"source {release.describe_source()}",
            do="see `discreet check`, mend the records, or release without `strict`",
        )
    job.observe("tabulate", 0, len(tables))  # may take long: say that it began
    secret = key.secret("records", release.release, length=16)
    rows: Any = None
    if by_record:
        domains, binned = domains_of(by_record), binned_of(by_record)
        rows = keep_records(engine, records.joined(engine), domains, release.unit, secret, binned)
    given = {
        "records": rows,
        "establishments": Establishments(records, release.unit.entity or ""),
        "observations": Observations(records, release.unit, secret, partial(job.observe, "estimate")),
    }
    return [table.tabulate(engine, given[table.grain]) for table in tables]
