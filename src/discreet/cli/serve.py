"""The command that opens published releases to people and programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from discreet.errors import ParameterError
from discreet.formatting import say

LEDGER_PINS = ("-P", "-m", "discreet", "ledger", "pins")  # -P: whatever lies in this folder is none of our modules


def serve(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any free one.", min=0, max=65_535)] = 8000,
    prefix: Annotated[str, typer.Option(help="The path that a reverse proxy has it under, such as /statistics.")] = "",
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1, max=256)] = 1,
    max_cells: Annotated[int, typer.Option(help="Numbers of one answer.", min=1)] = 100_000,
    trust_proxy: Annotated[
        bool, typer.Option("--trust-proxy", help="Count calls by the X-Forwarded-For of the proxy in front.")
    ] = False,
    pin: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--pin", help="Serve only releases whose manifest's SHA-256 is in this file.", metavar="FILE"),
    ] = None,
    ledger: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--ledger", help="Serve only releases that this ledger has committed, as they are there."),
    ] = None,
) -> None:
    """Published releases on the web. Opens published files only, every one verified."""
    from discreet.serve.config import Config
    from discreet.serve.server import ServerPlan, prefix_of
    from discreet.serve.server import serve as run

    config, pins = Config(prefix=prefix_of(prefix), max_cells=max_cells), _pins(folders, pin, ledger)
    run(ServerPlan(tuple(folders), config, host, port, workers, trust_proxy, pins), say)


def _pins(folders: Sequence[str], file: Path | None, ledger: str | None) -> frozenset[str] | None:
    """Which manifests may be served; None for any. Another process asks the ledger: this one loads nothing of it."""
    from discreet.publish.pins import parsed, read

    if file is not None and ledger is not None:
        raise ParameterError("are two words on the same", where="--pin and --ledger", do="give one of them")
    if file is not None:
        return read(file)
    if ledger is None:
        return None
    command = [sys.executable, *LEDGER_PINS, "--ledger", ledger, "--", *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        say(done.stderr.rstrip("\n"), err=True)
        raise typer.Exit(1)
    return parsed(done.stdout.split("\n"), "--ledger")


def add(app: typer.Typer) -> None:
    """This command beside the others."""
    app.command()(serve)
