"""Values that a table derives from a record: a bin, or a bounded number. Each is a function of the record alone, so
it has no privacy cost. A record outside the sample, or without a value, has no bin; tables that use the bin drop it.
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
    """A column of bin numbers, from 0, derived from a column of values."""

    name: str
    value: str
    bins: Bins
    sample: tuple[SampleCondition, ...] = ()  # all must hold for a record to be in the sample

    @property
    def bin(self) -> Bin:
        """The value's bin, for records inside and outside the sample."""
        return Bin(self.value, self.bins)

    @property
    def derived(self) -> tuple[DerivedColumn, ...]:
        return (self.bin, *self.sample)

    @property
    def preflight_columns(self) -> tuple[DerivedColumn, ...]:
        """Additional columns that `discreet check` inspects."""
        return NumberStatus(self.value, plain=True), SampleCondition(self.value, self.bins.edges[0])

    def description(self) -> str:
        """The rule, as one sentence of a plan."""
        sample = " and ".join(rule.description() for rule in self.sample)
        restriction = f"only records with {sample} are counted; " if sample else ""
        lowest = f"values below {self.bins.edges[0]:,} belong to the first of {self.bins.count} bins"
        return f"{self.value}: {restriction}{lowest}"

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        """Conditions under which a record is not simply counted in its bin, by name."""
        status = table[self.preflight_columns[0].name]
        in_sample = reduce(operator.and_, (table[rule.name] for rule in self.sample), ibis.literal(True))
        return {
            "missing": status == 1,
            "unreadable": status == 2,
            "outside": (status == 0) & ~in_sample,
            "below": (status == 0) & in_sample & ~table[self.preflight_columns[1].name],
        }


@dataclass(frozen=True)
class ObservedValue:
    """A value derived from one column of a record."""

    name: str
    column: str
    low: float
    high: float
    outside: Literal["clamp", "drop"] = "clamp"
    equals: tuple[str, ...] | None = None  # codes that are 1, all others 0
    ranked: bool = False  # its rank among public thresholds is taken later; here the value stays as it is

    @property
    def derived(self) -> tuple[DerivedColumn, ...]:
        """The derived column that holds it."""
        return (Number(self.column) if self.equals is None else Indicator(self.column, self.equals),)

    @property
    def preflight_columns(self) -> tuple[DerivedColumn, ...]:
        """Additional columns that `discreet check` inspects."""
        return () if self.equals is not None else (NumberStatus(self.column, plain=False),)

    def raw(self, table: ibis.Table) -> ibis.Value:
        """The value before bounding, float64; null if the record has none."""
        return table[self.derived[0].name]

    def bounded(self, values: Floats) -> Floats:
        """Values within the bounds; NaN where the record is dropped."""
        values = values + 0.0  # −0 is 0
        if self.ranked:
            return values
        if self.outside == "clamp":
            return np.clip(values, self.low, self.high)
        return np.where((values >= self.low) & (values <= self.high), values, np.nan)

    def changes(self, values: Floats) -> bool:
        """Whether `bounded` would change any of these values."""
        if not values.size:
            return False
        least, most = values.min(), values.max()  # NaN if one of them is
        inside = self.low <= least and most <= self.high
        return not inside or (least <= 0 <= most and bool(np.signbit(values[values == 0]).any()))

    def usable(self, values: ibis.Value) -> ibis.Value:
        """Whether `bounded` keeps a value, as an expression: needed if a unit's records compete for `max_records`."""
        present = values.notnull()
        return present & values.between(self.low, self.high) if self.outside == "drop" and not self.ranked else present

    def outcomes(self, table: ibis.Table) -> dict[str, ibis.Value]:
        """Conditions under which a value is not used as it is, by name."""
        value, never = self.raw(table), ibis.literal(False)
        if self.equals is not None:
            return {"missing": value.isnull(), "unreadable": never, "outside": never}
        status = table[self.preflight_columns[0].name]
        beyond = ~value.between(self.low, self.high).fill_null(True)
        return {
            "missing": status == 1,
            "unreadable": status == 2,
            "outside": never if self.ranked else value.notnull() & beyond,
        }

    def audit_line(self, missing: int, unreadable: int, outside: int) -> str:
        """The effect of the rule on the records, as a line of `discreet check`; empty if there is nothing to report."""
        rule = "dropped" if self.outside == "drop" else "clamped"
        return (
            f"{self.name}: {missing:,} records without a value and {unreadable:,} with a non-numeric value are "
            f"dropped; {outside:,} outside {self.low:g} … {self.high:g} are {rule}"
        )

    def description(self) -> str:
        """The rule, as one sentence of a plan."""
        if self.equals is not None:
            ones = " or ".join(self.equals)
            return f"{self.name}: 1 where {self.column} is {ones}, else 0; records without it are dropped"
        if self.ranked:
            return f"{self.name}: the rank of {self.column} among public thresholds; records without it are dropped"
        rule = "clamped to them" if self.outside == "clamp" else "dropped"
        column = "" if self.column == self.name else f"{self.column} "
        return (
            f"{self.name}: {column}between {self.low:g} and {self.high:g}; values outside are {rule}; records "
            "without a value are dropped"
        )


def with_bins(table: ibis.Table, binned: Iterable[BinnedValue]) -> ibis.Table:
    """The table with its bin columns."""
    bins = {b.name: in_sample(table, b).ifelse(table[b.bin.name].cast("int64"), ibis.null("int64")) for b in binned}
    return table.mutate(**bins) if bins else table


def in_sample(table: ibis.Table, binned: BinnedValue) -> ibis.Value:
    """Whether a record has a value and is in the sample; never null."""
    return reduce(operator.and_, (table[rule.name] for rule in binned.sample), table[binned.bin.name].notnull())
