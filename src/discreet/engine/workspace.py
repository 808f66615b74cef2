"""The private temporary folder: the only place where confidential bytes may lie, and never for longer than a run.

It is 0700, inside a folder of the user's own, held by a lock. A process that dies drops its lock; whoever comes next
sweeps what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import SourceError

ENVIRONMENT = "DISCREET_TMP"


def home() -> Path:
    """The user's folder of workspaces: `$DISCREET_TMP`, or one inside the system's temporary folder."""
    return Path(os.environ.get(ENVIRONMENT) or Path(tempfile.gettempdir()) / f"discreet-{os.getuid()}")


@contextmanager
def workspace() -> Iterator[Path]:
    """A private folder that is gone afterwards, however the run ends; no core dumps meanwhile."""
    root = _private(home())
    sweep()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=root))
    lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        with contextlib.suppress(OSError):  # another run may be using it
            root.rmdir()


def sweep() -> int:
    """Remove what dead processes left; returns how many folders there were."""
    swept = 0
    for folder in home().glob("run-*"):
        lock = _lock(folder)
        if lock is not None:  # nobody holds it: its process is gone
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            swept += 1
    return swept


def _lock(folder: Path) -> int | None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _private(folder: Path) -> Path:
    """A folder that belongs to us and opens to nobody else, or a refusal."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = folder.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077 or not folder.is_dir() or folder.is_symlink():
        raise SourceError(
            "is not a private folder of this user",
            where=str(folder),
            do=f"remove it, or name another in ${ENVIRONMENT}",
        )
    return folder
