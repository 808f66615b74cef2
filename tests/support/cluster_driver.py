"""A process that runs or resumes a release under injected faults: `cluster_driver.py VERB SPEC LEDGER OUT OPTIONS`.

OPTIONS is JSON. `fault` is what happens to a worker in the middle of a part; `marks` is the folder where it
leaves a mark. `at` says what is done at a step of the run: `wait` for a mark, `kill` this process, kill `executors`
or the `workers` of the cluster, `change` the source. `part` is the number of rows in a file; `patience` and `lost` are
the seconds to wait for workers that have not registered yet, and for lost ones.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

CLOCK = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
SEED = "cluster test"
SPAN = 1  # where faults happen
SECONDS = 60


@dataclass(frozen=True)
class Faulty:
    """A kernel on a worker to which something happens after it has given its first rows. Part of `__main__`, so that
    it is sent by value."""

    kernel: Any
    fault: str
    marks: str

    @property
    def schema(self) -> Any:
        return self.kernel.schema

    def __call__(self, span: Any, rows: Any, stream: Any) -> Iterator[Any]:
        for batch in self.kernel(span, rows, stream):
            yield batch
            if span.number == SPAN:
                getattr(self, self.fault)()

    def fails_twice(self) -> None:
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()  # type: ignore[union-attr]
        self.mark(f"attempt-{attempt}")
        if attempt < 2:
            raise RuntimeError("a task that fails")

    def loses_its_executor(self) -> None:
        if self.mark("lost"):
            os.kill(parent(os.getppid()), signal.SIGKILL)  # worker ← daemon ← the executor's Java
            time.sleep(SECONDS)

    def is_attempted_twice_at_once(self) -> None:
        from pyspark import TaskContext

        self.mark(f"attempt-{TaskContext.get().taskAttemptId()}")  # type: ignore[union-attr]
        end = time.monotonic() + SECONDS
        while len(list(Path(self.marks).glob("attempt-*"))) < 2:
            if time.monotonic() > end:
                raise RuntimeError("no second worker came")
            time.sleep(0.01)

    def waits(self) -> None:
        """Until the driver is killed, or for the second time not at all."""
        if self.mark("waits"):
            time.sleep(SECONDS)

    def mark(self, name: str) -> bool:
        """Whether we are the first to leave this word."""
        try:
            (Path(self.marks) / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class StepActions:
    """What is done at a step of the run."""

    def __init__(self, options: dict[str, Any], source: Path) -> None:
        self._options, self._source = options, source

    def wait(self) -> None:
        """Until a worker has left word."""
        end = time.monotonic() + SECONDS
        while not list(Path(self._options["marks"]).iterdir()) and time.monotonic() < end:
            time.sleep(0.05)

    def kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def workers(self) -> None:
        for process in self._options["workers"]:
            os.killpg(process, signal.SIGKILL)
        self.executors()

    def executors(self) -> None:
        from benchmarks._cluster import Cluster

        cluster = Cluster("", Path(self._options["cluster"]), {})
        end = time.monotonic() + SECONDS
        while not (actual := cluster.executors()) and time.monotonic() < end:
            time.sleep(0.1)
        for process in actual:
            os.kill(process, signal.SIGKILL)

    def change(self) -> None:
        """One row is another; the file's time is what it was."""
        import pyarrow.parquet as pq

        before = self._source.stat()
        table = pq.read_table(self._source)
        first = pa.table({"person_id": ["P000000"], "state": ["04"], "degree": ["03"]})
        pq.write_table(pa.concat_tables([first, table.slice(1)]), self._source)
        os.utime(self._source, ns=(before.st_atime_ns, before.st_mtime_ns))


def main(verb: str, spec: str, ledger: str, out: str, given: str) -> None:
    options = json.loads(given)
    import discreet
    from discreet.engine.spark import jobs, session
    from discreet.errors import DiscreetError
    from discreet.methods.counts import method as counts

    counts.PART = options.get("part", counts.PART)
    session.PATIENCE_SECONDS = options.get("patience", session.PATIENCE_SECONDS)
    jobs.LOST_SECONDS = options.get("lost", jobs.LOST_SECONDS)
    if fault := options.get("fault"):
        write = counts.write_parts

        def faulty(engine: Any, bound: Any, kernel: Any, *more: Any, **named: Any) -> Any:
            return write(engine, bound, Faulty(kernel, fault, options["marks"]), *more, **named)

        counts.write_parts = faulty  # type: ignore[assignment]
    doer, seen = StepActions(options, Path(spec).with_name("graduates.parquet")), set[str]()

    def observe(step: str, done: int, total: int) -> None:
        if done and step not in seen:
            seen.add(step)
            print(f"{step} {done}/{total}", flush=True)
            for action in options.get("at", {}).get(step, []):
                getattr(doer, action)()

    release = discreet.release(spec, ledger=discreet.ledger(ledger, clock=lambda: CLOCK))
    try:
        if verb == "run":
            release.run(out, simulation=SEED, observe=observe)
        else:
            release.resume(observe=observe)
    except DiscreetError as error:
        print(f"discreet: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main(*sys.argv[1:6])
