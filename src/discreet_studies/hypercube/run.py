"""`discreet reproduce hypercube`: the study, its report, tables, figures and the figures' data."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import ParameterError
from discreet.report.blocks import as_csv, write_report
from discreet_studies import Observer
from discreet_studies.hypercube.figures import data, figures
from discreet_studies.hypercube.printed import RUNS
from discreet_studies.hypercube.report import TITLE, report
from discreet_studies.hypercube.study import Study, study

FEWEST = 20


def reproduce(out: Path, runs: int, seed: int, observe: Observer) -> list[Path]:
    """Everything into an empty folder; what was written, the report first."""
    if runs < FEWEST:
        raise ParameterError("too few runs for an average", where="runs", do=f"make {FEWEST} or more, as in {RUNS:,}")
    return write(study(runs, seed, observe), out, observe)


def write(made: Study, out: Path, observe: Observer) -> list[Path]:
    """The study's files."""
    out.mkdir(parents=True, exist_ok=True)
    charts = figures(made)
    for done, (name, chart) in enumerate(charts.items(), 1):
        chart.save(str(out / f"{name}.svg"))
        observe("figures", done, len(charts))
    shown = {f"data/{name}.csv": as_csv(*columns) for name, columns in data(made).items()}
    written = write_report(out, TITLE, report(made), shown)
    observe("report", 1, 1)
    return written
