"""The post-perturbation assessment, and messages of the commands for cubes."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import DiscreetError, ParameterError, PublishError, SpecError
from discreet.methods.hypercube.assessment.assess import UNTIED, AssessmentOptions, assess
from discreet.pipeline.check import MARK
from support.survey import CONTROLS, REPLICATES, SHAPE, TABLES, WEIGHTS, SurveyAgency, exact, quotes

ALL = {"weights": WEIGHTS, "controls": CONTROLS, "replicates": TABLES}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> tuple[SurveyAgency, Path]:
    made = SurveyAgency(tmp_path_factory.mktemp("assess") / "survey")
    return made, made.run(**ALL)


def test_the_report_is_confidential_and_compares_with_the_records(
    survey: tuple[SurveyAgency, Path], tmp_path: Path
) -> None:
    made, out = survey
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    )
    report = (tmp_path / "report" / "report.md").read_text()
    assert MARK in report
    assert (tmp_path / "report" / "CONFIDENTIAL.txt").read_text().strip() == MARK
    assert stat.S_IMODE((tmp_path / "report").stat().st_mode) == 0o700
    assert actual.lines[0] == MARK
    records = pq.read_table(made.folder / "quotes.parquet").to_pandas()
    truth = np.minimum(np.floor(records["weight"] * 10 + 0.5), 2000).groupby(records["strength"]).sum() / 10
    shown = discreet.open_cube(out).table(["strength"])
    mine = [abs(value - truth[code]) for code, value in zip(shown.codes[0], shown.estimate, strict=True)]
    table = next(t for t in actual.assessment.tables if t.axes == (1,))
    assert table.estimates.mean_abs == pytest.approx(np.mean(mine))
    # The true side's errors are raw replication, (4/R) Σ (θ_r − θ)², which never leaves.
    assert table.errors is not None
    assert actual.lines[1] == UNTIED
    assert UNTIED in report
    assert not any("probably not" in line for line in actual.lines)
    assert any(line.startswith("1 variable:") for line in actual.lines)
    assert "simulated cube (ε = 2 per record, not calibrated)" in report
    assert "occupation × strength" in (tmp_path / "report" / "association.svg").read_text()
    assert {path.name for path in actual.files} >= {"report.md", "report.html", "overlap.svg", "interactive.svg"}
    assert REPLICATES > 1


def test_true_errors_of_squares_are_those_of_the_weights(tmp_path: Path) -> None:
    """√(design effect · Σ w²), w as used: on the grid, at most `max`."""
    made = SurveyAgency(tmp_path / "survey")
    out = made.run(weights=WEIGHTS, squared_weights={"epsilon": "50", "tables": [["strength"]], "design_effect": "1.5"})
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    ).assessment
    records = pq.read_table(made.folder / "quotes.parquet").to_pandas()
    weight = np.minimum(np.floor(records["weight"] * 10 + 0.5), 2000) / 10
    errors = np.sqrt(1.5 * (weight**2).groupby(records["strength"]).sum())
    shown = discreet.open_cube(out).table(["strength"])
    mine = [abs(se - errors[code]) for code, se in zip(shown.codes[0], shown.se, strict=True)]
    table = next(one for one in actual.tables if one.axes == (1,))
    assert table.errors is not None
    assert table.errors.mean_abs == pytest.approx(np.mean(mine), abs=0.002 * errors.mean())  # w²/max is rounded
    assert table.published is not None
    assert table.published.before == 3


def test_replicates_have_their_own_factor(tmp_path: Path) -> None:
    made = SurveyAgency(tmp_path / "survey")
    out = made.run(weights=WEIGHTS, replicates={**TABLES, "factor": "1"})
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    ).assessment
    exactly = exact(pq.read_table(made.folder / "quotes.parquet"))
    deviations = exactly.d.reshape(*SHAPE, REPLICATES).sum(axis=(0, 2)) / 10
    errors = np.sqrt((deviations**2).mean(axis=1))
    shown = discreet.open_cube(out).table(["strength"])
    table = next(one for one in actual.tables if one.axes == (1,))
    assert table.errors is not None
    assert table.errors.mean_abs == pytest.approx(np.abs(shown.se - errors).mean())


def test_records_other_than_those_of_the_release_cause_a_warning(tmp_path: Path) -> None:
    made = SurveyAgency(tmp_path / "survey")
    out = made.run(**ALL)
    made.write(quotes().slice(0, 100))
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    )
    assert actual.lines[1] == UNTIED
    assert "probably not the records of the release" in actual.lines[2]
    assert actual.lines[2] in (tmp_path / "report" / "report.md").read_text()


def test_a_public_total_may_be_far_from_the_records(tmp_path: Path) -> None:
    made = SurveyAgency(tmp_path / "survey")
    (made.folder / "total.csv").write_text("total\n90000\n")
    out = made.run(
        weights=WEIGHTS, controls=[{"name": "all", "by": [], "file": "total.csv", "provenance": "synthetic"}]
    )
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    )
    assert not any("probably not" in line for line in actual.lines)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_what_is_compared_is_what_queries_answer(tmp_path: Path, form: str) -> None:
    made = SurveyAgency(tmp_path / "survey")
    out = made.run(controls=CONTROLS, form=form)
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    ).assessment
    truth = exact(pq.read_table(made.folder / "quotes.parquet")).n.reshape(SHAPE)
    shown = discreet.open_cube(out).table(["occupation", "outdoors"]).estimate
    table = next(one for one in actual.tables if one.axes == (0, 2))
    assert table.estimates.mean_abs == pytest.approx(np.abs(shown - truth.sum(axis=1).reshape(-1)).mean())


def test_without_protected_counts_it_says_why_nothing_is_publishable(tmp_path: Path) -> None:
    made = SurveyAgency(tmp_path / "survey")
    squares = {"epsilon": "5", "tables": [["strength"]], "design_effect": "1"}
    out = made.run(epsilon=None, weights=WEIGHTS, squared_weights=squares)
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    )
    assert actual.lines[-1].startswith("Publishable estimates are not counted")
    assert actual.lines[-1] in (tmp_path / "report" / "report.md").read_text()


def test_counts_alone_have_no_intervals_to_compare(tmp_path: Path) -> None:
    made = SurveyAgency(tmp_path / "survey")
    out = made.run(epsilon="30")
    actual = assess(
        discreet.release(made.folder / "release1.yaml").spec, str(out), tmp_path / "report", AssessmentOptions()
    )
    assert all(one.estimates.mean_abs == 0 for one in actual.assessment.dimensions)
    assert all(one.published is None for one in actual.assessment.dimensions)


def test_what_is_refused(survey: tuple[SurveyAgency, Path], tmp_path: Path) -> None:
    made, out = survey
    spec = discreet.release(made.folder / "release1.yaml").spec
    (tmp_path / "there").mkdir()
    with pytest.raises(PublishError, match="already exists"):
        assess(spec, str(out), tmp_path / "there", AssessmentOptions())
    with pytest.raises(PublishError, match="lies in a release"):
        assess(spec, str(out), out / "report", AssessmentOptions())
    with pytest.raises(SpecError, match="no cube 'other'"):
        assess(spec, str(out), tmp_path / "new", AssessmentOptions(table="other"))
    other = made.open(epsilon="3").spec
    with pytest.raises(PublishError, match="published from another declaration"):
        assess(other, str(out), tmp_path / "new", AssessmentOptions())
    with pytest.raises(PublishError, match="no manifest"):
        assess(spec, str(tmp_path), tmp_path / "new", AssessmentOptions())
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("option", "said"), [("--limit", "near-zero limit"), ("--cv", "coefficient of variation")])
@pytest.mark.parametrize("value", ["-1", "0"])
def test_invalid_options_are_refused(
    survey: tuple[SurveyAgency, Path], tmp_path: Path, option: str, said: str, value: str
) -> None:
    made, out = survey
    given = ["assess", str(made.folder / "release1.yaml"), "--published", str(out), "--out", str(tmp_path / "new")]
    actual = CliRunner().invoke(app, [*given, option, value])
    assert isinstance(actual.exception, ParameterError)
    assert said in str(actual.exception)
    assert not (tmp_path / "new").exists()


def test_a_release_without_a_cube_is_refused(survey: tuple[SurveyAgency, Path], tmp_path: Path) -> None:
    made, out = survey
    spec = made.open(method="counts").spec
    with pytest.raises(SpecError, match="no table with `method: hypercube`"):
        assess(spec, str(out), tmp_path / "new", AssessmentOptions())


def test_the_command_line_answers_queries(survey: tuple[SurveyAgency, Path], tmp_path: Path) -> None:
    _, out = survey
    run = CliRunner().invoke
    shown = run(app, ["query", str(out), "--by", "major", "--where", "strength=heavy", "--where", "strength=light"])
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[3].split()[:3] == ["major", "estimate", "se"]
    assert [line.split()[0] for line in lines[4:]] == ["11", "13"]
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
        (["--where", "strength=huge"], "'huge' is not a code"),
        (["--where", "strength"], "write NAME=VALUE"),
        (["--by", "occupation", "--by", "major"], "same variable"),
        (["--cube", "other"], "no cube 'other'"),
        (["--level", "2"], "level"),
    ],
)
def test_wrong_queries_say_what_to_do(survey: tuple[SurveyAgency, Path], arguments: list[str], said: str) -> None:
    actual = CliRunner().invoke(app, ["query", str(survey[1]), *arguments])
    assert isinstance(actual.exception, DiscreetError)
    assert said.lower() in str(actual.exception).lower()


def test_the_command_line_assesses(survey: tuple[SurveyAgency, Path], tmp_path: Path) -> None:
    made, out = survey
    target = tmp_path / "assessed"
    actual = CliRunner().invoke(
        app, ["assess", str(made.folder / "release1.yaml"), "--published", str(out), "--out", str(target)]
    )
    assert actual.exit_code == 0
    assert MARK in actual.stdout
    assert (target / "report.html").exists()
