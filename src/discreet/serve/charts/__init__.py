"""Pictures of answers, drawn on the server: SVG that stands alone, says in words what it shows, and scales."""

from __future__ import annotations

import re
from collections.abc import Callable

from discreet.errors import InvalidQuery
from discreet.serve.charts.bars import bars, single
from discreet.serve.charts.chart_data import ChartData, percentiles, read
from discreet.serve.charts.frame import Chart, Picture, framed
from discreet.serve.charts.lines import lines, order, time_axis
from discreet.serve.charts.ranges import ranges
from discreet.serve.charts.sankey import sankey
from discreet.serve.charts.tiles import states, tiles
from discreet.serve.query_model import About, Answer

__all__ = ["KINDS", "Chart", "chart", "kinds", "png"]

KINDS = ("sankey", "ranges", "tiles", "number", "lines", "bars")
ORIGIN = re.compile(r"origin|source|sending|(^|_)from(_|$)|home|residence", re.IGNORECASE)
DESTINATION = re.compile(r"destin|(^|_)dest(_|$)|target|receiving|(^|_)to(_|$)|workplace", re.IGNORECASE)
FEW = 3  # points that make a line worth drawing
SCALE = 2.0  # pixels of a PNG for each of the SVG

DRAW: dict[str, Callable[[ChartData], Picture]] = {
    "ranges": ranges,
    "tiles": tiles,
    "number": single,
    "lines": lines,
    "bars": bars,
}


def kinds(answer: Answer, about: About | None = None) -> tuple[str, ...]:
    """The kinds that fit, best first; none if there is nothing to draw."""
    reading = read(answer)
    if reading is None:
        return ()
    across = time_axis(reading)
    long = across is not None and len(order(reading.variable(across)) or ()) >= FEW
    fits = {
        "sankey": _ends(reading, about) is not None,
        "ranges": bool(percentiles(answer)),
        "tiles": _is_map(reading),
        "number": len(answer) == 1,
        "lines": long,
        "bars": True,
    }
    found = [kind for kind in KINDS if fits[kind]]
    return (*found, "lines") if across is not None and not long else tuple(found)


def chart(
    answer: Answer,
    kind: str | None = None,
    *,
    about: About | None = None,
    measure: str = "",
    simulation: bool = False,
    which: str = "",
) -> Chart | None:
    """The picture that fits best, or one of a kind; None if none fits. Any two variables can be asked for as flows.

    `which` says in the title which of all rows these are.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidQuery(f"no chart {kind[:40]!r}", where="chart", do=f"there are {', '.join(KINDS)}")
    fitting, reading = kinds(answer, about), read(answer, measure)
    if reading is None or not fitting:
        return None
    kind = kind or fitting[0]
    if kind == "sankey":
        ends = _ends(reading, about) or (reading.axes if len(reading.axes) == 2 else None)
        if ends is None:
            return None
        return framed(reading, kind, sankey(reading, *ends), about, simulation=simulation, which=which)
    if kind not in fitting:
        return None
    return framed(reading, kind, DRAW[kind](reading), about, simulation=simulation, which=which)


def png(svg: str) -> bytes:
    """As pixels, with fonts that are there; nothing is fetched."""
    import vl_convert

    try:
        return bytes(vl_convert.svg_to_png(svg, scale=SCALE))
    except (ValueError, RuntimeError):
        raise InvalidQuery("cannot be drawn as pixels", where="chart", do="ask for SVG") from None


def _is_map(reading: ChartData) -> bool:
    return len(reading.axes) == 1 and bool(states(reading.variable(reading.axes[0])))


def _ends(reading: ChartData, about: About | None) -> tuple[int, int] | None:
    """Which variables are origin and destination: by their names, or because the table is one of flows."""
    if len(reading.axes) != 2:
        return None
    a, b = reading.axes
    first, second = (reading.variable(i).id for i in (a, b))
    if ORIGIN.search(first) and DESTINATION.search(second):
        return a, b
    if DESTINATION.search(first) and ORIGIN.search(second):
        return b, a
    return (a, b) if about is not None and about.of_flows else None
