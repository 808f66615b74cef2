"""`discreet demo`: an invented agency, a real release. Every step is the command an agency would type."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from discreet import api
from discreet.cli.output import ledger_lines, progress, table_lines
from discreet.errors import PublishError
from discreet.formatting import plural
from discreet.pipeline.check import lines
from discreet.publish.cubes import open_cube
from discreet.publish.lehd.check import examine
from discreet.publish.parquet import table_of
from discreet.screen import say
from discreet.synth import graduates
from discreet.synth.atlas import write_atlas
from discreet.synth.occupational.files import write_occupations
from discreet.synth.workplaces.files import write_employers

RELEASE = """\
release: graduates-demo
asset: graduates
source: {graduates: graduates.parquet}
unit: {person: person_id, max_records: 6}
domains:
  programme:
    groups: public/programmes.csv
    columns: [institution, degree_level, cipcode]
    coarser:
      programme4: [institution, degree_level, cip4]
      family: [institution, degree_level, cip2]
      school: [institution, degree_level]
      degree: [degree_level]
      degree_field: [degree_level, cip4]
    provenance: the synthetic agency's public list of programmes
  institution: {codes: public/institutions.csv, label: label}
  cipcode: {codes: public/cipcodes.csv, label: label}
  degree_level: {codes: public/degree_levels.csv, label: label, undeclared: other}
  field: {hierarchy: public/cip.csv, levels: [cip6, cip4, cip2], column: cipcode, undeclared: other}
  residence: {hierarchy: public/states.csv, levels: [state, division], undeclared: other}
  grad_cohort: {values: ["2010", "2013", "2016", "2019", "2022"]}
  years_after: {values: ["1", "5", "10"]}
tables:
  - {name: programmes, method: counts, by: [programme, grad_cohort], epsilon: "1.5", nonnegative: true}
  - {name: fields, method: counts, by: [degree_level, cip4, years_after], epsilon: "1"}
  - {name: divisions, method: counts, by: [division, cip2], epsilon: "0.5", round_to: 5}
  - name: earnings
    method: earnings
    by: [programme4, grad_cohort, years_after]
    value: earnings
    sample: [{column: earnings, at_least: 10000}, {column: employed, equals: ["true"]}]
    epsilon: "4"
    withhold: {degree_level: ["07", "17"]}
    estimator: shrunk
    similar: [[degree, years_after], [degree_field, years_after]]
    levels:
      - {name: families, by: [family, years_after]}
      - {name: schools, by: [school, years_after], epsilon: "1"}
    layout: lehd
"""


JOBS = """\
release: jobs-demo
asset: jobs
source: {jobs: jobs.parquet, workers: workers.parquet, workplaces: workplaces.parquet}
join: {workers: worker_id, workplaces: workplace_id}
unit: {establishment: workplace_id, alpha: "0.1", adversary: strong}
domains:
  place: {codes: public/places.csv, label: label}
  sector: {codes: public/sectors.csv, label: label}
  ownership: {codes: public/ownership.csv, label: label}
  sex: {codes: public/sexes.csv, label: label}
tables:
  - {name: jobs, method: employer, by: [place, sector, ownership], epsilon: "2", largest: {epsilon: "1"}}
  - {name: women, method: employer, by: [sector, ownership], only: {sex: CS02}, epsilon: "1"}
"""
JOBS_SHARE = 5  # records of graduates for each job

CHILDREN = """\
release: atlas-demo
asset: children
source: {children: children.parquet}
unit: record
domains:
  places: {hierarchy: public/tracts.csv, levels: [tract, county, state]}
tables:
  - name: mobility
    method: sensitivity
    by: [tract]
    groups: [state]
    statistic: {name: prediction, x: parent_rank, y: kid_rank, at: "0.25", winsorise: "0.05"}
    variables:
      parent_rank: {low: "0", high: "1"}
      kid_rank: {low: "0", high: "1"}
    epsilon: "8"
    delta: "0.000001"
    minimum: {count: 20}
    formats: [parquet, csv, dta]
"""
SURVEY = """\
release: survey-demo
asset: survey
source: {survey: survey.parquet}
unit: {establishment: establishment, whole: true, max_records: 8}
domains:
  occupations: {hierarchy: public/occupations.csv, levels: [occupation, major_group]}
  education: {codes: public/education.csv, code: education, label: label}
  strength: {codes: public/strength.csv, code: strength, label: label}
  outdoors: {codes: public/outdoors.csv, code: outdoors, label: label}
tables:
  - name: requirements
    method: hypercube
    by: [major_group, education, strength, outdoors]
    weights: {column: weight, max: "1000", epsilon: "4"}
    controls:
      - {name: groups, by: [major_group], epsilon: "1"}
      - {name: strength, by: [strength, outdoors], epsilon: "1"}
    squares: {epsilon: "1", tables: [[strength], [outdoors]], effect: "1.5"}
"""
QUOTES_SHARE = 10  # records of graduates for each quote
CHILDREN_SHARE, A_TRACT = 5, 250  # records of graduates for each child, children of a tract


def demo(folder: Path, rows: int) -> None:
    """Build the agency in `folder` (which must be new), then declare, plan, check, run and look."""
    start = time.monotonic()
    if folder.exists():
        raise PublishError("exists already", where=str(folder), do="remove it or name another folder")
    _say(f"An invented agency with {rows:,} records of graduates, in {folder}/")
    with progress() as observe:
        graduates(folder, rows, progress=lambda done, total: observe("invent graduates", done, total))
    _released(folder, "graduates", RELEASE, "12", {"person": "person_id"}, "--unit person:person_id")
    _say(f"discreet check-layout {folder}/out/pseoe_all.csv")
    layout = examine(folder / "out" / "pseoe_all.csv")
    say(f"{plural(layout.total, 'violation')} of the layout {layout.layout} in {plural(layout.rows, 'row')}")

    jobs, many = folder / "employers", max(rows // JOBS_SHARE, 1)
    _say(f"Employers, their workers and {many:,} jobs, in {jobs}/: an establishment is hidden, too")
    with progress() as observe:
        write_employers(jobs, many, progress=lambda done, total: observe("invent jobs", done, total))
    unit = {"establishment": "workplace_id", "alpha": "0.1", "adversary": "strong"}
    _released(jobs, "jobs", JOBS, "5", unit, "--unit establishment:workplace_id --alpha 0.1")

    children, many = folder / "atlas", max(rows // CHILDREN_SHARE, A_TRACT)
    _say(f"{many:,} children and a regression in every tract, in {children}/: less is promised, and it says so")
    with progress() as observe:
        write_atlas(
            children, many, many // A_TRACT, progress=lambda done, total: observe("invent children", done, total)
        )
    _released(children, "children", CHILDREN, "24", "record", "--unit record --delta 0.000001", "0.000001")

    survey, many = folder / "survey", max(rows // QUOTES_SHARE, 100)
    _say(f"A survey of {many:,} quotes, in {survey}/: one cube, from which every table is made, with standard errors")
    with progress() as observe:
        write_occupations(survey, many, progress=lambda done, total: observe("invent quotes", done, total))
    whole = {"establishment": "establishment", "whole": True}
    _released(survey, "survey", SURVEY, "7", whole, "--unit whole_establishment:establishment")
    _say(f"discreet query {survey}/out --by strength --where outdoors=3")
    _print(table_lines(open_cube(survey / "out").table(["strength"], {"outdoors": ["3"]}).arrow()))
    places = ", ".join(f"{where}/out" for where in (folder, jobs, children, survey))
    _say(f"All of this took {time.monotonic() - start:.0f} seconds")
    _say(f"Look around in {places}: manifest.json, codebook.md, the tables as Parquet and CSV")
    folders = " ".join(f"{where}/out" for where in (folder, jobs, children, survey))
    _say(f"Or open them in a browser: discreet serve {folders}")


def _released(
    folder: Path, asset: str, spec: str, budget: str, unit: dict[str, Any] | str, said: str, delta: str = "0"
) -> None:
    """Declare, set a budget, plan, check, run, and look at what came out."""
    (folder / "release.yaml").write_text(spec, encoding="utf-8")
    release = api.release(folder / "release.yaml")
    ledger = f"--ledger {folder}/{release.spec.ledger}"
    _say(f"discreet ledger budget {asset} --epsilon {budget} {said} {ledger}")
    api.set_budget(release.ledger, asset, epsilon=budget, unit=unit, delta=delta)
    _say(f"discreet plan {folder}/release.yaml      # reads no confidential data")
    _print(release.plan().lines)
    _say(f"discreet check {folder}/release.yaml     # confidential side, for the operator")
    _print(lines(release.check(), release.spec))
    _say(f"discreet run {folder}/release.yaml --out {folder}/out")
    with progress() as observe:
        made = release.run(folder / "out", observe=observe)
    _print([made.guarantee_in_words, *(f"Caveat: {text}" for text in made.guarantee.caveats)])
    for table in made.tables:
        _print(["", f"{table.name}: {plural(table.cells, 'cell')}, each with a row, empty or not"])
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
