"""Rows of the study's tables (`tables.yaml` has their columns), and every number as CSV."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NamedTuple

from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet.privacy.exact import format_exact
from discreet.report.blocks import as_csv
from discreet_studies.attacks.runs import REQUIREMENTS
from discreet_studies.employer.comparators.infusion import Infusion
from discreet_studies.employer.findings import findings
from discreet_studies.employer.infusion_parameters import bounds, infusion_error, ramps
from discreet_studies.employer.mechanism_grid import (
    ALPHA,
    CANDIDATES,
    EPSILON,
    GEOMETRIC,
    LABELS,
    STRONG,
    TRUNCATED,
    Inadmissible,
)
from discreet_studies.employer.ratios import EVERY, INFUSION
from discreet_studies.employer.study import WORKLOADS, EmployerStudy
from discreet_studies.employer.workloads import ALL, PARTS
from discreet_studies.texts import published

NAMES = LABELS | {INFUSION: "Noise infusion"}
PAPER_TABLE1 = ("no, no, no", "yes, no, no", "yes, yes, yes", "yes, yes, yes", "yes, for weak adversaries, yes")
ATTACKS = (
    "one worker's sex", "size within 1%", "shape", "difference: size", "difference: shape", "growth within 0.1%",
)  # fmt: skip
ORDERS = tuple(
    f"{ranking}, {cells}{order}"
    for ranking in (1, 2)
    for cells in ("", "all cells, ")
    for order in ("infusion", "truth")
)
RATIOS = ("workload", "mechanism", "alpha", "epsilon", "theta", "stratum", "cells", "number", "error", "infusion")
FOUR = Fraction(4)
Row = dict[str, object]


def tables(study: EmployerStudy) -> Mapping[str, Iterable[object]]:
    """Rows by table name."""
    all_findings = findings(study)
    answers = {True: "yes", False: "no", None: "not tested"}
    parts = {
        f"finding-{one.number}": [{"claim": p.claim, "ours": p.ours, "answer": answers[p.holds]} for p in one.parts]
        for one in all_findings
    }
    return {
        "findings": all_findings,
        **parts,
        **{f"baseline-{workload}": _baseline(study, workload) for workload in WORKLOADS},
        "rankings": _rankings(study),
        "table-1": _requirements(study),
        "attacks": _attacked(study),
        "table-2": table2(),
        "costs": [{"row": row, "mechanism": _named(row.mechanism, row.theta)} for row in study.baseline_trials],
        "trials": [
            {
                "row": row,
                "mechanism": NAMES[row.mechanism],
                "ratio": row.simulated / row.expected,
                "error": row.standard_error / row.expected,
            }
            for row in study.checks
            if row.cells
        ],
        "infusion-parameters": _moved(study),
        "infusion-factors": _factors(study),
        "per-record-zcdp": study.splitting,
        "inadmissible": _left_out(study.inadmissible),
    }


def _baseline(study: EmployerStudy, workload: int) -> list[Row]:
    """Ratios at α = .1, ε = 2 (truncation also at ε = 4), by stratum and over all cells."""
    settings: list[tuple[str, Fraction | None, Fraction, int | None]] = [
        (candidate.name, ALPHA, EPSILON, None) for candidate in CANDIDATES
    ]
    settings += [(STRONG, ALPHA, EPSILON, None)] if workload == 3 else []
    settings.append((GEOMETRIC, None, EPSILON, None))
    settings += [(TRUNCATED, None, e, theta) for e in (EPSILON, FOUR) for theta in study.grid.thetas]
    rows = []
    for name, alpha, epsilon, theta in settings:
        pair = workload, name, alpha, epsilon, theta
        ratios = {stratum: study.ratio(*pair, stratum) for stratum in PARTS}
        ratios["all cells of the domain"] = study.ratio(*pair, cells=EVERY)
        rows.append({"mechanism": _named(name, theta), "epsilon": epsilon, "ratios": ratios})
    return rows


def _rankings(study: EmployerStudy) -> list[Row]:
    """Correlations at the baseline with both rankings, over cells with establishments and over all."""
    wanted: defaultdict[tuple[str, int | None], list[float]] = defaultdict(list)
    for row in study.correlations:
        if row.stratum == ALL and row.epsilon == EPSILON and row.alpha in (None, ALPHA):
            wanted[row.mechanism, row.theta] += [row.infusion, row.truth]
    return [
        {"mechanism": _named(*setting), "orders": dict(zip(ORDERS, values, strict=True))}
        for setting, values in wanted.items()
    ]


def _named(name: str, theta: int | None) -> str:
    return NAMES[name] if theta is None else f"{NAMES[name]}, θ = {theta}"


def _requirements(study: EmployerStudy) -> list[Row]:
    """Table 1: executed audits and attacks, with the paper's entries (individuals, size, shape)."""
    entries: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in study.requirements:
        entries[one.method][one.requirement] = str(one)
    return [
        {"method": method, "paper": paper, "entries": {name: mine[name] for name in REQUIREMENTS}}
        for (method, mine), paper in zip(entries.items(), PAPER_TABLE1, strict=False)
    ]


def _attacked(study: EmployerStudy) -> list[Row]:
    """Success rate of every attack on every method, below the rate of guessing."""
    rows: list[Row] = []
    for results in study.attack_results:
        times = [f"size's error after {each.publications}" for each in results.averaged]
        if not rows:
            guesses = dict(zip(ATTACKS, (attack.baseline.share for attack in results.attacks), strict=True))
            guess = {"method": "guess without the publication", "cost": "–"}
            rows.append(guess | {"rates": guesses, "errors": dict.fromkeys(times, "–")})
        rates = dict(zip(ATTACKS, (attack.rate.share for attack in results.attacks), strict=True))
        errors = [f"{100 * each.relative_error:.3g}%" for each in results.averaged]
        cost = "none" if results.cost is None else format_exact(results.cost)
        errors_by_time = dict(zip(times, errors, strict=True))
        rows.append({"method": results.method, "cost": cost, "rates": rates, "errors": errors_by_time})
    return rows


def _moved(study: EmployerStudy) -> list[Row]:
    """Every ratio of workload 1 with other (s, t)."""
    ratio_bounds = bounds(study)
    columns = [{(row.s, row.t): ratio for row, ratio in bound.with_parameters(study)} for bound in ratio_bounds]
    rows = []
    for row in ramps(study):
        beside = list(zip(ratio_bounds, (column[row.s, row.t] for column in columns), strict=True))
        ratios = {bound.what: ratio for bound, ratio in beside}
        as_reported = all(bound.agrees(ratio) for bound, ratio in beside)
        rows.append({"s": row.s, "t": row.t, "error": row.infusion, "ratios": ratios, "consistent": as_reported})
    return rows


def _factors(study: EmployerStudy) -> list[Row]:
    """The factor of all ratios of each workload with other parameters; 1 for ours."""
    factors: defaultdict[Infusion, dict[str, float]] = defaultdict(dict)
    for row in study.infusion_sweep:
        method = Infusion(row.s, row.t, study.infusion.limit, row.shape)
        factors[method][f"workload {row.workload}"] = infusion_error(study, row.workload) / row.infusion
    return [{"row": method, "factors": mine} for method, mine in factors.items()]


def _left_out(pairs: Iterable[Inadmissible]) -> list[Row]:
    """Inadmissible pairs: one line per mechanism, workload and α."""
    grouped: defaultdict[tuple[str, int, Fraction], list[Inadmissible]] = defaultdict(list)
    for pair in pairs:
        grouped[pair.mechanism, pair.workload, pair.alpha].append(pair)
    return [
        {"mechanism": NAMES[name], "workload": workload, "alpha": alpha, "smallest": mine[-1].smallest}
        | {"left_out": ", ".join(format_exact(pair.epsilon) for pair in mine)}
        for (name, workload, alpha), mine in grouped.items()
    ]


def every_number(study: EmployerStudy) -> dict[str, str]:
    """All ratios and all correlations (also with the true ranking) as CSV."""
    ratios = [[_plain(getattr(row, name)) for name in RATIOS] + [f"{row.ratio:.6g}"] for row in study.ratios]
    columns = [field.name for field in fields(study.correlations[0])]
    correlations = [[_plain(getattr(row, name)) for name in columns] for row in study.correlations]
    return {"ratios.csv": as_csv((*RATIOS, "ratio"), ratios), "correlations.csv": as_csv(columns, correlations)}


def _plain(value: object) -> object:
    if isinstance(value, Fraction):
        return format_exact(value)
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value


class PrintedRow(NamedTuple):
    """An entry as printed, and the δ for which it is correct."""

    as_printed: Fraction
    intended: Fraction
    alpha: Fraction
    printed: str


@dataclass(frozen=True)
class PrintedEpsilon:
    """One entry: as printed, by the paper's condition at the δ printed and at the δ intended, and by the exact δ."""

    as_printed: Fraction
    intended: Fraction  # the rows printed as .05 are those of .005
    alpha: Fraction
    printed: str
    at_printed: Fraction
    at_intended: Fraction
    exact_printed: Fraction
    exact_intended: Fraction

    @property
    def right(self) -> bool:
        """Whether the printed ε is that of the δ intended, to the digits that are printed."""
        return abs(Fraction(self.printed) - self.at_intended) <= Fraction(1, 10 ** len(self.printed.partition(".")[2]))

    @property
    def verdict(self) -> str:
        """Whether the printed ε is confirmed."""
        return "confirmed" if self.right else "corrected"


def table2() -> tuple[PrintedEpsilon, ...]:
    """All six entries. The paper's ε is −2·ln(δ)·ln(1+α)."""
    entries = []
    for row in published("employer", "table-2", PrintedRow):
        paper, exact = (
            [
                SmoothLaplace.least_epsilon(row.alpha, delta, constants=constants)
                for delta in (row.as_printed, row.intended)
            ]
            for constants in ("printed", "exact")
        )
        entries.append(PrintedEpsilon(*row, *paper, *exact))
    return tuple(entries)
