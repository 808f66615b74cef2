"""What can be asked of a published table, and what comes back: the one shape that pages, programs and files share."""

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

CAUTION, UNRELIABLE = 0.15, 0.3  # coefficients of variation from which on numbers are marked
NORMAL90 = NormalDist().inv_cdf(0.95)  # standard errors in a margin at 90%


class Status(StrEnum):
    """The mark beside a number."""

    RELIABLE = ""
    CAUTION = "u"  # its coefficient of variation is high
    UNRELIABLE = "x"  # too high for use
    SUPPRESSED = "s"  # withheld by a published rule
    ABSENT = ":"  # no such cell in the release


MEANING = {
    Status.RELIABLE: "reliable, or published without an error",
    Status.CAUTION: f"use with caution: the standard error is more than {CAUTION:.0%} of the estimate",
    Status.UNRELIABLE: f"not reliable: the standard error is more than {UNRELIABLE:.0%} of the estimate, or that is "
    "not positive",
    Status.SUPPRESSED: "withheld by a rule of the release, which its notes state",
    Status.ABSENT: "the release has no such combination of codes",
}


@dataclass(frozen=True)
class TableVariable:
    """A dimension of a table: its codes in order, each with a label."""

    id: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    of: str = ""  # the finer variable whose codes it groups, if it does
    groups: tuple[int, ...] = ()  # the group of each of them

    def chosen(self, codes: Sequence[str]) -> TableVariable:
        """With these codes alone, in this order."""
        label = dict(zip(self.codes, self.labels, strict=True))
        return replace(self, codes=tuple(codes), labels=tuple(label[code] for code in codes), groups=())

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Measure:
    """A published number of a cell. `about` is the measure whose error it tells, if it does."""

    id: str
    label: str
    decimals: int = 0
    about: str = ""
    meaning: str = ""  # in the words of the codebook


@dataclass(frozen=True)
class TableQuery:
    """Variables to show, each with codes (all, if none are named); and codes that everything is limited to."""

    by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    measures: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.by)


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers of all combinations of the variables' codes, the first variable slowest. NaN where there is none."""

    title: str
    variables: tuple[TableVariable, ...]
    measures: tuple[Measure, ...]
    numbers: Mapping[str, Floats]
    status: Sequence[Status]  # of each cell: the worst of its measures
    notes: tuple[str, ...] = ()
    limited: tuple[tuple[TableVariable, tuple[str, ...]], ...] = ()  # what `where` has left of others
    marks: Mapping[str, Sequence[Status]] = field(default_factory=dict)  # of single measures, where they differ

    def marked(self, measure: Measure) -> Sequence[Status]:
        """The marks of one measure: its own, or those of the number whose error it tells."""
        return self.marks.get(measure.about or measure.id, self.status)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(variable) for variable in self.variables)

    def __len__(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class About:
    """A table as the catalogue has it."""

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
    def independent(self) -> bool:
        """Whether every cell was drawn noise of its own."""
        return self.method == "counts"

    @property
    def of_flows(self) -> bool:
        """Whether its first two variables are origin and destination."""
        return self.method == "flows"


class QueryableTable(Protocol):
    """A published table that can be asked."""

    @property
    def about(self) -> About: ...
    @property
    def variables(self) -> tuple[TableVariable, ...]:
        """Those of the table itself, then coarser ones."""

    @property
    def measures(self) -> tuple[Measure, ...]: ...
    @property
    def additive(self) -> bool:
        """Whether variables that are not asked for are added up; else each must be shown or limited to one code."""

    def cells(self, question: TableQuery) -> int:
        """How many cells the answer would have."""

    def answer(self, question: TableQuery, most: int) -> Answer:
        """The numbers; `QueryTooLarge` if there are more cells than `most`."""


def variable(table: QueryableTable, name: str, where: str) -> TableVariable:
    """By its name."""
    for found in table.variables:
        if found.id == name:
            return found
    known = ", ".join(v.id for v in table.variables)
    raise InvalidQuery(f"no variable {name[:40]!r}", where=where, do=f"the table has {known}")


def members(finer: TableVariable, coarser: TableVariable, groups: Collection[str]) -> tuple[str, ...]:
    """The codes of the finer variable in some groups of the coarser."""
    wanted = {i for i, code in enumerate(coarser.codes) if code in groups}
    return tuple(code for code, group in zip(finer.codes, coarser.groups, strict=True) if group in wanted)


def chosen(table: QueryableTable, name: str, codes: Sequence[str], where: str) -> TableVariable:
    """A variable with these of its codes, or with all."""
    found = variable(table, name, where)
    if not codes:
        return found
    known = set(found.codes)
    strange = next((code for code in codes if code not in known), None)
    if strange is not None:
        some = ", ".join(found.codes[:5]) + (" …" if len(found) > 5 else "")
        raise InvalidQuery(f"no code {strange[:40]!r} of {name}", where=where, do=f"it has {some}")
    if len(set(codes)) < len(codes):
        raise InvalidQuery(f"a code of {name} is named twice", where=where, do="name it once")
    return found.chosen(codes)


def checked(
    table: QueryableTable, question: TableQuery
) -> tuple[tuple[TableVariable, ...], tuple[TableVariable, ...], tuple[Measure, ...]]:
    """The variables shown, those limited, and the measures of a question, if the table has them all."""
    shown = tuple(chosen(table, name, codes, "by") for name, codes in question.by)
    limited = tuple(chosen(table, name, codes, "where") for name, codes in question.where)
    for places, where in (([v.of or v.id for v in shown], "by"), ([v.id for v in limited], "where")):
        if twice := next((place for place, times in Counter(places).items() if times > 1), None):
            raise InvalidQuery(f"{twice} is asked for twice", where=where, do="ask for the finer one alone")
    if len(set(question.measures)) < len(question.measures):
        raise InvalidQuery("a measure is named twice", where="measures", do="name it once")
    shown = tuple(_left(v, limited) for v in shown)
    measures = {measure.id: measure for measure in table.measures}
    strange = next((name for name in question.measures if name not in measures), None)
    if strange is not None:
        raise InvalidQuery(f"no measure {strange[:40]!r}", where="measures", do=f"the table has {', '.join(measures)}")
    return shown, limited, tuple(measures[name] for name in question.measures) or table.measures


def _left(shown: TableVariable, limited: Sequence[TableVariable]) -> TableVariable:
    """A shown variable without the codes that a limit of itself leaves out."""
    own = next((set(v.codes) for v in limited if v.id == shown.id), None)
    codes = [code for code in shown.codes if own is None or code in own]
    if not codes:
        raise InvalidQuery(f"no code of {shown.id} is left", where="where", do="choose codes that go together")
    return shown if len(codes) == len(shown) else shown.chosen(codes)


def unnamed(table: QueryableTable, named: Collection[str]) -> list[str]:
    """What a question lacks, of a table that does not add up: each variable is shown or limited to one code."""
    return [] if table.additive else [v.id for v in table.variables if not v.of and v.id not in named]


def judged(value: Floats, error: Floats) -> list[Status]:
    """The marks of numbers with these standard errors; those that are missing are withheld."""
    marks = [_MARKS[mark] for mark in reliability(value, error, caution=CAUTION, withhold=UNRELIABLE).tolist()]
    return [Status.SUPPRESSED if none else mark for none, mark in zip(np.isnan(value).tolist(), marks, strict=True)]


_MARKS = (Status.RELIABLE, Status.CAUTION, Status.UNRELIABLE)  # as `Reliability` numbers them


def at_most(table: QueryableTable, shown: Sequence[TableVariable], measures: int, most: int) -> None:
    """Refuse an answer of too many numbers, and offer what to leave out."""
    cells = prod(len(v) for v in shown) * measures
    if cells > most:
        offers = [v.id for v in sorted(shown, key=len, reverse=True)]
        raise QueryTooLarge(
            f"{cells:,} numbers are more than the {most:,} of one answer",
            where=table.about.id,
            do=f"choose fewer codes, or leave out {offers[0]}" if offers else "ask for fewer measures",
            offers=offers,
        )
