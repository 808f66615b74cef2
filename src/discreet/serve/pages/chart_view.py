"""The chart of an answer, if it has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from discreet.errors import DiscreetError
from discreet.serve.charts import KINDS, chart, kinds, png
from discreet.serve.pages.builder_state import BuilderState
from discreet.serve.pages.view import View
from discreet.serve.pages.words import listed
from discreet.serve.query_model import QueryableTable

MEDIAN = "p50"


@dataclass(frozen=True)
class PageChart:
    """A chart on a page, and links to the other kinds there are."""

    kind: str
    svg: Markup  # drawn here, from numbers and escaped labels
    alt: str
    kinds: tuple[tuple[str, str, bool], ...]  # name, link, whether it is this one
    query: str


def page_chart(
    laid: View, asked: BuilderState, table: QueryableTable, link: Callable[[BuilderState], str]
) -> PageChart | None:
    """The chart that fits, or of the kind asked for."""
    answer = laid.chart
    known = kinds(answer, table.about)
    wanted = asked.chart if asked.chart in known else next(iter(known), None)
    drawn_of = MEDIAN if wanted == "ranges" and MEDIAN in laid.marks else next(iter(laid.marks))
    if np.isnan(answer.numbers[drawn_of]).all():  # nothing to draw
        return None
    answer = replace(answer, status=laid.marks[drawn_of])  # an answer has the worst mark of its measures
    which = laid.which if len(asked.rows) == 1 else ""  # two variables in the rows are drawn as published
    found = chart(answer, wanted, about=table.about, simulation=table.about.simulation, which=which)
    if found is None:
        return None
    links = tuple((name, f"{link(replace(asked, chart=name))}#chart", name == found.kind) for name in known)
    query = replace(asked, chart=found.kind).query()
    return PageChart(found.kind, Markup(found.svg), found.alt, links, query)  # noqa: S704 - labels are escaped there


def chart_note(laid: View, asked: BuilderState, table: QueryableTable) -> str:
    """What to say if the kind asked for is not the one that is drawn."""
    known = kinds(laid.chart, table.about)
    if not asked.chart or asked.chart in known:
        return ""
    what = "does not fit this table" if asked.chart in KINDS else "is not a kind of chart"
    return f"“{asked.chart}” {what}. " + (f"There are: {listed(known)}." if known else "")


def chart_file(laid: View, asked: BuilderState, table: QueryableTable, kind: str) -> bytes | None:
    """The same as a file, SVG or PNG."""
    found = page_chart(laid, asked, table, lambda _: "")
    if found is None:
        return None
    if kind == "svg":
        return str(found.svg).encode()
    try:
        return png(str(found.svg))
    except DiscreetError:
        return None
