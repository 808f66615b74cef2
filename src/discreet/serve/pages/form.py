"""The form of the builder: options, and which are selected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

from discreet.errors import InvalidQuery
from discreet.serve.formats import FORMATS, safe_name
from discreet.serve.pages.builder_state import BuilderState, complete_state, errors_of, table_query
from discreet.serve.query_model import QueryableTable, TableQuery, TableVariable
from discreet.serve.query_string import link as query_of

MANY = 150  # codes above which a list replaces checkboxes
FORMATS_SHOWN = ("csv", "xlsx", "parquet", "json-stat2", "sdmx-csv")  # in this order


@dataclass(frozen=True)
class FormOption:
    """A code, variable or measure that can be selected."""

    code: str
    label: str
    chosen: bool
    meaning: str = ""


@dataclass(frozen=True)
class CodeField:
    """The codes of a variable: any of them can be selected, or exactly one if `single`."""

    name: str
    label: str
    codes: tuple[FormOption, ...]
    single: bool
    shown: bool

    @property
    def many(self) -> bool:
        return len(self.codes) > MANY

    @property
    def count_text(self) -> str:
        """How many codes are selected."""
        count = sum(choice.chosen for choice in self.codes)
        return f"{count:,} of {len(self.codes):,}" if count else f"all {len(self.codes):,}"


@dataclass(frozen=True)
class BuilderForm:
    """All fields of the form."""

    rows: tuple[FormOption, ...]
    second: tuple[FormOption, ...]
    columns: tuple[FormOption, ...]
    limits: tuple[CodeField, ...]
    measures: tuple[FormOption, ...]
    additive: bool
    errors: bool


def form(state: BuilderState, table: QueryableTable) -> BuilderForm:
    """The form for a state, even an invalid one."""
    first, second = (*state.rows, "", "")[:2]
    mains = [m for m in table.measures if not m.error_of]
    shown = {*state.measures} or {m.id for m in mains[:4]}
    return BuilderForm(
        rows=_variables(table, first),
        second=_variables(table, second),
        columns=_variables(table, state.columns),
        limits=tuple(_limit(v, state, table) for v in table.variables),
        measures=tuple(FormOption(m.id, m.label, m.id in shown, m.meaning) for m in mains),
        additive=table.additive,
        errors=any(errors_of(table, m) for m in mains),
    )


def _variables(table: QueryableTable, chosen: str) -> tuple[FormOption, ...]:
    finer = {v.id: v.label for v in table.variables}
    return tuple(
        FormOption(
            v.id,
            f"{v.label} ({len(v):,})" + (f", groups of {finer[v.finer].lower()}" if v.finer else ""),
            v.id == chosen,
        )
        for v in table.variables
    )


def _limit(v: TableVariable, state: BuilderState, table: QueryableTable) -> CodeField:
    single = not table.additive and v.id not in state.shown
    chosen = {state.at.get(v.id, v.codes[0] if v.codes else "")} if single else {*state.only.get(v.id, ())}
    codes = tuple(
        FormOption(code, label if label == code else f"{label} ({code})", code in chosen)
        for code, label in zip(v.codes, v.labels, strict=True)
    )
    return CodeField(v.id, v.label, codes, single, v.id in state.shown)


def downloads(query: TableQuery, table: str, root: str, simulation: bool) -> list[tuple[str, str, str]]:
    """Label, URL and file name of each download of this answer."""
    stem = safe_name(table) + (".simulation" if simulation else "")
    data = f"{root}/api/v2/tables/{quote(table, safe='')}/data"
    return [
        (kind.label, f"{data}?{query_of(query, [('outputFormat', kind.id)])}", f"{stem}.{kind.extension}")
        for kind in map(FORMATS.__getitem__, FORMATS_SHOWN)
    ]


def offers(
    state: BuilderState, table: QueryableTable, names: tuple[str, ...], most: int, link: Callable[[BuilderState], str]
) -> list[tuple[str, str]]:
    """Queries with less detail that are within the limit: label and URL."""
    labels = {v.id: v.label for v in table.variables}
    candidates: list[tuple[str, BuilderState]] = []
    for name in names:
        for coarser in table.variables:
            if coarser.finer == name:
                candidates.append(
                    (f"{coarser.label} instead of {labels[name].lower()}", _instead(state, name, coarser.id))
                )
        candidates.append((f"Without {labels[name].lower()}", _instead(state, name, "")))
        few = next(v for v in table.variables if v.id == name).codes[:20]
        if not state.only.get(name):
            some = replace(state, only={**state.only, name: few}, page=1)
            candidates.append((f"First {len(few)} codes of {labels[name].lower()}", some))
    if len(state.measures) > 1:
        candidates.append(("First measure only", replace(state, measures=state.measures[:1], page=1)))
    fitting = []
    for label, other in candidates:
        less = complete_state(other, table)
        try:
            cells = table.cells(table_query(less, table))
        except InvalidQuery:
            continue
        if cells <= most:
            fitting.append((f"{label}: {cells:,} numbers", link(less)))
    return fitting


def _instead(state: BuilderState, name: str, other: str) -> BuilderState:
    """The state with another variable in a variable's place, or none."""
    rows = tuple(filter(None, (other if row == name else row for row in state.rows)))
    columns = other if state.columns == name else state.columns
    only = {limited: codes for limited, codes in state.only.items() if limited != name}
    return replace(state, rows=rows, columns=columns, only=only, page=1)
