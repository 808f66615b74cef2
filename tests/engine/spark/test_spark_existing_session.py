"""A release on the user's Spark session: it reads its source there, and leaves the session as it was."""

from __future__ import annotations

import io
import logging
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext, cloudpickle
from pyspark.errors import NumberFormatException
from pyspark.logger import PySparkLogger

from discreet.engine import open_engine
from discreet.engine.spans import Span, Spans
from discreet.errors import EngineError, SourceError
from discreet.noise.key import Secret
from discreet.noise.stream import Stream
from support.agency import SECRET_CODE, SECRET_PERSON, SPEC, graduates
from support.engines import Bureau, Spark, on_cluster

BY = {key: SPEC[key] for key in ("unit", "domains", "tables")}
FILE = {**BY, "source": {"graduates": "graduates.parquet"}}
FRAME = {**BY, "source": {"graduates": {"path": ""}}}


@pytest.fixture
def bureau(tmp_path: Path) -> Bureau:
    made = Bureau(tmp_path / "bureau")
    pq.write_table(graduates(), made.folder / "graduates.parquet")
    return made


def state(session: Any) -> dict[str, Any]:
    """What somebody might see of their session: settings, names, and what is kept in memory."""
    java = session.sparkContext._jsc
    return {
        "settings": {row[0]: row[1] for row in session.sql("SET").collect()},
        "views": [table.name for table in session.catalog.listTables()],
        "shared": [table.name for table in session.catalog.listTables("global_temp")],
        "rdds": java.getPersistentRDDs().size(),
        "cached": not session._jsparkSession.sharedState().cacheManager().isEmpty(),
        "group": session.sparkContext.getLocalProperty("spark.jobGroup.id"),
    }


def test_the_session_stays_as_it_was(bureau: Bureau, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    session, sent = spark.session, list[Any]()
    broadcast = SparkContext.broadcast

    def watched(self: SparkContext, value: Any) -> Any:
        sent.append(broadcast(self, value))
        return sent[-1]

    monkeypatch.setattr(SparkContext, "broadcast", watched)
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.caseSensitive", "false")
    session.range(3).createOrReplaceTempView("discreet_0")  # a name that we use, too
    before = state(session)
    try:
        published = bureau.published(FILE, session)
        assert published == bureau.published(FILE)
        assert state(session) == before
        assert session.sql("SELECT count(*) FROM discreet_0").collect()[0][0] == 3
        assert len(sent) == 3  # the order of records, and two tables
        assert not any(secret._jbroadcast.isValid() for secret in sent)
        assert not any(Path(secret._path).exists() for secret in sent)
        secrets = [s for s in spark.folder.rglob("pyspark-*/*") if s.is_file()]
        assert secrets == []
    finally:
        session.catalog.dropTempView("discreet_0")
        session.conf.unset("spark.sql.ansi.enabled")
        session.conf.unset("spark.sql.caseSensitive")


def test_columns_of_a_frame_are_found_by_their_exact_names(spark: Spark) -> None:
    """Its session may take v for V, and calls neither by its name where there are both; two of one name are refused."""
    frame = spark.session.createDataFrame([(1, 2, 3)], "a int, b int, c int")
    with open_engine("duckdb", spark.session) as engine:
        for names, wanted, kept in (("v V w", "v V", ["v", "V"]), ("v V w", "V", ["V"]), ("a.b ` w", "`", ["`"])):
            scan = engine.open(frame.toDF(*names.split()), Path(), wanted.split())
            assert list(scan.kinds) == kept
        for wanted in ("v", "w"):
            with pytest.raises(SourceError, match="two columns with the same name"):
                engine.open(frame.toDF("v", "v", "w"), Path(), [wanted])


def test_a_frame_of_the_session(bureau: Bureau, spark: Spark) -> None:
    """A DataFrame is a source; how it compares texts is its owner's matter: codes and people differ by their bytes."""
    session = spark.session
    people, degrees = ["q", "Q", "q", "Q", None], ["a", "A", "a", "á", "a"]
    extra = pa.table({"person_id": people, "state": ["01"] * 5, "degree": degrees})
    table = pa.concat_tables([graduates(), extra])
    pq.write_table(table, bureau.folder / "graduates.parquet")
    domains = {**BY["domains"], "degree": {"values": ["01", "02", "03", "a", "A"], "undeclared": "other"}}
    frame = session.read.parquet(f"file://{bureau.folder}/graduates.parquet").selectExpr(
        "person_id COLLATE UTF8_LCASE AS person_id", "state", "degree COLLATE UNICODE_CI_AI AS degree"
    )
    kept = session.sparkContext._jsc.getPersistentRDDs().size()
    expected = bureau.published({**FRAME, "domains": domains}, frame=table)
    assert bureau.published({**FRAME, "domains": domains}, session, frame=frame) == expected
    assert session.sparkContext._jsc.getPersistentRDDs().size() == kept


def test_a_frame_is_computed_once(bureau: Bureau, spark: Spark) -> None:
    """A frame with other results at each computation is computed once, and all tables are of that snapshot."""
    diary = bureau.folder / "diary"

    def chance(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with diary.open("a") as file:
            file.write("computed\n")
        for batch in batches:
            states = [f"{1 + byte % 4:02d}" for byte in os.urandom(batch.num_rows)]
            people = [f"P{i // 3}" for i in range(batch.num_rows)]
            yield pa.RecordBatch.from_arrays(
                [pa.array(people), pa.array(states), pa.array(["01"] * batch.num_rows)],
                names=["person_id", "state", "degree"],
            )

    frame = spark.session.range(300, numPartitions=2).mapInArrow(
        chance, "person_id string, state string, degree string"
    )
    bureau.published(FRAME, spark.session, frame=frame)
    assert diary.read_text().count("computed") == 2  # once a partition


VALUES = {"unit": "record", "domains": {"g": {"values": ["a", "b"]}}, "source": {"f": {"path": ""}},
          "tables": [{"name": "t", "method": "counts", "by": ["g"], "epsilon": "1"}]}  # fmt: skip


@pytest.mark.parametrize("way", ["plain", "through a view of another session", "in a query of a query"])
def test_one_value_decides_about_no_other_in_a_frame(bureau: Bureau, spark: Spark, way: str) -> None:
    """Its files are read by the settings of the session that opened them: there, too, "x is 0" must not be answered
    from statistics, to which -0.0 is less than 0. Forty records hung on one."""
    session, other = spark.session, spark.session.newSession()
    actual = []
    for more in ([], [0.0]):
        path = bureau.folder / f"{len(more)}.parquet"
        values = [-0.0] * 40 + [5.0] * 3 + more
        pq.write_table(pa.table({"x": values, "g": ["a"] * 40 + ["b"] * (3 + len(more))}), path)
        frame = session.read.parquet(f"file://{path}")
        if way != "plain":
            frame.createOrReplaceGlobalTempView("values_of_another")
            frame = other.table("global_temp.values_of_another")
        if way == "in a query of a query":
            frame.createOrReplaceTempView("inner_values")
            frame = other.sql("SELECT 0.0D AS x, g FROM VALUES 'a', 'b' AS v(g) WHERE g IN "
                              "(SELECT g FROM inner_values WHERE x = 0.0D)")  # fmt: skip
        frame = frame.where("x = 0.0")
        before = [state(used)["settings"] for used in (session, other)]
        files = bureau.published(VALUES, frame.sparkSession, frame=frame)
        assert [state(used)["settings"] for used in (session, other)] == before
        actual.append([line.split(",") for line in files["t.simulation.csv"].decode().splitlines()[1:]])
    session.catalog.dropGlobalTempView("values_of_another")
    (a, b), (more_a, more_b) = actual
    assert a == more_a
    assert int(more_b[1]) - int(b[1]) == 1


def test_other_sources_are_refused(bureau: Bureau, spark: Spark) -> None:
    with pytest.raises(SourceError, match="pass a DataFrame of the session"):
        bureau.published(FRAME, spark.session, frame=graduates())
    with pytest.raises(EngineError, match="is not a session that can broadcast a secret"):
        bureau.published(FILE, "spark")


# --- failures -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Indiscreet:
    """A kernel whose failure quotes a record."""

    schema = pa.schema([("cell", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            raise ValueError(f"cannot do {batch.to_pylist()}")
        yield from ()


def test_a_failure_quotes_nothing(bureau: Bureau, spark: Spark) -> None:
    """Neither the error nor Spark's log has the message of what failed on a worker."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    table = pa.table({"cell": [1, 2], "who": [SECRET_PERSON, SECRET_CODE]})
    try:
        with open_engine("duckdb", spark.session) as engine:
            stored = engine.store(engine.load_table(table))
            with pytest.raises(
                EngineError, match=r"a worker failed \(ValueError in test_spark_existing_session.py"
            ) as e:
                list(engine.gather(stored, Spans(3, 2), Indiscreet(), Secret(bytes(range(32)))))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    seen = f"{e.value!r} {e.value.__context__} {e.value.__cause__} {spark.log.read_text(errors='replace')}"
    assert "ValueError in test_spark_existing_session.py" in seen
    assert SECRET_PERSON not in seen
    assert SECRET_CODE not in seen


def test_pyspark_prints_nothing(spark: Spark) -> None:
    """PySpark itself would print what an expression failed on."""
    table, printed = pa.table({"who": [SECRET_PERSON]}), io.StringIO()
    logger, handler = PySparkLogger.getLogger("SQLQueryContextLogger"), logging.StreamHandler(printed)
    logger.addHandler(handler)
    spark.session.conf.set("spark.sql.ansi.enabled", "true")
    try:
        with open_engine("duckdb", spark.session) as engine:
            public = engine.load_table(table)
            with pytest.raises(EngineError, match="redacted") as error:
                list(engine.batches(public.select(who=public.who.cast("int64"))))
        assert SECRET_PERSON not in f"{error.value!r} {printed.getvalue()}"
        with pytest.raises(NumberFormatException):
            spark.session.createDataFrame(table).selectExpr("cast(who AS BIGINT)").collect()
        assert SECRET_PERSON in printed.getvalue()  # the session's owner sees as much as ever
    finally:
        spark.session.conf.unset("spark.sql.ansi.enabled")
        logger.removeHandler(handler)


def _asked(port: int, block: str) -> bytes:
    """What a stranger with a plain socket, without Spark and without a secret, gets for the name of a block."""

    def text(value: str) -> bytes:
        return struct.pack(">i", len(value)) + value.encode()

    def framed(kind: int, head: bytes, body: bytes = b"") -> bytes:
        return struct.pack(">q", 9 + len(head) + len(body)) + bytes([kind]) + head + body

    def answer(connection: socket.socket) -> bytes:
        data = b""
        while len(data) < 8 or len(data) < struct.unpack(">q", data[:8])[0]:
            piece = connection.recv(1 << 16)
            if not piece:
                return b""
            data += piece
        return data[8:]

    body = bytes([0]) + text("app") + text("thief") + struct.pack(">i", 1) + text(block)
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(framed(3, struct.pack(">qi", 1, len(body)), body))
        opened = answer(connection)
        if opened[:1] != bytes([4]):
            return opened
        stream = struct.unpack(">q", opened[14:22])[0]
        connection.sendall(framed(0, struct.pack(">qi", stream, 0)))
        return answer(connection)


@pytest.mark.skipif(on_cluster(), reason="its blocks are with the workers, whose channels are tested there")
def test_a_stranger_gets_no_rows_from_a_local_session(bureau: Bureau, spark: Spark) -> None:
    """Java listens in local mode too: without a secret of the session it must give nothing away."""
    frame = spark.session.createDataFrame(graduates()).persist()
    frame.count()
    try:
        (number,) = spark.session.sparkContext._jsc.getPersistentRDDs().keySet().toArray()[-1:]
        port = spark.session.sparkContext._jsc.sc().env().blockManager().blockManagerId().port()
        told = _asked(port, f"rdd_{number}_0")
    finally:
        frame.unpersist()
    assert SECRET_PERSON.encode() not in told
    assert b"challenge" in told or told == b"" or b"auth" in told.lower()


@pytest.mark.parametrize("name", ["_records.parquet", ".records.parquet", "records.parquet._COPYING_"])
def test_a_file_that_spark_would_pass_over_is_read(bureau: Bureau, spark: Spark, name: str) -> None:
    """It would release noise alone, and spend for it. Such names were refused; now a file is read by its row groups,
    and not as Spark lists it."""
    pq.write_table(graduates(), bureau.folder / name)
    declared = {**BY, "source": {"graduates": {"path": name, "format": "parquet"}}}
    assert bureau.published(declared, spark.session) == bureau.published(declared) == bureau.published(FILE)
