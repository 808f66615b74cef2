"""A process that has read published files ends with its own exit status and all of its output."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.survey import SurveyAgency

COMMAND = "import runpy; runpy.run_module('discreet', run_name='__main__')"
LIBRARY = "import sys; from discreet.publish.cubes import open_cube; open_cube(sys.argv[2])"
RUNS, AT_ONCE = 300, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SurveyAgency(tmp_path_factory.mktemp("ending") / "survey").run()


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


THREADS = """
import sys
from pathlib import Path

def threads():
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return len([name for name in names if name != "jemalloc_bg_thd"])  # which knows nothing of Python

from discreet.methods.sensitivity.utility.epsilon_choice import _read
from discreet.publish.cubes import open_cube, open_counts
from discreet.publish.lehd.reading import read
from discreet.publish.parquet import table_of
from discreet.serve.catalogue import TableCatalogue
folder = Path(sys.argv[1])
files = sorted(folder.glob("*.parquet"))
before = threads()
open_cube(folder)
open_counts(folder, "cube")
TableCatalogue.of([folder])
for file in files:
    assert table_of(file).equals(table_of(file.read_bytes()))
    list(read(file))
    _read(file)
print(len(files), threads() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_reading_published_files_starts_no_thread(folder: Path) -> None:
    """A thread of Arrow's that gives bytes back to a Python that is ending aborts the process."""
    done = run(THREADS, folder)
    assert done.returncode == 0, done.stderr
    files, started = map(int, done.stdout.split())
    assert files > 0
    assert started == 0


LATE = f"""
import atexit, os, sys, threading

class Late:
    def __del__(self):
        os.abort()

late = Late()  # as a thread would that comes back while Python is taken apart
atexit.register(print, "handler")
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
sys.stdout.write("first\\n")
{COMMAND}
"""


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["--no-such"], 2), (["query", "none"], 1)])
def test_a_command_waits_for_its_own_and_ends_before_python_is_taken_apart(arguments: list[str], status: int) -> None:
    done = run(LATE, *arguments)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith("first\n")
    assert done.stdout.splitlines()[-2:] == ["thread", "handler"]
    assert bool(done.stderr) == bool(status)


@pytest.mark.parametrize(("arguments", "status"), [(["ledger", "--help"], 1), (["--no-such"], 2)])
def test_output_that_cannot_be_written_is_no_success(arguments: list[str], status: int) -> None:
    command = [sys.executable, "-m", "discreet", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("code", [COMMAND, LIBRARY], ids=["command", "library"])
def test_runs_beside_each_other_all_end_well(folder: Path, code: str) -> None:
    """11 of 240 ended with "terminate called without an active exception"."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda _: run(code, "query", folder, "--by", "strength"), range(RUNS)))
    assert Counter((done.returncode, done.stderr) for done in ended) == {(0, ended[0].stderr): RUNS}
