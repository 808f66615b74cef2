"""Derived columns of declared attributes: their categories, and the cell number these determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import Attribute, Domain
from discreet.engine.intake.derived.columns import MISSING, UNDECLARED, Codes, DerivedColumn, KeyPart, TextIndex, named
from discreet.engine.intake.normalise import check_code


@dataclass(frozen=True, eq=False)
class CategoryEncoder:
    """Maps the texts of an attribute's columns to its categories, one column after the other."""

    attribute: Attribute

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        """The category that is declared for each record's texts, or MISSING, or UNDECLARED."""
        place = np.zeros(len(columns[0]), np.int64)
        for j, ((index, pairs), values) in enumerate(zip(self._steps, columns, strict=True)):
            own = index.find(values, self.attribute.width_of(j))
            if j == 0:
                place = own.astype(np.int64)  # the first column's pairs are its texts
                continue
            pair = place * len(index.texts) + own
            at = np.searchsorted(pairs, pair)
            known = (place >= 0) & (own >= 0) & (np.append(pairs, -1)[at] == pair)
            missing = (place == MISSING) | (own == MISSING)
            place = np.where(known, at, np.where(missing, MISSING, UNDECLARED))
        return self._codes[place]

    @cached_property
    def _steps(self) -> list[tuple[TextIndex, NDArray[np.int64]]]:
        """For each column its text index, and the declared pairs of (combination of earlier columns, own text)."""
        return self._declared[0]

    @cached_property
    def _codes(self) -> Codes:
        """The category of each declared combination of texts; UNDECLARED and MISSING are unchanged."""
        codes = np.fromiter(self.attribute.lookup.values(), np.int32, len(self.attribute.lookup))
        ordered = np.empty_like(codes)
        ordered[self._declared[1]] = codes
        return np.append(ordered, np.array([UNDECLARED, MISSING], np.int32))

    @cached_property
    def _declared(self) -> tuple[list[tuple[TextIndex, NDArray[np.int64]]], NDArray[np.int64]]:
        """The steps, and the position of each declared combination after the last step."""
        keys, steps = list(self.attribute.lookup), []
        before = np.zeros(len(keys), np.int64)
        for j in range(len(self.attribute.source)):
            texts = {text: i for i, text in enumerate(dict.fromkeys(key[j] for key in keys))}
            own = np.fromiter((texts[key[j]] for key in keys), np.int64, len(keys))
            pairs, before = np.unique(before * len(texts) + own, return_inverse=True)
            steps.append((TextIndex.of(list(texts)), pairs))
        return steps, before


@dataclass(frozen=True, eq=False)
class _AttributeColumn(DerivedColumn):
    attribute: Attribute

    type = pa.int32()
    repeats = True
    check = staticmethod(check_code)

    @cached_property
    def name(self) -> str:
        return f"discreet_{type(self).__name__.lower()}_{self.attribute.digest}"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.attribute.source

    @cached_property
    def _encoder(self) -> CategoryEncoder:
        return CategoryEncoder(self.attribute)

    def parts(self) -> tuple[KeyPart, ...]:
        """The texts of its columns, for columns that are in several tables."""
        keys = list(self.attribute.lookup)
        texts = [tuple(dict.fromkeys(key[j] for key in keys)) for j in range(len(self.reads))]
        return tuple(KeyPart(column, self.attribute.width_of(j), texts[j]) for j, column in enumerate(self.reads))


@dataclass(frozen=True, eq=False)
class Category(_AttributeColumn):
    """An attribute's category, recoded to "other" where declared; null if the record is dropped."""

    @property
    def values(self) -> int:
        return self.attribute.size

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._encoder.find(columns)
        if self.attribute.absent is not None:
            codes[codes == MISSING] = self.attribute.absent
        if self.attribute.other_code is not None:
            codes[codes < 0] = self.attribute.other_code
        return pa.array(codes, mask=codes < 0)


@dataclass(frozen=True, eq=False)
class LookedUpCategory(_AttributeColumn):
    """As `Category`, before the rules for missing and undeclared values: null if missing, one above the last category
    if undeclared. For lookup tables, where only the record determines whether a value is missing."""

    @property
    def values(self) -> int:
        return len(self.attribute.categories) + 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._encoder.find(columns)
        known = np.where(codes < 0, len(self.attribute.categories), codes).astype(np.int32)
        return pa.array(known, mask=codes == MISSING)


@dataclass(frozen=True, eq=False)
class ValueStatus(_AttributeColumn):
    """For `discreet check`: whether an attribute's value is declared (0), missing (1) or undeclared (2)."""

    values = 3
    unlisted = 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._encoder.find(columns)
        return pa.array(np.where(codes >= 0, 0, -codes).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Cell(DerivedColumn):
    """The number of the cell of a record's categories; null if one of them is null."""

    domain: Domain

    type = pa.int64()
    repeats = True
    check = staticmethod(check_code)

    @cached_property
    def name(self) -> str:
        return named("cell", *(attribute.digest for attribute in self.domain.attributes))

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        return tuple(Category(attribute) for attribute in self.domain.attributes)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for category in self.categories for name in category.reads))

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
