"""Exclusive lock files. The kernel releases a lock when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.02


def acquire(path: Path) -> int | None:
    """Lock a file, created if necessary; gives its handle, or None if another process has the lock."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # the process that created the folder has just removed it
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)  # its holder removed it between the two steps


def release(path: Path, handle: int) -> None:
    """Remove the file while it is locked, then release the lock."""
    with suppress(OSError):  # an empty unlocked file does no harm
        path.unlink()
    os.close(handle)


@contextmanager
def try_lock(path: Path, wait: float = 0) -> Iterator[bool]:
    """Lock a file, waiting up to `wait` seconds; gives whether it was free."""
    until = time.monotonic() + wait
    while (handle := acquire(path)) is None and time.monotonic() < until:
        time.sleep(PAUSE)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            release(path, handle)
