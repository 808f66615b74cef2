"""Weighted totals: record weights as multiples of a declared grid step. A weight depends on its record alone."""

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
    """A weight above 0, rounded to multiples of `grid`; above `high` it is clamped, or the record is dropped."""

    grid: Fraction = Fraction(1)

    def usable(self, values: ibis.Value) -> ibis.Value:
        fits = values <= self.high if self.outside == "drop" else values.notnull()
        return (values > 0).fill_null(False) & fits.fill_null(False)

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        value, missing = self.raw(table), table[self.preflight_columns[0].name] == 1
        positive = (value > 0).fill_null(False)
        return {"missing": missing, "unreadable": ~missing & ~positive, "outside": positive & (value > self.high)}

    def audit_line(self, missing: int, unreadable: int, outside: int) -> str:
        rule = f"count as {self.high:g}" if self.outside == "clamp" else "are dropped"
        return (
            f"{self.name}: {missing:,} records without a weight and {unreadable:,} whose weight is not positive "
            f"are dropped; {outside:,} above {self.high:g} {rule}"
        )

    def description(self) -> str:
        above = (
            f"weights above {self.high:g} count as {self.high:g}"
            if self.outside == "clamp"
            else f"records with a weight above {self.high:g} are dropped"
        )
        return (
            f"{self.column}: a weight above 0, rounded to multiples of {format_exact(self.grid)}; {above}; records "
            "without one are dropped"
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
    """The grid of weights: step size, and in steps the largest weight and the bound on a replicate's deviation."""

    step: Fraction
    largest: int
    bound: int = 0
    squared: bool = False  # also w²/largest, from which sampling variances are computed

    def units(self, values: ibis.Value) -> ibis.Value:
        """floor(value/step + ½) as an integral float64, by the same operations on every engine. Values beyond any
        weight are clamped first: an engine's floor is an integer, and would fail on a record that does not fit."""
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
    deviations = {
        f"d{i}": _between(grid.units(table[name]) - table["discreet_w"], -bound, bound)
        for i, name in enumerate(names[1:])
    }
    if grid.squared:
        deviations["d0"] = (
            (table["discreet_w"] * table["discreet_w"] / float(grid.largest) + 0.5).floor().cast("float64")
        )
    table = table.mutate(**{f"discreet_{name}": value for name, value in deviations.items()})
    sums = ("w", *deviations)
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
