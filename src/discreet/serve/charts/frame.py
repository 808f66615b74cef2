"""The frame of every chart: title, simulation banner, legend of marks, source and guarantee; and its alt text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from discreet.publish.description import SIMULATION
from discreet.serve.charts.chart_data import ChartData, label_of, meaning
from discreet.serve.charts.colours import GRID, fill_of, marker, textures
from discreet.serve.charts.scale import TICK, Scale, number
from discreet.serve.charts.svg import (
    INK,
    MUTED,
    PAPER,
    clean,
    escaped_text,
    line,
    rect,
    tag,
    title,
    width_of,
    wrap,
    write,
)
from discreet.serve.query_model import Answer, TableSummary

WIDTH, MARGIN = 640.0, 12.0
INNER_WIDTH = WIDTH - 2 * MARGIN
HEAD, SUB, FOOT = 17, 13, 11
NAMED = 3  # codes of a limited variable that are listed


@dataclass(frozen=True)
class Chart:
    """A self-contained SVG chart, and its alt text."""

    kind: str
    svg: str
    alt: str
    width: int
    height: int


@dataclass
class Picture:
    """The drawing of one kind of chart, from y = 0 downwards."""

    alt_text: str
    height: float = 0.0
    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    series: int = 0  # number of textures used
    what: str = ""  # instead of the measure's label


def key_of(answer: Answer, kind: str) -> str:
    """A prefix for ids in a picture, so that several can be on one page."""
    digest = sha256(
        repr((kind, answer.title, answer.shape, [m.id for m in answer.measures])).encode("utf-8", "replace")
    )
    for m in answer.measures:
        if m.id in answer.numbers:
            digest.update(np.ascontiguousarray(answer.numbers[m.id]).tobytes())
    return f"chart-{digest.hexdigest()[:10]}"


def frame_chart(
    data: ChartData, kind: str, picture: Picture, alt_text: TableSummary | None, *, simulation: bool, which: str = ""
) -> Chart:
    """The chart with title, banner, notes and source."""
    answer, key = data.answer, key_of(data.answer, kind)
    simulated = simulation or is_simulation(answer, alt_text)
    heading = _heading(data, picture) + (f", {clean(which)}" if which else "")
    desc = " ".join([*([SIMULATION] if simulated else []), picture.alt_text, *picture.notes])
    parts: list[str] = []
    y = MARGIN
    if simulated:
        y = _banner(parts, y)
    for text in wrap(heading, INNER_WIDTH, HEAD, 3, bold=True):
        y += HEAD * 1.25
        parts.append(write(text, MARGIN, y, HEAD, bold=True, class_="chart-title"))
    for text in wrap(_limits(answer), INNER_WIDTH, SUB, 3):
        y += SUB * 1.4
        parts.append(write(text, MARGIN, y, SUB, fill=MUTED, class_="chart-subtitle"))
    y += 12
    parts.append(tag("g", *picture.parts, class_=f"chart-{kind}", transform=f"translate(0 {y:.2f})"))
    y += picture.height + 8
    for text in _footer(picture, alt_text):
        y += FOOT * 1.4
        parts.append(write(text, MARGIN, y, FOOT, fill=MUTED, class_="chart-note"))
    height = round(y + MARGIN)
    svg = tag(
        "svg",
        tag("title", escaped_text(heading), id=f"{key}-title"),
        tag("desc", escaped_text(desc), id=f"{key}-desc"),
        tag("defs", textures(key, picture.series)),
        rect(0, 0, WIDTH, height, class_="chart-paper"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {WIDTH:.0f} {height}",
        width=WIDTH,
        height=height,
    )
    return Chart(kind, svg, clean(f"{heading}. {desc}"), round(WIDTH), height)


def is_simulation(answer: Answer, alt_text: TableSummary | None) -> bool:
    return (alt_text is not None and alt_text.simulation) or any("SIMULATION" in note for note in answer.notes)


def _banner(parts: list[str], y: float) -> float:
    lines = wrap(SIMULATION, INNER_WIDTH - 16, 12, 2, bold=True)
    height = 10 + 16 * len(lines)
    parts.append(
        rect(MARGIN, y, INNER_WIDTH, height, class_="chart-banner", fill="#fff3c4", stroke=INK, stroke_width=2)
    )
    for i, text in enumerate(lines):
        parts.append(write(text, MARGIN + 8, y + 18 + 16 * i, 12, bold=True, class_="chart-banner-text"))
    return y + height + 4


def _heading(data: ChartData, picture: Picture) -> str:
    answer = data.answer
    by = ", ".join(clean(answer.variables[a].label) or answer.variables[a].id for a in data.axes)
    what = clean(picture.what or data.main.label)
    start = f"{clean(answer.title)}: {what}" if clean(answer.title) else what
    return f"{start} by {by}" if by else start


def _limits(answer: Answer) -> str:
    """The limits of all numbers in a chart."""
    texts = [f"{clean(v.label)}: {label_of(v, 0)}" for v in answer.variables if len(v) == 1]
    for v, codes in answer.limits:
        labels = dict(zip(v.codes, v.labels, strict=True))
        named = [clean(labels.get(code, "")) or clean(code) for code in codes[:NAMED]]
        more = f" and {len(codes) - NAMED:,} more" if len(codes) > NAMED else ""
        texts.append(f"{clean(v.label)}: {', '.join(named)}{more}")
    return "; ".join(dict.fromkeys(texts))


def _footer(picture: Picture, alt_text: TableSummary | None) -> list[str]:
    texts = [*picture.notes, *(f"“{mark}”: {meaning(mark)}." for mark in sorted(picture.marks) if mark)]
    if alt_text is not None:
        caveats = " Caveats apply: see the table's notes." if alt_text.caveats else ""
        texts.append(
            f"Source: {alt_text.release}, table {alt_text.id}, {alt_text.updated}. {alt_text.guarantee}{caveats}"
        )
    return [part for text in texts for part in wrap(text, INNER_WIDTH, FOOT, 5)]


def alt_text(data: ChartData, what: str, cells: Sequence[int]) -> str:
    """Alt text: what the picture shows, for those who cannot see it."""
    numbered = [c for c in cells if data.has_number(c)]
    rows = f"{what} of {number(len(cells))} {'number' if len(cells) == 1 else 'numbers'}."
    if not numbered:
        return f"{rows} None is published."
    top, bottom = max(numbered, key=lambda c: data.value[c]), min(numbered, key=lambda c: data.value[c])
    one, gaps, doubtful = len(numbered) == 1, len(cells) - len(numbered), sum(map(data.is_unreliable, numbered))
    return sentences(
        (True, rows),
        (one, f"{data.describe(top)}."),
        (not one, f"Highest: {data.describe(top)}. Lowest: {data.describe(bottom)}."),
        (gaps, f"Without a number: {number(gaps)}."),
        (doubtful, f"Unreliable: {number(doubtful)}."),
    )


def sentences(*clauses: tuple[object, str]) -> str:
    """The clauses whose condition holds."""
    return " ".join(text for holds, text in clauses if holds)


def legend(labels: Sequence[str], key: str, *, signs: bool, name: str = "") -> tuple[list[str], float]:
    """What the series are, then the marker and label of each, in as many lines as needed."""
    parts, x, y = list[str](), MARGIN, 0.0
    if name and labels:
        parts.append(write(wrap(name, INNER_WIDTH, SUB, 1)[0], x, 13, SUB, fill=MUTED, class_="chart-legend-name"))
        y = 20.0
    for i, label in enumerate(labels):
        text = wrap(label, INNER_WIDTH - 40, SUB, 1)[0] if label else ""
        room = 38 + width_of(text, SUB)
        if x > MARGIN and x + room > WIDTH - MARGIN:
            x, y = MARGIN, y + 20
        if signs:
            parts.append(marker(i, x + 7, y + 8, size=4.5))
        else:
            parts.append(rect(x, y + 2, 15, 12, fill=fill_of(key, i), class_=f"chart-series-{i + 1}"))
        parts.append(write(text, x + 21, y + 13, SUB, class_="chart-legend"))
        x += room
    return parts, (y + 26 if labels else 0.0)


def axis_across(at: Scale, top: float, bottom: float, *, label: str = "", both: bool = False) -> list[str]:
    """Vertical grid lines with numbers below them (and above, if `both`), and a stronger line at zero."""
    parts: list[str] = []
    for tick, text in zip(at.ticks, at.labels, strict=True):
        parts.append(line(at(tick), top, at(tick), bottom, *grid_look(zero=tick == 0)))
        ys = (bottom + 15, top - 5) if both else (bottom + 15,)
        parts += [centred(text, at(tick), y, 2, fill=MUTED, class_="chart-tick") for y in ys]
    if at.has_zero and 0 not in at.ticks:
        parts.append(line(at(0), top, at(0), bottom, *grid_look(zero=True)))
    middle = (at.start + at.end) / 2
    texts = wrap(label, INNER_WIDTH, TICK, 1)
    return [*parts, *(centred(text, middle, bottom + 32, MARGIN, class_="chart-axis") for text in texts)]


def grid_look(*, zero: bool) -> tuple[str, str, float]:
    """Class, colour and width of a grid line."""
    return ("chart-zero", INK, 1.2) if zero else ("chart-grid", GRID, 1.0)


def centred(text: str, middle: float, y: float, margin: float = 0.0, *, fill: str = INK, class_: str) -> str:
    """A tick label or axis name, shifted so that it stays within the picture."""
    half = width_of(text, TICK) / 2 + margin
    return write(text, min(max(middle, half), WIDTH - half), y, TICK, "middle", fill=fill, class_=class_)


def error_bar(
    low: float, high: float, y: float, tooltip: str, *, cap: float = 4, cut: tuple[bool, bool] = (False, False)
) -> str:
    """A line with end caps (arrows where it is cut off), with a light halo to be visible on a dark bar."""
    d = f"M{low:.2f} {y:.2f}H{high:.2f}"
    for x, arrow, turn in ((low, cut[0], cap), (high, cut[1], -cap)):
        d += (
            f"M{x + turn:.2f} {y - cap:.2f}L{x:.2f} {y:.2f}L{x + turn:.2f} {y + cap:.2f}"
            if arrow
            else f"M{x:.2f} {y - cap:.2f}V{y + cap:.2f}"
        )
    return tag(
        "g",
        title(tooltip),
        tag("path", d=d, stroke=PAPER, stroke_width=3.6, fill="none", class_="chart-halo"),
        tag("path", d=d, stroke=INK, stroke_width=1.4, fill="none", class_="chart-error"),
    )


def largest(data: ChartData, rows: Iterable[Sequence[int]], most: int) -> list[int]:
    """Indices of the rows with the largest numbers, in order of position. Rows without numbers come last."""
    size = [max((abs(float(data.value[c])) for c in row if data.has_number(c)), default=-1.0) for row in rows]
    chosen = sorted(range(len(size)), key=lambda i: (-size[i], i))[:most]
    return sorted(chosen)
