"""Public control files, read as matrices over declared codes."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from discreet.arrays import Flags, Floats
from discreet.domain.codelists import read_published
from discreet.errors import DomainError
from discreet.formatting import plural

LARGEST = 1e15
MOST_NAMED = 5


def read_matrix(
    path: Path, columns: tuple[str, str, str], rows: Sequence[str], across: Sequence[str], where: str
) -> Floats:
    """The values of every pair of declared codes; lines of one pair are summed, lines of other codes ignored.

    A missing pair is refused: zeros must be written.
    """
    place = f"{where}, file {path.name}"
    row_of, column_of = ({code: i for i, code in enumerate(codes)} for codes in (rows, across))
    values = np.zeros((len(rows), len(across)))
    listed = np.zeros(values.shape, np.bool_)
    for line, (row, column, text) in enumerate(read_published(path, columns, where), start=2):
        if row in row_of and column in column_of:
            at = row_of[row], column_of[column]
            values[at] += _value(text, columns[2], f"{place}, line {line}")
            listed[at] = True
    if values.max(initial=0) > LARGEST:
        raise DomainError(f"adds up to more than {LARGEST:.0e}", where=place, do="count in larger units")
    _refuse_missing(listed, (rows, columns[0]), (across, columns[1]), place)
    _refuse_empty(values, (rows, columns[0]), (across, columns[1]), place)
    return values


def _value(text: str, column: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or "_" in text:
        raise DomainError(f"{column} is {text[:20]!r}, which is not a number", where=where, do="write 0 for nothing")
    if value < 0:
        raise DomainError(f"{column} is negative", where=where, do="control values are 0 or more")
    return value


def _refuse_missing(
    listed: Flags, rows: tuple[Sequence[str], str], across: tuple[Sequence[str], str], place: str
) -> None:
    if listed.all():
        return
    if not listed.any():
        raise DomainError(
            f"has no line with a declared {rows[1]} and a declared {across[1]}",
            where=place,
            do=f"write {rows[1]} like {rows[0][0]!r} and {across[1]} like {across[0][0]!r}",
        )
    for covered, (codes, column) in ((listed.any(axis=1), rows), (listed.any(axis=0), across)):
        if not covered.all():
            raise DomainError(
                f"has no line for {column} {_named(codes, ~np.asarray(covered))}",
                where=place,
                do="add estimates (a 0 would mean that nobody goes there); codes are text: leading zeros count",
            )
    r, c = (int(i[0]) for i in np.nonzero(~listed))
    others = int((~listed).sum()) - 1
    more = f", nor for {plural(others, 'other pair')}" if others else ""
    raise DomainError(
        f"has no line for {rows[1]} {rows[0][r]!r} and {across[1]} {across[0][c]!r}{more}",
        where=place,
        do="add it, with 0 if there is nothing",
    )


def _refuse_empty(
    values: Floats, rows: tuple[Sequence[str], str], across: tuple[Sequence[str], str], place: str
) -> None:
    """Refuse a code whose values are all 0: its cells would have the largest weights and lose all their flows."""
    for empty, (codes, column) in ((values.max(axis=1) <= 0, rows), (values.max(axis=0) <= 0, across)):
        if empty.any():
            raise DomainError(
                f"is 0 everywhere for {column} {_named(codes, empty)}",
                where=place,
                do="write an estimate: with 0, flows there would be subtracted first",
            )


def _named(codes: Sequence[str], selected: Flags) -> str:
    listed = [repr(codes[i]) for i in np.flatnonzero(selected).tolist()]
    return ", ".join(listed[:MOST_NAMED]) + (
        f" and {len(listed) - MOST_NAMED:,} more" if len(listed) > MOST_NAMED else ""
    )
