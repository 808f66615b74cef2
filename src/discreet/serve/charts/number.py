"""One number, large, with its interval."""

from __future__ import annotations

from discreet.serve.charts.chart_data import Reading
from discreet.serve.charts.colours import MAIN, PALE, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, axis_across, error_bar, key_of, summary
from discreet.serve.charts.scale import number, scale
from discreet.serve.charts.svg import INK, tag, title, width_of, wrap, write

LARGE = 60.0


def single(reading: Reading) -> Picture:
    picture = Picture(summary(reading, "One number", [0]))
    middle, mark = WIDTH / 2, reading.mark(0)
    picture.marks = {mark}
    if not reading.there(0):
        picture.parts.append(stub(key_of(reading.answer, "number"), middle - 60, 10, 120, 60, reading.about(0)))
        back = tag("rect", x=middle - 20, y=20, width=40, height=40, fill="#ffffff")
        picture.parts += [back, write(mark, middle, 50, 30, "middle", bold=True)]
        picture.parts.append(write("no number", middle, 92, 14, "middle"))
        picture.height = 104
        return picture
    text = number(float(reading.value[0]), reading.decimals)
    size = min(LARGE, LARGE * (WIDTH - 4 * MARGIN) / max(1.0, width_of(f"{text} {mark}", LARGE, bold=True)))
    shown = f"{text} {mark}".rstrip()
    picture.parts.append(write(shown, middle, 58, size, "middle", bold=True, fill=INK, class_="chart-number"))
    picture.height = 76
    ends = reading.ends(0)
    if ends:
        low, high = (number(end, reading.decimals) for end in ends)
        picture.parts += [
            write(line, middle, 86 + 20 * i, 16, "middle")
            for i, line in enumerate(wrap(f"{reading.level}: {low} to {high}", WIDTH - 2 * MARGIN, 16, 2))
        ]
        at = scale([float(reading.value[0]), *ends], 90, WIDTH - 90, whole=reading.main.decimals == 0)
        picture.parts += axis_across(at, 124, 160)
        a, b = sorted((at(0), at(float(reading.value[0]))))
        pale = reading.pale(0)
        bar = tag(
            "rect",
            title(reading.about(0)),
            class_="chart-bar chart-series-1",
            x=a,
            y=133,
            width=b - a,
            height=18,
            fill=MAIN,
            fill_opacity=PALE if pale else None,
            stroke=MAIN,
        )
        picture.parts += [bar, error_bar(at(ends[0]), at(ends[1]), 142, reading.about(0), cap=6)]
        picture.height = 184
    return picture
