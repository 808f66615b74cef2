"""Public numbers of records, by cell: what noise may be divided by without telling anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.domain import Domain
from discreet.errors import DomainError
from discreet.methods.cells import Int64s
from discreet.methods.public_cells import listed
from discreet.methods.sensitivity.spec import PublicSizes

MOST = 10**12


def public_sizes(spec: PublicSizes, domain: Domain, base: Path) -> Int64s:
    """One number a cell, at least 1; a cell that is not listed counts as one record, so that its noise is largest."""
    found = np.ones(domain.cells, np.int64)

    def refused(what: str) -> DomainError:
        return DomainError(
            what, where=f"size, file {spec.public}", do="list every cell once, with its codes and a number"
        )

    for line, cell, text in listed(base / spec.public, domain, spec.column, "size", refused):
        if not text.isdecimal() or not 0 <= int(text) <= MOST:
            raise refused(f"line {line} has no whole number of records")
        found[cell] = max(int(text), 1)
    return found
