"""Horizontal bars with their intervals, alone or in groups; and one number, large, with its own."""

from __future__ import annotations

from discreet.serve.charts.chart_data import ChartData
from discreet.serve.charts.colours import bar, stub
from discreet.serve.charts.frame import (
    MARGIN,
    WIDTH,
    Picture,
    axis_across,
    error_bar,
    key_of,
    legend,
    sentences,
    summary,
)
from discreet.serve.charts.rows import LABEL, SMALL, STUB, draw_rows, laid_out, rows, value_text
from discreet.serve.charts.scale import Scale, number, scale
from discreet.serve.charts.svg import rect, width_of, wrap, write

LARGE = 60.0


def bars(reading: ChartData) -> Picture:
    key = key_of(reading.answer, "bars")
    shown = rows(reading)
    each, cells = max(1, len(shown.series)), shown.all
    size, high = (LABEL, 16.0) if each == 1 else (SMALL, 15.0)
    layout = laid_out(shown.labels, [reading.text(c) for c in cells], size)
    at = scale(reading.numbers_of(cells), layout.plot, layout.end, whole=reading.main.decimals == 0)
    picture = Picture(summary(reading, "Bars", cells), series=len(shown.series))
    picture.parts, top = legend(shown.series, key, signs=False, name=shown.within)

    def draw(row: list[int], middle: float) -> list[str]:
        places = [middle + (i - (each - 1) / 2) * high for i in range(each)]
        drawn = [_bar(reading, key, cell, i, at, y, high) for i, (cell, y) in enumerate(zip(row, places, strict=True))]
        numbers = [value_text(reading.text(cell), y, size) for cell, y in zip(row, places, strict=True)]
        return [part for pair in zip(drawn, numbers, strict=True) for part in pair]

    draw_rows(picture, shown, layout, at, top + 18, high * each + 10, draw, reading.main.label)
    picture.marks = {reading.mark(c) for c in cells}
    said = sentences(
        (any(map(reading.ends, cells)), f"Lines with ends: {reading.level}."),
        (any(map(reading.pale, cells)), "Pale: not reliable."),
        (reading.gaps(cells), "Hatched: no number."),
    )
    picture.notes = list(filter(None, [shown.note, said]))
    return picture


def _bar(reading: ChartData, key: str, cell: int, series: int, at: Scale, middle: float, high: float) -> str:
    """A bar with its interval, or a stub where there is no number."""
    thick = high - (1 if high < 16 else 0)
    about = reading.about(cell)
    if not reading.there(cell):
        return stub(key, min(at(0), at.end - STUB), middle - thick / 2 + 1, STUB, thick - 2, about)
    left, right = sorted((at(0), at(float(reading.value[cell]))))
    box = (left, middle - thick / 2, right - left, thick)
    ends = reading.ends(cell)
    interval = error_bar(at(ends[0]), at(ends[1]), middle, about) if ends else ""
    return bar(key, series, box, about, pale=reading.pale(cell)) + interval


def single(reading: ChartData) -> Picture:
    """One number, large, with its interval."""
    picture = Picture(summary(reading, "One number", [0]), marks={reading.mark(0)})
    key, middle, mark = key_of(reading.answer, "number"), WIDTH / 2, reading.mark(0)
    if not reading.there(0):
        picture.parts += [
            stub(key, middle - 60, 10, 120, 60, reading.about(0)),
            rect(middle - 20, 20, 40, 40),
            write(mark, middle, 50, 30, "middle", bold=True),
            write("no number", middle, 92, 14, "middle"),
        ]
        picture.height = 104
        return picture
    value = float(reading.value[0])
    shown = f"{number(value, reading.decimals)} {mark}".rstrip()
    size = min(LARGE, LARGE * (WIDTH - 4 * MARGIN) / max(1.0, width_of(shown, LARGE, bold=True)))
    picture.parts.append(write(shown, middle, 58, size, "middle", bold=True, class_="chart-number"))
    picture.height = 76
    if ends := reading.ends(0):
        low, high = (number(end, reading.decimals) for end in ends)
        lines = wrap(f"{reading.level}: {low} to {high}", WIDTH - 2 * MARGIN, 16, 2)
        picture.parts += [write(line, middle, 86 + 20 * i, 16, "middle") for i, line in enumerate(lines)]
        at = scale([value, *ends], 90, WIDTH - 90, whole=reading.main.decimals == 0)
        picture.parts += [*axis_across(at, 124, 160), _bar(reading, key, 0, 0, at, 142, 18)]
        picture.height = 184
    return picture
