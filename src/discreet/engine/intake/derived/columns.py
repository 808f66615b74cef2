"""Derived columns: what they have in common, a name, a type, a vocabulary, and those of one column of the source."""

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
MISSING, UNDECLARED = -1, -2  # instead of a code


class DerivedColumn:
    """A column to be made of columns of a record."""

    @property
    @abstractmethod
    def type(self) -> pa.DataType: ...

    @property
    def values(self) -> int | None:
        """How many there can be besides none; None: it cannot be counted by value."""
        return None

    @property
    def repeats(self) -> bool:
        """Whether it is made of codes, of which few are expected."""
        return False

    check: Callable[[str, pa.DataType, str], None]  # refuses a source by the type of a column, whatever is in it
    unlisted: int | bool | None = None  # what a record has of it that is not in the table it is looked up in

    @property
    @abstractmethod
    def name(self) -> str:
        """The column's name inside engines."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The columns of the source that it is made of."""

    @abstractmethod
    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        """One value for each record."""

    def through(self, columns: Sequence[pa.Array]) -> pa.Array:
        """As `make`; of a dictionary, by way of its entries: each value stands for itself, wherever it is."""
        if len(columns) != 1 or not pa.types.is_dictionary(columns[0].type):
            return self.make(columns)
        words, places = columns[0].dictionary, columns[0].indices
        made = self.make([pa.concat_arrays([words, pa.nulls(1, words.type)])])  # and what is missing
        return made.take(places.cast(pa.int64()).fill_null(len(words)) if places.null_count else places)


def named(kind: str, *parts: object) -> str:
    """A name that no two declarations share, also where an engine takes A for a."""
    text = json.dumps([kind, *parts], ensure_ascii=False, default=str)
    return f"discreet_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@dataclass(frozen=True, eq=False)
class TextIndex:
    """Texts, and the number of each."""

    words: pa.Array

    @classmethod
    def of(cls, words: Sequence[str]) -> TextIndex:
        return cls(pa.array(dict.fromkeys(words), pa.large_string()))

    def find(self, values: pa.Array, width: int | None = None) -> Codes:
        """The number of each value, padded with zeros to a width; MISSING or UNDECLARED where it has none."""
        if pa.types.is_dictionary(values.type):
            indices = values.indices.cast(pa.int64())  # which may be too narrow for one number more
            place = indices.fill_null(len(values.dictionary)).to_numpy(zero_copy_only=False)
            codes: Codes = np.append(self.find(values.dictionary, width), np.int32(MISSING))[place]
            return codes
        text = texts(values, width)
        found = pc.fill_null(pc.index_in(text, value_set=self.words), UNDECLARED).to_numpy(zero_copy_only=False)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), np.int32(MISSING), found)


@dataclass(frozen=True)
class _OfColumn(DerivedColumn):
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
        """One value for each of the column's."""


class _Value(_OfColumn):
    check = staticmethod(check_number)


class _Code(_OfColumn):
    repeats = True
    check = staticmethod(check_code)


@dataclass(frozen=True)
class Bin(_Value):
    """The number of the bin that a value lies in; none where it is no number."""

    bins: Bins

    type = pa.int32()

    @property
    def values(self) -> int:
        return self.bins.count

    def of(self, values: pa.Array) -> pa.Array:
        low, _, there = compared(values)
        return pa.array(self.bins.number(low).astype(np.int32), mask=~there)


@dataclass(frozen=True)
class SampleCondition(_OfColumn):
    """Whether a value lies between whole bounds, and is one of some codes; false where there is none."""

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
        """The condition as one says it."""
        parts = [f"at least {self.at_least:,}"] if self.at_least is not None else []
        parts += [f"at most {self.at_most:,}"] if self.at_most is not None else []
        parts += [f"one of {', '.join(self.equals)}"] if self.equals is not None else []
        return f"{self.column} {' and '.join(parts)}"

    @property
    def _ranged(self) -> bool:
        return self.at_least is not None or self.at_most is not None

    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        if self.equals is not None:
            check_code(column, kind, where)
        if self._ranged:
            check_number(column, kind, where)

    def of(self, values: pa.Array) -> pa.Array:
        held = np.ones(len(values), np.bool_)
        if self.equals is not None:
            held &= TextIndex.of(self.equals).find(values) >= 0
        if self._ranged:
            low, high, there = compared(values)
            held &= there
            held &= True if self.at_least is None else low >= self.at_least
            held &= True if self.at_most is None else high <= self.at_most
        return pa.array(held)


@dataclass(frozen=True)
class Number(_Value):
    """A value as float64; none where it is no number. There is neither NaN nor −0, so all engines order it alike."""

    type = pa.float64()

    def of(self, values: pa.Array) -> pa.Array:
        return numbers(values)


@dataclass(frozen=True)
class Indicator(_Code):
    """1 where a value is one of some codes, else 0; none where there is no value."""

    codes: tuple[str, ...]

    type = pa.float64()

    def of(self, values: pa.Array) -> pa.Array:
        found = TextIndex.of(self.codes).find(values)
        return pa.array((found >= 0).astype(np.float64), mask=found == MISSING)


@dataclass(frozen=True)
class KeyPart(_Code):
    """The number of a value among some words, and one above the last for any other; none where there is no value."""

    width: int | None
    words: tuple[str, ...]

    type = pa.int32()

    @property
    def values(self) -> int:
        return len(self.words) + 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def number(self, word: str) -> int:
        return self._numbers[word]

    def of(self, values: pa.Array) -> pa.Array:
        found = TextIndex.of(self.words).find(values, self.width)
        return pa.array(np.where(found < 0, len(self.words), found).astype(np.int32), mask=found == MISSING)


LONGEST = 1 << 16  # bytes of an identifier; a longer text is none, and cannot exhaust an engine's memory


@dataclass(frozen=True)
class Identifier(_OfColumn):
    """Whom a record is about, or what it is looked up by: a whole number where every table has one, else text."""

    whole: bool

    check = staticmethod(check_id)

    @cached_property
    def name(self) -> str:
        return identifier(self.column)

    @property
    def type(self) -> pa.DataType:
        return pa.int64() if self.whole else pa.large_string()

    @staticmethod
    def fits(kind: pa.DataType) -> bool:
        """Whether all values of a type are whole numbers of 64 bits."""
        plain = plain_type(kind)
        return bool(pa.types.is_integer(plain) and not pa.types.is_uint64(plain))

    def of(self, values: pa.Array) -> pa.Array:
        if self.whole:
            return pc.cast(values, pa.int64())
        text = texts(values)
        return pc.if_else(pc.less_equal(pc.binary_length(text), LONGEST), text, None)


def identifier(column: str) -> str:
    """The name of the identifier that is made of a column."""
    return named("identifier", column)


# --- of one column, for the preflight -------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberStatus(_Value):
    """A value that is a number (0), none (1), something else (2): as people write it, or as programs do."""

    plain: bool

    type = pa.int32()
    values = 3
    unlisted = 1

    def of(self, values: pa.Array) -> pa.Array:
        read = numbers(values, NUMBER if self.plain else REAL)
        return pc.if_else(absent(values), 1, pc.if_else(read.is_null(), 2, 0)).cast(pa.int32())


@dataclass(frozen=True)
class CodeText(_Code):
    """A value as its code would be written."""

    width: int | None

    type = pa.large_string()

    def of(self, values: pa.Array) -> pa.Array:
        return texts(values, self.width)
