"""The guarantee of a cube, its privacy loss, and what it does not cover; that no record breaks or stops it."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import GuaranteeError, PublishError, SourceError
from discreet.methods.hypercube.calibration import raked_variances
from discreet.methods.hypercube.kernel import CubeNoise
from discreet.methods.hypercube.method import HypercubeMethod
from discreet.methods.registry import methods
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.pipeline.check import lines
from discreet.post.cubes.sampling import fit_gvf
from discreet.publish.cubes import open_cube
from support.survey import (
    AVERAGE,
    CELLS,
    CONTROLS,
    DEVIATIONS,
    ESTABLISHMENT,
    REPLICATES,
    TABLES,
    WEIGHTS,
    SurveyAgency,
    every_occupation,
    exact,
    quotes,
)

NOT = "Not differentially private"
UNLESS = "were it not for what the caveats name"


@pytest.fixture
def survey(tmp_path: Path) -> SurveyAgency:
    return SurveyAgency(tmp_path / "survey")


def method_of(survey: SurveyAgency, **changes: Any) -> HypercubeMethod:
    (actual,) = methods(survey.open(**changes).spec)
    assert isinstance(actual, HypercubeMethod)
    return actual


# --- rates and costs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "k"), [("record", 1), (ESTABLISHMENT, 2)])
def test_every_number_has_the_rate_that_its_influence_asks_for(tmp_path: Path, unit: Any, k: int) -> None:
    survey = SurveyAgency(tmp_path / "survey", unit=unit)
    design = method_of(survey, weights=WEIGHTS, controls=CONTROLS, replicates=TABLES).design
    assert design.count_distribution == DiscreteLaplace(Fraction(2, k))
    assert design.total_distribution == DiscreteLaplace(Fraction(4, 2000 * k))
    assert [control.distribution for control in design.controls] == [DiscreteLaplace(Fraction(1, 2000 * k))] * 2
    assert design.deviation_distribution == DiscreteLaplace(Fraction(20, 2 * REPLICATES * 800 * k))
    design = method_of(survey, weights=WEIGHTS, replicates=DEVIATIONS).design
    assert design.deviation_distribution == DiscreteLaplace(Fraction(20, REPLICATES * 800 * k))
    (control,) = method_of(survey, controls=[{"name": "c", "by": [], "epsilon": "3", "cap": 50}]).design.controls
    assert control.distribution == DiscreteLaplace(Fraction(3, k), 50)
    design = method_of(
        survey, weights=WEIGHTS, squared_weights={"epsilon": "3", "tables": [["major"]], "design_effect": "1"}
    ).design
    assert design.deviation_distribution == DiscreteLaplace(Fraction(3, 2000 * k))  # a squared weight over the largest


def test_costs_add_up(survey: SurveyAgency) -> None:
    plan = survey.open(weights=WEIGHTS, controls=CONTROLS, replicates=TABLES).plan()
    assert (plan.total.epsilon, plan.total.delta) == (Fraction(2 + 4 + 1 + 1 + 20), Fraction(0))
    (caveat,) = plan.total.caveats  # of weights: a condition of the guarantee, not its absence
    assert caveat.startswith("Weights and replicate weights are treated as attributes of each record")
    assert "counts 2 + weighted totals 4 + control occupations 1 + control all 1" in str(plan)
    assert UNLESS not in plan.total.in_words()
    actual = survey.simulate(weights=WEIGHTS, controls=CONTROLS, replicates=DEVIATIONS)
    manifest = json.loads((actual.folder / "manifest.json").read_text())
    costs = {table["name"]: Fraction(table["guarantee"]["epsilon"]) for table in manifest["tables"]}
    # A calibrated cube is made of everything but the deviations; at no more than it all costs.
    assert costs == {"cube": 28, "cube_occupations": 1, "cube_all": 1, "cube_replicates": 20}
    assert Fraction(manifest["guarantee"]["epsilon"]) == 28


def brute_delta(rate: Fraction, cap: int, shift: int) -> Decimal:
    """sup over events: Σ max(P(k) − e^(rate·shift)·P(k − shift), 0), of the distribution itself, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        a = (-Decimal(rate.numerator) / Decimal(rate.denominator)).exp()
        mass = {k: a ** abs(k) for k in range(-cap, cap + 1)}
        norm, factor = sum(mass.values()), a**-shift
        parts = [mass[k] - factor * mass.get(k - shift, Decimal(0)) for k in mass]
        return sum((part for part in parts if part > Decimal("1e-50")), Decimal(0)) / norm


@pytest.mark.parametrize(("unit", "k"), [("record", 1), (ESTABLISHMENT, 2)])
@pytest.mark.parametrize(("epsilon", "cap"), [("2", 7), ("7", 1), ("1/2", 3)])
def test_delta_is_the_mass_that_the_cap_leaves_bare_rounded_up(
    tmp_path: Path, unit: Any, k: int, epsilon: str, cap: int
) -> None:
    plan = SurveyAgency(tmp_path / "survey", unit=unit).open(epsilon=epsilon, cap=cap).plan()
    actual = brute_delta(Fraction(epsilon) / k, cap, k)
    delta = Decimal(plan.total.delta.numerator) / Decimal(plan.total.delta.denominator)
    assert actual <= delta <= actual * Decimal("1.02")
    if (epsilon, k) == ("2", 1):
        assert 6.32e-7 < plan.total.delta < 6.34e-7  # Li & Krenzke 2020, §3.2


def test_delta_of_capped_totals_is_that_of_the_largest_weight(survey: SurveyAgency) -> None:
    weights = {"column": "weight", "max": "20", "grid": "0.5", "epsilon": "2", "cap": "50"}
    total = survey.open(weights=weights, epsilon=None).plan().total
    actual = brute_delta(Fraction(2, 40), 100, 40)
    delta = Decimal(total.delta.numerator) / Decimal(total.delta.denominator)
    assert actual <= delta <= actual * Decimal("1.02")
    assert actual > 10 * brute_delta(Fraction(2, 40), 100, 1)  # the mass of one value would not do


def test_deltas_of_cube_and_controls_add_up(survey: SurveyAgency) -> None:
    controls = [{"name": "c", "by": ["strength"], "epsilon": "1", "cap": 5}]
    alone = survey.open(cap=4).plan().total.delta
    both = survey.open(cap=4, controls=controls).plan().total.delta
    assert float(both - alone) == pytest.approx(float(brute_delta(Fraction(1), 5, 1)), rel=0.02)


def test_a_cap_that_cannot_protect_a_unit_is_refused(tmp_path: Path) -> None:
    unit = {**ESTABLISHMENT, "max_records": 9}
    with pytest.raises(GuaranteeError, match="one unit changes the numbers by up to 9"):
        SurveyAgency(tmp_path / "survey", unit=unit).open(cap=4).plan()


# --- what is not guaranteed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"weights": AVERAGE, "cap": 7, "controls": [{"name": "c", "by": ["strength"], "epsilon": "1", "cap": 9}]},
            "noise of the counts times an average weight",
        ),
        (
            {"controls": [{"name": "c", "by": ["strength"], "exact": True}]},
            "control totals by strength are exact confidential totals",
        ),
    ],
)
def test_forms_that_are_not_private_say_so_everywhere(survey: SurveyAgency, changes: dict[str, Any], said: str) -> None:
    plain, weaker = survey.open().plan().total, survey.open(**changes).plan().total
    assert plain.caveats == ()
    assert any(caveat.startswith(NOT) and said in caveat for caveat in weaker.caveats)
    assert UNLESS in weaker.in_words()
    assert UNLESS not in plain.in_words()
    folder = survey.run(**changes)
    manifest = json.loads((folder / "manifest.json").read_text())
    for text in ((folder / "codebook.md").read_text(), manifest["guarantee_in_words"]):
        assert UNLESS in text
    assert [table["name"] for table in manifest["tables"]] == ["cube", "cube_c"]
    for table in manifest["tables"]:  # each by itself, for whoever takes one alone
        assert any(said in caveat for caveat in table["guarantee"]["caveats"])
        assert UNLESS in table["guarantee_in_words"]


def test_public_totals_cost_nothing_and_need_no_caveat(survey: SurveyAgency) -> None:
    (survey.folder / "public.csv").write_text("strength,total\nlight,200\nmedium,120\nheavy,80\n")
    total = (
        survey.open(controls=[{"name": "c", "by": ["strength"], "file": "public.csv", "provenance": "a census"}])
        .plan()
        .total
    )
    assert (total.epsilon, total.delta) == (Fraction(2), Fraction(0))
    assert not total.caveats


def test_the_average_form_shows_the_weight_of_a_record_and_the_formal_form_does_not(tmp_path: Path) -> None:
    """The attack: total − w̄·count has no noise, so one record of an empty occupation shows its weight to the digit."""
    table = quotes()
    one = table.slice(0, 1).to_pylist()[0] | {"occupation": "13-2021", "weight": 137.3}
    survey = SurveyAgency(tmp_path / "survey", pa.concat_tables([table, pa.Table.from_pylist([one], table.schema)]))
    weights = {**AVERAGE, "noise": {"average": {"weight": "40"}}}
    true = exact(pa.concat_tables([table, pa.Table.from_pylist([one], table.schema)]))
    actual = survey.simulate(weights=weights, cap=7)
    seen = actual.steps() - 400 * actual.column("count")
    assert np.array_equal(seen, true.w - 400 * true.n)
    assert seen[24:].sum() + 400 == 1373
    formal = survey.simulate(weights=WEIGHTS)
    left = formal.steps() - 400 * formal.column("count") - (true.w - 400 * true.n)
    deviation = DiscreteLaplace(Fraction(4, 2000)).variance() ** 0.5
    assert 0.5 * deviation < left.std() < 2 * deviation


# --- neighbours, and records that are not as they should be -------------------------------------------------------

ODD = [0.0, -1.0, None, math.nan, math.inf, -math.inf, 1e18, 2.0**62, 1e300, -1e300, 5e-324, 0.04, 250.0, 31.7]


def with_column(table: pa.Table, name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values, kind, from_pandas=False))


def odd() -> pa.Table:
    """Every odd weight, and every odd replicate of an even weight."""
    table = quotes(4 * len(ODD))
    weights, first = table["weight"].to_pylist(), table["rep_1"].to_pylist()
    table = with_column(table, "weight", ODD + weights[len(ODD) :], pa.float64())
    middle = first[: len(ODD)] + ODD + first[2 * len(ODD) :]
    return with_column(table, "rep_1", middle, pa.float64())


def test_no_record_stops_a_release_and_each_counts_as_is_stated(tmp_path: Path) -> None:
    table = odd()
    actual = SurveyAgency(tmp_path / "survey", table).simulate(
        weights=WEIGHTS, controls=CONTROLS, replicates=DEVIATIONS
    )
    stream = actual.stream("cube~measured", "hypercube/dense")
    true = exact(table)
    assert true.n.sum() == 4 * len(ODD) - 7  # zero, negative, missing, not a number, infinite
    assert np.array_equal(actual.column("count") - DiscreteLaplace(Fraction(2)).draw(stream, 0, CELLS), true.n)
    distribution = DiscreteLaplace(Fraction(4, 2000))
    assert np.array_equal(actual.steps() - distribution.draw(stream, CELLS, CELLS), true.w)
    distribution = DiscreteLaplace(Fraction(20, REPLICATES * 800))
    noise = distribution.draw(actual.stream("cube~deviations0~measured", "hypercube/deviations"), 0, CELLS * REPLICATES)
    shown = np.column_stack([actual.steps(f"d{r}", "cube_replicates") for r in range(1, REPLICATES + 1)])
    assert np.array_equal(shown - noise.reshape(CELLS, REPLICATES), true.d)


def test_nor_does_text_that_is_no_number(tmp_path: Path) -> None:
    table = quotes(40)
    texts = ["x", "", " 12.5 ", "1e99", "1e400", "nan", "inf", "1_0", "0x1", None] + ["20"] * 30
    table = with_column(table, "weight", texts, pa.string())
    table = with_column(table, "rep_2", texts[::-1], pa.string())
    actual = SurveyAgency(tmp_path / "survey", table).simulate(weights=WEIGHTS, replicates=TABLES, epsilon="100")
    assert actual.column("count").sum() == 32


def test_one_record_more_moves_the_published_numbers_of_one_cell_by_what_is_stated(tmp_path: Path) -> None:
    """Under one key: the noise of two neighbours is the same, what differs is the record."""
    table = quotes()
    sizes = [table.num_rows, table.num_rows - 1]
    one, two = (
        SurveyAgency(tmp_path / str(i), table.slice(0, n)).simulate(weights=WEIGHTS, replicates=DEVIATIONS)
        for i, n in enumerate(sizes)
    )
    moved = one.column("count") - two.column("count")
    assert (np.abs(moved).sum(), moved.sum()) == (1, 1)
    cell = int(np.argmax(moved))
    weight = round(table["weight"].to_pylist()[-1] * 10)
    assert np.array_equal(np.flatnonzero(one.steps() - two.steps()), [cell])
    assert (one.steps() - two.steps())[cell] == weight <= 2000
    for r in range(1, REPLICATES + 1):
        deviation = one.steps(f"d{r}", "cube_replicates") - two.steps(f"d{r}", "cube_replicates")
        assert set(np.flatnonzero(deviation)) <= {cell}
        assert np.abs(deviation).max() <= 800


def test_one_establishment_moves_them_by_as_many_records_as_count(tmp_path: Path) -> None:
    table = quotes()
    many = table.slice(0, 12)
    many = with_column(many, "establishment", ["target"] * 12, pa.string())
    many = with_column(many, "weight", [1000.0] * 12, pa.float64())
    one, two = (
        SurveyAgency(tmp_path / str(i), records, ESTABLISHMENT).simulate(weights=WEIGHTS)
        for i, records in enumerate((pa.concat_tables([table, many]), table))
    )
    assert (one.column("count") - two.column("count")).sum() == 2
    assert np.abs(one.column("count") - two.column("count")).sum() == 2
    assert np.abs(one.steps() - two.steps()).sum() == 2 * 2000


def test_check_tells_of_weights_and_strict_mode_refuses(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"weights": WEIGHTS, "replicates": TABLES}
    survey = SurveyAgency(tmp_path / "odd", odd(), strict=True)
    opened = survey.open(**changes)
    text = "\n".join(lines(opened.check(), opened.spec))
    assert "weight: 2 records without a weight and 5 whose weight is not positive are dropped" in text
    assert "4 above 200 count as 200" in text
    assert "rep_1: 4 records without it keep their weight" in text
    assert "`run` will refuse" in text
    with pytest.raises(SourceError, match="strict mode"):
        opened.run(survey.folder / "out", simulation="survey")
    assert not (survey.folder / "out").exists()
    assert not opened.ledger.chain().releases()
    clean = SurveyAgency(tmp_path / "clean", quotes(), strict=True)
    assert clean.simulate(**changes).column("count").size == CELLS


# --- what no data can make it say ---------------------------------------------------------------------------------

SHAPES: list[dict[str, Any]] = [
    {"weights": WEIGHTS, "controls": CONTROLS, "replicates": DEVIATIONS, "formats": ["parquet", "csv"]},
    {"controls": [{"name": "s", "by": ["strength", "major"], "epsilon": "1"}], "calibration": "rake", "integers": True},
    {"weights": WEIGHTS, "replicates": TABLES},
    {"form": "sparse", "controls": [{"name": "all", "by": [], "epsilon": "1"}]},
    {"form": "sparse", "weights": AVERAGE, "cap": 4},
]


@pytest.mark.parametrize("changes", SHAPES)
def test_files_rows_and_columns_do_not_depend_on_the_records(tmp_path: Path, changes: dict[str, Any]) -> None:
    seen = []
    for i, rows in enumerate((0, 1, 400)):
        table = quotes().slice(0, rows)
        actual = SurveyAgency(tmp_path / str(i), table).simulate(**changes)
        files = sorted(str(path.relative_to(actual.folder)) for path in actual.folder.rglob("*"))
        assert not [name for name in files if "measured" in name]
        dense = "form" not in changes
        names = [name.removesuffix(".simulation.parquet") for name in files if name.endswith(".parquet")]
        tables = {name: actual.rows(name) for name in names}
        lengths = {name: table.num_rows for name, table in tables.items() if dense or name != "cube"}
        shape = json.loads((actual.folder / "cube.simulation.model.json").read_text())
        keys = {key: type(value).__name__ for key, value in shape.items()}
        seen.append((files, lengths, {name: table.schema for name, table in tables.items()}, keys))
    assert all(one == seen[0] for one in seen[1:])
    for control in changes.get("controls", []):
        assert seen[0][1][f"cube_{control['name']}"] == {"occupations": 5, "all": 1, "s": 6}[control["name"]]


# --- what a review by mutation found untested ---------------------------------------------------------------------


def test_a_capped_control_of_establishments_has_their_rate_and_delta(tmp_path: Path) -> None:
    survey = SurveyAgency(tmp_path / "survey", unit=ESTABLISHMENT)
    controls = [{"name": "c", "by": ["strength"], "epsilon": "1", "cap": 5}]
    alone, both = (survey.open(cap=4, **more).plan().total.delta for more in ({}, {"controls": controls}))
    assert float(both - alone) == pytest.approx(float(brute_delta(Fraction(1, 2), 5, 2)), rel=0.02)
    (control,) = method_of(survey, weights=AVERAGE, cap=4, controls=controls).design.controls
    assert control.distribution == DiscreteLaplace(Fraction(1, 2), 5)


def test_an_observed_average_is_named_with_every_table_and_a_public_one_nowhere(survey: SurveyAgency) -> None:
    controls = [{"name": "c", "by": ["strength"], "epsilon": "1", "cap": 5}]
    for weight, told in ((None, True), ("40", False)):
        noise = {"average": {} if weight is None else {"weight": weight}}
        folder = survey.run(weights={**AVERAGE, "noise": noise}, cap=4, controls=controls)
        for table in json.loads((folder / "manifest.json").read_text())["tables"]:
            said = [caveat for caveat in table["guarantee"]["caveats"] if "is computed from these records" in caveat]
            assert bool(said) is told


def test_records_above_the_largest_weight_are_dropped_if_so_declared(tmp_path: Path) -> None:
    table = odd()
    actual = SurveyAgency(tmp_path / "survey", table).simulate(weights={**WEIGHTS, "above": "drop"})
    keep = [row["weight"] is not None and row["weight"] <= 200 for row in table.to_pylist()]
    true = exact(table.filter(pa.array(keep)))
    stream = actual.stream("cube", "hypercube/dense")
    assert np.array_equal(actual.column("count") - DiscreteLaplace(Fraction(2)).draw(stream, 0, CELLS), true.n)
    assert np.array_equal(actual.steps() - DiscreteLaplace(Fraction(4, 2000)).draw(stream, CELLS, CELLS), true.w)


def test_errors_by_strata_are_those_of_the_largest_average(survey: SurveyAgency) -> None:
    weights = {**AVERAGE, "noise": {"average": {"strata": ["occupation"]}}}
    model = survey.simulate(weights=weights, cap=4).cube.model
    true = exact(quotes())
    means = [round(int(true.w[i : i + 6].sum()) / int(true.n[i : i + 6].sum())) for i in range(0, 24, 6)]
    distribution = DiscreteLaplace(Fraction(2), 4)
    assert model.variance == pytest.approx(distribution.variance() * (max(means) / 10) ** 2)
    assert model.fourth == pytest.approx(distribution.fourth_cumulant() * (max(means) / 10) ** 4)
    assert model.unit == pytest.approx(max(means) / 10)


def test_the_noise_of_squares_is_known_in_their_own_unit(survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fit(x: Any, v: Any, **more: Any) -> Any:
        seen.append(more["spread_of_variances"](np.zeros(2)))
        return fit_gvf(x, v, **more)

    monkeypatch.setattr("discreet.methods.hypercube.model.fit_gvf", fit)
    survey.simulate(weights=WEIGHTS, squared_weights={"epsilon": "3", "tables": [["major"]], "design_effect": "2"})
    variance = DiscreteLaplace(Fraction(3, 2000)).variance() / 100
    assert seen[0] == pytest.approx([(2 * 200) ** 2 * variance] * 2)


def test_controls_by_coarser_levels_lower_no_stated_noise(
    survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def fit(x: Any, v: Any, **more: Any) -> Any:
        seen.append(more["noise_of_estimates"])
        return fit_gvf(x, v, **more)

    monkeypatch.setattr("discreet.methods.hypercube.model.fit_gvf", fit)
    for controls in ([], [{"name": "m", "by": ["major"], "epsilon": "1"}]):
        survey.simulate(weights=WEIGHTS, replicates=TABLES, controls=controls)
    assert np.array_equal(*seen)


def test_simulated_controls_have_the_noise_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def simulated(cube: Any, controls: Any, variance: float, raking: Any, draws: Any, runs: int) -> Any:
        seen.extend(next(draws)[1][0] for _ in range(300))
        return raked_variances(cube, controls, variance, raking, draws, runs)

    monkeypatch.setattr("discreet.methods.hypercube.tables.raked_variances", simulated)
    survey = SurveyAgency(tmp_path / "survey", every_occupation(quotes()))
    weights = {**WEIGHTS, "epsilon": "400"}
    controls = [{"name": "c", "by": ["occupation"], "epsilon": "200"}]
    model = survey.simulate(weights=weights, controls=controls, calibration={"by": "rake", "runs": 4}).cube.model
    assert model.calibration is not None
    assert model.calibration.done == "rake"
    assert len(model.calibration.raked) == 4
    assert np.var(np.concatenate(seen)) == pytest.approx(DiscreteLaplace(Fraction(200, 2000)).variance() / 100, rel=0.2)


def test_a_kernel_that_cannot_run_stops_before_anything_is_spent(
    survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise GuaranteeError("no", where="kernel")

    monkeypatch.setattr(CubeNoise, "add", broken)
    opened = survey.open(controls=CONTROLS)
    with pytest.raises(GuaranteeError):
        opened.run(survey.folder / "out", simulation="survey")
    assert not opened.ledger.chain().releases()


def test_a_bound_is_cut_to_whole_steps(survey: SurveyAgency) -> None:
    weights = {**WEIGHTS, "grid": "2.5"}
    assert method_of(survey, weights=weights, replicates={**DEVIATIONS, "bound": "81"}).design.bound == 32


def test_a_control_may_be_called_like_what_is_measured_aside(survey: SurveyAgency) -> None:
    controls = [{"name": "replicates0", "by": ["strength"], "epsilon": "1"}]
    squares = {"epsilon": "3", "tables": [["major"]], "design_effect": "1"}
    actual = survey.simulate(weights=WEIGHTS, controls=controls, squared_weights=squares)
    assert actual.rows("cube_replicates0").num_rows == 3


def test_totals_too_large_for_whole_numbers_do_not_stop_a_release(
    survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.methods.hypercube.tables.LARGEST_TOTAL", 10.0)
    actual = survey.simulate(controls=CONTROLS, integers=True)
    assert np.array_equal(actual.column("whole"), np.rint(actual.column("calibrated").clip(0)))
    assert actual.cube.model.whole is not None
    assert "rounded cell by cell" in actual.cube.model.whole.problems[0]


def test_counts_beside_totals_can_be_asked_for(survey: SurveyAgency) -> None:
    folder = survey.run(weights=WEIGHTS, controls=CONTROLS)
    cube = open_cube(folder, counts=True)
    deviation = (10 * DiscreteLaplace(Fraction(2)).variance()) ** 0.5
    assert cube.table(["strength"]).se_perturbation == pytest.approx([deviation] * 3)
    true = exact(quotes()).n.reshape(5, 3, 2).sum(axis=(0, 2))
    assert np.abs(cube.table(["strength"]).estimate - true).max() < 25
    with pytest.raises(PublishError, match="has no counts"):
        open_cube(survey.run(weights=WEIGHTS, epsilon=None), counts=True)
