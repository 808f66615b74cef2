"""Spark sessions, and their checks: Java and the master are available, channels and disks are encrypted, and workers
have the same version of discreet. Otherwise one line says what is missing, before anything is read or spent."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from discreet.engine.spark.jobs import JAVA_GONE, Jobs, redact_failures
from discreet.engine.spark.worker import versions, worker_versions
from discreet.errors import EngineError
from discreet.spec import SparkEngineSpec

LOG_ENVIRONMENT = "DISCREET_SPARK_LOG"
JAVA = (17, 21)
REACH_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
WHERE = "engine spark"

_CHECKED: set[str] = set()  # applications whose workers this process has checked

# Required of a session, also in local mode: Java listens on a port there, too, and would serve its blocks to any
# client. Disks: shuffles, spills and broadcast variables.
REQUIRED = {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"}
CHANNELS = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",  # or a peer could negotiate less
}
TLS = ("spark.ssl.rpc.enabled", "spark.ssl.rpc.trustStore")  # both, instead of CHANNELS
# A crashing Java process writes no memory to disk.
JAVA_OPTIONS = "-XX:-HeapDumpOnOutOfMemoryError -XX:-CreateCoredumpOnCrash -XX:ErrorFile=/dev/null"
# Settings unless declared otherwise.
DEFAULTS = {
    "spark.app.name": "discreet",
    "spark.ui.enabled": "false",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.io.encryption.keySizeBits": "256",
    "spark.python.authenticate.socketTimeout": "5m",  # a worker's Python may be slow to start and authenticate
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
}


@contextmanager
def start_session(spec: SparkEngineSpec, folder: Path) -> Iterator[SparkSession]:
    """A new session, whose Java process is stopped afterwards."""
    if SparkContext._active_spark_context is not None:
        raise EngineError(
            "a Spark session is already open in this process", where=WHERE, do="pass it: discreet.release(…, session=)"
        )
    _check_java()
    _check_master(spec.spark)
    session = None
    try:
        session = _start(spec, folder)
        check_workers(session)
        yield session
    finally:
        with contextlib.suppress(*JAVA_GONE), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that Java may still be running: it is stopped below
            if session is not None:
                session.stop()
            elif SparkContext._active_spark_context is not None:  # our own, stopped by Spark itself
                SparkContext._active_spark_context.stop()
        _stop_java()


def check_session(session: Any) -> SparkSession:
    """The user's session, if it meets the requirements."""
    if not isinstance(session, SparkSession):
        raise EngineError(
            "is not a session that can broadcast a secret (Spark Connect cannot)",
            where="session",
            do="pass a classic pyspark.sql.SparkSession",
        )
    context = session.sparkContext
    conf = redact_failures(context.getConf, "its session has ended", WHERE, "open a new one")
    _check_encryption(conf, str(context.master))
    check_workers(session)
    return session


def local(master: str) -> bool:
    """Whether Spark runs in one process of this machine."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


# --- starting -------------------------------------------------------------------------------------------------------


def _start(spec: SparkEngineSpec, folder: Path) -> SparkSession:
    given = SparkConf(loadDefaults=False).setMaster(spec.spark)
    for key, value in spec.config.items():
        given.set(key, value)
    for key in (
        "spark.driver.defaultJavaOptions",
        "spark.executor.defaultJavaOptions",
    ):  # extraJavaOptions are the user's
        given.set(key, f"{spec.config.get(key, '')} {JAVA_OPTIONS}".strip())

    def start() -> SparkSession:
        context = SparkContext(conf=_effective(given, spec.spark, folder))
        # PySpark itself reads the environment only.
        named = context.getConf().get("spark.pyspark.python")
        context.pythonExec = named or os.environ.get("PYSPARK_PYTHON") or sys.executable
        return SparkSession(context)  # a failed connection to the master is noticed here at the latest

    if local(spec.spark):
        return redact_failures(start, "does not start with this config", f"{WHERE}, master {spec.spark}", "check it")
    return redact_failures(
        start,
        "does not accept this process: its master runs without encryption, with another secret, or with another Spark",
        f"{WHERE}, master {spec.spark}",
        "compare spark-defaults.conf on both sides",
    )


def _effective(given: SparkConf, master: str, folder: Path) -> SparkConf:
    """The effective settings: declared ones, the user's spark-defaults.conf, then ours; refused if not encrypted."""
    log = os.environ.get(LOG_ENVIRONMENT)
    # Spark logs error messages, which may quote a record.
    with os.fdopen(os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as sink:
        try:
            with _unset("SPARK_LOCAL_DIRS"):  # Spark would use it instead of our private folder
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    given, popen_kwargs={"stdout": sink, "stderr": sink}
                )
        except (*JAVA_GONE, OSError):
            raise EngineError(
                "its Java process did not start",
                where=WHERE,
                do=f"check config (for example spark.driver.memory); ${LOG_ENVIRONMENT} names a file for its log",
            ) from None
    SparkContext._ensure_initialized(gateway=gateway)
    conf = SparkConf()  # Java has read spark-defaults.conf
    ours = {**REQUIRED, **({} if _tls(conf) else CHANNELS), **DEFAULTS}
    if local(master):
        ours |= {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}
    for key, value in ours.items():
        conf.setIfMissing(key, value)
    conf.setMaster(master).set("spark.local.dir", str(folder)).set("spark.ui.showConsoleProgress", "false")
    _check_encryption(conf, master)
    if master.startswith("spark://") and not conf.get("spark.authenticate.secret"):
        raise EngineError(
            "the cluster's secret is not known on this machine",
            where=f"{WHERE}, master {master}",
            do="put spark.authenticate.secret into the spark-defaults.conf of $SPARK_CONF_DIR, as on the cluster",
        )
    return conf


@contextmanager
def _unset(name: str) -> Iterator[None]:
    """Unset an environment variable while a process is started."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


def _stop_java() -> None:
    """Stop the Java process, which holds confidential rows and secrets."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    SparkContext._active_spark_context = None  # Java may have died before it could be stopped
    SparkSession._instantiatedSession = None
    if gateway is None:
        return
    with contextlib.suppress(*JAVA_GONE):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# --- checks ---------------------------------------------------------------------------------------------------------


def _check_java() -> None:
    """Spark looks for Java in JAVA_HOME, then on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    do = f"install Java {JAVA[0]} or {JAVA[1]} and point JAVA_HOME to it"
    try:
        output = subprocess.run([java or "java", "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        place = f" in JAVA_HOME ({home})" if home else ""
        raise EngineError(f"Spark needs Java, and none was found{place}", where=WHERE, do=do) from None
    match = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    if match is None or int(match[1]) < JAVA[0]:
        version = f"version {match[1]}" if match else "of an unknown version"
        raise EngineError(f"Spark needs Java {JAVA[0]} or {JAVA[1]}; this one is {version}", where=WHERE, do=do)


def _check_master(master: str) -> None:
    """Check that a standalone master accepts connections: Spark itself would try for a minute."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), REACH_SECONDS):
            return
    raise EngineError(
        "the master does not answer", where=f"{WHERE}, master {master}", do="check its address, and that it is running"
    )


def _check_encryption(conf: SparkConf, master: str) -> None:
    required = REQUIRED if _tls(conf) else {**REQUIRED, **CHANNELS}
    missing = [f"{key} {value}" for key, value in required.items() if conf.get(key, "unset") != value]
    if missing:
        raise EngineError(
            "its channels or disks are not encrypted, and a release key may only travel encrypted",
            where=f"{WHERE}, master {master}",
            do=f"set {', '.join(missing)} before the session starts, on the cluster too",
        )


def _tls(conf: SparkConf) -> bool:
    """Whether channels use TLS and verify their peers; who may connect is still decided by the secret."""
    enabled, trusted = TLS
    return conf.get(enabled, "") == "true" and bool(conf.get(trusted))


def check_workers(session: SparkSession) -> None:
    """Check that every worker that answers has the same versions of discreet and Arrow as this process."""
    context = session.sparkContext
    if context.applicationId in _CHECKED:
        return
    tasks = max(2 * context.defaultParallelism, 2)
    rdd = context.parallelize(range(tasks), tasks).mapPartitions(worker_versions)
    for host, code, arrow in Jobs(session).run(rdd.collect, patience=PATIENCE_SECONDS):
        if (code, arrow) != versions():
            raise EngineError(
                f"the worker on {host} has discreet {code} and Arrow {arrow}, this process {' and '.join(versions())}",
                where=WHERE,
                do="install the same versions: otherwise published bytes could differ",
            )
    _CHECKED.add(str(context.applicationId))
