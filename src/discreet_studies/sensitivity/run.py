"""`discreet reproduce sensitivity`: the study, its report, tables, figures and the figures' data."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import ParameterError
from discreet.report.blocks import as_csv, write_report
from discreet_studies import Observer
from discreet_studies.sensitivity.figures import data, figures
from discreet_studies.sensitivity.report import TITLE, report
from discreet_studies.sensitivity.study import Study, study

CHILDREN = 20_000_000  # of the paper's size
FEWEST = 100_000  # fewer have no cells for some of the figures


def reproduce(out: Path, children: int, seed: int, observe: Observer) -> list[Path]:
    """Everything into an empty folder; what was written, the report first."""
    if children < FEWEST:
        raise ParameterError(
            "too few children for the figures", where="children", do=f"invent {FEWEST:,} or more, as in {CHILDREN:,}"
        )
    return write(study(children, seed, observe), out, observe)


def write(made: Study, out: Path, observe: Observer) -> list[Path]:
    """The study's files."""
    out.mkdir(parents=True, exist_ok=True)
    charts = figures(made)
    for done, (name, chart) in enumerate(charts.items(), 1):
        chart.save(str(out / f"{name}.svg"))
        observe("figures", done, len(charts))
    shown = {f"data/{name}.csv": as_csv(*columns) for name, columns in data(made, charts).items()}
    written = write_report(out, TITLE, report(made), shown)
    observe("report", 1, 1)
    return written
