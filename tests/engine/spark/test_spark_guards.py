"""Safeguards against silent failures of a release on Spark, each tested by a violation."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkConf

from discreet.engine import open_engine
from discreet.engine.intake.derived import Number
from discreet.engine.intake.stream import Intake
from discreet.engine.spans import FingerprintKernel, Spans
from discreet.engine.spark.jobs import Jobs
from discreet.engine.spark.session import _check_encryption
from discreet.engine.spark.worker import FrameIntakeTask, KernelTask, PieceIntakeTask, PriorityTask, versions
from discreet.errors import EngineError, SourceError
from discreet.spec import FileSource
from support.engines import Spark, on_cluster


@pytest.mark.parametrize("driver_versions", [("other", pa.__version__), (versions()[0], "1.0")])
def test_a_task_of_other_versions_is_refused_where_it_runs(driver_versions: tuple[str, str]) -> None:
    """A worker may come long after the others were asked for theirs."""
    for task in (
        KernelTask(FingerprintKernel(), Spans(1, 1), ("cell",), None, driver_versions),
        PriorityTask((0,), "place", None, driver_versions),
        FrameIntakeTask(Intake((Number("a"),)), driver_versions),
        PieceIntakeTask(Intake((Number("a"),)), (), driver_versions),
    ):
        with pytest.raises(EngineError, match="a different version of discreet or Arrow"):
            list(task(iter(())))
    list(KernelTask(FingerprintKernel(), Spans(1, 1), ("cell",), None, versions())(iter(())))


def test_a_source_that_changed_is_noticed(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x", "y"]}), path)
    with open_engine("duckdb", spark.session) as engine:
        engine.open(FileSource(path=str(path)), tmp_path)
        engine.check_unchanged()
        os.utime(path, (1, 1))
        with pytest.raises(SourceError, match="changed while it was read"):
            engine.check_unchanged()
        engine.open(FileSource(path=str(path)), tmp_path)
        pq.write_table(pa.table({"a": ["x", "y", "z"]}), path)
        os.utime(path, (1, 1))  # of the same time, but not of the same size
        with pytest.raises(SourceError, match="changed while it was read"):
            engine.check_unchanged()


ALL = {
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
}
TLS = {"spark.ssl.rpc.enabled": "true", "spark.ssl.rpc.trustStore": "peers.jks"}


@pytest.mark.parametrize("master", ["local", "local[4]", "spark://host:7077", "yarn"])
def test_what_must_be_set(master: str) -> None:
    """In every mode: a local session listens as well. TLS stands for the cipher, never for the secret."""

    def check(settings: dict[str, str]) -> None:
        conf = SparkConf(loadDefaults=False)
        for key, value in settings.items():
            conf.set(key, value)
        _check_encryption(conf, master)

    check(ALL)
    guarded = {key: ALL[key] for key in ("spark.authenticate", "spark.io.encryption.enabled")}
    check({**guarded, **TLS})
    for key, value in ALL.items():
        for other in ("", "TRUE", " true", "unset", "true" if value == "false" else "false"):
            with pytest.raises(EngineError, match=f"set {key} {value}|Set {key} {value}"):
                check({**ALL, key: other})
        with pytest.raises(EngineError, match=key):
            check({name: value for name, value in ALL.items() if name != key})
    for key in guarded:
        with pytest.raises(EngineError, match=key):
            check({**guarded, **TLS, key: "false"})
    for key in TLS:  # without a trust store it trusts everybody
        with pytest.raises(EngineError, match=r"spark\.network\.crypto\.enabled"):
            check({**guarded, **{name: value for name, value in TLS.items() if name != key}})


def test_an_interrupt_cancels_a_job_that_was_not_yet_submitted(spark: Spark) -> None:
    """Planning may take a while; what it leads to must not run to its end, unseen and uninterruptible."""
    ended: list[str] = []

    def action() -> None:
        time.sleep(0.5)
        spark.session.sparkContext.parallelize(range(2), 2).map(_slow).collect()
        ended.append("as if nothing had happened")

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Jobs(spark.session).run(action, interrupt)
    assert ended == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_closes_its_connection_to_java(spark: Spark, fails: bool) -> None:
    """Py4J would leave the socket of each job's thread open until it is collected."""
    client, seen = spark.session.sparkContext._gateway._gateway_client, list[Any]()

    def action() -> int:
        spark.session.sparkContext.parallelize(range(2), 2).count()
        seen.append(client.get_thread_connection())
        if fails:
            raise EngineError("fails")
        return 1

    with suppress(EngineError):
        assert Jobs(spark.session).run(action) == 1
    (connection,) = seen
    assert connection is not client.get_thread_connection()
    assert connection.socket is None
    assert connection not in client.deque
    assert spark.session.range(3).count() == 3  # others go on


def _slow(number: int) -> int:
    import time

    time.sleep(6)
    return number


@pytest.mark.skipif(on_cluster(), reason="about the Java process that local mode starts")
def test_a_dying_java_leaves_no_memory_and_its_log_is_private(spark: Spark) -> None:
    flags = spark.session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert {"-XX:-HeapDumpOnOutOfMemoryError", "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null"} <= set(flags)
    assert stat.S_IMODE(spark.log.stat().st_mode) == 0o600


DEAD = """
import os, signal, sys
from contextlib import suppress
from pathlib import Path
from discreet.engine import open_engine
from discreet.errors import EngineError
from discreet.engine.spark.session import start_session
from discreet.spec import SparkEngineSpec
spec = SparkEngineSpec(spark="local[1]", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
folder = Path(sys.argv[1])
with start_session(spec, folder) as session:
    os.kill(session.sparkContext._gateway.proc.pid, signal.SIGKILL)
    session.sparkContext._gateway.proc.wait()
    try:
        with open_engine("duckdb", session):
            pass
    except EngineError as error:
        print(error)
with start_session(spec, folder) as session:
    print(session.range(3).count())
"""


@pytest.mark.full
def test_after_a_dead_java_comes_another(tmp_path: Path) -> None:
    done: Any = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DEAD, str(tmp_path)], capture_output=True, text=True, check=False
    )
    told, counted = done.stdout.splitlines()
    assert told.startswith("engine spark: its session has ended")
    assert counted == "3"
