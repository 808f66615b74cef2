"""Compilation of the kernels: cached on disk, without the interpreter's lock, without fast-math."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile for this machine. Only IEEE operations: no reassociation that would break a proven bound."""
    try:
        return cast(F, njit(cache=True, nogil=True, fastmath=False)(function))
    except RuntimeError:  # nowhere to write a cache: compile anew in each process
        return cast(F, njit(nogil=True, fastmath=False)(function))
