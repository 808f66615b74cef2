"""`pseof_all.csv`: one row per group of graduates and destination; years after graduation in columns.

A destination is a sector, a division, a sector of a division, or all employers. The number of graduates not employed or
marginally employed belongs to the group: rows of all employers have it, in other rows it is not available.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.domain import Domain
from discreet.errors import PublishError, SpecError
from discreet.post.percentiles import Int64s
from discreet.post.summary import PUBLISHED, SUPPRESSED
from discreet.privacy.protected import Protected
from discreet.publish.lehd import schema
from discreet.publish.lehd.layout import (
    BATCH,
    NOT_AVAILABLE,
    ColumnPosition,
    LehdLevel,
    arrow_schema,
    check_codes,
    check_levels,
    code_arrays,
    columns_by_role,
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

SCHEMA = arrow_schema(schema.PSEOF)
IDENTIFIERS = {"division": "geography", "industry": "industry"}  # by key of `Lehd`


@dataclass(frozen=True)
class FlowNumbers:
    """The protected numbers of a level. Those with status 5 must not be published."""

    employed: Int64s  # (groups, destinations)
    in_state: Int64s  # (groups, destinations)
    marginal: Int64s  # (groups,)
    status: Int64s  # (groups, destinations): 1 published, 5 suppressed


@dataclass(frozen=True)
class LehdFlows:
    """The mapping of one level to rows: one per pair of group and destination, years in columns."""

    groups: LehdLevel
    destinations: Domain
    columns: Mapping[str, ColumnPosition]  # of the destinations, by identifier

    @property
    def name(self) -> str:
        return self.groups.name

    @property
    def rows(self) -> int:
        return self.groups.rows * self.destinations.cells

    def batches(self, flows: FlowNumbers) -> Iterator[pa.RecordBatch]:
        """The rows of a level, the destinations of a group contiguous."""
        self._refuse_inconsistent(flows)
        cells, width = self.groups.cells(), self.destinations.cells
        for first in range(0, self.rows, BATCH):
            rows = np.arange(first, min(first + BATCH, self.rows))
            mine, to = cells[rows // width], rows % width
            columns = self.groups.identifiers(mine[:, 0]) | code_arrays(self.destinations, self.columns, to)
            for year in schema.YEARS:
                category = self.groups.years[1].get(year)
                columns |= self._year(year, None if category is None else mine[:, category], to, flows)
            yield pa.RecordBatch.from_arrays([columns[column] for column in SCHEMA.names], schema=SCHEMA)

    def _year(self, year: str, groups: Int64s | None, to: Int64s, flows: FlowNumbers) -> dict[str, pa.Array]:
        numbers: dict[str, Int64s] = {}
        if groups is not None:
            numbers = {"emp": flows.employed[groups, to], "emp_instate": flows.in_state[groups, to]}
            numbers |= {"nme": flows.marginal[groups]} if self.groups.agg.of_all_employers else {}
        columns: dict[str, pa.Array] = {}
        for what in ("emp", "emp_instate", "nme"):
            count, flag = f"{year}_grads_{what}", f"status_{year}_grads_{what}"
            if what in numbers:
                status = flows.status[groups, to]
                columns |= {count: pa.array(numbers[what], mask=status == SUPPRESSED), flag: pa.array(status)}
            else:
                columns |= {count: pa.nulls(len(to), pa.int64()), flag: constant(NOT_AVAILABLE, len(to))}
        return columns

    def _refuse_inconsistent(self, flows: FlowNumbers) -> None:
        """Refuse numbers of the wrong shape, or that the correction cannot have produced."""
        groups, pairs = (self.groups.domain.cells,), (self.groups.domain.cells, self.destinations.cells)
        shapes = [numbers.shape for numbers in (flows.employed, flows.in_state, flows.status, flows.marginal)]
        sound = shapes == [pairs, pairs, pairs, groups] and bool(
            np.isin(flows.status, (PUBLISHED, SUPPRESSED)).all()
            and (flows.marginal >= 0).all()
            and (flows.in_state >= 0).all()
            and (flows.in_state <= flows.employed).all()
        )
        if not sound:
            raise PublishError(
                "has inconsistent numbers", where=level_location(self.name), do="report this as a defect"
            )


def lehd_flows(name: str, groups: Domain, destinations: Domain, layout: Lehd) -> LehdFlows:
    """The rows of a level; refused if the layout cannot represent it."""
    where = level_location(name)
    if layout.cip4 in groups.columns:
        raise SpecError(
            "is by 4-digit field; flows are by 2-digit field", where=where, do=f"publish {layout.cip2!r} instead"
        )
    has = columns_by_role(destinations, layout, tuple(IDENTIFIERS), where)
    geo_level, ind_level = "D" if "division" in has else "N", "S" if "industry" in has else "A"
    level = level_of(name, groups, layout, geo_level, ind_level)
    columns = {IDENTIFIERS[role]: at for role, at in has.items()}
    for identifier, at in columns.items():
        check_codes(destinations, at, identifier, geo_level if identifier == "geography" else ind_level, where)
    return LehdFlows(level, destinations, columns)


@dataclass(frozen=True)
class Pseof:
    """The file of all levels."""

    layout: Lehd
    levels: tuple[LehdFlows, ...]
    labels: Mapping[str, Mapping[str, str]]  # of institutions, fields, sectors and divisions, as far as declared

    def __post_init__(self) -> None:
        check_levels([level.groups for level in self.levels], self.layout, f"layout lehd, pseof_{self.layout.area}")

    @property
    def names(self) -> set[str]:
        """The names of its levels."""
        return {level.name for level in self.levels}

    def files(self, simulated: bool) -> dict[str, str]:
        """File names, and what each contains."""
        return table_files(schema.PSEOF, self.layout.area, simulated)

    def sidecars(self) -> Sidecars:
        """The content of the label and version files."""
        destinations = {identifier: self._destinations(identifier) for identifier in IDENTIFIERS.values()}
        return sidecars_of("pseof", self.layout, [level.groups for level in self.levels], self.labels, destinations)

    def _destinations(self, identifier: str) -> set[str]:
        pairs = [(level.destinations, level.columns.get(identifier)) for level in self.levels]
        return {code for domain, at in pairs for code in ({"00"} if at is None else declared_codes(domain, at))}

    def write(self, place: Storage, flows: Mapping[str, Protected[FlowNumbers]]) -> dict[str, str]:
        """Write all levels; returns the files and their digests."""
        simulated, batches = next(iter(flows.values())).simulated, self._batches(flows)
        return write_table(place, f"pseof_{self.layout.area}", SCHEMA, batches, simulated, bare=True).files

    def _batches(self, flows: Mapping[str, Protected[FlowNumbers]]) -> Iterator[Protected[pa.RecordBatch]]:
        for level in sorted(self.levels, key=lambda level: level.groups.agg.number):
            numbers = flows[level.name]
            for batch in level.batches(numbers.value):
                yield numbers.map(lambda _, batch=batch: batch)  # type: ignore[misc]
