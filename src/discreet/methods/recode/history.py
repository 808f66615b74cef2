"""Public completions, from which transition shares are estimated: totals by old code, new code and keys.

A file may have millions of lines: they are read in blocks as integers; Python handles only distinct codes and keys. Old
codes with one destination need no shares, and their lines are dropped (PSEO Technical Appendices, B.1).
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from discreet.domain import MAX_CELLS, Key
from discreet.domain.codelists import csv_lines
from discreet.errors import DomainError
from discreet.methods.recode.crosswalk import named, shown, unwrap
from discreet.methods.recode.rollup import PublishedCrosswalk

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Assignment = tuple[tuple[Key, Fraction], ...]  # the published new codes of a finest old one, with shares
BLOCK = 1 << 24  # bytes
LARGEST = 10**10  # exclusive upper bound of a line's number
_DIGITS = f"^[0-9]{{1,{len(str(LARGEST)) - 1}}}$"


@dataclass(frozen=True)
class TotalsLevel:
    """Totals by the key columns in `places` and by assignment, numbered in mixed radix and sorted."""

    places: tuple[int, ...]
    numbers: Int64s
    totals: Int64s


@dataclass(frozen=True)
class History:
    """Completions of the old codes with several destinations, at each level, the finest first."""

    columns: tuple[str, ...]  # of the keys
    levels: tuple[tuple[str, ...], ...]
    _assignments: Mapping[Key, tuple[tuple[int, Assignment], ...]] = field(
        repr=False
    )  # of an old code, each with its number
    _kinds: int = field(repr=False)
    _codes: tuple[Mapping[str, int], ...] = field(repr=False)  # of the values of each key column
    _totals: tuple[TotalsLevel, ...] = field(repr=False)

    def counts(self, level: int, old: Key, key: Key) -> dict[Key, Fraction]:
        """New code → completions of an old code and a key (one value for each of `columns`); positive ones only."""
        table, start = self._totals[level], 0
        for place in table.places:
            code = self._codes[place].get(key[place])
            if code is None:
                return {}
            start = start * len(self._codes[place]) + code
        counts: dict[Key, Fraction] = {}
        for kind, assignment in self._assignments.get(old, ()):
            number = start * self._kinds + kind
            at = int(np.searchsorted(table.numbers, number))
            if at == table.numbers.size or table.numbers[at] != number:
                continue
            for new, share in assignment:
                counts[new] = counts.get(new, Fraction(0)) + share * int(table.totals[at])
        return counts


def read_history(
    path: Path,
    published: PublishedCrosswalk,
    levels: Sequence[Sequence[str]],
    *,
    old: str,
    number: str,
    new: str | None = None,
    overridden: Collection[Key] = (),
) -> History:
    """Completions from a CSV file: key columns, a finest old code, a number ≥ 0; a finest new code if dual-coded.

    A line without a new code is assigned by the shares of the crosswalk. An old code unknown to the crosswalk is
    refused unless its published code is overridden; so are, where shares are needed, a deleted code and a new code
    that the crosswalk does not lead to.
    """
    place = f"completions, file {path.name}"
    keys = tuple(dict.fromkeys(column for level in levels for column in level))
    if not levels:
        raise DomainError("no levels", where=place, do="name at least one, the finest first; () is the total")
    reader = _Reader(published, frozenset(overridden), place)
    codes: tuple[dict[str, int], ...] = tuple({} for _ in keys)
    parts: list[tuple[Int32s, Int64s]] = []  # a row of numbers for each key column and one of kinds; completions
    names = dict.fromkeys([*keys, old, *([new] if new else []), number])
    for batch in _batches(path, list(names), place):
        values = _numbers(batch.column(number), number, place)
        kinds = reader.kinds(batch.column(old), batch.column(new) if new else None)
        used = (kinds >= 0) & (values > 0)
        rows = [_coded(batch.column(key), known)[used] for key, known in zip(keys, codes, strict=True)]
        parts.append((np.stack([*rows, kinds[used]]), values[used]))
    reader.check()
    size = [*(max(len(known), 1) for known in codes), max(len(reader.assignments), 1)]
    if prod(size) > MAX_CELLS:
        raise DomainError("too many keys to number", where=place, do="give fewer key columns")
    lines = np.concatenate([np.zeros((len(size), 0), np.int32), *(part for part, _ in parts)], axis=1)
    totals = np.concatenate([np.zeros(0, np.int64), *(part for _, part in parts)])
    tables = tuple(_level(lines, totals, tuple(map(keys.index, level)), size) for level in levels)
    assignments: dict[Key, tuple[tuple[int, Assignment], ...]] = {}
    for (source, assignment), kind in reader.assignments.items():
        assignments[source] = (*assignments.get(source, ()), (kind, assignment))
    return History(keys, tuple(map(tuple, levels)), assignments, size[-1], codes, tables)


class _Reader:
    """Numbers the distinct assignments of lines; lines without one are collected and refused at the end."""

    def __init__(self, published: PublishedCrosswalk, overridden: frozenset[Key], place: str) -> None:
        self.published, self.overridden, self.place = published, overridden, place
        self.assignments: dict[tuple[Key, Assignment], int] = {}
        self.unknown: dict[str, None] = {}
        self.impossible: dict[tuple[str, str], None] = {}
        self._seen: dict[tuple[str, str], int] = {}

    def kinds(self, old: pa.Array, new: pa.Array | None) -> Int32s:
        """The number of each line's assignment; −1 if the line is not used."""
        before = old.dictionary_encode()
        codes, olds = before.indices.to_numpy().astype(np.int64), before.dictionary.to_pylist()
        news = [""]
        if new is not None:
            after = new.dictionary_encode()
            news = after.dictionary.to_pylist()
            codes = codes * len(news) + after.indices.to_numpy()
        pairs, inverse = np.unique(codes, return_inverse=True)
        known = [self._kind(unwrap(olds[p // len(news)]), unwrap(news[p % len(news)])) for p in pairs.tolist()]
        return np.array(known, np.int32)[inverse]

    def check(self) -> None:
        if self.unknown:
            raise DomainError(
                f"{named(sorted(self.unknown))} without a destination in the crosswalk",
                where=self.place,
                do="give each finest code a destination, or override the published code",
            )
        if self.impossible:
            old, new = next(iter(self.impossible))
            raise DomainError(
                f"{old!r} is coded {new!r}, where the crosswalk does not lead from {shown(self.published.old_of(old))}",
                where=self.place,
                do="correct the line, or add the pair to the crosswalk",
            )

    def _kind(self, old: str, new: str) -> int:
        if (kind := self._seen.get((old, new))) is None:
            assignment = self._assignment(old, new)
            known = self.assignments
            kind = -1 if assignment is None else known.setdefault(assignment, len(known))
            self._seen[(old, new)] = kind
        return kind

    def _assignment(self, old: str, new: str) -> tuple[Key, Assignment] | None:
        """The published old code and its new ones; None if no share is to be estimated, or the line is refused."""
        crosswalk = self.published.crosswalk
        if old not in crosswalk.shares and old not in crosswalk.deleted:
            if not self._is_overridden(old):
                self.unknown[old] = None
            return None
        source = self.published.old_of(old)
        if source in self.overridden or source not in self.published.ambiguous:
            return None
        if new:
            if not crosswalk.has_new_code(new) or self.published.new_of(new) not in self.published.ambiguous[source]:
                self.impossible[(old, new)] = None
                return None
            return source, ((self.published.new_of(new), Fraction(1)),)
        if old not in crosswalk.shares:
            self.unknown[old] = None
            return None
        targets: dict[Key, Fraction] = {}
        for code, share in crosswalk.shares[old]:
            target = self.published.new_of(code)
            targets[target] = targets.get(target, Fraction(0)) + share
        return source, tuple(sorted(targets.items()))

    def _is_overridden(self, old: str) -> bool:
        """Whether the published code of an unknown code is overridden; an unknown code may have no published one."""
        try:
            return self.published.old_of(old) in self.overridden
        except DomainError:
            return False


def _batches(path: Path, columns: list[str], place: str) -> Iterator[pa.RecordBatch]:
    """The columns of a CSV file as text."""
    with csv_lines(path, place) as lines:
        header = next(lines, [])
    if missing := [column for column in columns if header.count(column) != 1]:
        close = difflib.get_close_matches(missing[0], header, 1)
        what = f"has {'two columns' if missing[0] in header else 'no column'} {missing[0]!r}"
        do = f"did you mean {close[0]!r}?" if close and missing[0] not in header else f"it has: {', '.join(header)}"
        raise DomainError(what, where=place, do=do)
    text = dict.fromkeys(columns, pa.string())
    try:
        yield from pcsv.open_csv(
            path,
            read_options=pcsv.ReadOptions(block_size=BLOCK),
            parse_options=pcsv.ParseOptions(newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                include_columns=columns, column_types=text, null_values=[], strings_can_be_null=False
            ),
        )
    except OSError as error:
        raise DomainError(f"cannot be read ({error.strerror})", where=place, do="check the path") from None
    except pa.ArrowException as error:
        raise DomainError(f"is not CSV in UTF-8 ({error})", where=place, do="save it as UTF-8 CSV") from None


def _numbers(column: pa.Array, name: str, place: str) -> Int64s:
    """The column as integers ≥ 0."""
    good = pc.match_substring_regex(column, _DIGITS)
    if not pc.all(good, min_count=0).as_py():
        bad = column.filter(pc.invert(good))[0].as_py()
        raise DomainError(
            f"{name} {bad[:40]!r} is not an integer from 0 to {LARGEST - 1:,}", where=place, do="correct the line"
        )
    values: Int64s = column.cast(pa.int64()).to_numpy()
    return values


def _coded(column: pa.Array, known: dict[str, int]) -> Int32s:
    """The number of each value; new values get the next numbers."""
    encoded = column.dictionary_encode()
    codes = [known.setdefault(unwrap(value), len(known)) for value in encoded.dictionary.to_pylist()]
    numbers: Int32s = np.array(codes, np.int32)[encoded.indices.to_numpy()]
    return numbers


def _level(codes: Int32s, values: Int64s, places: tuple[int, ...], size: list[int]) -> TotalsLevel:
    """Totals by some of the key columns and by assignment, which comes last."""
    numbers = np.zeros(values.size, np.int64)
    for place in (*places, len(size) - 1):
        numbers *= size[place]
        numbers += codes[place]
    order = np.argsort(numbers)
    numbers, values = numbers[order], values[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    return TotalsLevel(places, numbers[first], np.add.reduceat(values, first) if first.size else values)
