"""Colours and textures that remain distinct for colour-blind readers and in greyscale, with contrast on white."""

from __future__ import annotations

from discreet.serve.charts.svg import INK, PAPER, Attributes, rect, short, tag, title

MAIN, LIGHT, GRID = "#0b5c8f", "#a9cde6", "#d5d5d5"
SERIES = (MAIN, "#da790c", "#101010", "#0d8068", "#6b1146", "#a066cc")
CLASSES = ("#e8f1fa", "#b3d1ea", "#74abd8", "#2f75b5", "#0b3c6f")  # classes of numbers, from low to high
ON_CLASSES = (INK, INK, INK, PAPER, PAPER)  # text on these
EDGE = "#5a5a5a"
DASHES = (None, "7 3", "2 3", "9 3 2 3", "12 4", "4 2")  # of lines, so that colour is never the only distinction
PALE = 0.3  # opacity of unreliable numbers

# White strokes on the bars of each series.
TEXTURES = ("", "M-2 2L2 -2M0 8L8 0M6 10L10 6", "", "M0 2H8M0 6H8", "M-2 6L2 10M0 0L8 8M6 -2L10 2", "M2 0V8M6 0V8")

HATCH = "M-1 1L1 -1M0 6L6 0M5 7L7 5"
PLUS = ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4))
SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),  # a circle
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, 1.2), (1.2, -1), (-1.2, -1)),
    (*PLUS, *((-x, -y) for x, y in PLUS)),
)


def textures(key: str, series: int) -> str:
    """The patterns of a picture: one for missing numbers, and one for each series."""
    used = [i for i in range(series) if TEXTURES[i]]
    return _pattern(f"{key}-hatch", 6, PAPER, HATCH, EDGE, 1.2) + "".join(
        _pattern(f"{key}-series-{i}", 8, SERIES[i], TEXTURES[i], PAPER, 1) for i in used
    )


def _pattern(name: str, size: int, fill: str, d: str, stroke: str, width: float) -> str:
    ground = rect(0, 0, size, size, fill=fill)
    strokes = tag("path", d=d, stroke=stroke, stroke_width=width, fill="none")
    return tag("pattern", ground, strokes, id=name, width=size, height=size, patternUnits="userSpaceOnUse")


def fill_of(key: str, series: int) -> str:
    return f"url(#{key}-series-{series})" if TEXTURES[series] else SERIES[series]


def stub(key: str, x: float, y: float, width: float, height: float, tooltip: str) -> str:
    """A placeholder for a missing number."""
    look = {"class_": "chart-missing", "stroke": EDGE, "stroke_dasharray": "3 2"}
    return rect(x, y, width, height, title(tooltip), fill=f"url(#{key}-hatch)", **look)


def bar(key: str, series: int, box: tuple[float, float, float, float], tooltip: str, *, pale: bool) -> str:
    """A bar in the box x, y, width, height."""
    look = f"chart-bar chart-series-{series + 1}" + (" chart-pale" if pale else "")
    opacity = PALE if pale else None
    return rect(
        *box, title(tooltip), class_=look, fill=fill_of(key, series), fill_opacity=opacity, stroke=SERIES[series]
    )


def marker(series: int, x: float, y: float, tooltip: str = "", *, hollow: bool = False, size: float = 4) -> str:
    """The marker of a series: each has its own shape."""
    look: Attributes = {
        "class_": f"chart-point chart-series-{series + 1}",
        "fill": PAPER if hollow else SERIES[series],
        "stroke": SERIES[series],
        "stroke_width": 1.5,
    }
    children = (title(tooltip),) if tooltip else ()
    if not SHAPES[series]:
        return tag("circle", *children, cx=x, cy=y, r=size, **look)
    places = " L".join(f"{short(x + right * size)} {short(y + down * size)}" for right, down in SHAPES[series])
    return tag("path", *children, d=f"M{places}Z", **look)
