"""One process at a time works on a folder that is to be published, whichever ledger, release or user it works for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet import filelock
from discreet.errors import PublishError


def lock_of(folder: Path) -> Path:
    """The file that is locked: beside the folder, for that is what all who write there have in common."""
    name = hashlib.sha256(os.fsencode(folder.name)).hexdigest()[:32]
    return Path(os.path.realpath(folder.parent)) / f".discreet-{name}.lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder, which need not exist, or be refused. The lock goes with the process, its empty file may stay."""
    path = lock_of(folder)
    missing = [above for above in path.parents if not above.exists()]
    try:
        handle = filelock.acquire(path)
    except OSError as error:
        raise PublishError(
            f"cannot be locked ({os.strerror(error.errno or 0)})",
            where=str(folder),
            do=f"name a folder you can write to; if nobody is writing it, {path.name} beside it may be removed",
        ) from None
    if handle is None:
        raise PublishError("another process is writing it", where=str(folder), do="wait for it to finish, or end it")
    try:
        yield
    finally:
        filelock.release(path, handle)
        with suppress(OSError):
            for above in missing:
                above.rmdir()  # until one that is in use
