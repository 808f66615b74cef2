"""Declared, ordered, public categories, and the numbering of the cells they span.

A cell's number is the mixed-radix index of its categories, the first attribute most significant. It is a function
of the declaration alone: nothing here has ever seen a record.
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
    """What a table can be `by`: ordered categories, and which values of the data's columns fall into which.

    A flat list maps each value to itself; a level of a hierarchy maps finer codes to their parent; a list of groups
    has several columns. What `lookup` does not list goes to `other`, if that is declared, and is dropped if not.
    """

    name: str
    columns: tuple[str, ...]  # as published
    source: tuple[str, ...]  # as found in the data, matched with the keys of `lookup`
    categories: tuple[Key, ...]
    lookup: Mapping[Key, int] = field(repr=False)
    labels: tuple[str, ...] | None = field(default=None, repr=False)
    other: str | Key | None = None  # a name for every column, or one for each
    width: int | tuple[int | None, ...] | None = None  # to which the data's values are padded with zeros, by column
    absent: int | None = None  # the category of records that lack a value in any column; none: as undeclared ones
    numbered: bool = False  # the data's column holds the number of the category itself, made from a value (binning)
    hierarchy: str = ""  # whose level this is
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
        """One column, each category its own code."""
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
                f"declares {self.other!r} both as a category and as the name of the undeclared",
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
        """What becomes of undeclared values: they are counted under this name, or dropped if there is none."""
        return self.other if isinstance(self.other, str) else "/".join(self.other or ())

    def width_of(self, column: int) -> int | None:
        """To how many characters the values of a column of the data are padded with zeros."""
        return self.width[column] if isinstance(self.width, tuple) else self.width

    def dictionary(self, column: int) -> pa.Array:
        """The published values of one column, by category."""
        return pa.array([key[column] for key in self.published], pa.string())

    def summary(self) -> str:
        rule = f"counted as {self.undeclared!r}" if self.undeclared else "dropped"
        return f"{plural(len(self.categories), 'category', 'categories')}; undeclared values are {rule}"

    def declaration(self) -> list[object]:
        """Everything that decides which record falls into which cell, and what is published about the cell."""
        names = [self.name, self.columns, self.source, self.width, self.other, self.labels, self.provenance]
        absent = [] if self.absent is None else [self.absent]
        return [*names, self.published, list(self.lookup.items()), *absent]

    @cached_property
    def digest(self) -> str:
        """A name for the whole declaration."""
        return hashlib.sha256(json.dumps(self.declaration(), ensure_ascii=False).encode()).hexdigest()[:24]

    def within(self, coarse: Attribute) -> Numbers | None:
        """The category of a coarser attribute that each category lies in; None if that does not follow from it."""
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
    crossed: bool = True  # false: only a list of attributes, of which no cells are made

    def __post_init__(self) -> None:
        if not self.crossed:
            return
        where = "by " + ", ".join(a.name for a in self.attributes)
        nested = [a.hierarchy for a in self.attributes if a.hierarchy]
        if double := next((h for h in nested if nested.count(h) > 1), None):
            raise DomainError(
                f"two levels of {double!r} would be crossed, and most of their cells cannot occur",
                where=where,
                do="list the finer level alone: it determines the coarser one",
            )
        if double := next((c for c, times in Counter(self.columns).items() if times > 1), None):
            what, do = f"column {double!r} would be published twice", "leave out one of the attributes that have it"
            raise DomainError(what, where=where, do=do)
        if (cells := prod(self.shape)) > MAX_CELLS:
            sizes = " × ".join(f"{a.size:,} {a.name}" for a in self.attributes)
            raise DomainError(
                f"has {_about(cells)} cells ({sizes}), more than the {MAX_CELLS:.3g} that can be numbered",
                where=where,
                do="publish fewer attributes together, or coarser ones",
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
        """How far one step of each attribute moves the cell number."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def number(self, codes: Sequence[int]) -> int:
        """The cell of a tuple of category codes."""
        for code, size in zip(codes, self.shape, strict=True):
            if not 0 <= code < size:
                raise DomainError(f"code {code} is outside 0…{size - 1}")
        return sum(code * stride for code, stride in zip(codes, self.strides, strict=True))

    def codes(self, cell: int) -> tuple[int, ...]:
        """The category codes of a cell: the inverse of `number`."""
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
        """Of each column the distinct values, and where each category's is among them. An institution has many
        programmes: were it listed once for each, Arrow would publish memory that it never wrote to (publish/tables)."""
        found = {a.name: [a.dictionary(i).dictionary_encode() for i in range(len(a.columns))] for a in self.attributes}
        return {name: [(e.dictionary, e.indices.to_numpy()) for e in encoded] for name, encoded in found.items()}

    def digest(self) -> str:
        """SHA-256 of the whole declaration: part of what a release key is bound to."""
        text = json.dumps([attribute.declaration() for attribute in self.attributes], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Coarsening:
    """Which cell of a coarser domain each cell of a finer one lies in: from the declarations alone."""

    fine: Domain
    coarse: Domain
    steps: tuple[tuple[int, Numbers], ...]  # place of a fine attribute, its share

    def parents(self, cells: Numbers) -> Numbers:
        """The coarse cell of each fine cell."""
        found = np.zeros(len(cells), np.int64)
        for place, share in self.steps:
            found += share[cells // self.fine.strides[place] % self.fine.shape[place]]
        return found

    def children(self) -> Numbers:
        """How many fine cells each coarse cell is made of."""
        counts = np.zeros(self.coarse.cells, np.int64)
        for first in range(0, self.fine.cells, _CHUNK):
            cells = np.arange(first, min(first + _CHUNK, self.fine.cells))
            counts += np.bincount(self.parents(cells), minlength=self.coarse.cells)
        return counts


def coarsening(fine: Domain, coarse: Domain) -> Coarsening | None:
    """How a finer domain's cells add up to a coarser one's; None if they do not."""
    steps = []
    for attribute, stride in zip(coarse.attributes, coarse.strides, strict=True):
        found = ((place, a.within(attribute)) for place, a in enumerate(fine.attributes))
        step = next(((place, parents * stride) for place, parents in found if parents is not None), None)
        if step is None:
            return None
        steps.append(step)
    return Coarsening(fine, coarse, tuple(steps))


def _about(number: int) -> str:
    """A size in words, however large."""
    return f"{number:.3g}" if number < 10**300 else f"about 2^{number.bit_length() - 1}"
