"""Charts of Table 4: variances by dimension, variance remaining after calibration, and convergence by tolerance."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from discreet.post.cubes.margins import Floats
from discreet.report.plots import COLOURS, chart, titled
from discreet_studies.charts import SHADES, SOLID, Point, colour_of, distinct, log_y
from discreet_studies.harness import Drawing
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.simulation import SHARE
from discreet_studies.hypercube.study import HypercubeStudy
from discreet_studies.hypercube.tolerance_search import BEFORE, at_paper_share
from discreet_studies.texts import NOTHING

WITHOUT, RAKED, BEST = "without calibration, converged runs", "raked, converged runs", "least squares, the same runs"
PAPER_WITHOUT, PAPER_WITH = "paper, without", "paper, with"
LOOKS: dict[str, tuple[str, float, list[int], str]] = {  # colour, width of a line, dash, mark
    WITHOUT: ("#9ecae1", 7, SOLID, "circle"),
    RAKED: (COLOURS[1], 3, SOLID, "square"),
    BEST: (COLOURS[2], 1.5, [5, 3], "triangle-up"),
    PAPER_WITHOUT: ("#000000", 0, SOLID, "circle"),
    PAPER_WITH: ("#000000", 0, SOLID, "diamond"),
}
FINEST, COARSEST, A_DECADE = -8, 0, 8  # of tolerances


def figures(study: HypercubeStudy) -> dict[str, Drawing]:
    """Every chart, by file name."""
    charts = (
        ("variance-by-dimension", variance_rows(study), _variances),
        ("variance-left", left_rows(study), _left),
        ("convergence", share_rows(study), _convergence),
    )
    return {name: Drawing.of(draw(study, rows), rows) for name, rows, draw in charts}


def variance_rows(study: HypercubeStudy) -> list[Point]:
    """Variances by dimension, simulated and published, all over converged runs."""
    return [
        {"series": name, "dimension": d, "variance": float(value)}
        for name, values in _series(study).items()
        for d, value in enumerate(values, 1)
        if value > NOTHING
    ]


def left_rows(study: HypercubeStudy) -> list[Point]:
    """Variance with calibration relative to without; the paper's where three digits are printed."""
    series = _series(study)
    pairs = {RAKED: WITHOUT, BEST: WITHOUT, PAPER_WITH: PAPER_WITHOUT}
    return [
        {"series": name, "dimension": d, "left": float(after / before)}
        for name, base in pairs.items()
        for d, (after, before) in enumerate(zip(series[name], series[base], strict=True), 1)
        if before > NOTHING and (name != PAPER_WITH or d <= BEFORE.stop)
    ]


def _series(study: HypercubeStudy) -> dict[str, Floats]:
    raked = at_paper_share(study.simulated.raked)
    return {
        WITHOUT: raked.before.mean,
        RAKED: raked.after.mean,
        BEST: study.simulated.least_squares_where(raked.tolerance).mean,
        PAPER_WITHOUT: np.array(printed.WITHOUT, np.float64),
        PAPER_WITH: np.array(printed.WITH, np.float64),
    }


def share_rows(study: HypercubeStudy) -> list[Point]:
    """The share of runs that meet every margin, by tolerance and set of cases."""
    steps = np.arange(FINEST * A_DECADE, COARSEST * A_DECADE + 1) / A_DECADE
    return [
        {"cases": f"{one.label} (seed {one.seed})", "tolerance": float(10**step), "share": one.raked.share(10**step)}
        for one in study.cases
        for step in steps
    ]


def _variances(study: HypercubeStudy, rows: list[Point]) -> Any:
    y = log_y("variance", "variance of noise (log scale)", [row["variance"] for row in rows])
    subtitle = [
        f"Noise in all cells of all tables of a dimension, pooled; {study.runs:,} runs, of which those that converge",
        "count. With exact one-way controls no noise remains at dimension 1, which a log scale cannot show.",
    ]
    return _framed(
        _by_dimension(rows, y), "Table 4. Noise variance without and with calibration to one-way tables", subtitle
    )


def _left(_: HypercubeStudy, rows: list[Point]) -> Any:
    y = alt.Y("left:Q", title="variance with / without calibration", axis=alt.Axis(format=".0%"))
    subtitle = ["1 − reduction, over the same converged runs. Above 100%: calibration adds noise."]
    return _framed(_by_dimension(rows, y), "Table 4. Noise variance remaining after calibration", subtitle)


def _by_dimension(rows: list[Point], y: alt.Y) -> Any:
    """Lines for our series, the widest at the bottom so that coinciding lines remain visible; points for the paper."""
    names = distinct(row["series"] for row in rows)
    shades, widths, dashes, marks = zip(*(LOOKS[name] for name in names), strict=True)
    x = alt.X("dimension:Q", title="variables of the table", axis=alt.Axis(values=list(range(1, 11)), grid=False))
    colour = colour_of("series", names, shades)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=list(marks)), sort=None)
    layers = []
    for name, width, dash in zip(names, widths, dashes, strict=True):
        mine = chart(row for row in rows if row["series"] == name)
        if width:
            layers.append(mine.mark_line(strokeWidth=width, strokeDash=dash).encode(x=x, y=y, color=colour))
        points = mine.mark_point(size=55, strokeWidth=1.5, filled=bool(width), opacity=1)
        layers.append(points.encode(x=x, y=y, color=colour, shape=shape))
    return alt.layer(*layers)


def _convergence(_: HypercubeStudy, rows: list[Point]) -> Any:
    x = alt.X(
        "tolerance:Q",
        title="tolerance: largest |sum − target| / max(1, target) over all margins (log scale)",
        scale=alt.Scale(type="log", domain=[10.0**FINEST, 10.0**COARSEST], nice=False),
        axis=alt.Axis(values=[10.0**e for e in range(FINEST, COARSEST + 1)], format="~e", grid=False),
    )
    y = alt.Y("share:Q", title="runs converged after ten cycles", axis=alt.Axis(format=".0%"))
    lines = chart(rows).mark_line(strokeWidth=2, interpolate="step-after")
    lines = lines.encode(x=x, y=y, color=colour_of("cases", distinct(row["cases"] for row in rows), SHADES))
    rule = chart([{"share": SHARE}]).mark_rule(strokeDash=[5, 4]).encode(y="share:Q")
    subtitle = [
        f"Dashed: the paper's {SHARE:.1%}. The share depends on the rule and on the cases; the paper states neither."
    ]
    return _framed(alt.layer(lines, rule), "Share of runs that converge, by tolerance and set of cases", subtitle)


def _framed(layers: Any, title: str, subtitle: list[str]) -> Any:
    picture = titled(layers.properties(width=560, height=320), title, subtitle, offset=10)
    return picture.configure_legend(orient="bottom", columns=2, title=None, labelLimit=360, symbolStrokeWidth=2.5)
