"""Relational work, written once: which records count, and how many fall into each cell.

Records are grouped by their raw values first, at the speed of the engine's bare GROUP BY; only the distinct
combinations are then matched with the declared codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_, or_

import ibis
import pyarrow as pa
from ibis import _

from discreet.domain import Attribute, Domain
from discreet.engine import Engine
from discreet.engine.spans import CELL
from discreet.engine.text import as_text, missing
from discreet.engine.values import Binned, Observed, sampled
from discreet.errors import SourceError
from discreet.noise.key import Secret
from discreet.privacy.unit import Unit

N = "discreet_n"
ENTITY = "discreet_entity"
USELESS = "discreet_useless"
PRIORITY = "discreet_priority"


@dataclass(frozen=True)
class Rows:
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


def used_columns(domains: Sequence[Domain]) -> list[str]:
    """The data's columns that any table needs, each once, in order."""
    return list(dict.fromkeys(c for d in domains for a in d.attributes for c in a.source))


def wanted_columns(
    domains: Sequence[Domain], unit: Unit, binned: Sequence[Binned] = (), observed: Sequence[Observed] = ()
) -> list[str]:
    """What is read of the source: the columns of every table, those that values are made of, and the unit's."""
    made = {b.name for b in binned}
    columns = [c for c in used_columns(domains) if c not in made]
    columns += [c for b in binned for c in b.reads] + [made.column for made in observed]
    columns += [] if unit.entity is None else [unit.entity]
    return list(dict.fromkeys(columns))


def check_columns(
    table: ibis.Table, wanted: Sequence[str], where: str, values: Mapping[str, bool] | None = None
) -> None:
    """Columns must be there and be codes: text, numbers, booleans or dates; or values, which are numbers of any kind.
    The source's own names are not repeated: in a file without a header they would be a record."""
    schema, values = table.schema(), values or {}
    if len({column.lower() for column in wanted}) < len(wanted):
        raise SourceError("two wanted columns differ only in case", where=where, do="rename one of them in the source")
    for column in wanted:
        if column.lower().startswith("discreet_"):
            raise SourceError(f"column names like {column!r} are taken", where=where, do="rename the column")
        if column not in schema:
            raise SourceError(f"has no column {column!r}", where=where, do="correct the name, here or in the source")
        kind = schema[column]
        if column in values:
            decimal = kind.is_decimal() and not values[column]  # a decimal can be compared, but is no code
            if not (kind.is_string() or kind.is_integer() or kind.is_floating() or decimal):
                raise SourceError(
                    f"column {column!r} is of type {kind}, which is no number",
                    where=where,
                    do="provide it as whole or real numbers",
                )
        elif not (kind.is_string() or kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_date()):
            raise SourceError(
                f"column {column!r} is of type {kind}, which cannot be matched with codes",
                where=where,
                do="provide it as text or whole numbers",
            )


def keep_records(
    engine: Engine,
    table: ibis.Table,
    domains: Sequence[Domain],
    unit: Unit,
    secret: Secret,
    binned: Sequence[Binned] = (),
) -> Rows:
    """At most `max_records` records of every entity, chosen by PRF(key, entity, record content).

    Records that every table would drop come last, so that they take nobody's place. The choice for one entity looks
    at nobody else's records, so adding or removing an entity changes only its own. Only entities that have too many
    are ranked; records without an entity are dropped.
    """
    columns, complete = used_columns(domains), frozenset[str]()
    if len(binned) == 1 and all(any(a.numbered for a in d.attributes) for d in domains):
        # Every table drops what is not in the one sample: it need not be carried along.
        table, complete = table.filter(sampled(table, binned[0])), frozenset([binned[0].name])
    if unit.entity is None:
        records = Rows(table.select(*columns) if columns else table, False, complete)
        # Several tables are counted from one snapshot; one table is one scan.
        return records if len(domains) == 1 else Rows(engine.store(records.grouped(columns)), True, complete)
    kept = Rows(limited(engine, table, columns, domains, unit, secret), weighted=False)
    return Rows(engine.store(kept.grouped(columns)), True, complete)


def limited(
    engine: Engine, table: ibis.Table, columns: Sequence[str], domains: Sequence[Domain], unit: Unit, secret: Secret
) -> ibis.Table:
    """These columns of at most `max_records` records of every entity, with the entity."""
    entity = table[unit.entity]
    rows = table.filter(~missing(entity)).select(**{ENTITY: entity}, **{column: table[column] for column in columns})
    rows = engine.store(rows)  # one snapshot: who has too many records is decided on the records that are counted
    heavy = rows.group_by(ENTITY).having(_.count() > unit.records).aggregate().select(ENTITY)
    heavy = engine.store(heavy)
    many = _with_useless(engine, engine.store(rows.semi_join(heavy, ENTITY)), domains)
    many = engine.prioritised(many, (ENTITY, *columns), PRIORITY, secret)
    order = [many[USELESS], many[PRIORITY], *(many[column] for column in columns)]
    ranked = many.mutate(discreet_rank=ibis.row_number().over(group_by=ENTITY, order_by=order))
    chosen = ranked.filter(_.discreet_rank < unit.records).select(*columns, ENTITY)
    light = rows.anti_join(heavy, ENTITY).select(*columns, ENTITY)
    return ibis.union(light, chosen)


def _with_useless(engine: Engine, rows: ibis.Table, domains: Sequence[Domain]) -> ibis.Table:
    """Mark the records that every table would drop."""
    attributes = list({a.name: a for d in domains for a in d.attributes}.values())
    places = {a.name: i for i, a in enumerate(attributes)}
    coded = code(engine, rows, Domain(tuple(attributes), crossed=False))
    dropped = [
        reduce(or_, (coded[_code(places[a.name])].isnull() for a in d.attributes), ibis.literal(False)) for d in domains
    ]
    return coded.mutate(**{USELESS: reduce(and_, dropped)})


def count_cells(engine: Engine, rows: Rows, domain: Domain) -> ibis.Table:
    """The occupied cells of a domain: columns `cell` and `n`, in any order."""
    columns = list(dict.fromkeys(c for a in domain.attributes for c in a.source))
    coded = code(engine, rows.grouped(columns), domain)
    dropping = [
        coded[_code(i)].notnull()
        for i, a in enumerate(domain.attributes)
        if a.other is None and a.source[0] not in rows.complete
    ]
    coded = coded.filter(*dropping) if dropping else coded
    cell = cell_number(coded, domain)
    return engine.store(coded.group_by(**{CELL: cell}).aggregate(n=coded[N].sum()))


def cell_number(coded: ibis.Table, domain: Domain) -> ibis.Value:
    """The mixed-radix number of a row's codes; null where one of them is."""
    return reduce(
        add,
        (coded[_code(i)] * ibis.literal(s, "int64") for i, s in enumerate(domain.strides)),
        ibis.literal(0, "int64"),
    )


def code(engine: Engine, grouped: ibis.Table, domain: Domain, prefix: str = "discreet_code_") -> ibis.Table:
    """Add each attribute's category code: "other" where that is declared, null where the value will be dropped."""
    joined, codes = grouped, {}
    for i, attribute in enumerate(domain.attributes):
        if attribute.numbered:
            codes[f"{prefix}{i}"] = grouped[attribute.source[0]]
            continue
        lookup = engine.public(_lookup(attribute, i))
        on = [
            as_text(grouped[source], attribute.width_of(j)) == lookup[_key(i, j)]
            for j, source in enumerate(attribute.source)
        ]
        joined = joined.left_join(lookup, on)
        found = lookup[_code(i)]
        if attribute.absent is not None:
            found = ibis.or_(*(missing(grouped[source]) for source in attribute.source)).ifelse(attribute.absent, found)
        codes[f"{prefix}{i}"] = found if attribute.other_code is None else found.fill_null(attribute.other_code)
    return joined.select(*(grouped[column] for column in grouped.columns), **codes)


def only_number(engine: Engine, table: ibis.Table) -> int:
    """The one whole number that a table consists of."""
    return sum(int(value) for batch in engine.batches(table) for value in batch.column(0).to_pylist())


def _lookup(attribute: Attribute, i: int) -> pa.Table:
    keys = list(attribute.lookup)
    columns = {_key(i, j): pa.array([key[j] for key in keys], pa.string()) for j in range(len(attribute.source))}
    return pa.table({**columns, _code(i): pa.array(attribute.lookup.values(), pa.int64())})


def _key(i: int, j: int) -> str:
    return f"discreet_key_{i}_{j}"


def _code(i: int) -> str:
    return f"discreet_code_{i}"
