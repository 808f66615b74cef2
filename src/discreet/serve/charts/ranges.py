"""Percentile ranges: a thick line between two percentiles, a dot at the median, and its confidence interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from discreet.serve.charts.chart_data import ChartData, percentiles, read_chart_data
from discreet.serve.charts.colours import LIGHT, MAIN, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, alt_text, error_bar, key_of, sentences
from discreet.serve.charts.rows import LABEL, STUB, draw_rows, row_layout, rows, value_text
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import INK, PAPER, line, rect, tag, title, write

HIGH = 13.0
Pair = tuple[int, int]


def ranges(data: ChartData) -> Picture:
    answer = data.answer
    columns = percentiles(answer)
    median = read_chart_data(answer, columns[50])
    if median is None:  # no cells
        return Picture("Nothing to show.")
    parts = {at: read_chart_data(answer, name) or median for at, name in columns.items()}
    outer, inner = _pairs(columns)
    key, shown = key_of(answer, "ranges"), rows(median, grouped=False)
    cells = shown.all
    layout = row_layout(shown.labels, [median.text(c) for c in cells], LABEL)
    drawn = [parts[a] for a in dict.fromkeys((*outer, *inner, 50))]
    values = [v for r in drawn for v in replace(r, interval=None).numbers_of(cells)]
    values += median.numbers_of(
        [c for c in cells if not median.is_unreliable(c)]
    )  # unreliable intervals may be cut off
    at = scale(values, layout.plot, layout.end, zero=False, integer=median.main.decimals == 0)
    picture = Picture(alt_text(median, f"Ranges around the median ({inner[0]}% to {inner[1]}%)", cells))
    picture.what = f"{inner[0]}th, 50th and {inner[1]}th percentile"
    picture.parts.append(write("median", WIDTH - MARGIN, 13, 12, "end", class_="chart-axis"))

    def draw(row: list[int], middle: float) -> list[str]:
        [cell] = row
        number_text = value_text(median.text(cell), middle)
        if not median.has_number(cell):
            return [stub(key, at.start, middle - 7, STUB, 14, median.describe(cell)), number_text]
        ranges_of = _ranges(median, parts, outer, inner, cell, at, middle)
        return [*ranges_of, *_median(median, cell, at, middle), number_text]

    draw_rows(picture, shown, layout, at, 18.0, 26.0, draw)
    picture.marks = {median.mark(c) for c in cells}
    ends = list(filter(None, map(median.bounds, cells)))
    remarks = sentences(
        (True, f"Dot: median. Thick line: {inner[0]}th to {inner[1]}th percentile."),
        (outer != inner, f"Long line: {outer[0]}th to {outer[1]}th percentile."),
        (ends, f"Thin line with end caps: {median.level} of the median."),
        (any(at.low > low or high > at.high for low, high in ends), "Arrows: the interval extends further."),
        (median.any_missing(cells), "Hatched: no number."),
        (not at.has_zero, "The axis does not start at zero."),
    )
    picture.notes = list(filter(None, [shown.note, remarks]))
    return picture


def _pairs(columns: Mapping[int, str]) -> tuple[Pair, Pair]:
    """The widest pair of percentiles, and the pair nearest to the quartiles."""
    low = sorted(at for at in columns if at < 50 and 100 - at in columns)
    inner = min(low, key=lambda at: abs(at - 25))
    return (low[0], 100 - low[0]), (inner, 100 - inner)


def _ranges(
    median: ChartData, parts: Mapping[int, ChartData], outer: Pair, inner: Pair, cell: int, at: Scale, middle: float
) -> list[str]:
    """The long and the thick line, if their percentiles are published."""
    shapes = []
    if outer != inner and all(parts[i].has_number(cell) for i in outer):
        low, high = (at(float(parts[i].value[cell])) for i in outer)
        shapes.append(line(low, middle, high, middle, "chart-outer", MAIN, 3))
    if all(parts[i].has_number(cell) for i in inner):
        values = [float(parts[i].value[cell]) for i in inner]
        left, right = sorted(map(at, values))
        text = " to ".join(number(v, median.decimals) for v in values)
        tooltip = title(f"{median.label(cell)}: {inner[0]}th to {inner[1]}th percentile: {text}")
        box = (left, middle - HIGH / 2, right - left, HIGH)
        shapes.append(rect(*box, tooltip, class_="chart-range", fill=LIGHT, stroke=MAIN))
    return shapes


def _median(median: ChartData, cell: int, at: Scale, middle: float) -> list[str]:
    """A dot, hollow if unreliable, and its confidence interval, cut off at the edges of the plot."""
    shapes, tooltip, pale = [], median.describe(cell), median.is_unreliable(cell)
    if ends := median.bounds(cell):
        a, b = (min(max(at(end), at.start), at.end) for end in ends)
        shapes.append(error_bar(a, b, middle, tooltip, cut=(a > at(ends[0]), b < at(ends[1]))))
    look = {"class_": "chart-median", "fill": PAPER if pale else INK, "stroke": INK if pale else PAPER}
    place = {"cx": at(float(median.value[cell])), "cy": middle, "r": 4.5, "stroke_width": 1.2}
    return [*shapes, tag("circle", title(tooltip), **look, **place)]
