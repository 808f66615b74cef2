"""The command line of the studies: `discreet-studies reproduce PAPER --out DIR`, and plots of PSEO statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import as_command
from discreet.formatting import plural, say

app = typer.Typer(
    help="Reproduce published papers with discreet: their tables and figures on synthetic data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Option("--out", help="Folder to write into.")]
Seed = Annotated[int, typer.Option(help="The same seed generates the same records.", min=0)]


@app.command("reproduce")
def reproduce_paper(
    paper: Annotated[str, typer.Argument(help="employer, hypercube or sensitivity.", metavar="PAPER")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write into; empty, or not existing yet.")],
    jobs: Annotated[int, typer.Option(help="Synthetic jobs to generate, for employer.", min=10_000)] = 10_900_000,
    children: Annotated[
        int, typer.Option(help="Synthetic children to generate, for sensitivity.", min=100_000)
    ] = 20_000_000,
    runs: Annotated[int, typer.Option(help="Runs of perturbation and calibration, for hypercube.", min=20)] = 1_000,
    seed: Seed = 7,
) -> None:
    """Reproduce a paper's tables and figures on synthetic data, its printed numbers next to ours."""
    from discreet.formatting import progress
    from discreet_studies import reproduce

    size = {"sensitivity": children, "hypercube": runs}.get(paper, jobs)
    with progress() as observe:
        written = reproduce(paper, out, size, seed, observe)
    say(f"{written[0]}: {plural(len(written), 'file')} written.")


@app.command("earnings")
def earnings(
    out: Folder,
    rows: Annotated[int, typer.Option(help="Synthetic records to generate.")] = 1_000_000,
    epsilon: Annotated[str, typer.Option(help='ε per record, exact: "1.5" or "3/2".')] = "1.5",
    seed: Seed = 7,
) -> None:
    """Plot published earnings percentiles with their confidence limits and the true percentiles."""
    from discreet.privacy.exact import parse_exact
    from discreet_studies.pseo.percentile_plot import draw_percentiles

    for path in draw_percentiles(out, rows, parse_exact(epsilon, "epsilon"), seed):
        say(str(path))


@app.command("flows")
def flows(
    out: Folder,
    institutions: Annotated[int, typer.Option(help="Replications, each in its own synthetic country.")] = 40,
    seed: Seed = 7,
) -> None:
    """Compare flows corrected by every rule with the true flows: scores, tables and a plot."""
    from discreet_studies.pseo.flow_plots import compare_rules

    for path in compare_rules(out, institutions, seed):
        say(str(path))


def main() -> None:
    """Run a command; an error is one line on standard error."""
    as_command(app)
