"""Declarations of cubes: what is refused, with what, where and what to do, before anything is spent."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import DiscreetError, DomainError, GuaranteeError, ParameterError, SourceError, SpecError
from discreet.methods.hypercube.spec import (
    AverageWeightNoise,
    Hypercube,
    RakingCalibration,
    RegressionCalibration,
    Weights,
)
from support.survey import AVERAGE, CONTROLS, DEVIATIONS, TABLES, WEIGHTS, SurveyAgency

SQUARES = {"epsilon": "1", "tables": [["major"]], "design_effect": "1.5"}
STRATA = {**AVERAGE, "noise": {"average": {"strata": ["occupation"], "weight": "3"}}}


@pytest.fixture
def survey(tmp_path: Path) -> SurveyAgency:
    return SurveyAgency(tmp_path / "survey")


def refused(survey: SurveyAgency, changes: dict[str, Any], kind: type[DiscreetError], said: str) -> DiscreetError:
    """By `run`, with one line that names the place; nothing is spent, nothing is written."""
    with pytest.raises(kind, match=said) as error:
        survey.open(**changes).run(survey.folder / "out", simulation="survey")
    assert "\n" not in error.value.what
    assert error.value.where
    assert not (survey.folder / "out").exists()
    assert not survey_ledger(survey)
    return error.value


def survey_ledger(survey: SurveyAgency) -> dict[str, Any]:
    return dict(discreet.ledger(survey.folder / "ledger.sqlite").chain().releases())


def without(declared: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in declared.items() if name != key}


def control(**changes: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "by": ["strength"], **changes}]


DECLARED: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": None}, "'epsilon' is missing: the privacy loss of the counts"),
    ({"epsilon": None, "weights": AVERAGE, "cap": 3}, "'epsilon' is missing: the privacy loss of the counts"),
    ({"epsilon": "0"}, "above 0"),
    ({"epsilon": 2.5}, "float"),
    ({"by": []}, "by"),
    ({"cap": 0}, "cap"),
    ({"cap": 2**29 + 1}, "cap"),
    ({"epsilon": None, "cap": 3, "weights": WEIGHTS}, "cap bounds the noise of counts"),
    ({"weights": AVERAGE}, "`noise: average` needs `cap`"),
    ({"weights": {**AVERAGE, "epsilon": "1"}, "cap": 3}, "leave `epsilon` and `cap` out"),
    ({"weights": {**AVERAGE, "cap": "300"}, "cap": 3}, "leave `epsilon` and `cap` out"),
    ({"weights": STRATA, "cap": 3}, "leave `weight` out"),
    ({"weights": {**AVERAGE, "noise": "mean"}, "cap": 3}, "largest"),
    ({"weights": {**WEIGHTS, "epsilon": None}}, "epsilon"),
    ({"weights": {"column": "weight", "max": "200"}}, "'epsilon' is missing: the privacy loss of weighted totals"),
    ({"weights": {**WEIGHTS, "grid": "0.3"}}, "not a multiple of the grid"),
    ({"weights": {**WEIGHTS, "grid": "300"}}, "between 1 and 2\\^31 steps"),
    ({"weights": {**WEIGHTS, "max": "1000000", "grid": "0.0001"}}, "between 1 and 2\\^31 steps"),
    ({"weights": {**WEIGHTS, "max": "0.0000000001"}}, "lies outside"),
    ({"weights": {**WEIGHTS, "cap": "199"}}, "cap is below max"),
    ({"weights": {**WEIGHTS, "above": "keep"}}, "clamp"),
    ({"weights": {**WEIGHTS, "colum": "w"}}, "unknown key 'colum'; did you mean 'column'"),
    ({"controls": control()}, "needs one of `epsilon`"),
    ({"controls": control(epsilon="1", exact=True)}, "needs one of `epsilon`"),
    ({"controls": control(exact=False)}, "needs one of `epsilon`"),
    ({"controls": control(exact=True, cap=3)}, "cap bounds the noise of a measured control"),
    ({"controls": control(epsilon="1", value="x")}, "describe a `file`"),
    ({"controls": control(exact=True, provenance="x")}, "describe a `file`"),
    ({"controls": control(epsilon="1") * 2}, "duplicate control 'c'"),
    ({"controls": control(epsilon="1", cap=5), "weights": WEIGHTS}, "'c' measures weighted totals"),
    ({"controls": control(epsilon="1"), "weights": AVERAGE, "cap": 5}, "'c' needs `cap`, as the cube does"),
    ({"controls": control(epsilon="1") * 101}, "100"),
    ({"calibration": "rake"}, "`calibration` needs `controls`"),
    ({"calibration": "regression"}, "`calibration` needs `controls`"),
    ({"controls": CONTROLS, "calibration": "raking"}, "rake"),
    ({"controls": CONTROLS, "calibration": {"by": "rake", "cycles": 0}}, "cycles"),
    ({"controls": CONTROLS, "calibration": {"by": "rake", "runs": 1}}, "runs"),
    ({"controls": CONTROLS, "calibration": {"by": "rake", "tolerance": "0"}}, "above 0"),
    ({"controls": CONTROLS, "calibration": {"by": "regression", "cycles": 3}}, "unknown key 'cycles'"),
    ({"form": "sparse", "weights": WEIGHTS}, "is for counts: the noise of weighted totals"),
    ({"form": "sparse", "integers": True}, "`integers` needs a dense cube"),
    ({"form": "sparse", "weights": AVERAGE, "cap": 3, "replicates": DEVIATIONS}, "name small `tables`"),
    ({"replicates": TABLES}, "declare `weights` as well"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "tables": [[]]}}, "tables"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "columns": ["rep_1"]}}, "columns"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "columns": {"prefix": "rep_", "count": 1}}}, "columns"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "epsilon": None}}, "epsilon"),
    ({"squared_weights": SQUARES}, "`squared_weights` need `weights`"),
    ({"weights": WEIGHTS, "replicates": TABLES, "squared_weights": SQUARES}, "cannot be combined with `replicates`"),
    ({"weights": WEIGHTS, "squared_weights": {**SQUARES, "tables": []}}, "tables"),
    (
        {"weights": WEIGHTS, "squared_weights": without(SQUARES, "design_effect")},
        "'design_effect' is missing.*1 for a simple random sample",
    ),
    ({"weights": WEIGHTS, "squared_weights": without(SQUARES, "tables")}, "'tables' is missing: small tables"),
    ({"weights": without(WEIGHTS, "max")}, "'max' is missing: the largest weight"),
    ({"weights": {"colum": "w"}}, "unknown key 'colum'; did you mean 'column'"),
    ({"weights": WEIGHTS, "replicates": without(TABLES, "bound")}, "'bound' is missing: the largest difference"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "bound": "300000000"}}, "more than 2\\^31 steps of the grid"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "columns": ["rep_1", "rep_1"]}}, "duplicate column 'rep_1'"),
    ({"weights": WEIGHTS, "replicates": {**TABLES, "columns": "rep_"}}, "expected a list of columns, or `{prefix"),
    ({"form": "sparse", "controls": CONTROLS, "calibration": "rake"}, "raking multiplies.*for least squares"),
    ({"controls": CONTROLS, "calibration": "regresion"}, "unknown calibration 'regresion'; did you mean 'regression'"),
    ({"controls": CONTROLS, "calibration": {"cycles": 3}}, "'by' is missing: `regression` or `rake`"),
    ({"controls": CONTROLS, "calibration": ["rake"]}, "expected `regression`, `rake`, or keys and values"),
    ({"controls": [{"name": "c", "epsilon": "1"}]}, "'by' is missing: variables of the cube"),
    ({"controls": control(file="public.csv")}, "'provenance' is missing: the source of the totals in `file`"),
    ({"controls": control(file="public.csv", provenance=" ")}, "'provenance' is missing"),
    ({"formats": ["csv"]}, "queries of the cube need Parquet"),
    ({"formats": ["csv", "csv"]}, "duplicate entry in `formats`"),
    ({"formats": []}, "formats"),
    ({"hypercub": 1}, "unknown key 'hypercub'"),
    ({"whole": True}, "key 'whole' is now called 'integers': write `integers: true`"),
    ({"squares": SQUARES}, "key 'squares' is now called 'squared_weights': write `squared_weights: "),
    (
        {"weights": WEIGHTS, "squared_weights": {**without(SQUARES, "design_effect"), "effect": "1.5"}},
        "key 'effect' is now called 'design_effect': write `design_effect: '1.5'`",
    ),
]


@pytest.mark.parametrize(("changes", "said"), DECLARED)
def test_declarations_that_do_not_hold_together(survey: SurveyAgency, changes: dict[str, Any], said: str) -> None:
    error = refused(survey, changes, SpecError, said)
    assert "tables" in str(error)


def test_short_forms_and_defaults() -> None:
    def cube(**more: Any) -> Hypercube:
        return Hypercube.model_validate({"name": "c", "by": ["a"], "epsilon": "1", **more})

    controls = [{"name": "c", "by": [], "epsilon": "1"}]
    assert cube(controls=controls, calibration="rake").calibration == RakingCalibration()
    assert cube(controls=controls).calibration == cube(controls=controls, calibration="regression").calibration
    assert cube().calibration == RegressionCalibration()
    averaged = cube(weights=AVERAGE, cap=3).weights
    assert averaged is not None
    assert averaged.noise == AverageWeightNoise()
    assert Weights.model_validate(WEIGHTS).largest == 2000
    grids = {"200": "0.01", "10000": "1", "1": "0.0001", "99999": "1", "123.456": "0.001", "1e12": "1e8"}
    for most, step in grids.items():
        fine = Weights.model_validate({**without(WEIGHTS, "grid"), "max": most})
        assert fine.grid == Fraction(step)
        assert fine.largest == Fraction(most) / Fraction(step) >= 10_000
    squared = cube(weights=without(WEIGHTS, "grid"), squared_weights=SQUARES).weights
    assert squared is not None
    assert (squared.grid, squared.largest) == (Fraction(1, 10_000), 2_000_000)
    with pytest.raises(ValueError, match="declare a `grid` that divides it"):
        Weights.model_validate({**without(WEIGHTS, "grid"), "max": "1/3"})
    assert (cube().measure, cube(weights=AVERAGE, cap=3).measure) == ("count", "total")
    numbered = cube(weights=WEIGHTS, replicates=TABLES).replicates
    assert numbered is not None
    assert numbered.names[::7] == ["rep_1", "rep_8"]
    assert numbered.factor == Fraction(4)
    assert cube(controls=[{"name": "c", "by": [], "file": "x.csv", "provenance": "x"}]).files == ["x.csv"]


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"by": ["occupation", "color"]}, SpecError, "unknown attribute 'color'"),
        ({"by": ["soc"]}, SpecError, "ame one of its levels: occupation, major"),
        ({"controls": control(epsilon="1", by=["color"])}, SpecError, "unknown attribute 'color'"),
        ({"by": ["occupation"], "controls": control(epsilon="1")}, SpecError, "not a coarsening of the cube"),
        ({"by": ["major"], "controls": control(epsilon="1", by=["occupation"])}, SpecError, "not a coarsening"),
        ({"by": ["major"], "weights": WEIGHTS, "replicates": TABLES}, SpecError, "not a coarsening"),
        (
            {"by": ["strength"], "weights": {**AVERAGE, "noise": {"average": {"strata": ["outdoors"]}}}, "cap": 3},
            SpecError,
            "strata.*not a coarsening|not a coarsening",
        ),
        ({"weights": {**WEIGHTS, "column": "wieght"}}, SourceError, "no column 'wieght'"),
        (
            {"weights": WEIGHTS, "replicates": {**TABLES, "columns": {"prefix": "rep_", "count": 9}}},
            SourceError,
            "no column 'rep_9'",
        ),
        ({"epsilon": "1e-20"}, ParameterError, "epsilon.*rate is outside"),
        ({"controls": control(epsilon="1e-20")}, ParameterError, "controls.c.epsilon.*rate is outside"),
    ],
)
def test_names_that_are_not_there(
    survey: SurveyAgency, changes: dict[str, Any], kind: type[DiscreetError], said: str
) -> None:
    refused(survey, changes, kind, said)


PUBLIC = {"file": "public.csv", "provenance": "census"}
GOOD = {"light": "200", "medium": "120", "heavy": "80"}


def listed(**changes: str) -> str:
    return "strength,total\n" + "".join(f"{code},{total}\n" for code, total in {**GOOD, **changes}.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (listed() + "huge,3\n", "line 5 has an undeclared category, 'huge'"),
        (listed() + "light,200\n", "line 5 lists a cell again"),
        ("strength,total\nlight,200\nheavy,3\n", "has no line for 1 cell; the first is medium"),
        ("strength,total\n", "has no line for 3 cells; the first is light"),
        (listed(heavy="-1"), "line 4 has '-1', which is not a total"),
        (listed(heavy="x"), "line 4 has 'x', which is not a total"),
        (listed(heavy=""), "line 4 has '', which is not a total"),
        (listed(heavy="nan"), "which is not a total"),
        (listed(heavy="inf"), "which is not a total"),
        (listed(heavy="1_0"), "which is not a total"),
        (listed(heavy="1e16"), "which is not a total"),
        ("strength,people\nlight,1\n", "no column 'total'|total"),
    ],
)
def test_public_totals_that_are_not_one_a_cell(survey: SurveyAgency, text: str, said: str) -> None:
    (survey.folder / "public.csv").write_text(text)
    error = refused(survey, {"controls": control(**PUBLIC)}, DomainError, said)
    assert "control c" in str(error.where)


def test_a_public_file_that_is_not_there(survey: SurveyAgency) -> None:
    refused(survey, {"controls": control(file="nowhere.csv", provenance="nobody")}, DiscreetError, "nowhere.csv")


def test_inconsistent_public_totals_are_refused(survey: SurveyAgency) -> None:
    (survey.folder / "public.csv").write_text(listed())
    (survey.folder / "all.csv").write_text("total\n401\n")
    both = [*control(**PUBLIC), {"name": "all", "by": [], "file": "all.csv", "provenance": "census"}]
    error = refused(
        survey, {"controls": both}, DomainError, "is inconsistent with control all, file all.csv: in total.*400.*401"
    )
    assert error.where == "control c, file public.csv"
    assert "same year" in str(error.do)
    halves = {"light": 100, "medium": 61, "heavy": 39}
    lines = [f"{where},{code},{total}" for where in ("yes", "no") for code, total in halves.items()]
    (survey.folder / "two.csv").write_text("\n".join(["outdoors,strength,total", *lines]) + "\n")
    two = {"name": "two", "by": ["outdoors", "strength"], "file": "two.csv", "provenance": "census"}
    message = (
        "inconsistent with control two, file two.csv: where strength is heavy, its cells add up to 80.* to 78; 1 more"
    )
    refused(survey, {"controls": [*control(**PUBLIC), two]}, DomainError, message)
    (survey.folder / "all.csv").write_text("total\n400\n")
    assert survey.run(controls=both).exists()


def test_public_totals_that_are_all_zero(survey: SurveyAgency) -> None:
    (survey.folder / "public.csv").write_text(listed(light="0", medium="0", heavy="0"))
    error = refused(survey, {"controls": control(**PUBLIC)}, DomainError, "every total is 0")
    assert error.where == "control c, file public.csv"
    assert "`value`" in str(error.do)


def test_integers_cannot_keep_controls_that_form_a_cycle(survey: SurveyAgency) -> None:
    pairs = [["occupation", "strength"], ["strength", "outdoors"], ["occupation", "outdoors"]]
    controls = [{"name": f"c{i}", "by": by, "epsilon": "1"} for i, by in enumerate(pairs)]
    error = refused(survey, {"controls": controls, "integers": True}, SpecError, "integers cannot keep these")
    assert "tables.cube.integers" in str(error.where)
    assert survey.run(controls=controls[:2], integers=True).exists()


@pytest.mark.parametrize(
    ("column", "changes"),
    [
        ("count", {}),
        ("total", {"weights": WEIGHTS}),
        ("calibrated", {"controls": CONTROLS}),
        ("whole", {"integers": True}),
    ],
)
def test_published_columns_are_not_called_as_a_variable_is(
    survey: SurveyAgency, column: str, changes: dict[str, Any]
) -> None:
    survey.more["domains"] = {**survey.spec()["domains"], column: {"values": ["yes", "no"], "column": "outdoors"}}
    error = refused(survey, {"by": ["occupation", column], **changes}, DomainError, f"called '{column}' already")
    assert "`column:`" in str(error.do)


def test_tables_of_one_name(survey: SurveyAgency) -> None:
    changes = {"weights": WEIGHTS, "replicates": DEVIATIONS}
    refused(survey, {**changes, "controls": control(epsilon="1", name="replicates")}, SpecError, "cube_replicates")


def test_cubes_that_are_too_large(survey: SurveyAgency) -> None:
    survey.more["domains"] = {
        f"x{i}": {"values": [str(j) for j in range(3000)], "column": "strength"} for i in range(4)
    }
    many = ["x0", "x1", "x2"]
    error = refused(survey, {"by": many}, GuaranteeError, "too many for a dense cube")
    assert "sparse" in str(error.do)
    for forbids in ({"weights": WEIGHTS}, {"integers": True}):
        error = refused(survey, {"by": many, **forbids}, GuaranteeError, "too many for a dense cube")
        assert "write `form: sparse`" not in str(error.do)
    everywhere = {"name": "all", "by": [], "epsilon": "1"}
    refused(survey, {"by": many[:2] + many[2:], "form": "sparse", "epsilon": "1", "controls": [everywhere]},
            DomainError, "calibrated in memory")  # fmt: skip
    refused(survey, {"by": many[:2], "weights": WEIGHTS, "replicates": {**DEVIATIONS, "columns": {"prefix": "rep_",
            "count": 100}}}, DomainError, "deviations of replicates are too many")  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"epsilon": "800", "controls": control(epsilon="1")}, "the cube"),
        ({"weights": {**WEIGHTS, "epsilon": "2000000"}, "controls": control(exact=True)}, "the cube"),
        ({"controls": control(epsilon="800")}, "control c"),
    ],
)
def test_noise_so_small_that_it_has_no_variance(survey: SurveyAgency, changes: dict[str, Any], what: str) -> None:
    refused(survey, changes, GuaranteeError, f"epsilon of {what} is so large")
    assert survey.run(epsilon="600", controls=control(epsilon="1")).exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": None, "weights": {**WEIGHTS, "max": "1e12", "grid": "1e8"}},
        {"cap": 2**29, "epsilon": "0.00001", "weights": {**AVERAGE, "max": "1e6", "grid": "1"}},
    ],
)
def test_integers_of_too_much_noise_are_refused(survey: SurveyAgency, changes: dict[str, Any]) -> None:
    error = refused(survey, {**changes, "integers": True}, SpecError, "the noise of all cells may add up to")
    assert "tables.cube.integers" in str(error.where)


def test_controls_of_too_many_variables(survey: SurveyAgency) -> None:
    names = [f"x{i}" for i in range(17)]
    survey.more["domains"] = {name: {"values": ["yes", "no"], "column": "outdoors"} for name in names}
    error = refused(survey, {"by": names, "controls": control(epsilon="1", by=names)}, SpecError, "too many variables")
    assert "controls" in str(error.where)
    assert survey.open(by=names, controls=control(epsilon="1", by=names[:16])).spec


def test_advice_fits_the_name(survey: SurveyAgency) -> None:
    error = refused(survey, {"by": ["occupation", "strenght"]}, SpecError, "did you mean 'strength'")
    assert error.do == "write it as it is declared under `domains`, or declare it there"
    for changes in (
        {"controls": control(epsilon="1", by=["education"])},
        {"weights": WEIGHTS, "squared_weights": {**SQUARES, "tables": [["education"]]}},
        {"weights": {**AVERAGE, "noise": {"average": {"strata": ["education"]}}}, "cap": 3},
    ):
        error = refused(survey, changes, SpecError, "unknown attribute 'education'")
        assert error.do == "name variables of the cube (occupation, strength, outdoors), or coarser levels of them"
