"""Horizontal bars with their intervals, alone or in groups."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from discreet.serve.charts.chart_data import Reading, label_of
from discreet.serve.charts.colours import PALE, SERIES, fill_of, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, axis_across, error_bar, key_of, largest, legend, summary
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import cut, tag, title, width_of, wrap, write

MOST, GROUPS = 60, 6
LABEL, SMALL = 13, 12
WIDEST = 220.0  # the labels
LINES = 2
STUB = 16.0
GAP = 10.0


@dataclass(frozen=True)
class BarRows:
    """Cells of every row, with its label; labels of the bars in each, if there are several; what was left out."""

    labels: list[str]
    cells: list[list[int]]
    series: list[str]
    note: str
    name: str  # what the rows are
    within: str  # what the bars of each are


def rows(reading: Reading, *, grouped: bool = True) -> BarRows:
    """A variable of few codes gives the bars of each row, all others the rows: the largest, if there are many."""
    axes, shape = reading.axes, reading.answer.shape
    inner = None
    if grouped and len(axes) > 1:
        inner = next((a for a in (axes[-1], axes[0]) if shape[a] <= GROUPS), None)
    outer = [a for a in axes if a != inner]
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    starts = [0]
    for a in outer:
        starts = [c + steps[a] * i for c in starts for i in range(shape[a])]
    series = [] if inner is None else [label_of(reading.variable(inner), i) for i in range(shape[inner])]
    cells = [[c + (steps[inner] * i if inner is not None else 0) for i in range(max(1, len(series)))] for c in starts]
    chosen = [cells[i] for i in largest(reading, cells, MOST // max(1, len(series)))]
    labels = [reading.label(row[0], outer) or reading.main.label for row in chosen]
    name, within = reading.named(outer), "" if inner is None else reading.named([inner])
    few = f"Only the {number(len(chosen))} largest of {number(len(cells))} rows are shown."
    return BarRows(labels, chosen, series, few if len(chosen) < len(cells) else "", name, within)


@dataclass(frozen=True)
class Columns:
    """Labels on the left, a plot, numbers on the right: nothing can lie on anything else."""

    labels: list[list[str]]
    plot: float
    end: float


def columns(labels: list[str], numbers: list[str], size: float) -> Columns:
    wrapped = [wrap(label, WIDEST, LABEL, LINES) for label in labels]
    left = max((width_of(text, LABEL) for lines in wrapped for text in lines), default=0.0)
    right = max((width_of(text, size) for text in numbers), default=0.0)
    return Columns(wrapped, MARGIN + left + GAP, WIDTH - MARGIN - right - GAP)


def label(lines: list[str], whole: str, right: float, middle: float) -> str:
    """Of a row, its last letters at the plot."""
    first = middle + LABEL * 0.36 - (len(lines) - 1) * LABEL * 0.575
    texts = [
        write(text, right, first + i * LABEL * 1.15, LABEL, "end", class_="chart-label") for i, text in enumerate(lines)
    ]
    return tag("g", title(whole), *texts)


def name_of_rows(name: str, right: float, y: float) -> list[str]:
    """The variable above the labels of rows, as far as there is room; the title has it whole."""
    text = cut(name, max(right - MARGIN, 60), SMALL) if name else ""
    if not text:
        return []
    return [write(text, max(right, MARGIN + width_of(text, SMALL)), y, SMALL, "end", class_="chart-axis")]


def bars(reading: Reading) -> Picture:
    key = key_of(reading.answer, "bars")
    shown = rows(reading)
    each = max(1, len(shown.series))
    cells = [c for row in shown.cells for c in row]
    size = LABEL if each == 1 else SMALL
    place = columns(shown.labels, [reading.text(c) for c in cells], size)
    whole = reading.main.decimals == 0
    at = scale(reading.numbers_of(cells), place.plot, place.end, whole=whole)
    picture = Picture(summary(reading, "Bars", cells), series=len(shown.series))
    picture.parts, top = legend(shown.series, key, signs=False, name=shown.within)
    high = 15.0 if each > 1 else 16.0
    tall = [max(high * each + 10, 16.0 * len(lines) + 8) for lines in place.labels]
    both = sum(tall) > 500
    top += 18
    picture.parts += name_of_rows(shown.name, place.plot - GAP, top - 5)
    bottom = top + sum(tall)
    picture.parts += axis_across(at, top, bottom, label=reading.main.label, both=both)
    y = top
    for row, lines, text, room in zip(shown.cells, place.labels, shown.labels, tall, strict=True):
        picture.parts.append(label(lines, text, place.plot - GAP, y + room / 2))
        for i, cell in enumerate(row):
            middle = y + room / 2 + (i - (each - 1) / 2) * high
            picture.parts += _bar(reading, key, cell, i, at, middle, high)
            picture.parts.append(write(reading.text(cell), WIDTH - MARGIN, middle + size * 0.36, size, "end"))
        y += room
    picture.height = bottom + 38
    picture.marks = {reading.mark(c) for c in cells}
    picture.notes = [text for text in (shown.note, signs(reading, cells)) if text]
    return picture


def _bar(reading: Reading, key: str, cell: int, i: int, at: Scale, middle: float, high: float) -> list[str]:
    thick = high - (1 if high < 16 else 0)
    if not reading.there(cell):
        return [stub(key, min(at(0), at.end - STUB), middle - thick / 2 + 1, STUB, thick - 2, reading.about(cell))]
    a, b = sorted((at(0), at(float(reading.value[cell]))))
    pale = reading.pale(cell)
    bar = tag(
        "rect",
        title(reading.about(cell)),
        class_=f"chart-bar chart-series-{i + 1}" + (" chart-pale" if pale else ""),
        x=a,
        y=middle - thick / 2,
        width=b - a,
        height=thick,
        fill=fill_of(key, i),
        fill_opacity=PALE if pale else None,
        stroke=SERIES[i],
    )
    ends = reading.ends(cell)
    return [bar, error_bar(at(ends[0]), at(ends[1]), middle, reading.about(cell))] if ends else [bar]


def signs(reading: Reading, cells: list[int]) -> str:
    """What is drawn beside the bars, in words."""
    found = []
    if any(reading.ends(c) for c in cells):
        found.append(f"Lines with ends: {reading.level}.")
    if any(reading.pale(c) for c in cells):
        found.append("Pale: not reliable.")
    if any(not reading.there(c) for c in cells):
        found.append("Hatched: no number.")
    return " ".join(found)
