"""Commands about cubes: ask one for a table; assess one against the records."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from discreet.errors import DiscreetError, ParameterError
from discreet.formatting import say

if TYPE_CHECKING:
    from discreet.post.cubes.model import CubeModel, SamplingModel
    from discreet.publish.manifest import Manifest

MODEL = ".model.json"


def query(
    folder: Annotated[str, typer.Argument(help="The folder of a published release.", metavar="FOLDER")],
    by: Annotated[Optional[list[str]], typer.Option(help="A variable, or a coarser one. Repeatable.")] = None,  # noqa: UP045
    where: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="VARIABLE=CODE: restrict to these cells. Repeatable, also for one variable."),
    ] = None,
    cube: Annotated[Optional[str], typer.Option(help="The cube, if the release has several.")] = None,  # noqa: UP045
    counts: Annotated[bool, typer.Option("--counts", help="Numbers of records instead of weighted totals.")] = False,
    level: Annotated[str, typer.Option(help="Confidence level of the intervals, exact.")] = "0.9",
    csv: Annotated[Optional[Path], typer.Option(help="Write the table to this new file instead.")] = None,  # noqa: UP045
) -> None:
    """Tabulate a published hypercube with standard errors.

    Reads published files only.
    """
    from discreet.cli.output import table_lines, write_csv
    from discreet.methods.sensitivity.quick import assigned
    from discreet.publish.cubes import open_cube
    from discreet.publish.manifest import read

    chosen: dict[str, list[str]] = {}
    for text in where or []:
        name, code = assigned(text, "--where")
        chosen.setdefault(name, []).append(code)
    share = _share(level)
    opened = open_cube(folder, cube, counts=counts)
    found = opened.table(by or [], chosen, level=share).arrow()
    promise = next(table.guarantee for table in read(folder).tables if table.name == opened.model.cube)
    if opened.model.simulation:
        say("SIMULATION: drawn with a fixed test key. It protects nobody.", err=True)
    if csv is not None:
        write_csv(found, csv)
        say(f"{csv}: {found.num_rows:,} rows.")
    else:
        for line in (*title(opened.model, promise.caveats), "", *table_lines(found)):
            say(line)
    for caveat in promise.caveats:
        say(f"Caveat: {caveat}", err=True)


def title(model: CubeModel, caveats: tuple[str, ...]) -> list[str]:
    """What a table of the cube shows, and where its standard errors come from."""
    from discreet.privacy.guarantee import INFORMAL

    protected = "" if any(caveat.startswith(INFORMAL) for caveat in caveats) else "protected "
    what = "number of records" if model.measure == "count" else "weighted total"
    errors = "noise alone" if model.sampling is None else f"noise and sampling ({_sampling(model.sampling)})"
    return [
        f"{model.cube}: {protected}{what}, column {model.estimate!r}{_calibrated(model)}.",
        f"Standard errors are those of {errors}.",
    ]


def afterwards(made: Manifest, out: str) -> list[str]:
    """The cubes that were to be raked and could not be, a line for each."""
    from pydantic import ValidationError

    from discreet.post.cubes.model import CubeModel
    from discreet.publish.storage import storage_at

    found = []
    for name in (name for name in made.files if name.endswith(MODEL)):
        with suppress(OSError, DiscreetError, ValidationError):  # published and committed: no reason to fail now
            model = CubeModel.model_validate_json(storage_at(out).read(name))
            if _fell_back(model):
                found.append(f"{model.cube}: raking did not meet the controls: least squares instead; see {name}.")
    return found


def _fell_back(model: CubeModel) -> bool:
    return model.calibration is not None and (model.calibration.asked, model.calibration.done) == ("rake", "regression")


def _calibrated(model: CubeModel) -> str:
    if model.calibration is None:
        return ""
    how = "raking" if model.calibration.done == "rake" else "least squares"
    why = ", for raking did not meet them" if _fell_back(model) else ""
    return f", calibrated to {', '.join(control.name for control in model.controls)} by {how}{why}"


def _sampling(model: SamplingModel) -> str:
    if model.kind == "replicates":
        return f"{model.replicates} replicates of every cell"
    bound = ", an upper bound" if model.basis == "bound" else ""
    return f"a variance function fitted through {model.cells} cells{bound}"


def _share(level: str) -> Fraction:
    """0.95, where 95 is not."""
    from discreet.privacy.exact import format_exact, parse_exact

    found = parse_exact(level, "--level")
    if 0 < found < 1:
        return found
    do = f"write {format_exact(found / 100)}" if 1 < found < 100 else "write 0.9"
    raise ParameterError(f"a level lies strictly between 0 and 1, found {level}", where="--level", do=do)


def assess(
    spec: Annotated[Path, typer.Argument(help="The declaration of the release.", metavar="RELEASE.YAML")],
    published: Annotated[str, typer.Option("--published", help="The published folder.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder. Confidential: readable by you only (0700).")],
    table: Annotated[Optional[str], typer.Option(help="The cube; default: the first.")] = None,  # noqa: UP045
    limit: Annotated[str, typer.Option(help="Estimates below it are near zero.")] = "1",
    records: Annotated[int, typer.Option(help="Cells of fewer records count as not publishable.", min=0)] = 3,
    cv: Annotated[str, typer.Option(help="So do estimates with a larger coefficient of variation.")] = "0.5",
) -> None:
    """Compare a hypercube with the records (confidential)."""
    from discreet import api
    from discreet.formatting import progress
    from discreet.methods.hypercube.assessment.assess import AssessmentOptions
    from discreet.methods.hypercube.assessment.assess import assess as compare
    from discreet.methods.hypercube.assessment.measures import PublicationRule
    from discreet.privacy.exact import parse_exact

    rule = PublicationRule(records, float(parse_exact(cv, "--cv")))
    asked = AssessmentOptions(table, float(parse_exact(limit, "--limit")), rule)
    with progress() as observe:
        found = compare(api.release(spec).spec, published, out, asked, observe=observe)
    for line in found.lines:
        say(line)
    say(f"{out}: {len(found.files)} files written.")


def add(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (query, assess):
        app.command()(command)
