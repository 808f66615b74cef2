"""Percentiles: a thick line between two of them, a dot at the median, and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from discreet.serve.charts.chart_data import ChartData, percentiles, read
from discreet.serve.charts.colours import LIGHT, MAIN, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, error_bar, key_of, sentences, summary
from discreet.serve.charts.rows import LABEL, STUB, draw_rows, laid_out, rows, value_text
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import INK, PAPER, line, rect, tag, title, write

HIGH = 13.0
Pair = tuple[int, int]


def ranges(reading: ChartData) -> Picture:
    answer = reading.answer
    found = percentiles(answer)
    median = read(answer, found[50])
    if median is None:  # no cell at all
        return Picture("Nothing to show.")
    parts = {at: read(answer, name) or median for at, name in found.items()}
    outer, inner = _pairs(found)
    key, shown = key_of(answer, "ranges"), rows(median, grouped=False)
    cells = shown.all
    layout = laid_out(shown.labels, [median.text(c) for c in cells], LABEL)
    drawn = [parts[a] for a in dict.fromkeys((*outer, *inner, 50))]
    values = [v for r in drawn for v in replace(r, interval=None).numbers_of(cells)]
    values += median.numbers_of([c for c in cells if not median.pale(c)])  # other intervals may leave the picture
    at = scale(values, layout.plot, layout.end, zero=False, whole=median.main.decimals == 0)
    picture = Picture(summary(median, f"Ranges around the median ({inner[0]}% to {inner[1]}%)", cells))
    picture.what = f"{inner[0]}th, 50th and {inner[1]}th percentile"
    picture.parts.append(write("median", WIDTH - MARGIN, 13, 12, "end", class_="chart-axis"))

    def draw(row: list[int], middle: float) -> list[str]:
        [cell] = row
        number_text = value_text(median.text(cell), middle)
        if not median.there(cell):
            return [stub(key, at.start, middle - 7, STUB, 14, median.about(cell)), number_text]
        ranges_of = _ranges(median, parts, outer, inner, cell, at, middle)
        return [*ranges_of, *_median(median, cell, at, middle), number_text]

    draw_rows(picture, shown, layout, at, 18.0, 26.0, draw)
    picture.marks = {median.mark(c) for c in cells}
    ends = list(filter(None, map(median.ends, cells)))
    said = sentences(
        (True, f"Dot: median. Thick line: {inner[0]}th to {inner[1]}th percentile."),
        (outer != inner, f"Long line: {outer[0]}th to {outer[1]}th percentile."),
        (ends, f"Thin line with ends: {median.level} of the median."),
        (any(at.low > low or high > at.high for low, high in ends), "Arrows: it goes further."),
        (median.gaps(cells), "Hatched: no number."),
        (not at.has_zero, "The axis does not start at zero."),
    )
    picture.notes = list(filter(None, [shown.note, said]))
    return picture


def _pairs(found: Mapping[int, str]) -> tuple[Pair, Pair]:
    """The widest pair of percentiles, and the one nearest to the quartiles."""
    low = sorted(at for at in found if at < 50 and 100 - at in found)
    inner = min(low, key=lambda at: abs(at - 25))
    return (low[0], 100 - low[0]), (inner, 100 - inner)


def _ranges(
    median: ChartData, parts: Mapping[int, ChartData], outer: Pair, inner: Pair, cell: int, at: Scale, middle: float
) -> list[str]:
    """The long line and the thick one, as far as their percentiles are there."""
    found = []
    if outer != inner and all(parts[i].there(cell) for i in outer):
        low, high = (at(float(parts[i].value[cell])) for i in outer)
        found.append(line(low, middle, high, middle, "chart-outer", MAIN, 3))
    if all(parts[i].there(cell) for i in inner):
        values = [float(parts[i].value[cell]) for i in inner]
        left, right = sorted(map(at, values))
        said = " to ".join(number(v, median.decimals) for v in values)
        about = title(f"{median.label(cell)}: {inner[0]}th to {inner[1]}th percentile: {said}")
        box = (left, middle - HIGH / 2, right - left, HIGH)
        found.append(rect(*box, about, class_="chart-range", fill=LIGHT, stroke=MAIN))
    return found


def _median(median: ChartData, cell: int, at: Scale, middle: float) -> list[str]:
    """A dot, hollow if it is not reliable, and its interval as far as the picture goes."""
    found, about, pale = [], median.about(cell), median.pale(cell)
    if ends := median.ends(cell):
        a, b = (min(max(at(end), at.start), at.end) for end in ends)
        found.append(error_bar(a, b, middle, about, cut=(a > at(ends[0]), b < at(ends[1]))))
    look = {"class_": "chart-median", "fill": PAPER if pale else INK, "stroke": INK if pale else PAPER}
    place = {"cx": at(float(median.value[cell])), "cy": middle, "r": 4.5, "stroke_width": 1.2}
    return [*found, tag("circle", title(about), **look, **place)]
