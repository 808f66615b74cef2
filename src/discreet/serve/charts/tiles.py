"""A tile grid map of the states."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from discreet.serve.charts.chart_data import ChartData
from discreet.serve.charts.colours import CLASSES, EDGE, ON_CLASSES, stub
from discreet.serve.charts.frame import MARGIN, WIDTH, Picture, alt_text, key_of, sentences
from discreet.serve.charts.scale import brief, number
from discreet.serve.charts.svg import INK, cut, rect, tag, title, width_of, write
from discreet.serve.query_model import TableVariable

MAP = (
    "AK .. .. .. .. .. .. .. .. .. ME",
    ".. .. .. .. .. .. .. .. .. VT NH",
    "WA ID MT ND MN WI .. MI NY MA RI",
    "OR NV WY SD IA IL IN OH PA NJ CT",
    "CA UT CO NE MO KY WV VA MD DE ..",
    ".. AZ NM KS AR TN NC SC DC .. ..",
    ".. .. .. OK LA MS AL GA .. .. ..",
    "HI .. .. TX .. .. .. .. FL .. ..",
)
PLACES = {s: (row, i) for row, names in enumerate(MAP) for i, s in enumerate(names.split()) if s != ".."}
NUMBERED = (
    "01AL 02AK 04AZ 05AR 06CA 08CO 09CT 10DE 11DC 12FL 13GA 15HI 16ID 17IL 18IN 19IA 20KS 21KY 22LA 23ME 24MD 25MA "
    "26MI 27MN 28MS 29MO 30MT 31NE 32NV 33NH 34NJ 35NM 36NY 37NC 38ND 39OH 40OK 41OR 42PA 44RI 45SC 46SD 47TN 48TX "
    "49UT 50VT 51VA 53WA 54WV 55WI 56WY"
)
FIPS = {word[:2]: word[2:] for word in NUMBERED.split()}
TERRITORIES = {"60": "AS", "66": "GU", "69": "MP", "72": "PR", "78": "VI"}
MANY, MOSTLY = 26, 0.8  # at least this many states, and this share of the codes
ALL = 50  # at least this many and nothing else, if no name says that numeric codes are states
ACROSS, TILE, SPACE = 11, 53.0, 3.2
ROW = TILE + SPACE


def states(variable: TableVariable) -> dict[int, str]:
    """The postal code of each code that is a state or territory, if most codes are."""
    postal = {i: c for i, c in enumerate(variable.codes) if c in PLACES or c in TERRITORIES.values()}
    numbered = {i: FIPS.get(c) or TERRITORIES[c] for i, c in enumerate(variable.codes) if c in FIPS or c in TERRITORIES}
    known = re.search(r"state|fips|geo", f"{variable.id} {variable.label}", re.IGNORECASE)
    for postal_codes, sure in ((postal, True), (numbered, known is not None)):
        on_map, others = sum(s in PLACES for s in postal_codes.values()), len(variable) - len(postal_codes)
        mostly = on_map >= MANY and len(postal_codes) >= MOSTLY * len(variable) and others <= ACROSS - len(TERRITORIES)
        if mostly and (sure or (on_map >= ALL and not others)):
            return postal_codes
    return {}


def tiles(data: ChartData) -> Picture:
    variable = data.variable(data.axes[0])
    key, known = key_of(data.answer, "tiles"), states(variable)
    cells = list(range(len(variable)))
    values = [float(data.value[c]) for c in cells if data.has_number(c)]
    borders = classes(values)
    picture = Picture(alt_text(data, "Map of tiles", cells))
    others = [c for c in cells if known.get(c) not in PLACES]
    bottom = len(MAP)
    for cell in cells:
        name = known.get(cell, variable.codes[cell])
        row, i = PLACES.get(name) or (bottom, others.index(cell))
        x, y = MARGIN + i * ROW, row * ROW
        picture.parts.append(_tile(data, key, cell, name, x, y, borders))
    y = (bottom + (1 if others else 0)) * ROW + 4
    picture.parts += _legend(data, values, borders, y)
    picture.height = y + 36
    picture.marks = {data.mark(c) for c in cells}
    remarks = sentences(
        (True, "Darker means larger; each colour has about the same number of states."),
        (data.any_missing(cells), "Hatched: no number."),
        (any(data.has_number(c) and data.mark(c) for c in cells), "Dashed border: see the mark."),
        (data.interval is not None, "Confidence intervals are in the table."),
    )
    picture.notes = [remarks]
    return picture


def classes(values: list[float]) -> list[float]:
    """The lowest number of each class but the first; classes have about equally many numbers."""
    if not values:
        return []
    ordered = np.sort(np.array(values))
    places = [len(values) * i // len(CLASSES) for i in range(1, len(CLASSES))]
    return sorted({float(ordered[p]) for p in places} - {float(ordered[0])})


def class_of(value: float, borders: list[float]) -> int:
    """The index of the colour; fewer classes are spread over all colours."""
    place = sum(value >= b for b in borders)
    return place if len(borders) == len(CLASSES) - 1 else place * (len(CLASSES) - 1) // max(1, len(borders))


def _tile(data: ChartData, key: str, cell: int, name: str, x: float, y: float, borders: list[float]) -> str:
    if not data.has_number(cell):
        box = stub(key, x, y, TILE, TILE, data.describe(cell))
        plate = rect(x + 9, y + 9, TILE - 18, TILE - 18)
        return tag("g", box, plate, *_tile_text(name, data.mark(cell), x, y, INK), class_="chart-tile")
    place = class_of(float(data.value[cell]), borders)
    stroke, width, dashes = (INK, 1.6, "4 2") if data.mark(cell) else (EDGE, 1, None)
    edge = {"stroke": stroke, "stroke_width": width, "stroke_dasharray": dashes}
    box = rect(x, y, TILE, TILE, class_=f"chart-class-{place + 1}", fill=CLASSES[place], **edge)
    text = f"{brief(float(data.value[cell]), data.decimals)} {data.mark(cell)}".rstrip()
    texts = _tile_text(name, text, x, y, ON_CLASSES[place])
    return tag("g", title(data.describe(cell)), box, *texts, class_="chart-tile")


def _tile_text(name: str, text: str, x: float, y: float, fill: str) -> list[str]:
    room = TILE - 4
    return [
        write(cut(name, room, 14, bold=True), x + TILE / 2, y + 24, 14, "middle", bold=True, fill=fill),
        write(cut(text, room, 11), x + TILE / 2, y + 40, 11, "middle", fill=fill, class_="chart-value"),
    ]


def _legend(data: ChartData, values: list[float], borders: list[float], y: float) -> list[str]:
    """The range of numbers of each colour that occurs."""
    values_by_class: dict[int, list[float]] = {}
    for value in sorted(values):
        values_by_class.setdefault(class_of(value, borders), []).append(value)
    room = (WIDTH - 2 * MARGIN) / len(CLASSES)
    full = [
        _interval_text(members, partial(number, decimals=data.decimals))
        for _, members in sorted(values_by_class.items())
    ]
    fits = all(width_of(text, 11) <= room - 4 for text in full)
    short = [
        _interval_text(members, partial(brief, decimals=data.decimals))
        for _, members in sorted(values_by_class.items())
    ]
    parts = []
    for i, (place, text) in enumerate(zip(sorted(values_by_class), full if fits else short, strict=True)):
        x, look = MARGIN + i * room, f"chart-class-{place + 1}"
        parts += [
            rect(x, y, room - 4, 12, fill=CLASSES[place], stroke=EDGE, class_=look),
            write(cut(text, room - 4, 11), x, y + 26, 11, class_="chart-legend"),
        ]
    return parts


def _interval_text(members: list[float], written: Callable[[float], str]) -> str:
    low, high = written(members[0]), written(members[-1])
    return low if low == high else f"{low} to {high}"
