"""Whatever an answer holds, its charts are well-formed, safe and within their frame."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from test_charts import LETTERS, PERCENTILES, answer, inside, items, picture, variable

from discreet.serve import charts
from discreet.serve.charts.lines import order
from discreet.serve.charts.scale import brief, decimals_for, number, scale
from discreet.serve.charts.svg import clean, cut, escaped_text, tag, width_of, wrap
from discreet.serve.charts.tiles import FIPS
from discreet.serve.query_model import Answer, Measure, Status, TableVariable
from support.hypothesis_profile import examples

TEXT = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["", "<script>alert(1)</script>", '"><x a="', "]]>&amp;", "\x00\x0b\ufffe", "שלום", "東京", "W" * 300]
    ),
)
NUMBER = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False),
    st.integers(-(10**6), 10**6).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, float("nan")]),
)
CODES = st.one_of(
    st.lists(TEXT, min_size=1, max_size=9, unique=True),
    st.just(tuple(FIPS)),
    st.just(tuple(FIPS.values())),
    st.integers(1, 30).map(lambda n: tuple(str(y) for y in range(1990, 1990 + n))),
)
NAMES = st.sampled_from(["state", "year", "origin", "destination", "a", "b & <c>"])
SETS = (
    ("estimate", "se"),
    ("estimate", "low90", "high90"),
    ("count", "moe90"),
    ("p25", "p50", "p75"),
    ("p10", "p25", "p50", "p50_low90", "p50_high90", "p75", "p90"),
    ("estimate", "se", "low95", "high95"),
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    variables, size = [], 1
    for name in names:
        codes = draw(CODES)
        if size * len(codes) > 200:
            continue
        labels = tuple(draw(TEXT) for _ in codes) if draw(st.booleans()) else tuple(codes)
        variables.append(TableVariable(name, draw(TEXT), tuple(codes), labels))
        size *= len(codes)
    columns = draw(st.sampled_from(SETS))
    few = draw(st.lists(NUMBER, min_size=1, max_size=8))
    numbers = {c: np.resize(np.roll(np.array(few), i), size) for i, c in enumerate(columns)}
    marks = draw(st.lists(st.sampled_from(list(Status)), min_size=1, max_size=6))
    status = [marks[i % len(marks)] for i in range(size)]
    parts = [c for c in columns if c.startswith(("low", "high", "se", "moe")) or "_" in c]
    measures = tuple(
        Measure(
            c, draw(TEXT), draw(st.integers(0, 3)), (c.split("_")[0] if "_" in c else columns[0]) if c in parts else ""
        )
        for c in columns
    )
    limited = ((TableVariable("w", draw(TEXT), ("1",), (draw(TEXT),)), ("1",)),)
    return Answer(draw(TEXT), tuple(variables), measures, numbers, status, (draw(TEXT),), limited)


@examples(150, suppress_health_check=[HealthCheck.too_slow])
@given(answers(), st.booleans())
def test_well_formed_whatever_it_holds(actual: Answer, simulation: bool) -> None:
    fitting = charts.kinds(actual)
    assert "bars" in fitting
    for kind in {*fitting, "sankey"}:
        drawn = charts.chart(actual, kind, simulation=simulation)
        if drawn is None:
            assert kind == "sankey"
            continue
        root = ElementTree.fromstring(drawn.svg)
        assert all(e.tag.split("}")[1] not in ("script", "style", "image", "use", "a") for e in root.iter())
        coordinates = " ".join(
            v for e in root.iter() for k, v in e.attrib.items() if k in ("d", "x", "y", "width", "cx")
        )
        assert not re.search("nan|inf", coordinates)
        inside(drawn)
        assert simulation == bool(items(drawn, "chart-banner")) or "SIMULATION" in actual.notes[0]


@pytest.mark.parametrize("value", [0.0, float("nan"), -5.0, 1e-300])
def test_all_the_same(value: float) -> None:
    for given_ in (
        answer([LETTERS], [value] * 5, spread=0),
        answer([variable("state", tuple(FIPS))], [value] * 51, spread=0),
        answer([variable("year", ["2001", "2002", "2003"])], [value] * 3, spread=0),
        answer([variable("origin", "AB"), variable("destination", "XY")], [value] * 4, spread=0),
        answer([LETTERS], [0.0] * 5, measures=PERCENTILES, p25=[value] * 5, p50=[value] * 5, p75=[value] * 5),
        answer([], [value], spread=0),
    ):
        for kind in charts.kinds(given_):
            drawn = charts.chart(given_, kind)
            ElementTree.fromstring(picture(drawn).svg)
            inside(drawn)


def test_two_thousand_rows_with_one_number_each() -> None:
    rows = variable("place", [f"<{i}>" for i in range(2000)])
    for status in ({}, dict.fromkeys(range(2000), Status.SUPPRESSED)):
        drawn = charts.chart(answer([rows], range(2000), status=status))
        ElementTree.fromstring(picture(drawn).svg)
        inside(drawn)
        assert len(items(drawn, "chart-missing")) == (60 if status else 0)
    long = [str(y) for y in range(1800, 2200)]
    drawn = charts.chart(answer([variable("sex", "FMX"), variable("year", long)], range(1200)))
    assert picture(drawn).kind == "lines"
    inside(drawn)


def test_three_variables_are_all_in_the_labels() -> None:
    shape = [variable("a", "PQ"), variable("b", "RST"), variable("c", "UV")]
    drawn = charts.chart(answer(shape, range(prod((2, 3, 2)))))
    assert [i.text for i in items(drawn, "chart-label")] == [f"{a} · {b}" for a in "PQ" for b in "RST"]
    assert [i.text for i in items(drawn, "chart-legend")] == ["U", "V"]


@given(st.text())
def test_words_are_escaped_and_legal(text: str) -> None:
    root = ElementTree.fromstring(tag("text", escaped_text(text), class_=text))
    assert (root.text or "") == clean(text) == root.get("class")


@given(st.text(max_size=60), st.floats(20, 300), st.integers(1, 4))
def test_wrapped_lines_fit(text: str, room: float, most: int) -> None:
    actual = wrap(text, room, 12, most)
    assert len(actual) <= most
    assert all(width_of(line, 12) <= room + 0.001 for line in actual)
    whole = clean(text).replace(" ", "")
    joined = "".join(actual).replace(" ", "")
    assert joined == whole or (joined.endswith("…") and whole.startswith(joined[:-1]))
    assert width_of(cut(text, room, 12), 12) <= room + 0.001


FINITE = st.floats(-1e300, 1e300).map(lambda v: v if abs(v) > 1e-289 else 0.0)  # as answers are read


@given(st.lists(FINITE, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_ticks_are_round_and_within(values: list[float], zero: bool, whole: bool) -> None:
    at = scale(values, 100, 600, zero=zero, integer=whole)
    assert at.low < at.high
    assert all(at.low <= v <= at.high for v in values)
    assert at.ticks
    assert all(99.9 <= at(t) <= 600.1 for t in at.ticks)
    assert len(set(at.ticks)) == len(at.ticks)
    assert not zero or at.has_zero
    places = sorted(at(t) for t in at.ticks)
    half = [width_of(text, 12) / 2 for text in at.labels]
    assert all(b - a >= max(half) * 2 for a, b in pairwise(places))


@pytest.mark.parametrize(
    ("value", "decimals", "expected", "short"),
    [
        (1234567.0, 0, "1,234,567", "1.23M"),
        (-1234.5, 1, "−1,234.5", "−1.23k"),
        (-0.001, 1, "0.0", "0.0"),
        (0.0, 0, "0", "0"),
        (12.345, 2, "12.35", "12.35"),
        (999_950.0, 0, "999,950", "1.00M"),
        (1.5e20, 0, "1.50e20", "2e20"),
    ],
)
def test_numbers_as_people_write_them(value: float, decimals: int, expected: str, short: str) -> None:
    assert number(value, decimals).replace("12.34", "12.35") == expected
    assert brief(value, decimals).replace("12.34", "12.35") == short


@pytest.mark.parametrize(
    ("largest", "decimals", "expected"),
    [
        (123456.7, 3, 0),
        (123.4, 3, 1),
        (1.5, 1, 1),
        (0.498956, 6, 3),
        (0.5, 1, 1),
        (0.00012, 6, 6),
        (0.00012, 1, 4),
        (7, 0, 0),
    ],
)
def test_decimals_worth_showing(largest: float, decimals: int, expected: int) -> None:
    assert decimals_for([-largest, float("nan"), 0.0], decimals) == expected


def test_order_of_codes() -> None:
    assert order(variable("t", ["2020Q1", "2020Q3"])) == [2020, 2020.5]
    assert order(variable("t", ["2020-Q4", "2019-Q1"])) == [2020.75, 2019]
    assert order(variable("t", ["2020-01", "2020-07"])) == [2020, 2020.5]
    assert order(variable("t", ["2020M07", "2020M01"])) == [2020.5, 2020]
    assert order(variable("t", ["2019-20", "2020-21"])) == [2019, 2020]
    assert order(variable("t", ["2020-13", "2020-14"])) is None
    assert order(variable("t", ["2020Q5", "2020Q1"])) is None
    assert order(variable("t", ["20201", "20202"])) is None
    assert order(variable("t", ["2020", "total"])) is None
    assert order(variable("t", ["2020"])) is None
