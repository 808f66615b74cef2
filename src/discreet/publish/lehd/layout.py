"""Common parts of the layouts of earnings and flows: mapping columns to identifiers, and years to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.arrays import Int64s
from discreet.domain import Attribute, Domain
from discreet.errors import DomainError, SpecError
from discreet.publish.description import stem
from discreet.publish.lehd import schema
from discreet.publish.lehd.codes import fits
from discreet.publish.lehd.schema import AggLevel, Layout
from discreet.publish.lehd.spec import Lehd

BATCH = 1 << 16  # rows
NOT_AVAILABLE = -1  # a flag
ColumnPosition = tuple[int, int]  # of an attribute, and of a column in it
GRADUATES = ("institution", "state", "degree_level", "cip4", "cip2", "grad_cohort", "years_after")  # keys of `Lehd`
_NUMBERS = {"agg_level_pseo", "grad_cohort_years"}
_CODE = pa.dictionary(pa.int32(), pa.string())


def arrow_schema(layout: Layout) -> pa.Schema:
    """Identifiers are codes, all other columns integers."""
    codes = set(schema.IDENTIFIERS) - _NUMBERS
    return pa.schema([(column, _CODE if column in codes else pa.int64()) for column in layout.columns])


def constant(value: str | int, n: int) -> pa.Array:
    """A constant column of n rows."""
    if isinstance(value, int):
        return pa.array(np.full(n, value, np.int64))
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array([value]))


def table_files(layout: Layout, area: str, simulated: bool) -> dict[str, str]:
    """The file names of a layout's table, and what it contains."""
    name, about = stem(f"{layout.kind}_{area}", simulated), f"the levels of LEHD's public-use layout {layout}"
    return {f"{name}.parquet": about, f"{name}.csv": about}


@dataclass(frozen=True)
class LehdLevel:
    """The mapping of one level's cells to rows: cells that differ only in years after graduation share a row."""

    name: str
    domain: Domain
    agg: AggLevel
    columns: Mapping[str, ColumnPosition]  # by identifier
    years: tuple[int, Mapping[str, int]]  # position of the attribute, and the categories of y1, y5, y10

    @property
    def rows(self) -> int:
        return self.domain.cells // self.domain.shape[self.years[0]]

    def cells(self) -> Int64s:
        """The cell numbers of each row, one column per category of years."""
        numbers = np.arange(self.domain.cells).reshape(self.domain.shape)
        return np.moveaxis(numbers, self.years[0], -1).reshape(self.rows, -1)

    def identifiers(self, cells: Int64s) -> dict[str, pa.Array]:
        """The identifier columns of rows, each given by one of its cells."""
        n = len(cells)
        columns: dict[str, pa.Array] = {
            "agg_level_pseo": constant(self.agg.number, n),
            "inst_level": constant(self.agg.inst_level, n),
            "cip_level": constant(self.agg.cip_level, n),
            "cipcode": constant("00", n),
            "grad_cohort": constant(schema.ALL_COHORTS, n),
            "geo_level": constant(self.agg.geo_level, n),
            "geography": constant("00", n),
            "ind_level": constant(self.agg.ind_level, n),
            "industry": constant("00", n),
        }
        columns |= code_arrays(self.domain, self.columns, cells)
        degrees = columns["degree_level"]
        years = np.array([schema.cohort_years(code) for code in degrees.dictionary.to_pylist()], np.int64)
        return columns | {"grad_cohort_years": pa.array(years[degrees.indices.to_numpy()])}

    def codes(self, identifier: str) -> set[str]:
        """All declared codes of an identifier."""
        at = self.columns.get(identifier)
        return set() if at is None else declared_codes(self.domain, at)


def code_arrays(domain: Domain, columns: Mapping[str, ColumnPosition], cells: Int64s) -> dict[str, pa.Array]:
    """The code columns of cells, by identifier."""
    shown = dict(zip(domain.columns, domain.code_arrays(cells), strict=True))
    return {name: shown[domain.attributes[place].columns[column]] for name, (place, column) in columns.items()}


def declared_codes(domain: Domain, at: ColumnPosition) -> set[str]:
    """The codes of one column of a domain."""
    return {key[at[1]] for key in domain.attributes[at[0]].published}


def level_location(level: str) -> str:
    return f"level {level}, layout lehd"


def columns_by_role(domain: Domain, layout: Lehd, roles: Sequence[str], where: str) -> dict[str, ColumnPosition]:
    """The columns of a domain by role in the layout; a column without a role is refused."""
    wanted = {str(getattr(layout, role)): role for role in roles}
    positions = {column: (place, i) for place, a in enumerate(domain.attributes) for i, column in enumerate(a.columns)}
    for column in positions:
        if column not in wanted:
            raise SpecError(
                f"column {column!r} has no place in the layout",
                where=where,
                do=f"omit it, or declare which of {', '.join(roles)} it is",
            )
    return {wanted[column]: at for column, at in positions.items()}


def level_of(name: str, domain: Domain, layout: Lehd, geo_level: str = "N", ind_level: str = "A") -> LehdLevel:
    """The rows of a level; refused if the layout cannot represent it."""
    where = level_location(name)
    has = columns_by_role(domain, layout, GRADUATES, where)
    for one, other in (("institution", "state"), ("cip4", "cip2")):
        if one in has and other in has:
            raise SpecError(f"has both {one} and {other}", where=where, do="publish them as two levels")
    for needed in ("degree_level", "years_after", "institution" if "state" not in has else "state"):
        if needed not in has:
            column = getattr(layout, needed)
            raise SpecError(f"has no {needed}", where=where, do=f"add an attribute with the column {column!r}")
    if len(domain.attributes[has["years_after"][0]].columns) > 1:
        raise SpecError("years_after is part of a group", where=where, do="declare it as a domain of its own")
    cip = "4" if "cip4" in has else "2" if "cip2" in has else "A"
    agg = AggLevel("I" if "institution" in has else "S", cip, "grad_cohort" in has, geo_level, ind_level)
    columns = {"institution": has.get("institution") or has["state"], "degree_level": has["degree_level"]}
    columns |= {"cipcode": has[f"cip{cip}"]} if cip != "A" else {}
    columns |= {"grad_cohort": has["grad_cohort"]} if "grad_cohort" in has else {}
    levels = {"institution": agg.inst_level, "cipcode": agg.cip_level}
    for identifier, at in columns.items():
        check_codes(domain, at, identifier, levels.get(identifier, ""), where)
    years = has["years_after"][0]
    return LehdLevel(name, domain, agg, columns, (years, _years(domain.attributes[years], where)))


def check_codes(domain: Domain, at: ColumnPosition, identifier: str, level: str, where: str) -> None:
    """Refuse codes that LEHD writes differently or does not use."""
    attribute = domain.attributes[at[0]]
    for key in attribute.published:
        if not fits(identifier, level, key[at[1]]) or key[at[1]] == schema.ALL_COHORTS:
            raise DomainError(
                f"{key[at[1]]!r} is not a code of {identifier} in the layout",
                where=f"{where}, domain {attribute.name}",
                do="declare codes as LEHD writes them, with undeclared values dropped",
            )


def check_levels(levels: Sequence[LehdLevel], layout: Lehd, where: str) -> None:
    """Refuse repeated aggregation levels, and levels without the cohorts that the version file states."""
    numbers = [level.agg.number for level in levels]
    if double := next((n for n in numbers if numbers.count(n) > 1), None):
        raise SpecError(f"two levels are LEHD's aggregation level {double}", where=where, do="publish one of them")
    if not any(level.agg.by_cohort for level in levels):
        raise SpecError(
            "the layout lehd states the first and the last cohort, and no level is by one",
            where=where,
            do=f"add a level with the column {layout.grad_cohort!r}",
        )


def _years(attribute: Attribute, where: str) -> dict[str, int]:
    years = {f"y{key[0]}": i for i, key in enumerate(attribute.published)}
    if strange := next((year for year in years if year not in schema.YEARS), None):
        raise DomainError(
            f"{attribute.name} has the category {strange[1:]!r}", where=where, do="the layout has years 1, 5 and 10"
        )
    return years
