"""Pictures of protected numbers beside the truth. They show the truth: for simulations and for the inside."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from discreet.post.summary import Summary
from discreet.privacy.exact import written
from discreet.report.plots import COLOURS
from discreet_studies.pseo.earnings import Cells, Floats, Trial

NAMES = {"pseo": "The Census Bureau's rule (pseo)", "shrunk": "Drawn to similar cells (shrunk)"}


def percentile_plot(cells: Cells, made: Trial, points: tuple[Fraction, ...], title: str, rows: int = 32) -> Any:
    """Some published cells, the smallest on top: percentiles with their 90% limits, and the truth twice: that of the
    histogram without noise, which the limits are about, and that of the records."""
    shown = _spread(cells.sizes, made.pseo.published, rows)
    truths = cells.noise_free(points), cells.raw(points)
    data = [
        line
        for rule, summary in ((NAMES["pseo"], made.pseo), (NAMES["shrunk"], made.shrunk))
        for line in _lines(rule, shown, cells, summary, truths, points)
    ]
    base = alt.Chart(alt.InlineData(values=data))
    colour = alt.Color("percentile:N", scale=alt.Scale(range=COLOURS), sort=None, title="percentile")

    def half(rule: str, labelled: bool) -> Any:
        mine = base.transform_filter(alt.datum.rule == rule)
        axis = alt.Axis(labelExpr=_labels(shown, cells)) if labelled else alt.Axis(labels=False, ticks=False)
        y = alt.Y("cell:O", title="graduates in the cell" if labelled else None, axis=axis)
        limits = mine.mark_rule(strokeWidth=2.5, opacity=0.45).encode(x=_money("low"), x2="high:Q", y=y, color=colour)
        point = mine.mark_circle(size=42, opacity=1).encode(x=_money("estimate"), y=y, color=colour)
        tick = mine.mark_tick(color="black", thickness=1.5, height=9).encode(x=_money("without_noise"), y=y)
        cross = mine.mark_point(shape="diamond", size=30, color="black", strokeWidth=1).encode(x=_money("records"), y=y)
        layers = alt.layer(limits, point, tick, cross)
        return layers.properties(width=380, height=15 * len(shown), title=rule)

    subtitle = [
        "Dots: published. Bars: 90% limits for the histogram without noise, whose percentiles are the ticks.",
        "Diamonds: the percentiles of the records themselves.",
    ]
    return (
        alt.hconcat(half(NAMES["pseo"], True), half(NAMES["shrunk"], False))
        .properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start"))
        .configure_view(stroke="#cccccc")
    )


def _money(field: str) -> alt.X:
    scale = alt.Scale(type="log", domain=[10_000, 300_000], clamp=True)
    axis = alt.Axis(format="$,.0f", values=[10_000, 20_000, 50_000, 100_000, 200_000])
    return alt.X(f"{field}:Q", scale=scale, axis=axis, title="earnings a year")


def _spread(sizes: Any, published: Any, rows: int) -> list[int]:
    """Published cells of all sizes, evenly by rank of size up to 500."""
    found = np.flatnonzero(published & (sizes <= 500) & (sizes > 0))
    ordered = found[np.argsort(sizes[found], kind="stable")]
    if not len(ordered):
        return []
    return [int(cell) for cell in ordered[np.linspace(0, len(ordered) - 1, min(rows, len(ordered))).astype(int)]]


def _lines(
    rule: str,
    shown: list[int],
    cells: Cells,
    summary: Summary,
    truths: tuple[Floats, Floats],
    points: tuple[Fraction, ...],
) -> list[dict[str, Any]]:
    return [
        {
            "rule": rule,
            "cell": place,
            "graduates": int(cells.sizes[cell]),
            "percentile": f"p{written(100 * point)}",
            "estimate": int(summary.percentiles[cell, p]),
            "low": int(summary.low[cell, p]),
            "high": int(summary.high[cell, p]),
            "without_noise": float(truths[0][cell, p]),
            "records": float(truths[1][cell, p]),
        }
        for place, cell in enumerate(shown)
        for p, point in enumerate(points)
    ]


def _labels(shown: list[int], cells: Cells) -> str:
    """Vega's expression for the size of the cell in each row."""
    return f"{[int(cells.sizes[cell]) for cell in shown]}[datum.value]"
