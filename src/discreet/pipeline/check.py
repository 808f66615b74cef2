"""Preflight check on the confidential side: what the declared rules will do to these records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.engine import Engine, open_engine
from discreet.engine.audit import Audit, EstimateAudit
from discreet.errors import SpecError
from discreet.formatting import plural
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey
from discreet.pipeline.tabulation import audited, read_records, reading_of
from discreet.privacy.guarantee import Establishment
from discreet.spec import Release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from discreet.engine.frames import Frames

MARK = "CONFIDENTIAL: this describes the records themselves. It is for the operator, not for publication."


def check(release: Release, frame: Frames | None = None, session: SparkSession | None = None) -> Audit:
    """Read the records and count those that break a rule. Spends no privacy budget and writes nothing."""
    if release.recode is not None:
        raise SpecError("a recoding reads no records", where=f"release {release.release}", do="see `discreet plan`")
    with open_engine(release.engine, session) as engine:
        return _audit(release, engine, frame)


def _audit(release: Release, engine: Engine, frame: Frames | None) -> Audit:
    tables = methods(release, trust=True)
    records = read_records(engine, release, tables, frame, inspect=True).store(engine)
    # Which records of a unit are used depends on the release's key: any other key will do here.
    secret = ReleaseKey.generate().secret("records", release.release, length=16)
    rules, reading = audited(engine, release, tables, records), reading_of(engine, release, tables, records, secret)
    audits = (method.audit(reading) for method in tables)
    return replace(rules, estimates=tuple(audit for audit in audits if audit is not None))


def _estimates(audit: EstimateAudit) -> list[str]:
    """What scales the noise of a table of estimates."""
    small = f", {audit.small:,} of them too small to count towards χ" if audit.small else ""
    out = [f"{audit.table}: {plural(audit.cells, 'cell')} with records{small}"]
    out += [
        f"{audit.table}: {scale.group}: χ = {scale.chi:.4g}, from the {plural(scale.records, 'record')} of {scale.cell}"
        for scale in audit.scales
    ]
    if audit.infinite:
        names = "; ".join(audit.examples) + ("; …" if audit.infinite > len(audit.examples) else "")
        out.append(
            f"{audit.table}: {plural(audit.infinite, 'cell')} of infinite sensitivity to one record: {names}. They do "
            "not count towards χ; winsorise, raise `suppress_below`, merge cells or search a grid to include them, "
            "or write `infinite_influence: refuse`"
        )
    return out


def _left_out(audit: Audit, release: Release) -> str:
    """Truncated tables leave out large establishments; others, only the excess records, sampled at random."""
    sampled = f"{audit.records_over:,} records of theirs are left out, sampled at random"
    truncated = [table.name for table in release.tables if table.all_or_none]
    if len(truncated) == len(release.tables):
        return f"all {audit.records_of_heavy:,} records of theirs are left out"
    return (
        f"{sampled}; of {', '.join(truncated)} all {audit.records_of_heavy:,} of theirs are" if truncated else sampled
    )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _tables(release: Release) -> dict[str, list[str]]:
    """The tables that use each attribute, where not all of them do."""
    tables_of: dict[str, list[str]] = {}
    for table in release.tables:
        for name in dict.fromkeys(a.name for domain in table.domains(release).values() for a in domain.attributes):
            tables_of.setdefault(name, []).append(table.name)
    return {name: tables for name, tables in tables_of.items() if len(tables) < len(release.tables)}


def _values(audit: Audit) -> list[str]:
    """What happens to binned and clamped values, and to the estimates that use them."""
    out = []
    for v in audit.values:
        column = v.binned.value
        share = (v.missing + v.unreadable + v.outside) / audit.records if audit.records else 0
        out.append(
            f"{column}: {v.missing:,} records without a value, {v.unreadable:,} with one that is no number and "
            f"{v.outside:,} outside the sample are left out ({share:.1%} of all)"
            f"{'  <-- most of them: is the sample rule right?' if share > 0.5 else ''}"
        )
        out.append(f"{column}: {v.below:,} records below {v.binned.bins.edges[0]:,} are counted in the first bin")
    for o in audit.observed:
        if text := o.observed.audit_line(o.missing, o.unreadable, o.outside):
            out.append(text)
    for table in audit.estimates:
        out += _estimates(table)
    return out


def lines(audit: Audit, release: Release, examples: bool = False) -> list[str]:
    """The audit as text, one line per rule."""
    out = [MARK, f"{audit.records:,} records read from {release.describe_source()}"]
    if broken := audit.unreadable - audit.unclosed:
        out.append(f"{plural(broken, 'line')} with broken quotes or another number of fields left out")
    if audit.unclosed:
        out.append(
            f"{plural(audit.unclosed, 'line')} with an open quote at the end left out  <-- the file may have records "
            "over several lines, and what follows a line break is read as a record of its own: export it with line "
            "breaks replaced, or as Parquet"
        )
    if release.unit.entity is not None:
        column = release.unit.entity
        missing = audit.without_entity
        out.append(f"{column}: {plural(missing, 'record')} without one {_are(missing)} dropped")
        if not isinstance(release.unit, Establishment):
            out.append(
                f"{column}: {audit.heavy_entities:,} {'has' if audit.heavy_entities == 1 else 'have'} more than "
                f"{plural(release.unit.records, 'record')}; "
                f"{_left_out(audit, release)}"
            )
    for lookup in audit.lookups:
        most = "  <-- most of them: is it written alike in both?" if lookup.unmatched > audit.records / 2 else ""
        out.append(
            f"{lookup.key}: {plural(lookup.unmatched, 'record')} {'has' if lookup.unmatched == 1 else 'have'} one that "
            f"is not listed in {lookup.name}; {lookup.doubled:,} {_are(lookup.doubled)} listed there more than once "
            f"(each column then has its least value){most}"
        )
    if audit.divided:
        out.append(
            f"{release.unit.entity}: {plural(audit.divided, 'establishment')} in more than one cell of `by`: each "
            "part is protected as an establishment of its own"
        )
    some = _tables(release)
    for a in audit.attributes:
        fate = f"recoded to {a.attribute.undeclared!r}" if a.attribute.other else "dropped"
        fate += f" (in {', '.join(some[a.attribute.name])})" if a.attribute.name in some else ""
        share = (a.missing + a.undeclared) / audit.records if audit.records else 0
        text = f"{a.attribute.name}: {a.missing:,} records missing and {a.undeclared:,} undeclared are {fate}"
        out.append(f"{text} ({share:.1%} of all){'  <-- most of them: is the code list right?' if share > 0.5 else ''}")
        if examples and a.examples:
            out.append(f"  most frequent undeclared: {', '.join(a.examples)}")
    out += _values(audit)
    if audit.clean:
        out.append("Every record satisfies the declared rules.")
    elif release.strict:
        out.append("Strict mode: these records break the declared rules; `run` will refuse the release.")
    else:
        out.append("These records will be dropped or recoded as declared; the release will run.")
    return out
