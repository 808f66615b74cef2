"""The text of `discreet query` around its table, and of `discreet plan` and `run` about cubes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.errors import DiscreetError, ParameterError, PublishError
from discreet.methods.hypercube import commands as cli_cubes
from discreet.methods.hypercube import wording
from discreet.post.laplace_sum import check_level
from discreet.publish.manifest import read
from support.survey import AVERAGE, CONTROLS, DEVIATIONS, TABLES, WEIGHTS, SurveyAgency

EXACT = [{"name": "c", "by": ["strength"], "exact": True}]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> SurveyAgency:
    return SurveyAgency(tmp_path_factory.mktemp("cli") / "survey")


def query(folder: Path, *arguments: str) -> Any:
    actual = CliRunner().invoke(app, ["query", str(folder), *arguments])
    assert actual.exit_code == 0, actual.output
    return actual


@pytest.mark.parametrize(
    ("changes", "title", "errors"),
    [
        ({}, "cube: protected number of records, column 'count'.", "noise alone"),
        (
            {"weights": WEIGHTS, "controls": CONTROLS, "replicates": TABLES},
            "cube: protected weighted total, column 'calibrated', calibrated to cube_occupations, cube_all by least "
            "squares.",
            "noise and sampling (a variance function fitted through 5 cells",
        ),
        (
            {"weights": WEIGHTS, "replicates": DEVIATIONS},
            "cube: protected weighted total, column 'total'.",
            "noise and sampling (8 noisy replicates of every cell)",
        ),
        (
            {"controls": EXACT},
            "cube: number of records, column 'calibrated', calibrated to cube_c by least squares.",
            "noise alone",
        ),
        ({"weights": AVERAGE, "cap": 7}, "cube: weighted total, column 'total'.", "noise alone"),
    ],
)
def test_a_query_says_what_it_shows(survey: SurveyAgency, changes: dict[str, Any], title: str, errors: str) -> None:
    folder = survey.run(**changes)
    actual = query(folder, "--by", "strength")
    lines = actual.stdout.splitlines()
    assert lines[0] == title
    assert lines[1].startswith(f"Standard errors and intervals cover {errors}")
    assert lines[3].split()[:2] == ["strength", "estimate"]
    assert len(lines) == 4 + 3
    caveats = next(table.guarantee.caveats for table in read(folder).tables if table.name == "cube")
    assert [line for line in actual.stderr.splitlines() if line.startswith("Caveat: ")] == [
        f"Caveat: {caveat}" for caveat in caveats
    ]
    expected = {wording.exact(["strength"])} if "controls" in changes and "weights" not in changes else set()
    expected |= {wording.WEIGHTS} if "weights" in changes else set()
    expected |= {wording.AVERAGE} if "cap" in changes else set()
    assert expected <= set(caveats)


def test_caveats_are_told_beside_a_csv_file_and_never_in_it(survey: SurveyAgency, tmp_path: Path) -> None:
    actual = query(survey.run(controls=EXACT), "--by", "strength", "--csv", str(tmp_path / "t.csv"))
    assert "Caveat: Not differentially private: the control totals by strength" in actual.stderr
    assert (tmp_path / "t.csv").read_text().startswith('"strength","estimate"')
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 4


def test_whole_columns_have_no_digits(survey: SurveyAgency) -> None:
    _, estimate, se, *_ = query(survey.run(), "--by", "strength").stdout.splitlines()[4].split()
    assert "." not in estimate
    assert se.partition(".")[2].isdigit()


def test_an_upper_bound_is_called_one(survey: SurveyAgency) -> None:
    model = survey.simulate(weights=WEIGHTS, controls=CONTROLS, replicates=TABLES).cube.model
    assert model.sampling is not None
    bound = model.model_copy(update={"sampling": model.sampling.model_copy(update={"basis": "bound"})})
    assert cli_cubes.title(bound, ())[1].endswith("fitted through 5 cells, an upper bound).")


def test_run_and_query_report_raking_that_fell_back(survey: SurveyAgency) -> None:
    few = {"by": "rake", "cycles": 1, "tolerance": "1e-12", "runs": 2}
    crossed = [
        {"name": "a", "by": ["occupation", "strength"], "epsilon": "1"},
        {"name": "b", "by": ["strength", "outdoors"], "epsilon": "1"},
    ]
    release = survey.open(controls=crossed, calibration=few)
    path, out = survey.folder / f"release{survey.runs}.yaml", survey.folder / "fell"
    actual = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--simulation", "x"])
    assert actual.exit_code == 0, actual.output
    assert (
        "cube: raking did not meet the controls, least squares were used; see cube.simulation.model.json."
        in actual.stdout
    )
    assert "by least squares, since raking did not meet them." in query(out).stdout.splitlines()[0]
    assert cli_cubes.afterwards(read(out), str(out / "elsewhere")) == []
    assert release.spec.tables


def test_plan_says_what_is_not_protected_and_what_is_public(survey: SurveyAgency) -> None:
    (survey.folder / "public.csv").write_text("outdoors,total\nyes,80\nno,320\n")
    public = {"name": "p", "by": ["outdoors"], "file": "public.csv", "provenance": "census"}
    for form in ("dense", "sparse"):
        plan = survey.open(controls=[*EXACT, public], form=form).plan()
        assert [table.cost for table in plan.tables] == [
            "epsilon 2",
            "no epsilon: not protected",
            "public, no privacy loss",
        ]
    plan = survey.open(controls=[*EXACT, public, CONTROLS[0]]).plan()
    meanings = {c.meaning for table in plan.tables for c in table.columns if c.name == "total"}
    assert meanings == {
        "exact confidential number of records, without noise: not protected",
        "public total",
        "number of records, plus noise",
    }
    lines = str(plan).splitlines()
    assert "  cube_c: strength (3) = 3 cells, no epsilon: not protected" in lines
    assert "  cube_p: outdoors (2) = 2 cells, public, no privacy loss" in lines
    assert "  cube_occupations: occupation (5) = 5 cells, epsilon 1, part of cube's" in lines


def test_plan_shows_the_grid(survey: SurveyAgency) -> None:
    weights = {key: value for key, value in WEIGHTS.items() if key != "grid"}
    release = survey.open(weights=weights)
    assert "weight: a weight above 0, rounded to multiples of 0.01; weights above 200 count as 200" in str(
        release.plan()
    )
    assert "rounded to multiples of 1;" in wording.rule("weight", "200", "1", "clamp")


@pytest.mark.parametrize(
    ("level", "do"), [("95", "Write 0.95."), ("99.5", "Write 0.995."), ("1", "Write 0.9."), ("0", "Write 0.9.")]
)
def test_levels_are_shares(survey: SurveyAgency, level: str, do: str) -> None:
    actual = CliRunner().invoke(app, ["query", str(survey.folder), "--level", level])
    assert isinstance(actual.exception, ParameterError)
    assert str(actual.exception).endswith(do)


@pytest.mark.parametrize("level", [0.95, "0.95", 1])
def test_a_level_that_is_not_exact_is_told_so(level: Any) -> None:
    with pytest.raises(ParameterError, match=r"exact fraction, not a (float|str|int).*Fraction\(19, 20\)") as error:
        check_level(level)
    assert "between" not in str(error.value)


def test_folders_that_are_none(survey: SurveyAgency) -> None:
    for place, said in (
        (survey.folder / "quotes.parquet", "is a file. Name the folder of a release"),
        (survey.folder / "nowhere", "has no manifest: there is no such folder. Name the folder of a release"),
        (survey.folder, "has no manifest: it is not a release"),
    ):
        actual = CliRunner().invoke(app, ["query", str(place)])
        assert isinstance(actual.exception, PublishError)
        assert said in str(actual.exception)
        with pytest.raises(DiscreetError, match=said.split(".")[0]):
            read(f"file://{place}")
