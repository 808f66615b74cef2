"""One suite for all methods and all engines: whatever DuckDB publishes under a test key, every engine publishes, to the
byte, however its rows and its work are cut. A method joins by one line in `method_cases`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.domain import Domain
from discreet.engine import Engine, open_engine
from discreet.engine.audit import Audit
from discreet.engine.intake.derived import CodeText, Identifier, Number
from discreet.engine.intake.normalise import texts
from discreet.engine.intake.stream import Intake
from discreet.engine.tabulate import bound_contributions, count_cells
from discreet.errors import DiscreetError, PublishError, SourceError
from discreet.noise.key import Secret
from discreet.privacy.guarantee import Person, Record
from discreet.spec import FileSource, ValuesDomain
from support.arrow_arrays import loose
from support.engines import Bureau, Spark, on_cluster, stream, take_records
from support.method_cases import (
    ONE_OF_EACH,
    UNITS,
    agency_bureau,
    cubes,
    estimates,
    jobs_by_unit,
    one_of_each,
    records,
    register_with_doubles,
    spec,
    with_zeros,
    write_records,
)

CUTS = {"whole": (1, 1 << 22), "in three": (3, 7), "in seven": (7, 40)}  # files and shuffle partitions; rows in a part


@pytest.fixture
def bureau(tmp_path: Path) -> Bureau:
    return agency_bureau(tmp_path / "bureau")


def split(table: pa.Table, folder: Path, files: int) -> Path:
    """The rows in some files, in another order, and one file without any."""
    folder.mkdir(parents=True)
    for i in range(files):
        mine = table.take(np.arange(table.num_rows - 1 - i, -1, -files))
        pq.write_table(mine, folder / f"{i}.parquet", row_group_size=50)
    pq.write_table(table.slice(0, 0), folder / "none.parquet")
    return folder


def test_spark_is_the_one_asked_for(spark: Spark) -> None:
    assert spark.session.sparkContext.master.startswith("spark://" if on_cluster() else "local[2]")


@pytest.mark.core
@pytest.mark.parametrize("method", ONE_OF_EACH)
def test_published_bytes_of_one_table(bureau: Bureau, spark: Spark, method: str) -> None:
    """The part of the test below that `make test` runs: one table of every method that reads records."""
    made, declared = one_of_each(bureau.folder, method)
    expected, actual = made.published(declared), made.published(declared, spark.session)
    assert [name for name in expected if expected[name] != actual.get(name)] == []
    assert expected.keys() == actual.keys()


SOON_JOBS = [("in three", False), ("whole", True)]
SOON = [("record", "whole"), ("person", "in three"), ("record", "in seven")]  # the others in the full suite


@pytest.mark.parametrize(
    ("unit", "cut"),
    [
        pytest.param(unit, cut, marks=[] if (unit, cut) in SOON else pytest.mark.full)
        for unit, cut in itertools.product(UNITS, CUTS)
    ],
)
def test_published_bytes(bureau: Bureau, spark: Spark, monkeypatch: pytest.MonkeyPatch, unit: str, cut: str) -> None:
    """Every method on every engine; with small parts there are many spans, many tasks, and spans without a record."""
    from discreet.engine.spark import engine as spark_engine

    pieces, part = CUTS[cut]
    for module in ("counts.method", "histograms"):
        monkeypatch.setattr(f"discreet.methods.{module}.PART", part)
    if part < 100:
        for size in (
            "tables.ROWS",
            "tables.WORDS",
            "sums.ROWS",
            "division_suppression.ROWS",
            "division_suppression.CHUNK",
        ):
            monkeypatch.setattr(f"discreet.methods.flows.{size}", part)
        monkeypatch.setattr("discreet.methods.flows.tables.THREADS", pieces)
    monkeypatch.setitem(spark_engine._SETTINGS, "spark.sql.shuffle.partitions", str(pieces))
    monkeypatch.setitem(spark_engine._SETTINGS, "spark.sql.adaptive.coalescePartitions.enabled", "false")
    expected = bureau.published(spec(unit, write_records(bureau, records())))
    assert any("/part-" in name for name in expected) == (part < 100)
    actual = bureau.published(spec(unit, split(records(), bureau.folder / "split", pieces)), spark.session)
    assert [name for name in expected if expected[name] != actual.get(name)] == []
    assert expected.keys() == actual.keys()


@pytest.mark.parametrize(
    ("cut", "one_file"),
    [
        pytest.param(cut, one_file, marks=[] if (cut, one_file) in SOON_JOBS else pytest.mark.full)
        for cut, one_file in itertools.product(CUTS, (False, True))
    ],
)
def test_published_bytes_of_jobs(
    tmp_path: Path, spark: Spark, monkeypatch: pytest.MonkeyPatch, cut: str, one_file: bool
) -> None:
    """Three tables with lookups and a duplicate worker, or one file; every unit that establishments have."""
    from discreet.engine.spark import engine as spark_engine

    pieces, part = CUTS[cut]
    monkeypatch.setattr("discreet.methods.employer.method.PART", part)
    monkeypatch.setitem(spark_engine._SETTINGS, "spark.sql.shuffle.partitions", str(pieces))
    register = register_with_doubles(tmp_path / "register")
    for name, declared in jobs_by_unit(register, one_file=one_file).items():
        expected = register.published(declared)
        assert any("/part-" in file for file in expected) == (part < 10 or (part < 100 and name == "strong"))
        cut_up = {
            source: str(split(pq.read_table(path), tmp_path / name / source, pieces))
            for source, path in declared["source"].items()
        }
        actual = register.published({**declared, "source": cut_up}, spark.session)
        assert [file for file in expected if expected[file] != actual.get(file)] == []
        assert expected.keys() == actual.keys()


@pytest.mark.parametrize(
    ("unit", "cut"),
    [
        pytest.param(unit, cut, marks=[] if (unit, cut) in SOON[1:] else pytest.mark.full)
        for unit, cut in itertools.product(UNITS, CUTS)
    ],
)
def test_published_bytes_of_estimates(
    bureau: Bureau, spark: Spark, monkeypatch: pytest.MonkeyPatch, unit: str, cut: str
) -> None:
    """Numbers of every type, infinities and negative zeros among them; sums run in the order of the cell."""
    from discreet.engine.spark import engine as spark_engine

    pieces, part = CUTS[cut]
    monkeypatch.setattr("discreet.methods.sensitivity.method.PART", part)
    monkeypatch.setattr("discreet.methods.sensitivity.method.PIECE", part)
    monkeypatch.setitem(spark_engine._SETTINGS, "spark.sql.shuffle.partitions", str(pieces))
    table = with_zeros(records())
    declared = estimates(unit, write_records(bureau, table))
    expected = bureau.published(declared)
    assert any("/part-" in name for name in expected) == (part < 10)
    cut_up = {"records": str(split(table, bureau.folder / "split", pieces))}
    actual = bureau.published({**declared, "source": cut_up}, spark.session)
    assert [name for name in expected if expected[name] != actual.get(name)] == []
    assert expected.keys() == actual.keys()


@pytest.mark.parametrize(
    ("unit", "cut"),
    [
        pytest.param(unit, cut, marks=[] if (unit, cut) == ("whole", "in three") else pytest.mark.full)
        for unit, cut in itertools.product(("record", "whole"), CUTS)
    ],
)
def test_published_bytes_of_cubes(
    bureau: Bureau, spark: Spark, monkeypatch: pytest.MonkeyPatch, unit: str, cut: str
) -> None:
    """Weights and replicates of every type, from records and of establishments that count with two of theirs."""
    from discreet.engine.spark import engine as spark_engine

    pieces, part = CUTS[cut]
    monkeypatch.setattr("discreet.methods.hypercube.method.PART", part)
    monkeypatch.setitem(spark_engine._SETTINGS, "spark.sql.shuffle.partitions", str(pieces))
    declared = cubes(unit, write_records(bureau, records()))
    expected = bureau.published(declared)
    assert any("/part-" in name for name in expected) == (part < 100)
    assert not [name for name in expected if "measured" in name]
    cut_up = {"records": str(split(records(), bureau.folder / "split", pieces))}
    actual = bureau.published({**declared, "source": cut_up}, spark.session)
    assert [name for name in expected if expected[name] != actual.get(name)] == []
    assert expected.keys() == actual.keys()


def test_resumed_on_another_engine(bureau: Bureau, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is bound to the records, not to the engine that read them first."""
    monkeypatch.setattr("discreet.methods.counts.method.PART", 11)
    pq.write_table(records(), bureau.folder / "records.parquet")
    declared = spec("person", bureau.folder / "records.parquet")
    expected, opened, out = bureau.published(declared), bureau.open(declared), bureau.folder / "resumed"

    def stop(step: str, done: int, total: int) -> None:
        if step == "protect sparse":
            raise OSError(28, "full")

    with pytest.raises(PublishError, match="is spent"):
        opened.run(out, simulation="suite", observe=stop)
    replace(opened, session=spark.session).resume()
    assert bureau.files(out) == expected


# --- hostile values -------------------------------------------------------------------------------------------------


def hostile(rows: int = 240) -> pa.Table:
    """Every type that can be a code, with the values on which engines differ."""

    def some(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[i % len(values)] for i in range(rows)], kind)

    days = [-719_162, -719_163, -141_428, -141_427, 0, 20_000, 2_932_896, 2_932_897, 10_000_000, 2**31 - 1, None]
    broken = [b"\xff\xfe", b"ok\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"]
    fine = ["1", "é", "e\u0301", "", "a\0b", "😀", "a ", "A", "a", "\ufeff1", "\ufffd", "x" * 300, "001", "'; --"]
    words = [*broken, None, *(word.encode() for word in fine)]
    reals = [1.0, 2.5, math.nan, math.inf, -math.inf, 1e20, 0.5, -0.0, 0.0, 1e-5, 0.001, 1e7, 9999999.5, 0.1 + 0.2,
             2.0**53, 2.0**53 - 1, 5e-324, -7.0, None, 1 / 3, 1e15 + 0.5, 123456.789, 0.00099999]  # fmt: skip
    return pa.table(
        {
            "row": pa.array(range(rows), pa.int64()),
            "text": loose((words * rows)[:rows]),
            "float64": some(reals, pa.float64()),
            "float32": some(
                [1.0, 0.1, math.nan, math.inf, 1e20, 0.5, -0.0, 1e-5, 16777217.0, None, 0.3, 1175941.25, 6.8085938],
                pa.float32(),
            ),
            "uint64": some([0, 1, 2**63, 2**64 - 1, None, 10], pa.uint64()),
            "uint32": some([0, 1, 2**32 - 1, None], pa.uint32()),
            "uint8": some([0, 1, 255, None], pa.uint8()),
            "int8": some([0, -1, 127, None], pa.int8()),
            "int64": some([0, -1, 2**63 - 1, -(2**63), None, 1], pa.int64()),
            "boolean": some([True, False, None], pa.bool_()),
            "date": some(days, pa.int32()).cast(pa.date32()),
            "decimal": some([0, 7, -(10**19), 10**20 - 1, None], pa.decimal128(20, 0)),
            "dictionary": some(["x", "y", None, ""], pa.string()).dictionary_encode(),
            "large": some(["x", "y", None, "ü"], pa.large_string()),
            "nothing": pa.nulls(rows),
            "a.b": some(["1", "2"], pa.string()),
            "a`b": some(["1", "3"], pa.string()),
            'a "b" ü;--': some(["1", "4", None], pa.string()),
            "select": some(["1", "5"], pa.string()),
            # What nobody wants, and Spark cannot read.
            "nanoseconds": some([1, None], pa.timestamp("ns")),
            "time": some([1, None], pa.time64("us")),
        }
    )


CODES: dict[str, list[str]] = {
    "text": ["1", "é", "e\u0301", "", "😀", "a ", "A", "a", "\ufffd", "'; --"],
    "float64": ["1", "2.5", "NaN", "nan", "Infinity", "inf", "0.5", "0", "-0", "0.001", "-7", "1e+20", str(2**53 - 1)],
    "float32": ["1", "0.1", "0.5", "0", "16777216", "0.3", "1175941.2", "1175941.25", "6.808594", "6.8085938"],
    "uint64": ["0", "1", str(2**63), str(2**64 - 1)],
    "uint32": ["0", "4294967295"],
    "uint8": ["0", "255"],
    "int8": ["-1", "127"],
    "int64": ["-1", str(2**63 - 1), str(-(2**63))],
    "boolean": ["true", "false"],
    "date": ["0001-01-01", "1582-10-04", "1582-10-15", "1970-01-01", "9999-12-31", "10000-01-01", "+10000-01-01"],
    "decimal": ["0", "7", str(10**20 - 1)],
    "dictionary": ["x", ""],
    "large": ["x", "ü"],
    "nothing": ["0", "null"],
    "a.b": ["1", "2"],
    "a`b": ["1", "3"],
    'a "b" ü;--': ["1", "4"],
    "select": ["1", "5"],
}  # fmt: skip


def hostile_spec(source: Path, unit: Any) -> dict[str, Any]:
    """Four columns per table; numbers are padded in one of them."""
    columns = list(CODES)
    domains = {f"d{i}": {"values": CODES[c], "column": c, "undeclared": "other"} for i, c in enumerate(columns)}
    domains["padded"] = {"values": ["00000", "00001", "00255", "-0001"], "column": "uint8", "width": 5}
    names = [f"d{i}" for i in range(len(columns))]
    tables = [
        {"name": f"t{i}", "method": "counts", "by": names[i : i + 4], "epsilon": "1", "form": "sparse"}
        for i in range(0, len(names), 4)
    ]
    tables.append({"name": "padded", "method": "counts", "by": ["padded"], "epsilon": "1"})
    return {"source": {"records": str(source)}, "unit": unit, "domains": domains, "tables": tables}


@pytest.mark.parametrize("entity", ["text", *(pytest.param(c, marks=pytest.mark.full) for c in ("uint64", "date"))])
def test_hostile_values(bureau: Bureau, spark: Spark, entity: str) -> None:
    """The same cells, and the same bounded records of every entity, for any values."""
    source = split(hostile(), bureau.folder / "hostile", 2)
    declared = hostile_spec(source, {"person": entity, "max_records": 2})
    expected, actual = bureau.published(declared), bureau.published(declared, spark.session)
    assert [name for name in expected if expected[name] != actual.get(name)] == []


def test_check(bureau: Bureau, spark: Spark) -> None:
    """What the rules do to the records is the same everywhere; of examples with equal frequency any may be shown."""
    declared = hostile_spec(split(hostile(), bureau.folder / "hostile", 2), {"person": "uint64", "max_records": 2})
    declared["tables"] = [{"name": "t", "method": "counts", "by": ["d0", "d1", "d9", "d12"], "epsilon": "1"}]

    def numbers(actual: Audit) -> Audit:
        return replace(actual, attributes=tuple(replace(a, examples=()) for a in actual.attributes))

    expected, actual = bureau.open(declared).check(), bureau.open(declared, spark.session).check()
    assert numbers(actual) == numbers(expected)
    assert actual.records_over > 0
    assert all(a.missing > 0 for a in actual.attributes)
    assert actual.attributes[0].undeclared > 0


def test_values_and_their_order(bureau: Bureau, spark: Spark) -> None:
    """Each value as its code is written and as a number, and each record's place in the keyed order, type by type; the
    same from a frame of Spark, which reads the file with types of its own."""
    path, table = bureau.folder / "hostile.parquet", hostile()
    pq.write_table(table, path)
    row, shown = Identifier("row", whole=True), {column: CodeText(column, None) for column in CODES}
    sizes = {c: Number(c) for c in ("float64", "float32", "uint64", "int64", "int8", "text")}
    intake = Intake((row, *shown.values(), *sizes.values()))
    names = [column.name for column in intake.columns[1:]]

    def look(engine: Engine, source: Any) -> tuple[dict[str, list[Any]], list[int]]:
        read = engine.ingest(engine.open(source, Path(), intake.reads), intake)
        ranked = engine.with_priorities(read, names, "place", Secret(bytes(range(16))))
        rows = pa.Table.from_batches(list(engine.batches(ranked))).sort_by(row.name)
        return {name: rows[name].to_pylist() for name in names}, rows["place"].to_pylist()

    with open_engine("duckdb") as engine:
        values, places = look(engine, FileSource(path=str(path)))
    assert {c: values[made.name] for c, made in shown.items()} == {
        c: texts(table[c].combine_chunks()).to_pylist() for c in CODES
    }
    pq.write_table(table.drop_columns(["nanoseconds", "time"]), bureau.folder / "plain.parquet")
    frame = spark.session.read.parquet(f"file://{bureau.folder}/plain.parquet")
    with open_engine("duckdb", spark.session) as engine:
        for source in (FileSource(path=str(path)), frame):
            actual, found_places = look(engine, source)
            assert [name for name in names if values[name] != actual[name]] == []
            assert places == found_places
    assert len(set(places)) > 200  # rows that differ


def test_hostile_names(bureau: Bureau, spark: Spark) -> None:
    """File and folder names mean nothing: not to a glob, not as an escape, not as a column."""
    root, table = bureau.folder / "a b,[c]{d,e}%41", records()
    names = [
        "state=03/a b,.parquet",
        "x[1]{2,3}*?.parquet",
        "%41#$;'\".parquet",
        "ü\\n.parquet",
        "state=04/x=_1/z.parquet",
    ]
    for i, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(i * 50, 50 if i < len(names) - 1 else None), path)
    (root / "_SUCCESS").touch()
    (root / ".hidden.parquet").write_bytes(b"no Parquet")
    declared = spec("record", root)
    declared["tables"] = declared["tables"][:1]
    expected = bureau.published(declared)
    assert bureau.published(declared, spark.session) == expected
    pq.write_table(table, bureau.folder / "whole.parquet")
    assert bureau.published({**declared, "source": {"records": "whole.parquet"}}) == expected


# --- refusals -------------------------------------------------------------------------------------------------------

X = pa.array(["1", "2", None])
REFUSED: dict[str, list[pa.Table]] = {
    "a column of another file": [pa.table({"x": X}), pa.table({"z": X})],
    "no such column": [pa.table({"X": X})],
    "binary": [pa.table({"x": X.cast(pa.binary())})],
    "in one file": [pa.table({"x": X}), pa.table({"x": X.cast(pa.binary())})],
    "decimal": [pa.table({"x": pa.array([1], pa.decimal128(20, 2))})],
    "timestamp": [pa.table({"x": pa.array([1], pa.timestamp("us"))})],
    "nanoseconds": [pa.table({"x": pa.array([1], pa.timestamp("ns"))})],
    "time": [pa.table({"x": pa.array([1], pa.time64("us"))})],
    "list": [pa.table({"x": pa.array([[1]])})],
}
READ: dict[str, tuple[list[pa.Table], str, list[int]]] = {  # a column, and how often it has the codes 1 and 2
    "a column of another type": ([pa.table({"x": X}), pa.table({"x": [1, 3]})], "x", [2, 1]),
    "a column of another width": ([pa.table({"x": pa.array([2], pa.int32())}), pa.table({"x": [2, 1]})], "x", [1, 2]),
    "a real and a truth": ([pa.table({"x": [1.0, 2.0, 2.5]}), pa.table({"x": [True]})], "x", [1, 1]),
    "decimal": ([pa.table({"x": pa.array([1, 1, None], pa.decimal128(20, 0))})], "x", [2, 0]),
    "named as ours": ([pa.table({"discreet_x": X})], "discreet_x", [1, 1]),
    "case": ([pa.table({"x": X, "X": pa.array(["2", "2", "2"])})], "x", [1, 1]),
    "the other case": ([pa.table({"x": X, "X": pa.array(["2", "2", "2"])})], "X", [0, 3]),
}


def declared_by(column: str) -> Domain:
    return Domain(tuple(ValuesDomain(values=["1", "2"]).attributes(column, Path())))


def in_folders(folder: Path, cases: Mapping[str, list[pa.Table]]) -> None:
    for case, tables in cases.items():
        (folder / case).mkdir()
        for i, table in enumerate(tables):
            pq.write_table(table, folder / case / f"{i}.parquet")


def test_refusals(bureau: Bureau, engine: Engine) -> None:
    """What one engine refuses, the other does, too: as a source, in one line, without a value, before it is read."""
    in_folders(bureau.folder, REFUSED)
    for broken, content in {"zero": b"", "junk": b"PAR1 XSECRETX PAR1"}.items():
        (bureau.folder / f"{broken}.parquet").write_bytes(content)
    for path in [*REFUSED, "zero.parquet", "junk.parquet", "nowhere.parquet"]:
        with pytest.raises(DiscreetError) as refusal:
            take_records(engine, FileSource(path=path), bureau.folder, [declared_by("x")], Record())
        assert isinstance(refusal.value, SourceError), path
        assert "\n" not in str(refusal.value)
        assert "XSECRETX" not in str(refusal.value)


def test_ids_that_are_refused(bureau: Bureau, engine: Engine) -> None:
    """By their type, whatever their values: floats, which were accepted as ids once, would merge large ones."""
    pq.write_table(hostile(), bureau.folder / "hostile.parquet")
    for column in ("float64", "float32", "nanoseconds", "time"):
        unit = Person(column=column, max_records=1)
        with pytest.raises(SourceError, match=f"column {column!r} .*is of type"):
            take_records(engine, FileSource(path="hostile.parquet"), bureau.folder, [], unit)


def test_what_was_refused_and_is_read(bureau: Bureau, engine: Engine) -> None:
    """Files that disagree about a type were refused: now each is read by its own. So were names that differ in case,
    and names like ours: now a column is found by its exact name, and no name in a source is a name in an engine."""
    in_folders(bureau.folder, {case: tables for case, (tables, _, _) in READ.items()})
    for case, (_, column, expected) in READ.items():
        domain = declared_by(column)
        records = take_records(engine, FileSource(path=case), bureau.folder, [domain], Record())
        kept = bound_contributions(engine, records.table, [domain], Record(), Secret(bytes(16)))
        cells = dict(lines(engine, count_cells(engine, kept, domain)))
        assert [cells.get(i, 0) for i in range(2)] == expected, case


def lines(engine: Engine, table: ibis.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in engine.batches(table) for row in batch.to_pylist()]


# --- the interface --------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(engine: Engine, tmp_path: Path) -> tuple[Engine, ibis.Table]:
    """An engine that has read 100 rows."""
    pq.write_table(pa.table({"i": range(100), "t": [f"t{i % 7}" for i in range(100)]}), tmp_path / "n.parquet")
    return engine, stream(engine, FileSource(path="n.parquet"), tmp_path, ["i", "t"])


def test_batches_are_in_the_order_asked_for(numbers: tuple[Engine, ibis.Table], tmp_path: Path) -> None:
    engine, table = numbers
    rows = [r for b in engine.batches(table.order_by(table.t.desc(), table.i).limit(3)) for r in b.to_pylist()]
    assert rows == [{"i": 6, "t": "t6"}, {"i": 13, "t": "t6"}, {"i": 20, "t": "t6"}]
    # What is not stored can be read all the same: a join with a public table, and a keyed order.
    table = stream(engine, FileSource(path="n.parquet"), tmp_path, ["i", "t"])
    public = engine.load_table(pa.table({"t": ["t1"], "label": ["one"]}))
    joined = engine.with_priorities(table, ("t",), "place", Secret(bytes(16))).inner_join(public, "t")
    actual = [r for b in engine.batches(joined.order_by("i").limit(2)) for r in b.to_pylist()]
    assert [(r["i"], r["label"]) for r in actual] == [(1, "one"), (8, "one")]
    assert actual[0]["place"] == actual[1]["place"]
