"""Notes and metadata in each format; equal answers give equal bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from hashlib import sha256
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from discreet.errors import QueryTooLarge
from discreet.publish.description import SIMULATION
from discreet.serve.formats import FORMATS, excel, sdmx
from discreet.serve.query_model import MEANING, Answer, Status, TableVariable
from support.answers import ABOUT, COUNT, PLACE, answers, jobs
from support.hypothesis_profile import examples
from support.repository import SUPPORT

SIMULATED = replace(ABOUT, simulation=True, notes=(SIMULATION,))


def written(name: str, answer: Answer | None = None, about: object = ABOUT) -> bytes:
    return FORMATS[name].write(answer or jobs(), about)


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


# JSON-stat


@examples(40)
@given(answer=answers())
def test_json_stat_keeps_the_rules_of_version_2(answer: Answer) -> None:
    actual = json.loads(written("json-stat2", answer))
    assert (actual["version"], actual["class"]) == ("2.0", "dataset")
    assert len(actual["id"]) == len(set(actual["id"])) == len(actual["size"])
    assert set(actual["dimension"]) == set(actual["id"])
    assert len(actual["value"]) == prod(actual["size"])
    assert all(x is None or isinstance(x, int | float) for x in actual["value"])
    assert actual["role"]["metric"] == actual["id"][-1:]
    for name, size in zip(actual["id"], actual["size"], strict=True):
        category = actual["dimension"][name]["category"]
        assert sorted(category["index"].values()) == list(range(size))
        assert set(category["label"]) == set(category["index"])
        assert isinstance(actual["dimension"][name]["label"], str)
    assert set(actual["status"].values()) <= set(actual["extension"]["status"]["label"])
    assert all(0 <= int(place) < len(actual["value"]) for place in actual["status"])
    assert all(isinstance(text, str) and text for text in actual["note"])


def test_json_stat_in_full() -> None:
    actual = json.loads(written("json-stat2"))
    assert (actual["label"], actual["source"], actual["updated"]) == ("Jobs by place", "jobs-2024", "2024-05-01")
    assert (actual["id"], actual["size"]) == (["place", "sex", "ContentsCode"], [2, 3, 2])
    assert actual["dimension"]["ContentsCode"] == {
        "label": "Measure",
        "category": {
            "index": {"estimate": 0, "se": 1},
            "label": {"estimate": "Jobs", "se": "Standard error"},
            "unit": {"estimate": {"decimals": 0}, "se": {"decimals": 1}},
        },
        "extension": {"errorOf": {"se": "estimate"}},
    }
    assert actual["value"] == [1200, 14.1, -3, 2.2, 0, 0.0, None, None, None, None, 7, None]
    assert actual["status"] == {"2": "x", "3": "x", "4": "u", "5": "u", "6": "s", "7": "s", "8": ":", "9": ":"}
    assert actual["note"] == [
        "Limited to Sector: 11 (Farming), =21 (Mining)",
        "Protected statistics.",
        ABOUT.guarantee,
        *ABOUT.caveats,
    ]
    extension = actual["extension"]
    assert extension["px"]["tableid"] == ABOUT.id
    assert extension["guarantee"] == ABOUT.guarantee
    assert (extension["caveats"], extension["simulation"]) == ([*ABOUT.caveats], False)
    assert extension["status"]["label"] == {str(mark): words for mark, words in MEANING.items() if mark}
    assert extension["limitedTo"] == [{"variable": "sector", "label": "Sector", "codes": ["11", "=21"]}]
    assert '"value":[1200,14.1,' in written("json-stat2").decode()  # whole numbers without a point


def test_a_variable_may_be_called_as_the_measures_are() -> None:
    answer = replace(jobs(), variables=(PLACE, TableVariable("ContentsCode", "", ("a", "b", "c"), ("", "", ""))))
    actual = json.loads(written("json-stat2", answer))
    assert actual["id"] == ["place", "ContentsCode", "ContentsCode_2"]
    assert actual["role"]["metric"] == ["ContentsCode_2"]


# CSV


def test_csv_to_the_letter() -> None:
    assert written("csv").decode() == (
        "place,place_label,sex,sex_label,estimate,se,status,limited_to\r\n"
        "US-CA,California,f,Women,1200,14.1,,sector = 11 + =21\r\n"
        "US-CA,California,m,Men,-3,2.2,x,sector = 11 + =21\r\n"
        "US-CA,California,x,Women,0,0.0,u,sector = 11 + =21\r\n"
        "US-NV,Nevada,f,Women,,,s,sector = 11 + =21\r\n"
        "US-NV,Nevada,m,Men,,,:,sector = 11 + =21\r\n"
        "US-NV,Nevada,x,Women,7,,,sector = 11 + =21\r\n"
    )


RISKY = ["=1+1", "+cmd", "-a", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "-1+1", "=-1", "+٣", "＝1", "'=1", "'s-Gravenhage"]


@pytest.mark.parametrize("text", RISKY)
def test_no_text_is_a_formula(text: str) -> None:
    answer = Answer(
        "", (TableVariable(text, "", (text,), (text,)),), (COUNT,), {"estimate": np.array([-1.0])}, [Status.RELIABLE]
    )
    actual = rows(written("csv", answer))
    assert actual[0] == [f"'{text}", f"'{text}_label", "estimate", "status"]
    assert actual[1] == [f"'{text}", f"'{text}", "-1", ""]


@pytest.mark.parametrize("text", ["-1", "+2.5", "7", "-1,234", "-1e5", "-3%", "a=b", " =1", "a'b", ""])
def test_other_texts_stay_as_they_are(text: str) -> None:
    answer = Answer(
        "", (TableVariable("v", "", (text,), (text,)),), (COUNT,), {"estimate": np.array([-1.0])}, [Status.RELIABLE]
    )
    assert rows(written("csv", answer))[1] == [text, text, "-1", ""]


def test_rows_repeat_only_the_first_codes_of_a_limit() -> None:
    codes = tuple(map(str, range(1000)))
    answer = replace(jobs(), limits=((TableVariable("cell", "Cell", codes, codes), codes),))
    assert rows(written("csv", answer))[1][-1] == "cell = 0 + 1 + 2 + 3 + 4 + 995 more"
    assert rows(written("sdmx-csv", answer))[1][-1] == "cell = 0 + 1 + 2 + 3 + 4 + 995 more"
    assert json.loads(written("json-stat2", answer))["extension"]["limitedTo"][0]["codes"] == list(codes)


# Excel


def parts(content: bytes) -> dict[str, str]:
    book = zipfile.ZipFile(io.BytesIO(content))
    return {name: book.read(name).decode() for name in book.namelist()}


def test_a_workbook_has_numbers_and_notes() -> None:
    actual = parts(written("xlsx"))
    assert re.findall(r'<sheet name="([^"]*)"', actual["xl/workbook.xml"]) == ["Data", "Notes"]
    assert 'state="frozen"' in actual["xl/worksheets/sheet1.xml"]
    assert 'formatCode="#,##0.0"' in actual["xl/styles.xml"]
    texts = re.findall(r"<t[^>]*>([^<]*)</t>", actual["xl/sharedStrings.xml"])
    for text in (ABOUT.guarantee, *ABOUT.caveats, ABOUT.noise, "Sector: 11 (Farming), =21 (Mining)"):
        assert text in texts
    assert {"status u", "status x", "status s", "status :", "status empty"} <= set(texts)
    assert {words for mark, words in MEANING.items() if mark} <= set(texts)
    assert not any(re.search(r"<f[ >]|hyperlink", text) for name, text in actual.items() if "worksheets" in name)
    assert not any("external" in name for name in actual)


def test_a_workbook_has_the_date_of_the_release() -> None:
    content = written("xlsx")
    core = parts(content)["docProps/core.xml"]
    assert re.findall(r"W3CDTF\">([^<]*)<", core) == ["2024-05-01T00:00:00Z"] * 2
    assert {item.date_time for item in zipfile.ZipFile(io.BytesIO(content)).infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert "1980-01-01" in parts(written("xlsx", about=replace(ABOUT, updated="soon")))["docProps/core.xml"]


def test_more_rows_than_a_sheet_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "ROWS", 5)
    with pytest.raises(QueryTooLarge, match="6 rows, more than an Excel sheet can hold"):
        written("xlsx")


def test_a_text_too_long_for_a_cell_is_cut() -> None:
    answer = replace(jobs(), variables=(replace(PLACE, labels=("a" * 40_000, "b")), jobs().variables[1]))
    assert "a" * 32_767 in parts(written("xlsx", answer))["xl/sharedStrings.xml"]


# Parquet


def test_parquet_types_and_words() -> None:
    table = pq.read_table(io.BytesIO(written("parquet")))
    assert table.column_names == ["place", "place_label", "sex", "sex_label", "estimate", "se", "status"]
    for name in ("place", "place_label", "sex", "sex_label", "status"):
        assert pa.types.is_dictionary(table.schema.field(name).type)
    assert table.schema.field("estimate").type == pa.float64()
    assert table["estimate"].null_count == 2
    words = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    assert (words["title"], words["guarantee"], words["simulation"]) == ("Jobs by place", ABOUT.guarantee, "no")
    assert json.loads(words["status"])["s"] == MEANING[Status.SUPPRESSED]
    assert json.loads(words["limited_to"]) == ["Sector: 11 (Farming), =21 (Mining)"]
    assert json.loads(words["caveats"]) == list(ABOUT.caveats)
    assert table.schema.field("se").metadata[b"error_of"] == b"estimate"


def test_a_label_twice_is_listed_once() -> None:
    """Arrow leaves memory unfilled for the second, and writes it."""
    table = pq.read_table(io.BytesIO(written("parquet")))
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            listed = column.chunk(0).dictionary.to_pylist()
            assert len(listed) == len(set(listed))


# SDMX


def test_sdmx_to_the_letter() -> None:
    answer = replace(jobs(), limits=())
    start = "dataflow,DISCREET:JOBS_BY_PLACE(2024.5.1),I"
    assert written("sdmx-csv", answer).decode().splitlines() == [
        "STRUCTURE,STRUCTURE_ID,ACTION,PLACE,SEX,MEASURE,OBS_VALUE,OBS_STATUS,DECIMALS,RELIABILITY",
        f"{start},US-CA,f,ESTIMATE,1200,A,0,",
        f"{start},US-CA,f,SE,14.1,A,1,",
        f"{start},US-CA,m,ESTIMATE,-3,U,0,x",
        f"{start},US-CA,m,SE,2.2,U,1,x",
        f"{start},US-CA,x,ESTIMATE,0,U,0,u",
        f"{start},US-CA,x,SE,0.0,U,1,u",
        f"{start},US-NV,f,ESTIMATE,,Q,0,s",
        f"{start},US-NV,f,SE,,Q,1,s",
        f"{start},US-NV,m,ESTIMATE,,O,0,:",
        f"{start},US-NV,m,SE,,O,1,:",
        f"{start},US-NV,x,ESTIMATE,7,A,0,",
        f"{start},US-NV,x,SE,,O,1,",
    ]


@examples(40)
@given(answer=answers())
def test_sdmx_identifies_everything(answer: Answer) -> None:
    actual = rows(written("sdmx-csv", answer))
    heading = actual[0]
    assert heading[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
    assert len(set(heading)) == len(heading)
    assert all(re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) for name in heading)
    keys = [tuple(row[3 : heading.index("MEASURE") + 1]) for row in actual[1:]]
    assert len(set(keys)) == len(keys) == len(answer) * len(answer.measures)
    value, status = heading.index("OBS_VALUE"), heading.index("OBS_STATUS")
    assert all((row[value] == "") == (row[status] in "OQ") for row in actual[1:])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("age group", "AGE_GROUP"), ("größe", "GROSSE"), ("2020", "_2020"), ("__x", "_X"), ("年", "_"), ("", "_")],
)
def test_identifiers(name: str, expected: str) -> None:
    actual = sdmx.identifier(name)
    assert re.fullmatch(r"[A-Z_][A-Z0-9_]*", actual)
    assert actual == expected


def test_valid_codes_stay_and_others_make_room() -> None:
    assert sdmx.codes(["a/b", "a_b", "a b", "11-1011", "", "_"]) == ["a_b_2", "a_b", "a_b_3", "11-1011", "__2", "_"]


def test_a_release_without_a_date_has_no_version() -> None:
    assert sdmx.structure(replace(ABOUT, updated="")) == "DISCREET:JOBS_BY_PLACE"


# All


def test_a_simulation_says_so() -> None:
    assert rows(written("csv", about=SIMULATED))[0][-1] == "simulation"
    assert all(row[-1] == "yes" for row in rows(written("csv", about=SIMULATED))[1:])
    assert rows(written("sdmx-csv", about=SIMULATED))[1][1] == "DISCREET:JOBS_BY_PLACE_SIMULATION(2024.5.1)"
    actual = json.loads(written("json-stat2", replace(jobs(), notes=(SIMULATION,)), SIMULATED))
    assert actual["extension"]["simulation"] is True
    assert actual["note"].count(SIMULATION) == 1
    book = parts(written("xlsx", about=SIMULATED))
    assert '<sheet name="Data (simulation)"' in book["xl/workbook.xml"]
    assert SIMULATION in book["xl/sharedStrings.xml"]
    assert pq.read_schema(io.BytesIO(written("parquet", about=SIMULATED))).metadata[b"simulation"] == b"yes"


def test_equal_bytes_in_another_process() -> None:
    """Whatever the hash seed and the day."""
    script = (
        "from hashlib import sha256\n"
        "from discreet.serve.formats import FORMATS; from support.answers import ABOUT, jobs\n"
        "for found in FORMATS.values(): print(sha256(found.write(jobs(), ABOUT)).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(SUPPORT.parent), "TZ": "Asia/Tokyo"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [sha256(written(name)).hexdigest() for name in FORMATS]
