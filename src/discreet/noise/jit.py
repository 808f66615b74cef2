"""Compilation of the kernels: cached on disk, without the interpreter's lock, without fast-math.

Numba compiles what a kernel calls, and the constants of other modules, into it, but asks only the kernel's own file
whether what it has cached is still true: after an upgrade that changed another file, old code would run under a new
version's name. So a cached kernel here is one of all these sources, as far as their number, lengths and times tell.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])
PACKAGE = Path(__file__).parents[1]
FOLDERS = ("methods", "noise", "post")  # where compiled code lies, and what it is made of


@cache
def sources() -> tuple[int, int, int]:
    """How many files there are, how long, and when the last one was changed."""
    found = [file.stat() for folder in FOLDERS for file in (PACKAGE / folder).rglob("*.py")]
    return len(found), sum(file.st_size for file in found), max(file.st_mtime_ns for file in found)


def compiled(function: F) -> F:
    """Compile for this machine. Only IEEE operations: no reassociation that would break a proven bound."""
    try:
        kernel = njit(cache=True, nogil=True, fastmath=False)(function)
    except RuntimeError:  # nowhere to write a cache: compile anew in each process
        return cast(F, njit(nogil=True, fastmath=False)(function))
    if (index := getattr(kernel._cache, "_cache_file", None)) is not None:  # none where Numba's own settings say so
        index._source_stamp = (index._source_stamp, sources())
    return cast(F, kernel)
