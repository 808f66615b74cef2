"""Derived columns: their common interface, and those of a single column of the source."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.intake.normalise import (
    NUMBER,
    REAL,
    absent,
    check_code,
    check_id,
    check_number,
    compared,
    numbers,
    plain_type,
    texts,
)

if TYPE_CHECKING:
    from discreet.domain.bins import Bins

Codes = NDArray[np.int32]
MISSING, UNDECLARED = -1, -2  # in place of a code


class DerivedColumn:
    """A column derived from columns of a record."""

    @property
    @abstractmethod
    def type(self) -> pa.DataType: ...

    @property
    def values(self) -> int | None:
        """The number of possible values, excluding null; None if records cannot be counted by value."""
        return None

    @property
    def repeats(self) -> bool:
        """Whether it is derived from codes, of which few different ones are expected."""
        return False

    check: Callable[[str, pa.DataType, str], None]  # refuses a source by a column's type, whatever its values
    unlisted: int | bool | None = None  # the value for a record that is not listed in the lookup table

    @property
    @abstractmethod
    def name(self) -> str:
        """The column's name within engines."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The columns of the source that it is derived from."""

    @abstractmethod
    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        """One value for each record."""

    def through(self, columns: Sequence[pa.Array]) -> pa.Array:
        """As `make`, but entry by entry for a dictionary-encoded column: a value's result depends on it alone."""
        if len(columns) != 1 or not pa.types.is_dictionary(columns[0].type):
            return self.make(columns)
        entries, indices = columns[0].dictionary, columns[0].indices
        derived = self.make([pa.concat_arrays([entries, pa.nulls(1, entries.type)])])  # the last for missing values
        return derived.take(indices.cast(pa.int64()).fill_null(len(entries)) if indices.null_count else indices)


def named(kind: str, *parts: object) -> str:
    """A name that no two declarations share, even if an engine ignores case."""
    text = json.dumps([kind, *parts], ensure_ascii=False, default=str)
    return f"discreet_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, eq=False)
class TextIndex:
    """Distinct texts and their numbers."""

    texts: pa.Array

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextIndex:
        return cls(pa.array(dict.fromkeys(texts), pa.large_string()))

    def find(self, values: pa.Array, width: int | None = None) -> Codes:
        """The number of each value, zero-padded to a width; MISSING or UNDECLARED if it has none."""
        if pa.types.is_dictionary(values.type):
            indices = values.indices.cast(pa.int64())  # the original type may be too narrow for one more number
            place = indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
            codes: Codes = np.append(self.find(values.dictionary, width), np.int32(MISSING))[place]
            return codes
        text = texts(values, width)
        numbers = pc.fill_null(pc.index_in(text, value_set=self.texts), UNDECLARED).to_numpy(zero_copy_only=False)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), np.int32(MISSING), numbers)


@dataclass(frozen=True)
class _SingleColumn(DerivedColumn):
    column: str

    @cached_property
    def name(self) -> str:
        return named(type(self).__name__.lower(), *astuple(self))

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        return self.of(columns[0])

    @abstractmethod
    def of(self, values: pa.Array) -> pa.Array:
        """One value for each value of the column."""


class _Value(_SingleColumn):
    check = staticmethod(check_number)


class _Code(_SingleColumn):
    repeats = True
    check = staticmethod(check_code)


@dataclass(frozen=True)
class Bin(_Value):
    """The number of a value's bin; null if it is not numeric."""

    bins: Bins

    type = pa.int32()

    @property
    def values(self) -> int:
        return self.bins.count

    def of(self, values: pa.Array) -> pa.Array:
        low, _, present = compared(values)
        return pa.array(self.bins.number(low).astype(np.int32), mask=~present)


@dataclass(frozen=True)
class SampleCondition(_SingleColumn):
    """Whether a value lies between integer bounds, and is one of some codes; false if it is missing."""

    at_least: int | None = None
    at_most: int | None = None
    equals: tuple[str, ...] | None = None

    type = pa.bool_()
    values = 2
    unlisted = False

    @property
    def repeats(self) -> bool:
        return not self._ranged

    def description(self) -> str:
        """The condition, in text."""
        parts = [f"at least {self.at_least:,}"] if self.at_least is not None else []
        parts += [f"at most {self.at_most:,}"] if self.at_most is not None else []
        parts = [f"{self.column} of {' and '.join(parts)}"] if parts else []
        parts += [f"`{self.column}` one of ({', '.join(self.equals)})"] if self.equals is not None else []
        return " and ".join(parts)

    @property
    def _ranged(self) -> bool:
        return self.at_least is not None or self.at_most is not None

    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        if self.equals is not None:
            check_code(column, kind, where)
        if self._ranged:
            check_number(column, kind, where)

    def of(self, values: pa.Array) -> pa.Array:
        holds = np.ones(len(values), np.bool_)
        if self.equals is not None:
            holds &= TextIndex.of(self.equals).find(values) >= 0
        if self._ranged:
            low, high, present = compared(values)
            holds &= present
            holds &= True if self.at_least is None else low >= self.at_least
            holds &= True if self.at_most is None else high <= self.at_most
        return pa.array(holds)


@dataclass(frozen=True)
class Number(_Value):
    """A value as float64; null if it is not numeric. Neither NaN nor −0 occurs, so all engines order it alike."""

    type = pa.float64()

    def of(self, values: pa.Array) -> pa.Array:
        return numbers(values)


@dataclass(frozen=True)
class Indicator(_Code):
    """1 if a value is one of some codes, else 0; null if it is missing."""

    codes: tuple[str, ...]

    type = pa.float64()

    def of(self, values: pa.Array) -> pa.Array:
        numbers = TextIndex.of(self.codes).find(values)
        return pa.array((numbers >= 0).astype(np.float64), mask=numbers == MISSING)


@dataclass(frozen=True)
class KeyPart(_Code):
    """The number of a value among declared texts, one above the last for any other; null if it is missing."""

    width: int | None
    texts: tuple[str, ...]

    type = pa.int32()

    @property
    def values(self) -> int:
        return len(self.texts) + 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        return self._numbers[text]

    def of(self, values: pa.Array) -> pa.Array:
        numbers = TextIndex.of(self.texts).find(values, self.width)
        return pa.array(np.where(numbers < 0, len(self.texts), numbers).astype(np.int32), mask=numbers == MISSING)


LONGEST = 1 << 16  # bytes of an identifier; a longer text counts as missing, and cannot exhaust an engine's memory


@dataclass(frozen=True)
class Identifier(_SingleColumn):
    """The identifier of a privacy unit or a lookup key: an integer if it is one in every table, else text."""

    whole: bool  # an integer

    check = staticmethod(check_id)

    @cached_property
    def name(self) -> str:
        return identifier(self.column)

    @property
    def type(self) -> pa.DataType:
        return pa.int64() if self.whole else pa.large_string()

    @staticmethod
    def fits(kind: pa.DataType) -> bool:
        """Whether all values of a type are signed 64-bit integers."""
        plain = plain_type(kind)
        return bool(pa.types.is_integer(plain) and not pa.types.is_uint64(plain))

    def of(self, values: pa.Array) -> pa.Array:
        if self.whole:
            return pc.cast(values, pa.int64())
        text = texts(values)
        return pc.if_else(pc.less_equal(pc.binary_length(text), LONGEST), text, None)


def identifier(column: str) -> str:
    """The name of the identifier derived from a column."""
    return named("identifier", column)


# --- of one column, for `discreet check` ----------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberStatus(_Value):
    """Whether a value is numeric (0), missing (1) or something else (2), by the pattern `NUMBER` (plain) or `REAL`."""

    plain: bool

    type = pa.int32()
    values = 3
    unlisted = 1

    def of(self, values: pa.Array) -> pa.Array:
        parsed = numbers(values, NUMBER if self.plain else REAL)
        return pc.if_else(absent(values), 1, pc.if_else(parsed.is_null(), 2, 0)).cast(pa.int32())


@dataclass(frozen=True)
class CodeText(_Code):
    """A value as the text of its code."""

    width: int | None

    type = pa.large_string()

    def of(self, values: pa.Array) -> pa.Array:
        return texts(values, self.width)
