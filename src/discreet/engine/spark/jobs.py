"""Spark jobs with progress, interrupts, and redacted error messages."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa
from ibis.common.exceptions import IbisError
from py4j.clientserver import JavaClient
from py4j.protocol import Py4JError
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from discreet.engine.spark.worker import SAFE
from discreet.errors import EngineError

T = TypeVar("T")
SECONDS = 0.1
LOST_SECONDS = 120.0  # how long a job waits for workers to come back; Spark itself would wait forever
_NUMBERS = count()
REDACTED = "could not be computed; Spark's message is redacted because it may quote confidential values"
# The exceptions of a call to Java when its process has ended. After a session is stopped, PySpark's references to Java
# objects are None, and some of its assertions fail.
JAVA_GONE = (Py4JError, PySparkException, ConnectionError, EOFError, AttributeError, AssertionError)
_FAILURES = (Py4JError, PySparkException, IbisError, pa.ArrowException, ConnectionError, EOFError)
_KNOWN = {
    r"No module named 'discreet": (
        "discreet is not installed on a worker",
        "install the same version there, or name its Python with config spark.pyspark.python",
    ),
    r"No module named '(pyarrow|numpy|numba|cryptography|pandas)": (
        "a worker lacks a package that discreet needs",
        "install discreet with all its dependencies on every worker",
    ),
    r"PYTHON_VERSION_MISMATCH": (
        "a worker has a different version of Python than this process",
        "name the right one with config spark.pyspark.python",
    ),
    r"Cannot run program": (
        "a worker cannot start its Python",
        "name one that exists on every worker with config spark.pyspark.python",
    ),
    r"ExecutorLostFailure|executor (lost|exited)|was cancelled because SparkContext was shut down": (
        "the cluster lost its executors too often",
        "give them enough memory (spark.executor.memory, spark.executor.memoryOverhead), and run again",
    ),
    r"(No space left on device|Disk quota exceeded)": ("a worker's disk is full", "free some space on it"),
    r"(FileNotFoundError, No such file|PermissionError, )": (
        "a worker cannot reach the output folder",
        "name one on a file system that all workers share, as the same user, or an object store",
    ),
}


class Jobs:
    """Runs Spark actions such that Ctrl-C cancels them and progress is reported."""

    def __init__(self, session: SparkSession) -> None:
        self._session, self._context = session, session.sparkContext

    def run(
        self, action: Callable[[], T], watch: Callable[[float], None] | None = None, patience: float | None = None
    ) -> T:
        """The action's result. `watch` receives the share of completed tasks; `patience` is a time limit in seconds."""
        group = f"discreet-{next(_NUMBERS)}"

        def grouped() -> T:
            self._context.setJobGroup(group, "discreet", interruptOnCancel=True)
            return action()

        # Created in this thread, to inherit its local properties for jobs.
        inherited: Callable[[], T] = inheritable_thread_target(self._session)(grouped)

        def one() -> T:
            try:
                return inherited()
            finally:
                self._hang_up()

        waited, alive = 0.0, time.monotonic()
        with ThreadPoolExecutor(max_workers=1) as pool:
            future: Future[T] = pool.submit(one)
            try:
                while True:
                    try:
                        return redact_failures(lambda: future.result(SECONDS))
                    except NotYet:
                        waited += SECONDS
                        if patience is not None and waited > patience:
                            raise EngineError(
                                f"the cluster has run no task within {patience:g} seconds",
                                where="engine spark",
                                do="check that it has free workers that are large enough and use the same secret",
                            ) from None
                        if patience is not None or self._has_executors():
                            alive = time.monotonic()
                        elif time.monotonic() - alive > LOST_SECONDS:
                            raise EngineError(
                                f"the cluster has had no executors for {LOST_SECONDS:g} seconds",
                                where="engine spark",
                                do="check that its workers are running",
                            ) from None
                        if watch is not None:
                            watch(self._share(group))
            except BaseException:
                with contextlib.suppress(*JAVA_GONE):
                    self._context._jsc.sc().cancelJobGroupAndFutureJobs(group)
                raise

    def _hang_up(self) -> None:
        """Close this thread's connection to Java: Py4J discards it with the thread, but leaves its socket open."""
        client: Any = getattr(self._context._gateway, "_gateway_client", None)
        if not isinstance(client, JavaClient):
            return  # stopped meanwhile, or a connection shared by all threads
        if (connection := client.get_thread_connection()) is not None:
            with contextlib.suppress(ValueError):
                client.deque.remove(connection)
            connection.close()

    def _has_executors(self) -> bool:
        """Whether there is an executor to run a task: Spark's list includes the driver."""
        with contextlib.suppress(*JAVA_GONE):
            least = 0 if str(self._context.master).startswith("local") else 1
            return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) > least
        return True  # unknown; the job itself will end

    def _share(self, group: str) -> float:
        """The share of completed tasks, of the stages known so far."""
        done = total = 0
        with contextlib.suppress(*JAVA_GONE):
            tracker = self._context.statusTracker()
            for job in tracker.getJobIdsForGroup(group):
                for stage in getattr(tracker.getJobInfo(job), "stageIds", []):
                    info: Any = tracker.getStageInfo(stage)
                    if info is not None:
                        done, total = done + info.numCompletedTasks, total + info.numTasks
        return done / total if total else 0.0


def redact_failures(
    call: Callable[[], T],
    what: str = REDACTED,
    where: str = "engine spark",
    do: str = "check that the source is complete and of the declared types, and the cluster's logs",
) -> T:
    """call(), with redacted errors, raised after the handler has ended so that no traceback leads to the original."""
    try:
        return call()
    except NotYet:
        raise
    except _FAILURES as error:
        known, kind = _known_failure(_message(error)), type(error).__name__
    if known is not None:
        raise EngineError(known[0], where="engine spark", do=known[1])
    raise EngineError(f"{what} ({kind})", where=where, do=do)


@contextmanager
def without_spark_logs() -> Iterator[None]:
    """Disable PySpark's loggers, which print error messages that may quote a record to standard error."""
    loggers = [PySparkLogger.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _message(error: Exception) -> str:
    """An error's message; Py4J errors request it from the Java process, which may have ended."""
    with contextlib.suppress(*JAVA_GONE):
        return str(error)
    return ""


def _known_failure(message: str) -> tuple[str, str] | None:
    """The description of a known failure, or of one that our code on a worker has redacted already."""
    for pattern, known in _KNOWN.items():
        if re.search(pattern, message):
            return known
    if (start := message.find(SAFE)) >= 0:
        reason = message[start + len(SAFE) :].split("\n", 1)[0].strip().rstrip(".")
        return f"a worker failed ({reason})", "correct that and run again"
    return None
