"""How a command ends: everything of ours is put in order, and then the process is over.

Python's own end takes the interpreter apart while threads of Arrow and DuckDB may still run; one that comes back to it
aborts the process, and a release that was published would look like one that failed.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

UNWRITTEN = 120  # Python's word for output that could not be written


def end(status: int) -> NoReturn:
    """Wait for threads, run exit handlers, write what is still to be written: as Python does, but nothing after."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # what multiprocessing calls where its processes end
        atexit._run_exitfuncs()
        status = _written(status)
    finally:
        os._exit(status)


def _written(status: int) -> int:
    for stream in filter(None, (sys.stdout, sys.stderr)):  # none: closed before we began
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever was reading has gone
            status = status or UNWRITTEN
    return status
