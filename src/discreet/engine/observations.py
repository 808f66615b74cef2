"""Records as observations: the cell that each lies in and its bounded values, one row a record.

What a value becomes is decided by the record alone; a record without one of its values is dropped.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import ibis
from ibis import _

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.joining import Records
from discreet.engine.spans import CELL, Progress, quiet
from discreet.engine.tabulate import N, cell_number, code, limited, used_columns
from discreet.engine.values import Observed
from discreet.noise.key import Secret
from discreet.privacy.unit import Unit


@dataclass(frozen=True)
class Observations:
    """The records that estimates are made of."""

    records: Records
    unit: Unit
    secret: Secret
    progress: Progress = quiet

    def rows(self, engine: Engine, domain: Domain, observed: Sequence[Observed]) -> ibis.Table:
        """The columns of codes, then the raw value of each variable, `discreet_value_0` and so on: every record with
        values; of each unit as many as count, of those whose values can be used."""
        table = self.records.joined()
        values = {f"discreet_value_{i}": made.raw(table) for i, made in enumerate(observed)}
        codes = used_columns([domain])
        entity = [] if self.unit.entity is None else [self.unit.entity]
        rows = table.select(**{c: table[c] for c in dict.fromkeys([*codes, *entity])}, **values)
        rows = rows.filter(reduce(operator.and_, (rows[name].notnull() for name in values)))
        if self.unit.entity is None:
            return rows
        used = (made.usable(rows[name]) for made, name in zip(observed, values, strict=True))
        rows = rows.filter(reduce(operator.and_, used))
        return limited(engine, rows, [*codes, *values], [domain], self.unit, self.secret).select(*codes, *values)

    def of(self, engine: Engine, domain: Domain, observed: Sequence[Observed]) -> ibis.Table:
        """Columns `cell`, then the raw value of each variable: every record with a cell and values."""
        codes, values = used_columns([domain]), [f"discreet_value_{i}" for i in range(len(observed))]
        rows = self.rows(engine, domain, observed)
        rows = engine.store(rows)  # one snapshot: codes are looked up on the rows that are used
        if not codes:
            return rows.select(**{CELL: ibis.literal(0, "int64")}, **{name: rows[name] for name in values})
        listed = code(engine, rows.group_by(codes).aggregate(**{N: _.count()}), domain)
        raw = {f"discreet_raw_{i}": listed[c] for i, c in enumerate(codes)}  # a record may have a column `cell`
        cells = listed.select(**raw, discreet_cell=cell_number(listed, domain))
        cells = engine.store(cells.filter(cells["discreet_cell"].notnull()))
        joined = rows.inner_join(cells, [rows[c].identical_to(cells[r]) for c, r in zip(codes, raw, strict=True)])
        return joined.select(**{CELL: cells["discreet_cell"]}, **{name: rows[name] for name in values})
