"""Commands about cubes: ask one for a table; assess one against the records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer


def query(
    folder: Annotated[str, typer.Argument(help="The folder of a published release.", metavar="FOLDER")],
    by: Annotated[Optional[list[str]], typer.Option(help="A variable, or a coarser one; may be repeated.")] = None,  # noqa: UP045
    where: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="VARIABLE=CODE: only these cells; a variable may have several codes."),
    ] = None,
    cube: Annotated[Optional[str], typer.Option(help="Which cube, if the release has several.")] = None,  # noqa: UP045
    level: Annotated[str, typer.Option(help="Of the intervals, exact.")] = "0.9",
    csv: Annotated[Optional[Path], typer.Option(help="Write the table to this new file instead.")] = None,  # noqa: UP045
) -> None:
    """A table of a published cube, with standard errors. Reads published files only."""
    from discreet.privacy.exact import exact
    from discreet.publish.cubes import open_cube
    from discreet.quick import assigned
    from discreet.terminal import table_lines, write_csv

    chosen: dict[str, list[str]] = {}
    for text in where or []:
        name, code = assigned(text, "--where")
        chosen.setdefault(name, []).append(code)
    opened = open_cube(folder, cube)
    found = opened.table(by or [], chosen, level=exact(level, "--level")).arrow()
    if opened.model.simulation:
        typer.echo("SIMULATION: drawn with a fixed test key. It protects nobody.", err=True)
    if csv is not None:
        write_csv(found, csv)
        typer.echo(f"{csv}: {found.num_rows:,} rows.")
        return
    for line in table_lines(found):
        typer.echo(line)


def assess(
    spec: Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")],
    published: Annotated[str, typer.Option("--published", help="The folder that it was published into.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder, for yourself alone.")],
    table: Annotated[Optional[str], typer.Option(help="Which cube; default: the first.")] = None,  # noqa: UP045
    limit: Annotated[str, typer.Option(help="Estimates below it are near zero.")] = "1",
    records: Annotated[int, typer.Option(help="Cells of fewer records are not publishable.", min=0)] = 3,
    cv: Annotated[str, typer.Option(help="Nor are estimates with a larger coefficient of variation.")] = "0.5",
) -> None:
    """Confidential side: a published cube against the records it was made of."""
    from discreet import api
    from discreet.pipeline.assess import Asked
    from discreet.pipeline.assess import assess as compare
    from discreet.privacy.exact import exact
    from discreet.terminal import progress

    asked = Asked(table, float(exact(limit, "--limit")), records, float(exact(cv, "--cv")))
    with progress() as observe:
        found = compare(api.release(spec).spec, published, out, asked, observe=observe)
    for line in found.lines:
        typer.echo(line)
    typer.echo(f"{out}: {len(found.files)} files written.")


def add(app: typer.Typer) -> None:
    """These commands beside the others."""
    for command in (query, assess):
        app.command()(command)
