"""The noise of estimates: its scale, its margins, who decides it, and what can be worked out from what is published."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.domain import Domain, coarsening
from discreet.engine.derived_values import ObservedValue
from discreet.engine.spans import Span
from discreet.errors import DomainError, GuaranteeError, SpecError
from discreet.methods.sensitivity import wording
from discreet.methods.sensitivity.estimates import intervals
from discreet.methods.sensitivity.kernel import LARGEST, EstimateKernel, LocalKernel
from discreet.methods.sensitivity.method import SensitivityMethod
from discreet.methods.sensitivity.noise import EstimateNoise
from discreet.methods.sensitivity.statistics import Search, Variable
from discreet.methods.sensitivity.statistics.line import Line
from discreet.methods.sensitivity.statistics.moments import Mean
from discreet.noise.key import ReleaseKey
from discreet.privacy.gaussian import true_epsilon
from support.sensitivity import LINE, UNIT_INTERVAL, AtlasAgency, children

DELTA = Fraction("0.000001")
LOUD = Fraction(1, 4)  # an epsilon with much noise


@pytest.fixture
def atlas(tmp_path: Path) -> AtlasAgency:
    return AtlasAgency(tmp_path / "atlas")


def noise(distribution: Any = "laplace", epsilon: Fraction = Fraction(2), **more: Any) -> EstimateNoise:
    return EstimateNoise(distribution, epsilon, **{"decay": Fraction(1), "size": "bound", "failure": DELTA, **more})


def table_of(atlas: AtlasAgency, **changes: Any) -> SensitivityMethod:
    spec = atlas.open(**changes).spec
    actual = SensitivityMethod.of(spec, spec.tables[0])  # type: ignore[arg-type]
    assert isinstance(actual, SensitivityMethod)
    return actual


def test_the_scale_is_rounded_up_and_has_one_step_for_rounding() -> None:
    chi, size = np.array([0, 9, 11, 12]), np.array([5, 5, 5, 5])
    assert noise().multiples(chi, size).tolist() == [1, 3, 4, 4]
    assert noise(decay=Fraction(2)).multiples(np.array([99]), np.array([5])).tolist() == [5]
    assert noise(decay=Fraction(1, 2)).multiples(np.array([99]), np.array([25])).tolist() == [21]


@pytest.mark.parametrize("distribution", ["laplace", "normal"])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(8)])
def test_the_margin_is_passed_with_the_probability_that_was_stated(distribution: str, epsilon: Fraction) -> None:
    """P(noise > m) ≤ δ < P(noise > m − 1), from the distributions themselves."""
    made = noise(distribution, epsilon)
    rate = float(epsilon)

    def above(m: int) -> float:
        if distribution == "laplace":
            return float(np.exp(-rate * (m + 1)) / (1 + np.exp(-rate)))
        from scipy.stats import norm

        return float(norm.sf((m + 0.5) / (np.sqrt(2) / rate)))

    assert above(made.margin) <= float(DELTA) < above(made.margin - 1)


@pytest.mark.parametrize("decay", ["1/2", "2"])
def test_other_rates_of_decay(atlas: AtlasAgency, decay: str) -> None:
    made = atlas.run(decay=decay, delta="0.000001")
    local = look(atlas)
    rate = float(Fraction(decay))
    chi = max(n**rate * moved for n, moved in local)
    assert made["mobility_chi"]["chi"][0].as_py() == pytest.approx(chi, rel=1e-3)
    for row in made["mobility"].to_pylist():
        sd = np.sqrt(2) * made["mobility_chi"]["chi"][0].as_py() / row["size"] ** rate / 4
        assert row["noise_sd"] == pytest.approx(sd, abs=3e-6 * np.sqrt(2) / 4 + 1e-5 * sd)


def look(atlas: AtlasAgency, table: pa.Table | None = None) -> list[tuple[int, float]]:
    rows = (children() if table is None else table).to_pylist()
    line = Line(Variable("x", 0, 1), Variable("y", 0, 1), "prediction", 0.25)
    actual = []
    for code in {row["tract"] for row in rows}:
        pairs = sorted((row["parent_rank"], row["kid_rank"]) for row in rows if row["tract"] == code)
        x, y = (np.array(column) for column in zip(*pairs, strict=True))
        local = line.local([x, y], np.array([0, x.size]), errors=False)
        actual.append((int(x.size), float(local.sensitivity[0])))
    return actual


def kernel(**changes: Any) -> EstimateKernel:
    nothing = Domain(())
    groups = coarsening(nothing, nothing)
    assert groups is not None
    given: dict[str, Any] = {
        "table": "t",
        "domain": nothing,
        "groups": groups,
        "noise": noise(),
        "quantities": ("estimate", "error", "count"),
        "steps": 1000,
        "empty": 500,
        "parameters": 2,
        "chi": np.array([5000]),
        "chi_error": np.array([700]),
        "suppress_below": None,
        "suppress_by_true_count": False,
        "sizes": None,
        "chosen": (),
    }
    return EstimateKernel(**{**given, **changes})


def drawn(made: EstimateKernel, n: int, estimate: int, error: int, seed: str) -> dict[str, Any]:
    rows = pa.record_batch({"cell": [0], "n": [n], "estimate": [estimate], "error": [error]})
    stream = ReleaseKey.simulation(seed).stream("r", "t", b"", "p")
    (batch,) = made(Span(0, 0, 1), iter([rows]), stream)
    actual: dict[str, Any] = batch.to_pylist()[0]
    return actual


def steps(chi: int, size: int) -> int:
    return int(np.ceil(chi / size * (1 + 2.0**-40))) + 1


def test_limits_follow_from_published_numbers_alone() -> None:
    """Degrees of freedom from the released count, scales from the released size: nothing else is known outside."""
    for size in ("bound", "true"):
        made = kernel(noise=noise(epsilon=LOUD, size=size, failure=DELTA if size == "bound" else None))
        row = drawn(made, 40, 420, 30, "limits a")
        assert abs(row["count"] - 40) > 1  # the true number would show
        seen = row["size"] if size == "bound" else max(row["count"], 1)
        sd = np.sqrt(2) / float(LOUD) * steps(5000, seen) / 1000
        error_sd = np.sqrt(2) / float(LOUD) * steps(700, seen) / 1000
        assert row["noise_sd"] == pytest.approx(sd, rel=1e-5)
        assert row["se_noise_sd"] == pytest.approx(error_sd, rel=1e-5)
        arrays = [np.array([row[name]]) for name in ("estimate", "se_sampling")]
        scales = [np.array([sd / np.sqrt(2)]), np.array([error_sd / np.sqrt(2)])]
        around = intervals(*arrays, *scales, np.array([max(row["count"] - 2, 1)]), "laplace")
        assert around.low[0] - 0.001 <= row["low95"] <= around.low[0] + 1e-9  # outwards
        assert around.high[0] - 1e-9 <= row["high95"] <= around.high[0] + 0.001


def test_the_true_size_shows_in_no_published_scale() -> None:
    made = kernel(noise=noise(epsilon=LOUD, size="true", failure=None))
    one, two = drawn(made, 40, 420, 30, "same"), drawn(made, 41, 420, 30, "same")
    assert two["count"] == one["count"] + 1
    assert abs(one["count"] - 40) > 1
    for row in (one, two):
        assert row["noise_sd"] == pytest.approx(np.sqrt(2) / float(LOUD) * steps(5000, row["count"]) / 1000, rel=1e-5)


def test_errors_have_noise_of_their_own_scale() -> None:
    made = kernel()
    rows = [drawn(made, 40, 420, 30, f"seed {i}") for i in range(800)]
    for value, centre, sd in (("estimate", 0.42, "noise_sd"), ("se_sampling", 0.03, "se_noise_sd")):
        scaled = np.array([(row[value] - centre) / row[sd] for row in rows])
        assert np.mean(scaled**2) == pytest.approx(1, abs=6 * np.sqrt(5 / scaled.size))


def test_what_is_published_is_cut_before_its_noise_is() -> None:
    row = drawn(kernel(), 40, LARGEST, 30, "far")
    assert row["estimate"] == pytest.approx(LARGEST / 1000, rel=1e-9)
    tiny = noise("normal", Fraction(1, 2**50))  # noise far beyond where it is cut
    stream = ReleaseKey.simulation("tiny").stream("r", "t", b"", "p")
    counts = tiny.count(np.full(500, 40), stream, 0)
    assert np.abs(counts).max() == LARGEST


def test_hidden_cells_hide_their_size() -> None:
    row = drawn(kernel(suppress_below=1000), 40, 420, 30, "few")
    assert row["estimate"] is row["size"] is row["noise_sd"] is row["low95"] is None
    assert row["count"] is not None


def test_ranked_columns_are_sorted_again_and_zeros_have_no_sign() -> None:
    both = (ObservedValue("x", "x", 0.0, 1.0), ObservedValue("y", "y", 0.0, 1.0))
    made = LocalKernel(Line(Variable("x", 0, 1), Variable("y", 0, 1), "slope"), Search(), 1000, True, both, ((), ()))
    cells = np.zeros(4, np.int64)
    kept, columns = made._bounded(cells, [np.array([-0.0, 0.0, 0.5, 3.0]), np.array([0.9, 0.1, np.nan, 0.2])])
    assert [column.tolist() for column in columns] == [[0.0, 0.0, 1.0], [0.1, 0.9, 0.2]]
    assert not any(np.signbit(column).any() for column in columns)
    assert kept.size == 3
    ranks = (ObservedValue("x", "x", 0.0, 1.0, ranked=True), both[1])
    ranked = LocalKernel(made.statistic, Search(), 1000, True, ranks, ((1.0, 2.0), ()))
    _, columns = ranked._bounded(cells, [np.array([1.1, 1.5, 1.9, 9.0]), np.array([0.9, 0.1, 0.5, 0.2])])
    assert [column.tolist() for column in columns] == [[0.5, 0.5, 0.5, 1.0], [0.1, 0.5, 0.9, 0.2]]


def with_wild_cell(n: int) -> pa.Table:
    """One more tract, of parents who are almost alike: any line through it is easily moved."""
    x = 0.5 + 1e-3 * np.arange(n) / n
    wild = {
        "child": [f"W{i}" for i in range(n)],
        "tract": ["299"] * n,
        "parent_rank": x,
        "kid_rank": x,
        "treated": ["no"] * n,
    }
    return pa.concat_tables([children(), pa.table(wild)])


def test_only_cells_that_can_be_published_decide(atlas: AtlasAgency) -> None:
    least = table_of(atlas, suppress_below=20).design.least
    assert 10 < least < 20
    chi = {}
    for n in (least - 1, least):
        atlas.write(with_wild_cell(n))
        chi[n] = atlas.run(f"with{n}", suppress_below=20)["mobility_chi"]["chi"][0].as_py()
    assert chi[least] > 20 * chi[least - 1]
    assert table_of(atlas, suppress_below={"count": 20, "on": "true"}).design.least == 20
    sizes = {"public": "tracts.csv", "column": "state", "provenance": "x"}
    (atlas.folder / "tracts.csv").write_text("tract,state\n000,5\n101,0\n")
    assert table_of(atlas, suppress_below=20, cell_size=sizes, delta=None).design.least == 1  # no δ for an error


def test_delta_is_divided_among_what_may_fail(atlas: AtlasAgency) -> None:
    three = table_of(atlas, noise="normal", suppress_below=20).design
    assert {claim: three.part(claim) for claim in three.spec.claims} == dict.fromkeys(
        ("bound", "normal", "small"), DELTA / 3
    )
    assert three.charged == true_epsilon([Fraction(4)] * 3, DELTA / 3)
    two = table_of(atlas, noise="normal").design
    assert two.charged == true_epsilon([Fraction(4)] * 3, DELTA / 2)
    assert two.noise.failure == DELTA / 2
    assert three.guarantee.delta == two.guarantee.delta == DELTA


def test_every_option_has_its_caveats(atlas: AtlasAgency) -> None:
    (atlas.folder / "sizes.csv").write_text("tract,people\n000,5\n")
    public = {"public": "sizes.csv", "column": "people", "provenance": "x"}
    usual = (wording.CHI, wording.ROUNDED, wording.UNDEFINED)
    assert table_of(atlas).guarantee().caveats == usual
    assert table_of(atlas, cell_size=public, delta=None).guarantee().caveats == (*usual, wording.PUBLIC_SIZE)
    assert table_of(atlas, cell_size="true", delta=None).guarantee().caveats == (*usual, wording.TRUE_SIZE)
    winsorised = {**LINE, "winsorise": "0.05"}
    assert table_of(atlas, statistic=winsorised).guarantee().caveats == (*usual, wording.WINSORISED)
    refusing = table_of(atlas, infinite_influence="refuse").guarantee().caveats
    assert refusing == (wording.CHI, wording.ROUNDED, wording.REFUSED_INFINITE)


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"epsilon": "1e-15", "noise": "normal"}, GuaranteeError, "below 2\\^-40"),
        ({"grid": "1e-15"}, DomainError, "coarser `grid`"),
        (
            {"statistic": {"name": "variance", "of": "y"}, "variables": {"y": {"low": "0", "high": "1e8"}}},
            DomainError,
            "larger units",
        ),
        ({"search": {"grid": 10001}}, SpecError, "more than a million points"),
        ({"delta": "0.5"}, SpecError, "below 1/2"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_read(
    atlas: AtlasAgency, changes: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        atlas.open(**changes).plan()


@pytest.mark.parametrize("first", ["0", "1", "7"])
def test_a_list_of_sizes_does_not_contradict_itself(atlas: AtlasAgency, first: str) -> None:
    (atlas.folder / "sizes.csv").write_text(f"tract,people\n000,{first}\n000,900\n")
    with pytest.raises(DomainError, match="line 3 repeats a cell"):
        atlas.open(cell_size={"public": "sizes.csv", "column": "people", "provenance": "x"}, delta=None).plan()


def test_a_large_but_finite_sensitivity_is_heard(atlas: AtlasAgency) -> None:
    """Whatever the grid: 42 times less noise is what a reviewer got out of a fine one."""
    atlas.write(with_wild_cell(40))
    actual = [
        atlas.run(f"grid{len(grid)}", grid=grid)["mobility_chi"]["chi"][0].as_py() for grid in ("0.001", "0.0000001")
    ]
    assert actual[0] == pytest.approx(actual[1], rel=2e-3)
    assert actual[0] > 50


def test_one_record_cells(atlas: AtlasAgency) -> None:
    atlas.write(with_wild_cell(1))
    assert atlas.run(statistic={"name": "mean", "of": "kid_rank"}, variables={"kid_rank": UNIT_INTERVAL})
    assert "tract 299" in "".join(atlas.open().check().estimates[0].examples)
    mean = Mean(Variable("y", 0, 1))
    assert mean.local([np.array([0.3])], np.array([0, 1])).sensitivity[0] == pytest.approx(0.35)


def test_degrees_of_freedom_are_those_of_the_released_count() -> None:
    made = kernel(noise=noise(epsilon=LOUD), chi=np.array([5]), chi_error=np.array([1]))
    row = next(row for i in range(50) if abs((row := drawn(made, 6, 420, 300, f"few {i}"))["count"] - 6) > 2)
    scales = [np.array([np.sqrt(2) / float(LOUD) * steps(chi, row["size"]) / 1000 / np.sqrt(2)]) for chi in (5, 1)]
    arrays = [np.array([row[name]]) for name in ("estimate", "se_sampling")]
    expected = intervals(*arrays, *scales, np.array([max(row["count"] - 2, 1)]), "laplace")
    true = intervals(*arrays, *scales, np.array([4]), "laplace")
    assert abs(row["high95"] - expected.high[0]) <= 0.001 < abs(expected.high[0] - true.high[0])
