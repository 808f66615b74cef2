"""Commands for cubes: query a published cube, and assess one against the confidential records."""

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
    by: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="A variable of the cube, or a coarser level; may be repeated."),
    ] = None,
    where: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="VARIABLE=CODE: restrict to these cells; repeat for several codes or variables."),
    ] = None,
    cube: Annotated[Optional[str], typer.Option(help="The cube, if the release has several.")] = None,  # noqa: UP045
    counts: Annotated[bool, typer.Option("--counts", help="Record counts instead of weighted totals.")] = False,
    level: Annotated[str, typer.Option(help="Confidence level of the intervals, an exact decimal.")] = "0.9",
    csv: Annotated[Optional[Path], typer.Option(help="Write the table to this new CSV file.")] = None,  # noqa: UP045
) -> None:
    """Tabulate a published hypercube with standard errors.

    Reads published files only.
    """
    from discreet.cli.output import table_lines, write_csv
    from discreet.methods.sensitivity.estimate_command import parse_assignment
    from discreet.publish.cubes import open_cube
    from discreet.publish.manifest import read

    chosen: dict[str, list[str]] = {}
    for text in where or []:
        name, code = parse_assignment(text, "--where")
        chosen.setdefault(name, []).append(code)
    share = _share(level)
    opened = open_cube(folder, cube, counts=counts)
    table = opened.table(by or [], chosen, level=share).arrow()
    guarantee = next(entry.guarantee for entry in read(folder).tables if entry.name == opened.model.cube)
    if opened.model.simulation:
        say("SIMULATION: the noise is from a fixed test key and protects nobody.", err=True)
    if csv is not None:
        write_csv(table, csv)
        say(f"{csv}: {table.num_rows:,} rows.")
    else:
        for line in (*title(opened.model, guarantee.caveats), "", *table_lines(table)):
            say(line)
    for caveat in guarantee.caveats:
        say(f"Caveat: {caveat}", err=True)


def title(model: CubeModel, caveats: tuple[str, ...]) -> list[str]:
    """The measure of a table, how it was calibrated, and which errors its standard errors and intervals cover."""
    from discreet.privacy.guarantee import INFORMAL

    protected = "" if any(caveat.startswith(INFORMAL) for caveat in caveats) else "protected "
    what = "number of records" if model.measure == "count" else "weighted total"
    errors = (
        "noise alone, not sampling" if model.sampling is None else f"noise and sampling ({_sampling(model.sampling)})"
    )
    return [
        f"{model.cube}: {protected}{what}, column {model.estimate!r}{_calibrated(model)}.",
        f"Standard errors and intervals cover {errors}.",
    ]


def afterwards(manifest: Manifest, out: str) -> list[str]:
    """Lines about cubes whose raking failed and was replaced by least squares."""
    from pydantic import ValidationError

    from discreet.post.cubes.model import CubeModel
    from discreet.publish.storage import storage_at

    lines = []
    for name in (name for name in manifest.files if name.endswith(MODEL)):
        with suppress(OSError, DiscreetError, ValidationError):  # published and committed: do not fail now
            model = CubeModel.model_validate_json(storage_at(out).read(name))
            if _fell_back(model):
                lines.append(f"{model.cube}: raking did not meet the controls, least squares were used; see {name}.")
    return lines


def _fell_back(model: CubeModel) -> bool:
    return model.calibration is not None and (model.calibration.asked, model.calibration.done) == ("rake", "regression")


def _calibrated(model: CubeModel) -> str:
    if model.calibration is None:
        return ""
    how = "raking" if model.calibration.done == "rake" else "least squares"
    why = ", since raking did not meet them" if _fell_back(model) else ""
    return f", calibrated to {', '.join(control.name for control in model.controls)} by {how}{why}"


def _sampling(model: SamplingModel) -> str:
    if model.kind == "replicates":
        return f"{model.replicates} noisy replicates of every cell"
    bound = ", an upper bound" if model.basis == "bound" else ""
    return f"a variance function fitted through {model.cells} cells{bound}"


def _share(level: str) -> Fraction:
    """A confidence level: 0.95, not 95."""
    from discreet.privacy.exact import format_exact, parse_exact

    share = parse_exact(level, "--level")
    if 0 < share < 1:
        return share
    do = f"write {format_exact(share / 100)}" if 1 < share < 100 else "write 0.9"
    raise ParameterError(f"a confidence level lies strictly between 0 and 1, not {level}", where="--level", do=do)


def assess(
    spec: Annotated[Path, typer.Argument(help="The release, a YAML file.", metavar="RELEASE.YAML")],
    published: Annotated[str, typer.Option("--published", help="The published folder of this release.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder, confidential: readable by you only (0700).")],
    table: Annotated[Optional[str], typer.Option(help="The cube; default: the first.")] = None,  # noqa: UP045
    limit: Annotated[str, typer.Option(help="Estimates below this absolute value are near zero.")] = "1",
    records: Annotated[int, typer.Option(help="Cells with fewer records are not publishable.", min=0)] = 3,
    cv: Annotated[
        str, typer.Option(help="Estimates with a larger coefficient of variation are not publishable.")
    ] = "0.5",
) -> None:
    """Compare a hypercube with the records (confidential)."""
    from discreet import api
    from discreet.formatting import progress
    from discreet.methods.hypercube.assessment.assess import AssessmentOptions
    from discreet.methods.hypercube.assessment.assess import assess as compare
    from discreet.methods.hypercube.assessment.measures import PublicationRule
    from discreet.privacy.exact import parse_exact

    rule = PublicationRule(records, float(parse_exact(cv, "--cv")))
    options = AssessmentOptions(table, float(parse_exact(limit, "--limit")), rule)
    with progress() as observe:
        report = compare(api.release(spec).spec, published, out, options, observe=observe)
    for line in report.lines:
        say(line)
    say(f"{out}: {len(report.files)} files written.")


def add(app: typer.Typer) -> None:
    """Registers these commands."""
    for command in (query, assess):
        app.command()(command)
