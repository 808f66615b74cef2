"""Ctrl-C while records are read: handled at once, whichever thread reads, and nothing is left running."""

from __future__ import annotations

import subprocess
import sys

import pytest

READS = """
import os, signal, threading, time
import pyarrow as pa
from discreet.engine.duckdb import duckdb_engine
from discreet.engine.intake.derived import SampleCondition
from discreet.engine.intake.stream import Intake
from discreet.engine.readers import Scan

class Endless:
    def read(self, columns, repeated=()):
        while True:
            time.sleep(0.01)
            yield pa.RecordBatch.from_arrays([pa.array([1.0] * 1000)], names=["v"])

def ctrl_c():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

try:
    with duckdb_engine() as engine:
        scan = Scan("source", {"v": frozenset([pa.float64()])}, [Endless() for _ in range(PIECES)])
        table = engine.ingest(scan, Intake((SampleCondition("v", 1),), counted=COUNTED))
        threading.Thread(target=ctrl_c, daemon=True).start()
        engine.store(table)
except KeyboardInterrupt:
    left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    ours = [name for name in left if "ctrl_c" not in name and not name.startswith("Dummy")]  # which are DuckDB's
    print("heard", ours)
"""


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("pieces", [1, 3])
def test_an_interrupt_is_heard_while_records_are_read(pieces: int, counted: bool) -> None:
    """A source that never ends: without its own thread the query would never release the interpreter."""
    code = READS.replace("PIECES", str(pieces)).replace("COUNTED", str(counted))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "heard []\n", done.stderr
