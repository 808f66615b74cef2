"""Jobs of each establishment in each cell, in one pass of two-level grouping (Haney et al. 2017).

An establishment is all records that share an identifier and a workplace cell: the workplace attributes of a table of
workplaces, or those of the records. A change of one job never moves another job of the establishment.
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

N, LARGEST = "discreet_jobs", "discreet_largest"  # no column of the data has these names
WORKPLACE_CELL = "discreet_workplace_cell"
WORKER_CELL = "discreet_worker_cell"


@dataclass(frozen=True)
class Workforce:
    """What is counted: workplace cells, worker cells within each, and the workers who are counted."""

    by: Domain
    workers: Domain
    only: Domain
    chosen: tuple[int, ...] = ()  # the code of each attribute of `only`

    @property
    def attributes(self) -> Domain:
        """All attributes, without crossing them to cells."""
        parts = (self.by, self.workers, self.only)
        return Domain(tuple(a for part in parts for a in part.attributes), crossed=False)


@dataclass(frozen=True)
class Establishments:
    """Records of jobs, and the column with each job's establishment."""

    records: Records
    entity: str

    def workforce(self, engine: Engine, what: Workforce) -> ibis.Table:
        """Jobs by establishment, workplace cell and worker cell; the latter is null for workers who are not counted."""
        if not self.records.lookups:
            jobs = self._grouped(engine, self.records, what)
        else:
            # A duplicate key in a lookup duplicates records. That is rare: check afterwards, and repeat if necessary.
            records = self.records.store(engine)
            jobs = engine.store(self._grouped(engine, records, what, distinct=False))
            before = scalar(engine, records.table.aggregate(discreet_number=record_count(records.table)))
            if scalar(engine, jobs.aggregate(discreet_sum=jobs[N].sum().fill_null(0))) != before:
                jobs = engine.store(self._grouped(engine, records, what))
        return jobs.filter(jobs[ENTITY].notnull(), jobs[WORKPLACE_CELL].notnull())

    def job_counts(self, engine: Engine, what: Workforce) -> ibis.Table:
        """Of every occupied cell the number of jobs, in total and of the largest establishment."""
        return count_jobs(self.workforce(engine, what), what.workers.cells)

    def _grouped(self, engine: Engine, records: Records, what: Workforce, distinct: bool = True) -> ibis.Table:
        """The first level of grouping. Columns of a workplace table are looked up later, once per establishment."""
        after = tuple(x for x in records.lookups if x.key.column == self.entity and not records.divided)
        before = tuple(x for x in records.lookups if x not in after)
        rows = replace(records, lookups=before).with_lookups(engine, distinct)
        keys = {ENTITY: rows[identifier(self.entity)]}
        # Cells are numbered before grouping if all their category columns are available, and if there are any.
        place, worker = (bool(codes) and _known(rows, codes, cell) for codes, cell in _codes(what))
        keys |= {WORKPLACE_CELL: _cell(rows, what.by)} if place else _available(rows, _codes(what)[0][0])
        keys |= {WORKER_CELL: _worker(rows, what)} if worker else _available(rows, _codes(what)[1][0])
        grouped = rows.group_by(**keys).aggregate(**{N: record_count(rows)})
        if after:
            grouped = grouped.mutate(**{identifier(self.entity): grouped[ENTITY]})
            grouped = Records(grouped, after).with_lookups(engine, distinct)
        return grouped.select(
            **{
                ENTITY: grouped[ENTITY],
                WORKPLACE_CELL: grouped[WORKPLACE_CELL] if place else _cell(grouped, what.by),
                WORKER_CELL: grouped[WORKER_CELL] if worker else _worker(grouped, what),
                N: grouped[N],
            }
        )


def _codes(what: Workforce) -> list[tuple[list[str], Domain]]:
    """The category columns of workplaces and of workers, each with the domain whose cell they determine."""
    return [(used_columns([what.by]), what.by), (used_columns([what.workers, what.only]), what.workers)]


def _known(rows: ibis.Table, codes: Sequence[str], cell: Domain) -> bool:
    """Whether all category columns are available, or the cell number that replaces them."""
    numbered = set(used_columns([cell])) if Cell(cell).name in rows.columns else set()
    return all(code in rows.columns or code in numbered for code in codes)


def _available(rows: ibis.Table, columns: Sequence[str]) -> dict[str, ibis.Value]:
    return {column: rows[column] for column in columns if column in rows.columns}


def _worker(rows: ibis.Table, what: Workforce) -> ibis.Value:
    """The worker cell; null for workers who are not counted."""
    worker = _cell(rows, what.workers)
    conditions = [
        rows[code_column(attribute)].cast("int64") == ibis.literal(chosen, "int64")
        for attribute, chosen in zip(what.only.attributes, what.chosen, strict=True)
    ]
    return reduce(and_, conditions).ifelse(worker, ibis.null("int64")) if conditions else worker


def count_jobs(grouped: ibis.Table, cells: int) -> ibis.Table:
    """The second level: of every occupied cell the number of jobs, in total and of the largest establishment."""
    jobs = grouped.filter(grouped[WORKER_CELL].notnull())
    number = jobs[WORKPLACE_CELL] * ibis.literal(cells, "int64") + jobs[WORKER_CELL]
    return _kernel_columns(jobs.group_by(**{CELL: number}).aggregate(**{N: jobs[N].sum(), LARGEST: jobs[N].max()}))


def _kernel_columns(cells: ibis.Table) -> ibis.Table:
    """The columns that kernels read: cell, jobs, jobs of the largest establishment."""
    return cells.select(**{CELL: cells[CELL], "n": cells[N], "largest": cells[LARGEST]})


def count_jobs_with_sizes(engine: Engine, grouped: ibis.Table, cells: int) -> ibis.Table:
    """As `count_jobs`, but with the size (all workers) of the largest establishment of the workplace cell beside every
    count, including counts of 0."""
    grouped = engine.store(grouped)
    whole = grouped.group_by([ENTITY, WORKPLACE_CELL]).aggregate(**{N: grouped[N].sum()})
    sizes = whole.group_by(WORKPLACE_CELL).aggregate(**{LARGEST: whole[N].max()})
    each = sizes.cross_join(engine.load_table(pa.table({WORKER_CELL: pa.array(range(cells), pa.int64())})))
    number = each[WORKPLACE_CELL] * ibis.literal(cells, "int64") + each[WORKER_CELL]
    each = engine.store(each.select(**{CELL: number, LARGEST: each[LARGEST]}))
    counts = count_jobs(grouped, cells).select(**{"discreet_cell": _[CELL], N: _.n})
    joined = each.left_join(counts, [(CELL, "discreet_cell")])
    return joined.select(**{CELL: joined[CELL], "n": joined[N].fill_null(0), "largest": joined[LARGEST]})


def count_jobs_without_large(engine: Engine, grouped: ibis.Table, cells: int, most: int) -> ibis.Table:
    """As `count_jobs`, without establishments that have more than `most` jobs in total."""
    grouped = engine.store(grouped)
    sizes = grouped.group_by(ENTITY).aggregate(discreet_size=grouped[N].sum())
    large = sizes.filter(sizes["discreet_size"] > most).select(ENTITY)
    return count_jobs(grouped.anti_join(large, ENTITY), cells)
