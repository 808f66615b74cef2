"""What commands share: options, what they open, and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from discreet.formatting import say, visible

Spec = Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")]
LedgerPlace = Annotated[Optional[str], typer.Option("--ledger", help="The ledger; default: the spec's.")]  # noqa: UP045
OnlyLedger = Annotated[str, typer.Option("--ledger", help="The ledger: a file, or postgresql://USER@HOST/DATABASE.")]
LEDGER = "discreet-ledger.sqlite"


def open_release(spec: Path, ledger: str | None) -> Any:
    from discreet.api import release

    return release(spec, ledger=ledger)


def open_ledger(place: str) -> Any:
    from discreet.api import ledger

    return ledger(place)


Observer = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Observer]:
    """A bar a step on a terminal; a line a step elsewhere. Only steps and shares of public cells are shown."""
    if not sys.stderr.isatty():
        yield _plain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<28}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def observe(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(visible(step), total=total)
            bars.update(tasks[step], completed=done)

        yield observe


def _plain() -> Observer:
    def observe(step: str, done: int, total: int) -> None:
        if done == total:
            with suppress(OSError):  # whoever was reading has gone: no reason to stop a release
                say(f"{step}: done", err=True)

    return observe
