"""Errors of published percentiles against exact ones, and the chart of both."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.domain.bins import PSEO
from discreet.errors import DiscreetError
from discreet.noise.key import ReleaseKey
from discreet_studies.cli import app
from discreet_studies.pseo.earnings import GraduateCells, cells_of, smooth, synthetic_cells, trial
from discreet_studies.pseo.percentile_plot import percentile_plot

POINTS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
KEY = ReleaseKey.simulation("a comparison")


@pytest.fixture(scope="module")
def agency(tmp_path_factory: pytest.TempPathFactory) -> tuple[GraduateCells, list[np.ndarray[Any, np.dtype[np.int64]]]]:
    return synthetic_cells(tmp_path_factory.mktemp("agency"), 100_000, 7)


def test_exact_percentiles_are_those_of_the_values() -> None:
    rng = np.random.default_rng(1)
    values, cell = rng.integers(10_000, 300_000, 500), rng.integers(0, 7, 500)
    cell[cell == 4] = 5  # an empty one
    cells = cells_of(values, cell, 7, PSEO)
    for i in range(7):
        mine = values[cell == i]
        assert cells.sizes[i] == len(mine)
        if not len(mine):
            assert np.isnan(cells.raw(POINTS)[i]).all()
            continue
        expected = [np.percentile(mine, 100 * float(y), method="inverted_cdf") for y in POINTS]
        assert cells.raw(POINTS)[i].tolist() == expected
        assert cells.histograms[i].tolist() == np.histogram(mine, [*PSEO.edges[:-1], 10**9])[0].tolist()


def test_both_rules_use_the_same_noisy_histograms(agency: Any) -> None:
    cells, families = agency
    made = trial(cells, families, POINTS, 30, Fraction(3, 2), KEY)
    assert np.array_equal(made.pseo.counts, made.shrunk.counts)
    assert np.array_equal(made.pseo.published, made.pseo.counts >= 30)
    kept = made.pseo.published
    for summary in (made.pseo, made.shrunk):
        p, low, high = summary.percentiles[kept], summary.low[kept], summary.high[kept]
        assert (np.diff(p, axis=1) >= 0).all()
        assert ((low <= p) & (p <= high)).all()
    assert (made.pseo.percentiles[kept] != made.shrunk.percentiles[kept]).any()


def test_ours_has_smaller_errors_than_the_published_rule_and_smooth_sensitivity_much_larger(agency: Any) -> None:
    cells, families = agency
    made, exact = trial(cells, families, POINTS, 30, Fraction(1), KEY), cells.raw(POINTS)
    mine = made.pseo.published & (cells.sizes < 200)
    errors = {
        name: np.abs(actual[mine] - exact[mine]).mean()
        for name, actual in (
            ("pseo", made.pseo.percentiles),
            ("ours", made.shrunk.percentiles),
            ("smooth", smooth(cells, POINTS, Fraction(1), KEY)),
        )
    }
    assert errors["ours"] < 0.97 * errors["pseo"]
    assert errors["smooth"] > 3 * errors["pseo"]


def test_the_chart_has_both_rules_and_the_truth(agency: Any) -> None:
    cells, families = agency
    made, exact = trial(cells, families, POINTS, 30, Fraction(3, 2), KEY), cells.raw(POINTS)
    chart = percentile_plot(cells, made, POINTS, "Simulation: a test", rows=6).to_dict()
    (lines,) = chart["datasets"].values()
    assert chart["title"]["text"] == "Simulation: a test"
    assert len(lines) == 6 * 3 * 2
    sizes = [line["graduates"] for line in lines if line["rule"].endswith("(pseo)") and line["percentile"] == "p50"]
    assert sizes == sorted(sizes)
    for line in lines:
        assert line["low"] <= line["estimate"] <= line["high"]
        at = {"p25": 0, "p50": 1, "p75": 2}[line["percentile"]]
        assert line["records"] in exact[:, at]
        assert line["without_noise"] in cells.noise_free(POINTS)[:, at]


def test_the_command_draws_and_refuses(tmp_path: Path) -> None:
    asked = ["earnings", "--out", str(tmp_path / "plots"), "--rows", "20000", "--epsilon", "3/2"]
    made = CliRunner().invoke(app, asked)
    assert made.exit_code == 0
    svg, png = (tmp_path / "plots" / name for name in ("earnings.svg", "earnings.png"))
    assert made.output.splitlines() == [str(svg), str(png)]
    assert "Simulation" in svg.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")
    for wrong in (["--epsilon", "x"], ["--epsilon", "0"], ["--epsilon", "-1"], ["--rows", "0"]):
        refused = CliRunner().invoke(app, ["earnings", "--out", str(tmp_path / "none"), *wrong])
        assert isinstance(refused.exception, DiscreetError)
    assert not (tmp_path / "none").exists()
