"""Public numbers of records, by cell: what noise may be divided by without telling anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.codelists import read_columns
from discreet.domain import Domain
from discreet.errors import DomainError
from discreet.methods.cells import Int64s
from discreet.spec.sensitivity import PublicSizes

MOST = 10**12


def public_sizes(spec: PublicSizes, domain: Domain, base: Path) -> Int64s:
    """One number a cell, at least 1; a cell that is not listed counts as one record, so that its noise is largest."""
    found, seen = np.ones(domain.cells, np.int64), np.zeros(domain.cells, np.bool_)
    places = [{key: i for i, key in enumerate(a.published)} for a in domain.attributes]
    widths = [len(a.columns) for a in domain.attributes]
    for line, row in enumerate(read_columns(base / spec.public, [*domain.columns, spec.column], "size"), 2):
        cell, start = 0, 0
        for known, width, stride in zip(places, widths, domain.strides, strict=True):
            key = row[start : start + width]
            if key not in known:
                raise _refused(spec, f"line {line} has an undeclared category, {'/'.join(key)!r}")
            cell, start = cell + known[key] * stride, start + width
        if not row[-1].isdecimal() or not 0 <= int(row[-1]) <= MOST:
            raise _refused(spec, f"line {line} has no whole number of records")
        if seen[cell]:
            raise _refused(spec, f"line {line} lists a cell again")
        seen[cell] = True
        found[cell] = max(int(row[-1]), 1)
    return found


def _refused(spec: PublicSizes, what: str) -> DomainError:
    return DomainError(what, where=f"size, file {spec.public}", do="list every cell once, with its codes and a number")
