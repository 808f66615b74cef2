"""Plots of the assessment of a cube (Li & Krenzke 2020, §3.4 and Table 4). They show confidential values: for
simulations and the confidential side."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import altair as alt

from discreet.methods.hypercube.assessment.comparison import BOTTOM_UP, EACH, SPLIT, Comparison, ErrorLine
from discreet.methods.hypercube.assessment.cubes import Assessment
from discreet.methods.hypercube.assessment.report import by, largest_changes
from discreet.report.plots import COLOURS, HEIGHT, WIDTH, decades, ends

MARKS = {  # colour, dash, shape: distinguishable without colour
    BOTTOM_UP: (COLOURS[0], [1, 0], "circle"),
    SPLIT: (COLOURS[1], [1, 0], "triangle-up"),
    EACH: (COLOURS[1], [4, 3], "diamond"),
}
NAMED, ROW, LISTED = 20, 16, 270  # two-way tables listed by name, height and width of a name
TO_NONZERO, TO_ZERO = "near zero, shown non-zero", "non-zero, shown near zero"


def error_plot(comparison: Comparison, title: str) -> Any:
    """Root mean squared error from noise by dimension, and the share of coarser cells that are not additive."""
    strategies = [strategy.name for strategy in comparison.strategies]
    most = max(line.dimension for line in comparison.lines)
    errors = [_row(line) | {"rms": line.rms} for line in comparison.lines if line.rms > 0]  # a log axis has no zero
    sums = [_row(line) | {"nonadditive": line.nonadditive} for line in comparison.lines if not isnan(line.nonadditive)]
    low, high = ends([line.rms for line in comparison.lines if line.rms > 0] or [1.0])
    ticks = decades(low, high)
    few = [tick for tick in ticks if f"{tick:e}".startswith("1")] if len(ticks) > 9 else ticks
    axis = alt.Axis(format="~g", values=few)
    rms = alt.Y(
        "rms:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False, padding=6),
        axis=axis,
        title="RMSE from noise, records (log scale)",
    )
    nonadditive = alt.Y(
        "nonadditive:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"), title="cells that are not additive"
    )
    left, right = _lines(errors, strategies, most, rms), _lines(sums, strategies, most, nonadditive)
    subtitle = [
        "Left: root mean squared error of a record count, from noise alone (no sampling error). Zeros are not drawn.",
        "Right: share of cells of coarser tables that differ from the sum of the finer table's cells.",
    ]
    return _finished(alt.hconcat(left, right, spacing=28), title, subtitle)


def _row(line: ErrorLine) -> dict[str, Any]:
    return {"strategy": line.strategy, "dimension": line.dimension}


def _lines(data: list[dict[str, Any]], strategies: Sequence[str], most: int, y: alt.Y) -> Any:
    base = alt.Chart(alt.InlineData(values=data))
    colours, dashes, shapes = zip(*(MARKS[strategy] for strategy in strategies), strict=True)
    colour = alt.Color("strategy:N", scale=alt.Scale(domain=strategies, range=list(colours)))
    dash = alt.StrokeDash("strategy:N", scale=alt.Scale(domain=strategies, range=list(dashes)))
    shape = alt.Shape("strategy:N", scale=alt.Scale(domain=strategies, range=list(shapes)))
    line = base.mark_line(strokeWidth=2).encode(x=_dimension(most), y=y, color=colour, strokeDash=dash)
    dots = base.mark_point(size=40, filled=True, opacity=1).encode(x=_dimension(most), y=y, color=colour, shape=shape)
    return alt.layer(line, dots).properties(width=WIDTH, height=HEIGHT)


def near_zero_plot(assessment: Assessment, title: str) -> Any:
    """By dimension, the shares of near-zero cells shown non-zero and of other cells shown near zero."""
    data = [
        {"dimension": one.dimension, "which": which, "share": share}
        for one in assessment.dimensions
        for which, share in ((TO_NONZERO, one.zero_changes.share_to_nonzero), (TO_ZERO, one.zero_changes.share_to_zero))
        if not isnan(share)  # no such cells
    ]
    scale = alt.Scale(domain=[TO_NONZERO, TO_ZERO], range=[COLOURS[0], COLOURS[1]])
    base = alt.Chart(alt.InlineData(values=data))
    encoded = {
        "x": _dimension(len(assessment.shape)),
        "y": alt.Y("share:Q", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0), title="share of these cells"),
        "color": alt.Color("which:N", scale=scale),
    }
    shape = alt.Shape("which:N", scale=alt.Scale(domain=[TO_NONZERO, TO_ZERO], range=["circle", "square"]))
    dots = base.mark_point(size=40, filled=True, opacity=1).encode(**encoded, shape=shape)
    chart = alt.layer(base.mark_line(strokeWidth=2).encode(**encoded), dots)
    subtitle = [
        f"Near zero: below {assessment.limit:,.6g} in absolute value. Changes are by noise and calibration.",
        "The more cells change, the less an adversary learns from a zero.",
    ]
    return _finished(chart.properties(width=WIDTH, height=HEIGHT), title, subtitle)


def overlap_plot(assessment: Assessment, title: str) -> Any:
    """Mean overlap of confidence intervals: a dot per table, a line for the pooled cells of each dimension."""
    tables, together = (
        [
            {"dimension": one.dimension, "overlap": one.overlaps.mean}
            for one in parts
            if one.overlaps and not isnan(one.overlaps.mean)
        ]
        for parts in (assessment.tables, assessment.dimensions)
    )
    low = min([0.0, *(row["overlap"] for row in tables)])
    y = alt.Y("overlap:Q", scale=alt.Scale(domain=[low, 1]), title="mean overlap of 95% intervals")
    x = _dimension(len(assessment.shape))
    dots = alt.Chart(alt.InlineData(values=tables)).mark_circle(size=22, color="#888888", opacity=0.4).encode(x=x, y=y)
    line = (
        alt.Chart(alt.InlineData(values=together))
        .mark_line(strokeWidth=2, color=COLOURS[0], point=alt.OverlayMarkDef(size=36, color=COLOURS[0]))
        .encode(x=x, y=y)
    )
    subtitle = [
        "True intervals cover sampling error; protected ones sampling error and noise.",
        "Dots: tables. Line: cells of all tables, pooled. 1: identical intervals; below 0: disjoint.",
    ]
    return _finished(alt.layer(dots, line).properties(width=WIDTH, height=HEIGHT), title, subtitle)


def association_plot(assessment: Assessment, title: str, names: Sequence[str]) -> Any:
    """Cramér's V of each two-way table before and after protection; on the diagonal nothing changes. Tables are
    numbered in descending order of change, and the first are listed by name."""
    pairs = largest_changes(assessment)
    data = [
        {"before": before, "after": after, "number": number, "table": by(one, names)}
        for number, (one, (before, after)) in enumerate(pairs, 1)
    ]
    most = min(1.0, 1.05 * max([0.05, *(value for _, both in pairs for value in both)]))
    scale, side = alt.Scale(domain=[0, most], nice=False), HEIGHT * 1.4
    x = alt.X("before:Q", scale=scale, title="Cramér's V, true")
    y = alt.Y("after:Q", scale=scale, title="Cramér's V, protected")
    named = data[:NAMED]
    corner = [{"before": end, "after": end} for end in (0, most)]
    line = alt.Chart(alt.InlineData(values=corner)).mark_line(strokeDash=[4, 3], color="#666666").encode(x=x, y=y)
    dots = alt.Chart(alt.InlineData(values=data)).mark_circle(size=36, color=COLOURS[0], opacity=0.7)
    marks = alt.Chart(alt.InlineData(values=named)).mark_text(align="left", dx=5, dy=-5, fontSize=10)
    left = alt.layer(line, dots.encode(x=x, y=y, tooltip="table:N"), marks.encode(x=x, y=y, text="number:Q"))
    listed = [{"number": row["number"], "text": f"{row['number']}  {row['table']}"} for row in named]
    right = (
        alt.Chart(alt.InlineData(values=listed))
        .mark_text(align="left", x=0, fontSize=11, limit=LISTED)
        .encode(y=alt.Y("number:O", axis=None), text="text:N")
        .properties(width=LISTED, height=min(side, ROW * max(1, len(listed))), view=alt.ViewConfig(stroke=None))
    )
    some = f"; the {NAMED} with the largest changes are listed" if len(data) > NAMED else ""
    subtitle = [
        f"Each dot is a two-way table{some}. Above the line: noise and calibration raise the measured association."
    ]
    return _finished(alt.hconcat(left.properties(width=side, height=side), right, spacing=16), title, subtitle)


def _dimension(most: int) -> alt.X:
    scale = alt.Scale(domain=[1, max(2, most)], nice=False, padding=10)
    axis = alt.Axis(values=list(range(1, most + 1)), format="d", grid=False)
    return alt.X("dimension:Q", scale=scale, axis=axis, title="variables of the table")


def _finished(chart: Any, title: str, subtitle: list[str]) -> Any:
    return (
        chart.properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=12))
        .configure_view(stroke="#cccccc")
        .configure_legend(orient="top", title=None, labelFontSize=11, labelLimit=260, columns=2)
    )
