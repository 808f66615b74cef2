"""Reads public numbers by cell from a CSV file of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.domain import Domain
from discreet.domain.codelists import read_published
from discreet.errors import DomainError


def read_listed_cells(
    path: Path, domain: Domain, column: str, where: str, refused: Callable[[str], DomainError]
) -> Iterator[tuple[int, int, str]]:
    """Line number, cell number and the text of one column, line by line; a repeated cell is refused."""
    seen = set[int]()
    positions = [{key: i for i, key in enumerate(a.published)} for a in domain.attributes]
    widths = [len(a.columns) for a in domain.attributes]
    for line, row in enumerate(read_published(path, [*domain.columns, column], where), 2):
        cell, start = 0, 0
        for known, width, stride in zip(positions, widths, domain.strides, strict=True):
            key = row[start : start + width]
            if key not in known:
                raise refused(f"line {line} has an undeclared category, {'/'.join(key)!r}")
            cell, start = cell + known[key] * stride, start + width
        if cell in seen:
            raise refused(f"line {line} repeats a cell")
        seen.add(cell)
        yield line, cell, row[-1]
