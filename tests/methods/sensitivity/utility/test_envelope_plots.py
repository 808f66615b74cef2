"""Plots of sensitivity show their data and are marked confidential by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import WorstRecord
from discreet.methods.sensitivity.utility.envelope_plots import (
    MARK,
    MOST_DOTS,
    NEAREST,
    cell_plot,
    envelope_plot,
)
from discreet_studies.sensitivity.figures import global_plot

RNG = np.random.default_rng(8)
X = RNG.uniform(0, 0.8, 20)
Y = 0.1 + 0.5 * X + RNG.normal(0, 0.05, 20)


def picture(chart: Any, folder: Path) -> str:
    path = folder / "x.svg"
    chart.save(str(path))
    text = path.read_text(encoding="utf-8")
    assert "NaN" not in text
    return text


def datasets(chart: Any) -> list[list[dict[str, Any]]]:
    return list(chart.to_dict()["datasets"].values())


def longest(chart: Any) -> list[dict[str, Any]]:
    return max(datasets(chart), key=len)


@pytest.mark.parametrize("synthetic", [False, True])
def test_titles_say_confidential_unless_the_data_is_synthetic(synthetic: bool) -> None:
    worst = WorstRecord(added=True, point=(0.0, 1.0), change=0.1)
    charts = [
        envelope_plot([20, 30], [0.1, 0.05], 2.0, "Cells", synthetic=synthetic),
        cell_plot(X, Y, worst, 0.25, "Cells", synthetic=synthetic),
    ]
    assert [chart.to_dict()["title"]["text"] for chart in charts] == [("" if synthetic else MARK) + "Cells"] * 2
    assert MARK not in global_plot("Why no global bound exists").to_dict()["title"]["text"]  # it has no data


def test_plots_are_marked_confidential_by_default() -> None:
    assert envelope_plot([20, 30], [0.1, 0.05], 2.0, "Cells").to_dict()["title"]["text"].startswith("CONFIDENTIAL")


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_the_envelope_is_chi_over_n_and_no_cell_is_above_it(rate: float, tmp_path: Path) -> None:
    n = RNG.integers(20, 500, 300)
    local = RNG.uniform(0.2, 1, 300) / n**rate
    chi = float((n**rate * local).max())
    chart = envelope_plot(n, local, chi, "Cells", rate)
    dots = longest(chart)
    line = next(rows for rows in datasets(chart) if len(rows) == 20)
    assert sorted((dot["n"], dot["local"]) for dot in dots) == sorted(zip(n.tolist(), local.tolist(), strict=True))
    assert all(row["local"] == pytest.approx(chi / row["n"] ** rate) for row in line)
    assert [line[0]["n"], line[-1]["n"]] == pytest.approx([n.min(), n.max()])
    assert f"χ = {chi:.4g}" in picture(chart, tmp_path)


def test_of_many_cells_the_nearest_are_all_shown_and_the_rest_is_said() -> None:
    n = RNG.integers(20, 500, 20_000)
    local = RNG.uniform(0.01, 1, 20_000) / n
    chart = envelope_plot(n, local, float((n * local).max()), "Cells")
    dots = longest(chart)
    reach = np.sort([dot["n"] * dot["local"] for dot in dots])[::-1]
    assert len(dots) <= MOST_DOTS
    assert np.allclose(reach[:NEAREST], np.sort(n * local)[::-1][:NEAREST])
    assert f"Shown are {len(dots):,} of 20,000" in " ".join(chart.to_dict()["title"]["subtitle"])


def test_cells_without_a_bound_are_counted() -> None:
    chart = envelope_plot([20, 30, 40], [0.1, np.inf, np.inf], 2.0, "Cells")
    assert "2 cells without a finite" in " ".join(chart.to_dict()["title"]["subtitle"])
    with pytest.raises(ParameterError, match="no cell has a finite sensitivity"):
        envelope_plot([20], [np.inf], 1.0, "Cells")


def test_one_cell_alone_still_has_axes(tmp_path: Path) -> None:
    assert "χ/N" in picture(envelope_plot([20], [0.1], 2.0, "Cells"), tmp_path)


@pytest.mark.parametrize("added", [True, False])
def test_the_worst_point_is_hollow_and_the_lines_are_the_fits(added: bool, tmp_path: Path) -> None:
    point = (0.0, 1.0) if added else (float(X[3]), float(Y[3]))
    chart = cell_plot(X, Y, WorstRecord(added, point, 0.0), 0.25, "A cell", ("parents", "child"))
    x, y = (np.append(X, 0.0), np.append(Y, 1.0)) if added else (np.delete(X, 3), np.delete(Y, 3))
    before, after = np.polyfit(X, Y, 1), np.polyfit(x, y, 1)
    lines = next(rows for rows in datasets(chart) if "which" in rows[0])
    drawn = [row["y"] for row in lines]
    assert drawn == pytest.approx([np.polyval(line, end) for line in (before, after) for end in (0, 1)], abs=1e-9)
    assert [{"x": point[0], "y": point[1]}] in datasets(chart)
    moved = abs(np.polyval(after, 0.25) - np.polyval(before, 0.25))
    text = picture(chart, tmp_path)
    assert f"is {moved:.3f}" in text
    assert "parents" in text
    assert "child" in text


def test_the_less_x_varies_the_further_the_line_moves(tmp_path: Path) -> None:
    chart = global_plot("Why no global bound exists")
    moves = [float(panel["title"]["text"].rsplit(" ", 1)[1]) for panel in chart.to_dict()["hconcat"]]
    assert moves == sorted(moves)
    assert moves[-1] > 5 * moves[0]
    assert moves[-1] > 1  # more than the whole range of y
    assert "adding (0, 1)" in picture(chart, tmp_path)
