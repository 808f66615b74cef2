"""`discreet reproduce sensitivity`: its numbers against loops, its verdicts against altered numbers, its files."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.errors import ParameterError
from discreet.methods.sensitivity.utility.weighted import Fit
from discreet.synth.atlas import BLACK, GIRLS, WHITE, Atlas, atlas
from discreet_studies import reproduce
from discreet_studies.claims import Claim
from discreet_studies.sensitivity.births import BirthSlopes
from discreet_studies.sensitivity.cells import (
    EPSILON,
    LEAST,
    PLAIN,
    WINSORISED,
    AtlasCells,
    cell_statistics,
    chi_of,
    observations,
    omega,
    one_group,
    tracts_for,
)
from discreet_studies.sensitivity.formal import EPSILONS, MOS, ONE, SIZES, best_formal, least_observed, rmse
from discreet_studies.sensitivity.omissions import bounded, growth
from discreet_studies.sensitivity.study import SensitivityStudy, paper, study
from discreet_studies.sensitivity.subgroups import CornerShortfall, corners, subgroups
from discreet_studies.sensitivity.table1 import BIRTHS, JAIL, RANK, ROWS, Decomposition, VarianceShares, decompose_cells
from discreet_studies.sensitivity.verdicts import CLAIMS

F = Fraction
CHILDREN, SEED = 300_000, 7


def ignore(step: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def made() -> SensitivityStudy:
    return study(CHILDREN, SEED, ignore)


@pytest.fixture(scope="module")
def small() -> Atlas:
    return atlas(40_000, tracts_for(40_000), SEED)


@pytest.fixture(scope="module")
def girls(small: Atlas) -> AtlasCells:
    return cell_statistics(observations(small, BIRTHS, BLACK, GIRLS, by_group=False), small, PLAIN)


def test_cells_agree_with_a_loop(small: Atlas, girls: AtlasCells) -> None:
    """Least squares by NumPy, every removal and corner by refitting; the exact maximum is never below them."""
    expected = []
    for tract in range(len(small.tracts)):
        mine = (small.tract == tract) & (small.race == BLACK) & (small.gender == GIRLS)
        if mine.sum() >= LEAST:
            expected.append((tract, small.parent_rank[mine], small.teen_birth[mine].astype(float)))
    assert len(expected) > 10
    assert girls.tract.tolist() == [tract for tract, _, _ in expected]
    for cell, (_, x, y) in enumerate(expected):

        def height(x: np.ndarray, y: np.ndarray) -> float:
            return float(np.polyval(np.polyfit(x, y, 1), 0.25))

        theta = height(x, y)
        tried = [height(np.delete(x, i), np.delete(y, i)) for i in range(len(x))]
        tried += [height(np.append(x, a), np.append(y, b)) for a in (0, 1) for b in (0, 1)]
        assert girls.theta[cell] == pytest.approx(theta, abs=1e-10)
        assert girls.sensitivity[cell] >= max(abs(t - theta) for t in tried) - 1e-10
        assert (girls.n[cell], girls.low[cell]) == (len(x), (x < 0.5).sum())


def test_one_group_is_a_subset_of_the_atlas(small: Atlas) -> None:
    mine = (small.race == BLACK) & (small.gender == GIRLS)
    part = one_group(40_000, SEED, BLACK, GIRLS)
    for name in ("tract", "parent_rank", "kid_rank", "teen_birth"):
        assert np.array_equal(getattr(part, name), getattr(small, name)[mine])


def test_observations_are_sorted_and_cells_can_be_selected(small: Atlas) -> None:
    actual = observations(small, RANK, by_group=True, least=5)
    assert actual.n.min() >= 5
    assert actual.n.sum() == actual.starts[-1] == len(actual.x)
    for cell in range(len(actual.n)):
        assert (np.diff(actual.cell(cell)[0]) >= 0).all()
    choices = actual.only(np.array([3, 1]))
    for place, cell in enumerate((3, 1)):
        for ours, theirs in zip(choices.cell(place), actual.cell(cell), strict=True):
            assert np.array_equal(ours, theirs)
    assert choices.tract.tolist() == actual.tract[[3, 1]].tolist()


def test_chi_is_the_maximum_of_its_pool_without_infinite_sensitivities() -> None:
    n, local = np.array([10, 20, 30, 40]), np.array([0.5, 0.1, np.inf, 0.2])
    assert chi_of(n, local, np.array([1, 1, 3, 3])).tolist() == [5, 5, 8, 8]


def test_noise_is_normal_of_the_papers_spread(girls: AtlasCells) -> None:
    drawn = (girls.noisy("a test") - girls.theta) * EPSILON.numerator * girls.n / (np.sqrt(2) * girls.chi)
    assert np.allclose(drawn, omega(len(girls.n), "a test"))
    many = omega(20_000, "many")
    assert stats.kstest(many, "norm").pvalue > 1e-6
    for factor in (0.7, 1.3):
        assert stats.kstest(factor * many, "norm").pvalue < 1e-20


def test_shares_follow_the_notes_of_table_1(small: Atlas) -> None:
    """Total variance, mean squared error and mean noise variance, all weighted, over more than fifty children."""
    cells = cell_statistics(observations(small, RANK, WHITE, None, by_group=False), small, WINSORISED)
    actual = decompose_cells(cells, "shares")
    assert actual is not None
    kept = cells.n > 50
    w, noisy = cells.low[kept], cells.noisy("shares")[kept]
    total = (w * (noisy - (w * noisy).sum() / w.sum()) ** 2).sum() / w.sum()
    sampling = (w * cells.error[kept] ** 2).sum() / w.sum() / total
    privacy = (w * 2 * (cells.chi[kept] / (8 * cells.n[kept])) ** 2).sum() / w.sum() / total
    assert (actual.shares.sampling, actual.shares.privacy) == pytest.approx((sampling, privacy))
    assert actual.shares.signal == pytest.approx(1 - sampling - privacy)
    assert actual.cells == kept.sum()
    assert actual.reliability_before > actual.shares.signal


def test_one_printed_row_does_not_add_up() -> None:
    wrong = [row for row in ROWS if abs(row.sum - 100) > 0.02]
    assert [(row.outcome, row.label, round(row.sum, 2)) for row in wrong] == [(JAIL, "Black boys", 98.92)]


def test_every_row_is_computed(made: SensitivityStudy) -> None:
    assert len(made.table1) == 14
    for row in made.table1:
        assert row.plain is not None
        assert (row.winsorised is None) == row.printed.binary
        assert (row.flat is None) != row.printed.binary
    assert made.table1[3].flat is not None
    assert made.table1[3].flat > 0.9  # White boys' incarceration would vanish


def test_corners_never_exceed_the_exact_maximum(small: Atlas) -> None:
    actual = subgroups(small)
    for exact, at in ((actual.plain, actual.plain_corners), (actual.winsorised, actual.winsorised_corners)):
        assert (exact >= at * (1 - 1e-9)).all()
    for row in corners(actual):
        assert 0 <= row.short <= 1 <= row.median <= row.largest


def test_numbers_without_data(made: SensitivityStudy) -> None:
    """The counterexample and the exact privacy loss of Normal noise."""
    assert made.counterexample.corners == pytest.approx(0.982, abs=5e-4)
    assert made.counterexample.exact == pytest.approx(2.990, abs=5e-4)
    assert made.counterexample.point == pytest.approx((0.462, 1), abs=5e-4)
    one, two, three = made.nominal
    assert (round(float(one.delta), 3), round(float(one.epsilon), 1)) == (0.888, 42.2)
    assert one.epsilon < two.epsilon < three.epsilon
    assert three.nominal == 24
    sizes = [plain for _, plain, _ in growth()]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 50 * sizes[0]


def test_a_lower_bound_costs_more_in_smaller_cells(made: SensitivityStudy) -> None:
    for epsilon in {row.epsilon for row in made.bounded}:
        costs = [row.variance for row in made.bounded if row.epsilon == epsilon]
        assert costs == sorted(costs, reverse=True)
        assert min(costs) > 1
    at_one = bounded(np.full(20_000, 1000), [F(1)])[0]
    q = np.exp(-1.0)
    assert at_one.over == pytest.approx(q / (1 + q), abs=0.02)  # P(discrete Laplace > 0): DECISIONS' 27%
    assert at_one.variance == pytest.approx((1000 / (1000 - at_one.margin)) ** 2, rel=1e-3)


def test_a_shared_draw_reveals_the_estimate(made: SensitivityStudy) -> None:
    by = {(row.epsilon, row.draws): row for row in made.recovered}
    shared, apart = by[EPSILON, "one for both"], by[EPSILON, "independent"]
    assert shared.estimates == shared.counts > 0.98
    assert shared.error < 1e-12
    assert apart.estimates == 0
    assert apart.error > apart.before  # subtracting another draw only adds noise


def test_methods_are_compared_at_every_size_and_epsilon(made: SensitivityStudy) -> None:
    for size in SIZES:
        errors = [rmse(made.costs, MOS, size, epsilon) or 0.0 for epsilon in EPSILONS]
        assert all(errors)
        assert errors == sorted(errors, reverse=True)
        best = best_formal(made.costs, size, EPSILON)
        assert best is not None
        assert best.row.formal
    assert {c.row.formal for c in made.costs if c.row.method in (MOS, ONE)} == {False}
    both = [rmse(made.costs, name, 50, EPSILON) or 0.0 for name in (MOS, ONE)]
    assert least_observed(made.costs, 50, EPSILON) == min(both) > 0
    assert rmse(made.costs, "no such method", 50, EPSILON) is None


def test_choosing_epsilon_meets_its_targets(made: SensitivityStudy) -> None:
    for one in made.epsilon_choices:
        wrong = [point.false_top for point in one.points]
        assert wrong[0] > wrong[-1]
        actual = [epsilon for epsilon in one.epsilons if epsilon is not None]
        assert actual == sorted(actual)


def verdict(study: SensitivityStudy, said: str) -> str:
    mine = [c.verdict for c in CLAIMS.of(study) if all(word in c.claim for word in said.split(" … "))]
    assert len(mine) == 1
    return mine[0]


def test_verdicts_follow_from_numbers(made: SensitivityStudy) -> None:
    """Each claim with numbers that confirm it, and with numbers that do not."""

    def slopes(infused: float, exact: float, suppressed: float) -> SensitivityStudy:
        def fit(slope: float) -> Fit:
            return Fit(slope, 0.3, 0.02, 100)

        return replace(made, slopes=(BirthSlopes(1, fit(infused), fit(exact), fit(suppressed)),) * 3)

    def short(share: float) -> SensitivityStudy:
        row = CornerShortfall("plain", "20–49", 100, 0, share, 1.1, 1.2)
        return replace(made, corners=(row, replace(row, estimator="winsorised")))

    def chis(**changes: float) -> SensitivityStudy:
        every = {name: np.full(len(made.chis.pool), 2.0) for name in ("plain", "plain_corners")}
        every |= {name: np.full(len(made.chis.pool), 1.0) for name in ("winsorised", "winsorised_corners")}
        every |= {name: np.full(len(made.chis.pool), value) for name, value in changes.items()}
        return replace(made, chis=replace(made.chis, **every))

    def envelope(rate: float, chi: float) -> SensitivityStudy:
        n = np.arange(20, 300)
        first = replace(made.envelopes[0], n=n, sensitivity=np.exp(-rate * np.log(n)), chi=chi)
        return replace(made, envelopes=(first, made.envelopes[1]))

    def privacy(share: float) -> SensitivityStudy:
        part = Decomposition(100, 1.0, VarianceShares(0.8 - share, 0.2, share))
        return replace(made, table1=tuple(replace(row, plain=part, winsorised=part) for row in made.table1))

    for start, good, bad in (
        *((f"Corners typically … {end}", short(0.04), short(0.06)) for end in ("plain", "winsorised")),
        ("Corners give χ", chis(), chis(plain_corners=1.9)),
        ("Sensitivities fall", envelope(1.0, 1.0), envelope(0.5, 20.0)),
        ("The envelope", envelope(1.0, 1.5), envelope(1.0, 3.0)),
        ("Winsorising", chis(), chis(winsorised=1.9, winsorised_corners=1.9)),
        ("Noise does not bias", slopes(0.14, 0.139, 0.0), slopes(0.14, 0.1, 0.0)),
        ("Suppressing", slopes(0.14, 0.14, 0.01), slopes(0.14, 0.14, 0.12)),
        ("In every row", privacy(0.1), privacy(0.3)),
        ("The reliability", privacy(0.01), privacy(0.1)),
    ):
        assert verdict(good, start) == "confirmed", start
        assert verdict(bad, start) in ("corrected", "not confirmed"), start
    assert verdict(slopes(0.01, 0.01, 0.0), "Suppressing") == "not tested"  # nothing there to vanish
    assert verdict(replace(made, costs=()), "Formal privacy") == "not tested"
    assert verdict(replace(made, recovered=()), "Counts beside") == "not tested"
    assert verdict(made, "Apart from χ") == "corrected"
    assert verdict(made, "Counts beside") == "corrected"
    assert Claim("", "", "", None).verdict == "not tested"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_files_are_written(made: SensitivityStudy, tmp_path: Path) -> None:
    paths = paper().write(made, tmp_path, ignore)
    assert paths[0].name == "report.md"
    names = {str(path.relative_to(tmp_path)) for path in paths}
    pictures = {"figure-1", "figure-2", "figure-3", "appendix-figure-1", "appendix-figure-2", "guarantee-costs"}
    assert {f"{name}.svg" for name in pictures | {"choosing-epsilon-1", "choosing-epsilon-2"}} <= names
    assert {f"data/{name}.csv" for name in pictures} <= names
    tables = {"table-1", "verdicts", "figure-3-slopes", "corners", "normal-noise", "one-draw", "guarantees", "chi"}
    assert {f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md")} <= names
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for said in (
        "300,000 synthetic children (seed 7)",
        "1,050 tracts",
        "seeds 7 to 11",
        "SIMULATION",
        "98.92",
        "2.990",
    ):
        assert said in text
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 8
    assert "http" not in page.replace("http://www.w3.org", "")
    actual = rows_of(tmp_path / "tables/table-1.csv")
    assert [row["paper: signal"] for row in actual[:4]] == ["71.00", "70.58", "56.39", "33.64"]
    for row in actual:
        assert sum(float(row[f"plain: {part}"]) for part in ("signal", "sampling", "privacy")) == pytest.approx(
            100, abs=0.02
        )
    cell = rows_of(tmp_path / "data/figure-1.csv")
    assert [row["what"] for row in cell].count("child") == LEAST
    below = rows_of(tmp_path / "data/figure-2.csv")
    assert all(float(row["sensitivity"]) <= float(row["envelope"]) * (1 + 1e-12) for row in below)
    assert {row["panel"] for row in rows_of(tmp_path / "data/figure-3.csv")} == {"A", "B"}
    assert len(rows_of(tmp_path / "data/appendix-figure-1.csv")) == 60
    shown = {row["claim"]: row["verdict"] for row in rows_of(tmp_path / "tables/verdicts.csv")}
    assert shown == {claim.claim: claim.verdict for claim in CLAIMS.of(made)}


def test_a_paper_is_reproduced_by_name(tmp_path: Path) -> None:
    steps = []
    out = tmp_path / "new"
    paths = reproduce("sensitivity", out, 100_000, 3, lambda step, done, total: steps.append(step))
    assert "100,000 synthetic children (seed 3)" in paths[0].read_text(encoding="utf-8")
    assert dict.fromkeys(steps).keys() >= {"atlas", "table 1", "seeds", "figures", "report"}
    with pytest.raises(ParameterError, match="too few children"):
        reproduce("sensitivity", tmp_path / "other", 50_000, 3, ignore)
