"""Public code lists and the weights of synthetic data: CSV files in `data`, read as typed values."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

import numpy as np

from discreet.arrays import Floats

DATA = Path(__file__).parent / "data"
READ: dict[object, Callable[[str], object]] = {
    str: str,
    int: int,
    float: float,
    Fraction: Fraction,
    int | None: lambda text: int(text) if text else None,
    tuple[str, ...]: lambda text: tuple(text.split("|")) if text else (),
    tuple[float, ...]: lambda text: tuple(map(float, text.split("|"))),
}
Entry = TypeVar("Entry")


class Code(NamedTuple):
    """A code and its label."""

    code: str
    label: str


def records(name: str, folder: Path = DATA) -> list[dict[str, str]]:
    """The rows of NAME.csv."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def entries(name: str, kind: type[Entry], folder: Path = DATA) -> tuple[Entry, ...]:
    """The rows of NAME.csv as instances of `kind`; items of a tuple are separated by bars."""
    read = {field: READ[hint] for field, hint in get_type_hints(kind).items()}
    rows = records(name, folder)
    return tuple(kind(**{field: read[field](row[field]) for field in read if field in row}) for row in rows)


def by_sector(name: str, kind: type[Entry]) -> dict[str, Entry]:
    """The rows of NAME.csv by the sector code in the first column."""
    return dict(zip((row["sector"] for row in records(name)), entries(name, kind), strict=True))


def code_list(name: str) -> tuple[Code, ...]:
    """One of the short lists in `data/codes.csv`."""
    return tuple(Code(row["code"], row["label"]) for row in records("codes") if row["list"] == name)


def name_parts(part: str) -> tuple[str, ...]:
    """Parts of synthetic names."""
    return tuple(row["text"] for row in records("names") if row["part"] == part)


def column(rows: Sequence[object], field: str) -> Floats:
    """One field of all rows, as numbers."""
    return np.array([getattr(row, field) for row in rows], dtype=np.float64)
