"""Records as observations: the cell and the bounded values of each, one row per record.

How a value is derived depends on its record alone; a record with a missing value is dropped.
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
    """The records that estimates are computed from."""

    records: Records
    unit: Unit
    secret: Secret
    progress: Progress = no_progress

    def rows(self, engine: Engine, domain: Domain, observed: Sequence[ObservedValue]) -> ibis.Table:
        """The category columns, then the raw value of each variable, `discreet_value_0` and so on: of every record
        without missing values; per unit at most `max_records` of those whose values are usable."""
        table = self.records.with_lookups(engine)
        values = {f"discreet_value_{i}": value.raw(table) for i, value in enumerate(observed)}
        codes = used_columns([domain])
        entity = [] if self.unit.entity is None else [identifier(self.unit.entity)]
        rows = table.select(**{c: table[c] for c in dict.fromkeys([*codes, *entity])}, **values)
        rows = rows.filter(reduce(operator.and_, (rows[name].notnull() for name in values)))
        if self.unit.entity is None:
            return rows
        used = (value.usable(rows[name]) for value, name in zip(observed, values, strict=True))
        rows = rows.filter(reduce(operator.and_, used))
        return limit_contributions(engine, rows, [*codes, *values], [domain], self.unit, self.secret).select(
            *codes, *values
        )

    def of(self, engine: Engine, domain: Domain, observed: Sequence[ObservedValue]) -> ibis.Table:
        """Columns `cell`, then the raw value of each variable: of every record with a cell and all values."""
        rows = self.rows(engine, domain, observed)
        values = {f"discreet_value_{i}": rows[f"discreet_value_{i}"] for i in range(len(observed))}
        cells = rows.select(**{CELL: cell_number(rows, domain)}, **values)
        return engine.store(cells.filter(cells[CELL].notnull()))  # one snapshot


def observations(reading: RecordReading) -> Observations:
    """The observations of a release's reading."""
    return Observations(reading.records, reading.unit, reading.secret, reading.progress)
