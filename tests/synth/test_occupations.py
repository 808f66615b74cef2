"""The invented requirements survey: samples hit the population they are drawn from, replicates their spread."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.synth.__main__ import main
from discreet.synth.occupational import occupations as module
from discreet.synth.occupational.files import OccupationFiles, write_occupations
from discreet.synth.occupational.occupations import STRATA, SurveyDesign
from discreet.synth.occupational.requirements import (
    GROUPS,
    ORS,
    PAPER,
    PAPER_ROWS,
    Requirement,
    hadamard,
    hashed,
    normal,
    plain_requirements,
    uniform,
)
from support.occupation_samples import SurveySample, occupations
from support.occupations import population

ROWS, DRAWS = 6_000, 100
TABLES = ("major_group", "education", "strength")
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def survey() -> SurveySample:
    return occupations(ROWS, 3)


@dataclass(frozen=True)
class Draws:
    """A table of many samples: estimates and their replicate variances, sample × cell, and the truth."""

    estimates: Floats
    variances: Floats
    truth: Floats


@pytest.fixture(scope="module")
def draws() -> dict[str, Draws]:
    """Samples of one population."""
    samples = [occupations(ROWS, 3, draw=draw) for draw in range(DRAWS)]
    return {
        name: Draws(
            np.array([sample.table([name]) for sample in samples]),
            np.array([sample.variances([name]) for sample in samples]),
            population(samples[0].design, [name]),
        )
        for name in TABLES
    }


# --- the design


@pytest.mark.parametrize("name", TABLES)
def test_weighted_totals_are_unbiased(draws: dict[str, Draws], name: str) -> None:
    of = draws[name]
    z = (of.estimates.mean(axis=0) - of.truth) / (of.estimates.std(axis=0, ddof=1) / np.sqrt(DRAWS))
    assert np.abs(z).max() < 3.5
    assert (z**2).mean() < 2.5
    assert of.estimates.mean() == pytest.approx(of.truth.mean(), rel=0.005)


@pytest.mark.parametrize("name", TABLES)
def test_replicate_variances_are_near_the_spread_of_samples(draws: dict[str, Draws], name: str) -> None:
    of = draws[name]
    ratio = of.variances.mean(axis=0).sum() / of.estimates.var(axis=0, ddof=1).sum()
    assert 0.9 < ratio < 1.4  # above 1: nothing is taken off for the share of the population that was sampled


def test_intervals_from_replicates_cover_the_population(draws: dict[str, Draws]) -> None:
    inside = [np.abs(of.estimates - of.truth) < 1.96 * np.sqrt(of.variances) for of in draws.values()]
    assert 0.92 < np.concatenate(inside, axis=1).mean() < 0.97


def test_a_sample_misses_the_population_by_a_sampling_error(draws: dict[str, Draws]) -> None:
    """The test above would be empty if every sample were the population."""
    assert all((of.estimates.std(axis=0) > 0.005 * of.truth).all() for of in draws.values())


def test_population_tables_add_up_and_need_no_sample(survey: SurveySample) -> None:
    design = survey.design
    both = population(design, ["major_group", "strength"])
    assert np.allclose(both.sum(axis=1), population(design, ["major_group"]), rtol=1e-12)
    assert np.allclose(both.sum(axis=0), population(design, ["strength"]), rtol=1e-12)
    detail = population(design, ["occupation"])
    assert np.allclose(np.bincount(design.listed.group, detail), both.sum(axis=1), rtol=1e-12)
    assert (detail > 0).all()


def test_every_stratum_is_in_the_frame_and_in_the_sample() -> None:
    for rows in (STRATA, PAPER_ROWS, ROWS):
        strata = SurveyDesign(rows).strata
        assert len(strata) == STRATA
        assert sum(stratum.rows for stratum in strata) == rows
        assert min(stratum.rows for stratum in strata) >= 1
        assert min(stratum.establishments for stratum in strata) >= 1
        assert all(stratum.quotes().sum() == stratum.rows for stratum in strata)
        assert all(stratum.quotes().min() >= 1 for stratum in strata)


# --- weights


def test_weights_are_positive_skewed_hundredths(survey: SurveySample) -> None:
    assert (survey.weight > 0).all()
    assert (survey.replicates > 0).all()
    for weights in (survey.weight, survey.replicates):
        assert np.abs(weights * 100 - np.rint(weights * 100)).max() < 1e-6
    assert survey.weight.mean() > 1.1 * np.median(survey.weight)
    assert (survey.weight != np.rint(survey.weight)).mean() > 0.9


def test_replicates_shake_whole_establishments_by_three_factors(survey: SurveySample) -> None:
    factor = survey.replicates / survey.weight
    known = np.array([1 - 2**-0.5, 1.0, 1 + 2**-0.5])
    nearest = np.abs(factor[..., None] - known).min(axis=-1)
    assert nearest.max() < 0.01 / survey.weight.min()
    assert set(np.abs(factor[..., None] - known).argmin(axis=-1).ravel().tolist()) == {0, 1, 2}


@pytest.mark.parametrize("rows", [STRATA, STRATA + 1, PAPER_ROWS, 500, ROWS])
def test_each_stratum_is_compared_within_itself(rows: int) -> None:
    design = SurveyDesign(rows)
    sizes = [stratum.selections for stratum in design.strata]
    stratum = np.repeat(np.arange(STRATA), sizes)
    after = design.next_selection
    assert sorted(after) == list(range(sum(sizes)))
    assert (after != np.arange(len(after))).all()  # a single selection joins its neighbour's circle
    if min(sizes) > 1:
        assert np.array_equal(stratum[after], stratum)
    else:
        assert np.abs(stratum[after] - stratum).max() <= 2


def test_an_unknown_variable_is_named(survey: SurveySample) -> None:
    with pytest.raises(ParameterError, match="no 'colour'"):
        survey.table(["strength", "colour"])


def test_variances_are_successive_differences_within_strata() -> None:
    """As many rows as selections: (4/R) Σ (θ_r − θ)² = ½ Σ (y_k − y_next)², y_k the total of a selection."""
    made = occupations(PAPER_ROWS, 3, replicates=160)
    after = made.design.next_selection
    assert len(after) < 160
    quotes = np.concatenate([stratum.quotes() for stratum in made.design.strata])
    selection = np.repeat(np.arange(len(after)), quotes)
    for code in range(ORS[3].levels):
        y = np.bincount(selection, made.weight * (made.codes[4] == code), len(after))
        expected = 0.5 * ((y - y[after]) ** 2).sum()
        assert made.variances(["strength"])[code] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("order", [2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160])
def test_hadamard_rows_are_orthogonal(order: int) -> None:
    signs = hadamard(order).astype(np.int64)
    assert np.array_equal(signs @ signs.T, order * np.eye(order))
    assert (signs[0] == 1).all()


@pytest.mark.parametrize("order", [0, 1, 3, 6, 28, 30, 36, 161, 320, True, 20.0])
def test_other_orders_are_refused(order: Any) -> None:
    with pytest.raises(ParameterError, match="replicates"):
        hadamard(order)


def test_more_replicates_shake_the_same_sample() -> None:
    few, many = occupations(300, 1), occupations(300, 1, replicates=160)
    assert np.array_equal(few.weight, many.weight)
    assert np.array_equal(few.codes, many.codes)
    assert many.replicates.shape == (160, 300)


# --- what is asked


def test_requirements_have_their_levels_and_go_together(survey: SurveySample) -> None:
    assert survey.codes.shape == (1 + len(ORS), ROWS)
    assert [one.levels for one in ORS] == [9, 5, 4, 5, 4, 3, 2, 2, 2]
    for codes, one in zip(survey.codes[1:], ORS, strict=True):
        assert set(codes.tolist()) == set(range(one.levels))
        share = survey.table([one.name]) / survey.weight.sum()
        assert np.abs(share - one.shares).max() < 0.1
    correlation = np.asarray(np.corrcoef(survey.codes))
    place = {name: number for number, name in enumerate(survey.design.names)}
    assert correlation[place["education"], place["experience"]] > 0.4
    assert correlation[place["education"], place["strength"]] < -0.4


def test_some_occupations_are_common_and_some_are_missed(survey: SurveySample) -> None:
    counts = survey.table(["occupation"], np.ones(ROWS))
    assert counts.sum() == ROWS
    assert counts.max() > 10 * np.median(counts)
    assert 0 < (counts == 0).sum() < 60
    assert (survey.table(["major_group"], np.ones(ROWS)) > 10).all()


def test_the_papers_test_data_002_section_4() -> None:
    made = occupations(PAPER_ROWS, requirements=PAPER)
    names = [one.name for one in PAPER]
    assert len(made) == 182
    assert made.design.shape(names) == (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)
    cube = made.table(names, np.ones(len(made)))
    assert cube.size == 17_280
    assert cube.sum() == 182
    assert all(
        (np.bincount(codes, minlength=one.levels) > 0).all() for codes, one in zip(made.codes[1:], PAPER, strict=True)
    )


def test_other_requirements_and_fewer_occupations() -> None:
    made = occupations(500, requirements=plain_requirements((2, 50)), occupations=22)
    assert made.design.shape(made.design.names) == (22, 2, 50)
    assert made.design.listed.group.tolist() == list(range(22))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": STRATA - 1}, "rows is 59"),
        ({"rows": 10**9}, "rows"),
        ({"rows": True}, "rows"),
        ({"seed": -1}, "seed"),
        ({"occupations": 21}, "occupations is 21"),
        ({"replicates": 28}, "order 28"),
        ({"requirements": (ORS[0], ORS[0])}, "name is taken"),
        ({"requirements": (Requirement("weight", "Weight", (1, 1)),)}, "name is taken"),
        ({"draw": -1}, "draw"),
    ],
)
def test_what_makes_no_survey_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        occupations(**({"rows": 300} | changes))


@pytest.mark.parametrize(
    ("shares", "skill"), [((1.0,), 0.0), ((1.0, 0.0), 0.0), ((1.0, 1.0), 1.0), (tuple([1.0] * 51), 0.0)]
)
def test_what_is_no_requirement_is_refused(shares: tuple[float, ...], skill: float) -> None:
    with pytest.raises(ParameterError):
        Requirement("x", "X", shares, skill=skill)


# --- drawing


def test_hashes_spread_evenly_and_normals_are_nearly_normal() -> None:
    words = hashed(7, np.arange(100_000), np.int64(-1))
    assert len(np.unique(words)) == 100_000
    assert np.abs(np.bincount((uniform(words) * 10).astype(int)) - 10_000).max() < 500
    z = normal(words)
    assert abs(z.mean()) < 0.02
    assert abs(z.std() - 1) < 0.02
    assert not np.array_equal(words, hashed(8, np.arange(100_000), np.int64(-1)))


def test_the_same_survey_every_time(survey: SurveySample, monkeypatch: pytest.MonkeyPatch) -> None:
    other, again = occupations(ROWS, 4), occupations(ROWS, 3, draw=1)
    monkeypatch.setattr(module, "BLOCK", 2_000)  # smaller blocks, same numbers
    same = occupations(ROWS, 3)
    for name in ("establishment", "codes", "weight", "replicates"):
        assert np.array_equal(getattr(survey, name), getattr(same, name))
        assert not np.array_equal(getattr(survey, name), getattr(other, name))
        assert not np.array_equal(getattr(survey, name), getattr(again, name))
    assert np.allclose(population(same.design, ["strength"]), population(again.design, ["strength"]), rtol=1e-12)


# --- files


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_files_hold_the_survey_and_complete_lists(survey: SurveySample, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    files = write_occupations(tmp_path, ROWS, 3, lambda done, of: seen.append((done, of)))
    assert seen[-1] == (ROWS, ROWS)
    written = pq.read_table(files.survey)
    replicates = [f"rep_{number}" for number in range(1, 21)]
    assert written.column_names == ["establishment", "quote", *survey.design.names, "weight", *replicates]
    assert np.array_equal(written["establishment"].to_numpy(), survey.establishment)
    assert np.array_equal(written["quote"].to_numpy(), np.arange(ROWS))
    assert np.array_equal(written["weight"].to_numpy(), survey.weight)
    assert np.array_equal(np.array([written[name].to_numpy() for name in replicates]), survey.replicates)
    lists = {"occupation": list(survey.design.listed.codes)} | {
        one.name: [row[one.name] for row in rows_of(tmp_path / "public" / f"{one.name}.csv")] for one in ORS
    }
    for name, codes in zip(survey.design.names, survey.codes, strict=True):
        assert np.array_equal(pc.index_in(written[name], pc.cast(lists[name], "string")).to_numpy(), codes)
    hierarchy = rows_of(files.occupations)
    assert [row["occupation"] for row in hierarchy] == lists["occupation"] == sorted(set(lists["occupation"]))
    assert len(hierarchy) == 600
    assert all(re.fullmatch(r"\d\d-\d{4}", row["occupation"]) for row in hierarchy)
    assert all(row["occupation"].startswith(row["major_group"]) for row in hierarchy)
    groups = [row["major_group"] for row in rows_of(files.major_groups)]
    assert groups == sorted({row["major_group"] for row in hierarchy}) == [group.code for group in GROUPS]
    assert [row["requirement"] for row in rows_of(files.requirements)] == [one.name for one in ORS]


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    once, again = (write_occupations(tmp_path / name, 400, 5) for name in ("once", "again"))
    for path, same in zip(listed(once), listed(again), strict=True):
        assert path.read_bytes() == same.read_bytes()


def listed(files: OccupationFiles) -> list[Path]:
    *single, lists = vars(files).values()
    return [*single, *lists]


def test_the_command_writes_the_papers_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = ["occupations", "--rows", "182", "--paper", "--replicates", "4", "--quiet", "--out", str(tmp_path)]
    assert main(order) == 0
    names = capsys.readouterr().out.splitlines()
    assert names[0] == str(tmp_path / "survey.parquet")
    written = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert (set(names), len(names)) == (written, 1 + 3 + 10)
    assert pq.read_table(tmp_path / "survey.parquet").shape == (182, 2 + 1 + 10 + 1 + 4)
    assert main([*order[:2], "59", *order[3:]]) == 2
    assert "rows is 59" in capsys.readouterr().err


def test_progress_is_one_line_where_nobody_can_write_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 100)
    assert main(["occupations", "--rows", "500", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "500 of 500 records\n"
