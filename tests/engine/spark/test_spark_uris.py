"""Files below a URI, which Spark lists and decodes: the same files as on a local path, and no value stops a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine import open_engine
from discreet.errors import EngineError, SourceError
from discreet.spec import FileSource
from support.engines import Bureau, Spark, as_uri

NINE, THIRTY = pa.table({"g": ["a"] * 9}), pa.table({"g": ["a"] * 30})


@pytest.fixture
def bureau(tmp_path: Path) -> Bureau:
    return Bureau(tmp_path / "bureau")


def written(table: pa.Table, path: Path, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def counted(source: str, codes: list[str]) -> dict[str, Any]:
    """Counts of one column, which every source of these tests has."""
    return {
        "source": {"f": {"path": source, "format": "parquet"}},
        "unit": "record",
        "domains": {"g": {"values": codes, "undeclared": "other"}},
        "tables": [{"name": "t", "method": "counts", "by": ["g"], "epsilon": "1"}],
    }


def both(bureau: Bureau, spark: Spark, path: Path, local: Path | None = None, codes: tuple[str, ...] = ("a",)) -> None:
    """A release of a URI is that of a local path."""
    expected = bureau.published(counted(str(local or path), [*codes]))
    assert bureau.published(counted(as_uri(spark, path), [*codes]), spark.session) == expected


# --- which files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["[a].parquet", "{a,b}.parquet", "a?.parquet", "a*.parquet", "a\\b.parquet"])
def test_a_name_is_no_pattern_where_a_file_is_called_so(bureau: Bureau, spark: Spark, name: str) -> None:
    """Another file that the pattern matches was released in its place."""
    folder = bureau.folder / "files"
    for other in ("a.parquet", "b.parquet", "ab.parquet"):
        written(THIRTY, folder / other)
    both(bureau, spark, written(NINE, folder / name))


@pytest.mark.parametrize("pattern", ["*/a.parquet", "_temporary/*.parquet", "*.parquet"])
def test_a_pattern_finds_no_leftovers_that_it_does_not_spell_out(bureau: Bureau, spark: Spark, pattern: str) -> None:
    folder = bureau.folder / "files"
    for place in ("x/a.parquet", "_temporary/a.parquet", "b.parquet"):
        written(NINE if place.startswith("x") else THIRTY, folder / place)
    both(bureau, spark, folder / pattern)


def test_names_mean_nothing(bureau: Bureau, spark: Spark) -> None:
    """In folders and in files: not to a pattern, not as an escape, not as a column."""
    root, rows = bureau.folder / "a b,[c]{d,e}%41", [str(i % 7) for i in range(50)]
    for name in ("g=03/a b,.parquet", "x[1]{2,3}*?.parquet", "%41#$;'\".parquet", "ü\\n.parquet", "g=04/z.parquet"):
        written(pa.table({"g": rows}), root / name)
    both(bureau, spark, root, codes=("0", "1", "03", "04"))


def test_a_pattern_means_files_alone(bureau: Bureau, spark: Spark) -> None:
    written(NINE, bureau.folder / "d" / "x1.parquet")
    written(NINE, bureau.folder / "d" / "x2.parquet")
    written(THIRTY, bureau.folder / "d" / ".x3.parquet")
    written(THIRTY, bureau.folder / "d" / "x4" / "a.parquet")
    both(bureau, spark, bureau.folder / "d" / "*x*")


@pytest.mark.parametrize("folder", ["_temporary/0", ".stage", "year=1/_old", "_metadata_old", "_x=1"])
def test_what_lies_in_a_hidden_folder_is_left_out(bureau: Bureau, spark: Spark, folder: str) -> None:
    """What a job has left that wrote here and failed."""
    written(NINE, bureau.folder / "files" / "year=1" / "a.parquet")
    clean = written(NINE, bureau.folder / "clean.parquet")
    written(THIRTY, bureau.folder / "files" / folder / "b.parquet")
    (bureau.folder / "files" / "_SUCCESS").touch()
    both(bureau, spark, bureau.folder / "files", clean)


@pytest.mark.parametrize("name", ["_h.parquet", ".h.parquet", "h.parquet._COPYING_"])
def test_a_file_that_spark_passes_over_is_refused_by_its_name(bureau: Bureau, spark: Spark, name: str) -> None:
    """A release of no records was published, and its ε spent."""
    path = written(NINE, bureau.folder / "files" / name)
    with pytest.raises(SourceError, match=f"Spark ignores files with names like '{name}'"):
        bureau.published(counted(as_uri(spark, path), ["a"]), spark.session)
    if name.endswith("_COPYING_"):
        with pytest.raises(SourceError, match="Spark ignores"):
            bureau.published(counted(as_uri(spark, path.parent), ["a"]), spark.session)


def test_an_empty_file_and_no_file_are_refused(bureau: Bureau, spark: Spark) -> None:
    path = written(NINE, bureau.folder / "files" / "a.parquet")
    path.with_name("b.parquet").touch()
    for place, told in ((path.parent, "a file is empty"), (path.parent / "c.parquet", "does not exist")):
        with pytest.raises(SourceError, match=told):
            bureau.published(counted(as_uri(spark, place), ["a"]), spark.session)


def test_a_change_below_a_uri_is_noticed(spark: Spark, tmp_path: Path) -> None:
    path = written(NINE, tmp_path / "files" / "a.parquet")
    with open_engine("duckdb", spark.session) as engine:
        engine.open(FileSource(path=as_uri(spark, path.parent)), tmp_path, ["g"])
        engine.check_unchanged()
        written(NINE, path.with_name("b.parquet"))
        with pytest.raises(SourceError, match="changed while it was read"):
            engine.check_unchanged()


# --- what is in them ------------------------------------------------------------------------------------------------


def decimals(precision: int, values: list[int]) -> pa.Array:
    """Decimals, also those of more digits than their type has."""
    content = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return pa.Array.from_buffers(pa.decimal128(precision, 0), len(values), [None, pa.py_buffer(content)])


@pytest.mark.parametrize("stored", [False, True], ids=["bytes", "integers"])
def test_a_decimal_with_too_many_digits_stops_nothing(bureau: Bureau, spark: Spark, stored: bool) -> None:
    """Spark's reader stopped at one, so that a release told that it is there: the column is refused by its type, with
    and without; on a local path both are read."""
    told = []
    for name, values in (("without", [7] * 20), ("with", [7] * 20 + [10**17])):
        table = pa.table({"g": decimals(15, values)})
        path = written(table, bureau.folder / f"{name}.parquet", store_decimal_as_integer=stored)
        expected = bureau.published(counted(str(path), ["7"]))
        assert bureau.published(counted(str(path), ["7"]), spark.session) == expected
        with pytest.raises(SourceError, match="column 'g' is of type decimal") as refusal:
            bureau.published(counted(as_uri(spark, path), ["7"]), spark.session)
        told.append(str(refusal.value).replace(str(path), ""))
    assert told[0] == told[1]


@pytest.mark.parametrize("day", [0, -(2**31)])
def test_a_date_of_an_old_spark_stops_nothing(bureau: Bureau, spark: Spark, day: int) -> None:
    """Spark took it for one of the Julian calendar and could not convert it, or moved it by days."""
    table = pa.table({"g": pa.array([0] * 9 + [day], pa.int32()).view(pa.date32())})
    path = written(table.replace_schema_metadata({"org.apache.spark.version": "2.4.5"}), bureau.folder / "d.parquet")
    expected = bureau.published(counted(str(path), ["1970-01-01"]))
    assert bureau.published(counted(str(path), ["1970-01-01"]), spark.session) == expected
    with pytest.raises(SourceError, match=r"column 'g' is of type date \(below a URI Spark decodes it"):
        bureau.published(counted(as_uri(spark, path), ["1970-01-01"]), spark.session)


def test_a_column_of_a_refused_type_that_nobody_wants_does_not_matter(bureau: Bureau, spark: Spark) -> None:
    both(bureau, spark, written(NINE.append_column("x", decimals(5, [10**9] * 9)), bureau.folder / "a.parquet"))


def test_every_encoding_is_read(bureau: Bureau, spark: Spark) -> None:
    """A writer may choose one by the values: Spark's own reader does not know them all."""
    table = pa.table({"g": [7.0] * 9 + [8.0]})
    path = bureau.folder / "a.parquet"
    both(bureau, spark, written(table, path, use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT"), codes=("7",))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16()], ids=str)
def test_numbers_wider_than_their_type_stop_nothing(bureau: Bureau, spark: Spark, kind: pa.DataType) -> None:
    """Whoever wrote 65799 as a number of 8 bits; Arrow and Spark take the lowest bits."""
    options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    path = written(pa.table({"g": pa.array([7] * 20, kind)}), bureau.folder / "a.parquet", **options)
    content, seven = path.read_bytes(), (7).to_bytes(4, "little")
    assert seven * 20 in content
    path.write_bytes(content.replace(seven * 20, (65799).to_bytes(4, "little") + seven * 19))
    both(bureau, spark, path, codes=("7", "263"))


# --- settings -------------------------------------------------------------------------------------------------------

TURNED = {
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
}


@pytest.fixture
def turned(spark: Spark) -> Iterator[None]:
    """Settings of a context that its sessions begin with."""
    conf = spark.session.sparkContext._jsc.sc().conf()
    for key, value in TURNED.items():
        conf.set(key, value)
        spark.session.conf.set(key, value)
    yield
    for key in TURNED:
        conf.remove(key)
        spark.session.conf.unset(key)


@pytest.mark.usefixtures("turned")
def test_settings_of_a_session_stop_no_release(bureau: Bureau, spark: Spark) -> None:
    """How its SQL reads `GROUP BY 1` is a session's own matter."""
    path = written(pa.table({"g": ["a", "b"] * 9, "p": [str(i % 5) for i in range(18)]}), bureau.folder / "a.parquet")
    person = {"person": "p", "max_records": 2}
    expected = bureau.published({**counted(str(path), ["a"]), "unit": person})
    assert bureau.published({**counted(as_uri(spark, path), ["a"]), "unit": person}, spark.session) == expected
    frame = {**counted("", ["a"]), "unit": person, "source": {"f": {"path": ""}}}
    read = spark.session.read.parquet(str(path))
    actual = bureau.published(frame, spark.session, frame=read)
    assert actual["t.simulation.csv"] == expected["t.simulation.csv"]


def test_bytes_are_no_text_whatever_the_settings(bureau: Bureau, spark: Spark, turned: None) -> None:
    path = written(pa.table({"g": [b"a"] * 9}), bureau.folder / "a.parquet")
    for source in (str(path), as_uri(spark, path)):
        with pytest.raises((SourceError, EngineError), match=r"column 'g' is of type .*binary"):
            bureau.published(counted(source, ["a"]), spark.session)
