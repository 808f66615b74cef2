"""The assessment of a cube as pictures (002, §3.4 and Table 4). They show the truth: for simulations and the inside."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import altair as alt

from discreet.methods.hypercube.assessment.comparison import BOTTOM_UP, EACH, SPLIT, Comparison, ErrorLine
from discreet.methods.hypercube.assessment.cubes import Assessment
from discreet.methods.hypercube.assessment.report import by, moved_most
from discreet.report.plots import COLOURS, HEIGHT, WIDTH, decades, ends

LOOKS = {  # colour, dash, shape: told apart without colour, too
    BOTTOM_UP: (COLOURS[0], [1, 0], "circle"),
    SPLIT: (COLOURS[1], [1, 0], "triangle-up"),
    EACH: (COLOURS[1], [4, 3], "diamond"),
}
NAMED, ROW, LISTED = 20, 16, 270  # two-way tables that are named, the height of a name, and its width
RISEN, FALLEN = "near zero, shown as more", "more, shown near zero"


def error_plot(comparison: Comparison, title: str) -> Any:
    """Root mean squared error by dimension, and the share of sums that disagree with the coarser table."""
    ways = [way.name for way in comparison.strategies]
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
        title="root mean squared error, records (log scale)",
    )
    nonadditive = alt.Y(
        "nonadditive:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"), title="sums that do not add up"
    )
    left, right = _lines(errors, ways, most, rms), _lines(sums, ways, most, nonadditive)
    subtitle = [
        "Left: error of a count in tables by so many variables. An error of zero is not drawn.",
        "Right: cells of coarser tables that are not the sum of the finer table's cells.",
    ]
    return _finished(alt.hconcat(left, right, spacing=28), title, subtitle)


def _row(line: ErrorLine) -> dict[str, Any]:
    return {"way": line.strategy, "dimension": line.dimension}


def _lines(data: list[dict[str, Any]], ways: Sequence[str], most: int, y: alt.Y) -> Any:
    base = alt.Chart(alt.InlineData(values=data))
    colours, dashes, shapes = zip(*(LOOKS[way] for way in ways), strict=True)
    colour = alt.Color("way:N", scale=alt.Scale(domain=ways, range=list(colours)))
    dash = alt.StrokeDash("way:N", scale=alt.Scale(domain=ways, range=list(dashes)))
    shape = alt.Shape("way:N", scale=alt.Scale(domain=ways, range=list(shapes)))
    line = base.mark_line(strokeWidth=2).encode(x=_dimension(most), y=y, color=colour, strokeDash=dash)
    dots = base.mark_point(size=40, filled=True, opacity=1).encode(x=_dimension(most), y=y, color=colour, shape=shape)
    return alt.layer(line, dots).properties(width=WIDTH, height=HEIGHT)


def near_zero_plot(assessment: Assessment, title: str) -> Any:
    """By dimension, the share of near-zero cells that are shown as more, and of the others that are shown near zero."""
    data = [
        {"dimension": one.dimension, "which": which, "share": share}
        for one in assessment.dimensions
        for which, share in ((RISEN, one.moves.share_to_nonzero), (FALLEN, one.moves.share_to_zero))
        if not isnan(share)  # there is no such cell
    ]
    scale = alt.Scale(domain=[RISEN, FALLEN], range=[COLOURS[0], COLOURS[1]])
    base = alt.Chart(alt.InlineData(values=data))
    encoded = {
        "x": _dimension(len(assessment.shape)),
        "y": alt.Y("share:Q", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0), title="share of such cells"),
        "color": alt.Color("which:N", scale=scale),
    }
    shape = alt.Shape("which:N", scale=alt.Scale(domain=[RISEN, FALLEN], range=["circle", "square"]))
    dots = base.mark_point(size=40, filled=True, opacity=1).encode(**encoded, shape=shape)
    chart = alt.layer(base.mark_line(strokeWidth=2).encode(**encoded), dots)
    subtitle = [
        f"Near zero: below {assessment.limit:,.6g} in absolute value. The more cells move, the less a zero says."
    ]
    return _finished(chart.properties(width=WIDTH, height=HEIGHT), title, subtitle)


def overlap_plot(assessment: Assessment, title: str) -> Any:
    """Mean overlap of confidence intervals: each table a dot, each dimension's cells together a line."""
    tables, together = (
        [
            {"dimension": one.dimension, "overlap": one.overlaps.mean}
            for one in found
            if one.overlaps and not isnan(one.overlaps.mean)
        ]
        for found in (assessment.tables, assessment.dimensions)
    )
    low = min([0.0, *(row["overlap"] for row in tables)])
    y = alt.Y("overlap:Q", scale=alt.Scale(domain=[low, 1]), title="mean overlap of intervals")
    x = _dimension(len(assessment.shape))
    dots = alt.Chart(alt.InlineData(values=tables)).mark_circle(size=22, color="#888888", opacity=0.4).encode(x=x, y=y)
    line = (
        alt.Chart(alt.InlineData(values=together))
        .mark_line(strokeWidth=2, color=COLOURS[0], point=alt.OverlayMarkDef(size=36, color=COLOURS[0]))
        .encode(x=x, y=y)
    )
    subtitle = ["Dots: tables. Line: all their cells together. 1: the same interval; below 0: apart."]
    return _finished(alt.layer(dots, line).properties(width=WIDTH, height=HEIGHT), title, subtitle)


def association_plot(assessment: Assessment, title: str, names: Sequence[str]) -> Any:
    """Cramér's V of each two-way table, before and after; on the line nothing has changed. Tables are numbered, those
    that changed most first, and the first are named."""
    pairs = moved_most(assessment)
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
    some = f"; the {NAMED} that changed most are named" if len(data) > NAMED else ""
    subtitle = [f"Each dot a two-way table{some}. Above the line: protection adds association."]
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
