"""Figures 1 to 3 and the appendix figures of Chetty & Friedman 2019, the choice of ε, and the cost of guarantees."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from discreet.methods.sensitivity.statistics import Floats, WorstRecord
from discreet.methods.sensitivity.utility.envelope_plots import (
    BEFORE,
    arrow,
    axis,
    cell_plot,
    changed,
    dots,
    envelope_plot,
    hollow,
    lines,
)
from discreet.methods.sensitivity.utility.tradeoff_plots import tradeoff_plot
from discreet.methods.sensitivity.utility.weighted import Fit, fitted
from discreet.privacy.exact import format_exact
from discreet.report.plots import COLOURS, chart, titled
from discreet_studies.charts import colour_of, dash_of, distinct, log_y, panel
from discreet_studies.harness import Drawing
from discreet_studies.sensitivity.births import INFUSED, SUPPRESSED, BinnedMeans
from discreet_studies.sensitivity.cells import AT, EPSILON
from discreet_studies.sensitivity.formal import MOS, OLS, ONE
from discreet_studies.sensitivity.study import SensitivityStudy

RANKS = ("parents' income rank", "child's income rank")
SHADES = ("#000000", "#E69F00", "#B8860B", "#56B4E9", COLOURS[1], COLOURS[2])  # distinguishable with any colour vision
BIRTH_RATE = "teenage birth rate, Black girls at parent rank .25"
COST_COLUMNS = ("children", "cells", "epsilon", "method", "formal", "rmse", "median_error", "without_answer")
Ends = tuple[float, float]


def figures(study: SensitivityStudy) -> dict[str, Drawing]:
    """Every chart, by file name, with the data shown."""
    drawings: dict[str, Drawing] = {}
    if study.example:
        example = study.example
        title = "Figure 1. One cell of twenty, its line, and the observation that changes it most"
        picture = cell_plot(example.x, example.y, example.worst, AT, title, RANKS, synthetic=True)
        rows = [("child", x, y) for x, y in zip(example.x.tolist(), example.y.tolist(), strict=True)]
        worst = ("added" if example.worst.added else "removed", *example.worst.point)
        drawings["figure-1"] = Drawing(picture, ("what", "parent_rank", "child_rank"), [*rows, worst])
    envelope = study.envelopes[0]
    title = f"Figure 2. Winsorised predictions of income ranks: {envelope.label}"
    picture = envelope_plot(envelope.n, envelope.sensitivity, envelope.chi, title, synthetic=True)
    below = zip(envelope.n.tolist(), envelope.sensitivity.tolist(), strict=True)
    columns = ("children", "sensitivity", "envelope")
    drawings["figure-2"] = Drawing(picture, columns, [(n, local, envelope.chi / n) for n, local in below])
    drawings["figure-3"] = _births(study)
    title = "Appendix Figure 1. Why no global bound exists: the less x varies, the more one point changes the line"
    picture = global_plot(title)
    dots = enumerate((one.layer[0].data.values for one in picture.hconcat), 1)
    points = [(number, dot["x"], dot["y"]) for number, values in dots for dot in values]
    drawings["appendix-figure-1"] = Drawing(picture, ("panel", "x", "y"), points)
    drawings["appendix-figure-2"] = _counts(study)
    for number, one in enumerate(study.epsilon_choices, 1):
        title = f"Choosing ε: {one.label}; dashed: the paper's ε = 8"
        picture = tradeoff_plot(one.points, title, area="county", chosen=EPSILON)
        drawings[f"choosing-epsilon-{number}"] = Drawing(picture)
    if study.costs:
        drawings["guarantee-costs"] = _costs(study)
    return drawings


def _births(study: SensitivityStudy) -> Drawing:
    """Both panels of Figure 3 on the same axes."""
    births = study.births
    x, y = _ends(births.infused.x, births.suppressed.x), _ends(births.infused.y, births.suppressed.y)
    panels = [
        _binned_line(births.infused, births.slopes.infused, "A. Noise-infused", INFUSED, x, y),
        _binned_line(births.suppressed, births.slopes.suppressed, "B. Count-suppressed", SUPPRESSED, x, y),
    ]
    subtitle = [
        f"Simulation: synthetic atlas of {study.data.children:,} children, seed {study.data.seed}. Tracts with poverty "
        "below 7%, up to twenty bins of equal weight.",
    ]
    title = "Figure 3. Teenage births and single parents"
    return _binned(_beside(panels, title, subtitle), births.infused, births.suppressed)


def _binned_line(dots: BinnedMeans, fit: Fit, name: str, theirs: Ends, x: Ends, y: Ends) -> Any:
    axes = _share("x", "share of single parents in the tract", x), _share("y", BIRTH_RATE, y)
    ends = [{"x": end, "y": fit.at(end)} for end in (float(dots.x.min()), float(dots.x.max()))]
    line = chart(ends).mark_line(strokeWidth=2, color=COLOURS[1], clip=True)
    title = f"{name}: slope {fit.slope:.3f} ({fit.error:.3f}), paper {theirs[0]} ({theirs[1]})"
    return panel(alt.layer(*(one.encode(x=axes[0], y=axes[1]) for one in (_dots(dots), line))), title, 360, 280)


def _counts(study: SensitivityStudy) -> Drawing:
    panels = []
    for binned, name, label in (
        (study.births.by_births, "A. Against births", "births of low-income Black girls in the tract, implied"),
        (study.births.by_girls, "B. Against girls", "low-income Black girls in the tract"),
    ):
        x = alt.X("x:Q", title=label, axis=alt.Axis(grid=False, format="~s"))
        y = _share("y", BIRTH_RATE, _ends(binned.y))
        panels.append(panel(_dots(binned).encode(x=x, y=y), name, 360, 280))
    subtitle = [
        "Simulation: noise-infused rates of all synthetic tracts with twenty Black girls or more; twenty equal bins."
    ]
    title = "Appendix Figure 2. Rates against their numerators and denominators"
    return _binned(_beside(panels, title, subtitle), study.births.by_births, study.births.by_girls)


def _costs(study: SensitivityStudy) -> Drawing:
    """One panel per size, one line per method."""
    points = [
        {
            "size": f"about {c.size} children",
            "epsilon": float(c.epsilon),
            "rmse": c.row.against_ols.rmse,
            "method": f"{c.row.method} (not formally private)" if c.row.method == MOS else c.row.method,
        }
        for c in study.costs
        if c.row.method not in (OLS, ONE)
    ]
    names, errors = distinct(point["method"] for point in points), [float(str(point["rmse"])) for point in points]
    scale = alt.Scale(type="log", base=2, padding=6, nice=False)
    axis = alt.Axis(values=sorted(set(distinct(point["epsilon"] for point in points))), format="~g", grid=False)
    panels = []
    for place, size in enumerate(distinct(point["size"] for point in points)):
        lines = chart(point for point in points if point["size"] == size)
        lines = lines.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=26)).encode(
            x=alt.X("epsilon:Q", title="ε (log scale)", scale=scale, axis=axis),
            y=log_y("rmse", None if place else "root mean squared error (log scale)", errors),
            color=colour_of("method", names, SHADES),
            strokeDash=dash_of("method", names, {names[0]: [6, 3]}),
        )
        panels.append(panel(lines, size, 250, 260))
    subtitle = [
        "Simulation: synthetic atlas. Errors against the least-squares prediction at parent rank .25; income ranks."
    ]
    picture = _beside(panels, "The cost of a formal guarantee at equal ε", subtitle).configure_legend(
        orient="bottom", columns=3, title=None, labelLimit=360,
        symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=400,
    )  # fmt: skip
    rows = [
        (
            c.size, c.cells, format_exact(c.epsilon), c.row.method, c.row.formal,
            c.row.against_ols.rmse, c.row.against_ols.median, c.row.fallbacks,
        )
        for c in study.costs
    ]  # fmt: skip
    return Drawing(picture, COST_COLUMNS, rows)


def _dots(dots: BinnedMeans) -> Any:
    points = ({"x": a, "y": b} for a, b in zip(dots.x.tolist(), dots.y.tolist(), strict=True))
    return chart(points).mark_point(size=42, filled=True, color=COLOURS[0], opacity=0.9)


def _share(which: str, name: str, limits: Ends) -> Any:
    kind = alt.X if which == "x" else alt.Y
    scale = alt.Scale(domain=list(limits), nice=False, padding=8)
    return kind(f"{which}:Q", scale=scale, title=name, axis=alt.Axis(format=".0%", grid=False, tickCount=6))


def _ends(*columns: Floats) -> Ends:
    return min(float(column.min()) for column in columns), max(float(column.max()) for column in columns)


def _beside(panels: list[Any], title: str, subtitle: list[str]) -> Any:
    return titled(alt.hconcat(*panels, spacing=24), title, subtitle, offset=10)


def _binned(picture: Any, *panels: BinnedMeans) -> Drawing:
    rows = [
        (name, *line)
        for name, dots in zip("AB", panels, strict=True)
        for line in zip(dots.x.tolist(), dots.y.tolist(), dots.weight.tolist(), strict=True)
    ]
    return Drawing(picture, ("panel", "x", "y", "weight"), rows)


SPREADS = (0.1, 0.03, 0.01)  # half-widths of x


def global_plot(title: str) -> Any:
    """Three synthetic cells of 20 points with decreasing spread of x, and the line after adding (0, 1) (App. Figure
    1)."""
    panels = []
    axes = axis("x", "x", (0.0, 1.0)), axis("y", "y", (-1.0, 2.0))
    for spread in SPREADS:
        x, y = _tight(spread)
        worst = WorstRecord(added=True, point=(0.0, 1.0), change=0.0)
        before, after = fitted(x, y), changed(x, y, worst)
        picture = alt.layer(
            dots(x, y, *axes),
            *lines(((BEFORE, before), ("after adding (0, 1)", after)), (0.0, 1.0), *axes),
            arrow(0.25, before.at(0.25), after.at(0.25), *axes),
            hollow(worst, *axes),
        )
        moved = abs(after.at(0.25) - before.at(0.25))
        text = f"x within ±{spread:g}: at 0.25 the line changes by {moved:.2f}"
        panels.append(panel(picture, text, 260, 260))
    chart_row = titled(alt.hconcat(*panels, spacing=14), title, ["Synthetic points."], offset=10)
    return chart_row.configure_legend(orient="top", title=None, symbolStrokeWidth=2, symbolSize=300)


def _tight(spread: float) -> tuple[Floats, Floats]:
    """Twenty points around a steep line through (.5, .5), in a fixed pattern: neither data nor random."""
    place = np.linspace(-1, 1, 20)
    wiggle = np.array([1, -1, -1, 1] * 5)
    return 0.5 + spread * place, 0.5 + 0.2 * place + 0.05 * wiggle
