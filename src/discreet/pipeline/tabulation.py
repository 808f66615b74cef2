"""From the source to the exact numbers of every table, inside an engine, and the fingerprints that bind a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from discreet.engine import Engine, open_engine
from discreet.engine.fingerprint import Bound, bound
from discreet.engine.tabulate import Reading
from discreet.errors import SourceError
from discreet.methods.protocol import Method
from discreet.noise.key import ReleaseKey
from discreet.pipeline.records import audited, read_records, reading_of
from discreet.privacy.confidential import Confidential

if TYPE_CHECKING:
    from discreet.pipeline.run import Job


@dataclass(frozen=True)
class Tabulated:
    """A method's exact numbers, by what it counts, where an engine keeps them, with the fingerprints that the key is
    bound to."""

    method: Method
    cells: list[Confidential[Bound]]


@contextmanager
def tabulated(job: Job, methods: list[Method], key: ReleaseKey) -> Iterator[tuple[Engine, list[Tabulated]]]:
    """The exact numbers of every table, inside the engine."""
    with open_engine(job.release.engine, job.session) as engine:
        reading = _read(job, engine, methods, key)
        job.observe("tabulate", 0, len(methods))  # may take long: say that it began
        exact = [(method, method.tabulate(reading)) for method in methods]
        found = [
            Tabulated(
                method,
                [Confidential(bound(engine, c.open_inside(), s)) for c, s in zip(cells, method.spans, strict=True)],
            )
            for method, cells in exact
        ]
        engine.unchanged()
        job.observe("tabulate", len(methods), len(methods))
        yield engine, found


def _read(job: Job, engine: Engine, methods: list[Method], key: ReleaseKey) -> Reading:
    """Every source is read once, and all tables are of that reading."""
    release = job.release
    counting = sum(method.by_record for method in methods)
    alike = counting == len(methods) and not release.strict  # then nothing tells equal records apart
    records = read_records(engine, release, methods, job.frame, inspect=release.strict, counted=alike)
    job.observe("read", 1, 1)
    looks = bool(counting) + len(methods) - counting  # tables of records are counted from one look at them
    if release.strict or looks > 1 or (records.lookups and counting < len(methods)):
        records = records.stored(engine)
    if release.strict and not audited(engine, release, methods, records).clean:
        raise SourceError(
            "strict mode: records break the declared rules",
            where=f"source {release.describe_source()}",
            do="see `discreet check`, mend the records, or release without `strict`",
        )
    secret = key.secret("records", release.release, length=16)
    return reading_of(engine, release, methods, records, secret, partial(job.observe, "estimate"))
