"""The comparison of correction rules for flows as CSV, Markdown tables and a chart."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import altair as alt

from discreet.privacy.exact import format_exact
from discreet.report.blocks import as_csv as csv_text
from discreet.report.plots import chart, titled
from discreet_studies.charts import Point, dash_of
from discreet_studies.pseo.flows import CONTROLS, KINDS, RAW, SIZES, FlowScore, FlowStudy, study

COLOURS = {RAW: "#000000", "published": "#0072B2", "projection": "#D55E00", "quantiles": "#009E73"}
OTHERS = ("#CC79A7", "#56B4E9", "#E69F00")
DASHES = {RAW: [2, 2], "projection": [7, 3]}
EPSILONS = (Fraction(1, 2), Fraction(3, 2), Fraction(3))
PANELS = ("bias", "rmse", "ratio")
CONTROL_NAMES = {
    "public": "as published",
    "blurred": "jobs and employment distorted by a lognormal factor of σ = 1",
    "none": "all 1: uninformative",
}


def compare_rules(out: Path, institutions: int, seed: int) -> list[Path]:
    """Write every score as CSV, tables as Markdown and a chart as SVG."""
    comparison = study(EPSILONS, institutions, seed)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"flows.{kind}" for kind in ("csv", "md", "svg")]
    paths[0].write_text(as_csv(comparison), encoding="utf-8")
    paths[1].write_text(as_markdown(comparison), encoding="utf-8")
    flow_plot(comparison, "Simulation: flows of synthetic graduates, noisy and corrected").save(str(paths[2]))
    return paths


def as_csv(study: FlowStudy) -> str:
    """Every score, one per row."""
    names = [field.name for field in fields(FlowScore)]
    rows = ([getattr(score, name) for name in names[1:]] for score in study.scores)
    shown = ([f"{value:.6f}" if isinstance(value, float) else value for value in row] for row in rows)
    return csv_text(names, [[format_exact(s.epsilon), *row] for s, row in zip(study.scores, shown, strict=True)])


def as_markdown(study: FlowStudy) -> str:
    """For each ε and kind of controls: errors of cells by size, then of every kind of statistic."""
    lines = [
        f"Simulation: {len(study.sums)} institutions of {study.groups:,} groups. Bias · mean |error| · RMSE;",
        "bold: the smallest among the corrected.",
    ]
    for e, epsilon in enumerate(study.epsilons):
        lines += ["", f"## ε = {format_exact(epsilon)}", "", _zeroed(study, e)]
        for controls in CONTROLS:
            mine = [s for s in study.scores if s.epsilon == epsilon and s.controls == controls]
            cells = {size: [s for s in mine if s.kind == "cell" and s.size == size] for size in (*SIZES, "all")}
            kinds = {kind: [s for s in mine if s.kind == kind and s.size == "all"] for kind in KINDS}
            lines += ["", f"Controls {CONTROL_NAMES[controls]}:"]
            lines += ["", *_table("true flow", study.rules, cells), "", *_table("number", study.rules, kinds)]
    return "\n".join(lines) + "\n"


def _zeroed(study: FlowStudy, e: int) -> str:
    everyone = len(study.sums) * study.groups
    gone, some, graduates = (int(n) for n in study.zeroed[:, e].sum(axis=0))
    return (
        f"{gone / everyone:.1%} of the groups have no positive noisy total and become 0; {some / everyone:.1%} of the "
        f"groups become zero although they have graduates, {graduates / max(some, 1):.1f} on average."
    )


def _table(first: str, rules: tuple[str, ...], scores: dict[str, list[FlowScore]]) -> list[str]:
    """The rules in columns; statistics that never occur have no row."""
    head = [f"| {first} | number | {' | '.join(rules)} |", "|---|---" + "|---" * len(rules) + "|"]
    return head + [f"| {name} | {row[0].number:,} | {' | '.join(_row(row))} |" for name, row in scores.items() if row]


def _row(scores: list[FlowScore]) -> list[str]:
    """Each rule's errors, the smallest among the corrected in bold."""
    shown = [[_short(score.bias, signed=True)] for score in scores]
    for measure in ("mean_abs", "rmse"):
        texts = [_short(getattr(score, measure)) for score in scores]
        least = min(getattr(score, measure) for score in scores if score.rule != RAW)
        for place, score in enumerate(scores):
            best = score.rule != RAW and getattr(score, measure) == least
            shown[place].append(f"**{texts[place]}**" if best else texts[place])
    return [" · ".join(texts) for texts in shown]


def _short(value: float, *, signed: bool = False) -> str:
    """About three digits, with a Unicode minus."""
    digits = 3 if abs(value) < 0.0995 else 2 if abs(value) < 9.95 else 1
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text.replace("-", "−")


def flow_plot(study: FlowStudy, title: str) -> Any:
    """Cells by the size of the true flow, a column per ε, controls as published: bias, RMSE, and mean |error| relative
    to the rule `published`."""
    shown = [s for s in study.scores if s.kind == "cell" and s.controls == "public" and s.size in SIZES]
    base = chart(map(_point, shown))
    spare = iter(OTHERS * len(study.rules))
    names = list(study.rules)
    colours = alt.Scale(domain=names, range=[COLOURS[rule] if rule in COLOURS else next(spare) for rule in names])

    def panel(epsilon: Fraction, measure: str) -> Any:
        mine = base.transform_filter(alt.datum.epsilon == format_exact(epsilon))
        if measure == "ratio":
            mine = mine.transform_filter(alt.datum.rule != RAW)
        last = measure == PANELS[-1]
        below = alt.Axis(labels=last, ticks=last, labelAngle=0)
        lines = mine.mark_line(point=alt.OverlayMarkDef(size=30), strokeWidth=2).encode(
            x=alt.X("size:O", sort=list(SIZES), axis=below, title="true flow" if last else None),
            y=_axis(measure, labelled=epsilon == study.epsilons[0]),
            color=alt.Color("rule:N", scale=colours, sort=None, title=None),
            strokeDash=dash_of("rule", names, DASHES, sort=None, title=None),
        )
        heading = f"ε = {format_exact(epsilon)}" if measure == PANELS[0] else ""
        return lines.properties(width=240, height=150, title=heading)

    rows = [alt.hconcat(*(panel(epsilon, measure) for epsilon in study.epsilons), spacing=6) for measure in PANELS]
    zeros = sum(s.number for s in shown if s.size == "0") / sum(s.number for s in shown)
    subtitle = [
        "Cells (sector × state) of a group. Raw: the noisy measurements, unbiased, with negative cells.",
        f"{zeros:.0%} of the cells are true zeros. Their gain, too small to see, balances most of the others' loss.",
    ]
    picture = titled(alt.vconcat(*rows, spacing=4), title, subtitle)
    legend = {"symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 2}
    return picture.configure_legend(orient="top", labelFontSize=12, **legend)


def _point(score: FlowScore) -> Point:
    base = score.mean_abs + score.mean_abs_gain  # the mean |error| of `published`
    shown = {name: getattr(score, name) for name in ("rule", "size", "bias", "rmse")}
    return {"epsilon": format_exact(score.epsilon), **shown, "ratio": score.mean_abs / base if base > 0 else None}


def _axis(measure: str, *, labelled: bool) -> alt.Y:
    """RMSE on a common logarithmic axis for every ε; individual axes for the others."""
    titles = {"bias": "bias", "rmse": "RMSE", "ratio": "mean |error|, published = 1"}
    scale = alt.Scale(type="log", domain=[0.05, 15], clamp=True) if measure == "rmse" else alt.Scale(zero=False)
    ticks = {"values": [0.1, 0.3, 1, 3, 10]} if measure == "rmse" else {"tickCount": 5}
    axis = alt.Axis(minExtent=28, **ticks)
    return alt.Y(f"{measure}:Q", scale=scale, axis=axis, title=titles[measure] if labelled else None)
