"""Sankey diagram: flows from origins to destinations, with widths proportional to their size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Floats
from discreet.serve.charts.chart_data import ChartData, label_of
from discreet.serve.charts.colours import MAIN
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, alt_text, sentences
from discreet.serve.charts.scale import number
from discreet.serve.charts.svg import MUTED, Attributes, clean, rect, short, tag, title, wrap, write

MOST = 12
HIGH, GAP, TOP = 380.0, 8.0, 22.0
TEXT, LINE = 13, 15.0
NODE, ROOM = 12.0, 165.0
DARK = "#0a3d5e"


@dataclass(frozen=True)
class SankeySide:
    """Nodes of one side from the top: labels, totals, positions and heights."""

    labels: list[str]
    lines: list[list[str]]
    totals: list[float]
    tops: list[float]
    heights: list[float]
    bottom: float


def sankey(data: ChartData, origin: int, destination: int) -> Picture:
    flow, left_out = _matrix(data, origin, destination)
    froms, kept_from = _nodes_of(data, origin, flow.sum(1))
    tos, kept_to = _nodes_of(data, destination, flow.sum(0))
    small = _sum_by_node(_sum_by_node(flow, kept_from, len(froms)).T, kept_to, len(tos)).T
    cells = list(range(len(data.answer)))
    picture = Picture(alt_text(data, "Flows", cells))
    total = float(small.sum())
    if total <= 0:
        picture.parts.append(write("No flow is positive.", MARGIN, 30, 14))
        picture.height = 44
        picture.notes = [_note(data, left_out)]
        return picture
    unit = HIGH / total
    left, right = _side(froms, small.sum(1), unit), _side(tos, small.sum(0), unit)
    start, end = MARGIN + ROOM, WIDTH - MARGIN - ROOM
    names = [clean(data.variable(a).label) or data.variable(a).id for a in (origin, destination)]
    head = [(f"From: {names[0]}", start + NODE, "end"), (f"To: {names[1]}", end - NODE, "start")]
    picture.parts += [
        write(wrap(text, ROOM + NODE, 12, 1)[0], x, 12, 12, a, bold=False, fill=MUTED) for text, x, a in head
    ]
    bottom = max(left.bottom, right.bottom)
    left, right = _centre_on(left, bottom), _centre_on(right, bottom)
    picture.parts += _ribbons(data, small, left, right, start, end, unit)
    for side, x, at, anchor in ((left, start, start - 6, "end"), (right, end - NODE, end + 6, "start")):
        picture.parts += _draw_nodes(data, side, x, at, anchor)
    picture.height = bottom + 8
    few = max(len(froms), len(tos)) > MOST
    picture.notes = [*(["Smaller ones are combined as “Other”."] if few else []), _note(data, left_out)]
    return picture


def _matrix(data: ChartData, origin: int, destination: int) -> tuple[Floats, tuple[int, int]]:
    """Flows by origin and destination, and how many are omitted: not positive, without a number."""
    value = data.value.reshape([len(data.variable(a)) for a in sorted((origin, destination))])
    value = value if origin < destination else value.T
    present = np.isfinite(value)
    positive = present & (np.nan_to_num(value) > 0)
    flow = np.where(positive, np.nan_to_num(value), 0.0)
    return flow, (int((present & ~positive).sum()), int((~present).sum()))


def _nodes_of(data: ChartData, axis: int, totals: Floats) -> tuple[list[str], list[int]]:
    """The largest nodes in the order of the answer, all others as one node; and the node of each code."""
    variable = data.variable(axis)
    order = sorted(range(len(variable)), key=lambda i: (-totals[i], i))
    positive = [i for i in order if totals[i] > 0]
    chosen = sorted(positive[:MOST])
    place = {code: i for i, code in enumerate(chosen)}
    labels = [label_of(variable, i) for i in chosen]
    rest = len(positive) - len(chosen)
    if rest:
        labels.append(f"Other ({number(rest)})")
    return labels, [place.get(i, len(chosen) if rest else -1) for i in range(len(variable))]


def _sum_by_node(flow: Floats, node: list[int], nodes: int) -> Floats:
    sums = np.zeros((nodes + 1, flow.shape[1]))
    np.add.at(sums, node, flow)  # codes without a node, −1, come last
    return sums[:nodes]


def _side(labels: list[str], totals: Floats, unit: float) -> SankeySide:
    """Nodes in slots that are high enough for their labels."""
    lines = [wrap(label, ROOM - 10, TEXT, 2) for label in labels]
    tops, heights, y = list[float](), list[float](), TOP
    for total, texts in zip(totals.tolist(), lines, strict=True):
        height = max(1.0, total * unit)
        slot = max(height, LINE * (len(texts) + 1))
        tops.append(y + (slot - height) / 2)
        heights.append(height)
        y += slot + GAP
    return SankeySide(labels, lines, totals.tolist(), tops, heights, y - GAP)


def _centre_on(side: SankeySide, bottom: float) -> SankeySide:
    """The side moved so that it is centred on the longer one."""
    return replace(side, tops=[top + (bottom - side.bottom) / 2 for top in side.tops], bottom=bottom)


def _ribbons(
    data: ChartData, flow: Floats, left: SankeySide, right: SankeySide, start: float, end: float, unit: float
) -> list[str]:
    a, b = list(left.tops), list(right.tops)
    x1, x2 = start + NODE, end - NODE
    bend = (x1 + x2) / 2
    ribbons: list[tuple[float, str]] = []
    for i, j in np.argwhere(flow > 0).tolist():
        high = float(flow[i, j]) * unit
        words = f"{left.labels[i]} to {right.labels[j]}: {number(float(flow[i, j]), data.decimals)}"
        curve = f"C{short(bend)} {short(a[i])} {short(bend)} {short(b[j])} {short(x2)} {short(b[j])}"
        back = (
            f"C{short(bend)} {short(b[j] + high)} {short(bend)} {short(a[i] + high)} {short(x1)} {short(a[i] + high)}"
        )
        d = f"M{short(x1)} {short(a[i])}{curve}V{short(b[j] + high)}{back}Z"
        look: Attributes = {
            "class_": "chart-flow",
            "fill": MAIN,
            "fill_opacity": 0.32,
            "stroke": MAIN,
            "stroke_width": 0.5,
        }
        ribbons.append((-high, tag("path", title(words), d=d, **look)))
        a[i] += high
        b[j] += high
    return [ribbon for _, ribbon in sorted(ribbons, key=lambda f: f[0])]


def _draw_nodes(data: ChartData, side: SankeySide, x: float, at: float, anchor: str) -> list[str]:
    parts, nodes = [], (side.labels, side.lines, side.totals, side.tops, side.heights)
    for text, lines, total, top, high in zip(*nodes, strict=True):
        words = number(total, data.decimals)
        box = rect(x, top, NODE, high, title(f"{text}: {words}"), class_="chart-node", fill=DARK)
        first = top + high / 2 + TEXT * 0.36 - LINE * len(lines) / 2
        label = tag(
            "g",
            title(text),
            *(write(part, at, first + LINE * i, TEXT, anchor, class_="chart-label") for i, part in enumerate(lines)),
            write(words, at, first + LINE * len(lines), 12, anchor, fill=MUTED, class_="chart-value"),
        )
        parts += [box, label]
    return parts


def _note(data: ChartData, left_out: tuple[int, int]) -> str:
    low, gaps = left_out
    doubtful = sum(data.is_unreliable(c) and data.has_number(c) for c in range(len(data.answer)))
    return sentences(
        (True, "Widths are proportional to flows; totals are sums of the flows shown."),
        (low, f"Omitted: {number(low)} {'flow that is' if low == 1 else 'flows that are'} not positive."),
        (gaps, f"Without a number: {number(gaps)}."),
        (doubtful, f"Unreliable flows: {number(doubtful)}."),
        (data.interval is not None, "Confidence intervals are in the table."),
    )
