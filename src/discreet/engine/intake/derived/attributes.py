"""Derived columns of declared attributes: their categories, and the cells that these make."""

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
    """From the texts of an attribute's columns to its categories, one column after the other."""

    attribute: Attribute

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        """The category that each record's texts are listed under, or MISSING, or UNDECLARED."""
        place = np.zeros(len(columns[0]), np.int64)
        for j, ((vocabulary, pairs), values) in enumerate(zip(self._steps, columns, strict=True)):
            own = vocabulary.find(values, self.attribute.width_of(j))
            if j == 0:
                place = own.astype(np.int64)  # the first column's pairs are its words
                continue
            pair = place * len(vocabulary.words) + own
            at = np.searchsorted(pairs, pair)
            known = (place >= 0) & (own >= 0) & (np.append(pairs, -1)[at] == pair)
            nothing = (place == MISSING) | (own == MISSING)
            place = np.where(known, at, np.where(nothing, MISSING, UNDECLARED))
        return self._codes[place]

    @cached_property
    def _steps(self) -> list[tuple[TextIndex, NDArray[np.int64]]]:
        """Of each column its vocabulary, and which pairs there are of what columns before it say and its own word."""
        return self._declared[0]

    @cached_property
    def _codes(self) -> Codes:
        """The category of each declared combination of texts; what is UNDECLARED or MISSING stays so."""
        codes = np.fromiter(self.attribute.lookup.values(), np.int32, len(self.attribute.lookup))
        ordered = np.empty_like(codes)
        ordered[self._declared[1]] = codes
        return np.append(ordered, np.array([UNDECLARED, MISSING], np.int32))

    @cached_property
    def _declared(self) -> tuple[list[tuple[TextIndex, NDArray[np.int64]]], NDArray[np.int64]]:
        """The steps, and where each key of the lookup ends up after the last of them."""
        keys, steps = list(self.attribute.lookup), []
        before = np.zeros(len(keys), np.int64)
        for j in range(len(self.attribute.source)):
            words = {word: i for i, word in enumerate(dict.fromkeys(key[j] for key in keys))}
            own = np.fromiter((words[key[j]] for key in keys), np.int64, len(keys))
            pairs, before = np.unique(before * len(words) + own, return_inverse=True)
            steps.append((TextIndex.of(list(words)), pairs))
        return steps, before


@dataclass(frozen=True, eq=False)
class _OfAttribute(DerivedColumn):
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
        """The words of its columns, for columns that are in several tables."""
        keys = list(self.attribute.lookup)
        words = [tuple(dict.fromkeys(key[j] for key in keys)) for j in range(len(self.reads))]
        return tuple(KeyPart(column, self.attribute.width_of(j), words[j]) for j, column in enumerate(self.reads))


@dataclass(frozen=True, eq=False)
class Category(_OfAttribute):
    """An attribute's category, "other" where that is declared; none where the record is dropped."""

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
class LookedUpCategory(_OfAttribute):
    """As `Category`, before the rules for missing and undeclared values: none, and one number above the last. It is for
    tables that records are looked up in, where only the record says whether anything is missing."""

    @property
    def values(self) -> int:
        return len(self.attribute.categories) + 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._encoder.find(columns)
        known = np.where(codes < 0, len(self.attribute.categories), codes).astype(np.int32)
        return pa.array(known, mask=codes == MISSING)


@dataclass(frozen=True, eq=False)
class ValueStatus(_OfAttribute):
    """What the rules of an attribute meet, for the preflight: a declared value (0), none (1), an undeclared one (2)."""

    values = 3
    unlisted = 1

    def make(self, columns: Sequence[pa.Array]) -> pa.Array:
        codes = self._encoder.find(columns)
        return pa.array(np.where(codes >= 0, 0, -codes).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Cell(DerivedColumn):
    """The number of the cell that a record's categories make; none where one of them is none."""

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
