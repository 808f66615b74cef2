"""Weights of records, as whole steps of a declared grid: what a record weighs is decided by the record alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import ibis

from discreet.domain import Domain
from discreet.engine import Engine
from discreet.engine.derived_values import ObservedValue
from discreet.engine.intake.derived import DerivedColumn, Number
from discreet.engine.intake.normalise import WHOLE
from discreet.engine.observations import Observations
from discreet.engine.spans import CELL
from discreet.engine.tabulate import cell_number
from discreet.privacy.exact import format_exact


@dataclass(frozen=True)
class RecordWeight(ObservedValue):
    """A weight above 0, rounded to multiples of `grid`; above `high` it counts as that, or the record is dropped."""

    grid: Fraction = Fraction(1)

    def usable(self, values: ibis.Value) -> ibis.Value:
        fits = values <= self.high if self.outside == "drop" else values.notnull()
        return (values > 0).fill_null(False) & fits.fill_null(False)

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        value, none = self.raw(table), table[self.preflight_columns[0].name] == 1
        positive = (value > 0).fill_null(False)
        return {"missing": none, "unreadable": ~none & ~positive, "outside": positive & (value > self.high)}

    def audit_line(self, missing: int, unreadable: int, outside: int) -> str:
        fate = f"count as {self.high:g}" if self.outside == "clamp" else "are dropped"
        return (
            f"{self.name}: {missing:,} records without a weight and {unreadable:,} whose weight is no positive number "
            f"are dropped; {outside:,} above {self.high:g} {fate}"
        )

    def description(self) -> str:
        fate = f"counts as {self.high:g}" if self.outside == "clamp" else "means that the record is dropped"
        return (
            f"{self.column}: a weight above 0, rounded to multiples of {format_exact(self.grid)}; above {self.high:g} "
            f"it {fate}; records without one are dropped"
        )


@dataclass(frozen=True)
class ReplicateWeight(ObservedValue):
    """A replicate weight; a record without one keeps its own weight in that replicate."""

    weight: str = ""

    @property
    def derived(self) -> tuple[DerivedColumn, ...]:
        return (*super().derived, Number(self.weight))

    def raw(self, table: ibis.Table) -> ibis.Value:
        return self._own(table).fill_null(RecordWeight(self.weight, self.weight, 0, self.high).raw(table))

    def _own(self, table: ibis.Table) -> ibis.Value:
        return super().raw(table)

    def usable(self, values: ibis.Value) -> ibis.Value:
        return values.notnull()

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        missed = self._own(table).isnull()
        return {"missing": missed, "unreadable": ibis.literal(False), "outside": ibis.literal(False)}

    def audit_line(self, missing: int, unreadable: int, outside: int) -> str:  # noqa: ARG002 - one signature for all
        return f"{self.name}: {missing:,} records without it keep their weight" if missing else ""

    def description(self) -> str:
        return "replicate weights: a record without one keeps its weight"


@dataclass(frozen=True)
class WeightGrid:
    """Steps of weights: the size of one, the largest weight, and how far a replicate's may lie from it."""

    step: Fraction
    largest: int
    bound: int = 0
    squared: bool = False  # also w²/largest, of which sampling variances are made

    def units(self, values: ibis.Value) -> ibis.Value:
        """floor(value/step + ½), a float64 that is whole: the same operations on every engine. What lies beyond any
        weight is cut first: an engine takes the floor as an integer, and would stop at a record that does not fit."""
        scaled = values * float(self.step.denominator) / float(self.step.numerator)
        return (_between(scaled, -WHOLE, WHOLE) + 0.5).floor().cast("float64")


def weigh_cells(
    engine: Engine, rows: Observations, domain: Domain, observed: Sequence[ObservedValue], grid: WeightGrid
) -> ibis.Table:
    """The occupied cells: columns `cell`, `n`, `w` and `d0`, `d1`, … in steps of the grid."""
    table = rows.rows(engine, domain, observed)
    names = [f"discreet_value_{i}" for i in range(len(observed))]
    table = table.filter(observed[0].usable(table[names[0]]))
    table = table.mutate(discreet_w=_between(grid.units(table[names[0]]), 0.0, float(grid.largest)))
    bound = float(grid.bound)
    moved = {
        f"d{i}": _between(grid.units(table[name]) - table["discreet_w"], -bound, bound)
        for i, name in enumerate(names[1:])
    }
    if grid.squared:
        moved["d0"] = (table["discreet_w"] * table["discreet_w"] / float(grid.largest) + 0.5).floor().cast("float64")
    table = table.mutate(**{f"discreet_{name}": value for name, value in moved.items()})
    sums = ("w", *moved)
    cells = table.mutate(**{CELL: cell_number(table, domain)})
    cells = cells.filter(cells[CELL].notnull())
    return engine.store(
        cells.group_by(CELL).aggregate(
            n=cells.count(), **{name: _summed(cells[f"discreet_{name}"].cast("int64")) for name in sums}
        )
    )


def _summed(values: ibis.Value) -> ibis.Value:
    return values.sum().cast("int64")


def _between(values: ibis.Value, low: float, high: float) -> ibis.Value:
    """Clamped."""
    return (values >= high).ifelse(high, (values <= low).ifelse(low, values))
