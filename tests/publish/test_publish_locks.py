"""One process at a time works on an output, however its path is spelled, and no lock remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.errors import PublishError
from discreet.publish.storage import exclusive_lock, lock_path

HOLD = (
    "import pathlib, sys, time\n"
    "from discreet.publish.storage import exclusive_lock\n"
    "with exclusive_lock(pathlib.Path(sys.argv[1])):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(60)\n"
)


def held(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_nothing_is_left_not_even_the_folders_above(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "new" / "deep" / "out"):
        assert lock_path(tmp_path / "new" / "deep" / "out").exists()
    assert list(tmp_path.iterdir()) == []


def test_folders_above_that_are_used_stay(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "new" / "out"):
        (tmp_path / "new" / "out").mkdir()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


def test_another_process_is_refused_whatever_its_temporary_folder(tmp_path: Path) -> None:
    process = held(tmp_path / "out", TMPDIR=str(tmp_path), DISCREET_TMP=str(tmp_path / "own"))
    try:
        with pytest.raises(PublishError, match="another process is writing it"), exclusive_lock(tmp_path / "out"):
            pass
        with exclusive_lock(tmp_path / "other"):
            pass
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert lock_path(tmp_path / "out").stat().st_size == 0  # left by the dead: harmless
    with exclusive_lock(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_another_spelling_is_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "real")
    for other in (tmp_path / "link" / "out", Path("out"), tmp_path / "real" / "." / "out"):
        with (
            exclusive_lock(tmp_path / "real" / "out"),
            pytest.raises(PublishError, match="another process is writing it"),
            exclusive_lock(other),
        ):
            pass


def test_lock_names_are_short_even_for_long_folder_names(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / ("k" * 255)):
        pass


def test_what_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match="cannot be locked"), exclusive_lock(tmp_path / "file" / "out"):
        pass
    lock_path(tmp_path / "out").symlink_to(tmp_path / "file")
    with pytest.raises(PublishError, match="cannot be locked"), exclusive_lock(tmp_path / "out"):
        pass
