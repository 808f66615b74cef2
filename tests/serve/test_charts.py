"""Charts: the choice of kind, and pictures whose geometry agrees with the numbers."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet.errors import InvalidQuery
from discreet.serve import charts
from discreet.serve.charts.colours import CLASSES, ON_CLASSES, SERIES
from discreet.serve.charts.svg import width_of
from discreet.serve.charts.tiles import FIPS, PLACES
from discreet.serve.query_model import Answer, Measure, Status, TableSummary, TableVariable

SVG = "{http://www.w3.org/2000/svg}"
OK, CAUTION, BAD, WITHHELD, ABSENT = Status
COUNT = (
    Measure("estimate", "Number of records"),
    Measure("low90", "Low", 0, "estimate"),
    Measure("high90", "High", 0, "estimate"),
)
NAN = float("nan")


def variable(name: str, codes: Sequence[str], labels: Sequence[str] = ()) -> TableVariable:
    return TableVariable(name, name.replace("_", " ").capitalize(), tuple(codes), tuple(labels or codes))


def answer(
    variables: Sequence[TableVariable],
    values: Sequence[float],
    *,
    spread: float = 10.0,
    status: dict[int, Status] | None = None,
    measures: tuple[Measure, ...] = COUNT,
    title: str = "Workers",
    **more: Sequence[float],
) -> Answer:
    value = np.array(values, float)
    numbers = {"estimate": value, "low90": value - spread, "high90": value + 2 * spread}
    numbers |= {name: np.array(column, float) for name, column in more.items()}
    marks = [(status or {}).get(i, OK) for i in range(len(value))]
    return Answer(title, tuple(variables), measures, numbers, marks)


def summary(method: str = "counts", **more: object) -> TableSummary:
    known = {
        "id": "workers", "title": "Workers", "release": "demo", "method": method, "guarantee": "At most e^1.",
        "caveats": (), "noise": "", "notes": (), "updated": "2026-11-16", "simulation": False,
    }  # fmt: skip
    return TableSummary(**(known | more))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Item:
    """An element of a picture and where it is."""

    tag: str
    classes: tuple[str, ...]
    element: ElementTree.Element
    points: list[tuple[float, float]]

    def get(self, name: str) -> str:
        return self.element.get(name, "")

    @property
    def text(self) -> str:
        return self.element.text or ""

    @property
    def box(self) -> tuple[float, float, float, float]:
        xs, ys = [p[0] for p in self.points], [p[1] for p in self.points]
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def width(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


def picture(drawn: charts.Chart | None) -> charts.Chart:
    assert drawn is not None
    return drawn


def items(drawn: charts.Chart | None, wanted: str = "") -> list[Item]:
    """The drawn elements, without definitions; only those of a class, if given."""
    root = ElementTree.fromstring(picture(drawn).svg)
    actual = list(_walk(root, 0.0, 0.0))
    return [item for item in actual if not wanted or wanted in item.classes]


def _walk(element: ElementTree.Element, right: float, down: float) -> Iterator[Item]:
    if move := re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", element.get("transform", "")):
        right, down = right + float(move[1]), down + float(move[2])
    for child in element:
        name = child.tag.removeprefix(SVG)
        if name in ("defs", "title", "desc"):
            continue
        if points := [(x + right, y + down) for x, y in _points(name, child)]:
            yield Item(name, tuple(child.get("class", "").split()), child, points)
        yield from _walk(child, right, down)


def _points(name: str, element: ElementTree.Element) -> list[tuple[float, float]]:
    def at(key: str) -> float:
        return float(element.get(key, "0"))

    if name == "rect":
        return [(at("x"), at("y")), (at("x") + at("width"), at("y") + at("height"))]
    if name == "line":
        return [(at("x1"), at("y1")), (at("x2"), at("y2"))]
    if name == "circle":
        return [(at("cx") - at("r"), at("cy") - at("r")), (at("cx") + at("r"), at("cy") + at("r"))]
    if name == "text":
        size, text = at("font-size"), element.text or ""
        wide = width_of(text, size, bold=element.get("font-weight") == "bold")
        x = at("x") - {"": 0.0, "middle": wide / 2, "end": wide}[element.get("text-anchor", "")]
        return [(x, at("y") - 0.75 * size), (x + wide, at("y") + 0.2 * size)]
    return _path(element.get("d", "")) if name == "path" else []


def _path(d: str) -> list[tuple[float, float]]:
    actual: list[tuple[float, float]] = []
    x = y = 0.0
    for letter, words in re.findall(r"([MLHVCZ])([^MLHVCZ]*)", d):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", words)]
        if letter == "H":
            x = numbers[0]
        elif letter == "V":
            y = numbers[0]
        elif numbers:
            actual += list(zip(numbers[::2], numbers[1::2], strict=True))
            x, y = numbers[-2:]
        actual.append((x, y))
    return actual


def overlap(a: Item, b: Item) -> bool:
    (x1, y1, x2, y2), (u1, v1, u2, v2) = a.box, b.box
    return min(x2, u2) - max(x1, u1) > 0.01 and min(y2, v2) - max(y1, v1) > 0.01


def inside(drawn: charts.Chart | None) -> None:
    """Everything is within the picture."""
    chart = picture(drawn)
    for item in items(chart):
        x1, y1, x2, y2 = item.box
        assert x1 >= -0.01, (item.tag, item.classes, item.text)
        assert y1 >= -0.01, (item.tag, item.classes, item.text)
        assert x2 <= chart.width + 0.01, (item.tag, item.classes, item.text)
        assert y2 <= chart.height + 0.01, (item.tag, item.classes, item.text)


LETTERS = variable("group", "ABCDE", ["Apples", "Bread", "Cheese", "Dates", "Eggs"])
STATES = variable("state", tuple(FIPS), tuple(FIPS.values()))
POSTAL = variable("area", tuple(FIPS.values()))
YEARS = variable("year", ["2010", "2011", "2013", "2020"])
PERCENTILES = tuple(Measure(f"p{at}", f"P{at}") for at in (25, 50, 75))
QUARTILES = {"p25": [10.0, 20, 30, 40, 50], "p50": [20.0, 30, 40, 50, 60], "p75": [50.0, 60, 70, 80, 90]}
SMALL_FLOWS = [variable("origin_place", "AB"), variable("destination", "XYZ")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer([LETTERS], range(5)), ("bars",)),
        (answer([LETTERS, variable("sex", "FM")], range(10)), ("bars",)),
        (answer([STATES], range(51)), ("tiles", "bars")),
        (answer([POSTAL], range(51)), ("tiles", "bars")),
        (answer([POSTAL.with_codes(POSTAL.codes[:40])], range(40)), ("tiles", "bars")),
        (answer([POSTAL.with_codes(POSTAL.codes[:10])], range(10)), ("bars",)),
        (answer([STATES, variable("sex", "FM")], range(102)), ("bars",)),
        (answer([STATES, variable("sex", "F")], range(51)), ("tiles", "bars")),
        (answer([YEARS], range(4)), ("lines", "bars")),
        (answer([LETTERS, YEARS], range(20)), ("lines", "bars")),
        (answer([variable("region", "ABCDEFG"), YEARS], range(28)), ("bars",)),
        (answer([variable("year", ["2010", "2011"])], range(2)), ("bars", "lines")),
        (answer([variable("time", ["2010Q1", "2010Q2", "2011Q1"])], range(3)), ("lines", "bars")),
        (answer([variable("time", ["2010-11", "2011-12", "2012-13"])], range(3)), ("lines", "bars")),
        (answer([variable("years_after", ["1", "5", "10"])], range(3)), ("lines", "bars")),
        (answer([variable("major_group", ["61", "62", "63"])], range(3)), ("bars",)),
        (answer([variable("age_group", ["01", "02", "03"])], range(3)), ("bars",)),
        (answer([variable("age", ["1", "2", "3"], ["young", "middle", "old"])], range(3)), ("bars",)),
        (answer([], [7.0]), ("number", "bars")),
        (answer([variable("sex", "F")], [7.0]), ("number", "bars")),
        (answer([LETTERS], range(5), measures=PERCENTILES, **QUARTILES), ("ranges", "bars")),
        (answer(SMALL_FLOWS, range(6)), ("sankey", "bars")),
        (answer([variable("group", [])], []), ()),
    ],
)
def test_kinds(given: Answer, expected: tuple[str, ...]) -> None:
    assert charts.kinds(given) == expected
    drawn = charts.chart(given)
    assert (drawn.kind if drawn else None) == (expected[0] if expected else None)
    for kind in expected:
        assert picture(charts.chart(given, kind)).kind == kind
        inside(charts.chart(given, kind, summary=summary()))


def test_a_kind_can_be_requested() -> None:
    two = answer([LETTERS, variable("sex", "FM")], range(10))
    assert picture(charts.chart(two, "sankey")).kind == "sankey"  # any two variables, if asked
    assert charts.kinds(two, summary("flows"))[0] == "sankey"
    assert charts.chart(two, "tiles") is None
    assert charts.chart(answer([LETTERS], range(5)), "sankey") is None
    assert charts.chart(two, measure="no such") is None
    with pytest.raises(InvalidQuery, match="Use one of sankey"):
        charts.chart(two, "pie")


def test_codes_of_fields_are_not_states() -> None:
    """Two-digit codes of fields of study look like FIPS codes."""
    cip = variable("cip2", [f"{i:02}" for i in (1, 3, 4, 5, *range(9, 55)) if i not in (2, 6, 7, 8)])
    assert sum(code in FIPS for code in cip.codes) > 26
    assert charts.kinds(answer([cip], range(len(cip)))) == ("bars",)
    assert charts.kinds(answer([variable("where", tuple(FIPS))], range(51)))[0] == "tiles"  # all, and nothing else


def test_bars_are_as_long_as_numbers() -> None:
    values = [100.0, 50, 0, -40, 75]
    drawn = charts.chart(answer([LETTERS], values, spread=5))
    actual = items(drawn, "chart-bar")
    [zero] = items(drawn, "chart-zero")
    at = zero.box[0]
    unit = actual[0].width / 100
    assert unit > 1
    for bar, value in zip(actual, values, strict=True):
        assert bar.width == pytest.approx(abs(value) * unit, abs=0.03)
        assert (bar.box[2] if value < 0 else bar.box[0]) == pytest.approx(at, abs=0.03)
    for line, bar, value in zip(items(drawn, "chart-error"), actual, values, strict=True):
        assert line.box[0] == pytest.approx(at + (value - 5) * unit, abs=0.05)
        assert line.box[2] == pytest.approx(at + (value + 10) * unit, abs=0.05)
        assert (line.box[1] + line.box[3]) / 2 == pytest.approx((bar.box[1] + bar.box[3]) / 2, abs=0.02)
    for tick in items(drawn, "chart-tick"):
        middle = (tick.box[0] + tick.box[2]) / 2
        assert middle == pytest.approx(at + float(tick.text.replace("−", "-")) * unit, abs=0.3)


@pytest.mark.parametrize("scale", [1e-9, 0.37, 1, 1e9, 1e14, 1e200])
@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_lies_on_anything_else(scale: float, sign: int) -> None:
    long = variable("group", "ABCDE", ["A very long label " * 5, "W" * 90, "", "Käse & Brot <fresh>", "e"])
    values = [sign * scale * v for v in (3.0, 9, 1, 5, 2)]
    for given in (
        answer([long], values, spread=scale, status={2: WITHHELD}),
        answer([long, variable("sex", "FMX")], values * 3, spread=scale, status={2: WITHHELD}),
    ):
        drawn = charts.chart(given, "bars", summary=summary())
        inside(drawn)
        marks = [m for name in ("chart-bar", "chart-error", "chart-missing") for m in items(drawn, name)]
        texts = [i for i in items(drawn) if i.tag == "text"]
        for text in texts:
            assert not any(overlap(text, mark) for mark in marks), text.text
        for a, b in combinations(texts, 2):
            assert not overlap(a, b), (a.text, b.text)


def test_ticks_at_the_edge_stay_inside() -> None:
    drawn = charts.chart(answer([variable("g", "AB")], [-1e9, -5e8], spread=0))
    assert any(i.text == "−1,000,000,000" for i in items(drawn, "chart-tick"))
    inside(drawn)


def test_two_pictures_on_a_page_have_ids_of_their_own() -> None:
    given = [answer([LETTERS], values) for values in (range(5), range(1, 6))]
    drawn = [charts.chart(g, kind) for g in given for kind in ("bars",)]
    drawn.append(charts.chart(answer([LETTERS, variable("sex", "FM")], range(10)), "sankey"))
    ids = [re.findall(r' id="([^"]*)"', picture(d).svg) for d in drawn]
    assert len({i for actual in ids for i in actual}) == sum(map(len, ids)) > 6


def test_grouped_bars_stand_together() -> None:
    sexes = variable("sex", "FM", ["Women", "Men"])
    drawn = charts.chart(answer([LETTERS, sexes], range(1, 11)))
    first, second = items(drawn, "chart-series-1"), items(drawn, "chart-series-2")
    assert len(first) == len(second) == 1 + 5  # and the legend
    assert [i.text for i in items(drawn, "chart-legend")] == ["Women", "Men"]
    unit = first[1].width / 1
    assert [b.width / unit for b in first[1:]] == pytest.approx([1, 3, 5, 7, 9], abs=0.01)
    assert [b.width / unit for b in second[1:]] == pytest.approx([2, 4, 6, 8, 10], abs=0.01)
    first_codes = answer([variable("sex", "FM"), variable("region", "ABCDEFGH")], range(16))
    assert [i.text for i in items(charts.chart(first_codes), "chart-legend")] == ["F", "M"]


def test_many_rows_are_cut_to_the_largest() -> None:
    many = variable("place", [f"p{i}" for i in range(2000)])
    values = np.random.default_rng(1).permutation(2000) - 500.0
    drawn = charts.chart(answer([many], values))
    bars = items(drawn, "chart-bar")
    assert len(bars) == 60
    shown = [i.text for i in items(drawn, "chart-label")]
    assert shown == sorted(shown, key=lambda code: int(code[1:]))  # as the answer is
    assert {int(code[1:]) for code in shown} == set(np.argsort(-np.abs(values))[:60].tolist())
    assert "Only the 60 largest of 2,000 rows are shown." in picture(drawn).svg
    assert picture(drawn).alt.count("Only the 60 largest") == 1


def test_suppressed_numbers_are_not_in_the_chart() -> None:
    """Even if an answer has them."""
    given = answer([LETTERS], [10, 20, 98765, 87654, NAN], status={2: WITHHELD, 3: ABSENT, 4: OK})
    for kind in ("bars", "sankey"):
        drawn = charts.chart(given, kind)
        if kind == "bars":
            assert len(items(drawn, "chart-missing")) == 3
            assert len(items(drawn, "chart-bar")) == len(items(drawn, "chart-error")) == 2
            texts = [i.text for i in items(drawn, "chart-text")]
            assert texts == ["10", "20", "s", ":", "–"]
            whole = picture(drawn).svg + picture(drawn).alt
            assert not re.search("98,?7|87,?6", whole)
            assert "suppressed by a rule" in whole
            assert "no number is published" in whole
    alone = picture(charts.chart(answer([], [98765], status={0: WITHHELD})))
    assert alone.kind == "number"
    assert "98" not in re.sub(r'id="[^"]*"|="[^"]*"', "", alone.svg)
    states = answer([STATES], [98765.0] * 51, status=dict.fromkeys(range(51), WITHHELD))
    assert not re.search("98,?7", picture(charts.chart(states)).svg)


def test_unreliable_numbers_are_pale_and_marked() -> None:
    drawn = charts.chart(answer([LETTERS], [10, 20, 30, 40, 50], status={1: BAD, 2: CAUTION}))
    pale = items(drawn, "chart-pale")
    assert [float(p.get("fill-opacity")) < 0.5 and p.get("stroke") == SERIES[0] for p in pale] == [True]
    assert [i.text for i in items(drawn, "chart-text")] == ["10", "20 x", "30 u", "40", "50"]
    as_text = Answer("t", (LETTERS,), COUNT, drawn_numbers(), ["", "x", "u", "", ""])  # type: ignore[arg-type]
    assert len(items(charts.chart(as_text), "chart-pale")) == 1  # tables hand over the text of a status


def drawn_numbers() -> dict[str, np.ndarray]:
    value = np.arange(1.0, 6)
    return {"estimate": value, "low90": value - 1, "high90": value + 1}


def test_intervals_are_those_of_the_measure() -> None:
    def ends(measures: Sequence[Measure], **columns: float) -> list[float]:
        numbers = {name: np.full(5, value) for name, value in columns.items()}
        drawn = charts.chart(Answer("t", (LETTERS,), tuple(measures), numbers, [OK] * 5))
        bar, lines = items(drawn, "chart-bar")[0], items(drawn, "chart-error")
        unit = bar.width / numbers[measures[0].id][0]
        return [round((x - bar.box[0]) / unit, 1) for x in (lines[0].box[0], lines[0].box[2])] if lines else []

    count = Measure("count", "Count")
    assert ends([count, Measure("moe90", "", 0, "count")], count=100, moe90=20) == [80, 120]
    assert ends([count, Measure("count_moe90", "", 0, "count")], count=100, count_moe90=20) == [80, 120]
    assert ends([count, Measure("se", "", 0, "count")], count=100, se=10) == [83.6, 116.4]
    atlas = [Measure(name, name) for name in ("estimate", "noise_sd", "se", "low95", "high95", "count")]
    assert ends(atlas, estimate=100, noise_sd=1, se=10, low95=70, high95=125, count=5) == [70, 125]
    flows = [Measure(name, name) for name in ("flow", "measured", "moe90")]
    assert ends(flows, flow=100, measured=90, moe90=20) == []  # that margin is of what was measured
    assert ends([count], count=100) == []


def test_tiles_are_a_map() -> None:
    assert len(PLACES) == 51
    assert set(PLACES) == set(FIPS.values())
    values = [float(v) for v in np.random.default_rng(2).permutation(51) * 1000]
    drawn = charts.chart(answer([STATES], values, status={3: WITHHELD, 7: CAUTION}))
    boxes = {i: items_of_tile(drawn, name) for i, name in enumerate(FIPS.values())}
    assert len(boxes) == 51
    for (_, a), (_, b) in combinations(boxes.items(), 2):
        assert not overlap(a, b)
    assert boxes[STATES.codes.index("53")].box[0] < boxes[STATES.codes.index("23")].box[0]  # Washington, Maine
    assert boxes[STATES.codes.index("12")].box[1] > boxes[STATES.codes.index("36")].box[1]  # Florida, New York
    fills = [CLASSES.index(boxes[i].get("fill")) for i in np.argsort(values) if i != 3]
    assert fills == sorted(fills)
    assert set(fills) == set(range(5))
    assert max(fills.count(c) for c in range(5)) - min(fills.count(c) for c in range(5)) <= 2
    assert len(items(drawn, "chart-missing")) == 1
    assert len(items(drawn, "chart-legend")) == 5
    same = charts.chart(answer([POSTAL], [4.0] * 51))
    assert {i.get("fill") for i in items(same) if i.get("fill") in CLASSES} == {CLASSES[0]}
    inside(charts.chart(answer([variable("state", [*FIPS, "72", "00"])], [1e12] * 53, spread=1)))


def items_of_tile(drawn: charts.Chart | None, name: str) -> Item:
    """The box in which a state's name is."""
    [text] = [i for i in items(drawn) if i.tag == "text" and i.text == name]
    x, y = (text.box[0] + text.box[2]) / 2, (text.box[1] + text.box[3]) / 2
    boxes = [i for i in items(drawn) if i.tag == "rect" and i.classes and 40 < i.width < 60]
    [box] = [b for b in boxes if b.box[0] < x < b.box[2] and b.box[1] < y < b.box[3]]
    return box


def test_flows_are_as_wide_as_they_are_large() -> None:
    origins = variable("origin", [f"o{i}" for i in range(20)])
    ends = variable("destination", "XYZ")
    flow = np.arange(1.0, 61)
    flow[[5, 6]] = -3, 0
    drawn = charts.chart(answer([origins, ends], flow, status={0: WITHHELD}))
    nodes = items(drawn, "chart-node")
    left = [n for n in nodes if n.box[0] < 320]
    assert (len(left), len(nodes) - len(left)) == (13, 3)
    labels = [i.text for i in items(drawn, "chart-label")]
    assert labels[:13] == [*(f"o{i}" for i in range(8, 20)), "Other (8)"]
    total = float(flow[flow > 0].sum() - 1)
    assert sum(n.height for n in left) == pytest.approx(sum(n.height for n in nodes if n not in left), abs=1)
    assert left[-2].height / sum(n.height for n in left) == pytest.approx(flow[57:].sum() / total, rel=0.01)
    texts = [i.text for i in items(drawn, "chart-value")]
    assert texts[11] == f"{flow[57:].sum():.0f}"
    assert "Omitted: 2 flows that are not positive. Without a number: 1." in picture(drawn).svg
    for side in (left, nodes[13:]):
        assert all(a.box[3] <= b.box[1] for a, b in pairwise(side))
    words = [i for i in items(drawn) if i.tag == "text"]
    assert not any(overlap(a, b) for a, b in combinations(words, 2))
    inside(drawn)


def test_flows_go_from_origin_to_destination() -> None:
    drawn = charts.chart(answer([variable("destination", "XYZ"), variable("origin", "AB")], [1, 0, 0, 0, 0, 9]))
    labels = {i.text: i.box[0] for i in items(drawn, "chart-label")}
    assert labels["A"] < labels["Z"]
    assert "A to X: 1" in picture(drawn).svg
    assert "B to Z: 9" in picture(drawn).svg
    assert "Y" not in labels  # nothing goes there
    none = charts.chart(answer(SMALL_FLOWS, [0, -1, 0, 0, 0, NAN]))
    assert "No flow is positive" in picture(none).svg


def test_ranges_are_where_percentiles_are() -> None:
    measures = (*PERCENTILES, Measure("p50_low90", "", 0, "p50"), Measure("p50_high90", "", 0, "p50"))
    low, high = [15.0, 25, 35, 45, 5], [22.0, 32, 44, 58, 9000]
    given = answer([LETTERS], range(5), measures=measures, **QUARTILES, p50_low90=low, p50_high90=high, status={4: BAD})
    drawn = charts.chart(given)
    boxes, dots, lines = (items(drawn, f"chart-{name}") for name in ("range", "median", "error"))
    middle = [(d.box[0] + d.box[2]) / 2 for d in dots]
    unit = (middle[1] - middle[0]) / 10
    for i in range(5):
        assert boxes[i].box[0] == pytest.approx(middle[0] + (QUARTILES["p25"][i] - 20) * unit, abs=0.1)
        assert boxes[i].box[2] == pytest.approx(middle[0] + (QUARTILES["p75"][i] - 20) * unit, abs=0.1)
    for i in range(4):
        assert lines[i].box[0] == pytest.approx(middle[0] + (low[i] - 20) * unit, abs=0.1)
        assert lines[i].box[2] == pytest.approx(middle[0] + (high[i] - 20) * unit, abs=0.1)
    assert lines[4].box[2] < 640  # an arrow: one wild interval does not squeeze the rest
    assert "Arrows: the interval extends further." in picture(drawn).svg
    inside(drawn)
    inner = charts.chart(answer([LETTERS], range(5), measures=(*PERCENTILES, Measure("p10", ""), Measure("p90", "")),
                                **QUARTILES, p10=[1.0] * 5, p90=[99.0] * 5))  # fmt: skip
    assert len(items(inner, "chart-outer")) == 5


def test_a_median_is_marked_by_its_own_error() -> None:
    """Marks of an answer are about its first measure, such as the count beside percentiles."""
    ends = (Measure("p50_low90", "", 0, "p50"), Measure("p50_high90", "", 0, "p50"))
    measures = (Measure("count", "Count"), Measure("count_moe90", "", 0, "count"), *PERCENTILES, *ends)
    around = {"p50_low90": [19.0, 10, 32, 45, 5], "p50_high90": [21.0, 50, 48, 55, 9]}
    columns = {"count": [100.0] * 5, "count_moe90": [20.0] * 5, **QUARTILES, **around}
    given = answer([LETTERS], range(5), measures=measures, status={0: CAUTION, 3: BAD, 4: WITHHELD}, **columns)
    assert [i.text for i in items(charts.chart(given), "chart-text")] == ["20", "30 x", "40", "50", "s"]
    assert [i.text for i in items(charts.chart(given, "bars"), "chart-text")] == ["100 u", "100", "100", "100 x", "s"]
    other = [i.text for i in items(charts.chart(given, "bars", measure="p50"), "chart-text")]
    assert other == ["20", "30 x", "40", "50", "s"]
    bare = [i.text for i in items(charts.chart(given, "bars", measure="p25"), "chart-text")]
    assert bare == ["10 u", "20", "30", "40 x", "s"]  # without an error of its own: as the cell is


def test_lines_go_through_the_numbers() -> None:
    values = [100.0, 140, 120, 180, 10, 20, 30, 40]
    given = answer([variable("sex", "FM", ["Women", "Men"]), YEARS], values, spread=5, status={1: WITHHELD, 6: BAD})
    drawn = charts.chart(given)
    points = items(drawn, "chart-point")[2:]  # after the legend
    women = [p for p in points if "chart-series-1" in p.classes and p.tag == "circle" and p.box[0] > 40]
    x = [(p.box[0] + p.box[2]) / 2 for p in women]
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(0.3, abs=0.001)  # 2010, 2013, 2020
    y = [(p.box[1] + p.box[3]) / 2 for p in women]
    assert (y[0] - y[1]) / (y[0] - y[2]) == pytest.approx(20 / 80, abs=0.001)
    first = [line for line in items(drawn, "chart-line") if "chart-series-1" in line.classes]
    assert [len(line.points) for line in first] == [4]  # 2013 to 2020 (each point twice): not over the gap
    assert len(items(drawn, "chart-missing")) == 1
    band = next(b for b in items(drawn, "chart-band") if "chart-series-2" in b.classes)
    unit = (y[0] - y[2]) / 80
    assert band.box[1] == pytest.approx(y[0] + (100 - 50) * unit, abs=0.1)  # 40 + 10
    assert [i.text for i in items(drawn, "chart-mark")] == ["x"]
    assert [p.get("fill") for p in points if p.get("fill") == "#ffffff"] == ["#ffffff"]
    inside(drawn)
    turned = charts.chart(answer([variable("year", ["2020", "2010", "2013"])], [3, 1, 2]))
    [line] = items(turned, "chart-line")
    assert [p[0] for p in line.points] == sorted(p[0] for p in line.points)
    high = charts.chart(answer([YEARS], [1000, 1001, 1002, 1003], spread=1))
    assert "The axis does not start at zero." in picture(high).svg


def test_one_number_is_large() -> None:
    drawn = charts.chart(answer([], [1234567.0], spread=1000, status={0: CAUTION}), summary=summary())
    [text] = items(drawn, "chart-number")
    assert text.text == "1,234,567 u"
    assert float(text.get("font-size")) > 40
    assert "90% confidence interval: 1,233,567 to 1,236,567" in picture(drawn).svg
    inside(drawn)
    inside(charts.chart(answer([], [-1.23e14], spread=1e20)))


def test_title_notes_and_alt_text() -> None:
    limited = ((variable("place", "ABCDE", ["Ayton", "Beeville", "Cedale", "D", "E"]), tuple("ABCDE")),)
    given = Answer("Workers", (LETTERS, variable("sex", "F", ["Women"])), COUNT, drawn_numbers(), [OK] * 5, (), limited)
    drawn = picture(charts.chart(given, summary=summary(caveats=("mind this",))))
    assert [i.text for i in items(drawn, "chart-title")] == ["Workers: Number of records by Group"]
    assert [i.text for i in items(drawn, "chart-subtitle")] == ["Sex: Women; Place: Ayton, Beeville, Cedale and 2 more"]
    notes = " ".join(i.text for i in items(drawn, "chart-note"))
    assert "Source: demo, table workers, 2026-11-16. At most e^1. Caveats apply" in notes
    assert "Error bars: 90% confidence interval." in notes
    assert drawn.alt.startswith(
        "Workers: Number of records by Group. Bars of 5 numbers. Highest: Eggs: 5 (90% confidence interval 4"
    )


def test_simulations_are_marked() -> None:
    given = answer([LETTERS], range(5))
    noted = Answer(given.title, given.variables, given.measures, given.numbers, given.status, ("SIMULATION: not real",))
    assert not items(charts.chart(given, summary=summary()), "chart-banner")
    for drawn in (
        charts.chart(given, simulation=True),
        charts.chart(given, summary=summary(simulation=True)),
        charts.chart(noted),
    ):
        assert "SIMULATION" in " ".join(i.text for i in items(drawn, "chart-banner-text"))
        assert "SIMULATION" in picture(drawn).alt
        inside(drawn)


def test_pixels() -> None:
    drawn = picture(charts.chart(answer([LETTERS], range(5))))
    actual = charts.png(drawn.svg)
    assert actual[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", actual[16:24]) == (2 * drawn.width, 2 * drawn.height)
    with pytest.raises(InvalidQuery, match="PNG"):
        charts.png("not a picture")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


SAMPLES = [
    (answer([LETTERS], range(5), status={1: WITHHELD, 2: BAD}), "bars"),
    (answer([LETTERS, variable("sex", "ABCDEF")], range(30)), "bars"),
    (answer([STATES], range(51), status={1: WITHHELD, 2: BAD}), "tiles"),
    (answer([variable("sex", "ABCDEF"), YEARS], range(24), status={1: WITHHELD, 2: BAD}), "lines"),
    (answer([LETTERS], range(5), measures=PERCENTILES, **QUARTILES), "ranges"),
    (answer(SMALL_FLOWS, range(6)), "sankey"),
    (answer([], [5.0]), "number"),
]


@pytest.mark.parametrize(("given", "kind"), SAMPLES)
def test_everything_is_seen(given: Answer, kind: str) -> None:
    """Text at 4.5 to 1 or more, marks at 3 to 1 or more, by their filling or their edge."""
    drawn = charts.chart(given, kind, summary=summary(), simulation=True)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    texts = [i for i in items(drawn) if i.tag == "text"]
    tiles = [i for i in items(drawn) if i.tag == "rect" and i.get("fill") in CLASSES and 40 < i.width < 60]
    banner = items(drawn, "chart-banner")
    for text in texts:
        under = [t for t in [*tiles, *banner] if overlap(t, text)]
        assert contrast(text.get("fill"), under[0].get("fill") if under else "#ffffff") >= 4.5, text.text
    names = ("bar", "error", "point", "line", "range", "median", "outer", "node", "flow", "zero", "tile", "missing")
    marks = [m for name in names for m in items(drawn, f"chart-{name}")] + tiles
    assert marks
    for mark in marks:
        solid = [c for c in (mark.get("fill"), mark.get("stroke")) if c.startswith("#")]
        assert max(contrast(c, "#ffffff") for c in solid) >= 3, mark.classes


def test_series_are_told_apart_without_colour() -> None:
    assert all(contrast(a, b) >= 1.2 for a, b in combinations(SERIES, 2))  # in grey
    assert all(contrast(a, b) >= 1.35 for a, b in pairwise(CLASSES))
    assert all(contrast(a, b) >= 4.5 for a, b in zip(CLASSES, ON_CLASSES, strict=True))
    six = variable("sex", "ABCDEF")
    lines = charts.chart(answer([six, YEARS], range(24)))
    assert len({i.get("stroke-dasharray") for i in items(lines, "chart-line")}) == 6
    shapes = {re.sub(r"[\d. ]", "", i.get("d")) + str(len(i.points)) for i in items(lines, "chart-point")}
    assert len(shapes) >= 4
    svg = picture(charts.chart(answer([LETTERS, six], range(30)))).svg
    assert len(set(re.findall(r'<pattern.*?<path d="([^"]*)"', svg))) == 5  # the hatch, and four textures beside plain


@pytest.mark.parametrize(("given", "kind"), SAMPLES)
def test_it_stands_alone_and_is_safe(given: Answer, kind: str) -> None:
    drawn = picture(charts.chart(given, kind, summary=summary()))
    root = ElementTree.fromstring(drawn.svg)
    assert root.get("role") == "img"
    assert root.get("viewBox") == f"0 0 {drawn.width} {drawn.height}"
    heading, words = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert heading is not None
    assert words is not None
    assert root.get("aria-labelledby") == f"{heading.get('id')} {words.get('id')}"
    assert heading.text
    assert words.text
    assert len(words.text) > 40
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in {
            "svg", "title", "desc", "defs", "pattern", "g", "rect", "line", "path", "circle", "text",
        }  # fmt: skip
        for name, value in element.attrib.items():
            assert not re.match("style$|on|.*href", name)
            if "url" in value:
                assert re.fullmatch(r"url\(#([\w-]+)\)", value)
                assert value[5:-1] in ids
    for element in root.iter(f"{SVG}text"):
        assert element.get("font-family") == "sans-serif"
        assert element.get("fill")
    other = picture(charts.chart(given, kind, summary=summary()))
    assert other == drawn  # the same question, the same picture


def test_legends_and_axes_name_their_variables() -> None:
    sexes = TableVariable("sex", "Sex of the person", ("F", "M"), ("F", "M"))
    drawn = charts.chart(answer([LETTERS, sexes], range(1, 11)), "bars")
    assert [i.text for i in items(drawn, "chart-legend-name")] == ["Sex of the person"]
    assert LETTERS.label in [i.text for i in items(drawn, "chart-axis")]
    over = charts.chart(answer([YEARS, sexes], range(1, 2 * len(YEARS) + 1)), "lines")
    assert [i.text for i in items(over, "chart-legend-name")] == ["Sex of the person"]
    assert YEARS.label in [i.text for i in items(over, "chart-axis")]
    inside(over)
    alone = charts.chart(answer([LETTERS], range(5)), "bars")
    assert not items(alone, "chart-legend-name")


def test_titles_say_which_of_all_rows_are_drawn() -> None:
    drawn = picture(charts.chart(answer([LETTERS], range(5)), "bars", which="5 largest of 59"))
    assert ", 5 largest of 59" in drawn.alt
    assert "5 largest of 59</title>" in drawn.svg
