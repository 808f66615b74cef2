"""`python -m discreet.evaluate STUDY --out DIR`: protected numbers beside the true ones, on invented data."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from discreet.errors import DiscreetError, ParameterError
from discreet.noise.key import ReleaseKey
from discreet.privacy.exact import exact, written
from discreet.screen import say
from discreet_studies.pseo.earnings import trial
from discreet_studies.pseo.flows import study
from discreet_studies.pseo.graduates import synthetic_cells

PERCENTAGES = (25, 50, 75)
MINIMUM = 30
LEAST = 10_000
EPSILONS = (Fraction(1, 2), Fraction(3, 2), Fraction(3))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when drawn, 2 when refused."""
    given = _parser().parse_args(arguments)
    try:
        for path in given.run(given):
            say(str(path))
    except DiscreetError as refusal:
        say(str(refusal), err=True)
        return 2
    return 0


def earnings(out: Path, rows: int, epsilon: Fraction, seed: int) -> list[Path]:
    """Draw published percentiles beside the truth, as SVG and PNG."""
    from discreet_studies.pseo.percentile_plot import percentile_plot

    points = tuple(Fraction(percentage, 100) for percentage in PERCENTAGES)
    if rows < LEAST:
        raise ParameterError(f"{rows} records fill no cells", where="rows", do=f"invent at least {LEAST:,}")
    with tempfile.TemporaryDirectory() as folder:
        cells, families = synthetic_cells(Path(folder), rows, seed)
    made = trial(cells, families, points, MINIMUM, epsilon, ReleaseKey.simulation("evaluate"))
    title = f"Simulation: invented graduates, epsilon {written(epsilon)} a record"
    chart = percentile_plot(cells, made, points, title)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"earnings.{kind}" for kind in ("svg", "png")]
    for path in paths:
        chart.save(str(path), scale_factor=1.5 if path.suffix == ".png" else 1)
    return paths


def flows(out: Path, institutions: int, seed: int) -> list[Path]:
    """Compare the rules of correction: every score as CSV, tables as Markdown, a picture as SVG."""
    from discreet_studies.pseo.flow_plots import as_csv, as_markdown, flow_plot

    made = study(EPSILONS, institutions, seed)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"flows.{kind}" for kind in ("csv", "md", "svg")]
    paths[0].write_text(as_csv(made), encoding="utf-8")
    paths[1].write_text(as_markdown(made), encoding="utf-8")
    flow_plot(made, "Simulation: flows of invented graduates, measured and corrected").save(str(paths[2]))
    return paths


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m discreet.evaluate", description=__doc__)
    studies = parser.add_subparsers(required=True, metavar="study")
    command = studies.add_parser("earnings", help="earnings percentiles beside the truth")
    command.add_argument("--out", type=Path, required=True, help="the folder to write into")
    command.add_argument("--rows", type=int, default=1_000_000, help="records to invent (default 1000000)")
    command.add_argument("--epsilon", default="1.5", help='for one record, exact: "1.5" (the default) or "3/2"')
    command.add_argument("--seed", type=int, default=7, help="the same seed gives the same agency")
    command.set_defaults(run=lambda given: earnings(given.out, given.rows, exact(given.epsilon, "epsilon"), given.seed))
    command = studies.add_parser("flows", help="corrected flows beside the truth, by every rule")
    command.add_argument("--out", type=Path, required=True, help="the folder to write into")
    command.add_argument("--institutions", type=int, default=40, help="replications (default 40)")
    command.add_argument("--seed", type=int, default=7, help="the same seed gives the same countries")
    command.set_defaults(run=lambda given: flows(given.out, given.institutions, given.seed))
    return parser


if __name__ == "__main__":
    sys.exit(main())
