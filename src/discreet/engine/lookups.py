"""Records, and further tables that they are looked up in: a job's worker, a job's workplace.

Looking up never adds a record and never drops one. Where a key is listed twice, each of its columns has the least of
the listed values: a function of that key's own entries.
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
    """A table with a key, and the derived columns of it that are wanted."""

    name: str
    table: ibis.Table
    key: Identifier
    columns: tuple[DerivedColumn, ...]

    @property
    def source(self) -> frozenset[str]:
        """The columns of the source that it gives."""
        return frozenset(name for column in self.columns for name in column.reads)


@dataclass(frozen=True)
class Records:
    """The records, and the tables that have further columns of theirs."""

    table: ibis.Table
    lookups: tuple[Lookup, ...] = ()
    divided: tuple[Category | ValueStatus, ...] = ()  # of attributes whose columns are in several tables
    is_stored: bool = False  # in the engine: it may be looked at as often as one likes

    def with_lookups(self, engine: Engine, distinct: bool = True) -> ibis.Table:
        """Records with all their columns. Unless `distinct`, a key that is listed twice gives two records: faster, and
        the same if no key is."""
        table = self.table
        for i, lookup in enumerate(self.lookups):
            key = f"discreet_lookup_{i}"
            listed = lookup.table.select(**{key: lookup.table[lookup.key.name]}, **_columns(lookup))
            if distinct:
                listed = listed.group_by(key).aggregate(**{c.name: listed[c.name].min() for c in lookup.columns})
            table = table.left_join(listed, table[lookup.key.name] == listed[key]).drop(key)
            table = table.mutate(**{k: v for column in lookup.columns for k, v in _settled(table, column).items()})
        for made in self.divided:
            table = _combined(engine, table, made)
        return table

    def store(self, engine: Engine) -> Records:
        """One snapshot of every table; what is one already stays as it is."""
        if self.is_stored:
            return self
        lookups = tuple(replace(lookup, table=engine.store(lookup.table)) for lookup in self.lookups)
        return replace(self, table=engine.store(self.table), lookups=lookups, is_stored=True)


def _columns(lookup: Lookup) -> dict[str, ibis.Value]:
    return {column.name: lookup.table[column.name] for column in lookup.columns}


def _settled(table: ibis.Table, column: DerivedColumn) -> dict[str, ibis.Value]:
    """A looked-up column after the rules for records that are not listed, or listed without a value."""
    value = table[column.name]
    if not isinstance(column, LookedUpCategory):
        return {} if column.unlisted is None else {column.name: value.fill_null(column.unlisted)}
    attribute, undeclared = column.attribute, len(column.attribute.categories)
    missing = undeclared if attribute.absent is None else attribute.absent
    value = value.fill_null(missing)
    return {Category(attribute).name: value if attribute.other is not None else value.nullif(undeclared)}


def _combined(engine: Engine, table: ibis.Table, made: Category | ValueStatus) -> ibis.Table:
    """What an attribute makes of the words that its columns have in several tables."""
    attribute, parts = made.attribute, made.parts()
    keys = list(attribute.lookup)
    words = {f"discreet_word_{j}": [part.number(key[j]) for key in keys] for j, part in enumerate(parts)}
    columns = {name: pa.array(numbers, pa.int32()) for name, numbers in words.items()}
    listed = engine.load_public(
        pa.table({**columns, "discreet_listed": pa.array(attribute.lookup.values(), pa.int32())})
    )
    on = [table[part.name] == listed[word] for part, word in zip(parts, words, strict=True)]
    found = table.left_join(listed, on)
    value, nothing = found["discreet_listed"], ibis.or_(*(found[part.name].isnull() for part in parts))
    if isinstance(made, ValueStatus):
        value = nothing.ifelse(1, value.isnull().ifelse(2, 0)).cast("int32")
    else:
        if attribute.absent is not None:
            value = nothing.ifelse(ibis.literal(attribute.absent, "int32"), value)
        if attribute.other_code is not None:
            value = value.fill_null(attribute.other_code)
    return found.mutate(**{made.name: value}).drop(*words, "discreet_listed")


# --- which table has which column -----------------------------------------------------------------------------------


def ingest_tables(
    engine: Engine,
    scans: Mapping[str, Scan],
    keys: Mapping[str, str],
    wanted: Iterable[DerivedColumn],
    entity: str | None,
    counted: bool = False,
) -> Records:
    """Every table reduced to its derived columns: records (the first table) and what they are looked up in, each by its
    key. `counted`: equal records are put together, where nothing tells them apart. Refused by names and types alone."""
    wanted = list(wanted)
    named = dict.fromkeys([*keys.values(), *([entity] if entity is not None else [])])
    scans = {name: scan.as_codes(named) for name, scan in scans.items()}
    first, *further = scans
    columns = [column for made in wanted for column in made.reads] + ([entity] if entity is not None else [])
    owner = _owners(scans, keys, dict.fromkeys(columns))
    if entity is not None and owner[entity] != first:
        raise SourceError(
            f"column {entity!r}, which says whom a record is about, is in {owner[entity]}",
            where=f"source {first}",
            do="the records themselves must have it: who is listed for a key may depend on somebody else",
        )
    _check(scans, owner, wanted)
    wanted = [part for made in wanted for part in _apart(made, owner, first)]
    ids = {key: _identifier(scans, key) for key in named}
    own: dict[str, dict[str, DerivedColumn]] = {name: {} for name in scans}
    divided: list[Category | ValueStatus] = []
    for made in wanted:
        homes = {owner[column] for column in made.reads}
        parts: Sequence[DerivedColumn] = [made]
        if len(homes) > 1 and isinstance(made, Category | ValueStatus):
            divided.append(made)
            parts = made.parts()
        elif homes != {first} and isinstance(made, Category):
            parts = [LookedUpCategory(made.attribute)]
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
        key, given = ids[keys[name]], tuple(own[name].values())
        lookups.append(Lookup(name, engine.ingest(scans[name], Intake((key, *given))), key, given))
    return Records(records, tuple(lookups), tuple(divided))


def _apart(made: DerivedColumn, owner: Mapping[str, str], first: str) -> Sequence[DerivedColumn]:
    """A cell whose columns are not all in the records is numbered later, from its categories."""
    if isinstance(made, Cell) and any(owner[column] != first for column in made.reads):
        return made.categories
    return [made]


def _check(scans: Mapping[str, Scan], owner: Mapping[str, str], wanted: Iterable[DerivedColumn]) -> None:
    """Refuse by the types of columns, before any record is looked at."""
    for made in wanted:
        for column in made.reads:
            scan = scans[owner[column]]
            for kind in sorted(scan.kinds[column], key=str):
                made.check(column, kind, scan.where)


def _identifier(scans: Mapping[str, Scan], column: str) -> Identifier:
    """Whole numbers only where every table that has the column has them, in all its files."""
    kinds = [(kind, scan.where) for scan in scans.values() for kind in sorted(scan.kinds.get(column, ()), key=str)]
    made = Identifier(column, whole=all(Identifier.fits(kind) for kind, _ in kinds))
    for kind, where in kinds:
        made.check(column, kind, where)
    return made


def _owners(scans: Mapping[str, Scan], keys: Mapping[str, str], columns: Iterable[str]) -> dict[str, str]:
    """Which table has which column; refused if two have it, for nobody says which is meant, or none has."""
    first = next(iter(scans))
    for name, key in keys.items():
        for table in (first, name):
            _there(scans[table], key)
    owner: dict[str, str] = {}
    for column in columns:
        homes = [name for name, scan in scans.items() if column in scan.kinds and keys.get(name) != column]
        if len(homes) > 1:
            raise SourceError(
                f"column {column!r} is in {homes[0]} and in {homes[1]}",
                where="source " + ", ".join(homes),
                do="rename one of them, so that it is clear which is meant",
            )
        if not homes:
            _there(scans[first], column, f"source {', '.join(scans)}" if len(scans) > 1 else None)
        owner[column] = homes[0]
    return owner


def _there(scan: Scan, column: str, where: str | None = None) -> None:
    """The source's own names are not repeated: in a file without a header they would be a record."""
    if column not in scan.kinds:
        raise SourceError(
            f"has no column {column!r}", where=where or scan.where, do="correct the name, here or in the source"
        )
