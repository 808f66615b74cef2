"""Whole releases of estimates: what is published, what it says about itself, and what no data can make it say."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat
import pytest

from discreet.errors import DiscreetError, DomainError, GuaranteeError, SourceError, SpecError
from discreet.methods.sensitivity.noise import EstimateNoise
from discreet.methods.sensitivity.statistics import Variable
from discreet.methods.sensitivity.statistics.line import Line
from discreet.pipeline.check import lines
from support.sensitivity import LINE, UNIT_INTERVAL, AtlasAgency, children

SURE = "1000000000"  # an epsilon with negligible noise


@pytest.fixture
def atlas(tmp_path: Path) -> AtlasAgency:
    return AtlasAgency(tmp_path / "atlas")


def cell(table: pa.Table, code: str) -> tuple[np.ndarray, np.ndarray]:
    mine = table.filter(pc.equal(table["tract"], code))
    x, y = mine["parent_rank"].to_numpy(), mine["kid_rank"].to_numpy()
    order = np.lexsort((y, x))
    return x[order], y[order]


def truth(code: str, table: pa.Table | None = None) -> tuple[float, float, int, float]:
    """Prediction, standard error, number of records and sensitivity, from textbook formulas."""
    x, y = cell(children() if table is None else table, code)
    slope, height = np.polyfit(x, y, 1)
    residual = y - height - slope * x
    spread = np.sum((x - x.mean()) ** 2)
    error = np.sqrt(residual @ residual / (x.size - 2) * (1 / x.size + (0.25 - x.mean()) ** 2 / spread))
    line = Line(Variable("x", 0, 1), Variable("y", 0, 1), "prediction", 0.25)
    actual = line.local([x, y], np.array([0, x.size]))
    return height + slope * 0.25, error, x.size, float(actual.sensitivity[0])


def test_with_negligible_noise_the_estimates_are_those_of_the_records(atlas: AtlasAgency) -> None:
    actual = atlas.run(epsilon=SURE)
    for row in actual["mobility"].to_pylist():
        if row["tract"] == "299":
            assert (row["estimate"], row["count"]) == (0.5, 0)  # the stated value of an empty cell
            continue
        estimate, error, n, _ = truth(row["tract"])
        assert row["estimate"] == pytest.approx(estimate, abs=2e-6)
        assert row["se_sampling"] == pytest.approx(error, abs=2e-6)
        assert row["se"] == pytest.approx(error, abs=1e-5)
        assert row["count"] == row["size"] == n
    chi = max(n * s for n, s in ((truth(t)[2], truth(t)[3]) for t in {*children()["tract"].to_pylist()}))
    assert actual["mobility_chi"]["chi"][0].as_py() == pytest.approx(chi, rel=1e-3)
    assert actual["mobility_chi"]["chi"][0].as_py() >= chi


def test_every_group_has_its_own_scale(atlas: AtlasAgency) -> None:
    actual = atlas.run(groups=["state"])["mobility_chi"].to_pylist()
    largest: dict[str, float] = {}
    for code in {*children()["tract"].to_pylist()}:
        _, _, n, moved = truth(code)
        state = "S" if code[0] == "2" else "N"
        largest[state] = max(largest.get(state, 0.0), n * moved)
    assert {row["state"]: row["chi"] for row in actual} == {s: pytest.approx(c, rel=1e-3) for s, c in largest.items()}


def many(tracts: int = 3000, n: int = 12) -> pa.Table:
    """Many equal cells: whatever differs between them is noise."""
    x, y = np.linspace(0, 1, n), np.linspace(0.2, 0.7, n) ** 2
    codes = np.repeat([f"{i:05d}" for i in range(tracts)], n)
    return pa.table({"tract": codes, "parent_rank": np.tile(x, tracts), "kid_rank": np.tile(y, tracts)})


@pytest.fixture(scope="module", params=["laplace", "normal"])
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table, float]:
    folder = tmp_path_factory.mktemp("many") / request.param
    atlas, table = AtlasAgency(folder, many()), many()
    codes = sorted({*table["tract"].to_pylist()})
    (folder / "tracts.csv").write_text("tract,state\n" + "".join(f"{code},N\n" for code in codes))
    actual = atlas.run(noise=request.param, epsilon="2")
    return request.param, actual["mobility"], truth(codes[0], table)[0]


def test_noise_has_the_stated_deviation(drawn: tuple[str, pa.Table, float]) -> None:
    distribution, table, centre = drawn
    noise = (table["estimate"].to_numpy() - centre) / table["noise_sd"].to_numpy()
    fourth = {"laplace": 6.0, "normal": 3.0}[distribution]
    assert np.mean(noise**2) == pytest.approx(1, abs=6 * np.sqrt((fourth - 1) / noise.size))
    assert abs(np.mean(noise)) < 6 / np.sqrt(noise.size)
    other = {"laplace": 3.0, "normal": 6.0}[distribution]
    assert abs(np.mean(noise**4) - fourth) < abs(
        np.mean(noise**4) - other
    )  # and is of that distribution, not the other


def test_each_number_has_noise_of_its_own(drawn: tuple[str, pa.Table, float]) -> None:
    """The authors' code draws once and uses it for the estimate and for the count."""
    _, table, centre = drawn
    parts = [
        (table["estimate"].to_numpy() - centre) / table["noise_sd"].to_numpy(),
        (table["se_sampling"].to_numpy() - np.mean(table["se_sampling"].to_numpy())) / table["se_noise_sd"].to_numpy(),
        table["count"].to_numpy() - 12.0,
    ]
    for i, one in enumerate(parts):
        for two in parts[:i]:
            assert abs(np.corrcoef(one, two)[0, 1]) < 6 / np.sqrt(one.size)


def test_the_size_is_a_lower_bound_made_of_the_released_count(drawn: tuple[str, pa.Table, float]) -> None:
    distribution, table, _ = drawn
    count, size = table["count"].to_numpy(), table["size"].to_numpy()
    failure = Fraction("0.000001") / (2 if distribution == "normal" else 1)
    margin = EstimateNoise(distribution, Fraction(2), Fraction(1), "bound", failure).margin  # type: ignore[arg-type]
    assert np.array_equal(size, np.maximum(count - margin, 1))
    assert (size <= 12).all()


def test_numbers_cost_one_epsilon_each(atlas: AtlasAgency) -> None:
    assert atlas.open().plan().total.epsilon == 12
    assert atlas.open().plan().total.delta == Fraction("0.000001")
    sizes = {"public": "tracts.csv", "column": "state", "provenance": "none"}
    with pytest.raises(DomainError, match="line 2 has no integer number"):
        atlas.open(cell_size=sizes, delta=None).plan()
    (atlas.folder / "sizes.csv").write_text("tract,people\n000,40\n101,25\n")
    sizes = {"public": "sizes.csv", "column": "people", "provenance": "a census"}
    assert atlas.open(cell_size=sizes, delta=None, publish=["estimate"]).plan().total.epsilon == 4


def test_chi_is_covered_by_no_epsilon_and_adds_none(atlas: AtlasAgency) -> None:
    plan = atlas.open().plan()
    estimates, scales = plan.tables
    assert (estimates.has_own_cost, scales.has_own_cost, scales.sum_of) == (True, False, "")
    assert "mobility_chi" in str(plan)
    assert scales.cost == "χ without noise: covered by no epsilon"
    assert "post-processing" not in str(plan)
    assert plan.description.guarantee.epsilon == estimates.guarantee.epsilon


def test_normal_noise_is_charged_what_it_costs(atlas: AtlasAgency) -> None:
    """Nominally 8 and one number: epsilon 42 at a delta of 1e-6 (DECISIONS)."""
    (atlas.folder / "sizes.csv").write_text("tract,people\n000,40\n101,25\n")
    sizes = {"public": "sizes.csv", "column": "people", "provenance": "a census"}
    plan = atlas.open(cell_size=sizes, noise="normal", epsilon="8", publish=["estimate"]).plan()
    assert 41 < plan.total.epsilon < 43
    assert "cost ε = 4" in str(plan)


def test_it_never_claims_to_be_private(atlas: AtlasAgency) -> None:
    atlas.run()
    manifest = json.loads((atlas.folder / "out/manifest.json").read_text())
    texts = [(atlas.folder / "out/codebook.md").read_text(), str(atlas.open().plan()), json.dumps(manifest)]
    for text in texts:
        assert "Not differentially private" in text
        assert "were it not for what the caveats name" in text
    assert all(table["guarantee"]["caveats"] for table in manifest["tables"])


@pytest.mark.parametrize(
    ("changes", "caveat"),
    [
        ({"cell_size": "true", "delta": None}, "true number of records of a cell, as printed"),
        ({"suppress_below": {"count": 30, "on": "true"}}, "suppressed by their true number"),
        ({"search": "corners"}, "at the corners of the bounds only"),
        ({"search": {"grid": 5}}, "on a grid of 5 values"),
        ({"infinite_influence": "refuse"}, "existence of this release discloses"),
    ],
)
def test_options_with_weaker_guarantees_have_caveats(atlas: AtlasAgency, changes: dict[str, Any], caveat: str) -> None:
    plain, weaker = atlas.open().plan().total, atlas.open(**changes).plan().total
    assert not any(caveat in text for text in plain.caveats)
    assert any(caveat in text for text in weaker.caveats)


def test_cells_are_left_out_by_their_released_count(atlas: AtlasAgency) -> None:
    rows = atlas.run(suppress_below={"count": 30})["mobility"].to_pylist()
    assert {row["estimate"] is None for row in rows} == {True, False}
    for row in rows:
        assert (row["count"] < 30) == (row["estimate"] is None) == (row["low95"] is None)


def test_or_by_their_true_count_then_with_nothing_at_all(atlas: AtlasAgency) -> None:
    rows = atlas.run(suppress_below={"count": 30, "on": "true"})["mobility"].to_pylist()
    left_out = {row["tract"] for row in rows if row["estimate"] is None}
    assert left_out == {code for code in [*{*children()["tract"].to_pylist()}] if truth(code)[2] < 30} | {"299"}
    assert all(row["count"] is None for row in rows if row["tract"] in left_out)


def test_one_cell_alone_is_scaled_by_placebo_cells(atlas: AtlasAgency) -> None:
    whole, alone = atlas.run("all"), atlas.run("one", only={"tract": ["101"]})
    assert alone["mobility"]["tract"].to_pylist() == ["101"]
    assert alone["mobility_chi"].equals(whole["mobility_chi"])


def test_public_sizes_scale_the_noise(atlas: AtlasAgency) -> None:
    (atlas.folder / "sizes.csv").write_text("tract,people\n000,40\n101,20\n")
    sizes = {"public": "sizes.csv", "column": "people", "provenance": "a census"}
    rows = {row["tract"]: row for row in atlas.run(cell_size=sizes, delta=None)["mobility"].to_pylist()}
    assert (rows["000"]["size"], rows["101"]["size"], rows["202"]["size"]) == (40, 20, 1)
    assert rows["101"]["noise_sd"] == pytest.approx(2 * rows["000"]["noise_sd"], rel=1e-3)


def constant(code: str = "101") -> pa.Table:
    """One tract whose parents all have the same rank."""
    table = children()
    x = np.where(np.array(table["tract"].to_pylist()) == code, 0.5, table["parent_rank"].to_numpy())
    return table.set_column(table.column_names.index("parent_rank"), "parent_rank", pa.array(x))


def test_a_cell_without_spread_has_no_say_and_shows_nothing(atlas: AtlasAgency) -> None:
    """Its estimate is the mean of y plus noise: no empty field tells what its records are like."""
    atlas.write(constant())
    actual = atlas.run(epsilon=SURE)
    row = next(row for row in actual["mobility"].to_pylist() if row["tract"] == "101")
    assert row["estimate"] == pytest.approx(float(np.mean(cell(constant(), "101")[1])), abs=1e-5)
    chi = max(truth(t)[2] * truth(t)[3] for t in {*children()["tract"].to_pylist()} - {"101"})
    assert actual["mobility_chi"]["chi"][0].as_py() == pytest.approx(chi, rel=1e-3)


def test_check_names_such_cells_and_says_what_to_do(atlas: AtlasAgency) -> None:
    atlas.write(constant())
    opened = atlas.open()
    text = "\n".join(lines(opened.check(), opened.spec))
    assert "CONFIDENTIAL" in text
    assert "of infinite sensitivity to one record: tract 101" in text
    assert "winsorise" in text
    assert "χ = " in text


def test_refusing_them_names_no_cell_and_spends_nothing(atlas: AtlasAgency) -> None:
    atlas.write(constant())
    opened = atlas.open(infinite_influence="refuse")
    with pytest.raises(SourceError, match="no finite sensitivity") as error:
        opened.run(atlas.folder / "out", simulation="test")
    assert "101" not in str(error.value)
    assert not opened.ledger.chain().releases()
    assert not (atlas.folder / "out").exists()


def test_no_data_at_all_stop_nothing(atlas: AtlasAgency) -> None:
    atlas.write(children().slice(0, 0))
    actual = atlas.run()
    assert len(actual["mobility"]) == 7
    assert actual["mobility_chi"]["chi"].to_pylist() == [1.0]  # the natural size of the statistic


def test_values_outside_are_clamped_or_dropped(atlas: AtlasAgency) -> None:
    table = children()
    y = table["kid_rank"].to_numpy().copy()
    y[::7], y[::11], y[5] = 40.0, np.nan, -np.inf
    atlas.write(table.set_column(table.column_names.index("kid_rank"), "kid_rank", pa.array(y)))
    clamped = atlas.run("clamped", epsilon=SURE)["mobility"]["count"].to_pylist()
    variables = {"parent_rank": UNIT_INTERVAL, "kid_rank": {**UNIT_INTERVAL, "outside": "drop"}}
    dropped = atlas.run("dropped", epsilon=SURE, variables=variables)["mobility"]["count"].to_pylist()
    inside = np.isfinite(y) & (y <= 1)
    assert sum(clamped) == int(np.isfinite(y).sum())  # an infinite number is no value
    assert sum(dropped) == int(inside.sum())
    text = "\n".join(lines(atlas.open().check(), atlas.open().spec))
    assert f"kid_rank: {int(np.isnan(y).sum())} records without a value" in text
    assert f"{int((np.isfinite(y) & (y > 1)).sum())} outside 0 … 1 are clamped" in text


def test_one_record_of_each_person(tmp_path: Path) -> None:
    table = children()
    doubled = pa.concat_tables([table, table.slice(0, 50)])
    atlas = AtlasAgency(tmp_path / "people", doubled, {"person": "child", "max_records": 1})
    assert sum(atlas.run(epsilon=SURE)["mobility"]["count"].to_pylist()) == table.num_rows
    with pytest.raises(GuaranteeError, match="sensitivities cover one record"):
        AtlasAgency(tmp_path / "two", doubled, {"person": "child", "max_records": 2}).open().plan()


def test_stata_reads_what_is_published(atlas: AtlasAgency) -> None:
    actual = atlas.run(formats=["parquet", "csv", "dta"])["mobility"]
    frame, meta = pyreadstat.read_dta(str(atlas.folder / "out/mobility.simulation.dta"))
    assert frame["tract"].tolist() == actual["tract"].to_pylist()
    assert np.array_equal(frame["estimate"].to_numpy(), actual["estimate"].to_numpy())
    assert frame["count"].tolist() == actual["count"].to_pylist()
    assert meta.file_label.startswith("SIMULATION")


UNBOUNDED = {"parent_rank": UNIT_INTERVAL, "kid_rank": {"low": "0"}}


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"variables": UNBOUNDED}, SpecError, r"variables.kid_rank.*has no bounds: declare low and high"),
        ({"variables": {"parent_rank": UNIT_INTERVAL}}, SpecError, "unknown variable 'kid_rank'"),
        ({"variables": {**UNBOUNDED, "kid_rank": {"low": "1", "high": "1"}}}, SpecError, "low 1 is not below high 1"),
        ({"variables": {**UNBOUNDED, "kid_rank": {"low": 0.5, "high": "1"}}}, SpecError, "found a float"),
        ({"epsilon": None}, SpecError, "epsilon"),
        ({"epsilon": "0"}, SpecError, "must be above 0"),
        ({"delta": None}, SpecError, "'delta' is missing: the lower bound on a count can fail"),
        ({"cell_size": "true"}, SpecError, "leave it out"),
        ({"noise": "normal", "cell_size": "true", "delta": None}, SpecError, "normal noise has no pure epsilon"),
        ({"statistic": {"name": "predicton"}}, SpecError, "did you mean 'prediction'"),
        ({"statistic": "mean"}, SpecError, "expected keys and values"),
        ({"statistic": {**LINE, "x": "kid_rank"}}, SpecError, "the same variable"),
        ({"statistic": {**LINE, "winsorise": "0.5"}}, SpecError, "below 1/2"),
        ({"search": "removals"}, SpecError, "does not support the search 'removals'"),
        ({"search": {"grid": 1}}, SpecError, "search.*grid.*2"),
        ({"groups": ["race"]}, SpecError, "unknown attribute 'race'"),
        ({"by": ["state"], "groups": ["tract"]}, SpecError, "every cell must lie in one group"),
        ({"only": {"tract": ["999"]}}, SpecError, "'999' is not a category"),
        ({"only": {"state": ["N"]}}, SpecError, "is not in `by`"),
        ({"publish": ["estimate"]}, SpecError, "publish count"),
        ({"publish": ["count"]}, SpecError, "lists estimate"),
        ({"minimum": 30}, SpecError, "'minimum' is now called 'suppress_below': write `suppress_below: 30`"),
        ({"size": "bound"}, SpecError, "'size' is now called 'cell_size': write `cell_size: bound`"),
        ({"numbers": ["estimate"]}, SpecError, "'numbers' is now called 'publish': write `publish: .estimate.`"),
        (
            {"infinite": "refuse"},
            SpecError,
            "'infinite' is now called 'infinite_influence': write `infinite_influence: r",
        ),
        ({"grid": "0.003"}, SpecError, "power of ten"),
        ({"decay": "3"}, SpecError, "decay is 1/2, 1, 3/2 or 2"),
        ({"formats": ["dta", "dta"]}, SpecError, "names one twice"),
    ],
)
def test_bad_declarations_are_refused(
    atlas: AtlasAgency, changes: dict[str, Any], kind: type[DiscreetError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        atlas.open(**changes).plan()


def test_a_share_is_of_codes(atlas: AtlasAgency) -> None:
    share = {"name": "share", "of": "treated"}
    with pytest.raises(SpecError, match="'treated' is not a 0/1 variable"):
        atlas.open(statistic=share, variables={"treated": UNIT_INTERVAL}).plan()
    actual = atlas.run(statistic=share, variables={"treated": {"equals": ["yes"]}}, epsilon=SURE)[
        "mobility"
    ].to_pylist()
    table = children()
    mine = np.array(table["tract"].to_pylist()) == "000"
    yes = np.array(table["treated"].to_pylist())[mine] == "yes"
    assert next(r for r in actual if r["tract"] == "000")["estimate"] == pytest.approx(yes.mean(), abs=1e-5)


def test_ranks_among_public_thresholds(atlas: AtlasAgency) -> None:
    (atlas.folder / "cuts.csv").write_text("threshold\n0.2\n0.4\n0.6\n0.8\n")
    variables = {"kid_rank": {"ranks": "cuts.csv"}}
    actual = atlas.run(statistic={"name": "mean", "of": "kid_rank"}, variables=variables, epsilon=SURE)["mobility"]
    y = cell(children(), "000")[1]
    expected = np.mean(np.searchsorted([0.2, 0.4, 0.6, 0.8], y, side="right") / 4)
    assert actual["estimate"][0].as_py() == pytest.approx(expected, abs=1e-5)
    for text, said in (
        ("threshold\n2\n1\n", "do not ascend"),
        ("threshold\nx\n", "not a number"),
        ("a\n1\n", "no column"),
    ):
        (atlas.folder / "cuts.csv").write_text(text)
        with pytest.raises(DomainError, match=said):
            atlas.run("again", statistic={"name": "mean", "of": "kid_rank"}, variables=variables)


def test_a_column_that_is_no_number_is_refused_by_name(atlas: AtlasAgency) -> None:
    variables = {"parent_rank": UNIT_INTERVAL, "kid_rank": {**UNIT_INTERVAL, "column": "nothing"}}
    with pytest.raises(SourceError, match="no column 'nothing'"):
        atlas.run(variables=variables)
