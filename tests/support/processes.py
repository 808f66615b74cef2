"""Separate processes that need not import the product: a fork server has imported it already.

They can be killed, have their own environment and share only files with the test.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    ["discreet.cli", "discreet.pipeline.run", "discreet.engine.duckdb", "discreet.methods.counts.method"]
)


def run(
    target: Callable[..., object], *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A function that can be imported, called in a process of its own with these texts."""
    texts = tuple(map(str, arguments))
    with TemporaryDirectory() as folder:
        out, err = (Path(folder) / name for name in ("out", "err"))
        where = (str(cwd or Path.cwd()), {**os.environ, **environment}, (str(out), str(err)))
        process = _FORKING.Process(target=_inside, args=(target, texts, *where))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        said = [path.read_text() if path.exists() else "" for path in (out, err)]
    return subprocess.CompletedProcess([target.__name__, *texts], code if code is not None else 1, *said)


def discreet(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, as after `python -m discreet`."""
    return run(_command, *arguments, cwd=cwd, **environment)


def _inside(
    target: Callable[..., object], texts: tuple[str, ...], cwd: str, environment: dict[str, str], said: tuple[str, str]
) -> Any:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for number, path in enumerate(said, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    target(*texts)


def _command(*arguments: str) -> None:
    from discreet.cli import console

    sys.argv = ["discreet", *arguments]
    console()
