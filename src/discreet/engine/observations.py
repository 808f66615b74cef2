"""Records as observations: the cell that each lies in and its bounded values, one row a record.

What a value becomes is decided by the record alone; a record without one of its values is dropped.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import ibis

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.derived_values import ObservedValue
from discreet.engine.intake.derived import identifier
from discreet.engine.lookups import Records
from discreet.engine.spans import CELL, Progress, no_progress
from discreet.engine.tabulate import RecordReading, cell_number, limit_contributions, used_columns
from discreet.noise.key import Secret
from discreet.privacy.guarantee import Unit


@dataclass(frozen=True)
class Observations:
    """The records that estimates are made of."""

    records: Records
    unit: Unit
    secret: Secret
    progress: Progress = no_progress

    def rows(self, engine: Engine, domain: Domain, observed: Sequence[ObservedValue]) -> ibis.Table:
        """The columns of codes, then the raw value of each variable, `discreet_value_0` and so on: every record with
        values; of each unit as many as count, of those whose values can be used."""
        table = self.records.with_lookups(engine)
        values = {f"discreet_value_{i}": made.raw(table) for i, made in enumerate(observed)}
        codes = used_columns([domain])
        entity = [] if self.unit.entity is None else [identifier(self.unit.entity)]
        rows = table.select(**{c: table[c] for c in dict.fromkeys([*codes, *entity])}, **values)
        rows = rows.filter(reduce(operator.and_, (rows[name].notnull() for name in values)))
        if self.unit.entity is None:
            return rows
        used = (made.usable(rows[name]) for made, name in zip(observed, values, strict=True))
        rows = rows.filter(reduce(operator.and_, used))
        return limit_contributions(engine, rows, [*codes, *values], [domain], self.unit, self.secret).select(
            *codes, *values
        )

    def of(self, engine: Engine, domain: Domain, observed: Sequence[ObservedValue]) -> ibis.Table:
        """Columns `cell`, then the raw value of each variable: every record with a cell and values."""
        rows = self.rows(engine, domain, observed)
        values = {f"discreet_value_{i}": rows[f"discreet_value_{i}"] for i in range(len(observed))}
        cells = rows.select(**{CELL: cell_number(rows, domain)}, **values)
        return engine.store(cells.filter(cells[CELL].notnull()))  # one snapshot


def observations(reading: RecordReading) -> Observations:
    """Of what a release has read."""
    return Observations(reading.records, reading.unit, reading.secret, reading.progress)
