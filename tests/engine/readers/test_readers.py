"""Every format gives the same cells; leading zeros survive; errors are specific and never quote a record."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import lzma
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import discreet
from discreet.domain import Domain
from discreet.engine.duckdb import duckdb_engine
from discreet.engine.readers import csvfile
from discreet.engine.tabulate import bound_contributions, count_cells
from discreet.errors import SourceError
from discreet.pipeline.check import lines as lines_of
from discreet.privacy.guarantee import Record
from discreet.spec import Source, ValuesDomain
from support.engines import read, take_records
from support.hypothesis_profile import examples
from support.postgres_server import PostgresServer
from support.sas_writer import write_sas7bdat

STATES = ["01", "02", "02", "10", None, "zz"]
SEXES = ["1", "1", "2", "2", "1", "2"]
TABLE = pa.table({"state": STATES, "sex": SEXES})
DOMAIN = Domain(
    tuple(
        ValuesDomain(values=values).attributes(name, Path())[0]
        for name, values in {"state": ["01", "02", "10"], "sex": ["1", "2"]}.items()
    )
)
EXPECTED = {0: 1, 2: 1, 3: 1, 5: 1}  # 01/1, 02/1, 02/2, 10/2


def cells(source: Any, base: Path = Path(), domain: Domain = DOMAIN) -> dict[int, int]:
    if isinstance(source, str | dict):
        source = TypeAdapter(Source).validate_python(source)
    with duckdb_engine() as engine:
        table = take_records(engine, source, base, [domain], Record()).table
        rows = bound_contributions(engine, table, [domain], Record(), bytes(16))
        out: dict[int, int] = {}
        for batch in engine.batches(count_cells(engine, rows, domain)):
            out.update(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))
        return out


def test_parquet_file_folder_and_glob(tmp_path: Path) -> None:
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 3), tmp_path / "parts" / "a.parquet")
    pq.write_table(TABLE.slice(3), tmp_path / "parts" / "deep" / "b.parquet")
    pq.write_table(TABLE, tmp_path / "all.parquet")
    for path in ("all.parquet", "parts", "parts/**/*.parquet"):
        assert cells(path, tmp_path) == EXPECTED, path


LEFT_OVER = (".ipynb_checkpoints/a.parquet", "_temporary/0/attempt_1/a.parquet", "_SUCCESS", "x/_staging/y/a.parquet",
             "x/.hidden/a.parquet", "x/_a.parquet", ".a.parquet.crc")  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_programs_leave_in_a_folder_is_no_record(tmp_path: Path, name: str) -> None:
    """Files of a task that failed were read, and each of their records counted twice."""
    (tmp_path / "_parts" / "x").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "_parts" / "x" / "a.parquet")
    path = tmp_path / "_parts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(TABLE, path)
    for source in ("_parts", "_parts/**", "_parts/**/*.parquet"):
        assert cells({"path": source, "format": "parquet"}, tmp_path) == EXPECTED


def test_what_begins_with_a_mark_is_read_where_the_declaration_says_so(tmp_path: Path) -> None:
    (tmp_path / ".cache" / "_raw").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / ".cache" / "_raw" / "_a.parquet")
    for source in (".cache/_raw/_a.parquet", ".cache/_raw/_*.parquet", ".cache/_r*/_a*"):
        assert cells({"path": source, "format": "parquet"}, tmp_path) == EXPECTED
    with pytest.raises(SourceError, match="does not exist"):
        cells({"path": ".cache", "format": "parquet"}, tmp_path)


def test_csv_keeps_leading_zeros(tmp_path: Path) -> None:
    pcsv.write_csv(TABLE, tmp_path / "x.csv")
    assert cells("x.csv", tmp_path) == EXPECTED
    (tmp_path / "bare.csv").write_text("state,sex\n01,1\n02,1\n02,2\n10,2\n,1\nzz,2\n")
    assert cells("bare.csv", tmp_path) == EXPECTED


def test_stata_text_and_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"state": [s or "" for s in STATES], "sex": [1, 1, 2, 2, 1, 2]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), variable_value_labels={"sex": {1: "woman", 2: "man"}})
    assert cells("x.dta", tmp_path) == EXPECTED
    # as labels the codes 1 and 2 no longer occur
    assert cells({"path": "x.dta", "labels": "text"}, tmp_path) == {}


def test_stata_value_labels_as_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"state": ["01", "02"], "sex": [7, 8]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), variable_value_labels={"sex": {7: "1", 8: "2"}})
    assert cells({"path": "x.dta", "labels": "text"}, tmp_path) == {0: 1, 3: 1}


def test_sas_where_every_number_is_a_double(tmp_path: Path) -> None:
    columns: dict[str, list[str | float | None]] = {"state": list(STATES), "sex": [float(s) for s in SEXES]}
    write_sas7bdat(tmp_path / "x.sas7bdat", columns)
    assert cells("x.sas7bdat", tmp_path) == EXPECTED


def test_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.engine.readers.statistical.CHUNK_ROWS", 2)
    write_sas7bdat(tmp_path / "x.sas7bdat", {"state": list(STATES), "sex": list(SEXES)})
    assert cells("x.sas7bdat", tmp_path) == EXPECTED


def test_duckdb_table(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.register("t", TABLE)
        connection.execute("CREATE TABLE people AS FROM t")
    assert cells({"duckdb": "x.duckdb", "table": "people"}, tmp_path) == EXPECTED
    with pytest.raises(SourceError, match="DuckDB"):
        cells({"duckdb": "x.duckdb", "table": "nobody"}, tmp_path)


@pytest.mark.parametrize("make", [lambda t: t, pl.from_arrow, lambda t: t.to_pandas(), lambda t: t.to_reader()])
def test_any_arrow_frame(make: Any) -> None:
    assert cells(make(TABLE)) == EXPECTED


def test_duckdb_relation() -> None:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        assert cells(connection.sql("FROM t")) == EXPECTED


def test_integers_and_booleans_are_codes() -> None:
    domain = Domain(tuple(ValuesDomain(values=["1", "true"]).attributes("x", Path())))
    assert cells(pa.table({"x": [1, 1, 7]}), domain=domain) == {0: 2}
    assert cells(pa.table({"x": [True, True, False]}), domain=domain) == {1: 2}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.parquet", b"SECRET not parquet", "not readable as Parquet"),
        ("x.sas7bdat", b"SECRET not sas", "not readable as SAS"),
        ("x.dta", b"SECRET not stata", "not readable as Stata"),
        ("x.csv", b"", "header"),
        ("x.weird", b"SECRET", "format"),
    ],
)
def test_unreadable_files_are_named_and_not_quoted(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=says) as refusal:
        cells(name, tmp_path)
    assert "SECRET" not in str(refusal.value)
    assert name in str(refusal.value)


def test_missing_file_column_and_wrong_type(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        cells("nowhere.parquet", tmp_path)
    with pytest.raises(SourceError, match="has no column 'state'"):
        cells(TABLE.rename_columns(["stat", "sex"]))
    with pytest.raises(SourceError, match="cannot be matched with codes"):
        cells(TABLE.set_column(0, "state", pa.array([[s] for s in SEXES])))
    with pytest.raises(SourceError, match="cannot be converted to Arrow"):
        cells(object())


# --- a real PostgreSQL server ---


@pytest.fixture(scope="module")
def postgres(server: PostgresServer) -> str:
    values = ", ".join(f"({'NULL' if s is None else repr(s)}, {x})" for s, x in zip(STATES, SEXES, strict=True))
    server.admin("CREATE TABLE people (state text, sex int)", f"INSERT INTO people VALUES {values}")
    return server.url()


def test_postgresql_table(postgres: str) -> None:
    assert cells({"postgres": postgres, "table": "people"}) == EXPECTED
    assert cells({"postgres": postgres, "table": "public.people"}) == EXPECTED
    with pytest.raises(SourceError, match="PostgreSQL"):
        cells({"postgres": postgres, "table": "no such; DROP TABLE people"})
    assert cells({"postgres": postgres, "table": "people"}) == EXPECTED


BROKEN = {
    "too many fields": "02,2,9,9\n",
    "too few fields": "zz\n",
    "too few fields, not UTF-8": b"M\xfcller\n",
    "broken quote": '"02"x,2\n',
    "unclosed quote": 'x,"02\n',
    "quote in the middle": 'x"y,"z\n',
    "carriage return": "zz\r",
    "nul": b"\x00,\x00\n",
    "not UTF-8": b"\xff\xfe,2\n",
    "blank line": "\n",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_csv_line_never_stops_a_release(tmp_path: Path, fault: str) -> None:
    """It is left out, or its missing fields are null; its neighbours are read as if it were not there."""
    line = BROKEN[fault]
    good = b"state,sex\n01,1\n02,1\n%b02,2\n10,2\n,1\nzz,2\n"
    (tmp_path / "x.csv").write_bytes(good % (line if isinstance(line, bytes) else line.encode()))
    assert cells("x.csv", tmp_path) == EXPECTED


def test_csv_delimiters_are_declared_and_quotes_understood(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('state;sex\n"01";1\n02;1\n02;2\n10;2\n')
    assert cells({"path": "x.csv", "delimiter": ";"}, tmp_path) == EXPECTED
    (tmp_path / "x.tsv").write_text("state\tsex\n01\t1\n02\t1\n02\t2\n10\t2\n")
    assert cells("x.tsv", tmp_path) == EXPECTED
    (tmp_path / "y.csv").write_text('note,state,sex\n"a, ""b""",01,1\n,02,1\n,02,2\n,10,2\n')
    assert cells("y.csv", tmp_path) == EXPECTED
    with gzip.open(tmp_path / "z.csv.gz", "wt") as file:
        file.write("state,sex\n01,1\n02,1\n02,2\n10,2\n")
    assert cells("z.csv.gz", tmp_path) == EXPECTED


def test_csv_columns_go_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("state,sex\n01,1\n02,1\n")
    (tmp_path / "b.csv").write_text("sex,state\n2,02\n2,10\n")
    assert cells("*.csv", tmp_path) == EXPECTED


def test_check_tells_how_many_lines_were_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('state,sex\n01,1\n02\n02,"2\n10,2,2\n')
    with duckdb_engine() as engine:
        table = take_records(engine, TypeAdapter(Source).validate_python("x.csv"), tmp_path, [DOMAIN], Record()).table
        for _ in range(2):
            assert engine.unreadable == 3  # however often it is looked at
            assert sum(batch.num_rows for batch in engine.batches(table)) == 1


def zipped(content: bytes) -> bytes:
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("x.csv", content)
        return made.getvalue()


PACKED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
    ".zip": zipped,
}
LINES = "state,sex\n01,1\n02,1\n02,2\n10,2\n"


@pytest.mark.parametrize("name", ["z.CSV.GZ", "z.txt.gz", "z.tsv.gz"])
def test_csv_that_gzip_packed_is_read_whatever_its_name_is_written_like(tmp_path: Path, name: str) -> None:
    lines = LINES.replace(",", "\t") if ".tsv" in name else LINES
    (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
    assert cells(name, tmp_path) == EXPECTED


@pytest.mark.parametrize("ending", [*(e for e in PACKED if e != ".gz"), ".ZIP", ".7z", ".tar"])
@pytest.mark.parametrize("source", ["x.csv{}", "*{}", {"path": "x.csv{}", "format": "csv"}, "."], ids=str)
def test_other_packed_files_are_refused_by_name(tmp_path: Path, ending: str, source: Any) -> None:
    (tmp_path / f"x.csv{ending}").write_bytes(PACKED.get(ending, bytes)(LINES.encode()))
    (tmp_path / "y.csv").write_text(LINES)
    source = source.format(ending) if isinstance(source, str) else {**source, "path": source["path"].format(ending)}
    with pytest.raises(SourceError) as caught:
        cells(source, tmp_path)
    assert f"x.csv{ending} is compressed as {ending.lower()}. Decompress it" in str(caught.value)
    assert ".csv.gz" in caught.value.do


def test_a_damaged_gzip_file_is_refused_in_our_words(tmp_path: Path) -> None:
    whole = gzip.compress((LINES + "".join(f"{i},{i * i}\n" for i in range(9999))).encode())
    for damaged in (
        whole[:40],
        whole[:-9],
        b"x" + whole,
        whole[:12] + b"\xff" * 40 + whole[52:],
        whole[:-8] + bytes(8),
    ):
        (tmp_path / "x.csv.gz").write_bytes(damaged)
        with pytest.raises(SourceError, match="is not readable as CSV"):
            cells("x.csv.gz", tmp_path)


@pytest.mark.parametrize("name", ["x.parquet.gz", "x.sas7bdat.gz", "x.gz"])
def test_only_csv_is_read_from_gzip(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(LINES.encode()))
    with pytest.raises(SourceError, match=r"is compressed as \.gz\. Decompress it"):
        cells(name, tmp_path)


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_file_that_calls_itself_csv_is_refused_by_its_packer(tmp_path: Path, ending: str) -> None:
    packed = PACKED[ending](LINES.encode())
    (tmp_path / "x.csv").write_bytes(packed)
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(packed))
    for name in ("x.csv", "y.csv.gz"):
        with pytest.raises(SourceError, match=f"{name} is not CSV, but compressed with .*Decompress it"):
            cells(name, tmp_path)


def test_check_counts_lines_that_end_inside_an_open_quote_apart(tmp_path: Path) -> None:
    """A field with a line break makes two lines of its record, and whatever the second holds is a record of its own."""
    lines = ['state,sex', '"01",1', '"02', '01",1', '"a""', 'x,"', '"02"x,1', '02', '"01"",2', '10,"2"']  # fmt: skip
    (tmp_path / "x.csv").write_text("\n".join(lines))
    spec = {"release": "r", "asset": "a", "source": {"x": str(tmp_path / "x.csv")}, "unit": "record",
            "domains": {"state": {"values": ["01", "10"], "undeclared": "other"}},
            "tables": [{"name": "t", "method": "counts", "by": ["state"], "epsilon": "1"}]}  # fmt: skip
    release = discreet.release(spec)
    actual = release.check()
    assert (actual.records, actual.unreadable, actual.unclosed) == (3, 6, 4)
    said = "\n".join(lines_of(actual, release.spec))
    assert "2 lines with broken quotes or another number of fields left out" in said
    assert "4 lines with an open quote at the end left out  <-- the file may have records over several lines" in said


@pytest.mark.parametrize("limit", [0, 10, 1 << 20])
def test_the_length_of_a_quoted_field_is_nobody_elses_limit(tmp_path: Path, limit: int) -> None:
    """Python's reader leaves out fields of more than 131,072 letters, or of more than any library says."""
    before = csv.field_size_limit(limit)
    try:
        for note in ("", "é" * 20, "x" * 200_000):
            (tmp_path / "x.csv").write_text(f'"note",state,sex\n"{note}",01,1\n"",02,1\n,02,2\n"",10,2\n')
            assert cells("x.csv", tmp_path) == EXPECTED
        assert csv.field_size_limit() == limit
    finally:
        csv.field_size_limit(before)


PIECES = st.lists(st.sampled_from(['"', '""', "|", "a", " ", "é", "\x00", "\\"]), max_size=9).map("".join)


@given(PIECES, st.sampled_from('|,;"\t ]^-\\.a'.replace('"', "")))
@examples(500)
def test_fields_of_a_line_are_those_that_pythons_reader_finds(line: str, delimiter: str) -> None:
    line = line.replace("|", delimiter)
    try:
        (expected,) = list(csv.reader([line], delimiter=delimiter, strict=True)) if line else [[""]]
    except csv.Error:
        expected = []
    assert csvfile._quoted(line.encode(), delimiter) == [text.encode() or None for text in expected]
    if not expected:
        with pytest.raises(csv.Error) as refusal:
            next(csv.reader([line], delimiter=delimiter, strict=True))
        unclosed = csvfile._grammar(delimiter)[1].fullmatch(line.encode()) is not None
        assert unclosed == ("unexpected end of data" in str(refusal.value))


def test_csv_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.engine.readers.csvfile.BLOCK", 7)
    (tmp_path / "x.csv").write_text('state,sex\r\n01,1\r\n"02",1\r\n02,"2"\r\n10,2\r\nzz,2')
    assert cells("x.csv", tmp_path) == EXPECTED


def test_lazy_polars_frame() -> None:
    assert cells(pl.from_arrow(TABLE).lazy()) == EXPECTED  # type: ignore[union-attr]


def test_adding_one_value_of_any_kind_changes_one_cell_by_one() -> None:
    """No value of a pandas object column decides how another one is read."""
    domain = Domain(
        tuple(ValuesDomain(values=["1", "true", "x", "2020-01-01"], undeclared="other").attributes("v", Path()))
    )

    def count(values: list[Any]) -> dict[int, int]:
        return cells(pd.DataFrame({"v": pd.Series(values, dtype=object)}), domain=domain)

    base = [1, 1.0, True, "x", datetime.date(2020, 1, 1), None]
    before = count(base)
    assert before == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1}
    odd = [
        "x",
        1.0,
        True,
        2**70,
        Decimal("1"),
        b"x",
        "\ud800",
        float("nan"),
        [1],
        datetime.datetime(2020, 1, 1),
        object(),
    ]
    for value in odd:
        after = count([*base, value])
        assert sum(after.values()) == sum(before.values()) + 1
        assert all(after.get(c, 0) - n in (0, 1) for c, n in before.items())


def test_a_collation_merges_no_codes(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t (state VARCHAR COLLATE nocase, sex VARCHAR)")
        connection.execute("INSERT INTO t VALUES ('a', '1'), ('A', '1')")
    both = Domain(tuple(ValuesDomain(values=["a", "A"]).attributes("state", Path())))
    assert cells({"duckdb": "x.duckdb", "table": "t"}, tmp_path, both) == {0: 1, 1: 1}


def test_a_duckdb_table_of_further_types(tmp_path: Path) -> None:
    """A type without lossless equivalent in Arrow is refused under its own name, if the column is wanted."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TYPE region AS ENUM ('01', '02', '10')")
        connection.execute(
            "CREATE TABLE t (state region, sex UTINYINT, huge HUGEINT, moment TIMESTAMP, many INTEGER[])"
        )
        connection.execute(
            "INSERT INTO t VALUES ('01', 1, 1, now(), [1]), ('10', 2, NULL, NULL, NULL), (NULL, 1, 2, NULL, [])"
        )
    source = {"duckdb": "x.duckdb", "table": "t"}
    assert cells(source, tmp_path) == {0: 1, 5: 1}
    for column, kind in {"huge": "HUGEINT", "moment": "TIMESTAMP", "many": r"INTEGER\[\]"}.items():
        domain = Domain(tuple(ValuesDomain(values=["1"]).attributes(column, Path())))
        with pytest.raises(SourceError, match=f"column '{column}' is of type {kind}, which cannot be matched"):
            cells(source, tmp_path, domain)


def test_names_that_look_like_globs_are_read_once(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 3), tmp_path / "part0.parquet")
    pq.write_table(TABLE.slice(3), tmp_path / "part[0].parquet")
    (tmp_path / "state=03").mkdir()
    pq.write_table(TABLE.slice(0, 0), tmp_path / "state=03" / "p.parquet")
    assert cells(str(tmp_path)) == EXPECTED


def test_files_that_disagree_about_a_type_are_each_read_by_their_own(tmp_path: Path) -> None:
    """They were refused; now a value is read by the type that its own file declares, and a type that is unfit in any
    file is refused."""
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(pa.table({"state": [10, 1, None], "sex": [1.0, 2.0, 1.0]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"state": pa.array(["02"]).dictionary_encode(), "sex": [2]}), tmp_path / "c.parquet")
    assert cells(str(tmp_path)) == {**EXPECTED, 3: 2, 4: 1}  # 10/1 and 02/2 more; the number 1 is not the code 01
    pq.write_table(pa.table({"state": pa.array([], pa.list_(pa.int8())), "sex": ["1"][:0]}), tmp_path / "d.parquet")
    with pytest.raises(SourceError, match=r"column 'state' is of type list.*, which cannot be matched with codes"):
        cells(str(tmp_path))


def test_names_that_differ_in_case_are_two_columns(tmp_path: Path) -> None:
    """They were refused; now a column is found by its exact name."""
    table = TABLE.append_column("STATE", pa.array(["10"] * 6)).append_column("Sex", pa.array([None] * 6, pa.string()))
    pq.write_table(table, tmp_path / "x.parquet")
    pcsv.write_csv(table, tmp_path / "x.csv")
    for source in (table, "x.parquet", "x.csv", table.to_pandas()):
        assert cells(source, tmp_path) == EXPECTED
        upper = Domain(tuple(ValuesDomain(values=["01", "10"]).attributes("STATE", Path())))
        assert cells(source, tmp_path, upper) == {1: 6}


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    twins = pa.table([*TABLE.columns, TABLE["sex"]], names=["state", "sex", "sex"])
    (tmp_path / "x.csv").write_text("state,sex,sex\n01,1,1\n")
    pq.write_table(twins, tmp_path / "x.parquet")
    for source in (twins, twins.to_pandas(), "x.parquet"):
        with pytest.raises(SourceError, match="two columns with the same name"):
            cells(source, tmp_path)
    with pytest.raises(SourceError, match="one name for each column"):
        cells("x.csv", tmp_path)


def test_columns_of_nothing_and_bad_text_do_not_stop_a_frame() -> None:
    nulls = pa.table({"state": pa.nulls(2), "sex": ["1", "2"]})
    assert cells(nulls) == {}
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
    table = pa.table(
        {
            "state": pa.chunked_array([pa.array(["01"]), bad]),
            "sex": ["1", "1"],
            "unused": pa.array([1, 2], pa.duration("s")),
        }
    )
    assert cells(table) == {0: 1}


def test_stata_dates(tmp_path: Path) -> None:
    frame = pd.DataFrame({"state": ["01", "02"], "sex": [1.0, 2.0], "when": [21915.0, 1e9]})
    pyreadstat.write_dta(frame, str(tmp_path / "x.dta"), variable_format={"when": "%td"})
    assert cells("x.dta", tmp_path) == {0: 1, 3: 1}
    with duckdb_engine() as engine:
        table = read(engine, TypeAdapter(Source).validate_python("x.dta"), tmp_path, ["when"])
        (batch,) = engine.batches(table)
        assert batch.column(0).to_pylist() == ["2020-01-01", None]


def test_refusals_keep_no_trace_of_the_message(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"SECRET not parquet")
    with pytest.raises(SourceError) as refusal:
        cells("x.parquet", tmp_path)
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
