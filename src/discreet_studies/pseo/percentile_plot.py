"""Charts of protected percentiles and the true ones; they show true values, so only for simulations or internal use."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet.privacy.exact import format_exact
from discreet.report.plots import COLOURS, chart, titled
from discreet_studies.charts import Point
from discreet_studies.pseo.earnings import GraduateCells, Trial, synthetic_cells, trial

NAMES = {"pseo": "The Census Bureau's rule (pseo)", "shrunk": "Shrunk towards similar cells (shrunk)"}
POINTS = tuple(Fraction(percentage, 100) for percentage in (25, 50, 75))
MINIMUM = 30
LEAST = 10_000


def draw_percentiles(out: Path, rows: int, epsilon: Fraction, seed: int) -> list[Path]:
    """Plot published and true percentiles as SVG and PNG."""
    if rows < LEAST:
        raise ParameterError(f"{rows} records are too few to fill cells", where="rows", do=f"give at least {LEAST:,}")
    with tempfile.TemporaryDirectory() as folder:
        cells, families = synthetic_cells(Path(folder), rows, seed)
    drawn = trial(cells, families, POINTS, MINIMUM, epsilon, ReleaseKey.simulation("evaluate"))
    picture = percentile_plot(
        cells, drawn, POINTS, f"Simulation: synthetic graduates, epsilon {format_exact(epsilon)} per record"
    )
    out.mkdir(parents=True, exist_ok=True)
    paths = {out / "earnings.svg": 1.0, out / "earnings.png": 1.5}
    for path, scale in paths.items():
        picture.save(str(path), scale_factor=scale)
    return list(paths)


def percentile_plot(
    cells: GraduateCells, drawn: Trial, points: tuple[Fraction, ...], title: str, rows: int = 32
) -> Any:
    """Some published cells, the smallest on top: percentiles with their 90% confidence limits, and the truth twice: of
    the histogram without noise, the estimand of the limits, and of the records."""
    shown = _spread(cells.sizes, drawn.pseo.published, rows)
    base = chart(_points(shown, cells, drawn, points))
    colour = alt.Color("percentile:N", scale=alt.Scale(range=COLOURS), sort=None, title="percentile")
    labels = f"{[int(cells.sizes[cell]) for cell in shown]}[datum.value]"  # Vega expression: size of the cell in a row

    def half(rule: str, labelled: bool) -> Any:
        mine = base.transform_filter(alt.datum.rule == rule)
        axis = alt.Axis(labelExpr=labels) if labelled else alt.Axis(labels=False, ticks=False)
        y = alt.Y("cell:O", title="graduates in the cell" if labelled else None, axis=axis)
        limits = mine.mark_rule(strokeWidth=2.5, opacity=0.45).encode(x=_money("low"), x2="high:Q", y=y, color=colour)
        point = mine.mark_circle(size=42, opacity=1).encode(x=_money("estimate"), y=y, color=colour)
        tick = mine.mark_tick(color="black", thickness=1.5, height=9).encode(x=_money("without_noise"), y=y)
        cross = mine.mark_point(shape="diamond", size=30, color="black", strokeWidth=1).encode(x=_money("records"), y=y)
        return alt.layer(limits, point, tick, cross).properties(width=380, height=15 * len(shown), title=rule)

    subtitle = [
        "Dots: published. Bars: 90% confidence limits for the percentiles of the noise-free histogram (ticks).",
        "Diamonds: percentiles of the records.",
    ]
    return titled(alt.hconcat(half(NAMES["pseo"], True), half(NAMES["shrunk"], False)), title, subtitle)


def _money(field: str) -> alt.X:
    scale = alt.Scale(type="log", domain=[10_000, 300_000], clamp=True)
    axis = alt.Axis(format="$,.0f", values=[10_000, 20_000, 50_000, 100_000, 200_000])
    return alt.X(f"{field}:Q", scale=scale, axis=axis, title="yearly earnings")


def _spread(sizes: Any, published: Any, rows: int) -> list[int]:
    """Published cells of up to 500 graduates, evenly spaced by rank of size."""
    candidates = np.flatnonzero(published & (sizes <= 500) & (sizes > 0))
    ordered = candidates[np.argsort(sizes[candidates], kind="stable")]
    if not len(ordered):
        return []
    return [int(cell) for cell in ordered[np.linspace(0, len(ordered) - 1, min(rows, len(ordered))).astype(int)]]


def _points(shown: list[int], cells: GraduateCells, drawn: Trial, points: tuple[Fraction, ...]) -> list[Point]:
    without_noise, records = cells.noise_free(points), cells.raw(points)
    return [
        {
            "rule": NAMES[rule],
            "cell": place,
            "graduates": int(cells.sizes[cell]),
            "percentile": f"p{format_exact(100 * point)}",
            "estimate": int(summary.percentiles[cell, p]),
            "low": int(summary.low[cell, p]),
            "high": int(summary.high[cell, p]),
            "without_noise": float(without_noise[cell, p]),
            "records": float(records[cell, p]),
        }
        for rule, summary in (("pseo", drawn.pseo), ("shrunk", drawn.shrunk))
        for place, cell in enumerate(shown)
        for p, point in enumerate(points)
    ]
