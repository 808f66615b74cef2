"""Compilation of kernels: cached on disk, without the interpreter's lock, without fast-math.

Numba compiles called functions, and constants of other modules, into a kernel, but checks only the kernel's own file
to decide whether its cache is valid: after an upgrade that changed another file, old code would run under the new
version. So the validity check here covers all these sources, by their number, lengths and modification times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
PACKAGE = Path(__file__).parents[1]
FOLDERS = ("methods", "noise", "post")  # where compiled code and its constants are


@cache
def sources() -> tuple[int, int, int]:
    """The number of source files, their total length, and the latest modification time."""
    files = [file.stat() for folder in FOLDERS for file in (PACKAGE / folder).rglob("*.py")]
    return len(files), sum(file.st_size for file in files), max(file.st_mtime_ns for file in files)


def compiled(function: F) -> F:
    """Compile for this machine. IEEE operations only: no reassociation, which would invalidate proven bounds."""
    try:
        kernel = njit(cache=True, nogil=True, fastmath=False)(function)
    except RuntimeError:  # no place to write a cache: compile in each process
        return cast(F, njit(nogil=True, fastmath=False)(function))
    if (index := getattr(kernel._cache, "_cache_file", None)) is not None:  # None if Numba's settings disable it
        index._source_stamp = (index._source_stamp, sources())
    return cast(F, kernel)
