"""Texts to the numbers of public categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.domain import Attribute
from discreet.engine.intake.normalise import texts

Codes = NDArray[np.int32]
MISSING, UNDECLARED = -1, -2  # instead of a code


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


@dataclass(frozen=True, eq=False)
class Lookup:
    """The categories of an attribute by the texts of its columns, one column after the other."""

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
    def _steps(self) -> list[tuple[Vocabulary, NDArray[np.int64]]]:
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
    def _declared(self) -> tuple[list[tuple[Vocabulary, NDArray[np.int64]]], NDArray[np.int64]]:
        """The steps, and where each key of the lookup ends up after the last of them."""
        keys, steps = list(self.attribute.lookup), []
        before = np.zeros(len(keys), np.int64)
        for j in range(len(self.attribute.source)):
            words = {word: i for i, word in enumerate(dict.fromkeys(key[j] for key in keys))}
            own = np.fromiter((words[key[j]] for key in keys), np.int64, len(keys))
            pairs, before = np.unique(before * len(words) + own, return_inverse=True)
            steps.append((Vocabulary.of(list(words)), pairs))
        return steps, before
