"""Options that several commands have, and what they open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

Spec = Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")]
LedgerPlace = Annotated[Optional[str], typer.Option("--ledger", help="The ledger; default: the spec's.")]  # noqa: UP045
OnlyLedger = Annotated[str, typer.Option("--ledger", help="The ledger: a file, or postgresql://USER@HOST/DATABASE.")]
LEDGER = "discreet-ledger.sqlite"


def open_release(spec: Path, ledger: str | None) -> Any:
    from discreet import api

    return api.release(spec, ledger=None if ledger is None else open_ledger(ledger))


def open_ledger(place: str) -> Any:
    from discreet import api

    return api.ledger(place)
