"""The private temporary folder: the only place for confidential temporary files, and only for the duration of a run.

It has mode 0700, lies inside a folder of the user's own, and is locked. The lock ends with its process; the next
process removes what a dead one left behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import SourceError

ENVIRONMENT = "DISCREET_TMP"
_PR_SET_DUMPABLE = 4


def home() -> Path:
    """The user's folder for workspaces: `$DISCREET_TMP`, or one inside the system's temporary folder."""
    return Path(os.environ.get(ENVIRONMENT) or Path(tempfile.gettempdir()) / f"discreet-{os.getuid()}")


@contextmanager
def workspace() -> Iterator[Path]:
    """A private folder, removed afterwards however the run ends; core dumps are disabled."""
    root = _private(home())
    no_core_dumps()
    with _locked(root):  # no other process cleans up between creating our folder and locking it
        _sweep(root)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=root))
        lock = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def no_core_dumps() -> None:
    """Neither a core file nor a handler that the kernel pipes to may receive this process's memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def sweep() -> None:
    """Remove the folders of dead processes, for commands that need no folder of their own."""
    if home().exists():
        with _locked(_private(home())):
            _sweep(home())


def _sweep(root: Path) -> None:
    """Remove the folders that no process has locked."""
    for folder in root.glob("run-*"):
        lock = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = _lock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path, how: int) -> int | None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _private(folder: Path) -> Path:
    """A folder owned by this user and accessible to nobody else; otherwise refused."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise SourceError(
            "is not a private folder of this user",
            where=str(folder),
            do=f"remove it, or name another folder in ${ENVIRONMENT}",
        )
    return folder
