"""The post-perturbation assessment, and what the command line says about cubes."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.surveyors import CONTROLS, REPLICATES, TABLES, WEIGHTS, Survey
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import DiscreetError, PublishError, SpecError
from discreet.pipeline.assess import Asked, assess
from discreet.pipeline.check import MARK

ALL = {"weights": WEIGHTS, "controls": CONTROLS, "replicates": TABLES}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> tuple[Survey, Path]:
    made = Survey(tmp_path_factory.mktemp("assess") / "survey")
    return made, made.run(**ALL)


def test_the_report_is_confidential_and_compares_with_the_records(survey: tuple[Survey, Path], tmp_path: Path) -> None:
    made, out = survey
    found = assess(discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", Asked())
    report = (tmp_path / "report" / "report.md").read_text()
    assert MARK in report
    assert (tmp_path / "report" / "CONFIDENTIAL.txt").read_text().strip() == MARK
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o700
    assert found.lines[0] == MARK
    records = pq.read_table(made.folder / "quotes.parquet").to_pandas()
    truth = np.minimum(np.floor(records["weight"] * 10 + 0.5), 2000).groupby(records["strength"]).sum() / 10
    shown = discreet.open_cube(out).table(["strength"])
    mine = [abs(value - truth[code]) for code, value in zip(shown.codes[0], shown.estimate, strict=True)]
    table = next(t for t in found.found.tables if t.axes == (1,))
    assert table.estimates.mean_abs == pytest.approx(np.mean(mine))
    # The true side's errors are raw replication, (4/R) Σ (θ_r − θ)², which never leaves.
    assert table.errors is not None
    assert {path.name for path in found.files} >= {"report.md", "report.html", "overlap.svg", "interactive.svg"}
    assert REPLICATES > 1


def test_counts_alone_have_no_intervals_to_compare(tmp_path: Path) -> None:
    made = Survey(tmp_path / "survey")
    out = made.run(epsilon="1000000")
    found = assess(discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", Asked())
    assert all(one.estimates.mean_abs == 0 for one in found.found.dimensions)  # so large an epsilon changes nothing
    assert all(one.published is None for one in found.found.dimensions)


def test_what_is_refused(survey: tuple[Survey, Path], tmp_path: Path) -> None:
    made, out = survey
    spec = discreet.release(made.folder / "release1.yaml").spec
    (tmp_path / "there").mkdir()
    with pytest.raises(PublishError, match="exists already"):
        assess(spec, str(out), tmp_path / "there", Asked())
    with pytest.raises(PublishError, match="lies in a release"):
        assess(spec, str(out), out / "report", Asked())
    with pytest.raises(SpecError, match="no such cube"):
        assess(spec, str(out), tmp_path / "new", Asked(table="other"))
    other = made.open(epsilon="3").spec
    with pytest.raises(PublishError, match="not made by this declaration"):
        assess(other, str(out), tmp_path / "new", Asked())
    with pytest.raises(PublishError, match="no manifest"):
        assess(spec, str(tmp_path), tmp_path / "new", Asked())
    assert not (tmp_path / "new").exists()


def test_the_command_line_answers_queries(survey: tuple[Survey, Path], tmp_path: Path) -> None:
    _, out = survey
    run = CliRunner().invoke
    shown = run(app, ["query", str(out), "--by", "major", "--where", "strength=heavy", "--where", "strength=light"])
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].split()[:3] == ["major", "estimate", "se"]
    assert [line.split()[0] for line in lines[1:]] == ["11", "13"]
    assert "SIMULATION" in shown.stderr
    again = run(app, ["query", str(out), "--by", "strength", "--csv", str(tmp_path / "t.csv")])
    assert again.exit_code == 0
    assert (tmp_path / "t.csv").read_text().splitlines()[1].startswith('"light",')
    twice = run(app, ["query", str(out), "--by", "strength", "--csv", str(tmp_path / "t.csv")])
    assert isinstance(twice.exception, DiscreetError)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "colour"], "no variable 'colour'"),
        (["--where", "strength=huge"], "'huge' is no code"),
        (["--where", "strength"], "write NAME=VALUE"),
        (["--by", "occupation", "--by", "major"], "same variable"),
        (["--cube", "other"], "no cube 'other'"),
        (["--level", "2"], "level"),
    ],
)
def test_wrong_queries_say_what_to_do(survey: tuple[Survey, Path], arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(app, ["query", str(survey[1]), *arguments])
    assert isinstance(found.exception, DiscreetError)
    assert said.lower() in str(found.exception).lower()


def test_the_command_line_assesses(survey: tuple[Survey, Path], tmp_path: Path) -> None:
    made, out = survey
    target = tmp_path / "assessed"
    found = CliRunner().invoke(
        app, ["assess", str(made.folder / "release1.yaml"), "--published", str(out), "--out", str(target)]
    )
    assert found.exit_code == 0
    assert MARK in found.stdout
    assert (target / "report.html").exists()
