"""Every format, read back by an ordinary reader, gives the numbers that were written."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from pyjstat import pyjstat

from discreet.formatting import guarded, unguarded
from discreet.serve.client import read
from discreet.serve.formats import FORMATS
from discreet.serve.query_model import Answer, Status, TableVariable
from support.answers import ABOUT, COUNT, ERROR, NAN, answers, jobs
from support.hypothesis_profile import examples

pytestmark = pytest.mark.filterwarnings("ignore:Shouldn't use this function:DeprecationWarning")

NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@dataclass
class Found:
    """What a reader has parsed: texts of each cell, numbers by measure, marks."""

    keys: list[tuple[str, ...]]
    numbers: list[list[float | None]]
    marks: list[str]
    labels: list[tuple[str, ...]] | None = None


def _json(content: bytes, answer: Answer) -> Found:
    frame = pyjstat.Dataset.read(content.decode()).write("dataframe", naming="id")
    width = len(answer.measures)
    values = [None if x is None or math.isnan(x) else float(x) for x in frame.iloc[:, -1].tolist()]
    keys = list(frame.iloc[:, :-1].itertuples(index=False, name=None))
    assert [key[-1] for key in keys] == [m.id for m in answer.measures] * len(answer)
    marks = read(json.loads(content)).status
    return Found([key[:-1] for key in keys[::width]], [values[j::width] for j in range(width)], list(marks))


def _table(rows: list[list[str]], answer: Answer) -> Found:
    """Rows of text with a code and a label of each variable, then numbers and a mark."""
    first, width = 2 * len(answer.variables), len(answer.measures)
    assert all(len(row) == len(rows[0]) for row in rows)
    numbers = [[_number(row[first + j]) for row in rows[1:]] for j in range(width)]
    texts = [row[:first] for row in rows[1:]]
    marks = [row[first + width] for row in rows[1:]]
    return Found([tuple(row[::2]) for row in texts], numbers, marks, [tuple(row[1::2]) for row in texts])


def _number(text: str) -> float | None:
    return None if text == "" else float(text)


def _csv(content: bytes, answer: Answer) -> Found:
    return _table(_rows(content), answer)


def _rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def _xlsx(content: bytes, answer: Answer) -> Found:
    return _table(_sheet(content, 1), answer)


def _sheet(content: bytes, number: int) -> list[list[str]]:
    """The cells of a sheet as text, by what the standard says of them."""
    book = zipfile.ZipFile(io.BytesIO(content))
    shared = []
    for item in ElementTree.fromstring(book.read("xl/sharedStrings.xml")):
        text = item[0].text or ""
        shared.append(re.sub("_x([0-9A-Fa-f]{4})_", lambda m: chr(int(m[1], 16)), text))
    actual: dict[tuple[int, int], str] = {}
    for cell in ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml")).iter(f"{NAMESPACE}c"):
        assert cell.find(f"{NAMESPACE}f") is None
        letters, digits = re.fullmatch(r"([A-Z]+)(\d+)", cell.attrib["r"]).groups()
        value = cell.findtext(f"{NAMESPACE}v", "")
        column = -1
        for letter in letters:
            column = (column + 1) * 26 + ord(letter) - 65
        actual[int(digits) - 1, column] = shared[int(value)] if cell.attrib.get("t") == "s" else value
    rows, columns = (max(place[k] for place in actual) + 1 for k in (0, 1))
    return [[actual.get((i, j), "") for j in range(columns)] for i in range(rows)]


def _parquet(content: bytes, answer: Answer) -> Found:
    table = pq.read_table(io.BytesIO(content))
    columns = [column.to_pylist() for column in table.columns]
    first, width = 2 * len(answer.variables), len(answer.measures)
    codes, labels = (list(zip(*columns[k:first:2], strict=True)) or [()] for k in (0, 1))
    return Found(codes, columns[first : first + width], columns[-1], labels)


def _sdmx(content: bytes, answer: Answer) -> Found:
    rows = _rows(content)
    width, at = len(answer.measures), rows[0].index("OBS_VALUE")
    first = rows[0].index("MEASURE")
    keys = [tuple(row[3:first]) for row in rows[1::width]]
    numbers = [[_number(row[at]) for row in rows[1 + j :: width]] for j in range(width)]
    return Found(keys, numbers, [row[rows[0].index("RELIABILITY")] for row in rows[1::width]])


READERS: dict[str, Callable[[bytes, Answer], Found]] = {
    "json-stat2": _json,
    "csv": _csv,
    "xlsx": _xlsx,
    "parquet": _parquet,
    "sdmx-csv": _sdmx,
}


def test_the_formats_and_their_names() -> None:
    assert list(FORMATS) == ["json-stat2", "csv", "xlsx", "parquet", "sdmx-csv"]
    assert all(actual.id == name and not actual.extension.startswith(".") for name, actual in FORMATS.items())
    assert FORMATS["sdmx-csv"].media_type == "application/vnd.sdmx.data+csv; version=2.0.0"


@pytest.mark.parametrize("name", FORMATS)
def test_a_table(name: str) -> None:
    answer = jobs()
    actual = READERS[name](FORMATS[name].write(answer, ABOUT), answer)
    assert actual.keys == [(place, sex) for place in ("US-CA", "US-NV") for sex in "fmx"]
    assert actual.numbers == [[1200, -3, 0, None, None, 7], [14.1, 2.2, 0, None, None, None]]
    assert actual.marks == ["", "x", "u", "s", ":", ""]
    assert math.copysign(1, actual.numbers[1][2]) == 1  # no −0
    if actual.labels is not None:
        places = ("California", "Nevada")
        assert actual.labels == [(place, sex) for place in places for sex in ("Women", "Men", "Women")]


@pytest.mark.parametrize("name", FORMATS)
@examples(60)
@given(answer=answers())
@example(answer=Answer("", (), (COUNT,), {"estimate": np.array([NAN])}, [Status.ABSENT]))
@example(
    answer=Answer("One", (TableVariable("a", "", ("",), ("",)),), (ERROR,), {"se": np.array([0.05])}, [Status.RELIABLE])
)
def test_what_is_read_back_is_what_was_written(name: str, answer: Answer) -> None:
    content = FORMATS[name].write(answer, ABOUT)
    actual = READERS[name](content, answer)
    assert len(actual.keys) == len(answer)
    for measure, column in zip(answer.measures, actual.numbers, strict=True):
        for got, x in zip(column, answer.numbers[measure.id], strict=True):
            assert (got is None) == math.isnan(x)
            if got is not None:
                assert got == float(f"{got:.{measure.decimals}f}")
                assert abs(got - x) <= 0.5 * 10.0**-measure.decimals + 1e-15 * abs(x)
    assert actual.marks == [str(mark) for mark in answer.status]
    codes = list(itertools.product(*(v.codes for v in answer.variables)))
    labels = list(itertools.product(*(v.labels for v in answer.variables)))
    if name == "sdmx-csv":
        assert len(set(actual.keys)) == len(codes)
        for key, code in zip(actual.keys, codes, strict=True):
            for got, own in zip(key, code, strict=True):
                assert re.fullmatch(r"[A-Za-z0-9_@$-]+", got)
                assert got == own or not re.fullmatch(r"[A-Za-z0-9_@$-]+", own) or guarded(own) != own
                assert guarded(got) == got
    else:
        for texts, own in ((actual.keys, codes), (actual.labels or labels, labels)):
            plain = [tuple(map(unguarded, t)) for t in texts] if name == "csv" else texts
            assert plain == own
    assert FORMATS[name].write(answer, ABOUT) == content


@pytest.mark.parametrize("name", FORMATS)
def test_marks_may_be_plain_texts(name: str) -> None:
    """As NumPy makes of them when they pass through an array."""
    answer = jobs()
    plain = replace(answer, status=[str(mark) for mark in answer.status])
    assert FORMATS[name].write(plain, ABOUT) == FORMATS[name].write(answer, ABOUT)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("x", "expected"), [(math.inf, None), (-math.inf, None), (2.0**55, 2.0**55), (1.7e308, 1.7e308)]
)
def test_numbers_beyond_all_decimals(name: str, x: float, expected: float | None) -> None:
    answer = Answer("", (), (COUNT, ERROR), {"estimate": np.array([x]), "se": np.array([x])}, [Status.RELIABLE])
    actual = READERS[name](FORMATS[name].write(answer, ABOUT), answer)
    assert actual.numbers == [[expected]] * 2
