"""Derived columns of declared attributes: their categories, and the cells that these make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from discreet.domain import Attribute, Domain
from discreet.engine.intake.categories import MISSING, Lookup
from discreet.engine.intake.checks import check_code
from discreet.engine.intake.derived.base import Derived, named
from discreet.engine.intake.derived.columns import Part


@dataclass(frozen=True, eq=False)
class _OfAttribute(Derived):
    attribute: Attribute

    @property
    def type(self) -> pa.DataType:
        return pa.int32()

    @property
    def name(self) -> str:
        return f"discreet_{type(self).__name__.lower()}_{self.attribute.digest}"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.attribute.source

    @property
    def repeats(self) -> bool:
        return True

    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        check_code(column, kind, where)

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.attribute)

    def parts(self) -> tuple[Part, ...]:
        """The words of its columns, for columns that are in several tables."""
        keys = list(self.attribute.lookup)
        words = [tuple(dict.fromkeys(key[j] for key in keys)) for j in range(len(self.reads))]
        return tuple(Part(column, self.attribute.width_of(j), words[j]) for j, column in enumerate(self.reads))


@dataclass(frozen=True, eq=False)
class Category(_OfAttribute):
    """An attribute's category, "other" where that is declared; none where the record is dropped."""

    @property
    def values(self) -> int:
        return self.attribute.size

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._lookup.find(columns)
        if self.attribute.absent is not None:
            codes[codes == MISSING] = self.attribute.absent
        if self.attribute.other_code is not None:
            codes[codes < 0] = self.attribute.other_code
        return pa.array(codes, mask=codes < 0)


@dataclass(frozen=True, eq=False)
class Listed(_OfAttribute):
    """As `Category`, before the rules for missing and undeclared values: none, and one number above the last. It is for
    tables that records are looked up in, where only the record says whether anything is missing."""

    @property
    def values(self) -> int:
        return len(self.attribute.categories) + 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._lookup.find(columns)
        known = np.where(codes < 0, len(self.attribute.categories), codes).astype(np.int32)
        return pa.array(known, mask=codes == MISSING)


@dataclass(frozen=True, eq=False)
class Fate(_OfAttribute):
    """What the rules of an attribute meet, for the preflight: a declared value (0), none (1), an undeclared one (2)."""

    @property
    def values(self) -> int:
        return 3

    @property
    def unlisted(self) -> int:
        return 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._lookup.find(columns)
        return pa.array(np.where(codes >= 0, 0, -codes).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Cell(Derived):
    """The number of the cell that a record's categories make; none where one of them is none."""

    domain: Domain

    @cached_property
    def name(self) -> str:
        return named("cell", *(attribute.digest for attribute in self.domain.attributes))

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        return tuple(Category(attribute) for attribute in self.domain.attributes)

    @property
    def type(self) -> pa.DataType:
        return pa.int64()

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for category in self.categories for name in category.reads))

    @property
    def repeats(self) -> bool:
        return True

    def check(self, column: str, kind: pa.DataType, where: str) -> None:
        check_code(column, kind, where)

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        raw = dict(zip(self.reads, columns, strict=True))
        cells, known = np.zeros(len(columns[0]), np.int64), np.ones(len(columns[0]), np.bool_)
        for category, stride in zip(self.categories, self.domain.strides, strict=True):
            codes = category.through([raw[name] for name in category.reads])
            if codes.null_count:
                known &= codes.is_valid().to_numpy(zero_copy_only=False)
                codes = codes.fill_null(0)
            cells += codes.to_numpy(zero_copy_only=False).astype(np.int64) * stride
        return pa.array(cells, mask=None if known.all() else ~known)
