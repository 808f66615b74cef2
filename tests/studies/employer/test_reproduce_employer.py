"""The study of Haney et al. 2017: its numbers against brute force, its verdicts against altered numbers, its files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms.discrete import Truncated
from discreet.report.blocks import Heading, Paragraph, Table, as_csv, as_html, as_markdown
from discreet_studies import reproduce
from discreet_studies.claims import Claim
from discreet_studies.cli import app
from discreet_studies.employer import study as module
from discreet_studies.employer.findings import Finding, findings
from discreet_studies.employer.infusion_parameters import agreeing, bounds, infusion_error, interval
from discreet_studies.employer.mechanism_grid import (
    ALPHA,
    CANDIDATES,
    EPSILON,
    PRINTED,
    STRONG,
    TRUNCATED,
    MechanismGrid,
)
from discreet_studies.employer.rankings import Correlation, StrataCells, spearman
from discreet_studies.employer.ratios import EVERY, INFUSION, OCCUPIED, Ratio, ratios, truncated_error
from discreet_studies.employer.study import EmployerStudy, study
from discreet_studies.employer.tables import table2
from discreet_studies.employer.workloads import ALL, PARTS, WORKER_CELLS, TabulatedFrame, tabulated_frame

F = Fraction
GRID = MechanismGrid((F(1, 100), F(1, 10)), (F(1, 2), F(2), F(4)), (2, 100))
LOG, GAMMA, SMOOTH = PRINTED


def ignore(step: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def small() -> TabulatedFrame:
    return tabulated_frame(20_000, 7, module.INFUSION, 3)


@pytest.fixture(scope="module")
def made() -> EmployerStudy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAMPLES", 2000)
        return study(100_000, 7, ignore, GRID, 8)


def test_ratios_agree_with_loops_over_cells(small: TabulatedFrame) -> None:
    alpha, epsilon, c = F(1, 10), F(2), 1.0  # printed smooth Laplace: 2/ε
    actual = {
        (r.workload, r.cells, r.stratum): r for w in (1, 2) for r in ratios(small, w, GRID) if _is(r, alpha, epsilon)
    }
    frame = small.frame
    for workload, columns in ((1, 1), (2, WORKER_CELLS)):
        totals: dict[tuple[str, str], list[float]] = {}
        for cell in range(frame.cells):
            rows = [e for e in range(len(frame)) if frame.cell[e] == cell] if small.occupied[cell] else []
            stratum = PARTS[1 + small.frame.places[cell // 60].stratum]
            for column in range(columns):
                jobs = [int(small.workers[e].sum() if workload == 1 else small.workers[e, column]) for e in rows]
                error = c * max(float(alpha) * max(jobs, default=0), 1.0)
                beside = small.of(workload).infusion_error[cell, column]
                for cells in (OCCUPIED, EVERY) if rows else (EVERY,):
                    for part in (ALL, stratum):
                        into = totals.setdefault((cells, part), [0, 0.0, 0.0])
                        into[0], into[1], into[2] = into[0] + 1, into[1] + error, into[2] + beside
        for (cells, part), (number, error, beside) in totals.items():
            row = actual[workload, cells, part]
            assert row.number == number
            assert row.ratio == pytest.approx(error / beside, rel=1e-9)


def _is(row: Ratio, alpha: Fraction, epsilon: Fraction) -> bool:
    return (row.mechanism, row.alpha, row.epsilon) == (SMOOTH, alpha, epsilon)


def test_the_ratio_of_infusion_to_itself_is_one(made: EmployerStudy) -> None:
    rows = [row for row in made.ratios if row.mechanism == INFUSION]
    assert {row.workload for row in rows} == {1, 2, 3}
    assert all(row.ratio == 1.0 for row in rows if row.infusion)
    assert made.baseline_trials[0].mechanism == INFUSION
    assert made.baseline_trials[0].ratio == pytest.approx(1, rel=1e-12)


def test_a_third_workload_divides_epsilon(made: EmployerStudy) -> None:
    """Errors of c = 2/ε are eight times those of single queries; one job and truncation keep the whole ε."""
    alpha = F(1, 100)
    single, all_at_once = (made.ratio(w, SMOOTH, alpha, F(4)) for w in (2, 3))
    assert single is not None
    assert all_at_once == pytest.approx(WORKER_CELLS * single, rel=1e-9)
    for name, theta in (("geometric", None), (TRUNCATED, 100)):
        assert made.ratio(2, name, None, F(4), theta) == made.ratio(3, name, None, F(4), theta)


@pytest.mark.parametrize("rate", [F(1, 500), F(1, 3), F(2)])
def test_error_of_truncation(rate: Fraction) -> None:
    distribution = Truncated(rate * 10, 10, "printed").distribution
    q = float(np.exp(-float(rate)))
    k = np.arange(-20_000, 20_001)
    chance = (1 - q) / (1 + q) * np.exp(-float(rate) * np.abs(k))
    gone = np.array([0, 1, 7, 300])
    expected = [(np.abs(k - b) * chance).sum() for b in gone]
    assert truncated_error(distribution, gone) == pytest.approx(expected, rel=1e-9)


def test_spearman_agrees_with_scipy_in_every_stratum() -> None:
    rng = np.random.default_rng(1)
    stratum = rng.integers(0, 3, 500).astype(np.int8)  # the last stratum is empty
    cells = StrataCells.of(stratum)
    a, b = rng.integers(0, 40, 500), rng.integers(0, 40, 500)
    actual = spearman(cells.ranks(a), cells.ranks(a + b))
    assert actual[0] == pytest.approx(stats.spearmanr(a, a + b).statistic, abs=1e-12)
    for position in range(3):
        mine = stratum == position
        assert actual[1 + position] == pytest.approx(stats.spearmanr(a[mine], (a + b)[mine]).statistic, abs=1e-12)
    assert np.isnan(actual[4])
    assert spearman(cells.ranks(a), cells.ranks(a))[:4] == pytest.approx(np.ones(4))
    assert np.isnan(spearman(cells.ranks(a), cells.ranks(np.zeros(500)))).all()


def test_closed_forms_agree_with_trials_and_a_wrong_one_would_not(made: EmployerStudy) -> None:
    assert {row.workload for row in made.checks} == {1, 2, 3}
    assert len(made.checks) == 3 * len(CANDIDATES)
    for row in made.checks:
        assert row.agrees, row
        for factor in (0.7, 1.3):
            wrong = replace(row, simulated=factor * row.simulated)
            # Trials are few, so only those with enough cells must tell.
            assert not wrong.agrees or row.standard_error > 0.04 * row.expected


def test_correlations_rise_with_epsilon(made: EmployerStudy) -> None:
    rows = [c for c in made.correlations if c.stratum == ALL and c.cells == OCCUPIED]
    assert {c.ranking for c in rows} == {1, 2}
    by = {(c.ranking, c.mechanism, c.alpha, c.theta, c.epsilon): c for c in rows}
    for (ranking, name, alpha, theta, epsilon), row in by.items():
        more = by.get((ranking, name, alpha, theta, 2 * epsilon))
        if more is not None and name != TRUNCATED:
            assert more.truth > row.truth
    assert all(-1 <= c.infusion <= 1 and -1 <= c.truth <= 1 for c in rows)


def test_every_pair_is_admissible_or_listed(made: EmployerStudy) -> None:
    listed = {(i.mechanism, i.workload, i.alpha, i.epsilon) for i in made.inadmissible}
    for workload in (1, 2, 3):
        for candidate in CANDIDATES:
            for alpha in GRID.alphas:
                for epsilon in GRID.epsilons:
                    served = made.ratio(workload, candidate.name, alpha, epsilon) is not None
                    assert served != ((candidate.name, workload, alpha, epsilon) in listed)
    assert (SMOOTH, 3, F(1, 10), F(4)) in listed  # ε/8 is below what Algorithm 3 needs for δ/8
    assert (SMOOTH, 1, F(1, 10), F(2)) not in listed
    for pair in made.inadmissible:
        assert pair.smallest > pair.epsilon


def test_our_constants_have_smaller_errors_than_the_printed_ones(made: EmployerStudy) -> None:
    for workload in (1, 2, 3):
        for alpha in GRID.alphas:
            for epsilon in GRID.epsilons:
                pareto = made.ratio(workload, "laplace-pareto", alpha, epsilon)
                for printed in PRINTED:
                    theirs = made.ratio(workload, printed, alpha, epsilon)
                    if pareto is not None and theirs is not None and printed != LOG:
                        assert pareto < theirs


def test_table_2_is_corrected() -> None:
    entries = {(entry.as_printed, entry.alpha): entry for entry in table2()}
    assert len(entries) == 6
    for (labelled, alpha), entry in entries.items():
        assert entry.right == ((labelled, alpha) != (F(5, 10**4), F(1, 5)))
        beside = replace(entry, at_intended=entry.at_printed)  # of the δ that it is printed beside
        assert beside.right == (labelled != F(5, 100) and alpha != F(1, 5))
        assert entry.exact_intended < entry.at_intended
    assert round(float(entries[F(5, 10**4), F(1, 5)].at_intended), 2) == 2.77


def doctored(made: EmployerStudy, change: Callable[[Ratio], Ratio]) -> EmployerStudy:
    return replace(made, ratios=tuple(change(row) for row in made.ratios))


def verdict(made: EmployerStudy, number: int) -> str:
    return findings(made)[number - 1].verdict


def test_verdicts_follow_from_parts() -> None:
    def finding(*holds: bool | None) -> str:
        return Finding(1, "", tuple(Claim("", "", "", held) for held in holds), "").verdict

    assert finding(True, True, None) == "confirmed"
    assert finding(True, False) == "partly confirmed"
    assert finding(False, False) == "not confirmed"
    assert finding(None) == "not tested"


def test_verdicts_flip_with_the_numbers(made: EmployerStudy) -> None:
    good = doctored(made, lambda r: replace(r, error=30 * r.infusion) if r.mechanism == TRUNCATED else r)
    good = replace(good, correlations=tuple(_at(c, 0.6) for c in made.correlations))
    assert verdict(good, 6) == "confirmed"
    bad = doctored(made, lambda r: replace(r, error=0.5 * r.infusion) if r.mechanism == TRUNCATED else r)
    without = doctored(bad, lambda r: replace(r, error=0.1 * r.infusion) if r.epsilon is None else r)
    assert verdict(replace(without, correlations=tuple(_at(c, 0.9) for c in made.correlations)), 6) == "not confirmed"


def _at(row: Correlation, value: float) -> Correlation:
    return replace(row, infusion=value) if row.mechanism == TRUNCATED else row


@pytest.mark.parametrize(("name", "position", "limit"), [(LOG, 0, 3.0), (GAMMA, 1, 3.0), (SMOOTH, 2, 1.0)])
def test_parts_of_finding_1_follow_the_ratio(made: EmployerStudy, name: str, position: int, limit: float) -> None:
    for factor, holds in ((0.99, True), (1.01, False)):
        changed = doctored(
            made, lambda r, f=factor: replace(r, error=f * limit * r.infusion) if r.mechanism == name else r
        )
        part = findings(changed)[0].parts[position]
        assert part.holds is holds
        assert part.ours == f"{factor * limit:.3g}"


def test_finding_4_requires_falling_ratios(made: EmployerStudy) -> None:
    def falling(row: Ratio) -> Ratio:
        return replace(row, error=row.infusion * (10, 9, 5, 4, 3.5)[PARTS.index(row.stratum)])

    changed = doctored(made, falling)
    parts = findings(changed)[3].parts
    assert [part.holds for part in parts[:2]] == [True, True]
    rising = doctored(made, lambda r: replace(r, error=r.infusion * (10, 1, 2, 3, 9)[PARTS.index(r.stratum)]))
    assert [part.holds for part in findings(rising)[3].parts[:2]] == [False, False]


def test_an_empty_grid_is_not_tested(made: EmployerStudy) -> None:
    nothing = replace(made, ratios=(), correlations=(), baseline_trials=())
    assert verdict(nothing, 1) == "not tested"
    assert verdict(nothing, 2) == "not tested"


def test_the_region_of_infusion(made: EmployerStudy) -> None:
    low, high = interval(made)
    ours = infusion_error(made)
    assert (low <= ours <= high) == all(bound.agrees(bound.ratio) for bound in bounds(made))
    for row in made.infusion_sweep:
        if row.workload == 1 and row.shape == "ramp":
            held = all(b.agrees(ratio) for b in bounds(made) for at, ratio in b.with_parameters(made) if at == row)
            assert held == (row in agreeing(made))
    at_ours = [
        row for row in made.infusion_sweep if (row.workload, row.s, row.t, row.shape) == (1, F(1, 10), F(1, 4), "ramp")
    ]
    assert at_ours[0].infusion == pytest.approx(ours, rel=1e-12)


def test_table_1_has_every_method_and_requirement(made: EmployerStudy) -> None:
    assert len(made.requirements) == 15
    verdicts = {(t.method, t.requirement): t.verdict for t in made.requirements}
    assert verdicts["infusion", "shape"] == "fails"
    assert verdicts["strong, laplace-pareto", "size"] == "not refuted"


def test_every_attack_runs_against_every_mechanism(made: EmployerStudy) -> None:
    """Every attack succeeds against noise infusion; under strong privacy attacks do no better than guessing."""
    assert len(made.attack_results) == 11
    assert all(len(actual.attacks) == 6 for actual in made.attack_results)
    by_name = {actual.method: actual for actual in made.attack_results}
    infusion, strong = by_name["infusion"], by_name["strong, laplace-pareto"]
    assert all(attack.rate.share > max(0.6, attack.baseline.share - 1e-9) for attack in infusion.attacks)
    assert not any(attack.rate.low > attack.baseline.high for attack in strong.attacks[1:])
    assert strong.averaged[1].relative_error < strong.averaged[0].relative_error
    assert infusion.averaged[1] == replace(infusion.averaged[0], publications=16)  # its factors are permanent


def test_strong_privacy_errs_less_than_weak(made: EmployerStudy) -> None:
    """For every establishment's worker cells together: the proof is in docs/methods/employer.md."""
    strong = [row for row in made.ratios if row.mechanism == STRONG]
    assert {row.workload for row in strong} == {3}
    weak = {
        (r.alpha, r.epsilon, r.stratum, r.cells): r.error
        for r in made.ratios
        if (r.workload, r.mechanism) == (3, "laplace-pareto")
    }
    compared = [
        (row.error, weak[row.alpha, row.epsilon, row.stratum, row.cells])
        for row in strong
        if (row.alpha, row.epsilon, row.stratum, row.cells) in weak
    ]
    assert len(compared) > 10
    assert all(one <= other for one, other in compared)


def test_the_command_writes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MechanismGrid", lambda: MechanismGrid((ALPHA,), (EPSILON, F(4)), (2, 100)))
    monkeypatch.setattr(module, "SAMPLES", 1000)
    out = tmp_path / "new" / "report"
    result = CliRunner().invoke(app, ["reproduce", "employer", "--out", str(out), "--jobs", "50000", "--seed", "3"])
    assert result.exit_code == 0, result.output
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {
        "report.md",
        "report.html",
        "ratios.csv",
        "correlations.csv",
        "infusion-parameters.svg",
        "summary.svg",
    } <= names
    assert {f"figure-{number}.svg" for number in range(1, 6)} <= names
    tables = {"table-1", "table-2", "findings", "costs", "inadmissible", "rankings", "trials", "infusion-parameters"}
    assert {f"tables/{name}.{kind}" for name in tables for kind in ("csv", "md")} <= names
    assert "infusion/jobs.NOT-PROTECTED.csv" in names
    assert json.loads((out / "infusion/manifest.json").read_text())["guarantee"] is None
    text = (out / "report.md").read_text(encoding="utf-8")
    for said in ("50,000 synthetic jobs (seed 3)", "s = 0.1, t = 0.25", "SIMULATION", "Finding 6", "our choice"):
        assert said in text
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 7
    assert "http" not in page.replace("http://www.w3.org", "")
    with (out / "ratios.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["cells"] for row in rows} == {OCCUPIED, EVERY}
    assert {row["ratio"] for row in rows if row["mechanism"] == INFUSION} <= {"1", "nan"}


@pytest.mark.parametrize(
    ("paper", "occupied", "said"), [("employee", False, "no paper"), ("employer", True, "not an empty folder")]
)
def test_bad_arguments_are_refused(tmp_path: Path, paper: str, occupied: bool, said: str) -> None:
    if occupied:
        (tmp_path / "other").write_text("")
    with pytest.raises(ParameterError, match=said):
        reproduce(paper, tmp_path, 50_000, 7, ignore)
    assert CliRunner().invoke(app, ["reproduce", "employer", "--out", str(tmp_path), "--jobs", "1"]).exit_code == 2


def test_documents_escape_what_they_write(tmp_path: Path) -> None:
    blocks = [Heading(2, "a < b"), Paragraph("x & y"), Table("t", ("one", "two"), [("a|b", "<c>")])]
    assert as_markdown(blocks) == "## a < b\n\nx & y\n\n| one | two |\n| --- | --- |\n| a\\|b | <c> |\n"
    page = as_html("t", blocks, tmp_path)
    assert "<h2>a &lt; b</h2>" in page
    assert "<td>&lt;c&gt;</td>" in page
    assert as_csv(("a", "b"), [(1, "x,y")]) == 'a,b\n1,"x,y"\n'
