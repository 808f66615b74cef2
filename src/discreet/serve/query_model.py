"""Queries to published tables, and their answers: the one model that pages, the API and file formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import prod
from statistics import NormalDist
from typing import Protocol

import numpy as np

from discreet.arrays import Floats
from discreet.errors import InvalidQuery, QueryTooLarge
from discreet.post.cubes.sampling import reliability

CAUTION, UNRELIABLE = 0.15, 0.3  # coefficients of variation above which numbers are marked
NORMAL90 = NormalDist().inv_cdf(0.95)  # standard errors in a 90% margin of error


class Status(StrEnum):
    """The reliability mark beside a number."""

    RELIABLE = ""
    CAUTION = "u"  # its coefficient of variation is high
    UNRELIABLE = "x"  # it is too high for use
    SUPPRESSED = "s"  # by a published rule
    ABSENT = ":"  # no such cell in the release


MEANING = {
    Status.RELIABLE: "reliable, or published without a margin of error",
    Status.CAUTION: f"use with caution: the standard error exceeds {CAUTION:.0%} of the estimate",
    Status.UNRELIABLE: f"unreliable: the standard error exceeds {UNRELIABLE:.0%} of the estimate, or the estimate is "
    "not positive",
    Status.SUPPRESSED: "suppressed by a rule stated in the notes of the release",
    Status.ABSENT: "no such combination of codes in the release",
}


@dataclass(frozen=True)
class TableVariable:
    """A dimension of a table: its codes in order, each with a label."""

    id: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    finer: str = ""  # the finer variable whose codes it groups, if any
    groups: tuple[int, ...] = ()  # the group of each code of the finer variable

    def with_codes(self, codes: Sequence[str]) -> TableVariable:
        """This variable restricted to these codes, in this order."""
        label = dict(zip(self.codes, self.labels, strict=True))
        return replace(self, codes=tuple(codes), labels=tuple(label[code] for code in codes), groups=())

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Measure:
    """A published number of a cell. `error_of` is the measure whose error it is, if it is one."""

    id: str
    label: str
    decimals: int = 0
    error_of: str = ""
    meaning: str = ""  # as the codebook defines it


@dataclass(frozen=True)
class TableQuery:
    """Variables to show, each with codes (all if none are named), and codes that all numbers are limited to."""

    by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    measures: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.by)


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers for all combinations of the variables' codes, row-major. NaN where there is none."""

    title: str
    variables: tuple[TableVariable, ...]
    measures: tuple[Measure, ...]
    numbers: Mapping[str, Floats]
    status: Sequence[Status]  # of each cell: the worst of its measures
    notes: tuple[str, ...] = ()
    limits: tuple[tuple[TableVariable, tuple[str, ...]], ...] = ()  # the variables limited by `where`, and their codes
    marks: Mapping[str, Sequence[Status]] = field(default_factory=dict)  # by measure, where they differ from `status`

    def marks_for(self, measure: Measure) -> Sequence[Status]:
        """The marks of one measure: its own, or those of the measure whose error it is."""
        return self.marks.get(measure.error_of or measure.id, self.status)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(variable) for variable in self.variables)

    def __len__(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class TableSummary:
    """What the catalogue says about a table."""

    id: str
    title: str
    release: str
    method: str
    guarantee: str
    caveats: tuple[str, ...]
    noise: str
    notes: tuple[str, ...]
    updated: str  # the date of the release
    simulation: bool

    @property
    def has_independent_noise(self) -> bool:
        """Whether the noise of each cell is independent of all others."""
        return self.method == "counts"

    @property
    def is_flow_table(self) -> bool:
        """Whether its first two variables are origin and destination."""
        return self.method == "flows"


class QueryableTable(Protocol):
    """A published table that answers queries."""

    @property
    def summary(self) -> TableSummary: ...
    @property
    def variables(self) -> tuple[TableVariable, ...]:
        """The table's own variables, then coarser ones."""

    @property
    def measures(self) -> tuple[Measure, ...]: ...
    @property
    def additive(self) -> bool:
        """Whether variables that a query omits are summed over; otherwise each must be shown or limited to one code."""

    def cells(self, query: TableQuery) -> int:
        """How many numbers the answer would have."""

    def answer(self, query: TableQuery, most: int) -> Answer:
        """The numbers; raises `QueryTooLarge` if there would be more than `most`."""


def variable(table: QueryableTable, name: str, where: str) -> TableVariable:
    """The variable of this name."""
    for v in table.variables:
        if v.id == name:
            return v
    known = ", ".join(v.id for v in table.variables)
    raise InvalidQuery(f"unknown variable {name[:40]!r}", where=where, do=f"use one of {known}")


def members(finer: TableVariable, coarser: TableVariable, groups: Collection[str]) -> tuple[str, ...]:
    """The codes of the finer variable that belong to these groups of the coarser one."""
    selected = {i for i, code in enumerate(coarser.codes) if code in groups}
    return tuple(code for code, group in zip(finer.codes, coarser.groups, strict=True) if group in selected)


def select_codes(table: QueryableTable, name: str, codes: Sequence[str], where: str) -> TableVariable:
    """A variable restricted to these of its codes, or with all if none are named."""
    v = variable(table, name, where)
    if not codes:
        return v
    known = set(v.codes)
    unknown = next((code for code in codes if code not in known), None)
    if unknown is not None:
        some = ", ".join(v.codes[:5]) + (" …" if len(v) > 5 else "")
        raise InvalidQuery(f"unknown code {unknown[:40]!r} of {name}", where=where, do=f"its codes are {some}")
    if len(set(codes)) < len(codes):
        raise InvalidQuery(f"duplicate code of {name}", where=where, do="name each code once")
    return v.with_codes(codes)


def resolve_query(
    table: QueryableTable, query: TableQuery
) -> tuple[tuple[TableVariable, ...], tuple[TableVariable, ...], tuple[Measure, ...]]:
    """The variables shown, those limited, and the measures of a query; refused if the table lacks any of them."""
    shown = tuple(select_codes(table, name, codes, "by") for name, codes in query.by)
    limited = tuple(select_codes(table, name, codes, "where") for name, codes in query.where)
    for places, where in (([v.finer or v.id for v in shown], "by"), ([v.id for v in limited], "where")):
        if twice := next((place for place, times in Counter(places).items() if times > 1), None):
            raise InvalidQuery(f"duplicate variable {twice}", where=where, do="name it, or a coarser one, only once")
    if len(set(query.measures)) < len(query.measures):
        raise InvalidQuery("duplicate measure", where="measures", do="name each measure once")
    shown = tuple(_left(v, limited) for v in shown)
    measures = {measure.id: measure for measure in table.measures}
    unknown = next((name for name in query.measures if name not in measures), None)
    if unknown is not None:
        raise InvalidQuery(
            f"unknown measure {unknown[:40]!r}", where="measures", do=f"use one of {', '.join(measures)}"
        )
    return shown, limited, tuple(measures[name] for name in query.measures) or table.measures


def _left(shown: TableVariable, limited: Sequence[TableVariable]) -> TableVariable:
    """A shown variable without the codes that its own limit excludes."""
    own = next((set(v.codes) for v in limited if v.id == shown.id), None)
    codes = [code for code in shown.codes if own is None or code in own]
    if not codes:
        raise InvalidQuery(
            f"the limits exclude every code of {shown.id}", where="where", do="choose codes that occur together"
        )
    return shown if len(codes) == len(shown) else shown.with_codes(codes)


def unspecified(table: QueryableTable, named: Collection[str]) -> list[str]:
    """The variables that a query to a non-additive table must still name: each is shown or limited to one code."""
    return [] if table.additive else [v.id for v in table.variables if not v.finer and v.id not in named]


def reliability_marks(value: Floats, error: Floats) -> list[Status]:
    """The reliability marks of numbers with these standard errors; missing numbers are suppressed."""
    marks = [_MARKS[mark] for mark in reliability(value, error, caution=CAUTION, withhold=UNRELIABLE).tolist()]
    return [Status.SUPPRESSED if none else mark for none, mark in zip(np.isnan(value).tolist(), marks, strict=True)]


_MARKS = (Status.RELIABLE, Status.CAUTION, Status.UNRELIABLE)  # in the order of `Reliability`


def require_size(table: QueryableTable, shown: Sequence[TableVariable], measures: int, most: int) -> None:
    """Refuse an answer with too many numbers, and suggest what to leave out."""
    cells = prod(len(v) for v in shown) * measures
    if cells > most:
        offers = [v.id for v in sorted(shown, key=len, reverse=True)]
        raise QueryTooLarge(
            f"the answer would have {cells:,} numbers, more than the limit of {most:,}",
            where=table.summary.id,
            do=f"choose fewer codes, or leave out {offers[0]}" if offers else "request fewer measures",
            offers=offers,
        )
