"""`--json` prints only one JSON object on standard output, whatever libraries print meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PRINTING_WORKLOAD = """
import multiprocessing, os, sys
import duckdb
from benchmarks._measure import front

def chatter():
    os.write(1, b"written by a child\\n")

def measure(arguments):
    print("printed")
    sys.stdout.write("left in a buffer")
    os.system("echo by a shell")
    child = multiprocessing.get_context("fork").Process(target=chatter)
    child.start()
    child.join()
    with duckdb.connect() as connection:
        connection.execute("SET progress_bar_time = 1")
        connection.sql("SELECT count(*) FROM range(2000000) a(i) WHERE md5(i::VARCHAR) < 'a'").fetchall()
    return {"rows": arguments.rows}

front("A workload that prints.", measure, rows=7)
"""


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )


def test_nothing_else_is_printed() -> None:
    process = ran("-c", PRINTING_WORKLOAD, "--json", "--rows", "5")
    assert process.stdout.count("\n") == 1
    assert json.loads(process.stdout)["rows"] == 5
    for text in ("printed", "left in a buffer", "by a shell", "written by a child", "100%"):
        assert text in process.stderr


def test_a_table_is_printed_without_it() -> None:
    assert ["rows", "7"] in [line.split() for line in ran("-c", PRINTING_WORKLOAD).stdout.splitlines()]


def test_a_real_benchmark() -> None:
    actual = json.loads(ran("-m", "benchmarks.counts", "--json", "--rows", "2000", "--rounds", "1").stdout)
    assert (actual["rows"], actual["cells"]) == (2000, 72_000)
    assert actual["cost_vs_floor"] > 0
