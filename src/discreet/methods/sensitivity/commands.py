"""Commands for estimates of small cells (Chetty & Friedman 2019): release in one step, choose ε, inspect
sensitivities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from discreet.formatting import plural, say

Text = Optional[str]  # noqa: UP045 - typer reads it
Number = Optional[int]  # noqa: UP045


def estimate(
    data: Annotated[Path, typer.Argument(help="Records: Stata, SAS, CSV or Parquet file.", metavar="DATA")],
    statistic: Annotated[str, typer.Option(help="mean, median, variance, slope, intercept or prediction.")],
    y: Annotated[str, typer.Option(help="The column of the outcome.")],
    by: Annotated[list[str], typer.Option(help="Cells: COLUMN=1..111, COLUMN=a,b,c or COLUMN=FILE.csv. Repeatable.")],
    bounds: Annotated[list[str], typer.Option(help="COLUMN=LOW:HIGH, not taken from these data. Repeatable.")],
    epsilon: Annotated[str, typer.Option(help="Exact; for each of estimate, standard error and count.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder; OUT.yaml is written next to it.")],
    x: Annotated[Text, typer.Option(help="The column of x, for regression lines.")] = None,
    at: Annotated[Text, typer.Option(help="The x at which to predict.")] = None,
    winsorise: Annotated[
        Text, typer.Option(help="Share winsorised at each end, within the cell, such as 0.05.")
    ] = None,
    delta: Annotated[Text, typer.Option(help="Exact; for the lower bound on counts, and for normal noise.")] = None,
    noise: Annotated[str, typer.Option(help="laplace or normal.")] = "laplace",
    cell_size: Annotated[
        str,
        typer.Option(
            help="N in the noise scale: bound (lower bound from the released count) or true (as in the paper)."
        ),
    ] = "bound",
    suppress_below: Annotated[Number, typer.Option(help="Suppress cells with a smaller released count.")] = None,
    search: Annotated[Text, typer.Option(help="exact, corners or removals.")] = None,
    unit: Annotated[str, typer.Option(help="record, or person:COLUMN (one record per person is used).")] = "record",
    budget: Annotated[
        Text, typer.Option(help="First set this privacy budget for the data; creates the ledger.")
    ] = None,
    stata: Annotated[bool, typer.Option(help="Also write Stata files.")] = True,
    asset: Annotated[Text, typer.Option(help="The asset of the budget; default: the file name.")] = None,
    ledger: Annotated[str, typer.Option(help="The ledger.")] = "discreet-ledger.sqlite",
    check: Annotated[
        bool, typer.Option("--check", help="Only check the records, on the confidential side; nothing is written.")
    ] = False,
) -> None:
    """Publish estimates for small cells from one file.

    Protected estimates, standard errors and counts of every cell, with their declaration.
    """
    from discreet.formatting import progress
    from discreet.methods.sensitivity import estimate_command

    data_and_statistic = (data, out, statistic, y, x, at, winsorise, by, bounds)
    mechanism = (epsilon, delta, noise, cell_size, suppress_below, search, stata)
    options = estimate_command.EstimateOptions(*data_and_statistic, *mechanism, unit, asset, ledger)
    if check:
        for line in estimate_command.check(options):
            say(line)
        return
    with progress() as observe:
        declaration, manifest = estimate_command.estimate(options, budget, observe)
    say(f"Published {manifest.release} in {out}, as declared in {declaration}: {manifest.composition}.")
    say(manifest.guarantee_in_words)
    for caveat in manifest.guarantee.caveats:
        say(f"Caveat: {caveat}")
    for line in estimate_command.sanity_warnings(out, manifest):
        say(line)


def tradeoff(
    out: Annotated[Path, typer.Option("--out", help="A folder for the table and the plot.")],
    synthetic: Annotated[bool, typer.Option("--synthetic", help="On a synthetic atlas.")] = False,
    public: Annotated[Optional[Path], typer.Option(help="A public file with columns estimate and count.")] = None,  # noqa: UP045
    provenance: Annotated[Text, typer.Option(help="Where the public file comes from.")] = None,
    release: Annotated[Optional[Path], typer.Option(help="The folder of an earlier release.")] = None,  # noqa: UP045
    table: Annotated[Text, typer.Option(help="Its table; default: the first table of estimates.")] = None,
    chi: Annotated[Text, typer.Option(help="A public guess of χ, the noise scale, for a public file.")] = None,
    area: Annotated[Text, typer.Option(help="A column of areas within which cells are ranked.")] = None,
    epsilons: Annotated[str, typer.Option(help="Exact, separated by commas.")] = "0.5,1,2,4,8,16,32",
    distribution: Annotated[str, typer.Option(help="laplace or normal.")] = "laplace",
    share: Annotated[
        str, typer.Option(help="Share of the cells of an area that form its top, and its bottom.")
    ] = "0.1",
    target_mse: Annotated[Optional[float], typer.Option(help="Find the epsilon with this mean squared error.")] = None,  # noqa: UP045
    target_misclassification: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Find the epsilon at which at most this share of the top and bottom is misclassified."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic atlas.", min=0)] = 7,
) -> None:
    """Plot accuracy against epsilon, without confidential data.

    On synthetic, public or previously published numbers.
    """
    from discreet.methods.sensitivity.utility.epsilon_choice import TradeoffTargets, tradeoff_curve, tradeoff_input
    from discreet.privacy.exact import parse_exact

    chosen = tuple(parse_exact(text.strip(), "--epsilons") for text in epsilons.split(","))
    accuracy = (target_mse, target_misclassification)
    targets = TradeoffTargets(chosen, distribution, parse_exact(share, "--share"), *accuracy)  # type: ignore[arg-type]
    curve = tradeoff_curve(tradeoff_input(synthetic, seed, public, provenance, chi, release, table, area), targets)
    for line in curve.lines():
        say(line)
    written = curve.write(out)
    say(f"{out}: {plural(len(written), 'file')} written.")


def envelope(
    spec: Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")],
    out: Annotated[Path, typer.Option("--out", help="A new folder, readable by you only (0700).")],
    table: Annotated[Text, typer.Option(help="A table of estimates; default: the first.")] = None,
    cell: Annotated[Optional[list[str]], typer.Option(help="COLUMN=CODE; default: the cell that determines χ.")] = None,  # noqa: UP045
) -> None:
    """Plot local sensitivities (confidential).

    Sensitivities under their envelope, and the most influential record of one cell.
    """
    from discreet import api
    from discreet.methods.sensitivity.estimate_command import parse_assignment
    from discreet.methods.sensitivity.utility.envelope import envelope as draw

    pictures = draw(api.release(spec).spec, table, dict(parse_assignment(text, "--cell") for text in cell or []), out)
    for line in pictures.lines:
        say(line)
    say(f"{out}: {', '.join(path.name for path in pictures.files)}")


def add(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (estimate, tradeoff, envelope):
        app.command()(command)
