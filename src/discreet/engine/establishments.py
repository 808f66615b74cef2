"""How many jobs each establishment has in each cell, in one pass of two-level grouping (003).

An establishment is what shares its identifier and its place in the table: the workplace attributes of a table of
workplaces, or those that its records have. What happens to one job of it never moves another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_

import ibis
import pyarrow as pa
from ibis import _

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.joining import Records
from discreet.engine.spans import CELL
from discreet.engine.tabulate import ENTITY, code, only_number
from discreet.engine.text import missing

N, LARGEST = "discreet_jobs", "discreet_largest"  # no column of the data is called so
PLACE = "discreet_place"
WORKER = "discreet_worker"
FEW = 3  # columns of text that are grouped as fast as their codes are matched


@dataclass(frozen=True)
class Workforce:
    """What is counted: the workplaces' cells, the workers' cells within each, and which workers count at all."""

    by: Domain
    workers: Domain
    only: Domain
    chosen: tuple[int, ...] = ()  # the code of each attribute of `only`

    @property
    def attributes(self) -> Domain:
        """All attributes, of which no cells are made."""
        parts = (self.by, self.workers, self.only)
        return Domain(tuple(a for part in parts for a in part.attributes), crossed=False)


@dataclass(frozen=True)
class Establishments:
    """Records of jobs, and the column that says which establishment has each."""

    records: Records
    entity: str

    def workforce(self, engine: Engine, what: Workforce) -> ibis.Table:
        """Jobs by establishment, workplace cell and worker cell; a worker that does not count has none."""
        found = self._grouped(engine, what, distinct=False)
        if self.records.lookups:
            # A key that is listed twice gives records twice. That is rare: look afterwards, and only then look closer.
            found = engine.store(found)
            before = only_number(engine, self.records.table.aggregate(discreet_number=_.count()))
            if only_number(engine, found.aggregate(discreet_sum=found[N].sum().fill_null(0))) != before:
                found = engine.store(self._grouped(engine, what, distinct=True))
        return found.filter(~missing(found[ENTITY]), found[PLACE].notnull())

    def counted(self, engine: Engine, what: Workforce) -> ibis.Table:
        """Of every occupied cell the jobs, and those of the establishment that has most of them."""
        if self.records.lookups or not _by_few_texts(self.records.table, what):
            return counted(self.workforce(engine, what), what.workers.cells)
        columns = list(dict.fromkeys(c for a in what.by.attributes for c in a.source))
        rows = self.records.table
        rows = rows.filter(~missing(rows[self.entity])).select(**{ENTITY: rows[self.entity]}, **_named(rows, columns))
        one = rows.group_by([ENTITY, *columns]).aggregate(**{N: _.count()})
        cells = one.group_by(columns).aggregate(**{N: one[N].sum(), LARGEST: one[N].max()})
        coded = code(engine, cells, what.by)
        number = _cell([coded[f"discreet_code_{i}"] for i in range(len(what.by.shape))], what.by.strides)
        return _finished(coded.select(**{CELL: number, N: coded[N], LARGEST: coded[LARGEST]}).filter(_[CELL].notnull()))

    def _grouped(self, engine: Engine, what: Workforce, distinct: bool) -> ibis.Table:
        """The first level. Codes are matched before grouping: a cell's number is grouped faster than its many texts.
        What a table of workplaces says is looked up afterwards, once for an establishment."""
        later = tuple(lookup for lookup in self.records.lookups if lookup.key == self.entity)
        sooner = tuple(lookup for lookup in self.records.lookups if lookup.key != self.entity)
        rows = Records(self.records.table, sooner).joined(distinct)
        early = [all(c in rows.columns for c in a.source) for a in what.attributes.attributes]
        columns = [c for a, now in zip(what.attributes.attributes, early, strict=True) if now for c in a.source]
        rows = rows.select(**{ENTITY: rows[self.entity]}, **_named(rows, dict.fromkeys(columns)))
        rows = _coded(engine, rows, what, early)
        workers = range(len(what.by.shape), len(early))
        ready = all(early[i] for i in workers)  # who counts, and where, is known already
        if ready:
            rows = rows.mutate(**{WORKER: _worker(rows, what)})
        wanted = [i for i, now in enumerate(early) if now and not (ready and i in workers)]
        keys = [ENTITY, *([WORKER] if ready else []), *(f"discreet_code_{i}" for i in wanted)]
        grouped = rows.group_by(keys).aggregate(**{N: _.count()})
        if later:
            grouped = Records(grouped.rename({self.entity: ENTITY}), later).joined(distinct)
            grouped = _coded(engine, grouped.rename({ENTITY: self.entity}), what, [not now for now in early])
        place = _cell([grouped[f"discreet_code_{i}"] for i in range(len(what.by.shape))], what.by.strides)
        worker = grouped[WORKER] if ready else _worker(grouped, what)
        return grouped.select(**{ENTITY: grouped[ENTITY], PLACE: place, WORKER: worker, N: grouped[N]})


def _coded(engine: Engine, rows: ibis.Table, what: Workforce, wanted: Sequence[bool]) -> ibis.Table:
    """The wanted attributes' codes, each under the number that it has among all of them."""
    places = [i for i, now in enumerate(wanted) if now]
    if not places:
        return rows
    some = Domain(tuple(what.attributes.attributes[i] for i in places), crossed=False)
    kept = list(rows.columns)
    coded = code(engine, rows, some, prefix="discreet_some_")
    names = {f"discreet_code_{i}": coded[f"discreet_some_{j}"] for j, i in enumerate(places)}
    return coded.select(**_named(coded, kept), **names)


def _worker(rows: ibis.Table, what: Workforce) -> ibis.Table:
    """The worker cell; none for workers that do not count."""
    first = len(what.by.shape)
    second = first + len(what.workers.shape)
    worker = _cell([rows[f"discreet_code_{i}"] for i in range(first, second)], what.workers.strides)
    right = [
        rows[f"discreet_code_{second + i}"] == ibis.literal(chosen, "int64") for i, chosen in enumerate(what.chosen)
    ]
    return reduce(and_, right).ifelse(worker, ibis.null("int64")) if right else worker


def _named(table: ibis.Table, columns: Iterable[str]) -> dict[str, ibis.Value]:
    return {column: table[column] for column in columns}


def _by_few_texts(table: ibis.Table, what: Workforce) -> bool:
    """Whether two texts never share a cell, and few enough columns have them: then texts can be grouped as they are."""
    columns = [c for a in what.by.attributes for c in a.source]
    own = all(
        a.other is None and a.absent is None and a.width is None and len(a.lookup) == len(a.categories)
        for a in what.by.attributes
    )
    texts = all(table[c].type().is_string() for c in columns)
    return own and texts and 0 < len(columns) <= FEW and not (what.workers.attributes or what.chosen)


def _cell(codes: Sequence[ibis.Value], strides: Sequence[int]) -> ibis.Value:
    """The number of a cell; none if any of its codes is none."""
    terms = (c * ibis.literal(s, "int64") for c, s in zip(codes, strides, strict=True))
    return reduce(add, terms, ibis.literal(0, "int64"))


def counted(grouped: ibis.Table, cells: int) -> ibis.Table:
    """The second level: of every occupied cell the jobs, and those of the establishment that has most of them."""
    found = grouped.filter(grouped[WORKER].notnull())
    number = found[PLACE] * ibis.literal(cells, "int64") + found[WORKER]
    return _finished(found.group_by(**{CELL: number}).aggregate(**{N: found[N].sum(), LARGEST: found[N].max()}))


def _finished(cells: ibis.Table) -> ibis.Table:
    """As kernels read it: cell, jobs, and the most of one establishment."""
    return cells.select(**{CELL: cells[CELL], "n": cells[N], "largest": cells[LARGEST]})


def counted_with_sizes(engine: Engine, grouped: ibis.Table, cells: int) -> ibis.Table:
    """As `counted`, but beside every count of a workplace cell stands its largest establishment with all its workers,
    also beside counts of 0."""
    grouped = engine.store(grouped)
    whole = grouped.group_by([ENTITY, PLACE]).aggregate(**{N: grouped[N].sum()})
    sizes = whole.group_by(PLACE).aggregate(**{LARGEST: whole[N].max()})
    each = sizes.cross_join(engine.public(pa.table({WORKER: pa.array(range(cells), pa.int64())})))
    number = each[PLACE] * ibis.literal(cells, "int64") + each[WORKER]
    each = engine.store(each.select(**{CELL: number, LARGEST: each[LARGEST]}))
    counts = counted(grouped, cells).select(**{"discreet_cell": _[CELL], N: _.n})
    joined = each.left_join(counts, [(CELL, "discreet_cell")])
    return joined.select(**{CELL: joined[CELL], "n": joined[N].fill_null(0), "largest": joined[LARGEST]})


def counted_without_large(engine: Engine, grouped: ibis.Table, cells: int, most: int) -> ibis.Table:
    """As `counted`, without establishments that have more than `most` jobs in all."""
    grouped = engine.store(grouped)
    sizes = grouped.group_by(ENTITY).aggregate(discreet_size=grouped[N].sum())
    large = sizes.filter(sizes["discreet_size"] > most).select(ENTITY)
    return counted(grouped.anti_join(large, ENTITY), cells)
