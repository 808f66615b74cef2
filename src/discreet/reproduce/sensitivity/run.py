"""`discreet reproduce sensitivity`: the study, its report, tables, figures and the figures' data."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import ParameterError
from discreet.reproduce import Observer
from discreet.reproduce.document import as_csv, as_html, as_markdown
from discreet.reproduce.sensitivity.figures import data, figures
from discreet.reproduce.sensitivity.report import TITLE, all_tables, report
from discreet.reproduce.sensitivity.study import Study, study

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
    for folder in ("tables", "data"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    charts = figures(made)
    for done, (name, chart) in enumerate(charts.items(), 1):
        chart.save(str(out / f"{name}.svg"))
        observe("figures", done, len(charts))
    blocks = report(made)
    texts = {"report.md": as_markdown(blocks), "report.html": as_html(TITLE, blocks, out)}
    for table in all_tables(blocks):
        texts[f"tables/{table.name}.csv"] = as_csv(table.columns, table.rows)
        texts[f"tables/{table.name}.md"] = table.markdown() + "\n"
    texts |= {f"data/{name}.csv": as_csv(*shown) for name, shown in data(made, charts).items()}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    observe("report", 1, 1)
    rest = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "report.md")
    return [out / "report.md", *rest]
