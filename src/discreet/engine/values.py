"""From a record's value to its bin, or to a bounded number: one expression, the same on every engine.

Both are functions of the record alone, so they cost nothing. A record that is not in the sample, or has no value, has
no bin, and is dropped by the tables that use it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import ibis
import numpy as np
from numpy.typing import NDArray

from discreet.engine.text import as_text, missing

if TYPE_CHECKING:
    from discreet.binning import Bins
    from discreet.spec.earnings import Rule

Floats = NDArray[np.float64]

# A number as people write it, perhaps between blanks. Engines differ in what else they take for one: 1_000, 0x10, 1e5.
NUMBER = r"^ *([+-]?[0-9]{1,40}([.][0-9]{1,20})?) *$"
# As programs write it: 7.1e-07, .5, 3. An exponent of three digits could leave what a double holds.
REAL = r"^ *([+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})?) *$"


@dataclass(frozen=True)
class Binned:
    """A column of bins, from 0, to be made of a column of values."""

    name: str
    value: str
    bins: Bins
    sample: tuple[Rule, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.value, *(rule.column for rule in self.sample))

    def in_words(self) -> str:
        """The rule, for a plan."""
        sample = ", ".join(rule.in_words() for rule in self.sample)
        kept = f"only records with {sample} count; " if sample else ""
        return (
            f"{self.value}: {kept}values below {self.bins.borders[0]:,} belong to the first of {self.bins.count} bins"
        )


@dataclass(frozen=True)
class Observed:
    """A value that is made of one column of a record."""

    name: str
    column: str
    low: float
    high: float
    outside: Literal["clamp", "drop"] = "clamp"
    equals: tuple[str, ...] | None = None  # codes that are 1, all others 0
    ranked: bool = False  # among public thresholds, later: here it keeps its own size

    def raw(self, table: ibis.Table) -> ibis.Value:
        """The value as it stands, float64; null where the record has none. What is not a number may still be: an engine
        would look at its text, which takes longer than all the rest, so `bounded` does it."""
        column = table[self.column]
        if self.equals is not None:
            one = as_text(column).isin(self.equals).fill_null(False).ifelse(1.0, 0.0)
            return missing(column).ifelse(ibis.null("float64"), one)
        return _real(column)

    def bounded(self, values: Floats) -> Floats:
        """Within the bounds; not a number where the record is dropped. Negative zeros, which engines sort differently,
        become zeros."""
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
        there = ~missing(values)
        return there & values.between(self.low, self.high) if self.outside == "drop" and not self.ranked else there

    def fates(self, table: ibis.Table) -> dict[str, ibis.Value]:
        """What can become of a record's value, besides being used as it is."""
        column = table[self.column]
        none = missing(column)
        if self.equals is not None:
            return {"missing": none, "unreadable": ibis.literal(False), "outside": ibis.literal(False)}
        found = _real(column)
        there = ~missing(found)
        beyond = ~found.between(self.low, self.high).fill_null(True)
        return {
            "missing": none,
            "unreadable": ~none & ~there,
            "outside": ibis.literal(False) if self.ranked else there & beyond,
        }

    def told(self, missing: int, unreadable: int, outside: int) -> str:
        """What the rule does to the records at hand, for the operator; nothing where that goes without saying."""
        fate = "dropped" if self.outside == "drop" else "clamped"
        return (
            f"{self.name}: {missing:,} records without a value and {unreadable:,} with one that is no number are "
            f"dropped; {outside:,} outside {self.low:g} … {self.high:g} are {fate}"
        )

    def in_words(self) -> str:
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


def _real(column: ibis.Value) -> ibis.Value:
    """A column as float64, alike on every engine; text that is no number is null."""
    if column.type().is_decimal():
        column = column.cast("string")  # engines divide decimals differently; a text they all read correctly
    return number(column, REAL).cast("float64")


def value_columns(binned: Sequence[Binned], codes: Sequence[str], observed: Sequence[Observed] = ()) -> dict[str, bool]:
    """The columns that are read as numbers, and whether as codes as well."""
    coded = {*codes, *(made.column for made in observed if made.equals is not None)}
    real = [made.column for made in observed if made.equals is None]
    compared = {rule.column for made in binned for rule in made.sample if rule.equals is not None}
    ranged = [r.column for made in binned for r in made.sample if r.at_least is not None or r.at_most is not None]
    return {column: column in compared | coded for column in [*(made.value for made in binned), *ranged, *real]}


def with_bins(table: ibis.Table, binned: Sequence[Binned]) -> ibis.Table:
    """The table and its bins."""
    return table.mutate(**{made.name: _bin(table, made) for made in binned}) if binned else table


def _bin(table: ibis.Table, made: Binned) -> ibis.Value:
    place = _place(number(table[made.value]), made.bins.borders[1:-1], 0)
    return sampled(table, made).ifelse(place, ibis.null("int64"))


def _place(value: ibis.Value, borders: Sequence[int], first: int) -> ibis.Value:
    """How many borders lie at or below a value, by halves: as few comparisons as can be."""
    if not borders:
        return ibis.literal(first, "int64")
    half = len(borders) // 2
    lower, upper = _place(value, borders[:half], first), _place(value, borders[half + 1 :], first + half + 1)
    return compared(value, "<", borders[half]).ifelse(lower, upper)


def compared(value: ibis.Value, sign: Literal["<", "<=", ">="], border: int) -> ibis.Value:
    """A comparison that no record can make fail: where the column's type decides it, no value is looked at.

    An engine brings a border to the type of a decimal column, or of an unsigned one, and stops where it does not fit;
    but only when it meets a record that it must compare. Whether there is such a record must not show.
    """
    kind, above, below = value.type(), False, False
    if kind.is_decimal():
        if kind.precision is None or kind.scale is None:
            value = value.cast("float64")
        else:
            above, below = (abs(border) >= 10 ** (kind.precision - kind.scale) and s * border > 0 for s in (1, -1))
    elif kind.is_unsigned_integer():
        below = border < 0
    if above or below:
        return ibis.literal(above == (sign != ">="))
    return {"<": operator.lt, "<=": operator.le, ">=": operator.ge}[sign](value, border)


def sampled(table: ibis.Table, made: Binned) -> ibis.Value:
    """Whether a record has a value and is in the sample; never null."""
    return reduce(operator.and_, (_holds(table, rule) for rule in made.sample), ~missing(number(table[made.value])))


def fates(table: ibis.Table, made: Binned) -> dict[str, ibis.Value]:
    """What can become of a record, besides being counted in its bin."""
    value, inside = table[made.value], sampled(table, made)
    broken = missing(number(value))
    return {
        "missing": missing(value),
        "unreadable": ~missing(value) & broken,
        "outside": ~broken & ~inside,
        "below": inside & compared(number(value), "<", made.bins.borders[0]).fill_null(False),
    }


def _holds(table: ibis.Table, rule: Rule) -> ibis.Value:
    column, parts = table[rule.column], []
    if rule.at_least is not None:
        parts.append(compared(number(column), ">=", rule.at_least))
    if rule.at_most is not None:
        parts.append(compared(number(column), "<=", rule.at_most))
    if rule.equals is not None:
        parts.append(as_text(column).isin(rule.equals))
    none = missing(number(column)) if rule.equals is None else missing(column)
    return ~none & reduce(operator.and_, parts).fill_null(False)


def number(column: ibis.Value, pattern: str = NUMBER) -> ibis.Value:
    """A column as numbers; text that is none is missing."""
    if column.type().is_string():
        # What matches must be all of it: in Java `$` stands before a last line break, too.
        plain = (column.re_extract(pattern, 0) == column).fill_null(False) & (column != "")
        return plain.ifelse(column.re_extract(pattern, 1), ibis.null("string")).cast("float64")
    return column.cast("float64") if column.type().is_floating() else column
