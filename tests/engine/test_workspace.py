"""The private folder: private, removed afterwards or after a crash, never another user's."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.engine.duckdb import duckdb_engine
from discreet.engine.workspace import home, sweep, workspace
from discreet.errors import EngineError, SourceError

HOLD = (
    "import sys, time\nfrom discreet.engine.workspace import workspace\n"
    "with workspace() as folder:\n    (folder / 'x').write_text('SECRET')\n    print(folder, flush=True)\n"
    "    time.sleep(60)\n"
)


def test_private_and_gone(isolated: Path) -> None:
    with workspace() as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert home().stat().st_mode & 0o077 == 0
        (folder / "spill").write_text("x")
    assert not list(home().iterdir())


def test_gone_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), workspace():
        1 / 0  # noqa: B018
    assert not list(home().iterdir())


def test_a_living_process_keeps_its_folder_a_dead_one_is_swept() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        with workspace() as mine:
            assert folder.exists()
            assert mine != folder
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert folder.exists()
    sweep()
    assert not folder.exists()


def test_a_folder_that_others_can_enter_is_refused(isolated: Path) -> None:
    (isolated / "tmp").mkdir(mode=0o755)
    with pytest.raises(SourceError, match="not a private folder"), workspace():
        pass


def test_a_link_is_refused(isolated: Path) -> None:
    (isolated / "elsewhere").mkdir(mode=0o700)
    (isolated / "tmp").symlink_to(isolated / "elsewhere")
    with pytest.raises(SourceError, match="not a private folder"), workspace():
        pass


def test_no_core_dumps() -> None:
    """Neither to a file nor to a handler; in a process of its own, whose limit is raised first."""
    code = (
        "import ctypes, resource\n"
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"
        "from discreet.engine.workspace import workspace\n"
        "with workspace():\n"
        "    print(resource.getrlimit(resource.RLIMIT_CORE)[0], ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), hard)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    soft, dumpable, hard = done.stdout.split()
    assert (soft, dumpable) == ("0", "0")
    assert hard != "0", "this machine cannot show it: its hard limit is 0"


@pytest.mark.slow
def test_the_engine_spills_into_its_folder_and_nothing_can_be_read_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """With tables beyond the memory limit: spilled files show no value, and the result is right."""
    monkeypatch.setenv("DISCREET_MEMORY", "100MB")
    with duckdb_engine() as engine:
        con = engine._backend.con
        con.execute("CREATE TABLE t AS SELECT 'XSECRETX' || hash(range)::VARCHAR AS c FROM range(12000000)")
        spilled = [path.read_bytes() for path in engine.folder.rglob("*.tmp")]
        assert sum(len(content) for content in spilled) > 50_000_000
        assert not any(b"XSECRETX" in content for content in spilled)
        assert con.sql("SELECT count(DISTINCT c) FROM t").fetchall() == [(12_000_000,)]


@pytest.mark.parametrize("size", ["", "0GB", "4", "4GBX", "'; DROP", "-1GB"])
def test_an_invalid_memory_size_is_refused(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("DISCREET_MEMORY", size)
    if not size:  # as if it were not there
        with duckdb_engine():
            return
    with pytest.raises(EngineError, match="DISCREET_MEMORY"), duckdb_engine():
        pass


def test_the_engine_spills_encrypted_into_its_folder_and_fetches_nothing() -> None:
    with duckdb_engine() as engine:
        rows = engine._backend.con.sql("SELECT name, value FROM duckdb_settings()").fetchall()
        actual = dict(rows)
        assert actual["temp_file_encryption"] == "true"
        assert actual["temp_directory"] == str(engine.folder / "spill")
        assert actual["autoinstall_known_extensions"] == "false"
        assert actual["enable_progress_bar"] == "false"
