"""Percentiles: a thick line between two of them, a dot at the median, and its interval."""

from __future__ import annotations

from dataclasses import replace

from discreet.serve.charts.bars import GAP, STUB, columns, label, name_of_rows, rows
from discreet.serve.charts.chart_data import Reading, percentiles, read
from discreet.serve.charts.colours import LIGHT, MAIN, PAPER, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, axis_across, error_bar, key_of, summary
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import INK, line, tag, title, write

HIGH = 13.0


def ranges(reading: Reading) -> Picture:
    answer = reading.answer
    found = percentiles(answer)
    median = read(answer, found[50])
    if median is None:  # no cell at all
        return Picture("Nothing to show.")
    parts = {at: read(answer, name) or median for at, name in found.items()}
    outer, inner = _pairs(found)
    key = key_of(answer, "ranges")
    shown = rows(median, grouped=False)
    cells = [row[0] for row in shown.cells]
    place = columns(shown.labels, [median.text(c) for c in cells], 13)
    drawn = [parts[a] for a in dict.fromkeys((*outer, *inner, 50))]
    values = [v for r in drawn for v in replace(r, interval=None).numbers_of(cells)]
    values += median.numbers_of([c for c in cells if not median.pale(c)])  # other intervals may leave the picture
    at = scale(values, place.plot, place.end, zero=False, whole=median.main.decimals == 0)
    picture = Picture(summary(median, f"Ranges around the median ({inner[0]}% to {inner[1]}%)", cells))
    picture.what = f"{inner[0]}th, 50th and {inner[1]}th percentile"
    tall = [max(26.0, 16.0 * len(lines) + 8) for lines in place.labels]
    both = sum(tall) > 500
    top = 18.0
    bottom = top + sum(tall)
    picture.parts.append(write("median", WIDTH - MARGIN, top - 5, 12, "end", class_="chart-axis"))
    picture.parts += name_of_rows(shown.name, place.plot - GAP, top - 5)
    picture.parts += axis_across(at, top, bottom, both=both)
    y = top
    for cell, lines, text, room in zip(cells, place.labels, shown.labels, tall, strict=True):
        middle = y + room / 2
        picture.parts.append(label(lines, text, place.plot - GAP, middle))
        picture.parts += _row(median, parts, outer, inner, cell, key, at, middle)
        picture.parts.append(write(median.text(cell), WIDTH - MARGIN, middle + 4.7, 13, "end"))
        y += room
    picture.height = bottom + 22
    picture.marks = {median.mark(c) for c in cells}
    picture.notes = [text for text in (shown.note, _words(median, cells, outer, inner, at)) if text]
    return picture


def _pairs(found: dict[int, str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The widest pair of percentiles, and the one nearest to the quartiles."""
    low = sorted(at for at in found if at < 50 and 100 - at in found)
    inner = min(low, key=lambda at: abs(at - 25))
    return (low[0], 100 - low[0]), (inner, 100 - inner)


def _row(
    median: Reading,
    parts: dict[int, Reading],
    outer: tuple[int, int],
    inner: tuple[int, int],
    cell: int,
    key: str,
    at: Scale,
    middle: float,
) -> list[str]:
    if not median.there(cell):
        return [stub(key, at.start, middle - 7, STUB, 14, median.about(cell))]
    found, about = [], median.about(cell)
    low, high = (float(parts[i].value[cell]) for i in outer)
    if outer != inner and all(parts[i].there(cell) for i in outer):
        found.append(line(at(low), middle, at(high), middle, "chart-outer", MAIN, 3))
    low, high = (float(parts[i].value[cell]) for i in inner)
    if all(parts[i].there(cell) for i in inner):
        a, b = sorted((at(low), at(high)))
        ends_in_words = " to ".join(number(v, median.decimals) for v in (low, high))
        words = f"{median.label(cell)}: {inner[0]}th to {inner[1]}th percentile: {ends_in_words}"
        found.append(
            tag(
                "rect",
                title(words),
                class_="chart-range",
                x=a,
                y=middle - HIGH / 2,
                width=b - a,
                height=HIGH,
                fill=LIGHT,
                stroke=MAIN,
            )
        )
    if ends := median.ends(cell):
        a, b = (min(max(at(end), at.start), at.end) for end in ends)
        cut = (a > at(ends[0]), b < at(ends[1]))
        found.append(error_bar(a, b, middle, about, cut=cut))
    dot = tag(
        "circle",
        title(about),
        class_="chart-median",
        cx=at(float(median.value[cell])),
        cy=middle,
        r=4.5,
        fill=PAPER if median.pale(cell) else INK,
        stroke=INK if median.pale(cell) else PAPER,
        stroke_width=1.2,
    )
    return [*found, dot]


def _words(median: Reading, cells: list[int], outer: tuple[int, int], inner: tuple[int, int], at: Scale) -> str:
    found = [f"Dot: median. Thick line: {inner[0]}th to {inner[1]}th percentile."]
    if outer != inner:
        found.append(f"Long line: {outer[0]}th to {outer[1]}th percentile.")
    if any(median.ends(c) for c in cells):
        found.append(f"Thin line with ends: {median.level} of the median.")
    if any(at.low > e[0] or e[1] > at.high for c in cells if (e := median.ends(c))):
        found.append("Arrows: it goes further.")
    if any(not median.there(c) for c in cells):
        found.append("Hatched: no number.")
    if not at.has_zero:
        found.append("The axis does not start at zero.")
    return " ".join(found)
