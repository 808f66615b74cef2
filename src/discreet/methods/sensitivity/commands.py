"""Commands for estimates of small cells (Chetty and Friedman 2019): publish them in one go, choose ε, inspect local
sensitivities on the confidential side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from discreet.formatting import plural, say

Text = Optional[str]  # noqa: UP045 - typer reads it


def estimate(
    data: Annotated[Path, typer.Argument(help="Records: Stata, SAS, CSV or Parquet.", metavar="DATA")],
    statistic: Annotated[str, typer.Option(help="mean, variance, slope, intercept or prediction.")],
    y: Annotated[str, typer.Option(help="The column of y.")],
    by: Annotated[list[str], typer.Option(help="Cells: COLUMN=1..111, COLUMN=a,b,c or COLUMN=FILE.csv. Repeat it.")],
    bounds: Annotated[list[str], typer.Option(help="COLUMN=LOW:HIGH, not from these data. Repeat it.")],
    epsilon: Annotated[
        str, typer.Option(help="Epsilon of each published number (estimate, standard error, count), exact.")
    ],
    out: Annotated[Path, typer.Option("--out", help="A new folder; the declaration OUT.yaml is written beside it.")],
    x: Annotated[Text, typer.Option(help="The column of x, for lines.")] = None,
    at: Annotated[Text, typer.Option(help="Where to predict.")] = None,
    winsorise: Annotated[Text, typer.Option(help="Share at each end, within the cell, such as 0.05.")] = None,
    delta: Annotated[
        Text, typer.Option(help="Exact; the probability that a bound fails, or the delta of Gaussian noise.")
    ] = None,
    noise: Annotated[str, typer.Option(help="laplace or normal.")] = "laplace",
    size: Annotated[
        str, typer.Option(help="bound (lower bound from the released count) or true (as in Chetty & Friedman 2019).")
    ] = "bound",
    minimum: Annotated[Optional[int], typer.Option(help="Leave out cells with a smaller released count.")] = None,  # noqa: UP045
    search: Annotated[Text, typer.Option(help="exact or corners.")] = None,
    unit: Annotated[
        str, typer.Option(help="Privacy unit: record, or person:COLUMN (one record of each is used).")
    ] = "record",
    budget: Annotated[Text, typer.Option(help="Set this budget for the data first; begins the ledger.")] = None,
    stata: Annotated[bool, typer.Option(help="Also write Stata files.")] = True,
    asset: Annotated[Text, typer.Option(help="The asset; default: the file's name.")] = None,
    ledger: Annotated[str, typer.Option(help="The ledger.")] = "discreet-ledger.sqlite",
    check: Annotated[
        bool, typer.Option("--check", help="Only check the records (confidential output); write nothing.")
    ] = False,
) -> None:
    """Publish estimates for small cells from one file.

    Protected estimates, standard errors and counts of every cell, with their declaration.
    """
    from discreet.formatting import progress
    from discreet.methods.sensitivity import quick

    asked = quick.EstimateOptions(
        *(data, out, statistic, y, x, at, winsorise, by, bounds, epsilon, delta, noise, size, minimum, search, stata),
        *(unit, asset, ledger),
    )
    if check:
        for line in quick.check(asked):
            say(line)
        return
    with progress() as observe:
        declared, made = quick.estimate(asked, budget, observe)
    say(f"Published {made.release} in {out}, as declared in {declared}: {made.composition}.")
    say(made.guarantee_in_words)
    for caveat in made.guarantee.caveats:
        say(f"Caveat: {caveat}")
    for line in quick.doubts(out, made):
        say(line)


def tradeoff(
    out: Annotated[Path, typer.Option("--out", help="A folder for the table and the picture.")],
    synthetic: Annotated[bool, typer.Option("--synthetic", help="Use a synthetic atlas.")] = False,
    public: Annotated[Optional[Path], typer.Option(help="A public file with columns estimate and count.")] = None,  # noqa: UP045
    provenance: Annotated[Text, typer.Option(help="Where the public file comes from.")] = None,
    release: Annotated[Optional[Path], typer.Option(help="The folder of an earlier release.")] = None,  # noqa: UP045
    table: Annotated[Text, typer.Option(help="Its table; default: the first of estimates.")] = None,
    chi: Annotated[Text, typer.Option(help="A public guess of the noise scale χ, for a public file.")] = None,
    area: Annotated[Text, typer.Option(help="A column of areas to compare cells within.")] = None,
    epsilons: Annotated[str, typer.Option(help="Exact, with commas.")] = "0.5,1,2,4,8,16,32",
    distribution: Annotated[str, typer.Option(help="laplace or normal.")] = "laplace",
    share: Annotated[str, typer.Option(help="Of an area's cells that are its top, and its bottom.")] = "0.1",
    target_mse: Annotated[Optional[float], typer.Option(help="Find the epsilon with this mean squared error.")] = None,  # noqa: UP045
    target_misclassification: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Find the epsilon at which at most this share of the top and bottom does not belong there."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic atlas.", min=0)] = 7,
) -> None:
    """Plot accuracy against epsilon, without confidential data.

    On synthetic, public or previously published numbers.
    """
    from discreet.methods.sensitivity.utility.choosing import Wanted, chosen_input, curve
    from discreet.privacy.exact import parse_exact

    asked = tuple(parse_exact(text.strip(), "--epsilons") for text in epsilons.split(","))
    wanted = Wanted(asked, distribution, parse_exact(share, "--share"), target_mse, target_misclassification)  # type: ignore[arg-type]
    found = curve(chosen_input(synthetic, seed, public, provenance, chi, release, table, area), wanted)
    for line in found.lines():
        say(line)
    written = found.write(out)
    say(f"{out}: {plural(len(written), 'file')} written.")


def envelope(
    spec: Annotated[Path, typer.Argument(help="The declaration of the release.", metavar="RELEASE.YAML")],
    out: Annotated[Path, typer.Option("--out", help="A new folder. Confidential: readable by you only (0700).")],
    table: Annotated[Text, typer.Option(help="A table of estimates; default: the first.")] = None,
    cell: Annotated[list[str] | None, typer.Option(help="COLUMN=CODE; default: the cell with the largest χ.")] = None,
) -> None:
    """Plot local sensitivities (confidential).

    Sensitivities under their envelope, and the most influential record of one cell.
    """
    from discreet import api
    from discreet.methods.sensitivity.quick import assigned
    from discreet.methods.sensitivity.utility.envelope import envelope as draw

    drawn = draw(api.release(spec).spec, table, dict(assigned(text, "--cell") for text in cell or []), out)
    for line in drawn.lines:
        say(line)
    say(f"{out}: {', '.join(path.name for path in drawn.files)}")


def add(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (estimate, tradeoff, envelope):
        app.command()(command)
