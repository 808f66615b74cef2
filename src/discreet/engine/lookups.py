"""Lookups of records in further tables: a job's worker, a job's workplace.

A lookup neither adds nor drops a record. For a duplicate key, each column has the smallest of the listed values: a
function of that key's own entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import ibis
import pyarrow as pa

from discreet.engine import Engine
from discreet.engine.intake.derived import Category, Cell, DerivedColumn, Identifier, LookedUpCategory, ValueStatus
from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Scan
from discreet.errors import SourceError


@dataclass(frozen=True)
class Lookup:
    """A table with a key, and the derived columns that are taken from it."""

    name: str
    table: ibis.Table
    key: Identifier
    columns: tuple[DerivedColumn, ...]

    @property
    def source(self) -> frozenset[str]:
        """The columns of the source that it provides."""
        return frozenset(name for column in self.columns for name in column.reads)


@dataclass(frozen=True)
class Records:
    """The records, and the tables that provide further columns for them."""

    table: ibis.Table
    lookups: tuple[Lookup, ...] = ()
    divided: tuple[Category | ValueStatus, ...] = ()  # columns of attributes whose source columns are in several tables
    is_stored: bool = False  # in the engine, where it may be read any number of times

    def with_lookups(self, engine: Engine, distinct: bool = True) -> ibis.Table:
        """Records with all their columns. Unless `distinct`, a duplicate key duplicates records: faster, and the same
        result if there are no duplicates."""
        table = self.table
        for i, lookup in enumerate(self.lookups):
            key = f"discreet_lookup_{i}"
            listed = lookup.table.select(**{key: lookup.table[lookup.key.name]}, **_columns(lookup))
            if distinct:
                listed = listed.group_by(key).aggregate(**{c.name: listed[c.name].min() for c in lookup.columns})
            table = table.left_join(listed, table[lookup.key.name] == listed[key]).drop(key)
            table = table.mutate(
                **{k: v for column in lookup.columns for k, v in _with_defaults(table, column).items()}
            )
        for column in self.divided:
            table = _combine(engine, table, column)
        return table

    def store(self, engine: Engine) -> Records:
        """One snapshot of every table; a stored snapshot stays as it is."""
        if self.is_stored:
            return self
        lookups = tuple(replace(lookup, table=engine.store(lookup.table)) for lookup in self.lookups)
        return replace(self, table=engine.store(self.table), lookups=lookups, is_stored=True)


def _columns(lookup: Lookup) -> dict[str, ibis.Value]:
    return {column.name: lookup.table[column.name] for column in lookup.columns}


def _with_defaults(table: ibis.Table, column: DerivedColumn) -> dict[str, ibis.Value]:
    """A looked-up column, with the rules applied for records that are not listed, or listed without a value."""
    value = table[column.name]
    if not isinstance(column, LookedUpCategory):
        return {} if column.unlisted is None else {column.name: value.fill_null(column.unlisted)}
    attribute, undeclared = column.attribute, len(column.attribute.categories)
    missing = undeclared if attribute.absent is None else attribute.absent
    value = value.fill_null(missing)
    return {Category(attribute).name: value if attribute.other is not None else value.nullif(undeclared)}


def _combine(engine: Engine, table: ibis.Table, derived: Category | ValueStatus) -> ibis.Table:
    """A derived column of an attribute whose source columns are in several tables."""
    attribute, parts = derived.attribute, derived.parts()
    keys = list(attribute.lookup)
    texts = {f"discreet_text_{j}": [part.number(key[j]) for key in keys] for j, part in enumerate(parts)}
    columns = {name: pa.array(numbers, pa.int32()) for name, numbers in texts.items()}
    listed = engine.load_table(
        pa.table({**columns, "discreet_listed": pa.array(attribute.lookup.values(), pa.int32())})
    )
    on = [table[part.name] == listed[text] for part, text in zip(parts, texts, strict=True)]
    joined = table.left_join(listed, on)
    value, missing = joined["discreet_listed"], ibis.or_(*(joined[part.name].isnull() for part in parts))
    if isinstance(derived, ValueStatus):
        value = missing.ifelse(1, value.isnull().ifelse(2, 0)).cast("int32")
    else:
        if attribute.absent is not None:
            value = missing.ifelse(ibis.literal(attribute.absent, "int32"), value)
        if attribute.other_code is not None:
            value = value.fill_null(attribute.other_code)
    return joined.mutate(**{derived.name: value}).drop(*texts, "discreet_listed")


# --- which table has which column -----------------------------------------------------------------------------------


def ingest_tables(
    engine: Engine,
    scans: Mapping[str, Scan],
    keys: Mapping[str, str],
    wanted: Iterable[DerivedColumn],
    entity: str | None,
    counted: bool = False,
) -> Records:
    """Read every table as derived columns: the records (first table) and the lookup tables, each with its key.
    `counted`: equal rows may be merged, with their number. Refused by column names and types alone."""
    wanted = list(wanted)
    named = dict.fromkeys([*keys.values(), *([entity] if entity is not None else [])])
    scans = {name: scan.as_codes(named) for name, scan in scans.items()}
    first, *further = scans
    columns = [column for derived in wanted for column in derived.reads] + ([entity] if entity is not None else [])
    owner = _owners(scans, keys, dict.fromkeys(columns))
    if entity is not None and owner[entity] != first:
        raise SourceError(
            f"column {entity!r}, which identifies the privacy unit, is in {owner[entity]}",
            where=f"source {first}",
            do="put it into the records themselves: what a lookup lists for a key may depend on other units",
        )
    _check(scans, owner, wanted)
    wanted = [part for derived in wanted for part in _split_cell(derived, owner, first)]
    ids = {key: _identifier(scans, key) for key in named}
    own: dict[str, dict[str, DerivedColumn]] = {name: {} for name in scans}
    divided: list[Category | ValueStatus] = []
    for derived in wanted:
        owners = {owner[column] for column in derived.reads}
        parts: Sequence[DerivedColumn] = [derived]
        if len(owners) > 1 and isinstance(derived, Category | ValueStatus):
            divided.append(derived)
            parts = derived.parts()
        elif owners != {first} and isinstance(derived, Category):
            parts = [LookedUpCategory(derived.attribute)]
        for part in parts:
            own[owner[part.reads[0]]][part.name] = part
    if entity is not None:
        own[first][ids[entity].name] = ids[entity]
    used = [name for name in further if own[name]]
    own[first] |= {ids[keys[name]].name: ids[keys[name]] for name in used}
    intake = Intake(tuple(own[first].values()))
    records = engine.ingest(scans[first], replace(intake, counted=counted and intake.countable))
    lookups = []
    for name in used:
        key, provided = ids[keys[name]], tuple(own[name].values())
        lookups.append(Lookup(name, engine.ingest(scans[name], Intake((key, *provided))), key, provided))
    return Records(records, tuple(lookups), tuple(divided))


def _split_cell(derived: DerivedColumn, owner: Mapping[str, str], first: str) -> Sequence[DerivedColumn]:
    """A cell whose columns are not all in the records is numbered later, from its categories."""
    if isinstance(derived, Cell) and any(owner[column] != first for column in derived.reads):
        return derived.categories
    return [derived]


def _check(scans: Mapping[str, Scan], owner: Mapping[str, str], wanted: Iterable[DerivedColumn]) -> None:
    """Refuse by column types, before any record is read."""
    for derived in wanted:
        for column in derived.reads:
            scan = scans[owner[column]]
            for kind in sorted(scan.kinds[column], key=str):
                derived.check(column, kind, scan.where)


def _identifier(scans: Mapping[str, Scan], column: str) -> Identifier:
    """Integer if the column has an integer type in every table and file that has it, otherwise text."""
    kinds = [(kind, scan.where) for scan in scans.values() for kind in sorted(scan.kinds.get(column, ()), key=str)]
    identifier = Identifier(column, whole=all(Identifier.fits(kind) for kind, _ in kinds))
    for kind, where in kinds:
        identifier.check(column, kind, where)
    return identifier


def _owners(scans: Mapping[str, Scan], keys: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """The table that has each column; refused if two tables have it, which would be ambiguous, or none."""
    first = next(iter(scans))
    for name, key in keys.items():
        for table in (first, name):
            _check_present(scans[table], key)
    owner: dict[str, str] = {}
    for column in columns:
        tables = [name for name, scan in scans.items() if column in scan.kinds and keys.get(name) != column]
        if len(tables) > 1:
            raise SourceError(
                f"column {column!r} is in {tables[0]} and in {tables[1]}",
                where="source " + ", ".join(tables),
                do="rename it in one of them, so that it is clear which one is meant",
            )
        if not tables:
            _check_present(scans[first], column, f"source {', '.join(scans)}" if len(scans) > 1 else None)
        owner[column] = tables[0]
    return owner


def _check_present(scan: Scan, column: str, where: str | None = None) -> None:
    """The message does not list the source's columns: in a file without a header they would be a record."""
    if column not in scan.kinds:
        raise SourceError(
            f"has no column {column!r}",
            where=where or scan.where,
            do="correct the name in the declaration or the source",
        )
