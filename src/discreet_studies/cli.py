"""The command line of the studies: `discreet-studies reproduce PAPER --out DIR`, and pictures of PSEO's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import as_command
from discreet.formatting import plural, say

app = typer.Typer(
    help="The papers made again with discreet: their tables and figures on invented data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Option("--out", help="The folder to write into.")]
Seed = Annotated[int, typer.Option(help="The same seed invents the same records.", min=0)]


@app.command("reproduce")
def reproduce_paper(
    paper: Annotated[str, typer.Argument(help="Which one: employer, hypercube or sensitivity.", metavar="PAPER")],
    out: Annotated[Path, typer.Option("--out", help="A folder that is empty or does not exist yet.")],
    jobs: Annotated[int, typer.Option(help="Jobs to invent, for employer.", min=10_000)] = 10_900_000,
    children: Annotated[int, typer.Option(help="Children to invent, for sensitivity.", min=100_000)] = 20_000_000,
    runs: Annotated[int, typer.Option(help="Times to perturb and calibrate, for hypercube.", min=20)] = 1_000,
    seed: Seed = 7,
) -> None:
    """A paper's tables and figures made again on invented data, our numbers beside theirs."""
    from discreet.formatting import progress
    from discreet_studies import reproduce

    size = {"sensitivity": children, "hypercube": runs}.get(paper, jobs)
    with progress() as observe:
        written = reproduce(paper, out, size, seed, observe)
    say(f"{written[0]}: {plural(len(written), 'file')} written.")


@app.command("earnings")
def earnings(
    out: Folder,
    rows: Annotated[int, typer.Option(help="Records to invent.")] = 1_000_000,
    epsilon: Annotated[str, typer.Option(help='For one record, exact: "1.5" or "3/2".')] = "1.5",
    seed: Seed = 7,
) -> None:
    """Published percentiles of earnings with their limits, beside the true ones."""
    from discreet.privacy.exact import parse_exact
    from discreet_studies.pseo.percentile_plot import draw_percentiles

    for path in draw_percentiles(out, rows, parse_exact(epsilon, "epsilon"), seed):
        say(str(path))


@app.command("flows")
def flows(
    out: Folder,
    institutions: Annotated[int, typer.Option(help="Replications: each has a country of its own.")] = 40,
    seed: Seed = 7,
) -> None:
    """Flows corrected by every rule, beside the true ones: every score, tables, a picture."""
    from discreet_studies.pseo.flow_plots import compare_rules

    for path in compare_rules(out, institutions, seed):
        say(str(path))


def main() -> None:
    """Run a command; a refusal is one line on standard error."""
    as_command(app)
