"""The LEHD layout of PSEO files, and a checker that reports each violation by line and column."""

from __future__ import annotations

import csv
import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import PublishError, SourceError
from discreet.publish.lehd.check import EXAMPLES, Violation, check_layout
from discreet.publish.lehd.codes import with_zeros
from discreet.publish.lehd.schema import (
    AGG_LEVELS,
    DIVISIONS,
    FLAGS,
    IDENTIFIERS,
    IPEDS_FLAGS,
    LABELS,
    PSEOE,
    PSEOE_2019,
    PSEOF,
    SECTORS,
    STATES,
    YEARS,
    AggLevel,
    Layout,
    cohort_years,
    version_line,
)
from support.repository import SHARED

DATA = SHARED
SCHEMA, REAL = DATA / "lehd-schema", DATA / "pseo-published" / "pseoe_all_2019.csv"
needs_schema = pytest.mark.skipif(not SCHEMA.is_dir(), reason=f"the schema's label files are not in {SCHEMA}")
needs_real = pytest.mark.skipif(not REAL.is_file(), reason=f"the published file of 2019 is not at {REAL}")

Row = dict[str, str]


def violations_of(path: Path, repair: bool = False) -> list[Violation]:
    return list(check_layout(path, repair).violations)


def lines(violations: list[Violation]) -> list[str]:
    return [str(violation) for violation in violations]


def ids(agg: int, inst: str, degree: str, cip: str, cohort: str, geo: str = "00", ind: str = "00") -> Row:
    inst_level = {8: "I", 2: "S"}[len(inst)]
    cip_level = "A" if cip == "00" else {2: "2", 5: "4"}[len(cip)]
    geo_level, ind_level = ("N" if geo == "00" else "D"), ("A" if ind == "00" else "S")
    years = "3" if degree == "05" else "5"
    codes = (str(agg), inst_level, inst, degree, cip_level, cip, cohort, years, geo_level, geo, ind_level, ind)
    return dict(zip(IDENTIFIERS, codes, strict=True))


def earned(identifiers: Row, layout: Layout, *flags: str) -> Row:
    """A row of earnings: one flag for each of the years 1, 5 and 10."""
    row = dict.fromkeys(layout.columns, "") | identifiers
    for year, flag in zip(("y1", "y5", "y10"), flags, strict=True):
        row |= {f"status_{year}_earnings": flag, f"status_{year}_grads_earn": flag}
        if flag == "1":
            row |= {f"{year}_p25_earnings": "21000", f"{year}_p50_earnings": "32000", f"{year}_p75_earnings": "45000"}
            row |= {f"{year}_grads_earn": "30"}
        if layout is PSEOE:
            row[f"status_{year}_ipeds_count"] = "3" if flag == "-1" else "1"
        row[f"{year}_ipeds_count"] = "" if flag == "-1" else "120"
    return row if layout is PSEOE else row | {"status_ipeds_count": "1"}


def flowed(identifiers: Row, flag: str) -> Row:
    """A row of flows; nonemployment is available only in rows of all employers."""
    row = identifiers | dict.fromkeys(PSEOF.indicators, "7" if flag == "1" else "") | dict.fromkeys(PSEOF.flags, flag)
    if (row["geo_level"], row["ind_level"]) != ("N", "A"):
        row |= {f"{year}_grads_nme": "" for year in YEARS} | {f"status_{year}_grads_nme": "-1" for year in YEARS}
    return row


def good(layout: Layout = PSEOE) -> list[Row]:
    """Every permitted aggregation level, with suppressed and missing years."""
    if layout is PSEOF:
        return [
            flowed(ids(38, "00134500", "05", "00", "0000"), "1"),
            flowed(ids(34, "08", "03", "11", "2001"), "5"),
            flowed(ids(172, "08", "03", "11", "0000", "Z", "31-33"), "-1"),
            flowed(ids(188, "00134500", "05", "00", "2001", "8", "92"), "1"),
            flowed(ids(136, "00134500", "05", "11", "0000", "8"), "1"),
            flowed(ids(86, "00134500", "05", "00", "0000", "00", "44-45"), "1"),
        ]
    return [
        earned(ids(38, "00134500", "05", "00", "0000"), layout, "1", "1", "1"),
        earned(ids(48, "0033290W", "05", "01.10", "2013"), layout, "1", "5", "-1"),
        earned(ids(42, "00134500", "07", "01.XX", "0000"), layout, "5", "5", "-1"),
        earned(ids(34, "08", "18", "51", "2011"), layout, "1", "1", "-1"),
    ]


def write(path: Path, rows: list[Row], layout: Layout = PSEOE) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(layout.columns)
        writer.writerows([row[column] for column in layout.columns] for row in rows)
    return path


def actual(path: Path, repair: bool = False) -> list[tuple[int | None, str]]:
    return [(v.line, v.column) for v in violations_of(path, repair)]


# The layout -------------------------------------------------------------------------------------------------------


@needs_schema
def test_columns_are_the_schemas() -> None:
    def variables(kind: str) -> list[tuple[str, str]]:
        with (SCHEMA / f"variables_{kind}.csv").open(newline="", encoding="utf-8-sig") as file:
            return [(row["Indicator Variable"], row["Status Flag"]) for row in csv.DictReader(file)]

    with (SCHEMA / "lehd_identifiers_pseo.csv").open(newline="", encoding="utf-8-sig") as file:
        assert tuple(row["Variable"] for row in csv.DictReader(file)) == IDENTIFIERS
    for layout in (PSEOE, PSEOF):
        assert [(v, group.flag) for group in layout.groups for v in group.values] == variables(layout.kind)


@needs_schema
def test_code_lists_are_the_schemas() -> None:
    def codes(name: str, column: str, where: dict[str, str] | None = None) -> list[str]:
        with (SCHEMA / f"label_{name}.csv").open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        return [r[column].strip() for r in rows if all(r[key] == value for key, value in (where or {}).items())]

    for column in ("inst_level", "degree_level", "cip_level"):
        assert list(LABELS[column]) == codes(column, column)
    for column in ("geo_level", "ind_level"):  # others of LEHD's levels are not for PSEO
        assert set(LABELS[column]) <= set(codes(column, column))
    assert set(FLAGS) <= set(codes("flags", "flag"))
    assert list(IPEDS_FLAGS) == codes("flags_ipeds_count", "flag")
    assert list(STATES) == codes("fipsnum", "geography", {"geo_level": "S"})
    assert list(DIVISIONS) == codes("geography_division", "geography", {"geo_level": "D"})
    assert list(SECTORS) == codes("industry", "industry", {"ind_level": "S"})


@needs_schema
def test_aggregation_levels_are_the_schemas() -> None:
    with (SCHEMA / "label_agg_level_pseo.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["agg_level_pseo"]) for row in rows] == list(AGG_LEVELS)
    for row in rows:
        number, by_cohort = int(row["agg_level_pseo"]), row["by_grad_cohort"] == "1"
        parts = (row["inst_level"], row["cip_level"], by_cohort, row["geo_level"], row["ind_level"])
        level = AGG_LEVELS[number]
        assert level == AggLevel(*parts)
        assert level.number == number
        assert level.grad_char == row["grad_char"]
        assert (level.occurs_in("pseoe"), level.occurs_in("pseof")) == (row["pseoe"] == "1", row["pseof"] == "1")
        assert row["by_degree_level"] == "1"


def test_only_bachelors_have_cohorts_of_three_years() -> None:
    assert {code: cohort_years(code) for code in LABELS["degree_level"] if cohort_years(code) != 5} == {"05": 3}


def test_the_columns_are_in_order() -> None:
    assert [len(layout.columns) for layout in (PSEOE, PSEOE_2019, PSEOF)] == [36, 34, 30]
    assert PSEOE.columns[12:16] == ("y1_p25_earnings", "y1_p50_earnings", "y1_p75_earnings", "y1_grads_earn")
    assert PSEOE.columns[24:29] == (
        *("y1_ipeds_count", "y5_ipeds_count", "y10_ipeds_count", "status_y1_earnings", "status_y1_grads_earn"),
    )
    assert PSEOE.columns[-2:] == ("status_y5_ipeds_count", "status_y10_ipeds_count")
    assert PSEOE_2019.columns[-2:] == ("status_y10_grads_earn", "status_ipeds_count")
    assert PSEOF.columns[12:15] == ("y1_grads_emp", "y1_grads_emp_instate", "y5_grads_emp")
    assert PSEOF.columns[-1] == "status_y10_grads_nme"


VERSION_PARTS: dict[str, Any] = {
    "product": "pseoe", "geo": "CO", "geonum": "08", "start": 2001, "end": 2015,
    "release": "R2026Q4", "internal": "discreet_1",
}  # fmt: skip


def test_the_version_line() -> None:
    assert version_line(**VERSION_PARTS) == "PSEOE CO 08 2001-2015 V4.14.0 R2026Q4 discreet_1"


@pytest.mark.parametrize(
    "wrong",
    [{"product": "qwi"}, {"geo": "co"}, {"geonum": "8"}, {"start": 2016},
     {"release": "2026Q4"}, {"internal": "a b"}, {"internal": ""}],
    ids=str,
)  # fmt: skip
def test_a_version_line_that_cannot_be_read_back_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PublishError, match="is not a version line"):
        version_line(**VERSION_PARTS | wrong)


# Good files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [PSEOE, PSEOE_2019, PSEOF], ids=str)
def test_a_good_file_passes(tmp_path: Path, layout: Layout) -> None:
    made = check_layout(write(tmp_path / "pseoe_all.simulation.csv", good(layout), layout))
    assert made.violations == ()
    assert (made.layout, made.rows) == (layout, len(good(layout)))


def test_every_aggregation_level_passes_where_it_occurs_and_nowhere_else(tmp_path: Path) -> None:
    cips = {"A": "00", "2": "11", "4": "11.07"}
    for layout in (PSEOE, PSEOF):
        rows = []
        for number, level in AGG_LEVELS.items():
            codes = ids(
                number, "00134500" if level.inst_level == "I" else "08", "03", cips[level.cip_level],
                "2001" if level.by_cohort else "0000", "4" if level.geo_level == "D" else "00",
                "44-45" if level.ind_level == "S" else "00",
            )  # fmt: skip
            rows.append(flowed(codes, "1") if layout is PSEOF else earned(codes, layout, "1", "1", "1"))
        elsewhere = [line for line, level in enumerate(AGG_LEVELS.values(), 2) if not level.occurs_in(layout.kind)]
        lost = violations_of(write(tmp_path / layout.kind, rows, layout))
        assert {v.column for v in lost} == {"agg_level_pseo"}
        assert all(v.problem.endswith(f"does not occur in {layout.kind}") for v in lost)
        assert [v.line for v in lost if v.line] == elsewhere[:EXAMPLES]
        assert (len(elsewhere) > EXAMPLES) == (f"in {len(elsewhere) - EXAMPLES} more lines" in str(lost[-1]))


def test_gzip_parquet_quotes_and_byte_order_marks_change_nothing(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", good())
    text = plain.read_bytes()
    (tmp_path / "packed").write_bytes(gzip.compress(text))
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + text)
    (tmp_path / "unix").write_bytes(text.replace(b"\r\n", b"\n").removesuffix(b"\n"))
    (tmp_path / "quoted").write_text(re.sub(r"[^,\r\n]+", r'"\g<0>"', text.decode()))
    for name in ("packed", "marked", "unix", "quoted"):
        assert check_layout(tmp_path / name) == check_layout(plain)


def parquet(path: Path, rows: list[Row], layout: Layout, number: pa.DataType) -> Path:
    """Codes are dictionaries of text, numbers are numeric, missing values are null."""
    numbers = {"agg_level_pseo", "grad_cohort_years", *layout.indicators, *layout.flags}
    columns = {}
    for name in layout.columns:
        values = pa.array([row[name] or None for row in rows], pa.string())
        columns[name] = values.cast(number) if name in numbers else values.dictionary_encode()
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("number", [pa.int64(), pa.int32(), pa.float64(), pa.string()], ids=str)
@pytest.mark.parametrize("layout", [PSEOE, PSEOE_2019, PSEOF], ids=str)
def test_parquet_is_read_as_the_same_text(tmp_path: Path, layout: Layout, number: pa.DataType) -> None:
    rows = good(layout)
    path = parquet(tmp_path / "x", rows, layout, number)
    assert check_layout(path) == check_layout(write(tmp_path / "csv", rows, layout))
    assert check_layout(path).violations == ()
    rows[2]["institution"] = "134500"
    assert actual(parquet(tmp_path / "y", rows, layout, number)) == [(4, "institution")]


# One fault at a time ----------------------------------------------------------------------------------------------

Change = dict[str, str]
LOST = "has lost its leading zeros"
MUTATIONS: dict[str, tuple[Layout, int, Change, str, str]] = {
    # name: layout, row, what is changed, the column and the problem that must be named
    "aggregation level of other parts": (PSEOE, 0, {"agg_level_pseo": "40"}, "agg_level_pseo", "is not 38"),
    "aggregation level with a zero": (PSEOE, 0, {"agg_level_pseo": "038"}, "agg_level_pseo", "is not 38"),
    "no aggregation level": (PSEOE, 0, {"agg_level_pseo": ""}, "agg_level_pseo", "'' is not 38"),
    "cohort of a level of all cohorts": (PSEOE, 0, {"grad_cohort": "2001"}, "agg_level_pseo", "is not 44"),
    "all institutions": (
        PSEOE, 0, {"inst_level": "N", "institution": "00"}, "agg_level_pseo", "no aggregation level has",
    ),
    "division": (PSEOE, 0, {"inst_level": "D", "institution": "8"}, "agg_level_pseo", "no aggregation level has"),
    "six digits": (PSEOE, 1, {"cip_level": "6", "cipcode": "01.1001"}, "agg_level_pseo", "no aggregation level has"),
    "earnings by sector": (
        PSEOE, 0, {"agg_level_pseo": "86", "ind_level": "S", "industry": "92"}, "agg_level_pseo", "not occur in pseoe",
    ),
    "earnings by division": (
        PSEOE, 0, {"agg_level_pseo": "134", "geo_level": "D", "geography": "9"}, "agg_level_pseo", "not occur in pseoe",
    ),
    "flows of four digits": (
        PSEOF, 0, {"agg_level_pseo": "42", "cip_level": "4", "cipcode": "11.07"}, "agg_level_pseo", "occur in pseof",
    ),
    "institution level": (PSEOE, 0, {"inst_level": "X"}, "inst_level", "'X' is not one of I, S, D, N"),
    "institution without zeros": (PSEOE, 0, {"institution": "134500"}, "institution", f"'134500' {LOST}"),
    "institution of 2019 without zeros": (PSEOE, 0, {"institution": "1345"}, "institution", LOST),
    "institution of nine": (
        PSEOE, 0, {"institution": "001345000"}, "institution", "is not a code of institution at inst_level I",
    ),
    "institution in words": (
        PSEOE, 0, {"institution": "Boulder"}, "institution", "is not a code of institution at inst_level I",
    ),
    "no institution": (PSEOE, 0, {"institution": ""}, "institution", "'' is not a code of institution"),
    "institution with a space": (PSEOE, 0, {"institution": "00134500 "}, "institution", "is not a code of institution"),
    "institution in Arabic digits": (
        PSEOE, 0, {"institution": "٠٠١٣٤٥٠٠"}, "institution", "is not a code of institution",
    ),
    "state without zero": (PSEOE, 3, {"institution": "8"}, "institution", LOST),
    "state that is none": (
        PSEOE, 3, {"institution": "03"}, "institution", "is not a code of institution at inst_level S",
    ),
    "degree without zero": (PSEOE, 0, {"degree_level": "5"}, "degree_level", f"'5' {LOST}"),
    "degree that is none": (PSEOE, 0, {"degree_level": "09"}, "degree_level", "is not one of 00, 01"),
    "all degrees": (PSEOE, 0, {"degree_level": "00"}, "degree_level", "'00' does not occur"),
    "CIP level": (PSEOE, 0, {"cip_level": "5"}, "cip_level", "is not one of A, 2, 4, 6"),
    "CIP without leading zero": (PSEOE, 1, {"cipcode": "1.10"}, "cipcode", LOST),
    "CIP as a number": (PSEOE, 1, {"cipcode": "1.1"}, "cipcode", LOST),
    "CIP without closing zero": (PSEOE, 1, {"cipcode": "01.1"}, "cipcode", "has lost its closing zeros"),
    "CIP without its point": (PSEOE, 1, {"cipcode": "0110"}, "cipcode", "is not a code of cipcode at cip_level 4"),
    "CIP of another level": (PSEOE, 0, {"cipcode": "11"}, "cipcode", "is not a code of cipcode at cip_level A"),
    "all fields without zero": (PSEOE, 0, {"cipcode": "0"}, "cipcode", LOST),
    "all fields as a family": (PSEOE, 3, {"cipcode": "00"}, "cipcode", "is not a code of cipcode at cip_level 2"),
    "cohort without zeros": (PSEOE, 0, {"grad_cohort": "0"}, "grad_cohort", LOST),
    "cohort that is no year": (PSEOE, 1, {"grad_cohort": "13"}, "grad_cohort", "is neither a year nor 0000"),
    "length of a bachelor's cohort": (PSEOE, 0, {"grad_cohort_years": "5"}, "grad_cohort_years", "is not 3"),
    "length of a master's cohort": (PSEOE, 2, {"grad_cohort_years": "3"}, "grad_cohort_years", "is not 5"),
    "length that is no number": (PSEOE, 2, {"grad_cohort_years": "five"}, "grad_cohort_years", "is not 5"),
    "place level": (PSEOE, 0, {"geo_level": "S"}, "geo_level", "is not one of N, D"),
    "nation without zero": (PSEOE, 0, {"geography": "0"}, "geography", LOST),
    "nation": (PSEOE, 0, {"geography": "08"}, "geography", "is not a code of geography at geo_level N"),
    "division of work": (PSEOF, 2, {"geography": "0"}, "geography", "is not a code of geography at geo_level D"),
    "industry level": (PSEOE, 0, {"ind_level": "4"}, "ind_level", "is not one of A, S"),
    "all industries without zero": (PSEOE, 0, {"industry": "0"}, "industry", LOST),
    "sector": (PSEOF, 2, {"industry": "31"}, "industry", "is not a code of industry at ind_level S"),
    "earnings with a fraction": (PSEOE, 0, {"y1_p25_earnings": "21000.5"}, "y1_p25_earnings", "is not an integer"),
    "earnings as a float": (PSEOE, 0, {"y1_p25_earnings": "21000.0"}, "y1_p25_earnings", "is not an integer"),
    "earnings with a comma": (PSEOE, 0, {"y1_p50_earnings": "32,000"}, "y1_p50_earnings", "is not an integer"),
    "earnings beyond numbers": (PSEOE, 0, {"y5_p75_earnings": "9" * 5000}, "y5_p75_earnings", "is not an integer"),
    "no earnings": (PSEOE, 0, {"y5_p50_earnings": ""}, "y5_p50_earnings", "is empty although status_y5_earnings is 1"),
    "earnings of zero": (PSEOE, 0, {"y10_p25_earnings": "0"}, "y10_p25_earnings", "is not positive"),
    "negative earnings": (PSEOE, 0, {"y10_p25_earnings": "-1"}, "y10_p25_earnings", "is negative"),
    "25 above 50": (PSEOE, 0, {"y1_p25_earnings": "32001"}, "y1_p25_earnings", "is above y1_p50_earnings"),
    "50 above 75": (PSEOE, 0, {"y10_p75_earnings": "31999"}, "y10_p50_earnings", "is above y10_p75_earnings"),
    "suppressed earnings": (PSEOE, 1, {"y5_p50_earnings": "1"}, "y5_p50_earnings", "although status_y5_earnings is 5"),
    "earnings before their time": (PSEOE, 1, {"y10_p75_earnings": "1"}, "y10_p75_earnings", "y10_earnings is -1"),
    "few graduates": (PSEOE, 0, {"y5_grads_earn": "29"}, "y5_grads_earn", "is published below 30"),
    "no graduates": (PSEOE, 0, {"y5_grads_earn": ""}, "y5_grads_earn", "is empty although status_y5_grads_earn is 1"),
    "negative graduates": (PSEOE, 0, {"y5_grads_earn": "-40"}, "y5_grads_earn", "is negative"),
    "suppressed graduates": (PSEOE, 1, {"y5_grads_earn": "40"}, "y5_grads_earn", "is filled although"),
    "flag that is none": (PSEOE, 0, {"status_y1_earnings": "9"}, "status_y1_earnings", "'9' is not one of -1, 1, 5"),
    "flag as a float": (PSEOE, 0, {"status_y1_earnings": "1.0"}, "status_y1_earnings", "is not one of"),
    "no flag": (PSEOE, 0, {"status_y10_grads_earn": ""}, "status_y10_grads_earn", "'' is not one of"),
    "master's of four digits": (
        PSEOE, 2, {"status_y1_grads_earn": "1", "y1_grads_earn": "50"}, "status_y1_grads_earn",
        "is 1 in a 4-digit field of degree level 07 or 17",
    ),
    "IPEDS flag": (PSEOE, 0, {"status_y1_ipeds_count": "5"}, "status_y1_ipeds_count", "is not one of 1, 2, 3, 4"),
    "no IPEDS flag": (PSEOE, 0, {"status_y1_ipeds_count": ""}, "status_y1_ipeds_count", "'' is not one of"),
    "no IPEDS count": (PSEOE, 0, {"y5_ipeds_count": ""}, "y5_ipeds_count", "although status_y5_ipeds_count is 1"),
    "IPEDS count not available": (PSEOE, 0, {"status_y5_ipeds_count": "3"}, "y5_ipeds_count", "is filled although"),
    "negative IPEDS count": (PSEOE, 0, {"y5_ipeds_count": "-2"}, "y5_ipeds_count", "is negative"),
    "IPEDS flag of 2019": (PSEOE_2019, 0, {"status_ipeds_count": "-1"}, "status_ipeds_count", "is not one of"),
    "no IPEDS count of 2019": (PSEOE_2019, 0, {"y5_ipeds_count": ""}, "y5_ipeds_count", "is empty although"),
    "IPEDS count of 2019 too early": (PSEOE_2019, 1, {"y10_ipeds_count": "4"}, "y10_ipeds_count", "is filled although"),
    "IPEDS count of 2019 in words": (
        PSEOE_2019, 0, {"status_ipeds_count": "", "y5_ipeds_count": "few"}, "y5_ipeds_count", "is not an integer",
    ),
    "flows suppressed": (PSEOF, 1, {"y5_grads_emp_instate": "0"}, "y5_grads_emp_instate", "is filled although"),
    "flows missing": (PSEOF, 0, {"y10_grads_nme": ""}, "y10_grads_nme", "is empty although status_y10_grads_nme is 1"),
    "flows negative": (PSEOF, 0, {"y10_grads_nme": "-1"}, "y10_grads_nme", "is negative"),
    "flag of flows": (PSEOF, 0, {"status_y10_grads_nme": "2"}, "status_y10_grads_nme", "is not one of"),
    "flows with a fraction": (PSEOF, 0, {"y1_grads_emp": "7.5"}, "y1_grads_emp", "is not an integer"),
    "flows as a float": (PSEOF, 0, {"y1_grads_emp_instate": "7.0"}, "y1_grads_emp_instate", "is not an integer"),
    "negative in-state flows": (PSEOF, 0, {"y1_grads_emp_instate": "-7"}, "y1_grads_emp_instate", "is negative"),
    "negative flows": (PSEOF, 3, {"y10_grads_emp": "-7", "y10_grads_emp_instate": "0"}, "y10_grads_emp", "is negative"),
    "no flows": (PSEOF, 3, {"y5_grads_emp": ""}, "y5_grads_emp", "is empty although status_y5_grads_emp is 1"),
    "no in-state flows": (PSEOF, 3, {"y5_grads_emp_instate": ""}, "y5_grads_emp_instate", "is empty although"),
    "no flag of flows": (PSEOF, 3, {"status_y5_grads_emp": ""}, "status_y5_grads_emp", "'' is not one of -1, 1, 5"),
    "flows before their time": (PSEOF, 2, {"y10_grads_emp": "0"}, "y10_grads_emp", "status_y10_grads_emp is -1"),
    "more in the state than employed": (
        PSEOF, 0, {"y1_grads_emp_instate": "8"}, "y1_grads_emp_instate", "is above y1_grads_emp",
    ),
    "more in the state than in the sector": (
        PSEOF, 3, {"y10_grads_emp": "6"}, "y10_grads_emp_instate", "is above y10_grads_emp",
    ),
    "no job, in a sector": (
        PSEOF, 3, {"status_y5_grads_nme": "1", "y5_grads_nme": "7"}, "status_y5_grads_nme", "one sector or division",
    ),
    "no job, suppressed in a sector": (
        PSEOF, 3, {"status_y5_grads_nme": "5"}, "status_y5_grads_nme", "is 5 in a row of one sector or division",
    ),
    "no job, in a division": (
        PSEOF, 4, {"status_y1_grads_nme": "1", "y1_grads_nme": "0"}, "status_y1_grads_nme", "one sector or division",
    ),
    "no job, in a sector of the nation": (
        PSEOF, 5, {"status_y1_grads_nme": "1", "y1_grads_nme": "0"}, "status_y1_grads_nme", "one sector or division",
    ),
    "no job, filled in a division": (PSEOF, 4, {"y1_grads_nme": "0"}, "y1_grads_nme", "is filled although"),
    "flows by state": (PSEOF, 4, {"geo_level": "S"}, "geo_level", "is not one of N, D"),
    "flows by industry group": (PSEOF, 5, {"ind_level": "4"}, "ind_level", "is not one of A, S"),
    "flows of another level": (PSEOF, 5, {"agg_level_pseo": "38"}, "agg_level_pseo", "is not 86"),
    "flows of all degrees": (PSEOF, 0, {"degree_level": "00"}, "degree_level", "'00' does not occur"),
    "length of a cohort of flows": (PSEOF, 0, {"grad_cohort_years": "5"}, "grad_cohort_years", "is not 3"),
    "institution of flows": (PSEOF, 0, {"institution": "134500"}, "institution", LOST),
    "field of flows": (PSEOF, 1, {"cipcode": "00"}, "cipcode", "is not a code of cipcode at cip_level 2"),
    "cohort of flows": (PSEOF, 1, {"grad_cohort": "13"}, "grad_cohort", "is neither a year nor 0000"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_one_fault_is_reported_and_nothing_else(tmp_path: Path, name: str) -> None:
    layout, place, change, column, problem = MUTATIONS[name]
    rows = good(layout)
    assert change.items() - rows[place].items(), "the change must change something"
    rows[place] |= change
    (violation,) = violations_of(write(tmp_path / "x.csv", rows, layout))
    assert (violation.line, violation.column) == (place + 2, column)
    assert problem in violation.problem
    assert "\n" not in str(violation)
    assert str(violation).startswith(f"line {place + 2}, {column}: ")


def test_no_indicator_is_quoted(tmp_path: Path) -> None:
    rows = good()
    rows[0] |= {"y1_p25_earnings": "777777", "y5_p50_earnings": "777777.5", "y10_p75_earnings": "-777777"}
    rows[1] |= {"y5_p50_earnings": "777777", "y5_grads_earn": "777777"}
    text = "\n".join(lines(violations_of(write(tmp_path / "x.csv", rows))))
    assert text.count("\n") == 4
    assert "777777" not in text


def test_unusual_but_valid_rows_pass(tmp_path: Path) -> None:
    """Equal percentiles, no IPEDS graduates, restricted fields in 2019, totals of 2019 without an IPEDS flag."""
    rows = good()
    rows[0] |= {"y1_p25_earnings": "1", "y1_p50_earnings": "1", "y1_p75_earnings": "1", "y1_ipeds_count": "0"}
    rows[0] |= {"status_y5_ipeds_count": "4", "status_y10_ipeds_count": "3", "y10_ipeds_count": ""}
    assert actual(write(tmp_path / "x.csv", rows)) == []
    older = good(PSEOE_2019)
    older[0] |= {"status_ipeds_count": "", "y5_ipeds_count": ""}
    older[2] = earned(ids(42, "00134500", "07", "01.XX", "0000"), PSEOE_2019, "1", "1", "-1")
    older[3] |= {"status_ipeds_count": "3", "y1_ipeds_count": "", "y5_ipeds_count": ""}
    assert actual(write(tmp_path / "y.csv", older, PSEOE_2019)) == []
    flows = good(PSEOF)
    flows[0] |= {"y1_grads_emp": "0", "y1_grads_emp_instate": "0", "y5_grads_nme": "0"}
    assert actual(write(tmp_path / "z.csv", flows, PSEOF)) == []


def test_repeated_identifiers_are_reported_at_each_later_line(tmp_path: Path) -> None:
    rows = good()
    again = [*rows, rows[1] | {"y1_grads_earn": "99"}, rows[3], rows[1]]
    lost = violations_of(write(tmp_path / "x.csv", again))
    assert lost == [Violation(line, "identifiers", "are those of an earlier line") for line in (6, 7, 8)]


def test_repeated_identifiers_are_detected_after_repair(tmp_path: Path) -> None:
    rows = good()
    path = write(tmp_path / "x.csv", [*rows, rows[0] | {"institution": "134500"}])
    assert actual(path) == [(6, "institution")]
    assert actual(path, repair=True) == [(6, "identifiers")]


def test_twenty_of_a_kind_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    rows = [earned(ids(38, f"{n:08}", "05", "00", "0000"), PSEOE, "1", "1", "1") for n in range(1000)]
    for row in rows:
        row |= {"status_y1_earnings": "7"}
    rows[500] |= {"degree_level": "5"}
    lost = violations_of(write(tmp_path / "x.csv", rows))
    assert len(lost) == EXAMPLES + 2
    assert [v.line for v in lost] == [*range(2, EXAMPLES + 2), 502, None]
    assert lines(lost)[-1] == "status_y1_earnings: in 980 more lines: is not one of -1, 1, 5"


# Headers and lines ------------------------------------------------------------------------------------------------


def renamed(path: Path, change: Callable[[list[str]], list[str]], layout: Layout = PSEOE) -> Path:
    text = write(path, good(layout), layout).read_text().splitlines()
    text[0] = ",".join(change(text[0].split(",")))
    path.write_text("\n".join(text))
    return path


def swap(a: int, b: int) -> Callable[[list[str]], list[str]]:
    def change(names: list[str]) -> list[str]:
        names[a], names[b] = names[b], names[a]
        return names

    return change


HEADERS: dict[str, tuple[Callable[[list[str]], list[str]], list[tuple[str, str]]]] = {
    "missing": (lambda h: h[:5] + h[6:], [("cipcode", "is missing; pseoe V4.14.0 has it")]),
    "extra": (lambda h: [*h, "note"], [("'note'", "is not a column of pseoe V4.14.0")]),
    "nameless": (lambda h: [*h, ""], [("''", "is not a column of pseoe V4.14.0")]),
    "doubled": (lambda h: [*h, h[3]], [("degree_level", "occurs 2 times in the header")]),
    "renamed": (
        lambda h: [h[0].upper(), *h[1:]],
        [("agg_level_pseo", "is missing; pseoe V4.14.0 has it"),
         ("'AGG_LEVEL_PSEO'", "is not a column of pseoe V4.14.0")],
    ),
    "moved to the end": (lambda h: [*h[1:], h[0]], [("agg_level_pseo", "is out of order; it belongs first")]),
    "moved to the front": (
        lambda h: [h[-1], *h[:-1]],
        [("status_y10_ipeds_count", "is out of order; it belongs after status_y5_ipeds_count")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_a_wrong_header_is_reported_by_column(tmp_path: Path, name: str) -> None:
    change, expected = HEADERS[name]
    lost = violations_of(renamed(tmp_path / "x.csv", change))
    assert lost == [Violation(1, column, problem) for column, problem in expected]


def test_swapped_columns(tmp_path: Path) -> None:
    for layout in (PSEOE, PSEOE_2019, PSEOF):
        (lost,) = violations_of(renamed(tmp_path / "x.csv", swap(13, 14), layout))
        assert lost.line == 1
        assert lost.column in layout.columns[13:15]
        assert "is out of order; it belongs after " in lost.problem


@pytest.mark.parametrize("text", ["\n", "a,b\n1,2\n", ",".join(IDENTIFIERS), "hello"], ids=repr)
def test_a_header_of_another_file_is_one_violation(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    assert lines(violations_of(tmp_path / "x")) == ["line 1: the header is neither that of pseoe nor that of pseof"]


def test_ragged_and_empty_lines_are_reported(tmp_path: Path) -> None:
    text = write(tmp_path / "x.csv", good()).read_text().splitlines()
    text[2] += ",1"
    text[3] = text[3].rpartition(",")[0]
    (tmp_path / "x.csv").write_text("\n".join([*text[:4], "", *text[4:]]))
    assert lines(violations_of(tmp_path / "x.csv", repair=True)) == [
        "line 3: more fields than the header has",
        "line 4: fewer fields than the header has",
        "line 5: fewer fields than the header has",
    ]


def test_a_line_break_within_quotes_keeps_the_count_of_lines(tmp_path: Path) -> None:
    rows = good()
    rows[0]["institution"], rows[2]["institution"] = "0013\n4500", "x"
    assert actual(write(tmp_path / "x.csv", rows)) == [(2, "institution"), (5, "institution")]


def test_no_rows_is_a_violation(tmp_path: Path) -> None:
    assert lines(violations_of(write(tmp_path / "x.csv", []))) == ["there are no rows"]
    empty = pa.table({name: pa.array([], pa.string()) for name in PSEOE.columns})
    pq.write_table(empty, tmp_path / "x.parquet")
    assert lines(violations_of(tmp_path / "x.parquet")) == ["there are no rows"]


def spoiled() -> dict[str, tuple[bytes, str]]:
    header = ",".join(PSEOE.columns).encode() + b"\n"
    nested = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array([[1]]) for name in PSEOE.columns}), nested)
    return {
        "empty": (b"", "is empty"),
        "binary": (bytes(range(256)), "line 1 is not text in UTF-8"),
        "null bytes": (header + b"38,\0", "line 2 is not text in UTF-8"),
        "Latin 1": (header + "38,I,Düsseldorf".encode("latin-1"), "line 2 is not text in UTF-8"),
        "UTF-16": (header.decode().encode("utf-16"), "line 1 is not text in UTF-8"),
        "endless line": (b"a" * (1 << 20), "line 1 is not text in UTF-8"),
        "open quotes": (header + b'38,"I,00134500\n' * 2, "line 2 is not CSV"),
        "quotes inside": (header + b'38,"I"x,00134500\n', "line 2 is not CSV"),
        "old Macintosh": (header.replace(b"\n", b"\r") + b"38,I\r", "line 1 is not CSV"),
        "half a gzip": (gzip.compress(header * 100)[:60], "is a damaged gzip file"),
        "broken gzip": (b"\x1f\x8b" + bytes(50), "is a damaged gzip file"),
        "empty gzip": (gzip.compress(b""), "is empty"),
        "half a Parquet file": (b"PAR1" + bytes(100), "is not a valid Parquet file"),
        "nested Parquet": (nested.getvalue().to_pybytes(), "is not a valid Parquet file"),
    }


@pytest.mark.parametrize("name", spoiled())
def test_an_unreadable_file_is_one_refusal(tmp_path: Path, name: str) -> None:
    content, what = spoiled()[name]
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(SourceError, match=re.escape(what)) as refusal:
        violations_of(tmp_path / "x")
    assert refusal.value.where == str(tmp_path / "x")
    assert refusal.value.do


@pytest.mark.parametrize("path", ["nowhere.csv", ".", "a\0b", "x" * 5000], ids=["missing", "folder", "null", "long"])
def test_an_invalid_path_is_one_refusal(path: str) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        violations_of(Path(path))


# Zeros ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "level", "mangled", "code"),
    [
        ("institution", "I", "134500", "00134500"),
        ("institution", "I", "1021102", "01021102"),
        ("institution", "I", "1345", "00134500"),
        ("institution", "I", "42087", "04208700"),
        ("institution", "I", "0033290W", "0033290W"),
        ("institution", "S", "8", "08"),
        ("institution", "D", "8", "8"),
        ("degree_level", "", "5", "05"),
        ("degree_level", "", "17", "17"),
        ("cipcode", "A", "0", "00"),
        ("cipcode", "2", "1", "01"),
        ("cipcode", "4", "1.1", "01.10"),
        ("cipcode", "4", "1.01", "01.01"),
        ("cipcode", "4", "13", "13.00"),
        ("cipcode", "4", "01.XX", "01.XX"),
        ("cipcode", "6", "1.01", "01.0100"),
        ("grad_cohort", "", "0", "0000"),
        ("grad_cohort", "", "2001", "2001"),
        ("geography", "N", "0", "00"),
        ("geography", "D", "8", "8"),
        ("industry", "A", "0", "00"),
        ("industry", "S", "31-33", "31-33"),
        ("industry", "A", "", ""),
    ],
)
def test_zeros_are_restored(column: str, level: str, mangled: str, code: str) -> None:
    assert with_zeros(column, level, mangled) == code
    assert with_zeros(column, level, code) == code


@given(st.integers(1, 99), st.integers(0, 99))
def test_a_cip_code_survives_a_spreadsheet(family: int, rest: int) -> None:
    code = f"{family:02}.{rest:02}"
    assert with_zeros("cipcode", "4", f"{float(code):g}") == code


def test_a_mangled_file_passes_only_with_repair(tmp_path: Path) -> None:
    rows = good()
    plain = {c for c in IDENTIFIERS if c not in {"agg_level_pseo", "grad_cohort_years"}}
    for row in rows:
        row |= {c: f"{float(row[c]):g}" for c in plain if re.fullmatch(r"[\d.]+", row[c])}
    path = write(tmp_path / "x.csv", rows)
    assert actual(path, repair=True) == []
    assert {v.column for v in violations_of(path)} == {
        *("institution", "degree_level", "cipcode", "grad_cohort", "geography", "industry"),
    }
    assert all(v.problem.endswith(("leading zeros", "closing zeros")) for v in violations_of(path))


def test_repair_masks_no_other_fault(tmp_path: Path) -> None:
    for name, (layout, place, change, column, problem) in MUTATIONS.items():
        rows = good(layout)
        rows[place] |= change
        lost = violations_of(write(tmp_path / "x.csv", rows, layout), repair=True)
        if "zeros" in problem:
            assert lost == [], name
        else:
            assert [(v.line, v.column) for v in lost] == [(place + 2, column)], name


@needs_real
def test_the_published_file_of_2019_follows_the_layout_once_repaired() -> None:
    made = check_layout(REAL, repair=True)
    assert made.violations == ()
    assert (made.layout, made.rows) == (PSEOE_2019, 13_413)


@needs_real
def test_the_published_file_of_2019_as_it_is_has_lost_its_zeros() -> None:
    lost = violations_of(REAL)
    assert {v.column for v in lost} == {
        *("institution", "degree_level", "cipcode", "grad_cohort", "geography", "industry"),
    }
    assert all(v.problem.endswith(("leading zeros", "closing zeros")) for v in lost)
    assert "line 2, institution: '1345' has lost its leading zeros" in lines(lost)
    assert "institution: in 13,393 more lines: has lost its leading zeros" in lines(lost)


@needs_real
@needs_schema
def test_repaired_institutions_of_2019_are_institutions() -> None:
    with (SCHEMA / "label_institution.csv").open(newline="", encoding="utf-8-sig") as file:
        known = {row["institution"] for row in csv.DictReader(file)}
    with REAL.open(newline="", encoding="utf-8") as file:
        used = {with_zeros("institution", "I", row["institution"]) for row in csv.DictReader(file)}
    assert used <= known
    eight = [code for code in known if len(code) == 8]
    assert all(with_zeros("institution", "I", code.lstrip("0")) == code for code in eight if code.isdigit())


# The command line -------------------------------------------------------------------------------------------------


def command(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "discreet", "check-layout", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ},
    )  # fmt: skip


def test_the_command_says_that_a_file_follows_the_layout(tmp_path: Path) -> None:
    write(tmp_path / "pseoe_all.simulation.csv", good())
    done = command("pseoe_all.simulation.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "pseoe_all.simulation.csv follows the layout pseoe V4.14.0 (4 rows).\n"


def test_the_command_names_violations_and_ends_with_one(tmp_path: Path) -> None:
    rows = good()
    rows[0]["degree_level"], rows[2]["institution"] = "5", "134500"
    write(tmp_path / "x.csv", rows)
    done = command("x.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "line 2, degree_level: '5' has lost its leading zeros",
        "line 4, institution: '134500' has lost its leading zeros",
        "x.csv does not follow the layout pseoe V4.14.0: 2 violations; most codes have lost their leading zeros: "
        "try --repair.",
    ]
    done = command("x.csv", "--repair", cwd=tmp_path)
    assert done.stdout == "x.csv, its leading zeros restored, follows the layout pseoe V4.14.0 (4 rows).\n"


def test_the_command_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    done = command("nowhere.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("discreet: nowhere.csv: cannot be read (No such file or directory). ")
    assert done.stderr.count("\n") == 1
