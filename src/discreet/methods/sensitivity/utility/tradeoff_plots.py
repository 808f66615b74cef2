"""Accuracy against ε as a plot, for those who choose ε (Chetty & Friedman 2019, Step 3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import altair as alt

from discreet.methods.sensitivity.utility.tradeoff import Point
from discreet.privacy.exact import format_exact
from discreet.report.plots import COLOURS, HEIGHT, WIDTH, chart, decades, ends, log_axis, titled

FORMULA, SIMULATED = "formula", "simulated"
TOP, BOTTOM = "shown at the top, truly not", "shown at the bottom, truly not"
LIMITS = 1.96  # standard errors of the simulation, for 95% limits


def tradeoff_plot(
    points: Sequence[Point],
    title: str,
    share: Fraction = Fraction(1, 10),
    area: str = "",
    chosen: Fraction | None = None,
) -> Any:
    """Root mean squared error, and misclassified cells, against ε; `chosen` marks an ε, `area` names the areas within
    which cells are ranked."""
    data = [_row(point) for point in points]
    within, part = f" of their {area}" if area else "", format_exact(100 * share)
    subtitle = [
        f"Left: error of a released statistic. Right: of the cells shown in the top or bottom {part}%{within},",
        "the share whose true values do not belong there; bars: 95% limits of the simulation.",
    ]
    panels = [_errors(data, points), _misclassified(data, points)]
    if chosen is not None:
        panels = [alt.layer(_mark(chosen), panel) for panel in panels]
    sized = [panel.properties(width=WIDTH, height=HEIGHT) for panel in panels]
    beside = alt.hconcat(*sized, spacing=28).resolve_scale(color="independent", shape="independent")
    plot = titled(beside, title, subtitle, offset=12)
    return plot.configure_legend(orient="top", title=None, labelFontSize=11, labelLimit=260)


def _row(point: Point) -> dict[str, Any]:
    """The data of one ε."""
    row = {"epsilon": float(point.epsilon), "exact": point.mse_exact**0.5, "rmse": point.mse**0.5}
    for name, value, error in (
        ("top", point.false_top, point.false_top_error),
        ("bottom", point.false_bottom, point.false_bottom_error),
    ):
        row |= {name: value, f"{name}_low": max(0.0, value - LIMITS * error), f"{name}_high": value + LIMITS * error}
    return row


def _errors(data: list[dict[str, Any]], points: Sequence[Point]) -> Any:
    base = chart(data)
    scale = alt.Scale(domain=[FORMULA, SIMULATED], range=[COLOURS[0], "#000000"])
    y = alt.Scale(type="log", nice=False, padding=6)
    heights = ends([row[name] for row in data for name in ("exact", "rmse")])
    axis = alt.Axis(format="~g", values=decades(*heights))
    shapes = alt.Shape("which:N", scale=alt.Scale(domain=[FORMULA, SIMULATED], range=["stroke", "circle"]))
    line = base.mark_line(strokeWidth=2).encode(
        x=_epsilon(points),
        y=alt.Y("exact:Q", scale=y, axis=axis, title="root mean squared error (log scale)"),
        color=alt.Color("which:N", scale=scale),
    )
    dots = base.mark_point(size=34, filled=False, strokeWidth=1.3, opacity=1).encode(
        x=_epsilon(points), y=alt.Y("rmse:Q", scale=y, axis=axis), color=alt.Color("which:N", scale=scale), shape=shapes
    )
    return alt.layer(line.transform_calculate(which=f"'{FORMULA}'"), dots.transform_calculate(which=f"'{SIMULATED}'"))


def _misclassified(data: list[dict[str, Any]], points: Sequence[Point]) -> Any:
    base = chart(data)
    scale = alt.Scale(domain=[TOP, BOTTOM], range=[COLOURS[1], COLOURS[2]])
    layers = []
    for name, label in (("top", TOP), ("bottom", BOTTOM)):
        mine = base.transform_calculate(which=f"'{label}'")
        colour = alt.Color("which:N", scale=scale)
        y = alt.Y(f"{name}:Q", title="misclassified cells", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0))
        bars = mine.mark_rule(strokeWidth=3, opacity=0.35).encode(
            x=_epsilon(points), y=alt.Y(f"{name}_low:Q"), y2=f"{name}_high:Q", color=colour
        )
        line = mine.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=28)).encode(
            x=_epsilon(points), y=y, color=colour
        )
        layers += [line, bars]
    return alt.layer(*layers)


def _epsilon(points: Sequence[Point]) -> Any:
    return log_axis(alt.X, "epsilon", "ε (log scale)", *ends([float(point.epsilon) for point in points]))


def _mark(chosen: Fraction) -> Any:
    rule = chart([{"epsilon": float(chosen)}])
    return rule.mark_rule(strokeDash=[4, 3], color="#666666").encode(x=alt.X("epsilon:Q"))
