"""End of a command: clean up, then end the process at once.

Python finalises the interpreter while threads of Arrow and DuckDB may still run; one that returns to it aborts the
process, and a published release would look like a failed one.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

UNWRITTEN = 120  # Python's exit code for output that could not be written


def end(status: int) -> NoReturn:
    """Wait for threads, run exit handlers and flush output, as Python does, without finalising the interpreter."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # what multiprocessing calls where its processes end
        atexit._run_exitfuncs()
        status = _written(status)
    finally:
        os._exit(status)


def _written(status: int) -> int:
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed before this process started
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader has gone
            status = status or UNWRITTEN
    return status
