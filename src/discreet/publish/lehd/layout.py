"""What the layouts of earnings and of flows share: which column is which identifier, and years side by side."""

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
ColumnPosition = tuple[int, int]  # an attribute, and a column of it
GRADUATES = ("institution", "state", "degree_level", "cip4", "cip2", "grad_cohort", "years_after")  # keys of `Lehd`
_NUMBERS = {"agg_level_pseo", "grad_cohort_years"}
_CODE = pa.dictionary(pa.int32(), pa.string())


def arrow_schema(layout: Layout) -> pa.Schema:
    """Identifiers are codes, all else is numbers."""
    codes = set(schema.IDENTIFIERS) - _NUMBERS
    return pa.schema([(column, _CODE if column in codes else pa.int64()) for column in layout.columns])


def constant(value: str | int, n: int) -> pa.Array:
    """A column that is the same in n rows."""
    if isinstance(value, int):
        return pa.array(np.full(n, value, np.int64))
    return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array([value]))


def table_files(layout: Layout, area: str, simulated: bool) -> dict[str, str]:
    """The names of a layout's table, and what it is."""
    name, about = stem(f"{layout.kind}_{area}", simulated), f"the levels of LEHD's public-use layout {layout}"
    return {f"{name}.parquet": about, f"{name}.csv": about}


@dataclass(frozen=True)
class LehdLevel:
    """How the cells of one level become rows: cells that differ in the years alone are one row."""

    name: str
    domain: Domain
    agg: AggLevel
    columns: Mapping[str, ColumnPosition]  # by identifier
    years: tuple[int, Mapping[str, int]]  # the attribute, and the category of y1, y5, y10

    @property
    def rows(self) -> int:
        return self.domain.cells // self.domain.shape[self.years[0]]

    def cells(self) -> Int64s:
        """The numbers of the cells of each row, one column a category of years."""
        numbers = np.arange(self.domain.cells).reshape(self.domain.shape)
        return np.moveaxis(numbers, self.years[0], -1).reshape(self.rows, -1)

    def identifiers(self, cells: Int64s) -> dict[str, pa.Array]:
        """Of rows, each given by one of its cells."""
        n = len(cells)
        found: dict[str, pa.Array] = {
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
        found |= code_arrays(self.domain, self.columns, cells)
        degrees = found["degree_level"]
        years = np.array([schema.cohort_years(code) for code in degrees.dictionary.to_pylist()], np.int64)
        return found | {"grad_cohort_years": pa.array(years[degrees.indices.to_numpy()])}

    def codes(self, identifier: str) -> set[str]:
        """Every code that the declaration has for an identifier."""
        at = self.columns.get(identifier)
        return set() if at is None else declared_codes(self.domain, at)


def code_arrays(domain: Domain, columns: Mapping[str, ColumnPosition], cells: Int64s) -> dict[str, pa.Array]:
    """The codes of cells, by identifier."""
    shown = dict(zip(domain.columns, domain.code_arrays(cells), strict=True))
    return {name: shown[domain.attributes[place].columns[column]] for name, (place, column) in columns.items()}


def declared_codes(domain: Domain, at: ColumnPosition) -> set[str]:
    """The codes of one column of a domain."""
    return {key[at[1]] for key in domain.attributes[at[0]].published}


def level_location(level: str) -> str:
    return f"level {level}, layout lehd"


def columns_by_role(domain: Domain, layout: Lehd, roles: Sequence[str], where: str) -> dict[str, ColumnPosition]:
    """Which column has which role; a column without one is refused."""
    wanted = {str(getattr(layout, role)): role for role in roles}
    found = {column: (place, i) for place, a in enumerate(domain.attributes) for i, column in enumerate(a.columns)}
    for column in found:
        if column not in wanted:
            raise SpecError(
                f"column {column!r} has no place in the layout",
                where=where,
                do=f"leave it out, or say which of {', '.join(roles)} it is",
            )
    return {wanted[column]: at for column, at in found.items()}


def level_of(name: str, domain: Domain, layout: Lehd, geo_level: str = "N", ind_level: str = "A") -> LehdLevel:
    """Which rows a level gives; refused where the layout has no place for it."""
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
    """Refuse codes that LEHD writes differently or does not have."""
    attribute = domain.attributes[at[0]]
    for key in attribute.published:
        if not fits(identifier, level, key[at[1]]) or key[at[1]] == schema.ALL_COHORTS:
            raise DomainError(
                f"{key[at[1]]!r} is no {identifier} of the layout",
                where=f"{where}, domain {attribute.name}",
                do="declare codes as LEHD writes them, undeclared values dropped",
            )


def check_levels(levels: Sequence[LehdLevel], layout: Lehd, where: str) -> None:
    """Each aggregation level once, and cohorts to state in the version file."""
    numbers = [level.agg.number for level in levels]
    if double := next((n for n in numbers if numbers.count(n) > 1), None):
        raise SpecError(f"two levels are LEHD's aggregation level {double}", where=where, do="keep one of them")
    if not any(level.agg.by_cohort for level in levels):
        raise SpecError(
            "the layout lehd states the first and the last cohort, and no level is by one",
            where=where,
            do=f"add a level with the column {layout.grad_cohort!r}",
        )


def _years(attribute: Attribute, where: str) -> dict[str, int]:
    found = {f"y{key[0]}": i for i, key in enumerate(attribute.published)}
    if strange := next((year for year in found if year not in schema.YEARS), None):
        raise DomainError(
            f"{attribute.name} has the category {strange[1:]!r}", where=where, do="the layout has years 1, 5 and 10"
        )
    return found
