"""Domains: declared, ordered, public categories, and the numbering of the cells they span.

A cell's number is the mixed-radix index of its categories, the first attribute most significant. Domains are functions
of the declaration, never of the data.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa

from discreet.errors import DomainError
from discreet.formatting import plural

MAX_CELLS = 2**63 - 1
Key = tuple[str, ...]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_CHUNK = 1 << 20  # cells at a time


@dataclass(frozen=True)
class Attribute:
    """An attribute of a table: ordered categories, and the category of each value of the source columns.

    A flat list maps each value to itself; a level of a hierarchy maps finer codes to their parent; a list of groups
    has several columns. Values that `lookup` does not list are counted as `other` if that is declared, else dropped.
    """

    name: str
    columns: tuple[str, ...]  # as published
    source: tuple[str, ...]  # columns of the source, matched with the keys of `lookup`
    categories: tuple[Key, ...]
    lookup: Mapping[Key, int] = field(repr=False)
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    other: str | Key | None = None  # one name for all columns, or one for each
    width: int | tuple[int | None, ...] | None = None  # to which source values are zero-padded, by column
    absent: int | None = None  # category of records with a missing value in any column; None: as undeclared
    numbered: bool = False  # the source column holds the category number itself (a bin)
    hierarchy: str = ""  # of which this is a level
    provenance: str = ""

    @classmethod
    def flat(
        cls,
        name: str,
        codes: Sequence[str],
        labels: Sequence[str] | None,
        column: str,
        other: str | None,
        provenance: str,
        width: int | None = None,
    ) -> Attribute:
        """One column, each value its own category."""
        categories = tuple((code,) for code in codes)
        return cls(
            name=name,
            columns=(name,),
            source=(column,),
            categories=categories,
            lookup={key: i for i, key in enumerate(categories)},
            labels=None if labels is None else tuple(labels),
            other=other,
            width=width,
            provenance=provenance,
        )

    def __post_init__(self) -> None:
        if not self.categories:
            raise DomainError("has no categories", where=f"domain {self.name}", do="declare at least one")
        if len(set(self.categories)) < len(self.categories):
            double = next(c for c, times in Counter(self.categories).items() if times > 1)
            raise DomainError(f"lists {'/'.join(double)!r} twice", where=f"domain {self.name}", do="list it once")
        if isinstance(self.other, str) and self.other in {c for key in self.categories for c in key}:
            raise DomainError(
                f"declares {self.other!r} both as a category and as the name of undeclared values",
                where=f"domain {self.name}",
                do="choose another name with `undeclared: {other: NAME}`",
            )

    @property
    def published(self) -> tuple[Key, ...]:
        """The categories as they appear in a table, with "other" last."""
        if self.other is None:
            return self.categories
        return (*self.categories, (self.other,) * len(self.columns) if isinstance(self.other, str) else self.other)

    @property
    def size(self) -> int:
        return len(self.categories) + (self.other is not None)

    @property
    def other_code(self) -> int | None:
        return None if self.other is None else len(self.categories)

    @property
    def undeclared(self) -> str:
        """The name under which undeclared values are counted; empty if they are dropped."""
        return self.other if isinstance(self.other, str) else "/".join(self.other or ())

    def width_of(self, column: int) -> int | None:
        """The width to which values of a source column are zero-padded."""
        return self.width[column] if isinstance(self.width, tuple) else self.width

    def dictionary(self, column: int) -> pa.Array:
        """The published values of one column, by category."""
        return pa.array([key[column] for key in self.published], pa.string())

    def summary(self) -> str:
        rule = f"counted as {self.undeclared!r}" if self.undeclared else "dropped"
        return f"{plural(len(self.categories), 'category', 'categories')}; undeclared values are {rule}"

    def declaration(self) -> list[object]:
        """Everything that determines the cell of a record and the published description of the cell."""
        names = [self.name, self.columns, self.source, self.width, self.other, self.labels, self.provenance]
        absent = [] if self.absent is None else [self.absent]
        return [*names, self.published, list(self.lookup.items()), *absent]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the declaration, truncated to 96 bits."""
        return hashlib.sha256(json.dumps(self.declaration(), ensure_ascii=False).encode()).hexdigest()[:24]

    def within(self, coarse: Attribute) -> Numbers | None:
        """The category of a coarser attribute that contains each category; None if the attributes do not nest."""
        if self.source != coarse.source or self.width != coarse.width or (self.other is None) != (coarse.other is None):
            return None
        if self.lookup.keys() != coarse.lookup.keys():
            return None
        parents = np.full(self.size, -1, np.int64)
        for key, fine in self.lookup.items():
            parent = coarse.lookup[key]
            if parents[fine] not in (-1, parent):
                return None
            parents[fine] = parent
        if coarse.other_code is not None:
            parents[-1] = coarse.other_code
        return None if (parents < 0).any() else parents


@dataclass(frozen=True)
class Domain:
    """The cells of a table: the product of its attributes."""

    attributes: tuple[Attribute, ...]
    crossed: bool = True  # false: a mere list of attributes, not their product

    def __post_init__(self) -> None:
        if not self.crossed:
            return
        where = "by " + ", ".join(a.name for a in self.attributes)
        nested = [a.hierarchy for a in self.attributes if a.hierarchy]
        if double := next((h for h in nested if nested.count(h) > 1), None):
            raise DomainError(
                f"two levels of {double!r} would be crossed, although most of their combinations are impossible",
                where=where,
                do="list only the finer level: it determines the coarser one",
            )
        if double := next((c for c, times in Counter(self.columns).items() if times > 1), None):
            what, do = f"column {double!r} would be published twice", "omit one of the attributes that have it"
            raise DomainError(what, where=where, do=do)
        if (cells := prod(self.shape)) > MAX_CELLS:
            sizes = " × ".join(f"{a.size:,} {a.name}" for a in self.attributes)
            raise DomainError(
                f"has {_about(cells)} cells ({sizes}), more than the limit of {MAX_CELLS:.3g}",
                where=where,
                do="cross fewer attributes, or coarser ones",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def cells(self) -> int:
        return prod(self.shape)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for attribute in self.attributes for column in attribute.columns)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The difference in cell number between consecutive categories of each attribute."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def number(self, codes: Sequence[int]) -> int:
        """The cell number of a tuple of category codes."""
        for code, size in zip(codes, self.shape, strict=True):
            if not 0 <= code < size:
                raise DomainError(f"code {code} is outside 0…{size - 1}")
        return sum(code * stride for code, stride in zip(codes, self.strides, strict=True))

    def codes(self, cell: int) -> tuple[int, ...]:
        """The category codes of a cell, the inverse of `number`."""
        if not 0 <= cell < self.cells:
            raise DomainError(f"cell {cell} is outside 0…{self.cells - 1}")
        return tuple(cell // stride % size for stride, size in zip(self.strides, self.shape, strict=True))

    def code_arrays(self, cells: Numbers) -> list[pa.Array]:
        """The published category columns of these cells, dictionary-encoded."""
        arrays = []
        for attribute, stride in zip(self.attributes, self.strides, strict=True):
            codes = cells // stride % attribute.size
            arrays += [
                pa.DictionaryArray.from_arrays(places[codes], values)
                for values, places in self._dictionaries[attribute.name]
            ]
        return arrays

    @cached_property
    def _dictionaries(self) -> dict[str, list[tuple[pa.Array, np.ndarray[tuple[int], np.dtype[np.int32]]]]]:
        """The distinct values of each column, and the position of each category's value among them. An institution
        with many programmes must be listed once: with repeated values Arrow would publish uninitialised memory
        (publish/tables)."""
        columns = {
            a.name: [a.dictionary(i).dictionary_encode() for i in range(len(a.columns))] for a in self.attributes
        }
        return {name: [(e.dictionary, e.indices.to_numpy()) for e in encoded] for name, encoded in columns.items()}

    def digest(self) -> str:
        """SHA-256 of the declaration, to which the release key is bound."""
        text = json.dumps([attribute.declaration() for attribute in self.attributes], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Coarsening:
    """The cell of a coarser domain that contains each cell of a finer one, from the declarations."""

    fine: Domain
    coarse: Domain
    steps: tuple[
        tuple[int, Numbers], ...
    ]  # position of a fine attribute, and its term of the coarse cell number by category

    def parents(self, cells: Numbers) -> Numbers:
        """The coarse cell of each fine cell."""
        parents = np.zeros(len(cells), np.int64)
        for place, terms in self.steps:
            parents += terms[cells // self.fine.strides[place] % self.fine.shape[place]]
        return parents

    def children(self) -> Numbers:
        """The number of fine cells in each coarse cell."""
        counts = np.zeros(self.coarse.cells, np.int64)
        for first in range(0, self.fine.cells, _CHUNK):
            cells = np.arange(first, min(first + _CHUNK, self.fine.cells))
            counts += np.bincount(self.parents(cells), minlength=self.coarse.cells)
        return counts


def coarsening(fine: Domain, coarse: Domain) -> Coarsening | None:
    """The coarsening of a finer domain to a coarser one; None if the domains do not nest."""
    steps = []
    for attribute, stride in zip(coarse.attributes, coarse.strides, strict=True):
        nested = ((place, a.within(attribute)) for place, a in enumerate(fine.attributes))
        step = next(((place, parents * stride) for place, parents in nested if parents is not None), None)
        if step is None:
            return None
        steps.append(step)
    return Coarsening(fine, coarse, tuple(steps))


def _about(number: int) -> str:
    """An approximate size as text, however large."""
    return f"{number:.3g}" if number < 10**300 else f"about 2^{number.bit_length() - 1}"
