"""What derived columns have in common: a name, a type, what they may be made of by its type alone, and vocabularies."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.intake.normalise import MOST_DIGITS, MOST_SCALE, is_text, plain_type, texts
from discreet.engine.scan import Decimals
from discreet.errors import SourceError

Codes = NDArray[np.int32]
MISSING, UNDECLARED = -1, -2  # instead of a code


class Derived:
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
class Vocabulary:
    """Texts, and the number of each."""

    words: pa.Array

    @classmethod
    def of(cls, words: Sequence[str]) -> Vocabulary:
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


# --- a source is refused whatever it holds, or read whatever it holds ------------------------------------------------


def check_code(column: str, kind: pa.DataType, where: str) -> None:
    """Codes are texts, numbers, truths or dates."""
    plain = plain_type(kind)
    if not (is_text(plain) or pa.types.is_boolean(plain) or pa.types.is_date(plain) or _number(plain) or _whole(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which cannot be matched with codes",
            where=where,
            do="provide it as text or whole numbers",
        )


def check_number(column: str, kind: pa.DataType, where: str) -> None:
    """Values are numbers of any kind, or texts that may be some."""
    plain = plain_type(kind)
    if not (is_text(plain) or _number(plain) or _decimal(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which is no number",
            where=where,
            do="provide it as whole or real numbers",
        )


def check_id(column: str, kind: pa.DataType, where: str) -> None:
    """Identifiers are texts, whole numbers, truths or dates. Real numbers are none: they cannot tell large ones apart;
    nor are decimals, which can write one number in several ways."""
    plain = plain_type(kind)
    decimals = isinstance(plain, Decimals) or (pa.types.is_decimal(plain) and not _whole(plain))
    if pa.types.is_floating(plain) or decimals:
        raise SourceError(
            f"column {column!r} says whom a record is about, and is of type {kind}, which can merge two ids or write "
            "one in several ways",
            where=where,
            do="provide it as text or as whole numbers of 64 bits (pandas: read it as str, or astype('Int64'); SAS: "
            "put(id, 20.); Stata: tostring; SQL: CAST(id AS VARCHAR))",
        )
    check_code(column, kind, where)


def _whole(kind: pa.DataType) -> bool:
    """Decimals without digits behind the point: each is written in one way."""
    return bool(pa.types.is_decimal(kind) and kind.scale == 0)


def _decimal(kind: pa.DataType) -> bool:
    """Decimals that are compared exactly."""
    if not pa.types.is_decimal(kind):
        return isinstance(kind, Decimals)
    return bool(kind.scale <= MOST_SCALE and kind.precision - min(kind.scale, 0) <= MOST_DIGITS)


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
