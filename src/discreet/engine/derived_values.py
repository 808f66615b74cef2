"""What a table makes of a record's values: a bin, or a bounded number. A function of the record alone, so it costs
nothing: a record that is not in the sample, or has no value, has no bin, and is dropped by the tables that use it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import ibis
import numpy as np
from numpy.typing import NDArray

from discreet.engine.intake.derived import Bin, DerivedColumn, Indicator, Number, NumberStatus, SampleCondition

if TYPE_CHECKING:
    from discreet.domain.bins import Bins

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BinnedValue:
    """A column of bins, from 0, to be made of a column of values."""

    name: str
    value: str
    bins: Bins
    sample: tuple[SampleCondition, ...] = ()  # what must hold for a record to be in the sample

    @property
    def bin(self) -> Bin:
        """The value's bin, whether it is in the sample or not."""
        return Bin(self.value, self.bins)

    @property
    def derived(self) -> tuple[DerivedColumn, ...]:
        return (self.bin, *self.sample)

    @property
    def preflight_columns(self) -> tuple[DerivedColumn, ...]:
        """What the preflight looks at besides."""
        return NumberStatus(self.value, plain=True), SampleCondition(self.value, self.bins.edges[0])

    def description(self) -> str:
        """The rule, for a plan."""
        sample = ", ".join(rule.description() for rule in self.sample)
        kept = f"only records with {sample} count; " if sample else ""
        return f"{self.value}: {kept}values below {self.bins.edges[0]:,} belong to the first of {self.bins.count} bins"

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        """What can become of a record, besides being counted in its bin."""
        legible = table[self.preflight_columns[0].name]
        held = reduce(operator.and_, (table[rule.name] for rule in self.sample), ibis.literal(True))
        inside = (legible == 0) & held
        return {
            "missing": legible == 1,
            "unreadable": legible == 2,
            "outside": (legible == 0) & ~held,
            "below": inside & ~table[self.preflight_columns[1].name],
        }


@dataclass(frozen=True)
class ObservedValue:
    """A value that is made of one column of a record."""

    name: str
    column: str
    low: float
    high: float
    outside: Literal["clamp", "drop"] = "clamp"
    equals: tuple[str, ...] | None = None  # codes that are 1, all others 0
    ranked: bool = False  # among public thresholds, later: here it keeps its own size

    @property
    def derived(self) -> tuple[DerivedColumn, ...]:
        """The column that it is made of."""
        return (Number(self.column) if self.equals is None else Indicator(self.column, self.equals),)

    @property
    def preflight_columns(self) -> tuple[DerivedColumn, ...]:
        """What the preflight looks at besides."""
        return () if self.equals is not None else (NumberStatus(self.column, plain=False),)

    def raw(self, table: ibis.Table) -> ibis.Value:
        """The value as it stands, float64; null where the record has none."""
        return table[self.derived[0].name]

    def bounded(self, values: Floats) -> Floats:
        """Within the bounds; not a number where the record is dropped."""
        found = values + 0.0
        if self.ranked:
            return found
        if self.outside == "clamp":
            return np.clip(found, self.low, self.high)
        return np.where((found >= self.low) & (found <= self.high), found, np.nan)

    def changes(self, values: Floats) -> bool:
        """Whether `bounded` makes anything else of these; false means that they may stay as they are."""
        if not values.size:
            return False
        least, most = values.min(), values.max()  # not a number if one of them is not
        inside = self.low <= least and most <= self.high
        return not inside or (least <= 0 <= most and bool(np.signbit(values[values == 0]).any()))

    def usable(self, values: ibis.Value) -> ibis.Value:
        """Whether `bounded` keeps a raw value: asked of the engine where a record could take another's place."""
        there = values.notnull()
        return there & values.between(self.low, self.high) if self.outside == "drop" and not self.ranked else there

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        """What can become of a record's value, besides being used as it is."""
        value, nothing = self.raw(table), ibis.literal(False)
        if self.equals is not None:
            return {"missing": value.isnull(), "unreadable": nothing, "outside": nothing}
        legible = table[self.preflight_columns[0].name]
        beyond = ~value.between(self.low, self.high).fill_null(True)
        return {
            "missing": legible == 1,
            "unreadable": legible == 2,
            "outside": nothing if self.ranked else value.notnull() & beyond,
        }

    def audit_line(self, missing: int, unreadable: int, outside: int) -> str:
        """What the rule does to the records at hand, for the operator; nothing where that goes without saying."""
        fate = "dropped" if self.outside == "drop" else "clamped"
        return (
            f"{self.name}: {missing:,} records without a value and {unreadable:,} with one that is no number are "
            f"dropped; {outside:,} outside {self.low:g} … {self.high:g} are {fate}"
        )

    def description(self) -> str:
        """The rule, for a plan."""
        if self.equals is not None:
            ones = " or ".join(self.equals)
            return f"{self.name}: 1 where {self.column} is {ones}, else 0; records without it are dropped"
        if self.ranked:
            return f"{self.name}: the rank of {self.column} among public thresholds; records without it are dropped"
        fate = "clamped to them" if self.outside == "clamp" else "dropped"
        return (
            f"{self.name}: {self.column} between {self.low:g} and {self.high:g}; records outside are {fate}, without a "
            "value dropped"
        )


def with_bins(table: ibis.Table, binned: Iterable[BinnedValue]) -> ibis.Table:
    """The table and its bins."""
    made = {b.name: in_sample(table, b).ifelse(table[b.bin.name].cast("int64"), ibis.null("int64")) for b in binned}
    return table.mutate(**made) if made else table


def in_sample(table: ibis.Table, made: BinnedValue) -> ibis.Value:
    """Whether a record has a value and is in the sample; never null."""
    return reduce(operator.and_, (table[rule.name] for rule in made.sample), table[made.bin.name].notnull())
