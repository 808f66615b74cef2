"""Horizontal bars with error bars, single or grouped; and a single number in large type with its interval."""

from __future__ import annotations

from discreet.serve.charts.chart_data import ChartData
from discreet.serve.charts.colours import bar, stub
from discreet.serve.charts.frame import (
    MARGIN,
    WIDTH,
    Picture,
    alt_text,
    axis_across,
    error_bar,
    key_of,
    legend,
    sentences,
)
from discreet.serve.charts.rows import LABEL, SMALL, STUB, draw_rows, row_layout, rows, value_text
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import rect, width_of, wrap, write

LARGE = 60.0


def bars(data: ChartData) -> Picture:
    key = key_of(data.answer, "bars")
    shown = rows(data)
    each, cells = max(1, len(shown.series)), shown.all
    size, high = (LABEL, 16.0) if each == 1 else (SMALL, 15.0)
    layout = row_layout(shown.labels, [data.text(c) for c in cells], size)
    at = scale(data.numbers_of(cells), layout.plot, layout.end, integer=data.main.decimals == 0)
    picture = Picture(alt_text(data, "Bars", cells), series=len(shown.series))
    picture.parts, top = legend(shown.series, key, signs=False, name=shown.within)

    def draw(row: list[int], middle: float) -> list[str]:
        places = [middle + (i - (each - 1) / 2) * high for i in range(each)]
        drawn = [_bar(data, key, cell, i, at, y, high) for i, (cell, y) in enumerate(zip(row, places, strict=True))]
        numbers = [value_text(data.text(cell), y, size) for cell, y in zip(row, places, strict=True)]
        return [part for pair in zip(drawn, numbers, strict=True) for part in pair]

    draw_rows(picture, shown, layout, at, top + 18, high * each + 10, draw, data.main.label)
    picture.marks = {data.mark(c) for c in cells}
    remarks = sentences(
        (any(map(data.bounds, cells)), f"Error bars: {data.level}."),
        (any(map(data.is_unreliable, cells)), "Pale: unreliable."),
        (data.any_missing(cells), "Hatched: no number."),
    )
    picture.notes = list(filter(None, [shown.note, remarks]))
    return picture


def _bar(data: ChartData, key: str, cell: int, series: int, at: Scale, middle: float, high: float) -> str:
    """A bar with its error bar, or a stub where there is no number."""
    thick = high - (1 if high < 16 else 0)
    tooltip = data.describe(cell)
    if not data.has_number(cell):
        return stub(key, min(at(0), at.end - STUB), middle - thick / 2 + 1, STUB, thick - 2, tooltip)
    left, right = sorted((at(0), at(float(data.value[cell]))))
    box = (left, middle - thick / 2, right - left, thick)
    ends = data.bounds(cell)
    interval = error_bar(at(ends[0]), at(ends[1]), middle, tooltip) if ends else ""
    return bar(key, series, box, tooltip, pale=data.is_unreliable(cell)) + interval


def single_number(data: ChartData) -> Picture:
    """One number in large type, with its interval."""
    picture = Picture(alt_text(data, "One number", [0]), marks={data.mark(0)})
    key, middle, mark = key_of(data.answer, "number"), WIDTH / 2, data.mark(0)
    if not data.has_number(0):
        picture.parts += [
            stub(key, middle - 60, 10, 120, 60, data.describe(0)),
            rect(middle - 20, 20, 40, 40),
            write(mark, middle, 50, 30, "middle", bold=True),
            write("no number", middle, 92, 14, "middle"),
        ]
        picture.height = 104
        return picture
    value = float(data.value[0])
    shown = f"{number(value, data.decimals)} {mark}".rstrip()
    size = min(LARGE, LARGE * (WIDTH - 4 * MARGIN) / max(1.0, width_of(shown, LARGE, bold=True)))
    picture.parts.append(write(shown, middle, 58, size, "middle", bold=True, class_="chart-number"))
    picture.height = 76
    if ends := data.bounds(0):
        low, high = (number(end, data.decimals) for end in ends)
        lines = wrap(f"{data.level}: {low} to {high}", WIDTH - 2 * MARGIN, 16, 2)
        picture.parts += [write(line, middle, 86 + 20 * i, 16, "middle") for i, line in enumerate(lines)]
        at = scale([value, *ends], 90, WIDTH - 90, integer=data.main.decimals == 0)
        picture.parts += [*axis_across(at, 124, 160), _bar(data, key, 0, 0, at, 142, 18)]
        picture.height = 184
    return picture
