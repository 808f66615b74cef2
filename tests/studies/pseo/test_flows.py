"""The comparison of correction rules: tallies, preserved totals, and discrimination between better and worse rules."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.errors import ParameterError
from discreet.methods.flows.correction import RULES, CorrectionRule, GroupControls, published
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES
from discreet_studies.cli import app
from discreet_studies.pseo.flow_plots import as_csv, as_markdown, flow_plot
from discreet_studies.pseo.flows import (
    CONTROLS,
    KINDS,
    RAW,
    SIZES,
    FlowScore,
    FlowStudy,
    InstitutionFlows,
    Int64s,
    correct,
    institution_flows,
    study,
    tally,
)

EPSILONS = (Fraction(1, 2), Fraction(3, 2))
KEY = ReleaseKey.simulation("a comparison of flows")
GROUPS, INSTITUTIONS = 60, 4


def greedy(noisy: Int64s, groups: GroupControls, words: Any, starts: Int64s) -> Int64s:
    """A worse rule: every unit comes off the largest flow, which is surely real."""
    out = np.maximum(noisy, 0)
    for row, total in zip(out, noisy.sum(axis=1), strict=True):
        for cell in np.argsort(-row, kind="stable"):
            row[cell] -= min(int(row[cell]), int(row.sum() - max(total, 0)))
    return out


@pytest.fixture(scope="module")
def made() -> FlowStudy:
    rules = {**RULES, "greedy": CorrectionRule(RULES["quantiles"].words_needed, greedy), "again": RULES["published"]}
    return study(EPSILONS, INSTITUTIONS, 11, rules, GROUPS)


@pytest.fixture(scope="module")
def small() -> tuple[InstitutionFlows, Int64s]:
    here = institution_flows(5, GROUPS)
    noise = DiscreteLaplace(Fraction(1)).draw(KEY.stream("a", "b", b"", "noise"), 0, here.true.size)
    return here, here.true + noise.reshape(here.true.shape)


def score(made: FlowStudy, **wanted: object) -> FlowScore:
    (actual,) = [s for s in made.scores if all(getattr(s, name) == value for name, value in wanted.items())]
    return actual


def axis(made: FlowStudy, rule: str, kind: str) -> Int64s:
    """Tallies of a rule: replication × ε × controls × size × 4."""
    tallies: Int64s = made.sums[:, :, :, made.rules.index(rule), list(KINDS).index(kind)]
    return tallies


def test_a_tally_agrees_with_numpy() -> None:
    rng = np.random.default_rng(3)
    true, actual = rng.integers(0, 200, 4000), rng.integers(-50, 250, 4000)
    true[:2000] = rng.integers(0, 11, 2000)
    ranges = [(0, 0), (1, 1), (2, 4), (5, 9), (10, 29), (30, 99), (100, 10**9)]
    assert len(ranges) == len(SIZES)
    for row, (low, high) in zip(tally(true, actual), ranges, strict=True):
        error = (actual - true)[(true >= low) & (true <= high)]
        assert row.tolist() == [len(error), error.sum(), np.abs(error).sum(), (error**2).sum()]
        assert len(error) > 100


def test_every_statistic_sums_the_right_cells(small: tuple[InstitutionFlows, Int64s]) -> None:
    here, noisy = small
    views = {kind: view(noisy, here) for kind, view in KINDS.items()}
    rng = np.random.default_rng(1)
    division = {d: i for i, d in enumerate(sorted({state.division for state in STATES}))}
    for g in rng.integers(0, GROUPS, 8):
        states, divisions = np.zeros(len(STATES)), np.zeros((len(SECTORS), len(division)))
        for k in range(len(SECTORS)):
            for s, state in enumerate(STATES):
                flow = noisy[g, k * len(STATES) + s]
                states[s] += flow
                divisions[k, division[state.division]] += flow
        assert views["state"][g].tolist() == states.tolist()
        assert views["division × sector"][g].tolist() == divisions.tolist()
        assert views["in-state"][g] == states[here.home[g]]
        assert views["employed"][g] == states.sum()
        assert views["marginal"][g] == noisy[g, -1]
        assert views["total"][g] == noisy[g].sum()
    for family in range(here.family.max() + 1):
        mine = here.family == family
        assert views["family's cell"][family].tolist() == noisy[mine, :-1].sum(axis=0).tolist()
        assert views["family's state"][family].tolist() == views["state"][mine].sum(axis=0).tolist()


def test_every_rule_preserves_totals(small: tuple[InstitutionFlows, Int64s], made: FlowStudy) -> None:
    here, noisy = small
    for kind in CONTROLS:
        known = GroupControls(here.controls(kind, noisy, 5), here.home, here.family, Fraction(1))
        for rule in RULES.values():
            actual = correct(rule, noisy, known, KEY, "words")
            assert (actual >= 0).all()
            assert np.array_equal(actual.sum(axis=1), np.maximum(noisy.sum(axis=1), 0))
    errors = {rule: {kind: axis(made, rule, kind).sum(axis=3)[..., 1] for kind in KINDS} for rule in made.rules}
    for name, of in errors.items():
        for kind in ("state", "division × sector", "family's cell", "family's state", "employed"):
            assert np.array_equal(of[kind], of["cell"]), (name, kind)
        assert np.array_equal(of["total"], of["cell"] + of["marginal"])
        assert name == RAW or np.array_equal(of["total"], errors["published"]["total"])
    assert not np.array_equal(errors[RAW]["total"], errors["published"]["total"])  # some became zero
    assert made.zeroed[:, :, 0].sum() > 0
    assert (made.zeroed[:, :, 0] >= made.zeroed[:, :, 1]).all()
    assert (made.zeroed[:, :, 2] >= made.zeroed[:, :, 1]).all()


def test_a_worse_rule_scores_worse_and_the_same_rule_equal(made: FlowStudy) -> None:
    for epsilon in EPSILONS:
        worse = score(made, epsilon=epsilon, controls="public", rule="greedy", kind="cell", size="all")
        assert worse.mean_abs_gain < -4 * worse.mean_abs_gain_se < 0
        assert worse.rmse_gain < -2 * worse.rmse_gain_se < 0
        again = score(made, epsilon=epsilon, controls="public", rule="again", kind="cell", size="all")
        gains = again.mean_abs_gain, again.mean_abs_gain_se, again.rmse_gain, again.rmse_gain_se
        assert gains == (0, 0, 0, 0)
        informed = score(made, epsilon=epsilon, controls="public", rule="published", kind="cell", size="all")
        ignorant = score(made, epsilon=epsilon, controls="none", rule="published", kind="cell", size="all")
        assert informed.mean_abs < 0.8 * ignorant.mean_abs


def test_the_noisy_measurements_have_the_error_of_their_noise(made: FlowStudy) -> None:
    for epsilon in EPSILONS:
        distribution = DiscreteLaplace(epsilon)
        for controls in CONTROLS:
            raw = score(made, epsilon=epsilon, controls=controls, rule=RAW, kind="cell", size="all")
            assert raw.number == INSTITUTIONS * GROUPS * len(SECTORS) * len(STATES)
            assert abs(raw.bias) < 0.02 * distribution.mean_abs()
            assert raw.mean_abs == pytest.approx(distribution.mean_abs(), rel=0.01)
            assert raw.rmse == pytest.approx(distribution.variance() ** 0.5, rel=0.01)


def test_standard_errors_are_those_of_a_mean(made: FlowStudy) -> None:
    sums = np.zeros_like(made.sums)
    sums[..., 0] = 10
    rng = np.random.default_rng(2)
    sums[..., 1:] = rng.integers(100, 200, sums[..., 1:].shape)
    scores = replace(made, sums=sums)
    root = len(sums) ** 0.5
    for rule in ("quantiles", "published"):
        tallies = axis(scores, rule, "state")[:, 0, 0, 3] / 10
        base = axis(scores, "published", "state")[:, 0, 0, 3] / 10
        mine = score(scores, epsilon=EPSILONS[0], controls="public", rule=rule, kind="state", size=SIZES[3])
        assert mine.bias == pytest.approx(tallies[:, 1].mean())
        assert mine.bias_se == pytest.approx(tallies[:, 1].std(ddof=1) / root)
        assert mine.mean_abs_se == pytest.approx(tallies[:, 2].std(ddof=1) / root)
        assert mine.rmse == pytest.approx(tallies[:, 3].mean() ** 0.5)
        assert mine.rmse_se == pytest.approx(tallies[:, 3].std(ddof=1) / root / 2 / mine.rmse)
        assert mine.mean_abs_gain == pytest.approx((base - tallies)[:, 2].mean())
        assert mine.mean_abs_gain_se == pytest.approx((base - tallies)[:, 2].std(ddof=1) / root)


def test_controls_are_as_declared(small: tuple[InstitutionFlows, Int64s]) -> None:
    here, noisy = small
    given, blurred, none = (here.controls(kind, noisy, 5) for kind in CONTROLS)
    first = here.family == 0
    flows = noisy[first, :-1].reshape(-1, len(SECTORS), len(STATES)).sum(axis=(0, 2))
    assert given.industry_flow[0].tolist() == np.where(flows > 0, flows, 1).tolist()
    assert np.array_equal(given.employment, np.where(here.employment > 0, here.employment, 1))
    assert np.array_equal(blurred.industry_flow, given.industry_flow)
    known = here.employment > 0
    assert np.log(blurred.employment[known] / given.employment[known]).std() == pytest.approx(1, abs=0.15)
    assert all((part == 1).all() for part in (none.jobs, none.employment, none.industry_flow))


def test_random_words_of_a_rule_are_all_different(small: tuple[InstitutionFlows, Int64s]) -> None:
    here, noisy = small
    seen = []

    def spy(noisy: Int64s, groups: GroupControls, words: Any, starts: Int64s) -> Int64s:
        seen.append(words)
        return published(noisy, groups, words, starts)

    many = CorrectionRule(lambda flows: 3 * 10**4 + RULES["published"].words_needed(flows), spy)
    known = GroupControls(here.controls("public", noisy, 5), here.home, here.family, Fraction(1))
    correct(many, noisy, known, KEY, "words")
    assert len(seen[0]) > 10**6
    assert len(np.unique(seen[0])) == len(seen[0])


def test_the_same_seed_gives_the_same_study(made: FlowStudy) -> None:
    rules = {"published": RULES["published"]}
    again, fewer, other = (study(EPSILONS[1:], n, seed, rules, GROUPS) for n, seed in ((4, 11), (2, 11), (4, 12)))
    assert np.array_equal(again.sums, made.sums[:, 1:, :, :2])
    assert np.array_equal(fewer.sums, again.sums[:2])
    assert np.array_equal(again.zeroed, made.zeroed[:, 1:])
    assert np.array_equal(other.sums[:-1], again.sums[1:])  # a replication is its seed
    assert not np.array_equal(other.sums[-1], again.sums[0])


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="standard error"):
        study(EPSILONS, 1, 7)
    with pytest.raises(ParameterError, match="reference rule"):
        study(EPSILONS, 2, 7, {"projection": RULES["projection"]})
    with pytest.raises(ParameterError, match="groups"):
        study(EPSILONS, 2, 7, groups=2000)


def test_tables_and_chart_show_the_scores(made: FlowStudy) -> None:
    rows = list(csv.DictReader(as_csv(made).splitlines()))
    assert len(rows) == len(made.scores)
    last = made.scores[-1]
    assert (rows[-1]["epsilon"], rows[-1]["rule"], rows[-1]["kind"]) == ("1.5", last.rule, last.kind)
    assert float(rows[-1]["rmse"]) == pytest.approx(last.rmse, abs=1e-6)
    text = as_markdown(made)
    best = score(made, epsilon=EPSILONS[1], controls="public", rule="quantiles", kind="cell", size="all")
    assert f"**{best.mean_abs:.3f}**" in text
    assert text.count("| all |") == len(EPSILONS) * len(CONTROLS)
    assert {line.count("|") for line in text.splitlines() if line.startswith("| ")} == {3 + len(made.rules)}
    chart = flow_plot(made, "Simulation: a test").to_dict()
    (points,) = chart["datasets"].values()
    assert len(points) == len([s for s in made.scores if s.kind == "cell" and s.controls == "public"]) * 7 // 8
    assert all(p["ratio"] in (1, None) for p in points if p["rule"] == "published")
    assert chart["title"]["text"] == "Simulation: a test"


def test_the_command_compares_and_refuses(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["flows", "--out", str(tmp_path / "flows"), "--institutions", "2"])
    assert made.exit_code == 0
    table, text, picture = (tmp_path / "flows" / f"flows.{kind}" for kind in ("csv", "md", "svg"))
    assert made.output.splitlines() == [str(table), str(text), str(picture)]
    assert "Simulation" in picture.read_text(encoding="utf-8")
    assert "ε = 1.5" in text.read_text(encoding="utf-8")
    assert {row["epsilon"] for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())} == {
        "0.5",
        "1.5",
        "3",
    }
    for wrong in (["--institutions", "1"], ["--seed", "-1"]):
        assert CliRunner().invoke(app, ["flows", "--out", str(tmp_path / "none"), *wrong]).exit_code
    assert not (tmp_path / "none").exists()
