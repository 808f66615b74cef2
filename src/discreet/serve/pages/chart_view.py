"""The chart on a page, if the answer has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from discreet.errors import DiscreetError
from discreet.serve.charts import KINDS, chart, kinds, png
from discreet.serve.pages.builder_state import BuilderState
from discreet.serve.pages.texts import comma_list
from discreet.serve.pages.view import TableView
from discreet.serve.query_model import QueryableTable

MEDIAN = "p50"


@dataclass(frozen=True)
class PageChart:
    """A chart on a page, with links to the other available kinds."""

    kind: str
    svg: Markup  # drawn by us from numbers and escaped labels
    alt: str
    kinds: tuple[tuple[str, str, bool], ...]  # name, link, whether it is the current one
    query: str


def page_chart(
    table_view: TableView, state: BuilderState, table: QueryableTable, link: Callable[[BuilderState], str]
) -> PageChart | None:
    """The best kind of chart, or the requested kind."""
    answer = table_view.chart
    known = kinds(answer, table.summary)
    kind = state.chart if state.chart in known else next(iter(known), None)
    drawn_measure = MEDIAN if kind == "ranges" and MEDIAN in table_view.marks else next(iter(table_view.marks))
    if np.isnan(answer.numbers[drawn_measure]).all():  # nothing to draw
        return None
    answer = replace(answer, status=table_view.marks[drawn_measure])  # an answer has the worst mark of its measures
    which = (
        table_view.which if len(state.rows) == 1 else ""
    )  # with two variables in the rows, all are drawn, as published
    drawn = chart(answer, kind, summary=table.summary, simulation=table.summary.simulation, which=which)
    if drawn is None:
        return None
    links = tuple((name, f"{link(replace(state, chart=name))}#chart", name == drawn.kind) for name in known)
    query = replace(state, chart=drawn.kind).query()
    return PageChart(drawn.kind, Markup(drawn.svg), drawn.alt, links, query)  # noqa: S704 - labels are escaped there


def chart_note(table_view: TableView, state: BuilderState, table: QueryableTable) -> str:
    """A note if the requested kind of chart is not available."""
    known = kinds(table_view.chart, table.summary)
    if not state.chart or state.chart in known:
        return ""
    what = "is not available for this table" if state.chart in KINDS else "is not a kind of chart"
    return f"“{state.chart}” {what}. " + (f"Available: {comma_list(known)}." if known else "")


def chart_file(table_view: TableView, state: BuilderState, table: QueryableTable, kind: str) -> bytes | None:
    """The chart as a file, SVG or PNG."""
    drawn = page_chart(table_view, state, table, lambda _: "")
    if drawn is None:
        return None
    if kind == "svg":
        return str(drawn.svg).encode()
    try:
        return png(str(drawn.svg))
    except DiscreetError:
        return None
