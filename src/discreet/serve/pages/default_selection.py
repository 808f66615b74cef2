"""Which codes to begin with, where cells do not add up: those of which most numbers are published."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from discreet.errors import AskedWrongly
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable
from discreet.serve.stored_table import StoredTable

TRIED = 30  # combinations
ROWS = 1_000_000  # that are looked at, to find combinations that occur
CELLS = 20_000  # of one question
_KNOWN: WeakKeyDictionary[QueryableTable, Mapping[str, str]] = WeakKeyDictionary()


def first_codes(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    """A code for each variable that is not shown at first. Asked once of a table."""
    if table not in _KNOWN:
        _KNOWN[table] = _best(table, shown, measures)
    return _KNOWN[table]


def _best(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    others = [v for v in table.variables if v.id not in shown]
    mains = tuple(m.id for m in table.measures if not m.about)[:measures]
    best, most = {v.id: v.codes[0] for v in others if v.codes}, -1
    if not others or not mains or len(best) < len(others):
        return best
    by = tuple((name, ()) for name in shown)
    for codes in _candidates(table, others, mains):
        at = {v.id: code for v, code in zip(others, codes, strict=True)}
        try:
            found = table.answer(TableQuery(by, tuple((name, (code,)) for name, code in at.items()), mains), CELLS)
        except AskedWrongly:  # too large to try, or not a question that the table has
            return best
        there = sum(int((~np.isnan(found.numbers[name])).sum()) for name in mains)
        if there > most:
            best, most = at, there
        if there == len(found) * len(mains):
            break
    return best


def _candidates(table: QueryableTable, others: list[TableVariable], mains: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The first combination, then those with most numbers."""
    first = list(islice(product(*(v.codes for v in others)), TRIED))
    if not isinstance(table, StoredTable):
        return first
    names = [v.id for v in others]
    some = table.rows.slice(0, ROWS)
    codes = {f"code {i}": some[name].cast(pa.string()) for i, name in enumerate(names)}
    rows = pa.table({**codes, **{f"number {i}": some[name] for i, name in enumerate(mains)}})
    numbers = [f"number {i}" for i in range(len(mains))]
    counted = rows.group_by(list(codes), use_threads=False).aggregate([(name, "count") for name in numbers])
    known = [set(v.codes) for v in others]
    often = sorted(counted.to_pylist(), key=lambda row: -sum(row[f"{name}_count"] for name in numbers))
    found = (tuple(row[name] for name in codes) for row in often)
    fitting = (one for one in found if all(code in own for code, own in zip(one, known, strict=True)))
    return list(dict.fromkeys([first[0], *islice(fitting, TRIED - 1)]))
