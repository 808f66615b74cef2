"""Fails a test run that leaves files outside the tests' own folders: a ledger in the repository, a key in the user's
home, a file in the working directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CACHES = {
    ".git", ".venv", "__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    ".import_linter_cache",
}  # fmt: skip
_BEFORE = pytest.StashKey[dict[Path, int]]()
_FOUND = pytest.StashKey[list[Path]]()


def _below(folder: Path) -> Iterator[Path]:
    """Every file, but not what tools leave for themselves."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in CACHES and not name.endswith(".egg-info")]
        yield from (Path(place, name) for name in files if name not in CACHES and not name.startswith(".coverage"))


def _listed(config: pytest.Config) -> dict[Path, int]:
    """Files in the repository, among the user's keys and in the working directory. Ledgers also have their modification
    time: tests that appended to an existing one would not create a new file."""
    home = Path.home() / ".discreet"
    called = Path(config.invocation_params.dir)
    here = (path for path in called.iterdir() if path.is_file() and not path.name.startswith(".coverage"))
    files = {*_below(config.rootpath), *_below(home), *here}
    times = {path: path.stat().st_mtime_ns for path in files if path.suffix == ".sqlite" or home in path.parents}
    return dict.fromkeys(files, 0) | times


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # with pytest-xdist one process looks, for all
        session.config.stash[_BEFORE] = _listed(session.config)


@pytest.hookimpl(trylast=True)  # when the workers have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    before = session.config.stash.get(_BEFORE, None)
    if before is None:
        return
    actual = sorted(path for path, time in _listed(session.config).items() if before.get(path) != time)
    session.config.stash[_FOUND] = actual
    if actual:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for path in config.stash.get(_FOUND, []):
        terminalreporter.write_line(f"OUTSIDE its own folder a test wrote {path}", red=True)
