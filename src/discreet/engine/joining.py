"""Records, and further tables that they are looked up in: a job's worker, a job's workplace.

Looking up never adds a record and never drops one. Where a key is listed twice, each of its columns has the least of
the listed values: a function of that key's own entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import ibis

from discreet.engine import Engine
from discreet.engine.tabulate import check_columns
from discreet.engine.text import as_text
from discreet.errors import SourceError


@dataclass(frozen=True)
class Lookup:
    """A table with a key, and the columns of it that are wanted."""

    name: str
    table: ibis.Table
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Records:
    """The records, and the tables that have further columns of theirs."""

    table: ibis.Table
    lookups: tuple[Lookup, ...] = ()

    def joined(self, distinct: bool = True) -> ibis.Table:
        """Records with all their columns. Unless `distinct`, a key that is listed twice gives two records: faster, and
        the same if no key is."""
        found = self.table
        for i, lookup in enumerate(self.lookups):
            listed = lookup.table.select(**{f"discreet_lookup_{i}": lookup.table[lookup.key]}, **_columns(lookup))
            if distinct:
                least = {column: listed[column].min() for column in lookup.columns}
                listed = listed.group_by(f"discreet_lookup_{i}").aggregate(**least)
            found = found.left_join(listed, same(self.table[lookup.key], listed[f"discreet_lookup_{i}"]))
            found = found.drop(f"discreet_lookup_{i}")
        return found

    def stored(self, engine: Engine) -> Records:
        """One snapshot of every table."""
        lookups = tuple(replace(lookup, table=engine.store(lookup.table)) for lookup in self.lookups)
        return Records(engine.store(self.table), lookups)


def _columns(lookup: Lookup) -> dict[str, ibis.Value]:
    return {column: lookup.table[column] for column in lookup.columns}


def same(one: ibis.Value, two: ibis.Value) -> ibis.Value:
    """Equal as codes are: SAS has no whole numbers, and one table may have as text what another has as a number."""
    plain = all(c.type().is_string() for c in (one, two)) or all(c.type().is_integer() for c in (one, two))
    return one == two if plain else as_text(one) == as_text(two)


def looked_up(
    name: str, records: ibis.Table, further: Sequence[tuple[str, ibis.Table, str]], wanted: Sequence[str]
) -> Records:
    """Which table has which wanted column; refused if two have it, for nobody says which is meant."""
    for other, found, key in further:
        check_columns(records, [key], f"source {name}")
        check_columns(found, [key], f"source {other}")
    tables = [(name, records, ""), *further]
    having: dict[str, list[str]] = {
        column: [table for table, found, key in tables if column in found.columns and column != key]
        for column in wanted
    }
    for column, places in having.items():
        if len(places) > 1:
            raise SourceError(
                f"column {column!r} is in {places[0]} and in {places[1]}",
                where="source " + ", ".join(places),
                do="rename one of them, so that it is clear which is meant",
            )
    lookups = [
        Lookup(other, found, key, tuple(c for c in wanted if having[c] == [other])) for other, found, key in further
    ]
    return Records(records, tuple(lookup for lookup in lookups if lookup.columns))
