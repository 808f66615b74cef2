"""Tables of a published cube (Li & Krenzke 2020, §2): equal sets of cells and equal queries have equal values."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.cube import Cube, CubeTable
from discreet.post.cubes.model import (
    AxisModel,
    CalibrationModel,
    ControlModel,
    CubeModel,
    LevelModel,
    RakedModel,
    SamplingModel,
)
from support.hypothesis_profile import examples
from support.survey import (
    AVERAGE,
    CONTROLS,
    DEVIATIONS,
    OCCUPATIONS,
    OUTDOORS,
    STRENGTH,
    TABLES,
    WEIGHTS,
    SimulatedCubes,
    SurveyAgency,
)

properties = examples(60)
VARIABLES = ["occupation", "strength", "outdoors"]
CODES: dict[str, list[str]] = {
    "occupation": list(OCCUPATIONS),
    "major": ["11", "13"],
    "strength": STRENGTH,
    "outdoors": OUTDOORS,
}
FORMS: dict[str, dict[str, Any]] = {
    "counts": {},
    "raked": {"controls": CONTROLS, "calibration": "rake"},
    "weighted": {"weights": WEIGHTS, "controls": CONTROLS, "replicates": TABLES},
    "replicates": {"weights": WEIGHTS, "replicates": DEVIATIONS},
    "whole": {"controls": CONTROLS, "integers": True},
    "sparse": {"form": "sparse", "epsilon": "3/2"},
    "sparse, by levels": {
        "form": "sparse",
        "epsilon": "3/2",
        "controls": [{"name": "m", "by": ["strength", "major"], "epsilon": "1"}, CONTROLS[1]],
    },
    "sparse, calibrated": {"form": "sparse", "weights": AVERAGE, "cap": 5, "controls": [{**CONTROLS[0], "cap": 9}]},
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[SimulatedCubes, Cube]]:
    home = tmp_path_factory.mktemp("cubes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISCREET_KEYS", str(home / "keys"))
        patch.setenv("DISCREET_TMP", str(home / "tmp"))
        survey = SurveyAgency(home / "survey")
        actual = {name: survey.simulate(**changes) for name, changes in FORMS.items()}
    return {name: (made, made.cube) for name, made in actual.items()}


def estimates(table: CubeTable) -> dict[tuple[str, ...], float]:
    keys = list(zip(*table.codes, strict=True)) if table.codes else [()]
    return dict(zip(keys, table.estimate.tolist(), strict=True))


def brute(made: SimulatedCubes, cube: Cube, by: list[str], where: dict[str, list[str]]) -> dict[tuple[str, ...], float]:
    """Sums over the published rows, with Python's own numbers; of the cells that are asked for, and no others."""
    values = {tuple(row[name] for name in VARIABLES): row[cube.model.estimate] for row in made.rows().to_pylist()}
    steps = [row for c in cube.model.controls if cube.steps for row in made.rows(c.name).to_pylist()]
    actual: dict[tuple[str, ...], float] = {}
    for cell in product(*(CODES[name] for name in VARIABLES)):
        known = {**dict(zip(VARIABLES, cell, strict=True)), "major": OCCUPATIONS[cell[0]]}
        if all(known[name] in codes for name, codes in where.items()):
            moved = sum(row["step"] for row in steps if all(known.get(k, v) == v for k, v in row.items()))
            key = tuple(known[name] for name in by)
            actual[key] = actual.get(key, 0.0) + values.get(cell, 0.0) + moved
    return actual


queries = st.tuples(
    st.sampled_from(["occupation", "major", ""]), st.booleans(), st.booleans(), st.randoms(use_true_random=False)
)
filters = st.fixed_dictionaries({}, optional={k: st.lists(st.sampled_from(v), unique=True) for k, v in CODES.items()})


@pytest.mark.parametrize("form", FORMS)
@properties
@given(query=queries, where=filters)
def test_every_table_is_the_sum_of_the_published_rows(
    published: dict[str, tuple[SimulatedCubes, Cube]], form: str, query: Any, where: dict[str, list[str]]
) -> None:
    """Whatever is asked, by whom, in which order and how often."""
    made, cube = published[form]
    by = [name for name, asked in ((query[0], query[0]), ("strength", query[1]), ("outdoors", query[2])) if asked]
    query[3].shuffle(by)
    expected = brute(made, cube, by, where)
    if not expected:
        with pytest.raises(ParameterError, match="no cell of the cube matches"):
            cube.table(by, where)
        return
    actual = cube.table(by, where)
    assert estimates(actual) == pytest.approx(expected, abs=1e-6)
    again = cube.table(by, where)
    assert np.array_equal(actual.estimate, again.estimate)
    assert np.array_equal(actual.se, again.se)
    assert (actual.low <= actual.high).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_same_cells_have_the_same_value_by_whatever_way(
    published: dict[str, tuple[SimulatedCubes, Cube]], form: str
) -> None:
    """One set of cells, by six queries: value, error and number of cells."""
    cube = published[form][1]
    tables = [
        (cube.table(["major"]), ("13",)),
        (cube.table([], {"major": ["13"]}), ()),
        (cube.table([], {"occupation": ["13-2021", "13-1011", "13-2011"]}), ()),
        (cube.table(["major"], {"occupation": ["13-1011", "13-2011", "13-2021", "11-1011"]}), ("13",)),
        (cube.table(["major"], {"strength": STRENGTH, "major": ["13"]}), ("13",)),
        (cube.table([], {"major": ["13"], "outdoors": OUTDOORS[::-1]}), ()),
    ]
    rows = [list(estimates(table)).index(key) for table, key in tables]
    values = [(t.estimate[i], t.se[i], t.se_perturbation[i], t.low[i]) for (t, _), i in zip(tables, rows, strict=True)]
    assert values == [pytest.approx(values[0], rel=1e-9, abs=1e-9)] * 6
    assert {int(table.cells[i]) for (table, _), i in zip(tables, rows, strict=True)} == {18}


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_tables_are_the_table_of_sums(published: dict[str, tuple[SimulatedCubes, Cube]], form: str) -> None:
    cube = published[form][1]
    whole = cube.table(VARIABLES).estimate.reshape(5, 3, 2)
    assert cube.table(["occupation", "outdoors"]).estimate == pytest.approx(whole.sum(axis=1).reshape(-1), abs=1e-6)
    assert cube.table(["strength"]).estimate == pytest.approx(whole.sum(axis=(0, 2)), abs=1e-6)
    halves = [cube.table(["occupation"], {"outdoors": [code]}).estimate for code in OUTDOORS]
    assert cube.table(["occupation"]).estimate == pytest.approx(halves[0] + halves[1], abs=1e-6)
    assert cube.table().estimate == pytest.approx([whole.sum()], abs=1e-6)


# --- errors, on a cube of known noise -------------------------------------------------------------------------------


def model(**changes: Any) -> CubeModel:
    axes = tuple(
        AxisModel(name=name, columns=(name,), codes=tuple((code,) for code in CODES[name])) for name in VARIABLES
    )
    level = LevelModel(name="major", columns=("major",), codes=(("11",), ("13",)), axis=0, groups=(0, 0, 1, 1, 1))
    given: dict[str, Any] = {
        "cube": "c", "simulation": True, "form": "dense", "measure": "count", "estimate": "count", "axes": axes,
        "levels": (level,), "variance": 9.0, "fourth": 0.0, "unit": 1e-6, **changes,
    }  # fmt: skip
    return CubeModel(**given)


VALUES = np.arange(30.0)


def test_without_calibration_the_variance_of_noise_is_that_of_the_cells() -> None:
    table = Cube(model(), VALUES).table(["major"], {"strength": ["light"]})
    assert table.cells.tolist() == [4, 6]
    assert table.se_perturbation == pytest.approx(np.sqrt([36.0, 54.0]))
    assert table.se == pytest.approx(table.se_perturbation)
    assert table.se_sampling is None
    z = 1.6448536269514722
    assert table.high - table.estimate == pytest.approx(z * table.se, abs=2e-6)
    coarse = Cube(model(unit=1.0), VALUES).table(["major"], {"strength": ["light"]})
    assert (coarse.high - coarse.estimate).tolist() == np.ceil(z * table.se).tolist()
    assert (coarse.low >= 0).all()  # no count is negative


def test_what_is_left_out_is_not_told_as_zero() -> None:
    table = Cube(model(), VALUES).table(["major", "strength"], {"strength": ["heavy"], "occupation": ["13-1011"]})
    assert table.codes == (("13",), ("heavy",))
    assert table.cells.tolist() == [2]


def test_exact_controls_leave_no_noise_in_their_own_cells() -> None:
    control = ControlModel(name="c", by=("strength",), kind="exact", axes=(1,), variance=0.0)
    cube = Cube(model(controls=(control,)), VALUES)
    assert cube.table(["strength"]).se_perturbation == pytest.approx([0, 0, 0], abs=1e-6)
    assert cube.table([]).se_perturbation == pytest.approx([0], abs=1e-6)
    one = cube.table(VARIABLES).se_perturbation
    assert one == pytest.approx([np.sqrt(9 * (1 - 1 / 10))] * 30)  # one cell of ten that add up to a known number


def test_raking_widens_by_the_number_of_variables_and_by_size() -> None:
    raked_ = tuple(RakedModel(times=times, share=0.0) for times in (1.0, 4.0, 9.0, 16.0))
    done: dict[str, Any] = {
        "asked": "rake", "done": "rake", "converged": True, "cycles": 1, "largest_gap": 0, "problems": ()
    }  # fmt: skip
    calibration = CalibrationModel(**done, raked=raked_)
    larger = CalibrationModel(**done, raked=[RakedModel(times=1.0, share=0.01)] * 4)
    sized = Cube(model(calibration=larger), VALUES).table(["strength"])
    assert sized.se_perturbation**2 == pytest.approx(90 + 0.01 * sized.estimate**2)
    plain, raked = Cube(model(), VALUES), Cube(model(calibration=calibration), VALUES)
    for by in ([], ["strength"], ["strength", "outdoors"], VARIABLES):
        ratio = raked.table(by).se_perturbation / plain.table(by).se_perturbation
        assert ratio == pytest.approx([1.0 + len(by)] * len(ratio))
    # A filter is a variable as well, one that lets everything through is none.
    assert raked.table([], {"strength": ["light"]}).se == pytest.approx(2 * plain.table([], {"strength": ["light"]}).se)
    assert raked.table([], {"strength": STRENGTH}).se == pytest.approx(plain.table().se)


def test_sampling_errors_by_a_curve_or_by_deviations() -> None:
    curve = Cube(model(sampling=SamplingModel(kind="gvf", a=0.0, b=2.0)), VALUES).table(["strength"])
    assert curve.se_sampling == pytest.approx(np.sqrt(2.0 * (curve.estimate + 2)))  # one record more than was seen
    assert curve.se**2 == pytest.approx(curve.se_sampling**2 + curve.se_perturbation**2)
    rng = np.random.default_rng(4)
    deviations = rng.normal(size=(30, 6))
    sampling = SamplingModel(kind="replicates", replicates=6, factor=4.0, noise=0.01, table="c_replicates")
    actual = Cube(model(sampling=sampling), VALUES, None, deviations).table(["strength"], {"outdoors": ["no"]})
    sums = deviations.reshape(5, 3, 2, 6)[:, :, 1].sum(axis=0)
    assert actual.se_sampling == pytest.approx(np.sqrt(np.maximum(4 / 6 * (sums**2).sum(axis=1) - 4 * 5 * 0.01, 0)))
    with pytest.raises(ParameterError, match="not loaded"):
        Cube(model(sampling=sampling), VALUES).table()


def test_tails_of_few_cells_widen_intervals() -> None:
    distribution = DiscreteLaplace(Fraction(1, 20))
    cube = Cube(model(variance=distribution.variance(), fourth=distribution.fourth_cumulant()), VALUES)
    one, all_ = cube.table(VARIABLES, level=Fraction(19, 20)), cube.table(level=Fraction(19, 20))
    assert ((one.high - one.estimate) / one.se)[0] > 1.98
    assert ((all_.high - all_.estimate) / all_.se)[0] < 1.98
    assert one.level == Fraction(19, 20)


def test_fourth_cumulants_of_capped_and_other_noise() -> None:
    for distribution in (
        DiscreteLaplace(Fraction(1, 2)),
        DiscreteLaplace(Fraction(1, 2), 3),
        DiscreteLaplace(Fraction(7), 1),
    ):
        k = np.arange(-(distribution.cap or 400), (distribution.cap or 400) + 1)
        p = np.exp(-float(distribution.rate) * np.abs(k))
        p /= p.sum()
        assert distribution.fourth_cumulant() == pytest.approx((p @ k**4) - 3 * (p @ k**2) ** 2, rel=1e-9)


@pytest.mark.parametrize(("ratio", "excess"), [(2, -0.39), (5, 1.35), (10, 2.86)])
def test_fourth_cumulants_of_a_cap_of_many_millions(ratio: int, excess: float) -> None:
    distribution = DiscreteLaplace(Fraction(ratio, 10**7), 10**7)
    assert distribution.fourth_cumulant() / distribution.variance() ** 2 == pytest.approx(excess, abs=0.01)


def test_arrow() -> None:
    table = Cube(model(sampling=SamplingModel(kind="gvf", b=1.0)), VALUES).table(["outdoors", "major"]).arrow()
    assert table.column_names[:2] == ["outdoors", "major"]
    assert table.column_names[2:] == ["estimate", "se", "se_sampling", "se_perturbation", "low90", "high90"]
    assert table["outdoors"].to_pylist() == ["yes", "yes", "no", "no"]
    assert table["major"].to_pylist() == ["11", "13"] * 2
    assert isinstance(table, pa.Table)
    assert len(Cube(model(), VALUES).table(["major"])) == 2


@pytest.mark.parametrize(
    ("by", "where", "said"),
    [
        (["color"], {}, r"by: the cube has no variable 'color'. It has occupation, strength, outdoors, major"),
        ([], {"color": ["x"]}, r"where: the cube has no variable 'color'"),
        (["occupation", "major"], {}, "'major' and another level group the same variable"),
        (["strength", "strength"], {}, "duplicate variable 'strength'"),
        (["strenght"], {}, "no variable 'strenght', did you mean 'strength'"),
        ("strength", {}, "'strength' is not a list of variables"),
        (["strength"], {"strength": []}, "no cell of the cube matches"),
        (["strength"], {"major": ["11"], "occupation": ["13-1011"]}, "no cell of the cube matches"),
        ([], {"strength": ["lihgt"]}, "'lihgt' is not a code of 'strength'. It has light, medium, heavy.$"),
        ([], {"strength": "light"}, "'strength' needs a list of codes"),
        ([], {"strength": [1]}, "'strength' needs a list of codes"),
    ],
)
def test_what_cannot_be_asked(by: list[str], where: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Cube(model(), VALUES).table(by, where)


def test_tables_with_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.post.cubes.cube.MOST_CELLS", 14)
    with pytest.raises(ParameterError, match="15 rows exceed the limit of 14"):
        Cube(model(), VALUES).table(["occupation", "strength"])
