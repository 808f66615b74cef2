"""What all derived columns have in common."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa


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

    @property
    def unlisted(self) -> int | bool | None:
        """What a record has of it that is not in the table it is looked up in."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """The column's name inside engines."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The columns of the source that it is made of."""

    @abstractmethod
    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        """Refuse a source by the type of a column, whatever is in it."""

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
