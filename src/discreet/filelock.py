"""A file that one process at a time holds. The kernel gives it back when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.02


def acquire(path: Path) -> int | None:
    """A handle that holds the file, which is made if need be; none if somebody else has it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # whoever made the folder has just taken it away again
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)  # its holder removed it between our two steps


def release(path: Path, handle: int) -> None:
    """Remove the file, which nobody else can hold, and let go."""
    with suppress(OSError):  # an empty file that nobody holds harms nobody
        path.unlink()
    os.close(handle)


@contextmanager
def held(path: Path, wait: float = 0) -> Iterator[bool]:
    """Hold a file, waiting for it so many seconds; whether it was free."""
    until = time.monotonic() + wait
    while (handle := acquire(path)) is None and time.monotonic() < until:
        time.sleep(PAUSE)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            release(path, handle)
