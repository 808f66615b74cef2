"""Removing a record changes the reading of no other record: for every reader, type, way of writing and border; and the
test detects every past defect of this kind (`support/record_independence.py` describes what is compared)."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engine.duckdb import duckdb_engine
from discreet.engine.intake import derived, normalise
from discreet.engine.readers import UnsupportedType, csvfile, open_source, parquet
from discreet.errors import SourceError
from discreet.spec import FileSource
from support import record_writers as writers
from support.engines import Spark, as_uri
from support.hostile_values import TEXTS, values_of
from support.hypothesis_profile import examples
from support.postgres_server import PostgresServer
from support.record_cases import (
    CSV,
    SMALL,
    arrow_cases,
    capacity_cases,
    csv_cases,
    other_frames,
    pandas_cases,
    parquet_cases,
    statistical_cases,
)
from support.record_independence import (
    CRASH,
    AnyEngine,
    ComparisonReport,
    HostileRecord,
    IntakeOnly,
    RawScan,
    RecordCase,
    agree,
    every_record,
    records,
    split,
)

ARROW, PARQUET, FRAMES, STATISTICAL, PANDAS = (
    arrow_cases(),
    parquet_cases(),
    other_frames(),
    statistical_cases(),
    pandas_cases(),
)
CSVS = csv_cases()


def holds(report: ComparisonReport) -> None:
    assert report.pairs
    assert not report.actual, "\n".join(report.actual[:6])


def named(cases: Sequence[RecordCase], every: bool = True) -> list[Any]:
    """Cases as parameters; unless every one is for every commit, some that have all traits of each reader are."""
    chosen = set(map(str, cases)) if every else some(cases)
    return [pytest.param(case, id=str(case), marks=[pytest.mark.full] * (str(case) not in chosen)) for case in cases]


def some(cases: Sequence[RecordCase]) -> set[str]:
    """A few cases, among which every family of types and every way of writing is, for each reader."""
    seen: set[tuple[str, str]] = set()
    out = set()
    for case in random.Random(7).sample(cases, len(cases)):
        traits = {(case.reader, trait) for trait in case.traits}
        if traits - seen:
            out.add(str(case))
        seen |= traits
    return out


# --- CSV ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", named(CSVS, False))
def test_csv_in_halves(case: RecordCase) -> None:
    holds(split(case, RawScan()))


@pytest.mark.parametrize("case", named([c for c in CSVS if c.name in ("mixed-block13-short", "bom-block7")]))
def test_csv_without_every_record(case: RecordCase) -> None:
    holds(every_record(case, RawScan()))


@pytest.mark.full
@pytest.mark.parametrize("case", named(CSVS))
def test_all_csv_without_every_record(case: RecordCase) -> None:
    holds(every_record(case, RawScan()))


@pytest.mark.parametrize("case", named([c for c in CSVS if c.name.endswith("whole")][:2]))
def test_csv_derived(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


FIELD = st.lists(
    st.sampled_from([b",", b'"', b"\r", b"\n", b"\xef\xbb\xbf", b"7", b"a", b" ", b"\xff", b"\x00"]), max_size=8
)


def made_up_lines(fields: list[list[bytes]], ends: str, block: int, longest: int, final: bool) -> RecordCase:
    def write(kept: Sequence[HostileRecord], folder: Path) -> Any:
        return writers.csv(kept, folder, ends=ends, final=final)

    limits = {CSV + "BLOCK": block, CSV + "LONGEST": longest, CSV + "HEADER": block}
    return RecordCase("csv", "made-up", records([b"".join(field) for field in fields]), write, limits)


LINES = given(
    st.lists(FIELD, min_size=1, max_size=6), st.sampled_from(["n", "r", "rn", "mixed"]), st.integers(1, 40),
    st.integers(10, 30), st.booleans(),
)  # fmt: skip


@LINES
@examples(60)
def test_made_up_csv(fields: list[list[bytes]], ends: str, block: int, longest: int, final: bool) -> None:
    holds(every_record(made_up_lines(fields, ends, block, longest, final), RawScan()))


@pytest.mark.full
@LINES
@examples(3000)
def test_much_made_up_csv(fields: list[list[bytes]], ends: str, block: int, longest: int, final: bool) -> None:
    holds(every_record(made_up_lines(fields, ends, block, longest, final), RawScan()))


# --- Arrow, Parquet, frames, statistical files ----------------------------------------------------------------------


@pytest.mark.parametrize("case", named([c for c in ARROW if not c.name.startswith("whole")], False))
def test_arrow_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


@pytest.mark.parametrize("case", named([c for c in ARROW if c.name.startswith("whole") and len(c.records) < 20], False))
def test_arrow_without_every_record(case: RecordCase) -> None:
    holds(every_record(case))


@pytest.mark.parametrize("case", named(PARQUET, False))
def test_parquet_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


NARROW = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.date32(), pa.decimal128(5, 2))


@pytest.mark.parametrize("kind", [*NARROW, pa.int64(), pa.string(), pa.float64()], ids=str)
def test_32_bits_in_duckdbs_second_parquet_are_refused_by_type(kind: pa.DataType, tmp_path: Path) -> None:
    """With all records, with none, with one, and without any one of them. The first version is read."""
    values = [value for value in values_of(kind, few=True) if not isinstance(value, bytes)]
    held = records([*values[:3], values[-1]])
    one_less = [[*held[:i], *held[i + 1 :]] for i in range(len(held))]
    for kept in ([*held], [], *([record] for record in held), *one_less):
        for options, refused in (("v2", kind in NARROW), ("v1", False)):
            table = writers.as_table(kind, kept)
            path = writers.parquet_by_duckdb(table, tmp_path, f", PARQUET_VERSION {options}")
            (actual,) = open_source(FileSource(path=path), tmp_path).kinds["x"]
            assert isinstance(actual, UnsupportedType) == refused
            assert not refused or str(actual).endswith("in DuckDB's PARQUET_VERSION v2")


@pytest.mark.full
@pytest.mark.parametrize("case", named([*ARROW, *PARQUET]))
def test_arrow_and_parquet_without_every_record(case: RecordCase) -> None:
    holds(every_record(case))


@pytest.mark.slow
@pytest.mark.parametrize("case", named([c for c in FRAMES if c.reader != "duckdb"], False))
def test_frames_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


TABLES = [case for case in FRAMES if case.reader == "duckdb"]


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in TABLES if str(case) in some(TABLES)], ids=str)
def test_duckdb_tables(case: RecordCase) -> None:
    """Each look takes a connection of its own, which is slow."""
    holds(split(replace(case, looks=("plain", "id")), IntakeOnly(), most=0))


@pytest.mark.full
@pytest.mark.parametrize("case", TABLES, ids=str)
def test_all_duckdb_tables_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


@pytest.mark.slow
@pytest.mark.parametrize("case", named(PANDAS, False))
def test_pandas_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


@pytest.mark.parametrize("case", named(capacity_cases(), False))
def test_capacity_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


@pytest.mark.parametrize("case", named(STATISTICAL, False))
def test_sas_and_stata_in_halves(case: RecordCase) -> None:
    holds(split(case, IntakeOnly()))


@given(st.lists(st.one_of(st.text(max_size=4), st.binary(max_size=4), st.sampled_from(TEXTS)), min_size=2, max_size=8))
@examples(4)
def test_made_up_texts(values: list[Any]) -> None:
    for kind in (pa.string(), pa.dictionary(pa.int8(), pa.large_string())):
        holds(
            split(RecordCase("arrow", "made-up", records(values), writers.through(writers.chunked, kind)), IntakeOnly())
        )


NUMBERS = st.from_regex(r"\A *[+-]?[0-9.]{0,9}([eE][+-]?[0-9]{0,3})? *\Z")


@given(st.lists(NUMBERS, min_size=2, max_size=32))
@examples(8)
def test_made_up_numbers_in_text(values: list[str]) -> None:
    holds(
        split(
            RecordCase("arrow", "numbers", records(values), writers.through(writers.whole, pa.string())), IntakeOnly()
        )
    )


# --- PostgreSQL -----------------------------------------------------------------------------------------------------

POSTGRES = {
    "text": ["NULL", "''", "'7'", "'007'", "' 7'", "'a,b'", "'nan'", "E'a\\nb'", "repeat('9', 400)"],
    "varchar(9)": ["NULL", "'7'", "'é'"], "integer": ["NULL", "0", "7", "-2147483648"], "smallint": ["NULL", "7"],
    "bigint": ["NULL", "9007199254740993", "9007199254740992", "-9223372036854775808"], "boolean": ["NULL",
    "true", "false"],
    "real": ["NULL", "0.1", "'nan'", "'-0'", "'inf'"], "double precision": ["NULL", "'nan'", "0", "'-0'",
    "'inf'", "5e-324", "7.5"],
    "date": ["NULL", "'2026-01-31'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'"],
    "numeric": ["NULL", "7", "'nan'", "1e40", "0.10"], "numeric(20,0)": ["NULL", "7", "99999999999999999999"],
    "timestamp": ["NULL", "'2026-01-31'", "'infinity'"],
    "char(3)": ["NULL", "'7'", "'7 '", "'  7'", "''"], "bpchar": ["NULL", "'7'", "'7 '"], "uuid": ["NULL",
    "'00000000-0000-0000-0000-00000000000A'", "'a0eebc999c0b4ef8bb6d6bb9bd380a11'"],
    "bytea": ["NULL", "'\\xff'"],
}  # fmt: skip


def postgres(server: PostgresServer, kind: str) -> RecordCase:
    return RecordCase("postgres", kind, records(POSTGRES[kind]), writers.Postgres(server.schema(), kind))


@pytest.mark.parametrize("kind", POSTGRES)
def test_postgres(server: PostgresServer, kind: str) -> None:
    holds(split(replace(postgres(server, kind), looks=("plain", "id")), IntakeOnly(), most=0))


@pytest.mark.full
@pytest.mark.parametrize("kind", POSTGRES)
def test_postgres_in_halves(server: PostgresServer, kind: str) -> None:
    holds(split(postgres(server, kind), IntakeOnly()))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_postgres_of_other_encodings(server: PostgresServer, encoding: str) -> None:
    values = ["'7'", "NULL", "'a'", "E'\\xe9'", "E'a\\xff'", "E'\\xc3\\xa9'", "'007'"]
    written = writers.Postgres(server.database(encoding), "text")
    holds(split(RecordCase("postgres", encoding, records(values), written), IntakeOnly(), most=0))


# --- engines --------------------------------------------------------------------------------------------------------

TYPES = ("whole-string", "whole-int64", "whole-uint64", "whole-double", "whole-decimal128(38, 0)",
         "whole-date32[day]",
         "chunked-dictionary<values=string, indices=int32, ordered=0>")  # fmt: skip


def chosen(cases: Sequence[RecordCase], *names: str) -> list[RecordCase]:
    return [case for case in cases if case.name in names]


@pytest.fixture(scope="module")
def duckdb() -> Iterator[AnyEngine]:
    with duckdb_engine() as engine:
        yield engine


def test_duckdb_reads_what_the_intake_reads(duckdb: AnyEngine) -> None:
    report = ComparisonReport()
    for case in [*chosen(ARROW, *TYPES), *PARQUET[::180], *CSVS[::20], *PANDAS[::15], *STATISTICAL[::15]]:
        report.add(agree(case, IntakeOnly(), duckdb))
    holds(report)


@pytest.mark.parametrize("case", named(chosen(ARROW, "chunked-string", "whole-int64")))
def test_duckdb_in_halves(case: RecordCase, duckdb: AnyEngine) -> None:
    holds(split(case, duckdb))


# What Spark reads is written for it by others, as files, below a URI, or as a frame of its own.
SPARK_KINDS = (pa.string(), pa.int64(), pa.float64(), pa.decimal128(38, 10), pa.date32(), pa.uint64())
URI_KINDS = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int8(), pa.int16(), pa.int32(),
             pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.float32(), pa.float64(), pa.bool_(),
             pa.null())  # fmt: skip
NOT_BY_URI = (pa.date32(), pa.uint64(), pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(38, 0),
              pa.decimal128(38, 10))  # fmt: skip


def uri_case(way: str, kind: pa.DataType, spark: Spark) -> RecordCase:
    def write(kept: Sequence[HostileRecord], folder: Path) -> Any:
        return {"path": as_uri(spark, folder / writers.PARQUET[way](writers.as_table(kind, kept), folder))}

    values = [
        value for value in values_of(kind, few=True) if way not in writers.FOREIGN or not isinstance(value, bytes)
    ]
    return RecordCase("spark", f"{way}-{kind}", records(values), write, looks=("plain", "id"))


def spark_case(way: str, kind: pa.DataType, spark: Spark) -> RecordCase:
    def write(kept: Sequence[HostileRecord], folder: Path) -> Any:
        path = writers.parquet_files(writers.as_table(kind, kept), folder)
        for twin in (folder / path / "year=1").glob("*"):  # Spark has one schema for all files
            pq.write_table(pq.read_table(twin, partitioning=None).select(["tag", "x", "y"]), twin)
        if way == "path":
            return path
        return spark.session.read.option("recursiveFileLookup", "true").parquet(str(folder / path)).repartition(3)

    looks = ("repeated", "id") if way == "path" else ("plain", "id")
    return RecordCase("spark", f"{way}-{kind}", records(values_of(kind, few=True)), write, looks=looks)


def as_files(case: RecordCase) -> RecordCase:
    """The same records for an engine that has no frames of Spark."""
    kind = next(kind for kind in (*SPARK_KINDS, *URI_KINDS) if case.name.endswith(f"-{kind}"))
    return RecordCase(
        "parquet", case.name, case.records, writers.through(writers.PARQUET["groups3"], kind), looks=case.looks
    )


def spark_report(case: RecordCase, engine: AnyEngine, most: int) -> ComparisonReport:
    """The reading on Spark is the sum of single records read here; the text of a refusal may differ."""
    report = split(case, engine, as_files(case), most)
    report.actual = [text for text in report.actual if ": refused: " not in text or CRASH in text]
    return report


@pytest.fixture(scope="module")
def spark_engine_(spark: Spark) -> Iterator[AnyEngine]:
    from discreet.engine import open_engine

    with open_engine("duckdb", spark.session) as engine:
        yield engine


@pytest.mark.parametrize(
    ("way", "kind"),
    [("path", pa.string()), ("path", pa.float64()), ("frame", pa.date32()), ("frame", pa.decimal128(38, 10))],
    ids=str,
)  # fmt: skip
def test_spark(way: str, kind: pa.DataType, spark: Spark, spark_engine_: AnyEngine) -> None:
    holds(spark_report(spark_case(way, kind, spark), spark_engine_, 0))


@pytest.mark.full
@pytest.mark.parametrize("kind", SPARK_KINDS, ids=str)
@pytest.mark.parametrize("way", ["path", "frame"])
def test_spark_in_halves(way: str, kind: pa.DataType, spark: Spark, spark_engine_: AnyEngine) -> None:
    holds(spark_report(spark_case(way, kind, spark), spark_engine_, 3))


# Writers of files that Spark decodes itself, in every encoding.
URI_WAYS = ("plain", "groups1", "pages", "v2", "old", "delta", "duckdb", "duckdb-groups", "polars-groups")
SOON = [("pages", pa.string()), ("delta", pa.float64()), ("duckdb-groups", pa.int32()), ("groups1", pa.uint32()),
        ("plain", pa.null())]  # fmt: skip


def written_by(way: str, kind: pa.DataType) -> bool:
    return way not in writers.FOREIGN or not (pa.types.is_dictionary(kind) or pa.types.is_null(kind))


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        pytest.param(way, kind, marks=[] if (way, kind) in SOON else pytest.mark.full)
        for way in URI_WAYS
        for kind in URI_KINDS
        if written_by(way, kind)
    ],
    ids=str,
)
def test_spark_below_a_uri(way: str, kind: pa.DataType, spark: Spark, spark_engine_: AnyEngine) -> None:
    """Spark's own reader of Parquet: every type that it is trusted with, in every encoding."""
    holds(spark_report(uri_case(way, kind, spark), spark_engine_, 0))


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k in NOT_BY_URI[:3] else pytest.mark.full) for k in NOT_BY_URI], ids=str
)
def test_what_spark_may_stop_at_is_refused_by_type_below_a_uri(
    kind: pa.DataType, spark: Spark, spark_engine_: AnyEngine
) -> None:
    """With all records, with one, and with none. A decimal of too many digits, or a date that Spark takes for a Julian
    one, would stop its reader in the middle of a release."""
    case = uri_case("plain", kind, spark)
    for kept in ((), case.records[:1], case.records):
        with tempfile.TemporaryDirectory() as folder:
            source = FileSource(**case.write(kept, Path(folder)))
            scan = spark_engine_.open(source, Path(folder))
            (actual,) = scan.kinds["x"]
            assert isinstance(actual, UnsupportedType)
            for made in (derived.Number("x"), derived.CodeText("x", None), derived.Identifier("x", whole=False)):
                with pytest.raises(SourceError, match="below a URI Spark decodes it; on a path that all workers see"):
                    made.check("x", actual, scan.where)


@pytest.mark.parametrize("kind", [pa.string(), pytest.param(pa.float64(), marks=pytest.mark.full)], ids=str)
def test_files_by_spark(kind: pa.DataType, spark: Spark) -> None:
    def write(kept: Sequence[HostileRecord], folder: Path) -> str:
        frame = spark.session.createDataFrame(writers.as_table(kind, kept))
        frame.repartition(2).write.parquet(str(folder / "parts"))
        return "parts"

    values = [v for v in values_of(kind) if not isinstance(v, bytes)]
    holds(
        split(
            RecordCase("parquet", f"spark-{kind}", records(values[:32]), write, SMALL["parquet"], False), IntakeOnly()
        )
    )


# --- the defects that there have been: each is put back, and must be found ------------------------------------------


def no_blank_line(source: Any, **options: Any) -> pa.Table:
    """A byte-order mark at the beginning of a block was removed."""
    return READ_CSV(io.BytesIO(source.read().removeprefix(b"\n")), **options)


READ_CSV, COMPARED, DERIVED = pcsv.read_csv, normalise.compared, derived.DerivedColumn.through


def any_case(self: parquet.RowGroup, columns: list[str], repeated: list[str]) -> Iterator[pa.RecordBatch]:
    """Columns were matched ignoring case."""
    with pq.ParquetFile(self.path) as file:
        names = [next(n for n in file.schema_arrow.names if n.lower() == c.lower()) for c in columns]
        for batch in file.iter_batches(2, [self.number], names):
            yield pa.RecordBatch.from_arrays(batch.select(names).columns, names=columns)


def by_statistics(self: parquet.RowGroup, columns: list[str], repeated: list[str]) -> Iterator[pa.RecordBatch]:
    """Statistics exclude NaN: a column was treated as constant if its least value equals its largest."""
    with pq.ParquetFile(self.path) as file:
        group = file.metadata.row_group(self.number)
        known = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
        for batch in file.iter_batches(1 << 18, [self.number], columns):
            arrays = [
                pa.array([s.min] * batch.num_rows, batch.column(c).type)
                if (s := known[c]) is not None and s.has_min_max and s.min == s.max and not s.null_count
                else batch.column(c)
                for c in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=columns)


def pushed_down(self: parquet.RowGroup, columns: list[str], repeated: list[str]) -> Iterator[pa.RecordBatch]:
    """A filter was evaluated for a whole row group, whose statistics have −0.0 if 0.0 is the least value."""
    with pq.ParquetFile(self.path) as file:
        place = file.schema_arrow.names.index("x")
        statistics = file.metadata.row_group(self.number).column(place).statistics
        skipped = statistics is not None and statistics.has_min_max and np.signbit(statistics.min)
        for batch in file.iter_batches(1 << 18, [self.number], columns):
            yield batch.select(columns).slice(0, 0 if skipped else None)


def whole_dictionary(column: derived.DerivedColumn, raw: Sequence[pa.Array]) -> pa.Array:
    """A dictionary was read only if all of it is text."""
    broken = [pa.types.is_dictionary(v.type) and normalise.texts(v.dictionary).null_count for v in raw]
    return DERIVED(column, [pa.nulls(len(v), v.type) if bad else v for v, bad in zip(raw, broken, strict=True)])


def narrow_index(column: derived.DerivedColumn, raw: Sequence[pa.Array]) -> pa.Array:
    """Indices of 8 bits had no number for one more."""
    for values in raw:
        if pa.types.is_dictionary(values.type):
            values.indices.fill_null(len(values.dictionary))
    return DERIVED(column, raw)


def whole_batch(values: pa.Array) -> pa.Array:
    """One text that is not UTF-8 made all of its batch missing."""
    try:
        return values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.nulls(len(values), pa.large_string())


def lossy_id(self: derived.Identifier, values: pa.Array) -> pa.Array:
    """Ids went through doubles."""
    real = pc.cast(values, pa.float64(), safe=False)
    return pc.cast(pc.if_else(pc.less(real, 2.0**63), real, 0.0), pa.int64(), safe=False)


def rounded_first(values: pa.Array) -> Any:
    """The largest decimals cannot be rounded: one of them stopped a release."""
    if pa.types.is_decimal(values.type):
        pc.floor(values)
    return COMPARED(values)


def no_lines_left_out(block: bytes, delimiter: str, fields: int) -> tuple[bytes, list[bytes], int]:
    """A line with too many fields stopped the reader."""
    return block, [], 0


def header_to_line_feed(file: Any, size: int) -> Iterator[tuple[bytes, int]]:
    """The header ended at a line feed alone: where lines end in carriage returns, all records belonged to it."""
    first = file.readline(csvfile.LONGEST)
    first.removesuffix(b"\n").removesuffix(b"\r").decode()
    yield first.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), 0
    yield from BLOCKS(file, size)


BLOCKS = csvfile._blocks
READERS = "discreet.engine.readers."
DEFECTS: list[tuple[str, Callable[..., Any], RecordCase, Any]] = [
    (READERS + "csvfile.pcsv.read_csv", no_blank_line, chosen(CSVS, "plain-whole")[0], RawScan()),
    (READERS + "csvfile._split", no_lines_left_out, chosen(CSVS, "plain-whole")[0], RawScan()),
    (READERS + "csvfile._blocks", header_to_line_feed, chosen(CSVS, "r-whole")[0], RawScan()),
    (READERS + "parquet.RowGroup.batches", any_case, chosen(PARQUET, "files-string")[0], IntakeOnly()),
    (READERS + "parquet.RowGroup.batches", by_statistics, chosen(PARQUET, "groups3-double")[0], IntakeOnly()),
    (READERS + "parquet.RowGroup.batches", pushed_down, chosen(PARQUET, "groups3-double")[0], IntakeOnly()),
    (
        "discreet.engine.intake.derived.DerivedColumn.through",
        whole_dictionary,
        chosen(PARQUET, "groups3-string")[0],
        IntakeOnly(),
    ),
    (
        "discreet.engine.intake.derived.DerivedColumn.through",
        narrow_index,
        chosen(ARROW, "full-dictionary")[0],
        IntakeOnly(),
    ),
    ("discreet.engine.intake.normalise._utf8", whole_batch, chosen(ARROW, "whole-large_string")[0], IntakeOnly()),
    ("discreet.engine.intake.derived.Identifier.of", lossy_id, chosen(ARROW, "whole-int64")[0], IntakeOnly()),
    (
        "discreet.engine.intake.derived.columns.compared",
        rounded_first,
        chosen(ARROW, "whole-decimal256(76, 2)")[0],
        IntakeOnly(),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "defect", "case", "engine"), DEFECTS, ids=[d[1].__name__ for d in DEFECTS])
def test_defects_are_found(
    target: str, defect: Callable[..., Any], case: RecordCase, engine: IntakeOnly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, defect)  # without it the property holds, as is tested above
    assert split(case, engine).actual, defect.__doc__
