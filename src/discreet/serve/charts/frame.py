"""What is around every picture: title, banner, what the marks mean, source and guarantee; and a summary in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from discreet.publish.description import SIMULATION
from discreet.serve.charts.chart_data import ChartData, label_of, meaning
from discreet.serve.charts.colours import GRID, fill_of, marker, textures
from discreet.serve.charts.scale import TICK, Scale, number
from discreet.serve.charts.svg import INK, PAPER, SOFT, clean, line, rect, tag, title, width_of, words, wrap, write
from discreet.serve.query_model import About, Answer

WIDTH, MARGIN = 640.0, 12.0
INSIDE = WIDTH - 2 * MARGIN
HEAD, SUB, FOOT = 17, 13, 11
NAMED = 3  # codes of a limited variable that are named one by one


@dataclass(frozen=True)
class Chart:
    """A picture that stands alone, and what it shows in words."""

    kind: str
    svg: str
    alt: str
    width: int
    height: int


@dataclass
class Picture:
    """What a kind has drawn, from y = 0 down."""

    summary: str
    height: float = 0.0
    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    series: int = 0  # how many textures it uses
    what: str = ""  # instead of the measure's label


def key_of(answer: Answer, kind: str) -> str:
    """For the ids in a picture, so that several may stand on one page."""
    digest = sha256(
        repr((kind, answer.title, answer.shape, [m.id for m in answer.measures])).encode("utf-8", "replace")
    )
    for m in answer.measures:
        if m.id in answer.numbers:
            digest.update(np.ascontiguousarray(answer.numbers[m.id]).tobytes())
    return f"chart-{digest.hexdigest()[:10]}"


def framed(
    reading: ChartData, kind: str, picture: Picture, about: About | None, *, simulation: bool, which: str = ""
) -> Chart:
    """The whole picture."""
    answer, key = reading.answer, key_of(reading.answer, kind)
    simulated = simulation or is_simulation(answer, about)
    heading = _heading(reading, picture) + (f", {clean(which)}" if which else "")
    desc = " ".join([*([SIMULATION] if simulated else []), picture.summary, *picture.notes])
    parts: list[str] = []
    y = MARGIN
    if simulated:
        y = _banner(parts, y)
    for text in wrap(heading, INSIDE, HEAD, 3, bold=True):
        y += HEAD * 1.25
        parts.append(write(text, MARGIN, y, HEAD, bold=True, class_="chart-title"))
    for text in wrap(_limits(answer), INSIDE, SUB, 3):
        y += SUB * 1.4
        parts.append(write(text, MARGIN, y, SUB, fill=SOFT, class_="chart-subtitle"))
    y += 12
    parts.append(tag("g", *picture.parts, class_=f"chart-{kind}", transform=f"translate(0 {y:.2f})"))
    y += picture.height + 8
    for text in _footer(picture, about):
        y += FOOT * 1.4
        parts.append(write(text, MARGIN, y, FOOT, fill=SOFT, class_="chart-note"))
    height = round(y + MARGIN)
    svg = tag(
        "svg",
        tag("title", words(heading), id=f"{key}-title"),
        tag("desc", words(desc), id=f"{key}-desc"),
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


def is_simulation(answer: Answer, about: About | None) -> bool:
    return (about is not None and about.simulation) or any("SIMULATION" in note for note in answer.notes)


def _banner(parts: list[str], y: float) -> float:
    lines = wrap(SIMULATION, INSIDE - 16, 12, 2, bold=True)
    height = 10 + 16 * len(lines)
    parts.append(rect(MARGIN, y, INSIDE, height, class_="chart-banner", fill="#fff3c4", stroke=INK, stroke_width=2))
    for i, text in enumerate(lines):
        parts.append(write(text, MARGIN + 8, y + 18 + 16 * i, 12, bold=True, class_="chart-banner-text"))
    return y + height + 4


def _heading(reading: ChartData, picture: Picture) -> str:
    answer = reading.answer
    by = ", ".join(clean(answer.variables[a].label) or answer.variables[a].id for a in reading.axes)
    what = clean(picture.what or reading.main.label)
    start = f"{clean(answer.title)}: {what}" if clean(answer.title) else what
    return f"{start} by {by}" if by else start


def _limits(answer: Answer) -> str:
    """Of what all numbers are."""
    found = [f"{clean(v.label)}: {label_of(v, 0)}" for v in answer.variables if len(v) == 1]
    for v, codes in answer.limited:
        labels = dict(zip(v.codes, v.labels, strict=True))
        named = [clean(labels.get(code, "")) or clean(code) for code in codes[:NAMED]]
        more = f" and {len(codes) - NAMED:,} more" if len(codes) > NAMED else ""
        found.append(f"{clean(v.label)}: {', '.join(named)}{more}")
    return "; ".join(dict.fromkeys(found))


def _footer(picture: Picture, about: About | None) -> list[str]:
    texts = [*picture.notes, *(f"“{mark}”: {meaning(mark)}." for mark in sorted(picture.marks) if mark)]
    if about is not None:
        caveats = " Caveats apply: see the table's notes." if about.caveats else ""
        texts.append(f"Source: {about.release}, table {about.id}, {about.updated}. {about.guarantee}{caveats}")
    return [part for text in texts for part in wrap(text, INSIDE, FOOT, 5)]


def summary(reading: ChartData, what: str, cells: Sequence[int]) -> str:
    """What a picture shows, for those who cannot see it."""
    there = [c for c in cells if reading.there(c)]
    rows = f"{what} of {number(len(cells))} {'number' if len(cells) == 1 else 'numbers'}."
    if not there:
        return f"{rows} None of them is published."
    top, bottom = max(there, key=lambda c: reading.value[c]), min(there, key=lambda c: reading.value[c])
    one, gaps, doubtful = len(there) == 1, len(cells) - len(there), sum(map(reading.pale, there))
    return sentences(
        (True, rows),
        (one, f"{reading.about(top)}."),
        (not one, f"Highest: {reading.about(top)}. Lowest: {reading.about(bottom)}."),
        (gaps, f"{number(gaps)} of them without a number."),
        (doubtful, f"{number(doubtful)} not reliable."),
    )


def sentences(*said: tuple[object, str]) -> str:
    """Those that hold."""
    return " ".join(text for holds, text in said if holds)


def legend(labels: Sequence[str], key: str, *, signs: bool, name: str = "") -> tuple[list[str], float]:
    """What the series are, then the sign and the label of each, in as many lines as needed."""
    parts, x, y = list[str](), MARGIN, 0.0
    if name and labels:
        parts.append(write(wrap(name, INSIDE, SUB, 1)[0], x, 13, SUB, fill=SOFT, class_="chart-legend-name"))
        y = 20.0
    for i, label in enumerate(labels):
        text = wrap(label, INSIDE - 40, SUB, 1)[0] if label else ""
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
    """Grid lines from top to bottom with numbers under them (and over them), and a stronger line at zero."""
    parts: list[str] = []
    for tick, text in zip(at.ticks, at.labels, strict=True):
        parts.append(line(at(tick), top, at(tick), bottom, *grid_look(zero=tick == 0)))
        ys = (bottom + 15, top - 5) if both else (bottom + 15,)
        parts += [centred(text, at(tick), y, 2, fill=SOFT, class_="chart-tick") for y in ys]
    if at.has_zero and 0 not in at.ticks:
        parts.append(line(at(0), top, at(0), bottom, *grid_look(zero=True)))
    middle = (at.start + at.end) / 2
    texts = wrap(label, INSIDE, TICK, 1)
    return [*parts, *(centred(text, middle, bottom + 32, MARGIN, class_="chart-axis") for text in texts)]


def grid_look(*, zero: bool) -> tuple[str, str, float]:
    """Class, colour and width of a grid line."""
    return ("chart-zero", INK, 1.2) if zero else ("chart-grid", GRID, 1.0)


def centred(text: str, middle: float, y: float, margin: float = 0.0, *, fill: str = INK, class_: str) -> str:
    """A tick or the name of an axis, moved as far as it would leave the picture."""
    half = width_of(text, TICK) / 2 + margin
    return write(text, min(max(middle, half), WIDTH - half), y, TICK, "middle", fill=fill, class_=class_)


def error_bar(
    low: float, high: float, y: float, about: str, *, cap: float = 4, cut: tuple[bool, bool] = (False, False)
) -> str:
    """A line with ends (arrows, where it was cut off), light around so that it is seen on a dark bar."""
    d = f"M{low:.2f} {y:.2f}H{high:.2f}"
    for x, arrow, turn in ((low, cut[0], cap), (high, cut[1], -cap)):
        d += (
            f"M{x + turn:.2f} {y - cap:.2f}L{x:.2f} {y:.2f}L{x + turn:.2f} {y + cap:.2f}"
            if arrow
            else f"M{x:.2f} {y - cap:.2f}V{y + cap:.2f}"
        )
    return tag(
        "g",
        title(about),
        tag("path", d=d, stroke=PAPER, stroke_width=3.6, fill="none", class_="chart-halo"),
        tag("path", d=d, stroke=INK, stroke_width=1.4, fill="none", class_="chart-error"),
    )


def largest(reading: ChartData, rows: Iterable[Sequence[int]], most: int) -> list[int]:
    """Which rows have the largest numbers, in their order. Those without numbers come last."""
    size = [max((abs(float(reading.value[c])) for c in row if reading.there(c)), default=-1.0) for row in rows]
    kept = sorted(range(len(size)), key=lambda i: (-size[i], i))[:most]
    return sorted(kept)
