"""The command line of the studies: `discreet-studies reproduce PAPER --out DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import as_command
from discreet.formatting import plural
from discreet.screen import say

app = typer.Typer(
    help="The papers made again with discreet: their tables and figures on invented data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def root() -> None:
    pass


@app.command("reproduce")
def reproduce_paper(
    paper: Annotated[str, typer.Argument(help="Which one: employer, hypercube or sensitivity.", metavar="PAPER")],
    out: Annotated[Path, typer.Option("--out", help="A folder that is empty or does not exist yet.")],
    jobs: Annotated[int, typer.Option(help="Jobs to invent, for employer.", min=10_000)] = 10_900_000,
    children: Annotated[int, typer.Option(help="Children to invent, for sensitivity.", min=100_000)] = 20_000_000,
    runs: Annotated[int, typer.Option(help="Times to perturb and calibrate, for hypercube.", min=20)] = 1_000,
    seed: Annotated[int, typer.Option(help="The same seed invents the same records.", min=0)] = 7,
) -> None:
    """A paper's tables and figures made again on invented data, our numbers beside theirs."""
    from discreet.cli.output import progress
    from discreet_studies import reproduce

    size = {"sensitivity": children, "hypercube": runs}.get(paper, jobs)
    with progress() as observe:
        written = reproduce(paper, out, size, seed, observe)
    say(f"{written[0]}: {plural(len(written), 'file')} written.")


def main() -> None:
    """Run a command; a refusal is one line on standard error."""
    as_command(app)
