"""`discreet reproduce employer`: the study, its report, tables, figures, and the comparator's own tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.report.blocks import write_report
from discreet.synth.industries import OWNERSHIP
from discreet.synth.sectors import SECTORS
from discreet_studies import Observer
from discreet_studies.employer.comparators.infusion_files import write_comparator
from discreet_studies.employer.contenders import Grid
from discreet_studies.employer.figures import TITLES as FIGURES
from discreet_studies.employer.figures import figure, summary_figure, sweep_figure
from discreet_studies.employer.report import TITLE, report
from discreet_studies.employer.study import Study, study
from discreet_studies.employer.tables import all_correlations, all_ratios
from discreet_studies.employer.workloads import TRIALS, World, world


def reproduce(
    out: Path, jobs: int, seed: int, observe: Observer, grid: Grid | None = None, trials: int = TRIALS
) -> list[Path]:
    """Everything into an empty folder; what was written, the report first."""
    made = study(jobs, seed, observe, grid, trials)
    out.mkdir(parents=True, exist_ok=True)
    _draw(made, out, observe)
    _compare(world(jobs, seed, made.infusion, 1), out / "infusion")
    ratios = {"ratios.csv": all_ratios(made), "correlations.csv": all_correlations(made)}
    written = write_report(out, TITLE, report(made), ratios)
    observe("report", 1, 1)
    return written


def _draw(made: Study, out: Path, observe: Observer) -> None:
    charts: dict[str, Callable[[Study], Any]] = {
        f"figure-{number}": partial(figure, number=number) for number in FIGURES
    }
    charts |= {"summary": summary_figure, "infusion-parameters": sweep_figure}
    for done, (name, chart) in enumerate(charts.items(), 1):
        chart(made).save(str(out / f"{name}.svg"))
        observe("figures", done, len(charts))


def _compare(made: World, folder: Path) -> None:
    """The comparator's table of workload 1, in files that say that they are not protected."""
    frame = made.frame
    sector, ownership = np.divmod(np.arange(frame.cells) % (len(SECTORS) * len(OWNERSHIP)), len(OWNERSHIP))
    labels = {
        "place": pa.array([place.code for place in frame.places]).take(pa.array(made.place)),
        "sector": pa.array([entry.code for entry in SECTORS]).take(pa.array(sector)),
        "ownership": pa.array([entry.code for entry in OWNERSHIP]).take(pa.array(ownership)),
    }
    write_comparator(folder, "jobs", labels, ("jobs",), made.establishments.infused, made.infusion)
