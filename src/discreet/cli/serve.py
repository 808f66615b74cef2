"""The command that serves published releases on the web."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from discreet.errors import ParameterError
from discreet.formatting import say

LEDGER_PINS = ("-P", "-m", "discreet", "ledger", "pins")  # -P: no modules from the current folder


def serve(
    folders: Annotated[list[str], typer.Argument(help="Folders of published releases.", metavar="FOLDER")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65_535)] = 8000,
    prefix: Annotated[str, typer.Option(help="Path behind a reverse proxy, such as /statistics.")] = "",
    workers: Annotated[int, typer.Option(help="Number of worker processes.", min=1, max=256)] = 1,
    max_cells: Annotated[int, typer.Option(help="Most numbers in one answer.", min=1)] = 100_000,
    trust_proxy: Annotated[
        bool, typer.Option("--trust-proxy", help="Rate-limit by the X-Forwarded-For header of the proxy.")
    ] = False,
    pin: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--pin", help="Serve only releases whose manifest's SHA-256 is in this file.", metavar="FILE"),
    ] = None,
    ledger: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--ledger", help="Serve only releases that this ledger has committed, unchanged."),
    ] = None,
) -> None:
    """Serve published releases on the web.

    Opens published files only, and verifies every one against its manifest.
    """
    from discreet.serve.config import Config
    from discreet.serve.server import ServerPlan, prefix_of
    from discreet.serve.server import serve as run

    config, pins = Config(prefix=prefix_of(prefix), max_cells=max_cells), _pins(folders, pin, ledger)
    run(ServerPlan(tuple(folders), config, host, port, workers, trust_proxy, pins), say)


def _pins(folders: Sequence[str], file: Path | None, ledger: str | None) -> frozenset[str] | None:
    """The manifests that may be served; None for any. Another process reads the ledger: this one never loads it."""
    from discreet.publish.pins import parsed, read

    if file is not None and ledger is not None:
        raise ParameterError("exclude each other", where="--pin and --ledger", do="give one of them")
    if file is not None:
        return read(file)
    if ledger is None:
        return None
    command = [sys.executable, *LEDGER_PINS, "--ledger", ledger, "--", *folders]
    pins = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if pins.returncode:
        say(pins.stderr.rstrip("\n"), err=True)
        raise typer.Exit(1)
    return parsed(pins.stdout.split("\n"), "--ledger")


def add(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(serve)
