"""`discreet reproduce hypercube`: its numbers against loops, its verdicts against altered numbers, its files."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from typer.testing import CliRunner

from discreet.errors import ParameterError
from discreet.post.cubes.margins import Floats
from discreet_studies import reproduce
from discreet_studies.cli import app
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.cases import counts, others, requirements_like
from discreet_studies.hypercube.figures import left_rows
from discreet_studies.hypercube.perturbation import EVALUATED, ExactLoss
from discreet_studies.hypercube.records import WeightedSum, average, table3
from discreet_studies.hypercube.simulation import (
    CELLS,
    CONTROL,
    MARGINS,
    SHARE,
    TOLERANCES,
    CyclesNeeded,
    MeanEstimate,
    PooledTables,
    RakedRuns,
    expected,
    noise_runs,
    rake_only,
    variances_after,
    variances_before,
)
from discreet_studies.hypercube.study import HypercubeStudy, paper, study
from discreet_studies.hypercube.tables import tables
from discreet_studies.hypercube.tolerance_search import at, at_every_tolerance, at_paper_share, nearest
from discreet_studies.hypercube.verdicts import CLAIMS
from discreet_studies.texts import number, table

F = Fraction
RUNS, SEED = 60, 7


def ignore(step: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def made() -> HypercubeStudy:
    return study(RUNS, SEED, ignore)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (2, 2)])
def test_pooled_variances_agree_with_a_loop_over_tables(shape: tuple[int, ...]) -> None:
    noise = np.random.default_rng(3).normal(size=shape) + 0.3
    pooled = PooledTables(shape)
    for dimension in range(1, len(shape) + 1):
        tables = [
            noise.sum(axis=tuple(place for place in range(len(shape)) if place not in axes)).reshape(-1)
            for axes in combinations(range(len(shape)), dimension)
        ]
        every = np.concatenate(tables)
        assert pooled.cells[dimension] == len(every)
        assert pooled.variances(noise)[dimension - 1] == pytest.approx(every.var(ddof=1), rel=1e-12)


def test_the_extended_cube_contains_all_tables() -> None:
    noise = np.arange(6.0).reshape(2, 3)
    whole = PooledTables((2, 3)).all_tables(noise).reshape(3, 4)
    assert whole.tolist() == [[0, 1, 2, 3], [3, 4, 5, 12], [3, 5, 7, 15]]


def test_the_attack_recovers_exact_values_for_any_average_weight() -> None:
    for one in table3():
        for average_weight in (F(1), F(7, 3), F(100), average()):
            seen = one.total.at(average_weight) - average_weight * one.count  # of published numbers
            assert seen == one.record.total - average_weight * one.record.count
            assert one.residue(average_weight) == one.record.total % average_weight
    assert average() == F(900, 32)
    assert [one.attack_result == WeightedSum(0, 0) for one in table3()] == [one.record.count == 0 for one in table3()]
    assert str(WeightedSum(0, -2)) == "−2w̄"
    assert str(WeightedSum(3, 0)) == "3"


def test_cases_have_the_number_and_shape_of_the_paper(made: HypercubeStudy) -> None:
    cube = made.simulated.cube
    assert cube.sum() == printed.CASES
    assert len(cube) == CELLS == 17_280
    assert np.array_equal(cube, counts(SEED))
    assert all(margin.add_up(cube).min() >= made.simulated.smallest > 0 for margin in MARGINS)
    smallest = {one.label: one.smallest for one in made.cases}
    assert smallest["levels equally common"] > smallest["each level 1/2 as common"]
    assert smallest["each level 1/2 as common"] > smallest["each level 1/4 as common"]
    assert len(made.cases) == 1 + len(others(SEED))
    assert {one.skill for one in requirements_like(0.5, True)} == {0.0}


def test_noise_has_its_distribution_and_differs_between_runs() -> None:
    first, second = noise_runs(2, SEED)
    assert set(np.unique(first)) == {-1, 0, 1}
    assert not np.array_equal(first, second)
    assert np.array_equal(first, next(noise_runs(1, SEED)))
    assert not np.array_equal(first, next(noise_runs(1, SEED + 1)))
    drawn = np.concatenate(list(noise_runs(30, SEED)))
    error = np.sqrt(EVALUATED.variance() / len(drawn))
    assert abs(np.mean(drawn**2) - EVALUATED.variance()) < 4 * error
    assert abs(np.mean(drawn**2) - 0.235) > 100 * error


def raked_by_hand(seen: Floats, cube: Floats) -> Floats:
    values = seen.reshape(printed.SHAPE).copy()
    for _ in range(printed.CYCLES):
        for place in range(10):
            other = tuple(axis for axis in range(10) if axis != place)
            shape = [-1 if axis == place else 1 for axis in range(10)]
            values *= (cube.reshape(printed.SHAPE).sum(axis=other) / values.sum(axis=other)).reshape(shape)
    return values.reshape(-1)


def test_raked_runs_agree_with_a_loop(made: HypercubeStudy) -> None:
    cube, raked = made.simulated.cube, made.simulated.raked
    pooled = PooledTables(printed.SHAPE)
    checked = 0
    for run, noise in enumerate(noise_runs(10, SEED)):
        assert raked.before[run] == pytest.approx(pooled.variances(noise), rel=1e-10)
        if raked.gap[run] > 0.01:
            continue  # a run that diverges magnifies rounding
        values = raked_by_hand(cube + noise, cube)
        assert raked.after[run] == pytest.approx(pooled.variances(values - cube), rel=1e-6, abs=1e-9)
        gaps = [np.abs(m.add_up(values) - m.add_up(cube)) / np.maximum(1, m.add_up(cube)) for m in MARGINS]
        assert raked.gap[run] == pytest.approx(max(gap.max() for gap in gaps), rel=1e-3, abs=1e-9)
        checked += 1
    assert checked >= 3
    again = rake_only(cube, 10, SEED)
    assert np.array_equal(again.gap, raked.gap[:10])


def test_means_over_runs_agree_with_closed_forms(made: HypercubeStudy) -> None:
    for values, closed, wrong in (
        (made.simulated.raked.before, variances_before(made.exact), variances_after(made.exact)),
        (made.simulated.least_squares, variances_after(made.exact), variances_before(made.exact)),
        (made.simulated.noisy, variances_after(made.noisy), variances_before(made.noisy)),
    ):
        actual = MeanEstimate.of(values)
        assert np.abs(actual.z(closed)).max() < 4
        assert np.abs(actual.z(wrong)[1:3]).max() > 8
    assert made.simulated.least_squares[:, 0].max() < 1e-12


def test_least_squares_is_the_projection_in_one_run(made: HypercubeStudy) -> None:
    """Exact one-way controls take away grand mean and main effects: e − Σ(ē_i − ē) − ē."""
    noise = next(noise_runs(1, SEED)).reshape(printed.SHAPE)
    left = noise - noise.mean()
    for place in range(10):
        others_ = tuple(axis for axis in range(10) if axis != place)
        left = left - (noise.mean(axis=others_, keepdims=True) - noise.mean())
    assert made.simulated.least_squares[0] == pytest.approx(
        PooledTables(printed.SHAPE).variances(left), rel=1e-8, abs=1e-15
    )


def test_perturbed_controls_leave_their_own_noise(made: HypercubeStudy) -> None:
    """One-way tables: more than with exact controls, less than the controls or the cube alone."""
    one = made.noisy[0]
    assert 0 < one.after < CONTROL.variance() < one.before
    assert (variances_after(made.noisy)[1:] > variances_after(made.exact)[1:]).all()
    assert expected(0.0)[1].spread_after == pytest.approx(made.exact[1].spread_after)


def raked_like(gaps: list[float], before: float, after: float, least: float = 1.0) -> RakedRuns:
    shape = (len(gaps), 10)
    return RakedRuns(np.full(shape, before), np.full(shape, after), np.array(gaps), np.full(len(gaps), least))


def test_tolerances_select_runs() -> None:
    gaps = [10.0**-power for power in range(10)]
    raked = raked_like(gaps, 2.0, 1.0)
    assert [row.converged for row in at_every_tolerance(raked)] == [4, 5, 6, 7, 8, 9, 9]
    assert raked.paper_share_tolerance == 1e-8  # the second of ten: 22.4%, rounded
    assert at_paper_share(raked).converged == 2
    assert at_paper_share(raked).left == 0.5
    assert at_paper_share(raked).distance is None  # too few for an average
    assert at(raked, 0.0).converged == 0
    assert np.isnan(at(raked, 0.0).before.mean).all()
    assert nearest(raked_like([1.0], 1.0, 1.0)) is None
    assert raked_like([1.0], 1.0, 1.0, 0.0).blocked.all()
    assert not raked.blocked.any()


def test_published_variances_have_distance_zero_from_themselves() -> None:
    before, after = (np.tile(np.array(column, float), (10, 1)) for column in (printed.WITHOUT, printed.WITH))
    raked = RakedRuns(before, after, np.zeros(10), np.ones(10))
    best = nearest(raked)
    assert best is not None
    assert best.distance == pytest.approx(0, abs=1e-12)
    assert replace(best, before=MeanEstimate(2 * best.before.mean, best.before.error)).distance == pytest.approx(
        np.log(2) * np.sqrt(5 / 9)
    )


def test_convergence_share_grows_with_the_tolerance(made: HypercubeStudy) -> None:
    for one in made.cases:
        shares = [one.raked.share(tolerance) for tolerance in TOLERANCES]
        assert shares == sorted(shares)
        assert abs(one.raked.share(one.raked.paper_share_tolerance) - SHARE) <= 1 / one.raked.runs
    by = {one.label: one.raked.share(0.01) for one in made.cases}
    assert by["levels equally common"] > by["each level 1/2 as common"] > by["each level 1/4 as common"]
    steep = next(one.raked for one in made.cases if one.label == "each level 1/4 as common")
    assert steep.blocked.any()
    assert not (steep.blocked & steep.converged(0.5)).any()


def test_clipping_reduces_noise_and_always_converges(made: HypercubeStudy) -> None:
    cut = made.simulated.clipped
    assert cut.share(1e-3) == 1
    assert (cut.before.mean(axis=0)[2:] < 0.75 * made.simulated.raked.before.mean(axis=0)[2:]).all()


def verdict(study: HypercubeStudy, start: str) -> str:
    mine = [claim.verdict for claim in CLAIMS.of(study) if claim.claim.startswith(start)]
    assert len(mine) == 1, start
    return mine[0]


def test_verdicts_follow_from_numbers(made: HypercubeStudy) -> None:
    """Each claim with numbers that confirm it, and with numbers that do not."""

    def raked(before: list[float], after: list[float]) -> HypercubeStudy:
        shape = (50, 1)
        wiggle = 1 + 0.2 * np.sin(np.arange(50))[:, None]  # a spread, so that there is a standard error
        mine = RakedRuns(
            np.tile(np.array(before), shape) * wiggle, np.tile(np.array(after), shape), np.zeros(50), np.ones(50)
        )
        sim = replace(made.simulated, raked=mine, least_squares=np.tile(variances_after(made.exact), shape))
        return replace(made, simulated=sim)

    full, best = variances_before(made.exact).tolist(), variances_after(made.exact).tolist()
    grown = [1.2 * value for value in full]

    def chance(change: float) -> HypercubeStudy:
        return replace(made, chance=replace(made.chance, change=arb(change), variance=change))

    def entry(factor: float) -> HypercubeStudy:
        rows = (made.table2[0], replace(made.table2[1], exact=made.table2[1].exact * factor), *made.table2[2:])
        return replace(made, table2=rows)

    def loss(actual: float) -> HypercubeStudy:
        return replace(made, losses=(ExactLoss("", F(2), arb(actual), "", arb(actual)), *made.losses[1:]))

    def clipped(values: list[float]) -> HypercubeStudy:
        mine = replace(made.simulated.clipped, after=np.tile(np.array(values), (RUNS, 1)))
        return replace(made, simulated=replace(made.simulated, clipped=mine))

    other = replace(made.records[0], record=replace(made.records[0].record, total=1))
    for start, good, bad in (
        ("Table 2", made, entry(1.1)),
        ("A count goes", entry(0.5), made),
        ("δ is", made, loss(2e-6)),
        ("At ε = 7", chance(0.235), made),
        ("and the noise", made, chance(0.235)),
        ("The same noise", made, chance(0.235)),
        (
            "Raking that",
            replace(made, cycles_needed=CyclesNeeded(np.array([5, 50]))),
            replace(made, cycles_needed=CyclesNeeded(np.array([5, 0]))),
        ),
        ("Raking reduces", raked(full, best), raked(full, full)),
        ("The reduction of noise", raked(full, best), raked(full, grown)),
        ("Noise in tables of five", raked(full, full), raked(full, grown)),
        ("Negative cells", made, clipped([float(value) for value in printed.WITH])),
        ("Raking leaves", raked(full, best), raked(full, full)),
    ):
        assert verdict(good, start) == "confirmed", start
        assert verdict(bad, start) in ("corrected", "not confirmed"), start
    wide = replace(made.simulated.raked, before=made.simulated.raked.before * np.linspace(0, 20, RUNS)[:, None])
    unsure = replace(made, simulated=replace(made.simulated, raked=wide))
    assert verdict(unsure, "Runs that converge") == "confirmed"  # so wide a spread tells nothing apart
    assert verdict(made, "Runs that converge") == "not confirmed"
    assert verdict(made, "Noise of the count") == "corrected"
    assert other.attack_result == other.truth  # whatever the total


def test_what_li_krenzke_2020_do_not_claim_is_marked(made: HypercubeStudy) -> None:
    actual = {claim.claim: claim for claim in CLAIMS.of(made)}
    for start in ("Runs that converge", "Negative cells", "Raking leaves"):
        assert any(claim.startswith(start) and "(our" in claim for claim in actual), start
    kept = next(claim for name, claim in actual.items() if name.startswith("Negative cells"))
    assert "suggests that they were kept" in kept.ours
    assert kept.paper == ", ".join(printed.WITH[1:4])
    assert "100% of runs converge" in kept.ours


def test_least_squares_is_reported_for_the_same_runs_as_raking(made: HypercubeStudy) -> None:
    sim, row = made.simulated, at_paper_share(made.simulated.raked)
    kept = np.argsort(sim.raked.gap)[: row.converged]
    same = sim.least_squares_where(row.tolerance).mean
    assert same == pytest.approx(sim.least_squares[kept].mean(axis=0))
    gains = next(claim.ours for claim in CLAIMS.of(made) if claim.claim.startswith("The reduction of noise"))
    assert gains.split(" raked, ")[1].startswith(f"{1 - same[1] / row.before.mean[1]:.1%},")
    shown = table("hypercube", "table-4", tables(made)["table-4"])
    column = shown.columns.index("least squares, the same runs: with")
    assert [line[column] for line in shown.rows] == [number(value) for value in same]
    assert shown.rows[1][column + 1] == f"{1 - same[1] / row.before.mean[1]:.1%}"
    left = {(line["series"], line["dimension"]): line["left"] for line in left_rows(made)}
    assert left["least squares, the same runs", 2] == pytest.approx(same[1] / row.before.mean[1])
    assert left["raked, converged runs", 10] == pytest.approx(row.after.mean[9] / row.before.mean[9])
    assert left["paper, with", 2] == pytest.approx(1.684 / 3.255)
    assert ("paper, with", 6) not in left  # two digits are no ratio


def test_numbers_are_formatted_for_readers() -> None:
    assert [number(v) for v in (7.4898, 0.00182, 0.0, 1e-9, 12345.6, 3e9, float("nan"))] == [
        "7.490", "0.00182", "0", "0", "12,345.600", "3.0e+09", "–",
    ]  # fmt: skip


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_files_are_written(made: HypercubeStudy, tmp_path: Path) -> None:
    paths = paper().write(made, tmp_path, ignore)
    assert paths[0].name == "report.md"
    names = {str(path.relative_to(tmp_path)) for path in paths}
    pictures = ("variance-by-dimension", "variance-left", "convergence")
    assert {f"{name}.svg" for name in pictures} | {f"data/{name}.csv" for name in pictures} <= names
    tables = {"table-1", "table-2", "table-3", "table-4", "attack", "delta", "noise-of-the-evaluation", "unconditional"}
    tables |= {"tolerances", "cases", "cycles", "clipping", "controls", "verdicts"}
    assert {f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md")} <= names
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for said in ("SIMULATION", "182 synthetic quotes (seed 7)", "17,280 cells", f"{RUNS} runs", "2p − p²", "22.4%"):
        assert said in text
    assert "nan" not in text
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    share = f"{round(SHARE * RUNS) / RUNS:.1%}"
    assert share != f"{SHARE:.1%}"
    assert f"after ten cycles. {share} of runs do at" in text
    assert "The numbers suggest that raking kept negative cells" in text
    lines = (tmp_path / "variance-by-dimension.svg").read_text(encoding="utf-8")
    widths = set(re.findall(r'stroke-width="([\d.]+)"', lines))
    assert {"7", "3"} <= widths  # lines that coincide are seen one on the other
    assert "stroke-dasharray" in lines
    assert "http" not in page.replace("http://www.w3.org", "")
    actual = rows_of(tmp_path / "tables/table-4.csv")
    assert [row["paper: without"] for row in actual] == list(printed.WITHOUT)
    assert [row["all runs: without, closed form"] for row in actual[:3]] == ["7.490", "3.552", "1.422"]
    assert [row["all runs: least squares, closed form"] for row in actual[:3]] == ["0", "1.487", "0.979"]
    assert {row["every digit"] for row in rows_of(tmp_path / "tables/table-2.csv")} == {"yes"}
    assert {row["equal"] for row in rows_of(tmp_path / "tables/delta.csv")} == {"yes"}
    for row in rows_of(tmp_path / "tables/attack.csv"):
        assert row["total − w̄·count"] == row["W − w̄·n"]
    drawn = rows_of(tmp_path / "data/variance-by-dimension.csv")
    assert all(float(row["variance"]) > 0 for row in drawn)
    assert len({row["series"] for row in drawn}) == 5
    assert len({row["cases"] for row in rows_of(tmp_path / "data/convergence.csv")}) == len(made.cases)


def test_a_paper_is_reproduced_by_name(tmp_path: Path) -> None:
    steps: list[str] = []
    out = tmp_path / "new"
    paths = reproduce("hypercube", out, 20, 3, lambda step, done, total: steps.append(step))
    assert "182 synthetic quotes (seed 3)" in paths[0].read_text(encoding="utf-8")
    assert list(dict.fromkeys(steps)) == ["runs", "other cases", "figures", "report"]
    with pytest.raises(ParameterError, match="too few runs"):
        reproduce("hypercube", tmp_path / "other", 19, 3, ignore)


def test_the_command_checks_the_number_of_runs(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["reproduce", "hypercube", "--out", str(tmp_path / "a"), "--runs", "19"])
    assert refused.exit_code == 2
    assert not (tmp_path / "a").exists()


def test_margins_are_the_ten_one_way_tables() -> None:
    assert [margin.sizes for margin in MARGINS] == [(size,) for size in printed.SHAPE]
    assert all(margin.ungrouped for margin in MARGINS)
