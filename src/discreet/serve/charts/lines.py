"""Lines over years, quarters or other ordered numbers, with bands for confidence intervals."""

from __future__ import annotations

import re
from itertools import groupby
from math import prod

from discreet.serve.charts.chart_data import ChartData, label_of
from discreet.serve.charts.colours import DASHES, SERIES, marker, stub
from discreet.serve.charts.frame import (
    INNER_WIDTH,
    MARGIN,
    WIDTH,
    Picture,
    alt_text,
    centred,
    grid_look,
    key_of,
    legend,
    sentences,
)
from discreet.serve.charts.scale import TICK, Scale, scale
from discreet.serve.charts.svg import (
    FONT,
    INK,
    MUTED,
    PAPER,
    Attributes,
    cut,
    escaped_text,
    line,
    path,
    rect,
    tag,
    width_of,
    wrap,
    write,
)
from discreet.serve.query_model import TableVariable

YEAR = re.compile(r"^(?:1[89]|20|21)\d\d$")
PART = re.compile(r"^(?P<year>(?:1[89]|20|21)\d\d)(?P<unit> ?-?[QqMm]|-)(?P<part>\d{1,2})$")
PLAIN = re.compile(r"^-?(0|[1-9]\d*)(\.\d+)?$")  # a leading zero makes it a code, not a number
COUNTED = re.compile(
    r"year|\bage|month|quarter|week|day|hour|period|time|date|cohort|size|durat|after|percentile|decile|rank|score",
    re.IGNORECASE,
)
MOST, HIGH = 6, 260.0
DOTS = 40  # with more points, markers would hide the line
STRIP = 18.0


def order(variable: TableVariable) -> list[float] | None:
    """The point in time, or the quantity, that each code stands for."""
    codes = [code.strip() for code in variable.codes]
    if all(YEAR.match(code) for code in codes) or (all(PLAIN.match(code) for code in codes) and _counted(variable)):
        positions = [float(code) for code in codes]
    else:
        positions = _parts_of_years([match for code in codes if (match := PART.match(code))])
    fine = len(set(positions)) == len(codes) > 1 and max(map(abs, positions)) < 1e9
    return positions if fine else None


def _parts_of_years(matches: list[re.Match[str]]) -> list[float]:
    """From codes such as 2020Q3, 2020-07 or 2020M07; 2020-21 stands for its first year."""
    parts = [(float(m["year"]), m["unit"].strip(" -").upper(), int(m["part"])) for m in matches]
    if all(not unit and (year + 1) % 100 == part for year, unit, part in parts):
        return [year for year, _, _ in parts]
    if any(not 1 <= part <= (4 if unit == "Q" else 12) for _, unit, part in parts):
        return []
    return [year + (part - 1) / (4 if unit == "Q" else 12) for year, unit, part in parts]


def _counted(variable: TableVariable) -> bool:
    """Whether numeric codes are quantities: the variable's name suggests it, and labels do not contradict it."""
    plain = all(
        a.strip() == b.strip() or re.search(r"\d", b) for a, b in zip(variable.codes, variable.labels, strict=True)
    )
    return plain and COUNTED.search(f"{variable.id} {variable.label}".replace("_", " ")) is not None


def time_axis(data: ChartData) -> int | None:
    """The variable for the horizontal axis, if the others give few enough lines."""
    shape = data.answer.shape
    for a in data.axes:
        if order(data.variable(a)) and prod(shape[b] for b in data.axes if b != a) <= MOST:
            return a
    return None


def lines(data: ChartData) -> Picture:
    across = time_axis(data)
    if across is None:
        return Picture("Nothing to show.")
    variable, key = data.variable(across), key_of(data.answer, "lines")
    at_x = order(variable) or []
    ranks = sorted(range(len(at_x)), key=lambda i: at_x[i])
    others = [a for a in data.axes if a != across]
    starts, steps = data.cells(others), data.cells([across])
    series = [[start + steps[i] for i in ranks] for start in starts]
    names = [data.label(start, others) for start in starts] if others else []
    cells = [c for row in series for c in row]
    picture = Picture(alt_text(data, "Lines", cells), series=len(names))
    picture.parts, top = legend(names, key, signs=True, name=data.axis_names(others))
    for text in wrap(data.main.label, INNER_WIDTH, TICK, 1):
        top += 14
        picture.parts.append(write(text, MARGIN, top, TICK, class_="chart-axis"))
    top += 10
    y = scale(data.numbers_of(cells), top + HIGH, top, zero=False, integer=data.main.decimals == 0, down=True)
    left = MARGIN + max(width_of(text, TICK) for text in y.labels) + 8
    x = _across([at_x[i] for i in ranks], left + 14, WIDTH - MARGIN - 20)
    picture.parts += _axes(y, left, [label_of(variable, i) for i in ranks], x)
    for i, row in enumerate(series):
        picture.parts += _band(data, row, i, x, y)
    for i, row in enumerate(series):
        picture.parts += _line(data, row, i, x, y)
    if len(ranks) <= DOTS:
        points = [(c, place) for row in series for c, place in zip(row, x, strict=True) if data.has_number(c)]
        picture.parts += [_mark(data.mark(c), place, y(float(data.value[c]))) for c, place in points]
    bottom = top + HIGH + 26
    for text in wrap(data.axis_names([across]), INNER_WIDTH, TICK, 1):
        picture.parts.append(centred(text, (left + WIDTH - MARGIN) / 2, bottom + 8, class_="chart-axis"))
        bottom += 16
    for i, row in enumerate(series):
        if data.any_missing(row):
            picture.parts += [marker(i, MARGIN + 4, bottom + 7)] if names else []
            picture.parts += _gaps(data, row, key, x, bottom)
            bottom += STRIP
    picture.height = bottom
    picture.marks = {data.mark(c) for c in cells}
    remarks = sentences(
        (any(map(data.bounds, cells)), f"Bands: {data.level}."),
        (any(map(data.is_unreliable, cells)), "Hollow points: unreliable."),
        (data.any_missing(cells), "Hatched, below the axis: no number."),
        (not y.has_zero, "The axis does not start at zero."),
    )
    picture.notes = [remarks]
    return picture


def _across(places: list[float], start: float, end: float) -> list[float]:
    span = places[-1] - places[0]
    return [start + (p - places[0]) / span * (end - start) for p in places]


def _axes(y: Scale, left: float, labels: list[str], x: list[float]) -> list[str]:
    parts = []
    for tick, text in zip(y.ticks, y.labels, strict=True):
        parts.append(line(left, y(tick), WIDTH - MARGIN, y(tick), *grid_look(zero=tick == 0)))
        parts.append(write(text, left - 6, y(tick) + 4, TICK, "end", fill=MUTED, class_="chart-tick"))
    last = -1e9
    for place, label in zip(x, labels, strict=True):
        text = cut(label, 90, TICK)
        half = width_of(text, TICK) / 2
        middle = min(max(place, half + 2), WIDTH - half - 2)
        if middle - half < last + 8:
            continue
        last = middle + half
        parts.append(line(place, y.start, place, y.start + 4, "chart-grid", MUTED))
        parts.append(write(text, middle, y.start + 18, TICK, "middle", fill=MUTED, class_="chart-tick"))
    return parts


def _runs(present: list[bool]) -> list[list[int]]:
    """Runs of neighbouring points without gaps."""
    return [list(run) for yes, run in groupby(range(len(present)), key=present.__getitem__) if yes]


def _band(data: ChartData, row: list[int], i: int, x: list[float], y: Scale) -> list[str]:
    ends = [data.bounds(c) for c in row]
    parts = []
    for run in _runs([e is not None for e in ends]):
        low, high = ([(x[j], y(e[end])) for j in run if (e := ends[j])] for end in (0, 1))
        if len(run) == 1:
            parts.append(line(*low[0], *high[0], "chart-error", SERIES[i], 1.4))
        else:
            look = {"class_": f"chart-band chart-series-{i + 1}", "fill": SERIES[i], "stroke": SERIES[i]}
            faint = {"fill_opacity": 0.16, "stroke_opacity": 0.5, "stroke_width": 0.7}
            parts.append(path(low + high[::-1], closed=True, **look, **faint))
    return parts


def _line(data: ChartData, row: list[int], i: int, x: list[float], y: Scale) -> list[str]:
    parts = []
    places = [y(float(data.value[c])) if data.has_number(c) else 0.0 for c in row]
    for run in _runs([data.has_number(c) for c in row]):
        if len(run) > 1:
            points = [(x[j], places[j]) for j in run]
            look = f"chart-line chart-series-{i + 1}"
            parts.append(
                path(points, class_=look, fill="none", stroke=SERIES[i], stroke_width=2.2, stroke_dasharray=DASHES[i])
            )
        parts += [
            marker(i, x[j], places[j], data.describe(row[j]), hollow=data.is_unreliable(row[j]))
            for j in run
            if len(row) <= DOTS or len(run) == 1
        ]
    return parts


def _mark(mark: str, x: float, y: float) -> str:
    """The mark beside a point, with a light halo to be visible on lines."""
    if not mark:
        return ""
    font: Attributes = {"class_": "chart-mark", "font_family": FONT, "font_size": 12}
    halo: Attributes = {"fill": INK, "stroke": PAPER, "stroke_width": 3, "paint_order": "stroke"}
    return tag("text", escaped_text(mark), x=min(x + 5, WIDTH - 10), y=y - 6, **font, **halo)


def _gaps(data: ChartData, row: list[int], key: str, x: list[float], top: float) -> list[str]:
    """A strip below the axis that shows where a line has no number, as far as there is room."""
    parts, last = list[str](), -1e9
    for cell, place in zip(row, x, strict=True):
        if data.has_number(cell) or place - last < 16:
            continue
        last = place
        parts += [
            stub(key, place - 7, top, 14, 13, data.describe(cell)),
            rect(place - 4, top + 1, 8, 11),
            write(data.mark(cell), place, top + 10, 11, "middle"),
        ]
    return parts
