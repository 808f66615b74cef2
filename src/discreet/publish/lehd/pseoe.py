"""`pseoe_all.csv`: a row for each institution, degree, field and cohort, the years after graduation side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from discreet.arrays import Int64s
from discreet.domain import Domain
from discreet.errors import SpecError
from discreet.post.summary import Summary
from discreet.privacy.protected import Protected
from discreet.publish.lehd import schema
from discreet.publish.lehd.layout import (
    BATCH,
    NOT_AVAILABLE,
    LehdLevel,
    arrow_schema,
    constant,
    declared,
    level_of,
    table_files,
    where_in,
)
from discreet.publish.lehd.sidecars import Sidecars, sidecars_of
from discreet.publish.lehd.spec import Lehd
from discreet.publish.storage import Storage
from discreet.publish.tables import write_table

NO_IPEDS = 3  # a flag
QUARTILES = ("25", "50", "75")
SCHEMA = arrow_schema(schema.PSEOE)


def lehd_level(name: str, domain: Domain, layout: Lehd, suppress_codes: Mapping[str, list[str]]) -> LehdLevel:
    """Which rows of the file a level gives; refused where the layout has no place for it."""
    level = level_of(name, domain, layout)
    if level.agg.cip_level == "4":
        open_ = declared(domain, level.columns["degree_level"]) - set(suppress_codes.get(layout.degree_level, ()))
        if stopped := sorted(open_ & schema.RESTRICTED):
            raise SpecError(
                f"publishes degree level {stopped[0]} at four digits of the field, which the layout does not",
                where=where_in(name),
                do=f'write `suppress_codes: {{{layout.degree_level}: ["07", "17"]}}`',
            )
    return level


@dataclass(frozen=True)
class Pseoe:
    """The whole file."""

    layout: Lehd
    levels: tuple[LehdLevel, ...]
    labels: Mapping[str, Mapping[str, str]]  # of institutions and fields, as far as they are declared

    def files(self, simulated: bool) -> dict[str, str]:
        """Every file's name, and what it is."""
        return table_files(schema.PSEOE, self.layout.area, simulated)

    def sidecars(self) -> Sidecars:
        """What stands in the small files beside it."""
        return sidecars_of("pseoe", self.layout, self.levels, self.labels)

    def write(
        self, place: Storage, summaries: Mapping[str, Protected[Summary]], quartiles: tuple[int, int, int]
    ) -> dict[str, str]:
        """Write the levels: the files and their digests."""
        simulated = next(iter(summaries.values())).simulated
        ordered = sorted(self.levels, key=lambda level: level.agg.number)
        batches = (
            summaries[level.name].map(lambda _, batch=batch: batch)  # type: ignore[misc]
            for level in ordered
            for batch in _batches(level, summaries[level.name].value, quartiles)
        )
        return write_table(place, f"pseoe_{self.layout.area}", SCHEMA, batches, simulated, bare=True).files


def _batches(level: LehdLevel, summary: Summary, quartiles: tuple[int, int, int]) -> Iterator[pa.RecordBatch]:
    """The rows of a level."""
    cells = level.cells()
    for first in range(0, level.rows, BATCH):
        mine = cells[first : first + BATCH]
        found = level.identifiers(mine[:, 0])
        for year in schema.YEARS:
            category = level.years[1].get(year)
            found |= _year(year, None if category is None else mine[:, category], summary, quartiles, len(mine))
        yield pa.RecordBatch.from_arrays([found[column] for column in SCHEMA.names], schema=SCHEMA)


def _year(
    year: str, cells: Int64s | None, summary: Summary, quartiles: tuple[int, int, int], n: int
) -> dict[str, pa.Array]:
    ipeds = {f"{year}_ipeds_count": pa.nulls(n, pa.int64()), f"status_{year}_ipeds_count": constant(NO_IPEDS, n)}
    earnings = [f"{year}_p{q}_earnings" for q in QUARTILES]
    flags = (f"status_{year}_earnings", f"status_{year}_grads_earn")
    if cells is None:
        empty = {name: pa.nulls(n, pa.int64()) for name in (*earnings, f"{year}_grads_earn")}
        return ipeds | empty | {flag: constant(NOT_AVAILABLE, n) for flag in flags}
    hidden = ~summary.published[cells]
    found = {
        name: pa.array(summary.percentiles[cells, q], mask=hidden) for name, q in zip(earnings, quartiles, strict=True)
    }
    found[f"{year}_grads_earn"] = pa.array(summary.counts[cells], mask=hidden)
    return ipeds | found | {flag: pa.array(summary.status[cells]) for flag in flags}
