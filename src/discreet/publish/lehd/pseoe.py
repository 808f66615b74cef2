"""`pseoe_all.csv`: one row per institution, degree, field and cohort; years after graduation in columns."""

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
    declared_codes,
    level_location,
    level_of,
    table_files,
)
from discreet.publish.lehd.sidecars import Sidecars, sidecars_of
from discreet.publish.lehd.spec import Lehd
from discreet.publish.storage import Storage
from discreet.publish.tables import write_table

NO_IPEDS = 3  # a flag
QUARTILES = ("25", "50", "75")
SCHEMA = arrow_schema(schema.PSEOE)


def lehd_level(name: str, domain: Domain, layout: Lehd, suppress_codes: Mapping[str, list[str]]) -> LehdLevel:
    """The rows of a level; refused if the layout cannot represent it."""
    level = level_of(name, domain, layout)
    if level.agg.cip_level == "4":
        open_ = declared_codes(domain, level.columns["degree_level"]) - set(suppress_codes.get(layout.degree_level, ()))
        if restricted := sorted(open_ & schema.RESTRICTED):
            raise SpecError(
                f"publishes degree level {restricted[0]} by 4-digit field, which the layout does not permit",
                where=level_location(name),
                do=f'write `suppress_codes: {{{layout.degree_level}: ["07", "17"]}}`',
            )
    return level


@dataclass(frozen=True)
class Pseoe:
    """The file of all levels."""

    layout: Lehd
    levels: tuple[LehdLevel, ...]
    labels: Mapping[str, Mapping[str, str]]  # of institutions and fields, as far as they are declared

    def files(self, simulated: bool) -> dict[str, str]:
        """File names, and what each contains."""
        return table_files(schema.PSEOE, self.layout.area, simulated)

    def sidecars(self) -> Sidecars:
        """The content of the label and version files."""
        return sidecars_of("pseoe", self.layout, self.levels, self.labels)

    def write(
        self, place: Storage, summaries: Mapping[str, Protected[Summary]], quartiles: tuple[int, int, int]
    ) -> dict[str, str]:
        """Write all levels; returns the files and their digests."""
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
        columns = level.identifiers(mine[:, 0])
        for year in schema.YEARS:
            category = level.years[1].get(year)
            columns |= _year(year, None if category is None else mine[:, category], summary, quartiles, len(mine))
        yield pa.RecordBatch.from_arrays([columns[column] for column in SCHEMA.names], schema=SCHEMA)


def _year(
    year: str, cells: Int64s | None, summary: Summary, quartiles: tuple[int, int, int], n: int
) -> dict[str, pa.Array]:
    ipeds = {f"{year}_ipeds_count": pa.nulls(n, pa.int64()), f"status_{year}_ipeds_count": constant(NO_IPEDS, n)}
    earnings = [f"{year}_p{q}_earnings" for q in QUARTILES]
    flags = (f"status_{year}_earnings", f"status_{year}_grads_earn")
    if cells is None:
        empty = {name: pa.nulls(n, pa.int64()) for name in (*earnings, f"{year}_grads_earn")}
        return ipeds | empty | {flag: constant(NOT_AVAILABLE, n) for flag in flags}
    suppressed = ~summary.published[cells]
    columns = {
        name: pa.array(summary.percentiles[cells, q], mask=suppressed)
        for name, q in zip(earnings, quartiles, strict=True)
    }
    columns[f"{year}_grads_earn"] = pa.array(summary.counts[cells], mask=suppressed)
    return ipeds | columns | {flag: pa.array(summary.status[cells]) for flag in flags}
