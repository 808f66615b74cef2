"""Neighbouring data on both engines: the same bytes from each, and one record changes only its own cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.engines import Bureau, Spark
from support.neighbouring_releases import ReleaseOffice, assert_own_cell_only, changed_cells

SHOP = ("shop",)
BOUNDS = {"low": "0", "high": "10", "outside": "drop"}
ESTIMATES = {"method": "sensitivity", "statistic": {"name": "mean", "of": "v"}, "variables": {"v": BOUNDS}}


@pytest.fixture
def office(tmp_path: Path) -> ReleaseOffice:
    return ReleaseOffice(tmp_path / "office")


def written(folder: Path, values: Any, last: Any, kind: pa.DataType, **options: Any) -> list[str]:
    """Farmers with these values and one shopkeeper beside them, in one row group: without the latter, and with."""
    paths = [folder / "without.parquet", folder / "with.parquet"]
    for path, more in zip(paths, ([], [last]), strict=True):
        every = [*values, *more]
        table = {
            "person_id": [f"p{i}" for i in range(len(every))],
            "sector": ["farm"] * len(values) + ["shop"] * len(more),
            "v": pa.array(every, kind),
        }
        pq.write_table(pa.table(table), path, **options)
    return [str(path) for path in paths]


# Values of the farmers at a bound that a reader may leave out by what Parquet lists about a whole row group.
BORDERS: dict[str, tuple[list[Any], Any, pa.DataType, dict[str, Any]]] = {
    "negative zeros": ([-0.0] * 2_000, 5.0, pa.float64(), {}),
    "negative zeros, plainly": ([-0.0] * 2_000, 5.0, pa.float64(), {"use_dictionary": False}),
    "negative zeros without statistics": ([-0.0] * 2_000, 5.0, pa.float64(), {"write_statistics": False}),
    "short negative zeros": ([-0.0] * 2_000, 5.0, pa.float32(), {}),
    "not a number": ([float("nan"), 1.0] * 1_000, 5.0, pa.float64(), {}),
    "ten": ([10.0] * 2_000, 5.0, pa.float64(), {}),
    "whole numbers": ([0, 10] * 1_000, 5, pa.int64(), {}),
    "text": (["0", "10", "-0"] * 700, "5", pa.string(), {}),
}


@pytest.mark.parametrize(
    "values", [pytest.param(name, marks=[] if name == "negative zeros" else pytest.mark.full) for name in BORDERS]
)
def test_one_value_decides_about_no_other(office: ReleaseOffice, spark: Spark, values: str) -> None:
    """Spark handed "v is at least 0" to the reader of Parquet, to which −0.0 is less than 0: a row group whose
    dictionary has nothing but −0.0 was left out, unless one other record in it had a larger value. All farmers hung on
    one shopkeeper."""
    farmers, last, kind, options = BORDERS[values]
    paths = written(office.folder, farmers, last, kind, **options)
    for session in (None, spark.session):
        runs = [office.run(path, table=ESTIMATES, delta="0.01", session=session) for path in paths]
        assert_own_cell_only(*runs, SHOP)
        assert changed_cells(*runs) == {SHOP: 1}


@pytest.mark.parametrize("name", ["without", pytest.param("with", marks=pytest.mark.full)])
def test_both_engines_publish_the_same_bytes_of_negative_zeros(tmp_path: Path, spark: Spark, name: str) -> None:
    """Under one test key every file of a release is the same, to the byte, on either engine."""
    bureau = Bureau(tmp_path / "bureau")
    written(bureau.folder, [-0.0] * 2_000, 5.0, pa.float64())
    spec = {
        "source": {"records": f"{name}.parquet"},
        "unit": {"person": "person_id", "max_records": 1},
        "domains": {"sector": {"values": ["farm", "shop"]}},
        "tables": [{"name": "t", "by": ["sector"], "epsilon": "1", "delta": "0.01", **ESTIMATES}],
    }
    expected, actual = bureau.published(spec), bureau.published(spec, spark.session)
    assert [file for file in expected if expected[file] != actual.get(file)] == []


def columns(persons: pa.Array, **more: Any) -> pa.Table:
    return pa.table({"person_id": persons, "sector": ["farm", "shop"][: len(persons)], **more})


FOLDERS: dict[str, Callable[[], list[pa.Table]]] = {
    "persons that are doubles": lambda: [columns(pa.array([1.0, 2.0]))],
    "persons that are floats": lambda: [columns(pa.array([1, 2], pa.float32()))],
    "persons that are decimals": lambda: [columns(pa.array([1, 2], pa.decimal128(20, 2)))],
    "whole decimals": lambda: [columns(pa.array([1, 2], pa.decimal128(20, 0)))],
    "columns that differ in case": lambda: [
        columns(pa.array(["1", "2"]), SECTOR=["shop", "farm"]).select(["person_id", "SECTOR", "sector"]),
        columns(pa.array(["3", "4"]), SECTOR=["shop", "farm"]).select(["person_id", "sector", "SECTOR"]),
    ],
    "a file with nothing but nulls": lambda: [
        columns(pa.array(["1", "2"])),
        pa.table({"person_id": ["3"], "sector": pa.nulls(1)}),
    ],
    "whole and real numbers": lambda: [
        pa.table({"person_id": ["1"], "sector": [1]}),
        pa.table({"person_id": ["2"], "sector": [1.0]}),
    ],
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_both_engines_read_or_refuse_alike(office: ReleaseOffice, spark: Spark, kind: str) -> None:
    """Persons that are inexact numbers are refused by type on both; other files are read alike on both, by the exact
    names of their columns, or refused on both, by their schema."""
    folder = office.folder / "files"
    folder.mkdir()
    for i, table in enumerate(FOLDERS[kind]()):
        pq.write_table(table, folder / f"{i}.parquet")
    codes = {"sector": ["farm", "shop", "1"]}
    one, other = (office.run(str(folder), codes=codes, session=session) for session in (None, spark.session))
    assert not one.stopped
    assert not other.stopped
    assert one.cells == other.cells
    assert bool(one.refused) == bool(other.refused)
    if kind.startswith("persons"):
        assert "person_id" in one.refused
        assert "person_id" in other.refused
    if kind.startswith("columns") and one.complete:
        assert one.occupied() == {("farm",): 2, ("shop",): 2}


def test_files_at_a_uri_that_disagree_about_a_type_are_refused_before_they_are_read(
    office: ReleaseOffice, spark: Spark
) -> None:
    """A file whose only record has no id has another type: Spark met it in the middle, or not, by their order."""
    data = office.folder / "data"
    settings = spark.session.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.default.link./data", f"file://{data}")
    actual = []
    for name in ("0.parquet", "2.parquet"):
        data.mkdir()
        pq.write_table(pa.table({"person_id": pa.nulls(1), "sector": ["farm"]}), data / name)
        pq.write_table(pa.table({"person_id": [1, 2], "sector": ["farm", "shop"]}), data / "1.parquet")
        actual.append(office.run("viewfs://default/data", session=spark.session))
        for path in data.iterdir():
            path.unlink()
        data.rmdir()
    assert actual[0] == actual[1]
    assert "disagree about a column's type" in f"{actual[0].refused}{actual[0].stopped}"
    assert actual[0].spent == 0
    data.mkdir()
    pq.write_table(pa.table({"person_id": [1, 2], "sector": ["farm", "shop"]}), data / "1.parquet")
    assert office.run("viewfs://default/data", session=spark.session).occupied() == {("farm",): 1, SHOP: 1}
