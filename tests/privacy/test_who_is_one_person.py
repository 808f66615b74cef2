"""Which records belong to one person depends on exact equality of identifiers.

Floating-point numbers are not: beyond 2^53 different persons have the same, and a reader that makes doubles of long
whole numbers merges persons whose numbers it cannot hold. Then one person's records push out another's, and two cells
move for one person. Such a column is refused by its type, before anything is spent, whatever its values are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from support.neighbouring_experiments import FARM, SHOP, huge, jobs
from support.neighbouring_releases import Outcome, ReleaseOffice

SECTORS = ["farm", "shop", "farm"]
MethodOutput = Callable[[Path, list[Any]], dict[str, Any]]  # a folder and persons → where the records are


@pytest.fixture
def office(tmp_path: Path) -> ReleaseOffice:
    return ReleaseOffice(tmp_path / "office")


def refused(actual: Outcome, column: str = "person_id") -> None:
    """One clear line that names the column and what to do, before anything is spent."""
    assert not actual.stopped
    assert not actual.cells, f"released: {actual.cells}"
    assert column in actual.refused
    assert re.search(r"\btext\b|Int64", actual.refused), actual.refused
    assert "\n" not in actual.refused
    assert actual.spent == 0


def arrow(persons: list[Any], kind: pa.DataType) -> pa.Table:
    return pa.table({"person_id": pa.array(persons, kind), "sector": SECTORS[: len(persons)]})


def parquet(kind: pa.DataType) -> MethodOutput:
    def made(folder: Path, persons: list[Any]) -> dict[str, Any]:
        pq.write_table(arrow(persons, kind), folder / "x.parquet")
        return {"source": str(folder / "x.parquet")}

    return made


def frame(make: Callable[[list[Any]], Any]) -> MethodOutput:
    return lambda folder, persons: {"frame": make(persons)}


def pandas(dtype: Any) -> MethodOutput:
    return frame(
        lambda persons: pd.DataFrame(
            {"person_id": pd.array(persons, dtype=dtype), "sector": SECTORS[: len(persons)]},
        )
    )


def stata(kind: str) -> MethodOutput:
    def made(folder: Path, persons: list[Any]) -> dict[str, Any]:
        actual = pd.DataFrame({"person_id": np.array(persons, kind), "sector": SECTORS[: len(persons)]})
        pyreadstat.write_dta(actual, str(folder / "x.dta"))
        return {"source": str(folder / "x.dta")}

    return made


def sas(folder: Path, persons: list[Any]) -> dict[str, Any]:
    from support.sas_writer import write_sas7bdat

    write_sas7bdat(folder / "x.sas7bdat", {"person_id": persons, "sector": [*SECTORS[: len(persons)]]})
    return {"source": str(folder / "x.sas7bdat")}


def database(kind: str) -> MethodOutput:
    def made(folder: Path, persons: list[Any]) -> dict[str, Any]:
        (folder / "x.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(folder / "x.duckdb")) as connection:
            connection.execute(f"CREATE TABLE t (person_id {kind}, sector VARCHAR)")
            for person, sector in zip(persons, SECTORS, strict=False):
                connection.execute(f"INSERT INTO t VALUES (CAST(? AS {kind}), ?)", [str(person), sector])
        return {"source": {"duckdb": str(folder / "x.duckdb"), "table": "t"}}

    return made


def categories(persons: list[Any]) -> Any:
    return pd.DataFrame({"person_id": pd.Categorical(persons), "sector": SECTORS[: len(persons)]})


def relation(persons: list[Any]) -> Any:
    return duckdb.sql(f"SELECT unnest({persons})::DOUBLE AS person_id, unnest({SECTORS[: len(persons)]}) AS sector")


REAL = [1.0, 2.0, 3.0]
INEXACT: dict[str, tuple[MethodOutput, list[Any]]] = {
    "Parquet double": (parquet(pa.float64()), REAL),
    "Parquet float": (parquet(pa.float32()), REAL),
    "Parquet half": (parquet(pa.float16()), [np.float16(x) for x in REAL]),
    "Parquet dictionary of doubles": (parquet(pa.dictionary(pa.int32(), pa.float64())), REAL),
    "Arrow double": (frame(lambda p: arrow(p, pa.float64())), REAL),
    "Arrow float": (frame(lambda p: arrow(p, pa.float32())), REAL),
    "Arrow dictionary of doubles": (
        frame(lambda p: arrow(p, pa.dictionary(pa.int32(), pa.float64()))),
        REAL,
    ),
    "pandas float64": (pandas("float64"), REAL),
    "pandas Float64": (pandas("Float64"), REAL),
    "pandas float32": (pandas("float32"), REAL),
    "pandas double[pyarrow]": (pandas(pd.ArrowDtype(pa.float64())), REAL),
    "pandas categories": (frame(categories), REAL),
    "Polars Float64": (frame(lambda p: pl.from_arrow(arrow(p, pa.float64()))), REAL),
    "Polars lazily": (frame(lambda p: pl.from_arrow(arrow(p, pa.float64())).lazy()), REAL),  # type: ignore[union-attr]
    "DuckDB relation": (frame(relation), REAL),
    "Stata double": (stata("float64"), REAL),
    "Stata float": (stata("float32"), REAL),
    "SAS": (sas, REAL),
    "DuckDB DOUBLE": (database("DOUBLE"), REAL),
    "DuckDB FLOAT": (database("FLOAT"), REAL),
    "DuckDB HUGEINT": (database("HUGEINT"), [1, 2, 3]),
    "DuckDB UHUGEINT": (database("UHUGEINT"), [1, 2, 3]),
    "DuckDB DECIMAL": (database("DECIMAL(20, 2)"), REAL),
    "Parquet decimal": (parquet(pa.decimal128(20, 1)), [Decimal(1), Decimal(2), Decimal(3)]),
    "Parquet decimal of 256 bits": (parquet(pa.decimal256(50, 2)), [Decimal(1), Decimal(2), Decimal(3)]),
    "Arrow decimal": (frame(lambda p: arrow(p, pa.decimal128(5, 2))), [Decimal(1), Decimal(2), Decimal(3)]),
}


@pytest.mark.parametrize("kind", INEXACT)
def test_inexact_numbers_do_not_identify_persons(office: ReleaseOffice, kind: str) -> None:
    """Refused by type on every source, in the same words with and without any one record: if it were by value, one
    record would decide; if it were not at all, persons would be merged."""
    make, persons = INEXACT[kind]
    actual = [office.run(**make(office.folder, some)) for some in (persons, persons[:2], [])]
    refused(actual[0])
    assert actual[1] == actual[0]
    if not kind.startswith(("DuckDB relation", "SAS", "Stata", "pandas categories")):  # no records, no file or no type
        assert actual[2] == actual[0]


EXACT: dict[str, tuple[MethodOutput, list[Any]]] = {
    "long whole numbers": (parquet(pa.int64()), [2**53, 2**53 + 1, 2**53 + 2]),
    "unsigned whole numbers": (parquet(pa.uint64()), [2**64 - 1, 2**64 - 2, 2**64 - 3]),
    "text": (parquet(pa.string()), [str(10**30 + i) for i in range(3)]),
    "pandas Int64 with one missing": (pandas("Int64"), [2**53, 2**53 + 1, None]),
    "DuckDB DECIMAL without fractions": (database("DECIMAL(38, 0)"), [10**30, 10**30 + 1, 10**30 + 2]),
    "Parquet decimal without fractions": (parquet(pa.decimal128(38, 0)), [Decimal(10**30 + i) for i in range(3)]),
    "Parquet decimal of 256 bits": (parquet(pa.decimal256(50, 0)), [Decimal(10**40 + i) for i in range(3)]),
    "DuckDB BIGINT": (database("BIGINT"), [2**53, 2**53 + 1, 2**53 + 2]),
    "DuckDB text": (database("VARCHAR"), [10**30, 10**30 + 1, 10**30 + 2]),
}


@pytest.mark.parametrize("kind", EXACT)
def test_persons_that_differ_in_the_last_digit_are_different(office: ReleaseOffice, kind: str) -> None:
    """What is exact stays allowed, and each person counts."""
    make, persons = EXACT[kind]
    actual = office.run(**make(office.folder, persons))
    assert actual.occupied() == ({FARM: 2, SHOP: 1} if None not in persons else {FARM: 1, SHOP: 1})


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT"])
def test_a_person_with_a_long_number_displaces_no_other(office: ReleaseOffice, kind: str) -> None:
    """10^30, 10^30 + 1 and 10^30 + 2 were one person: with the first one's records the others' shop was gone."""
    database = str(huge(office.folder, kind))
    for table in ("whole", "less"):
        refused(office.run({"duckdb": database, "table": table}, **jobs(office.folder)))


@pytest.mark.parametrize("unit", [{"job": "person_id"}, {"establishment": "person_id", "whole": True}])
def test_nor_jobs_and_establishments(office: ReleaseOffice, unit: dict[str, Any]) -> None:
    """Every unit that is named by a column is merged in the same way."""
    refused(office.run(frame=arrow(REAL, pa.float64()), unit={**unit, "max_records": 1}))


def looked_up(office: ReleaseOffice, one: pa.Array, other: pa.Array) -> Outcome:
    """Jobs whose workers are in another table."""
    frames = {
        "jobs": pa.table({"person_id": [f"p{i}" for i in range(len(one))], "worker": one}),
        "workers": pa.table({"worker": other, "sector": ["farm"] * len(other)}),
    }
    return office.run(dict.fromkeys(frames, ""), frame=frames, more={"join": {"workers": "worker"}})


KEYS: dict[str, tuple[pa.Array, pa.Array]] = {
    "doubles in both": (pa.array([1.0, 2.0]), pa.array([1.0, 2.0])),
    "doubles in the records": (pa.array([1.0, 2.0]), pa.array([1, 2])),
    "doubles in the other table": (pa.array([1, 2]), pa.array([1.0, 2.0])),
    "doubles and text": (pa.array(["1", "2"]), pa.array([1.0, 2.0])),
    "floats": (pa.array([1, 2], pa.float32()), pa.array([1, 2], pa.float32())),
    "decimals": (pa.array([1, 2], pa.decimal128(20, 1)), pa.array([1, 2], pa.decimal128(20, 1))),
}


@pytest.mark.parametrize("keys", KEYS)
def test_inexact_numbers_are_not_keys_of_a_lookup(office: ReleaseOffice, keys: str) -> None:
    """Where two workers' numbers become one, a record gets the columns of somebody else: the least of both."""
    refused(looked_up(office, *KEYS[keys]), "worker")


def test_keys_of_a_lookup_may_be_integers_and_text(office: ReleaseOffice) -> None:
    """What is exact stays allowed, also across types."""
    long = [2**53, 2**53 + 1]
    assert looked_up(office, pa.array(long), pa.array(long)).occupied() == {FARM: 2}
    assert looked_up(office, pa.array(long), pa.array([str(i) for i in long])).occupied() == {FARM: 2}


def test_a_key_of_128_bits_is_refused(office: ReleaseOffice) -> None:
    """The same in a DuckDB database, whose long whole numbers became doubles on their way."""
    path = office.folder / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE jobs AS SELECT 'p' || i AS person_id, i::HUGEINT AS worker FROM range(2) t(i)")
        connection.execute("CREATE TABLE workers AS SELECT i::HUGEINT AS worker, 'farm' AS sector FROM range(2) t(i)")
    sources = {name: {"duckdb": str(path), "table": name} for name in ("jobs", "workers")}
    refused(office.run(sources, more={"join": {"workers": "worker"}}), "worker")


def test_an_ibis_table_that_comes_through_pandas_is_refused(office: ReleaseOffice) -> None:
    """Ten persons with ids beyond 2^53 became one by a single record without an id: pandas makes doubles of all."""
    import sqlite3

    import ibis

    path = office.folder / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (person_id INTEGER, sector TEXT)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?)", [(2**60 + i, "farm") for i in range(10)] + [(None, "farm")]
        )
    actual = office.run(frame=ibis.sqlite.connect(path).table("t"))
    assert not actual.cells
    assert actual.spent == 0
    assert "an Ibis table on sqlite cannot be read as Arrow" in actual.refused


def test_a_unit_that_is_looked_up_is_refused(office: ReleaseOffice) -> None:
    """A key that two persons are listed for belonged to the lesser: removing her moved all his records."""
    frames = {
        "jobs": pa.table({"spell": ["k1", "k2"], "sector": ["farm", "shop"]}),
        "spells": pa.table({"spell": ["k1", "k1", "k2"], "person_id": ["zoe", "abe", "zoe"]}),
    }
    actual = office.run(dict.fromkeys(frames, ""), frame=frames, more={"join": {"spells": "spell"}})
    assert not actual.cells
    assert actual.spent == 0
    assert "'person_id', which identifies the privacy unit, is in spells" in actual.refused


def test_a_text_of_a_megabyte_is_not_an_identifier(office: ReleaseOffice) -> None:
    """It would exhaust an engine's memory; the record is dropped as others without an id are, by itself."""
    longest = "x" * 65_536
    persons = [longest, longest + "y", "x" * 1_000_000]
    actual = office.run(frame=arrow(persons, pa.large_string()))
    assert actual.occupied() == {FARM: 1}


def test_tables_that_are_looked_up_count_as_given_and_the_guarantee_says_so(office: ReleaseOffice) -> None:
    """One row of a lookup table says something about many records: not protected, and not kept silent."""
    import discreet

    spec = {
        "release": "r", "asset": "a", "source": {"jobs": "", "firms": ""}, "join": {"firms": "firm"}, "unit": "record",
        "domains": {"sector": {"values": ["farm"]}},
        "tables": [{"name": "t", "method": "counts", "by": ["sector"], "epsilon": "1"}],
    }  # fmt: skip
    opened = discreet.release(spec, ledger=discreet.ledger(office.folder / "l.sqlite"))
    assert "firms) are treated as fixed" in str(opened.plan())
    del spec["join"], spec["source"]["firms"]  # type: ignore[attr-defined]
    assert "are treated as fixed" not in str(
        discreet.release(spec, ledger=discreet.ledger(office.folder / "l.sqlite")).plan()
    )


@pytest.mark.parametrize("column", ["person_id", "worker"])
def test_labels_are_not_identifiers(office: ReleaseOffice, column: str) -> None:
    """Two codes with one label were one person, or one key: a label says what a code means, not whom."""
    path = office.folder / "x.dta"
    frame = pd.DataFrame({"person_id": [1, 2, 3], "worker": [1, 2, 2], "place": [7, 8, 8]}, dtype="int32")
    labels = {column: {1: "both", 2: "both", 3: "3"}, "place": {7: "farm", 8: "shop"}}
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    jobs = {"path": str(path), "labels": "text"}
    codes = {"place": ["farm", "shop"]}
    actual = office.run(jobs, codes=codes)
    assert actual.occupied() == {("farm",): 1, ("shop",): 2}, (actual.refused, actual.stopped)
    workers = pa.table({"worker": [1, 2], "sex": ["1", "2"]})
    frames = {"workers": workers}
    actual = office.run({"jobs": jobs, "workers": ""}, frame=frames, codes={**codes, "sex": ["1", "2"]},
                       more={"join": {"workers": "worker"}})  # fmt: skip
    assert actual.occupied() == {("farm", "1"): 1, ("shop", "2"): 2}, (actual.refused, actual.stopped)
