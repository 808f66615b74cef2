"""Relational work, written once: which records count, and how many fall into each cell. Engines see derived columns
only: numbers of categories and bins, and whom a record is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, and_, or_
from typing import TYPE_CHECKING

import ibis
from ibis import _

from discreet.domain import Attribute, Domain
from discreet.engine import Engine
from discreet.engine.derived_values import BinnedValue, ObservedValue, in_sample
from discreet.engine.intake.derived import Category, Cell, DerivedColumn, identifier
from discreet.engine.intake.stream import N
from discreet.engine.spans import CELL, Progress, no_progress
from discreet.noise.key import Secret
from discreet.privacy.guarantee import Unit

if TYPE_CHECKING:
    from discreet.engine.lookups import Records

ENTITY = "discreet_entity"
USELESS = "discreet_useless"
PRIORITY = "discreet_priority"


@dataclass(frozen=True)
class BoundedRecords:
    """Records reduced to what a release uses: their columns, and how many records each row stands for."""

    table: ibis.Table
    weighted: bool
    complete: frozenset[str] = frozenset()  # columns that are known to have no missing values

    def grouped(self, columns: Sequence[str]) -> ibis.Table:
        """Distinct combinations of raw values and their number of records."""
        size = self.table[N].sum().cast("int64") if self.weighted else self.table.count()
        if not columns:
            return self.table.aggregate(**{N: size.fill_null(0)})
        return self.table.group_by(list(columns)).aggregate(**{N: size})


@dataclass(frozen=True)
class RecordReading:
    """One reading of the confidential records: all tables of a release are tabulated from it."""

    engine: Engine
    records: Records
    unit: Unit
    secret: Secret  # that chooses which records of a unit are used
    counted: tuple[Domain, ...] = ()  # by all tables that count the records that are kept
    binned: tuple[BinnedValue, ...] = ()
    progress: Progress = no_progress

    @cached_property
    def bounded(self) -> BoundedRecords:
        """The records that are kept of each unit."""
        table = self.records.with_lookups(self.engine)
        return bound_contributions(self.engine, table, self.counted, self.unit, self.secret, self.binned)


def record_count(table: ibis.Table) -> ibis.Value:
    """How many records a table stands for."""
    return table[N].sum().fill_null(0).cast("int64") if N in table.columns else table.count()


def code_column(attribute: Attribute) -> str:
    """The column that says which category of an attribute a record has."""
    return attribute.source[0] if attribute.numbered else Category(attribute).name


def used_columns(domains: Iterable[Domain]) -> list[str]:
    """The columns of categories that any table needs, each once, in order."""
    return list(dict.fromkeys(code_column(a) for d in domains for a in d.attributes))


def derived_columns(
    domains: Iterable[Domain], binned: Iterable[BinnedValue] = (), observed: Iterable[ObservedValue] = ()
) -> list[DerivedColumn]:
    """Everything that is made of a record's values, each once: categories, bins and rules, values."""
    columns: list[DerivedColumn] = [Category(a) for d in domains for a in d.attributes if not a.numbered]
    columns += [column for made in binned for column in made.derived]
    columns += [column for made in observed for column in made.derived]
    return list({column.name: column for column in columns}.values())


def bound_contributions(
    engine: Engine,
    table: ibis.Table,
    domains: Sequence[Domain],
    unit: Unit,
    secret: Secret,
    binned: Sequence[BinnedValue] = (),
) -> BoundedRecords:
    """At most `max_records` records of every entity, chosen by PRF(key, entity, record content).

    Records that every table would drop come last, so that they take nobody's place. The choice for one entity looks
    at nobody else's records, so adding or removing an entity changes only its own. Only entities that have too many
    are ranked; records without an entity are dropped.
    """
    columns, complete = used_columns(domains), frozenset[str]()
    if len(binned) == 1 and all(any(a.numbered for a in d.attributes) for d in domains):
        # Every table drops what is not in the one sample: it need not be carried along.
        table, complete = table.filter(in_sample(table, binned[0])), frozenset([binned[0].name])
    if unit.entity is None:
        records = BoundedRecords(table, N in table.columns, complete)
        # Several tables are counted from one snapshot; one table is one scan.
        return records if len(domains) == 1 else BoundedRecords(engine.store(records.grouped(columns)), True, complete)
    kept = BoundedRecords(limit_contributions(engine, table, columns, domains, unit, secret), weighted=False)
    return BoundedRecords(engine.store(kept.grouped(columns)), True, complete)


def limit_contributions(
    engine: Engine, table: ibis.Table, columns: Sequence[str], domains: Sequence[Domain], unit: Unit, secret: Secret
) -> ibis.Table:
    """These columns of at most `max_records` records of every entity, with the entity."""
    entity = table[identifier(unit.entity or "")]
    rows = table.filter(entity.notnull()).select(**{ENTITY: entity}, **{column: table[column] for column in columns})
    rows = engine.store(rows)  # one snapshot: who has too many records is decided on the records that are counted
    heavy = rows.group_by(ENTITY).having(_.count() > unit.records).aggregate().select(ENTITY)
    heavy = engine.store(heavy)
    many = _with_useless(engine.store(rows.semi_join(heavy, ENTITY)), domains)
    many = engine.with_priorities(many, (ENTITY, *columns), PRIORITY, secret)
    order = [many[USELESS], many[PRIORITY], *(many[column] for column in columns)]
    ranked = many.mutate(discreet_rank=ibis.row_number().over(group_by=ENTITY, order_by=order))
    chosen = ranked.filter(_.discreet_rank < unit.records).select(*columns, ENTITY)
    light = rows.anti_join(heavy, ENTITY).select(*columns, ENTITY)
    return ibis.union(light, chosen)


def _with_useless(rows: ibis.Table, domains: Sequence[Domain]) -> ibis.Table:
    """Mark the records that every table would drop."""
    dropped = [reduce(or_, (rows[code_column(a)].isnull() for a in d.attributes), ibis.literal(False)) for d in domains]
    return rows.mutate(**{USELESS: reduce(and_, dropped)})


def count_cells(engine: Engine, rows: BoundedRecords, domain: Domain) -> ibis.Table:
    """The occupied cells of a domain: columns `cell` and `n`, in any order."""
    table = rows.grouped(used_columns([domain]))
    dropping = [
        table[code_column(a)].notnull()
        for a in domain.attributes
        if a.other is None and code_column(a) not in rows.complete
    ]
    table = table.filter(*dropping) if dropping else table
    return engine.store(table.group_by(**{CELL: cell_number(table, domain)}).aggregate(n=table[N].sum()))


def cell_number(table: ibis.Table, domain: Domain) -> ibis.Value:
    """The mixed-radix number of a row's categories; null where one of them is."""
    if (name := Cell(domain).name) in table.columns:
        return table[name]
    return reduce(
        add,
        (
            table[code_column(a)].cast("int64") * ibis.literal(stride, "int64")
            for a, stride in zip(domain.attributes, domain.strides, strict=True)
        ),
        ibis.literal(0, "int64"),
    )


def scalar(engine: Engine, table: ibis.Table) -> int:
    """The one whole number that a table consists of."""
    return sum(int(value) for batch in engine.batches(table) for value in batch.column(0).to_pylist())
