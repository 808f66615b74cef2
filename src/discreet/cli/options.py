"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Spec = Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")]
LedgerPlace = Annotated[Optional[str], typer.Option("--ledger", help="The ledger; default: the spec's.")]  # noqa: UP045
OnlyLedger = Annotated[str, typer.Option("--ledger", help="The ledger: a file, or postgresql://USER@HOST/DATABASE.")]
LEDGER = "discreet-ledger.sqlite"
