"""The effect of the declared rules on the records. For the confidential side only: the results describe the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import ibis
from ibis import _

from discreet.domain import Attribute, Domain
from discreet.engine import Engine
from discreet.engine.derived_values import BinnedValue, ObservedValue
from discreet.engine.intake.derived import CodeText, DerivedColumn, ValueStatus, identifier
from discreet.engine.lookups import Lookup, Records
from discreet.engine.spans import CELL
from discreet.engine.tabulate import ENTITY, cell_number, record_count, scalar
from discreet.privacy.guarantee import Establishment, Unit

EXAMPLES = 5


@dataclass(frozen=True)
class AttributeAudit:
    """Numbers of records whose value is missing or undeclared, and examples of undeclared values."""

    attribute: Attribute
    missing: int
    undeclared: int
    examples: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class ValueAudit:
    """Numbers of records outside the sample, and of those counted in the first bin although they lie below it."""

    binned: BinnedValue
    missing: int
    unreadable: int  # not numeric
    outside: int  # of the sample, for another reason
    below: int


@dataclass(frozen=True)
class ObservedAudit:
    """Numbers of records without a value, with a non-numeric value, or with one outside the declared bounds."""

    observed: ObservedValue
    missing: int
    unreadable: int
    outside: int


@dataclass(frozen=True)
class LookupAudit:
    """Number of records whose key is not listed in a lookup table, and number of duplicate keys in it."""

    name: str
    key: str
    unmatched: int
    doubled: int


@dataclass(frozen=True)
class ScaleAudit:
    """The noise scale of a group of cells, and the cell that determines it."""

    group: str
    chi: float = field(repr=False)
    cell: str = field(repr=False)
    records: int = field(repr=False)


@dataclass(frozen=True)
class EstimateAudit:
    """Cells of a table of estimates: occupied, too small to affect the noise scale, without a finite sensitivity."""

    table: str
    cells: int
    small: int
    infinite: int
    examples: tuple[str, ...] = field(repr=False)
    scales: tuple[ScaleAudit, ...] = field(repr=False)


@dataclass(frozen=True)
class Audit:
    """What the rules will drop, recode to "other" or exclude. Confidential: it describes the records."""

    records: int
    unreadable: int
    without_entity: int
    heavy_entities: int
    records_over: int
    attributes: tuple[AttributeAudit, ...]
    values: tuple[ValueAudit, ...] = ()
    observed: tuple[ObservedAudit, ...] = ()
    estimates: tuple[EstimateAudit, ...] = ()
    lookups: tuple[LookupAudit, ...] = ()
    records_of_heavy: int = 0  # all records of entities over the bound
    divided: int = 0  # establishments in more than one cell of a table
    unclosed: int = 0  # unreadable lines that end inside an open quote

    @property
    def clean(self) -> bool:
        violations = (
            self.unreadable,
            self.without_entity,
            self.records_over,
            *(a.missing + a.undeclared for a in self.attributes),
            *(v.below + v.unreadable for v in self.values),  # a record outside the sample violates no rule
            *(o.missing + o.unreadable + o.outside for o in self.observed),
            *(lookup.unmatched + lookup.doubled for lookup in self.lookups),
            self.divided,
        )
        return not any(violations)


def preflight_columns(
    attributes: Iterable[Attribute], binned: Iterable[BinnedValue], observed: Iterable[ObservedValue]
) -> list[DerivedColumn]:
    """Columns that `discreet check` inspects in addition to those of the release."""
    columns: list[DerivedColumn] = []
    for attribute in attributes:
        columns += [ValueStatus(attribute), *_code_texts(attribute)]
    columns += [column for value in binned for column in value.preflight_columns]
    columns += [column for value in observed for column in value.preflight_columns]
    return list({column.name: column for column in columns}.values())


def _code_texts(attribute: Attribute) -> list[CodeText]:
    return [CodeText(column, attribute.width_of(j)) for j, column in enumerate(attribute.source)]


def coded_attributes(domains: Iterable[Domain]) -> list[Attribute]:
    """The attributes whose categories are derived from codes, without duplicate names."""
    return list({a.name: a for d in domains for a in d.attributes if not a.numbered}.values())


def audit(
    engine: Engine,
    records: Records,
    domains: Sequence[Domain],
    unit: Unit,
    binned: Sequence[BinnedValue] = (),
    places: Sequence[Domain] = (),
    observed: Sequence[ObservedValue] = (),
) -> Audit:
    """Evaluate every rule of a release: records per unit, each attribute of a table, each binned or bounded value,
    lookup tables, and the `places` of which an establishment should have exactly one."""
    table = engine.store(records.with_lookups(engine)) if records.lookups else records.table
    without, heavy, over, heavy_records = 0, 0, 0, 0
    if unit.entity is not None:
        entity = table[identifier(unit.entity)]
        without = scalar(engine, table.filter(entity.isnull()).aggregate(n=_.count()))
        if not isinstance(unit, Establishment):  # all its jobs are used
            sizes = table.filter(entity.notnull()).select(**{ENTITY: entity}).group_by(ENTITY).aggregate(n=_.count())
            too_many = engine.store(sizes.filter(_.n > unit.records))
            heavy = scalar(engine, too_many.aggregate(n=_.count()))
            heavy_records = scalar(engine, too_many.aggregate(n=_.n.sum().fill_null(0)))
            over = heavy_records - heavy * unit.records
    return Audit(
        records=scalar(engine, table.aggregate(n=record_count(table))),
        unreadable=engine.unreadable,
        unclosed=engine.unclosed,
        without_entity=without,
        heavy_entities=heavy,
        records_over=over,
        records_of_heavy=heavy_records,
        attributes=tuple(_attribute(engine, table, a) for a in coded_attributes(domains)),
        values=tuple(ValueAudit(value, **_tally(engine, table, value.outcomes(table))) for value in binned),
        observed=tuple(ObservedAudit(value, **_tally(engine, table, value.outcomes(table))) for value in observed),
        lookups=tuple(_lookup(engine, records.table, lookup) for lookup in records.lookups),
        divided=sum(_divided(engine, table, unit.entity, place) for place in places if unit.entity is not None),
    )


def _tally(engine: Engine, table: ibis.Table, rules: Mapping[str, ibis.Value]) -> dict[str, int]:
    """The number of records that meet each condition."""
    return {name: scalar(engine, table.filter(rule).aggregate(n=_.count())) for name, rule in rules.items()}


def _lookup(engine: Engine, records: ibis.Table, lookup: Lookup) -> LookupAudit:
    key = lookup.key.name
    keys = lookup.table.select(discreet_key=lookup.table[key]).group_by("discreet_key").aggregate(n=_.count())
    keys = engine.store(keys)
    unmatched = records.anti_join(keys, records[key] == keys["discreet_key"])
    return LookupAudit(
        lookup.name,
        lookup.key.column,
        unmatched=scalar(engine, unmatched.aggregate(n=_.count())),
        doubled=scalar(engine, keys.filter(_.n > 1).aggregate(n=_.count())),
    )


def _divided(engine: Engine, table: ibis.Table, entity: str, place: Domain) -> int:
    """The number of establishments with records in two cells or more: each part is protected separately."""
    column = table[identifier(entity)]
    rows = table.filter(column.notnull()).select(**{ENTITY: column, CELL: cell_number(table, place)})
    cells = rows.filter(rows[CELL].notnull()).distinct()
    several = cells.group_by(ENTITY).aggregate(n=_.count()).filter(_.n > 1)
    return scalar(engine, several.aggregate(n=_.count()))


def _attribute(engine: Engine, table: ibis.Table, attribute: Attribute) -> AttributeAudit:
    status, texts = table[ValueStatus(attribute).name], [column.name for column in _code_texts(attribute)]
    undeclared = table.filter(status == 2)
    common = undeclared.group_by(texts).aggregate(discreet_times=_.count())
    common = common.order_by([ibis.desc("discreet_times"), *texts]).limit(EXAMPLES).select(*texts)
    examples = ["/".join(map(str, row.values())) for batch in engine.batches(common) for row in batch.to_pylist()]
    return AttributeAudit(
        attribute,
        missing=scalar(engine, table.filter(status == 1).aggregate(n=_.count())),
        undeclared=scalar(engine, undeclared.aggregate(n=_.count())),
        examples=tuple(examples),
    )
