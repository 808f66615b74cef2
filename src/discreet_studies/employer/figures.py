"""Figures 1 to 5 of Haney et al. 2017, and the ratios as a function of the parameters of noise infusion."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any, NamedTuple

import altair as alt

from discreet.privacy.exact import format_exact
from discreet.report.plots import chart, titled
from discreet_studies.charts import Point, panel
from discreet_studies.employer.infusion_parameters import bounds
from discreet_studies.employer.mechanism_grid import CANDIDATES, GEOMETRIC, LABELS, STRONG, TRUNCATED
from discreet_studies.employer.ratios import OCCUPIED
from discreet_studies.employer.study import EmployerStudy
from discreet_studies.employer.workloads import ALL, PARTS
from discreet_studies.harness import Drawing

SHADES = (
    "#B8A800",
    "#5DC863",
    "#21908C",
    "#3B528B",
    "#440154",
    "#B0127B",
)  # distinguishable with any colour vision, dark enough
WIDTH, HEIGHT = 118, 84
DECADES = [10.0**power for power in range(-4, 6)]
TITLES = {
    "summary": "L1 error relative to noise infusion, all places",
    "figure-1": "Figure 1. L1 error relative to noise infusion: place × sector × ownership (workload 1)",
    "figure-2": "Figure 2. Spearman's correlation with the ranking by noise infusion: all jobs (ranking 1)",
    "figure-3": "Figure 3. L1 error relative to noise infusion: single queries by sex and education (workload 2)",
    "figure-4": (
        "Figure 4. L1 error relative to noise infusion: marginal by sex and education (workload 3); weak: ε/8 per cell"
    ),
    "figure-5": "Figure 5. Spearman's correlation with the ranking by noise infusion: women with a degree (ranking 2)",
}
WORKLOAD_NAMES = {1: "establishments", 2: "single queries", 3: "by sex, education"}
SWEEP_TITLE = "L1 ratios of workload 1 by parameters of noise infusion (α = .1); dashed: the paper's bounds"
FEW_TICKS = alt.Axis(values=[0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30], format="~g")
RATIO_OF = {"figure-1": 1, "figure-3": 2, "figure-4": 3}  # figure -> workload
RANKING_OF = {"figure-2": 1, "figure-5": 2}  # figure -> ranking
PEOPLE = {"all": "all places", **{part: f"{part} people" for part in PARTS[1:]}}


def figures(study: EmployerStudy) -> dict[str, Drawing]:
    """Every chart, by file name."""
    names = [name for name in TITLES if name != "summary"]
    charts = {name: figure(study, name) for name in names}
    charts |= {"summary": summary_figure(study), "infusion-parameters": sweep_figure(study)}
    return {name: Drawing(one) for name, one in charts.items()}


def figure(study: EmployerStudy, name: str) -> Any:
    """Panels by stratum and mechanism; ε on the x axis, a line per α (θ for truncation); cells with establishments."""
    points = [point | {"row": point["people"]} for point in _points(study, name)]
    return _finished(_groups(study, points, list(PEOPLE.values()), ratio=name in RATIO_OF), study, TITLES[name])


def summary_figure(study: EmployerStudy) -> Any:
    """The three workloads in rows, all places together."""
    points = [
        point | {"row": WORKLOAD_NAMES[workload]}
        for name, workload in RATIO_OF.items()
        for point in _points(study, name)
        if point["people"] == PEOPLE[ALL] and point["mechanism"] != LABELS[STRONG]
    ]
    return _finished(_groups(study, points, list(WORKLOAD_NAMES.values()), ratio=True), study, TITLES["summary"])


def _groups(study: EmployerStudy, points: list[Point], rows: list[str], *, ratio: bool) -> Any:
    alphas, thetas = [format_exact(alpha) for alpha in study.grid.alphas], [str(theta) for theta in study.grid.thetas]
    labels = [candidate.label for candidate in CANDIDATES]
    labels += [LABELS[STRONG]] if any(point["mechanism"] == LABELS[STRONG] for point in points) else []
    groups = (
        ColumnGroup(labels, "α", dict(zip(alphas, SHADES[1:], strict=False))),
        ColumnGroup([LABELS[TRUNCATED]], "θ", dict(zip(thetas, SHADES, strict=False))),
        ColumnGroup([LABELS[GEOMETRIC]], None, {"": "#666666"}),
    )
    charts = [_panels(study, points, rows, group, ratio=ratio, first=group is groups[0]) for group in groups]
    return alt.hconcat(*charts, spacing=12).resolve_scale(color="independent", y="independent")


def _points(study: EmployerStudy, name: str) -> Iterator[Point]:
    wanted = {**RATIO_OF, **RANKING_OF}[name]
    ratios = ((row.workload, row.ratio, row) for row in study.ratios)
    ranked = ((row.ranking, row.infusion, row) for row in study.correlations)
    for number, value, row in ratios if name in RATIO_OF else ranked:
        if number == wanted and row.cells == OCCUPIED and row.epsilon and not isnan(value):
            yield {
                "mechanism": LABELS.get(row.mechanism, row.mechanism),
                "people": PEOPLE[row.stratum],
                "epsilon": format_exact(row.epsilon),
                "of": str(row.theta) if row.theta else "" if row.alpha is None else format_exact(row.alpha),
                "value": value,
            }


class ColumnGroup(NamedTuple):
    """Mechanisms in adjacent columns, the parameter that their lines show, and the lines' colours."""

    columns: list[str]
    legend: str | None
    colours: dict[str, str]


def _panels(
    study: EmployerStudy, points: list[Point], rows: list[str], group: ColumnGroup, *, ratio: bool, first: bool
) -> Any:
    """A panel per row and mechanism; ratios have a reference line at 1."""
    mine = [point for point in points if point["mechanism"] in group.columns]
    values = [point["value"] for point in mine]
    limits = [min(0.7, *values) / 1.2, max(1.4, *values) * 1.2] if ratio else [min(0.0, *values), 1.0]
    scale = alt.Scale(type="log", domain=limits, nice=False) if ratio else alt.Scale(domain=limits, nice=False)
    ticks = alt.Axis(values=DECADES if ratio else [0, 0.5, 1], format="~g")
    order = [format_exact(epsilon) for epsilon in study.grid.epsilons]
    colours = alt.Scale(domain=list(group.colours), range=list(group.colours.values()))
    legend = alt.Legend(title=group.legend) if group.legend else None
    lines = alt.Chart().mark_line(point=alt.OverlayMarkDef(size=20), strokeWidth=1.7)
    lines = lines.encode(
        x=alt.X("epsilon:O", sort=order, title="ε", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y("value:Q", scale=scale, title=None, axis=ticks),
        color=alt.Color("of:N", scale=colours, legend=legend),
    )
    one = alt.Chart().mark_rule(strokeDash=[4, 3], color="#333333").encode(y=alt.datum(1))
    layers = alt.layer(lines, one) if ratio else alt.layer(lines)
    head = alt.Header(title=None, labelExpr="split(datum.label, ', ')", labelFontSize=11, labelFontWeight="bold")
    side = alt.Header(title=None, labelFontSize=11, labelFontWeight="bold", labels=first)
    return layers.properties(width=WIDTH, height=HEIGHT).facet(
        data=alt.InlineData(values=mine),
        row=alt.Row("row:N", sort=rows, header=side),
        column=alt.Column("mechanism:N", sort=group.columns, header=head),
        spacing={"row": 16, "column": 8},
        bounds="flush",  # labels must not spread the rows
    )


def _finished(picture: Any, study: EmployerStudy, title: str) -> Any:
    infusion = study.infusion
    subtitle = [
        f"Simulation: {study.data.jobs:,} synthetic jobs, seed {study.data.seed}. Cells with an establishment.",
        f"Noise infusion with s = {format_exact(infusion.s)}, t = {format_exact(infusion.t)}, {infusion.shape}: our "
        "choice, as an agency's are secret. δ = .05 for both smooth Laplace. Missing points: inadmissible pairs.",
    ]
    chart = titled(picture, title, subtitle, fontSize=15).configure_axis(titleFontSize=10)
    return chart.configure_legend(orient="right", symbolType="stroke", symbolStrokeWidth=2.5)


def sweep_figure(study: EmployerStudy) -> Any:
    """Workload 1: each ratio relative to noise infusion with other s and t; dashed: the paper's bounds."""
    by_bound = {bound: bound.with_parameters(study) for bound in bounds(study)}
    kinds = sorted({format_exact(row.s) for rows in by_bound.values() for row, _ in rows})
    x = alt.X("t:Q", title="t", scale=alt.Scale(domain=[0.08, 0.42], nice=False), axis=alt.Axis(tickCount=5))
    y = alt.Y("ratio:Q", title=None, scale=alt.Scale(type="log", nice=False), axis=FEW_TICKS)
    colour = alt.Color("s:N", scale=alt.Scale(domain=kinds, range=list(SHADES[1:])), title="s")
    panels = []
    for bound, rows in by_bound.items():
        points = [
            {"what": bound.what, "s": format_exact(row.s), "t": float(row.t), "ratio": ratio} for row, ratio in rows
        ]
        lines = chart(points).mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.8)
        limit = chart([] if bound.limit is None else [{"what": bound.what, "bound": bound.limit}])
        rule = limit.mark_rule(strokeDash=[4, 3]).encode(y="bound:Q")
        layers = alt.layer(lines.encode(x=x, y=y, color=colour), rule)
        panels.append(panel(layers, bound.what, 200, 120, 11))
    rows_of_four = [alt.hconcat(*panels[start : start + 4]) for start in range(0, len(panels), 4)]
    return _finished(alt.vconcat(*rows_of_four).resolve_scale(color="shared"), study, SWEEP_TITLE)
