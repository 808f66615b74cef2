"""What an address of the table builder asks for: read from it, checked against the table, and written back."""

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
from discreet.serve.pages.words import listed
from discreet.serve.query_model import Measure, QueryableTable, TableQuery, TableVariable, members
from discreet.serve.stored_table import StoredTable

Share = Literal["", "rows", "columns", "all"]
Error = Literal["", "se", "none"]
Sort = Literal["", "label", "-label", "value", "-value"]
FEW = 100  # codes that a first look may have
FIRST_MEASURES = 4
TRIED = 30  # combinations
ROWS = 1_000_000  # that are looked at, to find combinations that occur
CELLS = 20_000  # of one question
_KNOWN: WeakKeyDictionary[QueryableTable, Mapping[str, str]] = WeakKeyDictionary()


@dataclass(frozen=True)
class BuilderState:
    """One state of the builder. Every link of a page is such a state with something changed."""

    rows: tuple[str, ...] = ()
    columns: str = ""
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # codes shown, or that all is limited to
    at: Mapping[str, str] = field(default_factory=dict)  # the one code of what is not shown, where cells don't add up
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
        """The address' question, without what says nothing."""
        found: list[tuple[str, str]] = [("rows", name) for name in self.rows or ("",)]
        found += [("columns", self.columns)] if self.columns else []
        found += [(f"only.{name}", code) for name, codes in self.only.items() for code in codes]
        found += [(f"at.{name}", code) for name, code in self.at.items() if name not in self.shown]
        found += [("measure", name) for name in self.measures]
        found += [("totals", "1")] if self.totals else []
        for name in ("share", "error", "sort", "key", "what", "top", "page", "chart"):
            value = getattr(self, name)
            found += [(name, str(value))] if value and (name, value) != ("page", 1) else []
        return urlencode(found)


def read(items: Iterable[tuple[str, str]], table: QueryableTable) -> BuilderState:
    """From the fields of an address. Without any, a first look at the table."""
    many: dict[str, list[str]] = {}
    for name, text in items:
        many.setdefault(name, []).append(text)
    one = {name: texts[-1] for name, texts in many.items()}
    if "rows" not in many and "columns" not in many:
        many["rows"], many["columns"] = list(plain(table).rows), []
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


def plain(table: QueryableTable) -> BuilderState:
    """What is shown of a table before anything is chosen."""
    coarse = [v for v in table.variables if v.of]
    few = [v for v in table.variables if 1 < len(v) <= FEW]
    best = next(iter(coarse or few), None) or min(table.variables, key=len, default=None)
    return BuilderState(rows=(best.id,) if best else ())


def filled(asked: BuilderState, table: QueryableTable) -> BuilderState:
    """With a code for each variable that has to have one, and without what has no effect."""
    if table.additive:
        return replace(asked, at={})
    known = {v.id for v in table.variables}
    kept = {name: codes for name, codes in asked.only.items() if name in asked.shown or name not in known}
    missing = [v for v in table.variables if v.id not in asked.shown and v.id not in asked.at]
    first = first_codes(table, plain(table).rows, FIRST_MEASURES) if missing else {}
    at = {v.id: asked.at.get(v.id, first.get(v.id, v.codes[0])) for v in table.variables if v.id not in asked.shown}
    strange = {name: code for name, code in asked.at.items() if name not in known}
    return replace(asked, only=kept, at={**at, **strange}, totals=False, share="")


def question(asked: BuilderState, table: QueryableTable) -> TableQuery:
    """As the table understands it; what it has not, is refused."""
    if len(asked.rows) > 2:
        raise InvalidQuery("more than two variables in the rows", where="rows", do="choose at most two")
    if len(set(asked.shown)) < len(asked.shown):
        raise InvalidQuery("a variable is asked for twice", where="rows or columns", do="choose it once")
    shown = [_variable(table, name, "rows or columns") for name in asked.shown]
    if len({v.of or v.id for v in shown}) < len(shown):
        both = " and ".join(v.label for v in shown)
        raise InvalidQuery(f"{both}: one groups another", where="rows or columns", do="choose one of them")
    picked = {v.id: _picked(asked, table, v) for v in shown}
    others: dict[str, tuple[str, ...]] = {}
    for name, codes in asked.only.items():
        found = _chosen(table, name, codes)
        if name not in picked and found.of not in picked:
            others[name] = codes
    for name, code in asked.at.items():
        _chosen(table, name, (code,))
        others[name] = (code,)
    measures = tuple(m.id for main in main_measures(asked, table) for m in (main, *errors_of(table, main)))
    return TableQuery(tuple(picked.items()), tuple(others.items()), measures)


def _picked(asked: BuilderState, table: QueryableTable, shown: TableVariable) -> tuple[str, ...]:
    """The codes of a variable that is shown: those chosen, of the groups chosen of coarser ones. Empty: all."""
    codes = asked.only.get(shown.id, ())
    _chosen(table, shown.id, codes)
    for coarser in table.variables:
        groups = asked.only.get(coarser.id, ())
        if coarser.of != shown.id or not groups:
            continue
        _chosen(table, coarser.id, groups)
        within = set(members(shown, coarser, groups))
        codes = tuple(code for code in codes or shown.codes if code in within)
        if not codes:
            raise InvalidQuery(f"no code of {shown.label} is left", where="limits", do="choose fewer limits")
    return codes


def _variable(table: QueryableTable, name: str, where: str) -> TableVariable:
    for found in table.variables:
        if found.id == name:
            return found
    known = listed([v.label for v in table.variables])
    raise InvalidQuery(f"no variable {name[:40]!r}", where=where, do=f"the table has {known}")


def _chosen(table: QueryableTable, name: str, codes: Iterable[str]) -> TableVariable:
    """A variable that has these codes."""
    found = _variable(table, name, "limits")
    strange = next((code for code in codes if code not in found.codes), None)
    if strange is not None:
        some = ", ".join(found.labels[:5]) + (" …" if len(found) > 5 else "")
        raise InvalidQuery(f"no code {strange[:40]!r} of {found.label}", where="limits", do=f"it has {some}")
    return found


def main_measures(asked: BuilderState, table: QueryableTable) -> list[Measure]:
    """The measures that are shown: those chosen, or the first ones. Errors come with what they are about."""
    known = {m.id: m for m in table.measures}
    mains = [m for m in table.measures if not m.about]
    if strange := next((name for name in asked.measures if name not in known), None):
        raise InvalidQuery(
            f"no measure {strange[:40]!r}", where="measures", do=f"the table has {listed([m.label for m in mains])}"
        )
    found = [known[name] for name in asked.measures if not known[name].about]
    return found or mains[:FIRST_MEASURES] or list(table.measures[:1])


def errors_of(table: QueryableTable, main: Measure) -> list[Measure]:
    return [m for m in table.measures if m.about == main.id]


def _dotted(many: Mapping[str, list[str]], name: str) -> list[tuple[str, list[str]]]:
    """Fields such as only.sex, by what stands after the dot."""
    start = f"{name}."
    return [(key.removeprefix(start), texts) for key, texts in many.items() if key.startswith(start)]


def _one_of(text: str, known: tuple[str, ...], where: str) -> str:
    if text in known:
        return text
    names = ", ".join(name for name in known if name)
    raise InvalidQuery(f"{text[:40]!r} is unknown", where=where, do=f"choose one of {names}")


def _number(text: str, where: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise InvalidQuery(f"{text[:40]!r} is not a number", where=where, do="write a whole number")
    return int(text)


def first_codes(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    """A code for each variable that is not shown at first, where cells do not add up: those of which most numbers are
    published. Asked once of a table."""
    if table not in _KNOWN:
        _KNOWN[table] = _best(table, shown, measures)
    return _KNOWN[table]


def _best(table: QueryableTable, shown: tuple[str, ...], measures: int) -> Mapping[str, str]:
    others = [v for v in table.variables if v.id not in shown]
    mains = tuple(m.id for m in table.measures if not m.about)[:measures]
    best, most = {v.id: v.codes[0] for v in others if v.codes}, -1
    if not others or not mains or len(best) < len(others):
        return best
    by = tuple((name, ()) for name in shown)
    for codes in _candidates(table, others, mains):
        at = {v.id: code for v, code in zip(others, codes, strict=True)}
        try:
            found = table.answer(TableQuery(by, tuple((name, (code,)) for name, code in at.items()), mains), CELLS)
        except InvalidQuery:  # too large to try, or not a question that the table has
            return best
        there = sum(int((~np.isnan(found.numbers[name])).sum()) for name in mains)
        if there > most:
            best, most = at, there
        if there == len(found) * len(mains):
            break
    return best


def _candidates(table: QueryableTable, others: list[TableVariable], mains: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The first combination, then those with most numbers."""
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
    found = (tuple(row[name] for name in codes) for row in often)
    fitting = (one for one in found if all(code in own for code, own in zip(one, known, strict=True)))
    return list(dict.fromkeys([first[0], *islice(fitting, TRIED - 1)]))
