"""The state of the table builder: read from a URL, checked against the table, and written back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Literal, cast, get_args
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from discreet.errors import InvalidQuery
from discreet.serve.pages.texts import comma_list
from discreet.serve.query_model import Measure, QueryableTable, TableQuery, TableVariable, members
from discreet.serve.stored_table import StoredTable

Share = Literal["", "rows", "columns", "all"]
Error = Literal["", "se", "none"]
Sort = Literal["", "label", "-label", "value", "-value"]
FEW = 100  # codes that the default selection may have
FIRST_MEASURES = 4
TRIED = 30  # combinations tried for the default selection
ROWS = 1_000_000  # inspected to find combinations that occur
CELLS = 20_000  # of one query
_KNOWN: WeakKeyDictionary[QueryableTable, Mapping[str, str]] = WeakKeyDictionary()


@dataclass(frozen=True)
class BuilderState:
    """One state of the builder. Every link of a page is such a state with some fields changed."""

    rows: tuple[str, ...] = ()
    columns: str = ""
    only: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # by variable: codes shown, or that all numbers are limited to
    at: Mapping[str, str] = field(
        default_factory=dict
    )  # by variable that is not shown: its code, where cells cannot be summed
    measures: tuple[str, ...] = ()
    totals: bool = False
    share: Share = ""
    error: Error = ""
    sort: Sort = ""
    key: str = ""  # the column to sort by
    what: str = ""  # the measure to sort by
    top: int = 0
    page: int = 1
    chart: str = ""

    @property
    def shown(self) -> tuple[str, ...]:
        return (*self.rows, *([self.columns] if self.columns else []))

    def query(self) -> str:
        """The query string, without default values."""
        parameters: list[tuple[str, str]] = [("rows", name) for name in self.rows or ("",)]
        parameters += [("columns", self.columns)] if self.columns else []
        parameters += [(f"only.{name}", code) for name, codes in self.only.items() for code in codes]
        parameters += [(f"at.{name}", code) for name, code in self.at.items() if name not in self.shown]
        parameters += [("measure", name) for name in self.measures]
        parameters += [("totals", "1")] if self.totals else []
        for name in ("share", "error", "sort", "key", "what", "top", "page", "chart"):
            value = getattr(self, name)
            parameters += [(name, str(value))] if value and (name, value) != ("page", 1) else []
        return urlencode(parameters)


def parse_state(items: Iterable[tuple[str, str]], table: QueryableTable) -> BuilderState:
    """The state in the parameters of a URL; without any, the default selection."""
    many: dict[str, list[str]] = {}
    for name, text in items:
        many.setdefault(name, []).append(text)
    one = {name: texts[-1] for name, texts in many.items()}
    if "rows" not in many and "columns" not in many:
        many["rows"], many["columns"] = list(default_state(table).rows), []
    only = {name: tuple(dict.fromkeys(filter(None, codes))) for name, codes in _dotted(many, "only")}
    return BuilderState(
        rows=tuple(filter(None, many.get("rows", []))),
        columns=one.get("columns", ""),
        only={name: codes for name, codes in only.items() if codes},
        at={name: codes[-1] for name, codes in _dotted(many, "at") if codes[-1]},
        measures=tuple(dict.fromkeys(filter(None, many.get("measure", [])))),
        totals=one.get("totals", "") not in ("", "0"),
        share=cast(Share, _one_of(one.get("share", ""), get_args(Share), "share")),
        error=cast(Error, _one_of(one.get("error", ""), get_args(Error), "error")),
        sort=cast(Sort, _one_of(one.get("sort", ""), get_args(Sort), "sort")),
        key=one.get("key", ""),
        what=one.get("what", ""),
        top=_number(one.get("top", ""), "top"),
        page=_number(one.get("page", ""), "page") or 1,
        chart=one.get("chart", "")[:20],
    )


def default_state(table: QueryableTable) -> BuilderState:
    """The state before anything is selected."""
    coarse = [v for v in table.variables if v.finer]
    few = [v for v in table.variables if 1 < len(v) <= FEW]
    best = next(iter(coarse or few), None) or min(table.variables, key=len, default=None)
    return BuilderState(rows=(best.id,) if best else ())


def complete_state(state: BuilderState, table: QueryableTable) -> BuilderState:
    """The state with a code for each variable that needs one, and without fields that have no effect."""
    if table.additive:
        return replace(state, at={})
    known = {v.id for v in table.variables}
    only = {name: codes for name, codes in state.only.items() if name in state.shown or name not in known}
    missing = [v for v in table.variables if v.id not in state.shown and v.id not in state.at]
    first = first_codes(table, default_state(table).rows, FIRST_MEASURES) if missing else {}
    at = {v.id: state.at.get(v.id, first.get(v.id, v.codes[0])) for v in table.variables if v.id not in state.shown}
    unknown = {name: code for name, code in state.at.items() if name not in known}
    return replace(state, only=only, at={**at, **unknown}, totals=False, share="")


def table_query(state: BuilderState, table: QueryableTable) -> TableQuery:
    """The query to the table; unknown variables, codes and measures are refused."""
    if len(state.rows) > 2:
        raise InvalidQuery("more than two variables in the rows", where="rows", do="choose at most two")
    if len(set(state.shown)) < len(state.shown):
        raise InvalidQuery("duplicate variable", where="rows or columns", do="choose each variable once")
    shown = [_variable(table, name, "rows or columns") for name in state.shown]
    if len({v.finer or v.id for v in shown}) < len(shown):
        both = " and ".join(v.label for v in shown)
        raise InvalidQuery(f"{both} are levels of one variable", where="rows or columns", do="choose one of them")
    picked = {v.id: _codes_shown(state, table, v) for v in shown}
    others: dict[str, tuple[str, ...]] = {}
    for name, codes in state.only.items():
        limited = _variable_with_codes(table, name, codes)
        if name not in picked and limited.finer not in picked:
            others[name] = codes
    for name, code in state.at.items():
        _variable_with_codes(table, name, (code,))
        others[name] = (code,)
    measures = tuple(m.id for main in main_measures(state, table) for m in (main, *errors_of(table, main)))
    return TableQuery(tuple(picked.items()), tuple(others.items()), measures)


def _codes_shown(state: BuilderState, table: QueryableTable, shown: TableVariable) -> tuple[str, ...]:
    """The codes of a shown variable: those selected, within selected groups of coarser variables. Empty: all."""
    codes = state.only.get(shown.id, ())
    _variable_with_codes(table, shown.id, codes)
    for coarser in table.variables:
        groups = state.only.get(coarser.id, ())
        if coarser.finer != shown.id or not groups:
            continue
        _variable_with_codes(table, coarser.id, groups)
        within = set(members(shown, coarser, groups))
        codes = tuple(code for code in codes or shown.codes if code in within)
        if not codes:
            raise InvalidQuery(
                f"the limits exclude every code of {shown.label}", where="limits", do="remove some limits"
            )
    return codes


def _variable(table: QueryableTable, name: str, where: str) -> TableVariable:
    for v in table.variables:
        if v.id == name:
            return v
    known = comma_list([v.label for v in table.variables])
    raise InvalidQuery(f"unknown variable {name[:40]!r}", where=where, do=f"the variables are {known}")


def _variable_with_codes(table: QueryableTable, name: str, codes: Iterable[str]) -> TableVariable:
    """The variable, if it has these codes."""
    v = _variable(table, name, "limits")
    unknown = next((code for code in codes if code not in v.codes), None)
    if unknown is not None:
        some = ", ".join(v.labels[:5]) + (" …" if len(v) > 5 else "")
        raise InvalidQuery(f"unknown code {unknown[:40]!r} of {v.label}", where="limits", do=f"its codes are {some}")
    return v


def main_measures(state: BuilderState, table: QueryableTable) -> list[Measure]:
    """The measures that are shown: those selected, or the first ones. Their errors are shown with them."""
    known = {m.id: m for m in table.measures}
    mains = [m for m in table.measures if not m.error_of]
    if unknown := next((name for name in state.measures if name not in known), None):
        raise InvalidQuery(
            f"unknown measure {unknown[:40]!r}",
            where="measures",
            do=f"the measures are {comma_list([m.label for m in mains])}",
        )
    selected = [known[name] for name in state.measures if not known[name].error_of]
    return selected or mains[:FIRST_MEASURES] or list(table.measures[:1])


def errors_of(table: QueryableTable, main: Measure) -> list[Measure]:
    return [m for m in table.measures if m.error_of == main.id]


def _dotted(many: Mapping[str, list[str]], name: str) -> list[tuple[str, list[str]]]:
    """Parameters such as only.sex, by the part after the dot."""
    start = f"{name}."
    return [(key.removeprefix(start), texts) for key, texts in many.items() if key.startswith(start)]


def _one_of(text: str, known: tuple[str, ...], where: str) -> str:
    if text in known:
        return text
    names = ", ".join(name for name in known if name)
    raise InvalidQuery(f"unknown value {text[:40]!r}", where=where, do=f"choose one of {names}")


def _number(text: str, where: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise InvalidQuery(f"{text[:40]!r} is not a number", where=where, do="write an integer")
    return int(text)


def first_codes(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    """A default code for each variable that is not shown, where cells cannot be summed: the combination with most
    published numbers. Computed once per table."""
    if table not in _KNOWN:
        _KNOWN[table] = _best(table, shown, measures)
    return _KNOWN[table]


def _best(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    others = [v for v in table.variables if v.id not in shown]
    mains = tuple(m.id for m in table.measures if not m.error_of)[:measures]
    best, most = {v.id: v.codes[0] for v in others if v.codes}, -1
    if not others or not mains or len(best) < len(others):
        return best
    by = tuple((name, ()) for name in shown)
    for codes in _candidates(table, others, mains):
        at = {v.id: code for v, code in zip(others, codes, strict=True)}
        try:
            answer = table.answer(TableQuery(by, tuple((name, (code,)) for name, code in at.items()), mains), CELLS)
        except InvalidQuery:  # too large to try, or not a valid query
            return best
        published = sum(int((~np.isnan(answer.numbers[name])).sum()) for name in mains)
        if published > most:
            best, most = at, published
        if published == len(answer) * len(mains):
            break
    return best


def _candidates(table: QueryableTable, others: list[TableVariable], mains: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The first combination of codes, then those with most numbers."""
    first = list(islice(product(*(v.codes for v in others)), TRIED))
    if not isinstance(table, StoredTable):
        return first
    names = [v.id for v in others]
    some = table.rows.slice(0, ROWS)
    codes = {f"code {i}": some[name].cast(pa.string()) for i, name in enumerate(names)}
    rows = pa.table({**codes, **{f"number {i}": some[name] for i, name in enumerate(mains)}})
    numbers = [f"number {i}" for i in range(len(mains))]
    counted = rows.group_by(list(codes), use_threads=False).aggregate([(name, "count") for name in numbers])
    known = [set(v.codes) for v in others]
    often = sorted(counted.to_pylist(), key=lambda row: -sum(row[f"{name}_count"] for name in numbers))
    combinations = (tuple(row[name] for name in codes) for row in often)
    fitting = (one for one in combinations if all(code in own for code, own in zip(one, known, strict=True)))
    return list(dict.fromkeys([first[0], *islice(fitting, TRIED - 1)]))
