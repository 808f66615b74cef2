"""The form of the builder: what can be chosen, and what is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

from discreet.errors import InvalidQuery
from discreet.serve.formats import FORMATS, safe_name
from discreet.serve.pages.builder_state import BuilderState, errors_of, filled, question
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable
from discreet.serve.query_string import link as query_of

MANY = 150  # codes beyond which boxes to tick would be too many
FORMATS_SHOWN = ("csv", "xlsx", "parquet", "json-stat2", "sdmx-csv")  # in this order


@dataclass(frozen=True)
class Choice:
    """A code, or a variable, of a list."""

    code: str
    label: str
    chosen: bool
    meaning: str = ""


@dataclass(frozen=True)
class Limit:
    """A variable whose codes can be chosen: some of them, or the one that has to be."""

    name: str
    label: str
    codes: tuple[Choice, ...]
    single: bool
    shown: bool

    @property
    def many(self) -> bool:
        return len(self.codes) > MANY

    @property
    def says(self) -> str:
        """How many are chosen."""
        count = sum(choice.chosen for choice in self.codes)
        return f"{count:,} of {len(self.codes):,}" if count else f"all {len(self.codes):,}"


@dataclass(frozen=True)
class Form:
    """All fields."""

    rows: tuple[Choice, ...]
    second: tuple[Choice, ...]
    columns: tuple[Choice, ...]
    limits: tuple[Limit, ...]
    measures: tuple[Choice, ...]
    additive: bool
    errors: bool


def form(asked: BuilderState, table: QueryableTable) -> Form:
    """As the address has it, even where it is wrong."""
    first, second = (*asked.rows, "", "")[:2]
    mains = [m for m in table.measures if not m.about]
    shown = {*asked.measures} or {m.id for m in mains[:4]}
    return Form(
        rows=_variables(table, first),
        second=_variables(table, second),
        columns=_variables(table, asked.columns),
        limits=tuple(_limit(v, asked, table) for v in table.variables),
        measures=tuple(Choice(m.id, m.label, m.id in shown, m.meaning) for m in mains),
        additive=table.additive,
        errors=any(errors_of(table, m) for m in mains),
    )


def _variables(table: QueryableTable, chosen: str) -> tuple[Choice, ...]:
    finer = {v.id: v.label for v in table.variables}
    return tuple(
        Choice(v.id, f"{v.label} ({len(v):,})" + (f", groups of {finer[v.of].lower()}" if v.of else ""), v.id == chosen)
        for v in table.variables
    )


def _limit(v: TableVariable, asked: BuilderState, table: QueryableTable) -> Limit:
    single = not table.additive and v.id not in asked.shown
    chosen = {asked.at.get(v.id, v.codes[0] if v.codes else "")} if single else {*asked.only.get(v.id, ())}
    codes = tuple(
        Choice(code, label if label == code else f"{label} ({code})", code in chosen)
        for code, label in zip(v.codes, v.labels, strict=True)
    )
    return Limit(v.id, v.label, codes, single, v.id in asked.shown)


def downloads(asking: TableQuery, about: str, root: str, simulation: bool) -> list[tuple[str, str, str]]:
    """Label, address and name of each file with this answer."""
    stem = safe_name(about) + (".simulation" if simulation else "")
    data = f"{root}/api/v2/tables/{quote(about, safe='')}/data"
    return [
        (kind.label, f"{data}?{query_of(asking, [('outputFormat', kind.id)])}", f"{stem}.{kind.extension}")
        for kind in map(FORMATS.__getitem__, FORMATS_SHOWN)
    ]


def offers(
    asked: BuilderState, table: QueryableTable, names: tuple[str, ...], most: int, link: Callable[[BuilderState], str]
) -> list[tuple[str, str]]:
    """Questions with less detail that can be answered: label and address."""
    labels = {v.id: v.label for v in table.variables}
    found: list[tuple[str, BuilderState]] = []
    for name in names:
        for coarser in table.variables:
            if coarser.of == name:
                found.append((f"{coarser.label} instead of {labels[name].lower()}", _instead(asked, name, coarser.id)))
        found.append((f"Without {labels[name].lower()}", _instead(asked, name, "")))
        few = next(v for v in table.variables if v.id == name).codes[:20]
        if not asked.only.get(name):
            some = replace(asked, only={**asked.only, name: few}, page=1)
            found.append((f"The first {len(few)} codes of {labels[name].lower()}", some))
    if len(asked.measures) > 1:
        found.append(("The first measure alone", replace(asked, measures=asked.measures[:1], page=1)))
    fitting = []
    for label, other in found:
        less = filled(other, table)
        try:
            cells = table.cells(question(less, table))
        except InvalidQuery:
            continue
        if cells <= most:
            fitting.append((f"{label}: {cells:,} numbers", link(less)))
    return fitting


def _instead(asked: BuilderState, name: str, other: str) -> BuilderState:
    """With another variable in a variable's place, or none."""
    rows = tuple(filter(None, (other if row == name else row for row in asked.rows)))
    columns = other if asked.columns == name else asked.columns
    only = {limited: codes for limited, codes in asked.only.items() if limited != name}
    return replace(asked, rows=rows, columns=columns, only=only, page=1)
