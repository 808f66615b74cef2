"""Tabulation, written once for all engines: contribution bounding, and the number of records in each cell. Engines
see derived columns only: category and bin numbers, and the identifier of the privacy unit."""

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
    """Records after contribution bounding, with the columns in use only; a row may stand for several records."""

    table: ibis.Table
    weighted: bool
    complete: frozenset[str] = frozenset()  # columns that are known to have no missing values

    def grouped(self, columns: Sequence[str]) -> ibis.Table:
        """The distinct combinations of values in these columns, with their number of records."""
        size = self.table[N].sum().cast("int64") if self.weighted else self.table.count()
        if not columns:
            return self.table.aggregate(**{N: size.fill_null(0)})
        return self.table.group_by(list(columns)).aggregate(**{N: size})


@dataclass(frozen=True)
class RecordReading:
    """One reading of the confidential records, from which all tables of a release are tabulated."""

    engine: Engine
    records: Records
    unit: Unit
    secret: Secret  # determines which records of a unit are used
    counted: tuple[Domain, ...] = ()  # domains of all tables that count the bounded records
    binned: tuple[BinnedValue, ...] = ()
    progress: Progress = no_progress

    @cached_property
    def bounded(self) -> BoundedRecords:
        """The records after contribution bounding."""
        table = self.records.with_lookups(self.engine)
        return bound_contributions(self.engine, table, self.counted, self.unit, self.secret, self.binned)


def record_count(table: ibis.Table) -> ibis.Value:
    """The number of records that a table stands for."""
    return table[N].sum().fill_null(0).cast("int64") if N in table.columns else table.count()


def code_column(attribute: Attribute) -> str:
    """The column with the number of each record's category of an attribute."""
    return attribute.source[0] if attribute.numbered else Category(attribute).name


def used_columns(domains: Iterable[Domain]) -> list[str]:
    """The category columns that any table needs, without duplicates, in order."""
    return list(dict.fromkeys(code_column(a) for d in domains for a in d.attributes))


def derived_columns(
    domains: Iterable[Domain], binned: Iterable[BinnedValue] = (), observed: Iterable[ObservedValue] = ()
) -> list[DerivedColumn]:
    """All columns derived from a record's values, without duplicates: categories, bins, sample conditions, values."""
    columns: list[DerivedColumn] = [Category(a) for d in domains for a in d.attributes if not a.numbered]
    columns += [column for value in binned for column in value.derived]
    columns += [column for value in observed for column in value.derived]
    return list({column.name: column for column in columns}.values())


def bound_contributions(
    engine: Engine,
    table: ibis.Table,
    domains: Sequence[Domain],
    unit: Unit,
    secret: Secret,
    binned: Sequence[BinnedValue] = (),
) -> BoundedRecords:
    """Bounded contributions: at most `max_records` records per entity, by the smallest PRF(key, entity, values).

    Records that every table would drop rank last, so that they do not displace usable ones. The selection for one
    entity depends on its own records only, so adding or removing an entity changes only its own. Only entities over
    the bound are ranked; records without an entity are dropped.
    """
    columns, complete = used_columns(domains), frozenset[str]()
    if len(binned) == 1 and all(any(a.numbered for a in d.attributes) for d in domains):
        # Every table drops records outside the only sample: drop them here.
        table, complete = table.filter(in_sample(table, binned[0])), frozenset([binned[0].name])
    if unit.entity is None:
        records = BoundedRecords(table, N in table.columns, complete)
        # Several tables are counted from one snapshot; one table is one scan.
        return records if len(domains) == 1 else BoundedRecords(engine.store(records.grouped(columns)), True, complete)
    bounded = BoundedRecords(limit_contributions(engine, table, columns, domains, unit, secret), weighted=False)
    return BoundedRecords(engine.store(bounded.grouped(columns)), True, complete)


def limit_contributions(
    engine: Engine, table: ibis.Table, columns: Sequence[str], domains: Sequence[Domain], unit: Unit, secret: Secret
) -> ibis.Table:
    """These columns, and the entity, of at most `max_records` records per entity."""
    entity = table[identifier(unit.entity or "")]
    rows = table.filter(entity.notnull()).select(**{ENTITY: entity}, **{column: table[column] for column in columns})
    rows = engine.store(rows)  # one snapshot: who is over the bound is decided on the records that are counted
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
    """The mixed-radix number of a row's categories; null if one of them is null."""
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
    """The single integer that a table consists of."""
    return sum(int(value) for batch in engine.batches(table) for value in batch.column(0).to_pylist())
