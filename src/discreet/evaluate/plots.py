"""Pictures of protected numbers beside the truth. They show the truth: for simulations and for the inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from discreet.evaluate.earnings import Cells, Floats, Trial
from discreet.post.summary import Summary

NAMES = {"pseo": "Published rule (Eq. 4)", "shrunk": "Shrunk to similar cells"}
COLOURS = ["#0072B2", "#D55E00", "#009E73"]  # told apart by all eyes


def percentile_plot(
    cells: Cells, made: Trial, exact: Floats, percentages: Sequence[int], title: str, rows: int = 32
) -> Any:
    """Some published cells, the smallest on top: percentiles with their 90% limits, and the records' own as ticks."""
    shown = _spread(cells.sizes, made.pseo.published, rows)
    data = [
        line
        for rule, summary in ((NAMES["pseo"], made.pseo), (NAMES["shrunk"], made.shrunk))
        for line in _lines(rule, shown, cells, summary, exact, percentages)
    ]
    base = alt.Chart(alt.InlineData(values=data))
    place = alt.Y("cell:O", title="graduates in the cell", axis=alt.Axis(labelExpr=_labels(shown, cells)))
    scale = alt.Scale(type="log", domain=[10_000, 300_000], clamp=True)
    axis = alt.Axis(format="$,.0f", values=[10_000, 20_000, 50_000, 100_000, 200_000])
    colour = alt.Color("percentile:N", scale=alt.Scale(range=COLOURS), sort=None, title="percentile")

    def half(rule: str, labelled: bool) -> Any:
        mine = base.transform_filter(alt.datum.rule == rule)
        y = place if labelled else alt.Y("cell:O", title=None, axis=alt.Axis(labels=False, ticks=False))
        x = alt.X("estimate:Q", scale=scale, axis=axis, title="earnings a year")
        limits = mine.mark_rule(strokeWidth=2.5, opacity=0.45).encode(
            x=alt.X("low:Q", scale=scale, axis=axis, title="earnings a year"), x2="high:Q", y=y, color=colour
        )
        points = mine.mark_circle(size=42, opacity=1).encode(x=x, y=y, color=colour)
        truth = mine.mark_tick(color="black", thickness=1.5, height=9).encode(
            x=alt.X("truth:Q", scale=scale, axis=axis, title="earnings a year"), y=y
        )
        return alt.layer(limits, points, truth).properties(width=380, height=15 * len(shown), title=rule)

    subtitle = (
        "Dots: published. Bars: 90% limits for the histogram without noise. Black ticks: the records' own percentiles."
    )
    return (
        alt.hconcat(half(NAMES["pseo"], True), half(NAMES["shrunk"], False))
        .properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start"))
        .configure_view(stroke="#cccccc")
    )


def _spread(sizes: Any, published: Any, rows: int) -> list[int]:
    """Published cells of all sizes, evenly by rank of size up to 500."""
    found = np.flatnonzero(published & (sizes <= 500) & (sizes > 0))
    ordered = found[np.argsort(sizes[found], kind="stable")]
    if not len(ordered):
        return []
    return [int(cell) for cell in ordered[np.linspace(0, len(ordered) - 1, min(rows, len(ordered))).astype(int)]]


def _lines(
    rule: str, shown: list[int], cells: Cells, summary: Summary, exact: Floats, percentages: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        {
            "rule": rule,
            "cell": place,
            "graduates": int(cells.sizes[cell]),
            "percentile": f"p{percentage}",
            "estimate": int(summary.percentiles[cell, p]),
            "low": int(summary.low[cell, p]),
            "high": int(summary.high[cell, p]),
            "truth": float(exact[cell, p]),
        }
        for place, cell in enumerate(shown)
        for p, percentage in enumerate(percentages)
    ]


def _labels(shown: list[int], cells: Cells) -> str:
    """Vega's expression for the size of the cell in each row."""
    return f"{[int(cells.sizes[cell]) for cell in shown]}[datum.value]"
