"""The study as tables: texts for readers, and every number for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction

from discreet.privacy.exact import written
from discreet.report.blocks import Table, as_csv
from discreet_studies.attacks.runs import REQUIREMENTS
from discreet_studies.attacks.runs import Finding as Tested
from discreet_studies.employer.contenders import ALPHA, CONTENDERS, EPSILON, GEOMETRIC, LABELS, STRONG, TRUNCATED
from discreet_studies.employer.findings import Finding
from discreet_studies.employer.ratios import EVERY, INFUSION
from discreet_studies.employer.region import bounds, infusion_error
from discreet_studies.employer.study import WORKLOADS, Study
from discreet_studies.employer.table2 import table2
from discreet_studies.employer.workloads import ALL, PARTS

NAMES = LABELS | {INFUSION: "Noise infusion"}
PAPER_TABLE1 = ("no, no, no", "yes, no, no", "yes, yes, yes", "yes, yes, yes", "yes, for weak attackers, yes")
FOUR = Fraction(4)


def summary(found: Iterable[Finding]) -> Table:
    """A line a finding."""
    rows = [(str(f.number), f.claim, f.verdict, _held(f), f.beyond) for f in found]
    return Table("findings", ("finding", "claim", "verdict", "parts that hold", "beyond the paper"), rows)


def _held(finding: Finding) -> str:
    held = [part.holds for part in finding.parts if part.holds is not None]
    return f"{sum(held)} of {len(held)}"


def parts(finding: Finding) -> Table:
    """A line a claim."""
    answers = {True: "yes", False: "no", None: "not tested"}
    rows = [(part.claim, part.ours, answers[part.holds]) for part in finding.parts]
    return Table(f"finding-{finding.number}", ("claim", "ours", "holds"), rows)


def baseline(study: Study, workload: int) -> Table:
    """Ratios at α = .1, ε = 2, truncation also at ε = 4: by stratum, and over all cells."""
    settings: list[tuple[str, Fraction | None, Fraction, int | None]] = [
        (contender.name, ALPHA, EPSILON, None) for contender in CONTENDERS
    ]
    settings += [(STRONG, ALPHA, EPSILON, None)] if workload == 3 else []
    settings.append((GEOMETRIC, None, EPSILON, None))
    settings += [(TRUNCATED, None, e, theta) for e in (EPSILON, FOUR) for theta in study.grid.thetas]
    rows = []
    for name, alpha, epsilon, theta in settings:
        found = [study.ratio(workload, name, alpha, epsilon, theta, stratum) for stratum in PARTS]
        found.append(study.ratio(workload, name, alpha, epsilon, theta, cells=EVERY))
        rows.append((_named(name, theta), written(epsilon), *map(short, found)))
    return Table(f"baseline-{workload}", ("mechanism", "ε", *PARTS, "all cells of the domain"), rows)


def rankings(study: Study) -> Table:
    """Correlations at the baseline, with both orders, over cells with establishments and over all."""
    wanted: dict[tuple[str, int | None], list[str]] = {}
    for row in study.correlations:
        if row.stratum == ALL and row.epsilon == EPSILON and row.alpha in (None, ALPHA):
            found = wanted.setdefault((row.mechanism, row.theta), [])
            found += [f"{row.infusion:.4f}", f"{row.truth:.4f}"]
    rows = [(_named(name, theta), *values) for (name, theta), values in wanted.items()]
    kinds = [
        f"{ranking}, {cells}, {order}"
        for ranking in (1, 2)
        for cells in ("", "all cells")
        for order in ("infusion", "truth")
    ]
    return Table("rankings", ("mechanism", *(kind.replace(", ,", ",") for kind in kinds)), rows)


def _named(name: str, theta: int | None) -> str:
    return NAMES[name] if theta is None else f"{NAMES[name]}, θ = {theta}"


def short(value: float | None) -> str:
    """Three digits."""
    return "–" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def tested(findings: tuple[Tested, ...]) -> Table:
    """Table 1: what was executed, beside the paper's entries (individuals, size, shape)."""
    methods = list(dict.fromkeys(finding.method for finding in findings))
    rows = []
    for method, paper in zip(methods, PAPER_TABLE1, strict=True):
        mine = {finding.requirement: finding for finding in findings if finding.method == method}
        rows.append((method, paper, *(_evidence(mine[requirement]) for requirement in REQUIREMENTS)))
    return Table("table-1", ("method", "003 says", *REQUIREMENTS), rows)


def attacked(study: Study) -> Table:
    """Every attack on every method: its rate of success, beside that of a guess."""
    names = (
        "one worker's sex",
        "size within 1%",
        "shape",
        "difference: size",
        "difference: shape",
        "growth within 0.1%",
    )
    rows = [
        (
            "guess without the publication",
            "–",
            *(f"{attack.baseline.share:.2f}" for attack in study.attacked[0].attacks),
            "–",
            "–",
        )
    ]
    for found in study.attacked:
        errors = [f"{100 * each.relative_error:.3g}%" for each in found.averaged]
        rates = [f"{attack.rate.share:.2f}" for attack in found.attacks]
        rows.append((found.method, "none" if found.cost is None else written(found.cost), *rates, *errors))
    times = [f"size's error after {each.publications}" for each in study.attacked[0].averaged]
    return Table("attacks", ("method", "ε", *names, *times), rows)


def _evidence(finding: Tested) -> str:
    worst, attack = finding.worst, finding.attack
    return (
        f"{finding.verdict}: loss ≥ {worst.audited.epsilon_at_least:.2f}, asked {float(worst.asked):g} "
        f"({worst.pair.name}); attack {attack.rate.share:.3f}, guess {attack.baseline.share:.3f}"
    )


def smallest_epsilons() -> Table:
    """Table 2."""
    rows = [
        (
            written(entry.labelled),
            written(entry.alpha),
            entry.printed,
            f"{float(entry.at_labelled):.4g}",
            written(entry.meant),
            f"{float(entry.at_meant):.4g}",
            "right" if entry.right else "wrong",
            f"{float(entry.exact_labelled):.4g}",
            f"{float(entry.exact_meant):.4g}",
        )
        for entry in table2()
    ]
    columns = (
        "δ as labelled",
        "α",
        "ε printed",
        "ε at that δ",
        "δ meant",
        "ε at the δ meant",
        "printed ε is",
        "exact, at the δ labelled",
        "exact, at the δ meant",
    )
    return Table("table-2", columns, rows)


def costs(study: Study) -> Table:
    """$3.50 a job in error, workload 1 at the baseline, means over trials of published integers."""
    rows = [
        (
            _named(row.mechanism, row.theta),
            short(row.ratio),
            f"{row.cells:,.0f}",
            f"{row.places:,.0f}",
            f"{row.near:.0%}",
            f"{row.not_worse:.0%}",
        )
        for row in study.drawn
    ]
    columns = ("mechanism", "L1 ratio, drawn", "$ over cells", "$ over places", "within 10 points", "at most 10 worse")
    return Table("costs", columns, rows)


def agreement(study: Study) -> Table:
    """Closed forms beside trials."""
    rows = [
        (
            str(row.workload),
            NAMES[row.mechanism],
            written(row.alpha),
            written(row.epsilon),
            f"{row.cells:,}",
            f"{row.drawn / row.expected:.4f}",
            f"{row.standard_error / row.expected:.4f}",
            "yes" if row.agrees else "no",
        )
        for row in study.checks
        if row.cells
    ]
    columns = ("workload", "mechanism", "α", "ε", "cells", "drawn/expected", "standard error", "agree")
    return Table("trials", columns, rows)


def moved(study: Study) -> Table:
    """Every ratio of workload 1 with other (s, t)."""
    found = bounds(study)
    by_method = {(row.s, row.t): row.infusion for row in study.swept if row.workload == 1 and row.shape == "ramp"}
    columns = [{(row.s, row.t): ratio for row, ratio in bound.moved(study)} for bound in found]
    rows = []
    for (s, t), error in by_method.items():
        held = all(bound.agrees(column[s, t]) for bound, column in zip(found, columns, strict=True))
        ratios = [short(column[s, t]) for column in columns]
        rows.append((written(s), written(t), short(error), *ratios, "yes" if held else "no"))
    head = ("s", "t", "infusion's mean |error|", *(bound.what for bound in found), "all as in the paper")
    return Table("infusion-parameters", head, rows)


def factors(study: Study) -> Table:
    """What the ratios of each workload are multiplied by with other parameters: ours is 1."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for row in study.swept:
        factor = infusion_error(study, row.workload) / row.infusion
        rows.setdefault((written(row.s), written(row.t), row.shape), []).append(short(factor))
    head = ("s", "t", "shape", *(f"workload {workload}" for workload in WORKLOADS))
    return Table("infusion-factors", head, [(*method, *values) for method, values in rows.items()])


def split(study: Study) -> Table:
    """Per-record zCDP beside the rest."""
    rows = [
        (str(row.reference), written(row.delta), short(row.ratio), short(float(row.largest)), f"{row.beyond:.0%}")
        for row in study.splitting
    ]
    columns = ("reference size", "δ", "L1 ratio", "ε of the largest establishment", "jobs above the reference")
    return Table("per-record-zcdp", columns, rows)


def left_out(study: Study) -> Table:
    """Inadmissible pairs: one line a mechanism, workload and α."""
    grouped: dict[tuple[str, int, Fraction], list[Fraction]] = {}
    smallest: dict[tuple[str, int, Fraction], Fraction] = {}
    for pair in study.inadmissible:
        key = pair.mechanism, pair.workload, pair.alpha
        grouped.setdefault(key, []).append(pair.epsilon)
        smallest[key] = pair.smallest
    rows = [
        (NAMES[name], str(workload), written(alpha), ", ".join(map(written, epsilons)), short(float(smallest[key])))
        for key, epsilons in grouped.items()
        for name, workload, alpha in [key]
    ]
    return Table("inadmissible", ("mechanism", "workload", "α", "ε left out", "smallest ε"), rows)


def all_ratios(study: Study) -> str:
    """Figures 1, 3 and 4, and more, as CSV."""
    columns = ("workload", "mechanism", "alpha", "epsilon", "theta", "stratum", "cells", "number", "error", "infusion")
    rows = [[_plain(getattr(row, name)) for name in columns] + [f"{row.ratio:.6g}"] for row in study.ratios]
    return as_csv((*columns, "ratio"), rows)


def all_correlations(study: Study) -> str:
    """Figures 2 and 5, and the correlations with the true order, as CSV."""
    columns = [field.name for field in fields(study.correlations[0])]
    return as_csv(columns, [[_plain(getattr(row, name)) for name in columns] for row in study.correlations])


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return written(value)
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
