"""Reads code lists, hierarchies and lists of groups from public CSV files into attributes.

Every field is text: leading zeros are part of a code.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.domain import Attribute, Key
from discreet.errors import DomainError
from discreet.formatting import unguarded

if TYPE_CHECKING:
    import _csv


def from_codes(
    name: str,
    path: Path,
    code: str,
    label: str | None,
    column: str,
    other: str | None,
    provenance: str,
    width: int | None = None,
) -> Attribute:
    """The codes in one column of a file, in the file's order."""
    rows = read_columns(path, [code] if label is None else [code, label], f"domain {name}")
    labels = None if label is None else [row[1] for row in rows]
    return Attribute.flat(name, [row[0] for row in rows], labels, column, other, provenance, width)


def from_hierarchy(
    path: Path,
    names: Sequence[str],
    column: str,
    other: str | None,
    provenance: str,
    where: str,
    width: int | None = None,
) -> list[Attribute]:
    """A hierarchy: one row per finest code, one column per level; every level becomes an attribute of its own.

    All levels are derived from the finest code, so a table by division needs no division column in the data.
    """
    rows = read_columns(path, names, f"domain {where}")
    finest = [row[0] for row in rows]
    attributes = []
    for depth, level in enumerate(names):
        order = dict.fromkeys((row[depth],) for row in rows)
        codes = {key: i for i, key in enumerate(order)}
        parents: dict[str, str] = {}
        for row in rows:
            child, parent = row[max(depth - 1, 0)], row[depth]
            if parents.setdefault(child, parent) != parent:
                raise DomainError(
                    f"{names[depth - 1]} {child!r} has two parents in level {level!r}",
                    where=f"domain {where}, file {path.name}",
                    do="give every code one parent, and list levels from the finest to the coarsest",
                )
        lookup: dict[Key, int] = {(code,): codes[(row[depth],)] for code, row in zip(finest, rows, strict=True)}
        attributes.append(
            Attribute(
                name=level,
                columns=(level,),
                source=(column,),
                categories=tuple(order),
                lookup=lookup,
                other=other,
                width=width,
                hierarchy=where,
                provenance=provenance,
            )
        )
    return attributes


def from_groups(
    name: str,
    path: Path,
    shown: Mapping[str, Sequence[str]],
    source: Sequence[str],
    other: str | None,
    provenance: str,
    widths: Mapping[str, int] | None = None,
) -> list[Attribute]:
    """A public list of groups, such as the programmes that institutions offer: several columns, one row per group.

    `shown` has the columns of the groups themselves first, then those of coarser attributes. All are derived from the
    finest group, so a table by institution and family needs no family column in the data.
    """
    wanted = list(dict.fromkeys(column for columns in shown.values() for column in columns))
    rows = read_columns(path, wanted, f"domain {name}")
    finest: list[Key] = []
    attributes: list[Attribute] = []
    for attribute, columns in shown.items():
        positions = [wanted.index(column) for column in columns]
        keys = [tuple(row[i] for i in positions) for row in rows]
        finest = finest or keys
        order = list(dict.fromkeys(keys)) if attributes else keys  # repeated groups are refused
        codes = {key: i for i, key in enumerate(order)}
        attributes.append(
            Attribute(
                name=attribute,
                columns=tuple(columns),
                source=tuple(source),
                categories=tuple(order),
                lookup={fine: codes[key] for fine, key in zip(finest, keys, strict=True)},
                other=other,
                width=tuple(widths.get(column) for column in shown[name]) if widths else None,
                hierarchy=name if len(shown) > 1 else "",
                provenance=provenance,
            )
        )
    return attributes


def read_published(path: Path, columns: Sequence[str], where: str) -> list[Key]:
    """Like `read_columns`, of a file that may be published by this program: formula guards are removed."""
    return read_columns(path, columns, where, unguarded)


def read_columns(
    path: Path, columns: Sequence[str], where: str, read: Callable[[str], str] = lambda text: text
) -> list[Key]:
    """These columns of a CSV file as text, in the file's order."""
    place = f"{where}, file {path.name}"
    with csv_lines(path, place) as lines:
        header = next(lines, None)
        if header is None:
            raise DomainError("is empty", where=place, do="give it a header line and one line per category")
        positions = [_position(column, [read(name) for name in header], place) for column in columns]
        rows = []
        for row in lines:
            if len(row) != len(header):
                raise DomainError(
                    f"line {lines.line_num} has {len(row)} fields, the header {len(header)}",
                    where=place,
                    do="correct the line",
                )
            rows.append(tuple(read(row[i]) for i in positions))
    return rows


@contextmanager
def csv_lines(path: Path, place: str) -> Iterator[_csv.Reader]:
    """The lines of a CSV file, the header first; an unreadable file is refused."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield csv.reader(file, strict=True)
    except OSError as error:
        raise DomainError(f"cannot be read ({error.strerror})", where=place, do="check the path") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DomainError(f"is not CSV in UTF-8 ({error})", where=place, do="save it as UTF-8 CSV") from None
    except ValueError:
        raise DomainError("cannot be read (not a valid path)", where=place, do="check the path") from None


def read_thresholds(path: Path, where: str) -> tuple[float, ...]:
    """The numbers in the column `threshold` of a CSV file, each above the one before."""
    rows = read_columns(path, ["threshold"], where)
    place, do = f"{where}, file {path.name}", "give one number per line, in ascending order"
    try:
        thresholds = tuple(float(text) for (text,) in rows)
    except ValueError:
        raise DomainError("has a threshold that is not a number", where=place, do=do) from None
    if not thresholds or not all(a < b for a, b in pairwise((-inf, *thresholds, inf))):
        raise DomainError("has thresholds that do not ascend", where=place, do=do)
    return thresholds


def _position(column: str, header: list[str], where: str) -> int:
    if column not in header:
        close = difflib.get_close_matches(column, header, 1)
        raise DomainError(
            f"has no column {column!r}",
            where=where,
            do=f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(header)}",
        )
    return header.index(column)
