"""The preflight on the confidential side: what the declared rules will do to these records."""

from __future__ import annotations

from typing import Any

from discreet.engine import Engine
from discreet.engine.audit import Audit, audit
from discreet.engine.opening import open_engine
from discreet.errors import EngineError, SpecError
from discreet.methods import methods
from discreet.pipeline.records import binned_of, domains_of, read_records
from discreet.privacy.unit import Establishment
from discreet.spec import Employer, Release
from discreet.words import plural

MARK = "CONFIDENTIAL: this describes the records themselves. It is for the operator, not for publication."


def check(release: Release, frame: Any = None, session: Any = None) -> Audit:
    """Read the records and count what breaks the rules. Spends nothing, writes nothing."""
    if release.recode is not None:
        raise SpecError("a recoding reads no records", where=f"release {release.release}", do="see `discreet plan`")
    with open_engine(release.engine, session) as engine:
        try:
            return _audit(release, engine, frame, clean=False)
        except EngineError:
            if engine.cleans:
                raise
            return _audit(release, engine, frame, clean=True)


def _audit(release: Release, engine: Engine, frame: Any, clean: bool) -> Audit:
    tables = methods(release)
    table = read_records(engine, release, tables, frame, clean).joined()
    return audit(engine, table, domains_of(tables), release.unit, binned_of(tables))


def _left_out(found: Audit, release: Release) -> str:
    """Truncated tables leave out large establishments, others only the records that are too many."""
    chosen = f"{found.records_over:,} records of theirs are left out, chosen at random"
    cut = [table.name for table in release.tables if isinstance(table, Employer)]
    if len(cut) == len(release.tables):
        return "all records of theirs are left out"
    return f"{chosen}; of {', '.join(cut)} all of theirs are" if cut else chosen


def lines(found: Audit, release: Release, examples: bool = False) -> list[str]:
    """The audit in words, one line a rule."""
    out = [MARK, f"{found.records:,} records read from {release.describe_source()}"]
    if found.unreadable:
        out.append(f"{plural(found.unreadable, 'line')} with broken quotes or another number of fields left out")
    if release.unit.entity is not None:
        column = release.unit.entity
        out.append(f"{column}: {found.without_entity:,} records without one are dropped")
        if not isinstance(release.unit, Establishment):
            out.append(
                f"{column}: {found.heavy_entities:,} have more than {release.unit.records} records; "
                f"{_left_out(found, release)}"
            )
    for a in found.attributes:
        fate = f"counted as {a.attribute.undeclared!r}" if a.attribute.other else "dropped"
        share = (a.missing + a.undeclared) / found.records if found.records else 0
        text = f"{a.attribute.name}: {a.missing:,} records missing and {a.undeclared:,} undeclared are {fate}"
        out.append(f"{text} ({share:.1%} of all){'  <-- most of them: is the code list right?' if share > 0.5 else ''}")
        if examples and a.examples:
            out.append(f"  most frequent undeclared: {', '.join(a.examples)}")
    for v in found.values:
        column = v.binned.value
        share = (v.missing + v.unreadable + v.outside) / found.records if found.records else 0
        out.append(
            f"{column}: {v.missing:,} records without a value, {v.unreadable:,} with one that is no number and "
            f"{v.outside:,} outside the sample are left out ({share:.1%} of all)"
            f"{'  <-- most of them: is the sample rule right?' if share > 0.5 else ''}"
        )
        out.append(f"{column}: {v.below:,} records below {v.binned.bins.borders[0]:,} are counted in the first bin")
    if found.clean:
        out.append("Every record follows the rules.")
    elif release.strict:
        out.append("Strict mode: `run` will refuse.")
    else:
        out.append("The release comes out all the same: the rules decide.")
    return out
