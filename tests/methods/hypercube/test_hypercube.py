"""Releases of cubes, end to end: the published numbers and columns, whatever the records are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import PublishError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.sampling import fit_gvf
from support.survey import (
    AVERAGE,
    CELLS,
    CONTROLS,
    DEVIATIONS,
    ESTABLISHMENT,
    OUTDOORS,
    REPLICATES,
    SHAPE,
    TABLES,
    WEIGHTS,
    SurveyAgency,
    every_occupation,
    exact,
    quotes,
)

TRUE = exact(quotes())
FULL = every_occupation(quotes())
MAJOR = np.repeat([0, 0, 1, 1, 1], CELLS // 5)  # of each cell
TOTAL = DiscreteLaplace(Fraction(4, 2000))


@pytest.fixture
def survey(tmp_path: Path) -> SurveyAgency:
    return SurveyAgency(tmp_path / "survey")


# --- what the key draws -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [None, 3])
def test_counts_are_true_counts_and_the_noise_of_the_key(survey: SurveyAgency, cap: int | None) -> None:
    actual = survey.simulate(cap=cap)
    noise = DiscreteLaplace(Fraction(2), cap).draw(actual.stream("cube", "hypercube/dense"), 0, CELLS)
    assert np.array_equal(actual.column("count"), TRUE.n + noise)
    assert noise.any()


def test_rows_are_numbered_with_the_first_variable_most_significant(survey: SurveyAgency) -> None:
    rows = survey.simulate().rows()
    codes = [rows[name].cast(pa.string()).to_pylist() for name in ("occupation", "strength", "outdoors")]
    assert codes[0][::6] == ["11-1011", "11-1021", "13-1011", "13-2011", "13-2021"]
    assert codes[1][:6:2] == ["light", "medium", "heavy"]
    assert codes[2] == OUTDOORS * 15


def test_totals_have_noise_of_their_own_beyond_that_of_counts(survey: SurveyAgency) -> None:
    """Cell i's total has the noise of cell D + i of the same stream: no number is used twice."""
    actual = survey.simulate(weights=WEIGHTS)
    stream = actual.stream("cube", "hypercube/dense")
    assert np.array_equal(actual.column("count"), TRUE.n + DiscreteLaplace(Fraction(2)).draw(stream, 0, CELLS))
    assert np.array_equal(actual.steps(), TRUE.w + TOTAL.draw(stream, CELLS, CELLS))


def test_totals_without_counts(survey: SurveyAgency) -> None:
    actual = survey.simulate(weights={**WEIGHTS, "cap": "3000"}, epsilon=None)
    noise = DiscreteLaplace(Fraction(4, 2000), 30000).draw(actual.stream("cube", "hypercube/dense"), CELLS, CELLS)
    assert actual.rows().column_names == ["occupation", "strength", "outdoors", "total"]
    assert np.array_equal(actual.steps(), TRUE.w + noise)


@pytest.mark.parametrize("weighted", [False, True])
def test_controls_have_noise_of_their_own(survey: SurveyAgency, weighted: bool) -> None:
    more: dict[str, Any] = {"weights": WEIGHTS} if weighted else {}
    actual = survey.simulate(controls=CONTROLS, **more)
    distribution, numbers, grid = (
        (DiscreteLaplace(Fraction(1, 2000)), TRUE.w, 10) if weighted else (DiscreteLaplace(Fraction(1)), TRUE.n, 1)
    )
    for name, axes, cells in (("occupations", (1, 2), 5), ("all", (0, 1, 2), 1)):
        noise = distribution.draw(
            actual.stream(f"cube_{name}~measured", "hypercube/control"), cells if weighted else 0, cells
        )
        expected = numbers.reshape(SHAPE).sum(axis=axes).reshape(-1) + noise
        assert np.array_equal(actual.steps("total", f"cube_{name}", grid), expected)
    cube = actual.stream("cube~measured", "hypercube/dense")
    assert np.array_equal(actual.column("count"), TRUE.n + DiscreteLaplace(Fraction(2)).draw(cube, 0, CELLS))
    if weighted:
        assert np.array_equal(actual.steps(), TRUE.w + TOTAL.draw(cube, CELLS, CELLS))


def test_deviations_of_the_cube_have_noise_each(survey: SurveyAgency) -> None:
    """One record moves R deviations by at most `bound`."""
    actual = survey.simulate(weights=WEIGHTS, replicates=DEVIATIONS)
    distribution = DiscreteLaplace(Fraction(20, REPLICATES * 800))
    noise = distribution.draw(actual.stream("cube~deviations0~measured", "hypercube/deviations"), 0, CELLS * REPLICATES)
    shown = np.column_stack([actual.steps(f"d{r}", "cube_replicates") for r in range(1, REPLICATES + 1)])
    assert np.array_equal(shown, TRUE.d + noise.reshape(CELLS, REPLICATES))
    model = actual.cube.model.sampling
    assert model is not None
    assert model.noise == pytest.approx(distribution.variance() / 100)
    assert (model.kind, model.replicates, model.factor) == ("replicates", REPLICATES, 4)


def test_deviations_of_small_tables_are_drawn_apart_and_only_fitted(
    survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A curve is published, and nothing else of them: the one through what the key draws."""
    seen: list[Any] = []

    def fit(x: Any, v: Any, **more: Any) -> Any:
        seen.append((x, v, more["noise_of_estimates"]))
        return fit_gvf(x, v, **more)

    monkeypatch.setattr("discreet.methods.hypercube.model.fit_gvf", fit)
    actual = survey.simulate(weights=WEIGHTS, replicates=TABLES)
    distribution = DiscreteLaplace(Fraction(20, 2 * REPLICATES * 800))
    x, v, moved = [], [], []
    for i, mine in enumerate((MAJOR, np.arange(CELLS) // 2 % 3)):
        sums = np.array([TRUE.d[mine == g].sum(axis=0) for g in range(int(mine.max()) + 1)])
        stream = actual.stream(f"cube~deviations{i}~measured", "hypercube/deviations")
        sums = (sums + distribution.draw(stream, 0, sums.size).reshape(sums.shape)) / 10
        v += list(4 / REPLICATES * (sums**2).sum(axis=1) - 4 * distribution.variance() / 100)
        x += list(np.bincount(mine, weights=actual.column("total")))
        moved += list(np.bincount(mine) * TOTAL.variance() / 100)
    assert len(seen) == 1
    for given, expected in zip(seen[0], (x, v, moved), strict=True):
        assert given == pytest.approx(expected, rel=1e-6)
    model = actual.cube.model.sampling
    assert model is not None
    assert (model.kind, model.cells) == ("gvf", 5)
    assert not [path for path in actual.folder.iterdir() if "replicates" in path.name]


def test_squares_of_weights_are_measured_where_there_are_no_replicates(
    survey: SurveyAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Σ w²/max, rounded for each record, which one record moves by at most max; times max and the design effect."""
    seen: list[Any] = []
    monkeypatch.setattr(
        "discreet.methods.hypercube.model.fit_gvf", lambda x, v, **more: seen.append(v) or fit_gvf(x, v, **more)
    )
    squares = {"epsilon": "3", "tables": [["major"]], "design_effect": "2"}
    actual = survey.simulate(weights=WEIGHTS, squared_weights=squares)
    sums = np.zeros(2, int)
    for row in quotes().to_pylist():
        weight = min(int(np.floor(row["weight"] * 10 + 0.5)), 2000)
        sums[0 if row["occupation"].startswith("11") else 1] += int(np.floor(weight * weight / 2000 + 0.5))
    stream = actual.stream("cube~deviations0~measured", "hypercube/deviations")
    sums += DiscreteLaplace(Fraction(3, 2000)).draw(stream, 0, 2)
    assert seen[0] == pytest.approx(sums / 10 * 200 * 2, rel=1e-9)


def sparse_numbers(actual: Any, column: str) -> np.ndarray:
    """A sparse cube, filled up with zeros."""
    cube = actual.cube
    assert cube.cells is not None
    rows = actual.rows()
    codes = [np.array(rows[a.name].cast(pa.string()).to_pylist()) for a in cube.model.axes]
    places = [
        [[c[0] for c in a.codes].index(code) for code in mine] for a, mine in zip(cube.model.axes, codes, strict=True)
    ]
    cells = np.ravel_multi_index(tuple(np.array(p, int) for p in places), SHAPE) if rows.num_rows else np.empty(0, int)
    assert np.array_equal(cells, cube.cells)
    assert (np.diff(cells) > 0).all()
    values = np.zeros(CELLS)
    values[cells] = rows[column].to_numpy()
    return values


def test_the_sparse_form_is_the_noise_of_the_same_distribution(tmp_path: Path) -> None:
    table = quotes().slice(0, 25)
    true = exact(table)
    survey, cancelled = SurveyAgency(tmp_path / "few", table), 0
    for seed in range(5):
        actual = survey.simulate(f"seed {seed}", form="sparse", epsilon="1/2")
        moved, drawn = DiscreteLaplace(Fraction(1, 2)).sparse(actual.stream("cube", "hypercube/sparse"), 0, CELLS)
        expected = true.n.copy()
        expected[moved] += drawn
        assert np.array_equal(sparse_numbers(actual, "count"), expected)
        cancelled += np.count_nonzero(expected[true.n > 0] == 0)
        assert len(actual.rows()) == np.count_nonzero(expected)  # a row with 0 would show that its cell has records
        assert actual.rows().column_names == ["occupation", "strength", "outdoors", "count"]
    assert cancelled > 0


# --- the average weight, as published -----------------------------------------------------------------------------


def average(w: np.ndarray, n: np.ndarray) -> int:
    return max(round(int(w.sum()) / int(n.sum())), 1)


@pytest.mark.parametrize("given", [None, "12.34"])
def test_totals_take_the_noise_of_counts_times_one_average(survey: SurveyAgency, given: str | None) -> None:
    weights = {**AVERAGE, "noise": {"average": {} if given is None else {"weight": given}}}
    actual = survey.simulate(weights=weights, cap=4)
    noise = DiscreteLaplace(Fraction(2), 4).draw(actual.stream("cube", "hypercube/dense"), 0, CELLS)
    assert np.array_equal(actual.column("count"), TRUE.n + noise)
    mean = average(TRUE.w, TRUE.n) if given is None else 123  # to the nearest step
    assert np.array_equal(actual.steps(), TRUE.w + noise * mean)
    variance = DiscreteLaplace(Fraction(2), 4).variance() * (mean / 10) ** 2
    assert actual.cube.model.variance == pytest.approx(variance)


def test_or_by_stratum_and_an_empty_one_takes_that_of_all(survey: SurveyAgency) -> None:
    """Occupation 13-2021 has no records."""
    weights = {**AVERAGE, "noise": {"average": {"strata": ["occupation"]}}}
    actual = survey.simulate(weights=weights, cap=4)
    noise = DiscreteLaplace(Fraction(2), 4).draw(actual.stream("cube", "hypercube/dense"), 0, CELLS)
    means = [average(TRUE.w[i : i + 6], TRUE.n[i : i + 6]) for i in range(0, 24, 6)] + [average(TRUE.w, TRUE.n)]
    assert len(set(means)) == 5
    assert noise[24:].any()
    assert np.array_equal(actual.steps(), TRUE.w + noise * np.repeat(means, 6))


def test_controls_take_the_noise_times_the_average_of_all(survey: SurveyAgency) -> None:
    weights = {**AVERAGE, "noise": {"average": {"strata": ["occupation"]}}}
    controls = [{"name": "strength", "by": ["strength"], "epsilon": "1", "cap": 9}]
    actual = survey.simulate(weights=weights, cap=4, controls=controls)
    noise = DiscreteLaplace(Fraction(1), 9).draw(actual.stream("cube_strength~measured", "hypercube/control"), 0, 3)
    expected = TRUE.w.reshape(SHAPE).sum(axis=(0, 2)) + noise * average(TRUE.w, TRUE.n)
    assert np.array_equal(actual.steps("total", "cube_strength"), expected)


def test_without_records_the_average_is_the_largest_weight(tmp_path: Path) -> None:
    empty = SurveyAgency(tmp_path / "empty", quotes().slice(0, 0))
    actual = empty.simulate(weights=AVERAGE, cap=4)
    noise = DiscreteLaplace(Fraction(2), 4).draw(actual.stream("cube", "hypercube/dense"), 0, CELLS)
    assert np.array_equal(actual.steps(), noise * 2000)


def test_sparse_totals_take_the_noise_of_their_counts(survey: SurveyAgency) -> None:
    actual = survey.simulate(weights=AVERAGE, cap=4, form="sparse", epsilon="1")
    moved, drawn = DiscreteLaplace(Fraction(1), 4).sparse(actual.stream("cube", "hypercube/sparse"), 0, CELLS)
    counts, totals = TRUE.n.copy(), TRUE.w.copy()
    counts[moved] += drawn
    totals[moved] += drawn * average(TRUE.w, TRUE.n)
    assert np.array_equal(sparse_numbers(actual, "count"), counts)
    assert np.array_equal(np.round(sparse_numbers(actual, "total") * 10), totals)


# --- units with several records -----------------------------------------------------------------------------------


def test_an_establishment_counts_with_some_of_its_records_and_noise_grows_with_them(tmp_path: Path) -> None:
    table = quotes()
    survey = SurveyAgency(tmp_path / "places", table, ESTABLISHMENT)
    actual = survey.simulate(weights=WEIGHTS, controls=CONTROLS[1:], replicates=TABLES)
    stream = actual.stream("cube~measured", "hypercube/dense")
    counts = actual.column("count") - DiscreteLaplace(Fraction(2, 2)).draw(stream, 0, CELLS)
    sizes = np.unique(table["establishment"].to_pylist(), return_counts=True)[1]
    assert counts.sum() == np.minimum(sizes, 2).sum() < 400
    assert (counts <= TRUE.n).all()
    assert (counts >= 0).all()
    totals = actual.steps() - DiscreteLaplace(Fraction(4, 2 * 2000)).draw(stream, CELLS, CELLS)
    assert (totals <= TRUE.w).all()
    assert (totals[counts > 0] > 0).all()
    noise = DiscreteLaplace(Fraction(1, 2 * 2000)).draw(actual.stream("cube_all~measured", "hypercube/control"), 1, 1)
    assert actual.steps("total", "cube_all")[0] - noise[0] == totals.sum()


# --- calibration --------------------------------------------------------------------------------------------------

RAKE = {"by": "rake", "runs": 10}
STRENGTHS = {"name": "strength", "by": ["strength"]}


@pytest.mark.parametrize("calibration", ["rake", "regression"])
def test_exact_and_public_controls_are_met_and_measured_ones_reconciled(tmp_path: Path, calibration: str) -> None:
    """Three controls that know the total: they cannot all be met, so the sure one is."""
    survey, true = SurveyAgency(tmp_path / "survey", FULL), exact(FULL)
    (survey.folder / "public.csv").write_text("strength,total\nlight,250\nmedium,100.5\nheavy,49.5\n")
    public = {**STRENGTHS, "file": "public.csv", "provenance": "a census"}
    exactly = {"name": "outdoors", "by": ["outdoors"], "exact": True}
    controls = [CONTROLS[0], public, exactly]
    cube = survey.simulate(controls=controls, calibration=calibration).cube
    assert cube.table(["strength"]).estimate == pytest.approx([250, 100.5, 49.5], abs=1e-3)
    assert cube.table(["outdoors"]).estimate == pytest.approx(true.n.reshape(-1, 2).sum(axis=0), abs=1e-3)
    assert cube.table(["strength"]).se_perturbation == pytest.approx([0] * 3, abs=1e-6)
    model = cube.model.calibration
    assert model is not None
    assert (model.asked, model.done, model.converged) == (calibration, calibration, True)
    assert [control.kind for control in cube.model.controls] == ["measured", "public", "exact"]
    measured = survey.simulate(controls=[CONTROLS[0]], calibration=calibration).cube
    noisy, own = (measured.table(["occupation"]).estimate, measured.model.controls[0].variance)
    assert own == pytest.approx(DiscreteLaplace(Fraction(1)).variance())
    assert np.abs(noisy - true.n.reshape(5, 6).sum(axis=1)).max() < 12


def test_least_squares_weigh_a_control_by_its_noise(survey: SurveyAgency) -> None:
    """A total seen twice, in the cube with variance D·s² and by itself with v: their mean by precision."""
    actual = survey.simulate(controls=[CONTROLS[1]])
    cube, own = CELLS * DiscreteLaplace(Fraction(2)).variance(), DiscreteLaplace(Fraction(1)).variance()
    one, two = actual.column("count").sum(), actual.column("total", "cube_all")[0]
    mean = (one / cube + two / own) / (1 / cube + 1 / own)
    assert actual.cube.table().estimate[0] == pytest.approx(mean)
    assert actual.cube.table().se_perturbation[0] == pytest.approx((1 / cube + 1 / own) ** -0.5)


def test_raking_that_does_not_converge_gives_way_to_least_squares_and_says_so(tmp_path: Path) -> None:
    """Without records every margin is noise, half of them negative."""
    survey = SurveyAgency(tmp_path / "empty", quotes().slice(0, 0))
    controls = [{"name": "pairs", "by": ["occupation", "strength"], "epsilon": "1"}, CONTROLS[1]]
    raked = survey.simulate(controls=controls, calibration="rake")
    model = raked.cube.model.calibration
    assert model is not None
    assert (model.asked, model.done) == ("rake", "regression")
    assert model.problems
    assert model.raked == ()
    assert any("cube_pairs" in problem for problem in model.problems)
    plan = str(survey.open(controls=controls, calibration="rake").plan()) + (raked.folder / "codebook.md").read_text()
    assert "least squares replaces it" in plan


@pytest.mark.parametrize("calibration", ["rake", "regression"])
def test_integers_keep_the_margins(survey: SurveyAgency, calibration: str) -> None:
    controls = [CONTROLS[0], {**STRENGTHS, "epsilon": "1"}]
    actual = survey.simulate(controls=controls, calibration=calibration, integers=True)
    cells, real = actual.column("whole"), actual.column("calibrated")
    assert actual.rows().schema.field("whole").type == pa.int64()
    assert (cells >= 0).all()
    assert actual.cube.model.estimate == "calibrated"  # whole numbers are biased
    assert np.array_equal(actual.cube.values, real)
    assert actual.cube.model.whole is not None
    for axes in ((1, 2), (0, 2)):
        mine, exactly = (np.asarray(values, float).reshape(SHAPE).sum(axis=axes) for values in (cells, real))
        assert (np.floor(exactly - 1e-6).clip(0) <= mine).all()
        assert (mine <= np.ceil(exactly + 1e-6).clip(0)).all()


@pytest.mark.full
@pytest.mark.parametrize("calibration", ["regression", RAKE])
def test_stated_variances_are_those_of_many_releases(tmp_path: Path, calibration: Any) -> None:
    """Squared errors over what each release states of them, on average over seeds: 1, were it not for chance. Without
    regard to calibration it would be 0.77, 0.83 and 0.39."""
    survey, true = SurveyAgency(tmp_path / "survey", FULL), exact(FULL)
    controls = [{"name": "pairs", "by": ["strength", "outdoors"]}, {"name": "occupations", "by": ["occupation"]}]
    controls = [{**control, "epsilon": "1/2"} for control in controls]
    names = ("occupation", "strength", "outdoors")
    queries = [names[:2], names, names[:1]]
    ratios, done = np.zeros((40, len(queries))), []
    for seed in range(len(ratios)):
        cube = survey.simulate(f"seed {seed}", epsilon="1", controls=controls, calibration=calibration).cube
        done.append("" if cube.model.calibration is None else cube.model.calibration.done)
        for place, by in enumerate(queries):
            table, others = cube.table(by), tuple(i for i, name in enumerate(names) if name not in by)
            error = table.estimate - true.n.reshape(SHAPE).sum(axis=others).reshape(-1)
            ratios[seed, place] = np.sum(error**2) / np.sum(table.se_perturbation**2)
    pairs, cells, occupations = ratios.mean(axis=0)
    assert 0.85 < pairs < 1.2
    assert 0.85 < cells < 1.2
    assert 0.7 < occupations < 1.4
    assert set(done) == {"regression"} if calibration == "regression" else done.count("rake") > 30


# --- how it is written -----------------------------------------------------------------------------------------


def test_csv_says_the_same(survey: SurveyAgency) -> None:
    actual = survey.simulate(formats=["csv", "parquet"], weights=WEIGHTS)
    lines = (actual.folder / "cube.simulation.csv").read_text().splitlines()
    assert lines[0].replace('"', "") == "occupation,strength,outdoors,count,total"
    totals = [float(line.split(",")[-1]) for line in lines[1:]]
    assert np.array_equal(totals, actual.column("total"))


def test_many_parts_hold_the_same_cube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of releases are alike, so the noise is."""
    changes: list[dict[str, Any]] = [
        {"weights": WEIGHTS, "controls": CONTROLS},
        {},
        {"form": "sparse"},
        {"weights": WEIGHTS, "replicates": DEVIATIONS},
    ]
    one, two = SurveyAgency(tmp_path / "one"), SurveyAgency(tmp_path / "two")
    whole = [one.simulate(**change) for change in changes]
    monkeypatch.setattr("discreet.methods.hypercube.method.PART", 7)
    monkeypatch.setattr("discreet.methods.hypercube.tables.ROWS", 3)
    monkeypatch.setattr("discreet.methods.hypercube.kernel.RANGE", 16)
    for expected, change in zip(whole, changes, strict=True):
        cut = two.simulate(**change)
        parts = [path for path in cut.folder.rglob("*.parquet") if "part-" in path.name]
        assert len(parts) == (2 if "form" in change else 5)  # of a sparse cube, seven rows of noise or so in each
        assert np.array_equal(cut.cube.values, expected.cube.values)
        if "replicates" in change:
            assert cut.cube.deviations is not None
            assert np.array_equal(cut.cube.deviations, expected.cube.deviations)


def test_resumed_after_a_crash_it_has_the_same_bytes(tmp_path: Path) -> None:
    """Stopped while the cube is measured, its controls already are: they are measured again, to the bit."""
    changes: dict[str, Any] = {"weights": WEIGHTS, "controls": CONTROLS, "replicates": TABLES, "calibration": "rake"}

    def contents(folder: Path) -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json"}

    expected = contents(SurveyAgency(tmp_path / "one").run(**changes))
    broken = SurveyAgency(tmp_path / "two")
    opened, out = broken.open(**changes), broken.folder / "out"
    steps = []

    def stop(step: str, done: int, total: int) -> None:
        steps.append(step)
        if step == "protect cube" and done:
            raise OSError(28, "full")

    with pytest.raises(PublishError, match="is spent"):
        opened.run(out, simulation="survey", observe=stop)
    assert not (out / "manifest.json").exists()
    replace(opened).resume()
    assert "write" not in steps
    assert contents(out) == expected
