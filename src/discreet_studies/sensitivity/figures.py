"""Figures 1 to 3 and the appendix figures of 004 made again, the choice of ε, and what guarantees cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from discreet.methods.sensitivity.utility.envelope_plots import cell_plot, envelope_plot
from discreet.methods.sensitivity.utility.tradeoff_plots import tradeoff_plot
from discreet.methods.sensitivity.utility.weighted import Fit
from discreet.privacy.exact import written
from discreet.report.plots import COLOURS, decades, ends
from discreet_studies.sensitivity.births import HIDDEN, INFUSED
from discreet_studies.sensitivity.cells import AT, EPSILON
from discreet_studies.sensitivity.formal import MOS, OLS, ONE
from discreet_studies.sensitivity.global_plot import global_plot
from discreet_studies.sensitivity.study import Study
from discreet_studies.sensitivity.suppression import Binned

RANKS = ("parents' income rank", "child's income rank")
SHADES = ("#000000", "#E69F00", "#B8860B", "#56B4E9", COLOURS[1], COLOURS[2])  # told apart by all eyes
BIRTH_RATE = "teenage birth rate, Black girls at parent rank .25"
Row = dict[str, Any]


def figures(study: Study) -> dict[str, Any]:
    """Every chart by the name of its file."""
    charts: dict[str, Any] = {}
    if study.example:
        made = study.example
        title = "Figure 1. One cell of twenty, its line, and the observation that moves it most"
        charts["figure-1"] = cell_plot(made.x, made.y, made.worst, AT, title, RANKS, synthetic=True)
    envelope = study.envelopes[0]
    title = f"Figure 2. Winsorised predictions of income ranks: {envelope.label}"
    charts["figure-2"] = envelope_plot(envelope.n, envelope.sensitivity, envelope.chi, title, synthetic=True)
    charts["figure-3"] = _births(study)
    charts["appendix-figure-1"] = global_plot(
        "Appendix Figure 1. Why no global bound exists: the less x varies, the further one point moves the line"
    )
    charts["appendix-figure-2"] = _counts(study)
    for number, one in enumerate(study.chosen, 1):
        title = f"Choosing ε: {one.label}; dashed: the paper's ε = 8"
        charts[f"choosing-epsilon-{number}"] = tradeoff_plot(one.points, title, area="county", chosen=EPSILON)
    if study.costs:
        charts["guarantee-costs"] = _costs(study)
    for chart in charts.values():
        chart.config.aria = False  # a description of every point would be most of the file
    return charts


def _births(study: Study) -> Any:
    """Both panels of Figure 3 on the same axes."""
    made = study.births
    both = (made.infused, made.hidden)
    x, y = _range([b.x for b in both]), _range([b.y for b in both])
    panels = [
        _panel(made.infused, made.slopes.infused, "A. Noise-infused", INFUSED, x, y),
        _panel(made.hidden, made.slopes.hidden, "B. Count-suppressed", HIDDEN, x, y),
    ]
    subtitle = [
        f"Tracts with poverty below 7%, up to twenty bins of equal weight; atlas of {study.data.children:,} children, "
        f"seed {study.data.seed}.",
    ]
    return _beside(panels, "Figure 3. Teenage births and single parents", subtitle)


def _panel(
    dots: Binned, fit: Fit, name: str, paper: tuple[float, float], x: tuple[float, float], y: tuple[float, float]
) -> Any:
    axes = _share("x", "share of single parents in the tract", x), _share("y", BIRTH_RATE, y)
    points = _dots(dots).encode(x=axes[0], y=axes[1])
    line = [{"x": end, "y": fit.at(end)} for end in (float(dots.x.min()), float(dots.x.max()))]
    drawn = alt.Chart(alt.InlineData(values=line)).mark_line(strokeWidth=2, color=COLOURS[1], clip=True)
    title = f"{name}: slope {fit.slope:.3f} ({fit.error:.3f}), paper {paper[0]} ({paper[1]})"
    layers = alt.layer(points, drawn.encode(x=axes[0], y=axes[1]))
    return layers.properties(width=360, height=280, title=alt.TitleParams(title, fontSize=12))


def _counts(study: Study) -> Any:
    panels = []
    for dots, name, axis in (
        (study.births.by_births, "A. Against births", "births of low-income Black girls in the tract, implied"),
        (study.births.by_girls, "B. Against girls", "low-income Black girls in the tract"),
    ):
        x = alt.X("x:Q", title=axis, axis=alt.Axis(grid=False, format="~s"))
        chart = _dots(dots).encode(x=x, y=_share("y", BIRTH_RATE, _range([dots.y])))
        panels.append(chart.properties(width=360, height=280, title=alt.TitleParams(name, fontSize=12)))
    subtitle = [
        "Noise-infused rates of all tracts with twenty Black girls or more; twenty bins of equally many tracts."
    ]
    return _beside(panels, "Appendix Figure 2. Rates against their numerators and denominators", subtitle)


def _costs(study: Study) -> Any:
    """A panel a size, a line a method."""
    rows: list[Row] = [
        {
            "size": f"about {c.size} children",
            "epsilon": float(c.epsilon),
            "rmse": c.row.against_ols.rmse,
            "method": name,
        }
        for c in study.costs
        if c.row.method not in (OLS, ONE)
        for name in [f"{c.row.method} (not formally private)" if c.row.method == MOS else c.row.method]
    ]
    names = list(dict.fromkeys(row["method"] for row in rows))
    low, high = ends([row["rmse"] for row in rows])
    epsilons = sorted({row["epsilon"] for row in rows})
    panels = []
    for place, size in enumerate(dict.fromkeys(row["size"] for row in rows)):
        mine = [row for row in rows if row["size"] == size]
        dash = alt.StrokeDash("method:N", scale=alt.Scale(domain=names, range=[[6, 3]] + [[1, 0]] * (len(names) - 1)))
        lines = (
            alt.Chart(alt.InlineData(values=mine))
            .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=26))
            .encode(
                x=alt.X(
                    "epsilon:Q", title="ε (log scale)", scale=alt.Scale(type="log", base=2, padding=6, nice=False),
                    axis=alt.Axis(values=epsilons, format="~g", grid=False),
                ),
                y=alt.Y(
                    "rmse:Q", title=None if place else "root mean squared error (log scale)",
                    scale=alt.Scale(type="log", domain=[low, high], nice=False, padding=6),
                    axis=alt.Axis(values=decades(low, high), format="~g"),
                ),
                color=alt.Color("method:N", scale=alt.Scale(domain=names, range=list(SHADES)), sort=None),
                strokeDash=dash,
            )
        )  # fmt: skip
        panels.append(lines.properties(width=250, height=260, title=alt.TitleParams(size, fontSize=12)))
    subtitle = ["Errors against the least-squares prediction at parent rank .25 of the same cells; income ranks."]
    chart = _beside(panels, "What a real guarantee costs at equal ε", subtitle)
    return chart.configure_legend(
        orient="bottom",
        columns=3,
        title=None,
        labelLimit=360,
        symbolType="stroke",
        symbolStrokeWidth=2.5,
        symbolSize=400,
    )


def _dots(dots: Binned) -> Any:
    values = [{"x": a, "y": b} for a, b in zip(dots.x.tolist(), dots.y.tolist(), strict=True)]
    return alt.Chart(alt.InlineData(values=values)).mark_point(size=42, filled=True, color=COLOURS[0], opacity=0.9)


def _share(which: str, name: str, limits: tuple[float, float]) -> Any:
    kind = alt.X if which == "x" else alt.Y
    scale = alt.Scale(domain=list(limits), nice=False, padding=8)
    return kind(f"{which}:Q", scale=scale, title=name, axis=alt.Axis(format=".0%", grid=False, tickCount=6))


def _range(columns: Sequence[Any]) -> tuple[float, float]:
    return min(float(column.min()) for column in columns), max(float(column.max()) for column in columns)


def _beside(panels: list[Any], title: str, subtitle: list[str]) -> Any:
    return (
        alt.hconcat(*panels, spacing=24)
        .properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=10))
        .configure_view(stroke="#cccccc")
    )


def data(study: Study, charts: dict[str, Any]) -> dict[str, tuple[tuple[str, ...], list[Sequence[object]]]]:
    """What each figure shows, for programs: columns and rows by the name of the file."""
    out: dict[str, tuple[tuple[str, ...], list[Sequence[object]]]] = {}
    if study.example:
        made = study.example
        rows: list[Sequence[object]] = [("child", x, y) for x, y in zip(made.x.tolist(), made.y.tolist(), strict=True)]
        rows.append(("added" if made.worst.added else "removed", *made.worst.point))
        out["figure-1"] = (("what", "parent_rank", "child_rank"), rows)
    envelope = study.envelopes[0]
    out["figure-2"] = (
        ("children", "sensitivity", "envelope"),
        [(n, s, envelope.chi / n) for n, s in zip(envelope.n.tolist(), envelope.sensitivity.tolist(), strict=True)],
    )
    out["figure-3"] = _binned(("A", study.births.infused), ("B", study.births.hidden))
    panels = charts["appendix-figure-1"].hconcat
    out["appendix-figure-1"] = (
        ("panel", "x", "y"),
        [(i, dot["x"], dot["y"]) for i, panel in enumerate(panels, 1) for dot in panel.layer[0].data.values],
    )
    out["appendix-figure-2"] = _binned(("A", study.births.by_births), ("B", study.births.by_girls))
    out["guarantee-costs"] = (
        ("children", "cells", "epsilon", "method", "formal", "rmse", "median_error", "without_answer"),
        [
            (
                c.size, c.cells, written(c.epsilon), c.row.method, c.row.formal,
                c.row.against_ols.rmse, c.row.against_ols.median, c.row.fallbacks,
            )
            for c in study.costs
        ],
    )  # fmt: skip
    return out


def _binned(*panels: tuple[str, Binned]) -> tuple[tuple[str, ...], list[Sequence[object]]]:
    rows: list[Sequence[object]] = [
        (name, *line)
        for name, dots in panels
        for line in zip(dots.x.tolist(), dots.y.tolist(), dots.weight.tolist(), strict=True)
    ]
    return ("panel", "x", "y", "weight"), rows
