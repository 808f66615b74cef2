"""`discreet demo`: real releases of a synthetic agency. Every step is the command that an agency would type."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from discreet import api
from discreet.api import UnitDeclaration
from discreet.cli.output import ledger_lines, table_lines
from discreet.errors import PublishError
from discreet.formatting import plural, progress, say
from discreet.pipeline.check import lines
from discreet.publish.cubes import open_cube
from discreet.publish.lehd.check import check_layout
from discreet.publish.parquet import table_of
from discreet.synth import graduates
from discreet.synth.atlas import write_atlas
from discreet.synth.occupational.files import write_occupations
from discreet.synth.workplaces.files import write_employers

RELEASES = Path(__file__).with_name("demo_releases")
JOBS_SHARE = 5  # records of graduates for each job
QUOTES_SHARE = 10  # records of graduates for each quote
CHILDREN_SHARE, A_TRACT = 5, 250  # records of graduates for each child, children of a tract


def demo(folder: Path, rows: int) -> None:
    """Generate the agency in `folder` (which must be new), then declare, plan, check, run and show its releases."""
    start = time.monotonic()
    if folder.exists():
        raise PublishError("already exists", where=str(folder), do="remove it or name another folder")
    _say(f"A synthetic agency with {rows:,} records of graduates, in {folder}/")
    with progress() as observe:
        graduates(folder, rows, progress=lambda done, total: observe("generate graduates", done, total))
    _released(folder, "graduates", "12", {"person": "person_id"}, "--unit person:person_id")
    _say(f"discreet check-layout {folder}/out/pseoe_all.csv")
    layout = check_layout(folder / "out" / "pseoe_all.csv")
    say(f"{plural(layout.total, 'violation')} of the layout {layout.layout} in {plural(layout.rows, 'row')}")

    jobs, many = folder / "employers", max(rows // JOBS_SHARE, 1)
    _say(f"Employers, their workers and {many:,} jobs, in {jobs}/: the size of an establishment is protected, too")
    with progress() as observe:
        write_employers(jobs, many, progress=lambda done, total: observe("generate jobs", done, total))
    unit = {"establishment": "workplace_id", "alpha": "0.1", "adversary": "strong"}
    _released(jobs, "jobs", "5", unit, "--unit establishment:workplace_id --alpha 0.1 --adversary strong")

    children, many = folder / "atlas", max(rows // CHILDREN_SHARE, A_TRACT)
    _say(f"{many:,} children and a regression in every tract, in {children}/: a weaker guarantee")
    with progress() as observe:
        write_atlas(
            children, many, many // A_TRACT, progress=lambda done, total: observe("generate children", done, total)
        )
    _released(children, "children", "24", "record", "--unit record --delta 0.000001", "0.000001")

    survey, many = folder / "survey", max(rows // QUOTES_SHARE, 100)
    _say(f"A survey of {many:,} quotes, in {survey}/: one hypercube, which gives every table with standard errors")
    with progress() as observe:
        write_occupations(survey, many, progress=lambda done, total: observe("generate quotes", done, total))
    whole = {"establishment": "establishment", "whole": True}
    _released(survey, "survey", "7", whole, "--unit whole_establishment:establishment")
    _say(f"discreet query {survey}/out --by strength --where outdoors=3")
    _print(table_lines(open_cube(survey / "out").table(["strength"], {"outdoors": ["3"]}).arrow()))
    places = ", ".join(f"{where}/out" for where in (folder, jobs, children, survey))
    _say(f"All of this took {time.monotonic() - start:.0f} seconds")
    _say(f"The releases are in {places}: manifest.json, codebook.md, tables as Parquet and CSV")
    folders = " ".join(f"{where}/out" for where in (folder, jobs, children, survey))
    _say(f"To open them in a browser: discreet serve {folders}")


def declaration(asset: str) -> str:
    """The declaration of a release of one of the agency's assets."""
    return (RELEASES / f"{asset}.yaml").read_text(encoding="utf-8")


def _released(folder: Path, asset: str, budget: str, unit: UnitDeclaration, options: str, delta: str = "0") -> None:
    """Declare, set a budget, plan, check, run, and show the outputs."""
    (folder / "release.yaml").write_text(declaration(asset), encoding="utf-8")
    release = api.release(folder / "release.yaml")
    ledger = f"--ledger {folder}/{release.spec.ledger}"
    _say(f"discreet ledger budget {asset} --epsilon {budget} {options} {ledger}")
    api.set_budget(release.ledger, asset, epsilon=budget, unit=unit, delta=delta)
    _say(f"discreet plan {folder}/release.yaml      # reads no confidential data")
    _print(release.plan().lines)
    _say(f"discreet check {folder}/release.yaml     # confidential")
    _print(lines(release.check(), release.spec))
    _say(f"discreet run {folder}/release.yaml --out {folder}/out")
    with progress() as observe:
        manifest = release.run(folder / "out", observe=observe)
    _print([manifest.guarantee_in_words, *(f"Caveat: {text}" for text in manifest.guarantee.caveats)])
    for table in manifest.tables:
        _print(["", f"{table.name}: {plural(table.cells, 'cell')}, one row each, also for empty ones"])
        _print(_glimpse(folder / "out" / table.files[0]))
    _say(f"discreet ledger show {ledger}")
    _print(ledger_lines(release.ledger))


def _glimpse(path: Path, rows: int = 4, columns: int = 11) -> list[str]:
    """The first rows and columns of a published table, as aligned text."""
    table = table_of(path).slice(0, rows)
    names = [n for n in table.column_names if not n.startswith(("p25", "p75", "bin_")) and not n.endswith("_width")]
    table = table.select(names[:columns])
    return [f"  {line}" for line in table_lines(table)]


def _say(text: str) -> None:
    width = min(shutil.get_terminal_size().columns, 100)
    _print(["", "─" * width, f"▸ {text}", ""])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
