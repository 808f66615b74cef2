"""The preflight on the confidential side: what the declared rules will do to these records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.engine import Engine, open_engine
from discreet.engine.audit import Audit, EstimateAudit
from discreet.errors import SpecError
from discreet.formatting import plural
from discreet.methods.registry import methods
from discreet.noise.key import ReleaseKey
from discreet.pipeline.tabulation import audited, read_records, reading_of
from discreet.privacy.guarantee import Establishment
from discreet.spec import Release

MARK = "CONFIDENTIAL: this describes the records themselves. It is for the operator, not for publication."


def check(release: Release, frame: Any = None, session: Any = None) -> Audit:
    """Read the records and count what breaks the rules. Spends nothing, writes nothing."""
    if release.recode is not None:
        raise SpecError("a recoding reads no records", where=f"release {release.release}", do="see `discreet plan`")
    with open_engine(release.engine, session) as engine:
        return _audit(release, engine, frame)


def _audit(release: Release, engine: Engine, frame: Any) -> Audit:
    tables = methods(release, trust=True)
    records = read_records(engine, release, tables, frame, inspect=True).store(engine)
    # Which record of a unit is used depends on a release's key: any other key chooses as well.
    secret = ReleaseKey.generate().secret("records", release.release, length=16)
    found, reading = audited(engine, release, tables, records), reading_of(engine, release, tables, records, secret)
    told = (method.audit(reading) for method in tables)
    return replace(found, estimates=tuple(estimates for estimates in told if estimates is not None))


def _estimates(found: EstimateAudit) -> list[str]:
    """Where the noise of a table of estimates comes from."""
    small = f", {found.small:,} of them too small to count towards χ" if found.small else ""
    out = [f"{found.table}: {plural(found.cells, 'cell')} with records{small}"]
    out += [
        f"{found.table}: {scale.group}: χ = {scale.chi:.4g}, from the {plural(scale.records, 'record')} of {scale.cell}"
        for scale in found.scales
    ]
    if found.infinite:
        names = "; ".join(found.examples) + ("; …" if found.infinite > len(found.examples) else "")
        out.append(
            f"{found.table}: {plural(found.infinite, 'cell')} of infinite sensitivity to one record: {names}. They do "
            "not count towards χ; winsorise, raise `suppress_below`, merge cells or search a grid to include them, "
            "or write `infinite_influence: refuse`"
        )
    return out


def _left_out(found: Audit, release: Release) -> str:
    """Truncated tables leave out large establishments, others only the records that are too many."""
    chosen = f"{found.records_over:,} records of theirs are left out, chosen at random"
    cut = [table.name for table in release.tables if table.all_or_none]
    if len(cut) == len(release.tables):
        return f"all {found.records_of_heavy:,} records of theirs are left out"
    return f"{chosen}; of {', '.join(cut)} all {found.records_of_heavy:,} of theirs are" if cut else chosen


def _tables(release: Release) -> dict[str, list[str]]:
    """The tables that each attribute decides about, where it is not all of them."""
    found: dict[str, list[str]] = {}
    for table in release.tables:
        for name in dict.fromkeys(a.name for domain in table.domains(release).values() for a in domain.attributes):
            found.setdefault(name, []).append(table.name)
    return {name: tables for name, tables in found.items() if len(tables) < len(release.tables)}


def _values(found: Audit) -> list[str]:
    """What becomes of values in bins and in bounds, and of the estimates made of them."""
    out = []
    for v in found.values:
        column = v.binned.value
        share = (v.missing + v.unreadable + v.outside) / found.records if found.records else 0
        out.append(
            f"{column}: {v.missing:,} records without a value, {v.unreadable:,} with one that is no number and "
            f"{v.outside:,} outside the sample are left out ({share:.1%} of all)"
            f"{'  <-- most of them: is the sample rule right?' if share > 0.5 else ''}"
        )
        out.append(f"{column}: {v.below:,} records below {v.binned.bins.edges[0]:,} are counted in the first bin")
    for o in found.observed:
        if said := o.observed.audit_line(o.missing, o.unreadable, o.outside):
            out.append(said)
    for table in found.estimates:
        out += _estimates(table)
    return out


def lines(found: Audit, release: Release, examples: bool = False) -> list[str]:
    """The audit in words, one line a rule."""
    out = [MARK, f"{found.records:,} records read from {release.describe_source()}"]
    if broken := found.unreadable - found.unclosed:
        out.append(f"{plural(broken, 'line')} with broken quotes or another number of fields left out")
    if found.unclosed:
        out.append(
            f"{plural(found.unclosed, 'line')} with an open quote at the end left out  <-- the file may have records "
            "over several lines, and what follows a line break is read as a record of its own: export it with line "
            "breaks replaced, or as Parquet"
        )
    if release.unit.entity is not None:
        column = release.unit.entity
        out.append(f"{column}: {found.without_entity:,} records without one are dropped")
        if not isinstance(release.unit, Establishment):
            out.append(
                f"{column}: {found.heavy_entities:,} have more than {release.unit.records} records; "
                f"{_left_out(found, release)}"
            )
    for lookup in found.lookups:
        out.append(
            f"{lookup.key}: {lookup.unmatched:,} records have one that is not listed in {lookup.name}; "
            f"{lookup.doubled:,} are listed there more than once (each column then has its least value)"
            f"{'  <-- most of them: is it written alike in both?' if lookup.unmatched > found.records / 2 else ''}"
        )
    if found.divided:
        out.append(
            f"{release.unit.entity}: {plural(found.divided, 'establishment')} in more than one cell of `by`: each part "
            "is hidden by itself"
        )
    some = _tables(release)
    for a in found.attributes:
        fate = f"counted as {a.attribute.undeclared!r}" if a.attribute.other else "dropped"
        fate += f" (in {', '.join(some[a.attribute.name])})" if a.attribute.name in some else ""
        share = (a.missing + a.undeclared) / found.records if found.records else 0
        text = f"{a.attribute.name}: {a.missing:,} records missing and {a.undeclared:,} undeclared are {fate}"
        out.append(f"{text} ({share:.1%} of all){'  <-- most of them: is the code list right?' if share > 0.5 else ''}")
        if examples and a.examples:
            out.append(f"  most frequent undeclared: {', '.join(a.examples)}")
    out += _values(found)
    if found.clean:
        out.append("Every record follows the rules.")
    elif release.strict:
        out.append("Strict mode: `run` will refuse.")
    else:
        out.append("The release comes out all the same: the rules decide.")
    return out
