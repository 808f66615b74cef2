"""Spark's jobs, watched: progress, interrupts, and failures told without their messages."""

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
LOST_SECONDS = 120.0  # how long a job waits for workers to come back; Spark itself would wait for ever
_NUMBERS = count()
REDACTED = "could not be computed; Spark's message is withheld, for it may quote confidential values"
# What a call to Java raises when Java has gone. PySpark has None where its Java objects were once a session is stopped,
# and asserts here and there that it has not.
JAVA_GONE = (Py4JError, PySparkException, ConnectionError, EOFError, AttributeError, AssertionError)
_FAILURES = (Py4JError, PySparkException, IbisError, pa.ArrowException, ConnectionError, EOFError)
_KNOWN = {
    r"No module named 'discreet": (
        "a worker has no discreet installed",
        "install the same discreet there, or name its Python with config spark.pyspark.python",
    ),
    r"No module named '(pyarrow|numpy|numba|cryptography|pandas)": (
        "a worker lacks a package that discreet needs",
        "install discreet with all it needs on every worker",
    ),
    r"PYTHON_VERSION_MISMATCH": (
        "a worker has another Python than this process",
        "name the right one with config spark.pyspark.python",
    ),
    r"Cannot run program": (
        "a worker cannot start its Python",
        "name one that is there on every worker with config spark.pyspark.python",
    ),
    r"ExecutorLostFailure|executor (lost|exited)|was cancelled because SparkContext was shut down": (
        "the cluster lost its executors too often",
        "see that they have memory enough (spark.executor.memory, spark.executor.memoryOverhead), and run again",
    ),
    r"(No space left on device|Disk quota exceeded)": ("a worker's disk is full", "make room on it"),
    r"(FileNotFoundError, No such file|PermissionError, )": (
        "a worker cannot reach the output folder",
        "name one on a file system that all workers share, as the same user, or an object store",
    ),
}


class Jobs:
    """Runs Spark's actions so that Ctrl-C cancels them and somebody can watch."""

    def __init__(self, session: SparkSession) -> None:
        self._session, self._context = session, session.sparkContext

    def run(
        self, action: Callable[[], T], watch: Callable[[float], None] | None = None, patience: float | None = None
    ) -> T:
        """The action's result. `watch` hears of the share of tasks done; `patience` is how many seconds it may take."""
        group = f"discreet-{next(_NUMBERS)}"

        def grouped() -> T:
            self._context.setJobGroup(group, "discreet", interruptOnCancel=True)
            return action()

        # MethodOutput here: it takes along what this thread has set for its jobs.
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
                                f"the cluster runs nothing within {patience:g} seconds",
                                where="engine spark",
                                do="see that it has workers that are free and large enough, and know the same secret",
                            ) from None
                        if patience is not None or self._has_executors():
                            alive = time.monotonic()
                        elif time.monotonic() - alive > LOST_SECONDS:
                            raise EngineError(
                                f"the cluster has had no executors for {LOST_SECONDS:g} seconds",
                                where="engine spark",
                                do="see that its workers are up",
                            ) from None
                        if watch is not None:
                            watch(self._share(group))
            except BaseException:
                with contextlib.suppress(*JAVA_GONE):
                    self._context._jsc.sc().cancelJobGroupAndFutureJobs(group)
                raise

    def _hang_up(self) -> None:
        """Close this thread's connection to Java: Py4J drops it with the thread, and leaves its socket open."""
        client: Any = getattr(self._context._gateway, "_gateway_client", None)
        if not isinstance(client, JavaClient):
            return  # stopped meanwhile, or all threads share a connection
        if (connection := client.get_thread_connection()) is not None:
            with contextlib.suppress(ValueError):
                client.deque.remove(connection)
            connection.close()

    def _has_executors(self) -> bool:
        """Whether there is anybody to run a task: the driver itself counts as one in Spark's list."""
        with contextlib.suppress(*JAVA_GONE):
            least = 0 if str(self._context.master).startswith("local") else 1
            return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) > least
        return True  # it cannot be asked; the job itself will end

    def _share(self, group: str) -> float:
        """The share of tasks that are done, of the stages that are known."""
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
    """call(); what failed is told in our own words. Raised after the handler has ended, so that no trace leads back."""
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
    """PySpark prints the message of what failed, which may quote a record, to standard error: not while we work."""
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
    """What an error says; Py4J's ask the Java process for it, which may be gone."""
    with contextlib.suppress(*JAVA_GONE):
        return str(error)
    return ""


def _known_failure(message: str) -> tuple[str, str] | None:
    """A failure that we know, or that our own code on a worker has put into safe words."""
    for pattern, known in _KNOWN.items():
        if re.search(pattern, message):
            return known
    if (start := message.find(SAFE)) >= 0:
        reason = message[start + len(SAFE) :].split("\n", 1)[0].strip().rstrip(".")
        return f"a worker failed ({reason})", "mend that and run again"
    return None
