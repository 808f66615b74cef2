"""How many jobs each establishment has in each cell, in one pass of two-level grouping (003).

An establishment is what shares its identifier and its place in the table: the workplace attributes of a table of
workplaces, or those that its records have. What happens to one job of it never moves another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import ibis
import pyarrow as pa
from ibis import _

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.intake.derived import Cell, identifier
from discreet.engine.lookups import Records
from discreet.engine.spans import CELL
from discreet.engine.tabulate import ENTITY, code_column, record_count, scalar, used_columns
from discreet.engine.tabulate import cell_number as _cell

N, LARGEST = "discreet_jobs", "discreet_largest"  # no column of the data is called so
PLACE = "discreet_place"
WORKER = "discreet_worker"


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
        if not self.records.lookups:
            found = self._grouped(engine, self.records, what)
        else:
            # A key that is listed twice gives records twice. That is rare: look afterwards, and only then look closer.
            records = self.records.store(engine)
            found = engine.store(self._grouped(engine, records, what, distinct=False))
            before = scalar(engine, records.table.aggregate(discreet_number=record_count(records.table)))
            if scalar(engine, found.aggregate(discreet_sum=found[N].sum().fill_null(0))) != before:
                found = engine.store(self._grouped(engine, records, what))
        return found.filter(found[ENTITY].notnull(), found[PLACE].notnull())

    def job_counts(self, engine: Engine, what: Workforce) -> ibis.Table:
        """Of every occupied cell the jobs, and those of the establishment that has most of them."""
        return count_jobs(self.workforce(engine, what), what.workers.cells)

    def _grouped(self, engine: Engine, records: Records, what: Workforce, distinct: bool = True) -> ibis.Table:
        """The first level. What a table of workplaces says is looked up afterwards, once for an establishment."""
        later = tuple(x for x in records.lookups if x.key.column == self.entity and not records.divided)
        sooner = tuple(x for x in records.lookups if x not in later)
        rows = replace(records, lookups=sooner).with_lookups(engine, distinct)
        keys = {ENTITY: rows[identifier(self.entity)]}
        # Cells are numbered before grouping where all their codes are known, and where there are any.
        place, worker = (bool(codes) and _known(rows, codes, cell) for codes, cell in _codes(what))
        keys |= {PLACE: _cell(rows, what.by)} if place else _there(rows, _codes(what)[0][0])
        keys |= {WORKER: _worker(rows, what)} if worker else _there(rows, _codes(what)[1][0])
        grouped = rows.group_by(**keys).aggregate(**{N: record_count(rows)})
        if later:
            grouped = grouped.mutate(**{identifier(self.entity): grouped[ENTITY]})
            grouped = Records(grouped, later).with_lookups(engine, distinct)
        return grouped.select(
            **{
                ENTITY: grouped[ENTITY],
                PLACE: grouped[PLACE] if place else _cell(grouped, what.by),
                WORKER: grouped[WORKER] if worker else _worker(grouped, what),
                N: grouped[N],
            }
        )


def _codes(what: Workforce) -> list[tuple[list[str], Domain]]:
    """The columns of the workplace's categories and of the worker's, and of which of them there is a cell."""
    return [(used_columns([what.by]), what.by), (used_columns([what.workers, what.only]), what.workers)]


def _known(rows: ibis.Table, codes: Sequence[str], cell: Domain) -> bool:
    """Whether all codes are there, or the cell that is made of them."""
    made = set(used_columns([cell])) if Cell(cell).name in rows.columns else set()
    return all(code in rows.columns or code in made for code in codes)


def _there(rows: ibis.Table, columns: Sequence[str]) -> dict[str, ibis.Value]:
    return {column: rows[column] for column in columns if column in rows.columns}


def _worker(rows: ibis.Table, what: Workforce) -> ibis.Value:
    """The worker cell; none for workers that do not count."""
    worker = _cell(rows, what.workers)
    right = [
        rows[code_column(attribute)].cast("int64") == ibis.literal(chosen, "int64")
        for attribute, chosen in zip(what.only.attributes, what.chosen, strict=True)
    ]
    return reduce(and_, right).ifelse(worker, ibis.null("int64")) if right else worker


def count_jobs(grouped: ibis.Table, cells: int) -> ibis.Table:
    """The second level: of every occupied cell the jobs, and those of the establishment that has most of them."""
    found = grouped.filter(grouped[WORKER].notnull())
    number = found[PLACE] * ibis.literal(cells, "int64") + found[WORKER]
    return _finished(found.group_by(**{CELL: number}).aggregate(**{N: found[N].sum(), LARGEST: found[N].max()}))


def _finished(cells: ibis.Table) -> ibis.Table:
    """As kernels read it: cell, jobs, and the most of one establishment."""
    return cells.select(**{CELL: cells[CELL], "n": cells[N], "largest": cells[LARGEST]})


def count_jobs_with_sizes(engine: Engine, grouped: ibis.Table, cells: int) -> ibis.Table:
    """As `count_jobs`, but with the size (all workers) of the largest establishment of the workplace cell beside every
    count, including counts of 0."""
    grouped = engine.store(grouped)
    whole = grouped.group_by([ENTITY, PLACE]).aggregate(**{N: grouped[N].sum()})
    sizes = whole.group_by(PLACE).aggregate(**{LARGEST: whole[N].max()})
    each = sizes.cross_join(engine.load_public(pa.table({WORKER: pa.array(range(cells), pa.int64())})))
    number = each[PLACE] * ibis.literal(cells, "int64") + each[WORKER]
    each = engine.store(each.select(**{CELL: number, LARGEST: each[LARGEST]}))
    counts = count_jobs(grouped, cells).select(**{"discreet_cell": _[CELL], N: _.n})
    joined = each.left_join(counts, [(CELL, "discreet_cell")])
    return joined.select(**{CELL: joined[CELL], "n": joined[N].fill_null(0), "largest": joined[LARGEST]})


def count_jobs_without_large(engine: Engine, grouped: ibis.Table, cells: int, most: int) -> ibis.Table:
    """As `count_jobs`, without establishments that have more than `most` jobs in all."""
    grouped = engine.store(grouped)
    sizes = grouped.group_by(ENTITY).aggregate(discreet_size=grouped[N].sum())
    large = sizes.filter(sizes["discreet_size"] > most).select(ENTITY)
    return count_jobs(grouped.anti_join(large, ENTITY), cells)
