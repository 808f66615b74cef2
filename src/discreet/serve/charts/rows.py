"""Rows of a chart: labels on the left, a plot, numbers on the right, without overlaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.serve.charts.chart_data import ChartData, label_of
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, axis_across, largest
from discreet.serve.charts.scale import Scale, number
from discreet.serve.charts.svg import cut, tag, title, width_of, wrap, write

MOST, GROUPS = 60, 6
LABEL, SMALL = 13, 12
WIDEST = 220.0  # of the labels
LINES = 2
STUB = 16.0
GAP = 10.0
TALL = 500  # height from which on tick labels are above the plot as well


@dataclass(frozen=True)
class BarRows:
    """Cells and label of each row; labels of the bars within rows, if there are several; a note on omitted rows."""

    labels: list[str]
    cells: list[list[int]]
    series: list[str]
    note: str
    name: str  # what the rows are
    within: str  # what the bars of each are

    @property
    def all(self) -> list[int]:
        return [cell for row in self.cells for cell in row]


def rows(data: ChartData, *, grouped: bool = True) -> BarRows:
    """A variable with few codes gives the bars within rows, all others the rows; only the largest if there are many."""
    axes, shape = data.axes, data.answer.shape
    inner = None
    if grouped and len(axes) > 1:
        inner = next((a for a in (axes[-1], axes[0]) if shape[a] <= GROUPS), None)
    outer = [a for a in axes if a != inner]
    within = [] if inner is None else [inner]
    cells = [[start + step for step in data.cells(within)] for start in data.cells(outer)]
    series = [label_of(data.variable(a), i) for a in within for i in range(shape[a])]
    chosen = [cells[i] for i in largest(data, cells, MOST // max(1, len(series)))]
    labels = [data.label(row[0], outer) or data.main.label for row in chosen]
    few = f"Only the {number(len(chosen))} largest of {number(len(cells))} rows are shown."
    note = few if len(chosen) < len(cells) else ""
    return BarRows(labels, chosen, series, note, data.axis_names(outer), data.axis_names(within))


@dataclass(frozen=True)
class RowLayout:
    """Labels broken into lines, and where the plot begins and ends."""

    labels: list[list[str]]
    plot: float
    end: float


def row_layout(labels: list[str], numbers: list[str], size: float) -> RowLayout:
    wrapped = [wrap(label, WIDEST, LABEL, LINES) for label in labels]
    left = max((width_of(text, LABEL) for lines in wrapped for text in lines), default=0.0)
    right = max((width_of(text, size) for text in numbers), default=0.0)
    return RowLayout(wrapped, MARGIN + left + GAP, WIDTH - MARGIN - right - GAP)


def draw_rows(
    picture: Picture,
    shown: BarRows,
    layout: RowLayout,
    at: Scale,
    top: float,
    high: float,
    draw: Callable[[list[int], float], list[str]],
    axis: str = "",
) -> None:
    """Draw all rows from `top` on, each at least `high`; `draw` gives the parts around the middle of a row."""
    tall = [max(high, 16.0 * len(lines) + 8) for lines in layout.labels]
    bottom, y = top + sum(tall), top
    picture.parts += _axis_name(shown.name, layout.plot - GAP, top - 5)
    picture.parts += axis_across(at, top, bottom, label=axis, both=bottom - top > TALL)
    for row, lines, text, room in zip(shown.cells, layout.labels, shown.labels, tall, strict=True):
        picture.parts += [_label(lines, text, layout.plot - GAP, y + room / 2), *draw(row, y + room / 2)]
        y += room
    picture.height = bottom + (38 if axis else 22)


def _label(lines: list[str], full_text: str, right: float, middle: float) -> str:
    """The label of a row, right-aligned at the plot."""
    first = middle + LABEL * 0.36 - (len(lines) - 1) * LABEL * 0.575
    texts = [
        write(text, right, first + i * LABEL * 1.15, LABEL, "end", class_="chart-label") for i, text in enumerate(lines)
    ]
    return tag("g", title(full_text), *texts)


def _axis_name(name: str, right: float, y: float) -> list[str]:
    """The variable's name above the row labels, cut to the room; the title has it in full."""
    text = cut(name, max(right - MARGIN, 60), SMALL) if name else ""
    x = max(right, MARGIN + width_of(text, SMALL))
    return [write(text, x, y, SMALL, "end", class_="chart-axis")] if text else []


def value_text(text: str, middle: float, size: float = LABEL) -> str:
    """A number at the right end of its row."""
    return write(text, WIDTH - MARGIN, middle + size * 0.36, size, "end")
