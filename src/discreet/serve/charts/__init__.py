"""Charts of answers, drawn on the server as self-contained, scalable SVG with a text alternative."""

from __future__ import annotations

import re
from collections.abc import Callable

from discreet.errors import InvalidQuery
from discreet.serve.charts.bars import bars, single_number
from discreet.serve.charts.chart_data import ChartData, percentiles, read_chart_data
from discreet.serve.charts.frame import Chart, Picture, frame_chart
from discreet.serve.charts.lines import lines, order, time_axis
from discreet.serve.charts.ranges import ranges
from discreet.serve.charts.sankey import sankey
from discreet.serve.charts.tiles import states, tiles
from discreet.serve.query_model import Answer, TableSummary

__all__ = ["KINDS", "Chart", "chart", "kinds", "png"]

KINDS = ("sankey", "ranges", "tiles", "number", "lines", "bars")
ORIGIN = re.compile(r"origin|source|sending|(^|_)from(_|$)|home|residence", re.IGNORECASE)
DESTINATION = re.compile(r"destin|(^|_)dest(_|$)|target|receiving|(^|_)to(_|$)|workplace", re.IGNORECASE)
FEW = 3  # points from which on a line is preferred
SCALE = 2.0  # pixels of a PNG per pixel of the SVG

DRAW: dict[str, Callable[[ChartData], Picture]] = {
    "ranges": ranges,
    "tiles": tiles,
    "number": single_number,
    "lines": lines,
    "bars": bars,
}


def kinds(answer: Answer, summary: TableSummary | None = None) -> tuple[str, ...]:
    """The kinds of chart that suit an answer, best first; none if there is nothing to draw."""
    data = read_chart_data(answer)
    if data is None:
        return ()
    across = time_axis(data)
    long = across is not None and len(order(data.variable(across)) or ()) >= FEW
    fits = {
        "sankey": _ends(data, summary) is not None,
        "ranges": bool(percentiles(answer)),
        "tiles": _is_map(data),
        "number": len(answer) == 1,
        "lines": long,
        "bars": True,
    }
    fitting = [kind for kind in KINDS if fits[kind]]
    return (*fitting, "lines") if across is not None and not long else tuple(fitting)


def chart(
    answer: Answer,
    kind: str | None = None,
    *,
    summary: TableSummary | None = None,
    measure: str = "",
    simulation: bool = False,
    which: str = "",
) -> Chart | None:
    """The chart that suits best, or one of a given kind; None if none does. Any two variables can be drawn as flows.

    `which` describes in the title which rows are shown, if not all.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidQuery(f"unknown kind of chart {kind[:40]!r}", where="chart", do=f"use one of {', '.join(KINDS)}")
    fitting, data = kinds(answer, summary), read_chart_data(answer, measure)
    if data is None or not fitting:
        return None
    kind = kind or fitting[0]
    if kind == "sankey":
        ends = _ends(data, summary) or (data.axes if len(data.axes) == 2 else None)
        if ends is None:
            return None
        return frame_chart(data, kind, sankey(data, *ends), summary, simulation=simulation, which=which)
    if kind not in fitting:
        return None
    return frame_chart(data, kind, DRAW[kind](data), summary, simulation=simulation, which=which)


def png(svg: str) -> bytes:
    """The SVG as PNG, with the fonts of this machine; nothing is fetched."""
    import vl_convert

    try:
        return bytes(vl_convert.svg_to_png(svg, scale=SCALE))
    except (ValueError, RuntimeError):
        raise InvalidQuery("cannot be drawn as PNG", where="chart", do="request SVG") from None


def _is_map(data: ChartData) -> bool:
    return len(data.axes) == 1 and bool(states(data.variable(data.axes[0])))


def _ends(data: ChartData, summary: TableSummary | None) -> tuple[int, int] | None:
    """Origin and destination variables, by their names or because the table is a table of flows."""
    if len(data.axes) != 2:
        return None
    a, b = data.axes
    first, second = (data.variable(i).id for i in (a, b))
    if ORIGIN.search(first) and DESTINATION.search(second):
        return a, b
    if DESTINATION.search(first) and ORIGIN.search(second):
        return b, a
    return (a, b) if summary is not None and summary.is_flow_table else None
