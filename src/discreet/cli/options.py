"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Spec = Annotated[Path, typer.Argument(help="The declaration of the release.", metavar="RELEASE.YAML")]
LedgerPlace = Annotated[Optional[str], typer.Option("--ledger", help="Ledger to use instead of the declaration's.")]  # noqa: UP045
OnlyLedger = Annotated[str, typer.Option("--ledger", help="Ledger: a file, or postgresql://USER@HOST/DATABASE.")]
LEDGER = "discreet-ledger.sqlite"
