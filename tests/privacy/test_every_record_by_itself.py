"""How a record is read depends on that record and on the declared types, never on another record.

Each test releases records with and without one of them, under the same test key and with noise that is 0, and looks at
everybody else. At most the cell of that one record may be another one, by one. Where this fails, a reader of the
tables learns more about one person than ε allows, or learns from a release that did not come out.
"""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from support.neighbouring_experiments import CASED, DROPPED, FARM, MARK, SHOP, bom_files, case_files, text
from support.neighbouring_releases import ReleaseOffice, assert_own_cell_only

GOOD = ["farm", "shop", "farm"]
HEAD = b"sector,person_id\n"


@pytest.fixture
def office(tmp_path: Path) -> ReleaseOffice:
    return ReleaseOffice(tmp_path / "office")


def people(sectors: Any, first: int = 0) -> dict[str, Any]:
    return {"person_id": [f"p{first + i}" for i in range(len(sectors))], "sector": sectors}


# --- CSV ------------------------------------------------------------------------------------------------------------


def test_a_byte_order_mark_is_read_alike_whatever_precedes_it(office: ReleaseOffice) -> None:
    """A record that begins with such a mark counted as a farm only if it was the first of its block: with one person
    more before it, it no longer did, and two cells moved for one person."""
    files = bom_files(office.folder)
    assert_own_cell_only(office.run(str(files["without p1"])), office.run(str(files["with p1"])), SHOP)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_files_with_byte_order_marks_put_one_behind_the_other(office: ReleaseOffice, ending: str) -> None:
    """`cat a.csv b.csv` leaves the second file's mark in the middle: removing all other records must not change how
    the line behind it is read."""
    second = MARK + b"farm,p8\n" + MARK + b'"farm",p9\n'
    runs = []
    for name, lines in {"alone": second, "behind": b"shop,p1\n" + second}.items():
        path = office.folder / f"{name}{ending}"
        whole = MARK + HEAD + lines
        path.write_bytes(gzip.compress(whole) if ending.endswith("gz") else whole)
        runs.append(office.run(str(path)))
    assert_own_cell_only(*runs, SHOP)


def test_byte_order_marks_in_a_file_of_many_blocks(office: ReleaseOffice) -> None:
    """A reader that takes a file in blocks met a mark at the start of each: of 600,000 records that are all alike the
    first of every block counted, the others not, and one record more or less shifted which."""
    lines = b"".join(MARK + b"farm,a long name of the person %07d\n" % i for i in range(600_000))
    (office.folder / "many.csv").write_bytes(HEAD + lines)
    actual = office.run(str(office.folder / "many.csv"), unit="record")
    assert actual.complete
    assert actual.cells[FARM] in (0, 600_000)


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_one_long_line_is_one_record(office: ReleaseOffice, quote: bytes) -> None:
    """A field of forty million characters, longer than any block: it may be left out; its neighbours may not."""
    for name, line in {"fine": b"", "long": quote + b"x" * 40_000_000 + quote + b",p2\n"}.items():
        (office.folder / f"{name}.csv").write_bytes(HEAD + b"farm,p1\n" + line + b"shop,p3\n")
    assert_own_cell_only(*(office.run(str(office.folder / f"{name}.csv")) for name in ("fine", "long")))


@pytest.mark.full
def test_a_line_beyond_all_limits_stops_nothing(office: ReleaseOffice) -> None:
    """A field of more than 2 GiB is more than Arrow's CSV reader takes at once: the release came to nothing, which
    tells that there is such a record. The process may use 8 GiB."""
    path = office.folder / "huge.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(HEAD + b"farm,p1\n")
        for _ in range(2_100):
            file.write(b"x" * (1 << 20))
        file.write(b",p2\nshop,p3\n")
    code = (
        "import sys; from pathlib import Path; from support.neighbouring_releases import ReleaseOffice\n"
        "found = ReleaseOffice(Path(sys.argv[1]) / 'inner').run(sys.argv[2])\n"
        "print(found.occupied() or found.refused or found.stopped)"
    )
    limit = 8 << 30
    done = subprocess.run(
        [sys.executable, "-c", code, str(office.folder), str(path)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert done.stdout.strip() == str({FARM: 1, SHOP: 1}), done.stderr[-300:]


# --- several files --------------------------------------------------------------------------------------------------


def test_columns_that_differ_only_in_case_in_parquet(office: ReleaseOffice) -> None:
    """In the second file h and H stand the other way round, and its records were read from the wrong one; a text in
    the first file that is no UTF-8 led to another reader, which read them right: 50 people moved by one record."""
    fine = office.run(str(case_files(office.folder / "fine", 50)), **CASED)
    dirty = office.run(str(case_files(office.folder / "dirty", 50, bad=True)), **CASED)
    assert_own_cell_only(fine, dirty)
    assert fine.refused or fine.occupied() == {FARM: 100}  # h is farm everywhere, H is shop


def test_columns_that_differ_only_in_case_in_csv(office: ReleaseOffice) -> None:
    """The same in a folder of CSV files: all records of the second were read from the wrong column."""
    folder = office.folder / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("pid,g,H,h\na0,x,shop,farm\n")
    (folder / "b.csv").write_text("pid,g,h,H\nb0,x,farm,shop\n")
    actual = office.run(str(folder), **CASED)
    assert not actual.stopped
    assert actual.refused or actual.occupied() == {FARM: 2}


NOTHING: dict[str, tuple[Any, Any, list[str]]] = {
    "text": (["farm"], ["shop"], ["farm", "shop"]),
    "whole numbers": ([1], [2], ["1", "2"]),
    "real numbers": ([1.0], [2.0], ["1", "2"]),
    "dates": (pa.array([1], pa.date32()), pa.array([2], pa.date32()), ["1970-01-02", "1970-01-03"]),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_a_file_whose_only_value_is_missing(office: ReleaseOffice, kind: str) -> None:
    """A column that has nothing but nulls is written without a type. Whether the one other record of that file has a
    value decided whether its files agree, and so whether there was a release at all."""
    first, second, codes = NOTHING[kind]
    runs = []
    for name, rows in {"nothing": pa.nulls(1), "something": second}.items():
        folder = office.folder / name
        folder.mkdir()
        pq.write_table(pa.table(people(first)), folder / "a.parquet")
        pq.write_table(pa.table(people(rows, 1)), folder / "b.parquet")
        runs.append(office.run(str(folder), codes={"sector": codes}))
    assert_own_cell_only(*runs, (codes[1],))


def test_a_file_whose_persons_are_all_missing(office: ReleaseOffice) -> None:
    """The same in the column of persons: those records are dropped, and nobody else's."""
    runs = []
    for name, persons in {"nothing": pa.nulls(1), "something": ["p2"]}.items():
        folder = office.folder / name
        folder.mkdir()
        pq.write_table(pa.table(people(["farm"])), folder / "a.parquet")
        pq.write_table(pa.table({"person_id": persons, "sector": ["shop"]}), folder / "b.parquet")
        runs.append(office.run(str(folder)))
    assert_own_cell_only(*runs, SHOP)


WRITTEN: dict[str, tuple[list[Any], Any, Callable[[list[Any]], Any]]] = {
    "whole numbers, and one missing": ([1, 2], None, lambda v: pd.Series(v).to_numpy()),
    "whole numbers, and one beyond 2^63": ([1, 2], 2**63, lambda v: pd.Series(v).to_numpy()),
    "126 categories, and one more": (["1", "2", *(f"c{i}" for i in range(124))], "c124", pd.Categorical),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_one_record_that_makes_its_file_of_another_type(office: ReleaseOffice, kind: str) -> None:
    """pandas writes whole numbers with one missing as doubles, with one beyond 2^63 as unsigned ones, and more than 126
    categories with longer places. Then two files disagree, and that one record stopped the release."""
    values, last, column = WRITTEN[kind]
    runs = []
    for name, more in {"fine": [], "dirty": [last]}.items():
        folder = office.folder / name
        folder.mkdir()
        pd.DataFrame(people(column(values))).to_parquet(folder / "a.parquet")
        second = [*values, *more]
        pd.DataFrame({**people(second, 1000), "sector": column(second)}).to_parquet(folder / "b.parquet")
        runs.append(office.run(str(folder), codes={"sector": ["1", "2"]}))
    assert_own_cell_only(*runs)
    assert runs[0].occupied() == {("1",): 2, ("2",): 2}


VALUES: dict[str, tuple[list[Any], Any]] = {
    "whole numbers, and one missing": ([1, 2], None),
    "decimals, and a longer one": ([Decimal("1.5"), Decimal("2.5")], Decimal("12345.678")),
}


@pytest.mark.parametrize("kind", VALUES)
def test_one_value_that_makes_its_file_of_another_type(office: ReleaseOffice, kind: str) -> None:
    """The same in a column of earnings or other values: how many digits a decimal has is inferred from the longest."""
    values, last = VALUES[kind]
    runs = []
    for name, more in {"fine": [], "dirty": [last]}.items():
        folder = office.folder / name
        folder.mkdir()
        for i, some in enumerate((values, [*values, *more])):
            rows = {**people(["farm"] * len(some), 1000 * i), "v": some}
            pd.DataFrame(rows).to_parquet(folder / f"{i}.parquet")
        runs.append(office.run(str(folder), table=DROPPED, delta="0.01"))
    assert_own_cell_only(*runs)
    assert runs[0].occupied() == {FARM: 4}


# --- text that is no text -------------------------------------------------------------------------------------------


def stata(path: Path, sectors: list[str]) -> None:
    pyreadstat.write_dta(pd.DataFrame(people(sectors)), str(path))


def sas(path: Path, sectors: list[str]) -> None:
    from support.sas_writer import write_sas7bdat

    write_sas7bdat(path, people(sectors))


@pytest.mark.parametrize("dirt", [b"Q\xff\xfeQ", b"M\xfcll", b"\xed\xa0\x80Q"])
@pytest.mark.parametrize("write", [stata, sas])
def test_one_text_that_is_not_utf8_in_a_statistical_file(
    office: ReleaseOffice, write: Callable[[Path, list[str]], None], dirt: bytes
) -> None:
    """A file of Stata or SAS was refused as a whole because of one record's text."""
    ending = ".dta" if write is stata else ".sas7bdat"
    fine, dirty = (office.folder / f"{name}{ending}" for name in ("fine", "dirty"))
    write(fine, [*GOOD, "QQQQ"])
    dirty.write_bytes(fine.read_bytes().replace(b"QQQQ", dirt))
    assert_own_cell_only(office.run(str(fine)), office.run(str(dirty)))


@pytest.mark.parametrize("kind", ["csv", "parquet", "dta"])
def test_a_file_without_records_is_a_release_as_well(office: ReleaseOffice, kind: str) -> None:
    """The neighbour of one record is none: if that is no file to us, a release tells that there is somebody."""
    runs = []
    for rows in (["farm"], []):
        path = office.folder / f"{len(rows)}.{kind}"
        if kind == "csv":
            path.write_bytes(HEAD + b"farm,p0\n" * len(rows))
        elif kind == "parquet":
            pq.write_table(pa.table(people(pa.array(rows, pa.string()))).slice(0, len(rows)), path)
        else:
            pyreadstat.write_dta(pd.DataFrame(people(rows), dtype=str), str(path))
        runs.append(office.run(str(path)))
    assert_own_cell_only(runs[1], runs[0], FARM)


COLUMNS: dict[str, Callable[[list[str]], pa.Array]] = {
    "text": pa.array,
    "long text": lambda v: pa.array(v, pa.large_string()),
    "views": lambda v: pa.array(v, pa.string_view()),
    "a dictionary": lambda v: pa.array(v).dictionary_encode(),
    "a dictionary with long places": lambda v: (
        pa.array(v).dictionary_encode().cast(pa.dictionary(pa.int64(), pa.string()))
    ),
    "a dictionary of long text": lambda v: pa.array(v, pa.large_string()).dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_one_bad_byte_beside_any_kind_of_text(office: ReleaseOffice, kind: str) -> None:
    """A bad byte in one column leads to a reader that is slower; all other columns must be the same to it."""
    runs = []
    for name, bad in {"fine": [], "dirty": [b"\xff"]}.items():
        other = [b"a"] * 3 + bad
        table = pa.table({**people(COLUMNS[kind](GOOD + ["farm"] * len(bad))), "other": text(other)})
        pq.write_table(table, office.folder / f"{name}.parquet", row_group_size=2)
        runs.append(
            office.run(str(office.folder / f"{name}.parquet"), codes={"sector": ["farm", "shop"], "other": "a"})
        )
    assert_own_cell_only(*runs)
    assert runs[0].occupied() == {("farm", "a"): 2, ("shop", "a"): 1}


def test_one_bad_byte_within_a_dictionary(office: ReleaseOffice) -> None:
    """A dictionary is of all records together: one bad entry of it is one record's."""
    runs = []
    for name, bad in {"fine": [], "dirty": [b"\xff"]}.items():
        words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, *(2 for _ in bad)]), text([b"farm", b"shop", *bad]))
        table = pa.table(people(words))
        pq.write_table(table, office.folder / f"{name}.parquet")
        runs.append([office.run(str(office.folder / f"{name}.parquet")), office.run(frame=table)])
    for fine, dirty in zip(*runs, strict=True):
        assert_own_cell_only(fine, dirty)
        assert fine.occupied() == {FARM: 2, SHOP: 1}


TYPES = {
    "enum": "(CASE WHEN i % 2 = 0 THEN 'farm' ELSE 'shop' END)::ENUM('farm', 'shop')",
    "json": "'1'::JSON",
    "float": "(i % 2)::FLOAT",
    "hugeint": "(i % 2)::HUGEINT",
    "decimal": "(i % 2)::DECIMAL(9, 0)",
    "uuid": "'00000000-0000-0000-0000-000000000001'::UUID",
    "date": "DATE '2020-01-01'",
    "boolean": "i % 2 = 0",
    "unsigned": "(i % 2)::UBIGINT",
}


@pytest.mark.parametrize("kind", TYPES)
def test_one_bad_byte_beside_any_type_of_duckdb(office: ReleaseOffice, kind: str) -> None:
    """What DuckDB wrote as Parquet is the same to both readers, whatever its types are."""
    fine, dirty = (office.folder / f"{name}.parquet" for name in ("fine", "dirty"))
    with duckdb.connect() as connection:
        columns = (
            f"'p' || i AS person_id, {TYPES[kind]} AS sector, CASE WHEN i = 3 THEN 'QQQQ' ELSE 'aaaa' END AS other"
        )
        connection.execute(f"COPY (SELECT {columns} FROM range(4) AS t(i)) TO '{fine}' (COMPRESSION uncompressed)")
    dirty.write_bytes(fine.read_bytes().replace(b"QQQQ", b"Q\xff\xfeQ"))
    codes = {"sector": ["farm", "shop", "1", "true", "2020-01-01"], "other": ["aaaa"]}
    assert_own_cell_only(office.run(str(fine), codes=codes), office.run(str(dirty), codes=codes))
