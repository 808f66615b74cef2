"""Sessions: Java and the master are there, channels and disks are encrypted, workers have the same discreet. Or one
line that says what is missing, before anything is read or spent."""

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

_CHECKED: set[str] = set()  # applications whose workers this process has looked at

# What a session must have, also in local mode: there too Java listens, and gives its blocks to whoever asks for them.
# Disks: shuffles, spills and broadcast variables.
REQUIRED = {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"}
CHANNELS = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",  # or a peer could ask for less
}
TLS = ("spark.ssl.rpc.enabled", "spark.ssl.rpc.trustStore")  # both, instead of CHANNELS
# A dying Java process writes no memory to disk.
JAVA_OPTIONS = "-XX:-HeapDumpOnOutOfMemoryError -XX:-CreateCoredumpOnCrash -XX:ErrorFile=/dev/null"
# What it gets unless somebody says otherwise.
DEFAULTS = {
    "spark.app.name": "discreet",
    "spark.ui.enabled": "false",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.io.encryption.keySizeBits": "256",
    "spark.python.authenticate.socketTimeout": "5m",  # a worker's Python may start slowly, and then asks for a secret
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
}


@contextmanager
def start_session(spec: SparkEngineSpec, folder: Path) -> Iterator[SparkSession]:
    """A session of our own; its process is gone afterwards."""
    if SparkContext._active_spark_context is not None:
        raise EngineError(
            "a Spark session is open in this process already", where=WHERE, do="pass it: discreet.release(…, session=)"
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
            warnings.simplefilter("ignore", RuntimeWarning)  # that Java may still be there: it is stopped below
            if session is not None:
                session.stop()
            elif SparkContext._active_spark_context is not None:  # ours, and stopped by Spark itself
                SparkContext._active_spark_context.stop()
        _stop_java()


def check_session(session: Any) -> SparkSession:
    """A session of somebody else's, if it keeps what we promise."""
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
    """Whether everything happens in one process of this machine."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


# --- starting -------------------------------------------------------------------------------------------------------


def _start(spec: SparkEngineSpec, folder: Path) -> SparkSession:
    given = SparkConf(loadDefaults=False).setMaster(spec.spark)
    for key, value in spec.config.items():
        given.set(key, value)
    for key in ("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"):  # extra ones are yours
        given.set(key, f"{spec.config.get(key, '')} {JAVA_OPTIONS}".strip())

    def begun() -> SparkSession:
        context = SparkContext(conf=_effective(given, spec.spark, folder))
        # PySpark itself looks at the environment only.
        named = context.getConf().get("spark.pyspark.python")
        context.pythonExec = named or os.environ.get("PYSPARK_PYTHON") or sys.executable
        return SparkSession(context)  # a master that was refused or gave up is noticed here at the latest

    if local(spec.spark):
        return redact_failures(begun, "does not start with this config", f"{WHERE}, master {spec.spark}", "check it")
    return redact_failures(
        begun,
        "does not take this process: its master runs without encryption, with another secret, or with another Spark",
        f"{WHERE}, master {spec.spark}",
        "compare spark-defaults.conf on both sides",
    )


def _effective(given: SparkConf, master: str, folder: Path) -> SparkConf:
    """The settings in force: given ones, the owner's spark-defaults.conf, then ours; refused if they leave a gap."""
    log = os.environ.get(LOG_ENVIRONMENT)
    # Spark logs what fails, and what fails may quote a record.
    with os.fdopen(os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as sink:
        try:
            with _unset("SPARK_LOCAL_DIRS"):  # Spark would prefer it to our private folder
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    given, popen_kwargs={"stdout": sink, "stderr": sink}
                )
        except (*JAVA_GONE, OSError):
            raise EngineError(
                "its Java process did not start",
                where=WHERE,
                do=f"check config (spark.driver.memory, say); ${LOG_ENVIRONMENT} names a file for its log",
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
            "the cluster's secret is not known here",
            where=f"{WHERE}, master {master}",
            do="put spark.authenticate.secret into the spark-defaults.conf of $SPARK_CONF_DIR, as on the cluster",
        )
    return conf


@contextmanager
def _unset(name: str) -> Iterator[None]:
    """Without an environment variable, for a process that is being started."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


def _stop_java() -> None:
    """The Java process holds confidential rows and secrets: it goes with the session."""
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
        said = subprocess.run([java or "java", "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        place = f" in JAVA_HOME ({home})" if home else ""
        raise EngineError(f"Spark needs Java, and there is none{place}", where=WHERE, do=do) from None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if found is None or int(found[1]) < JAVA[0]:
        version = f"version {found[1]}" if found else "of no known version"
        raise EngineError(f"Spark needs Java {JAVA[0]} or {JAVA[1]}; this one is {version}", where=WHERE, do=do)


def _check_master(master: str) -> None:
    """A standalone master must answer at all: Spark itself would try for a minute."""
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, int(port)), REACH_SECONDS):
            return
    raise EngineError(
        "the master does not answer", where=f"{WHERE}, master {master}", do="check the address and that it is up"
    )


def _check_encryption(conf: SparkConf, master: str) -> None:
    wanted = REQUIRED if _tls(conf) else {**REQUIRED, **CHANNELS}
    missing = [f"{key} {value}" for key, value in wanted.items() if conf.get(key, "unset") != value]
    if missing:
        raise EngineError(
            "its channels or disks are not encrypted, and a release key may only travel encrypted",
            where=f"{WHERE}, master {master}",
            do=f"set {', '.join(missing)} before the session starts, on the cluster too",
        )


def _tls(conf: SparkConf) -> bool:
    """Whether channels are TLS, with peers that are looked at; who may connect is still a matter of the secret."""
    enabled, trusted = TLS
    return conf.get(enabled, "") == "true" and bool(conf.get(trusted))


def check_workers(session: SparkSession) -> None:
    """Every worker that answers has the same discreet and the same Arrow as this process."""
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
                do="install the same versions: equal releases need equal code",
            )
    _CHECKED.add(str(context.applicationId))
