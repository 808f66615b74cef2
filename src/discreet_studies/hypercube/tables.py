"""Rows of the study's tables; `tables.yaml` has their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.privacy.exact import format_exact
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.cases import Cases
from discreet_studies.hypercube.records import average
from discreet_studies.hypercube.simulation import PATIENCE, TOLERANCES, MeanEstimate
from discreet_studies.hypercube.study import HypercubeStudy
from discreet_studies.hypercube.tolerance_search import at_every_tolerance, at_paper_share
from discreet_studies.texts import number

Row = dict[str, object]


def tables(study: HypercubeStudy) -> Mapping[str, Iterable[object]]:
    """Rows by table name."""
    mod, chance = f"mod w̄, w̄ = {format_exact(average())}", study.chance
    residues = [
        {f"total {mod}": one.residue(average()), f"W {mod}": one.record.total % average()} for one in study.records
    ]
    shares = f"converged at {TOLERANCES[0]:g}, of {len(study.cycles_needed.cycles)} runs"
    implied = f"{float(printed.CHANCE) * chance.cells:,.0f} (implied)"
    return {
        "table-1": study.records,
        "table-3": study.records,
        "attack": [{"one": one, "residues": left} for one, left in zip(study.records, residues, strict=True)],
        "table-2": [
            {"one": one, "sign": "±" if one.k else "", "exact": one.exact.str(12, radius=False)}
            for one in reversed(study.table2)
        ],
        "delta": [
            {
                "one": one,
                "enumerated": one.by_enumeration.str(8, radius=False),
                "by_formula": one.by_formula.str(8, radius=False),
            }
            for one in study.losses
        ],
        "noise-of-the-evaluation": [
            dict(zip(("what", "paper", "exact"), row, strict=True))
            for row in (
                ("P(noise = ±1)", printed.CHANCE, f"{float(chance.change):.5f}"),
                ("variance of the noise", printed.VARIANCE, f"{chance.variance:.5f}"),
                ("cells that change, of 17,280", implied, f"{chance.changed:.1f}"),
                ("all one-way tables unchanged by the same noise", "most likely", f"{chance.margins_unchanged:.1%}"),
                ("δ of the cube", "not stated", f"{float(chance.delta):.2e}"),
            )
        ],
        **_table4(study),
        "tolerances": _tolerances(study),
        "cases": [_case(one) for one in study.cases],
        "cycles": [{"cycles": cycles, "shares": {shares: study.cycles_needed.share(cycles)}} for cycles in PATIENCE],
    }


def _table4(study: HypercubeStudy) -> Mapping[str, list[Row]]:
    """Tables with one row per dimension: published, raked, least squares; all runs against closed forms; negative cells
    clipped to 0 first; perturbed controls."""
    simulated = study.simulated
    raked, best, cut = at_paper_share(simulated.raked), MeanEstimate.of(simulated.least_squares), simulated.clipped
    same = simulated.least_squares_where(raked.tolerance)
    closed = [(MeanEstimate.of(values), form) for values, form in simulated.with_closed_forms(study.exact, study.noisy)]
    noisy, met = MeanEstimate.of(simulated.noisy), simulated.noisy_met
    alone, reconciled = MeanEstimate.of(simulated.noisy, met), MeanEstimate.of(simulated.noisy_raked, met)
    names = ("no calibration", "least squares, exact controls", "least squares, controls at ε = 1")
    rows: dict[str, list[Row]] = {"table-4": [], "unconditional": [], "clipping": [], "controls": []}
    for i, theirs in enumerate(printed.TABLE_4):
        form, before, after = study.exact[i], raked.before.mean[i], raked.after.mean[i]
        every = {"printed": theirs, "closed": form, "before": before, "after": after}
        rows["table-4"].append(
            every
            | {"same": same.mean[i], "raked": reduced(before, after), "best": reduced(before, same.mean[i])}
            | {"least_squares": best.mean[i], "reduction": reduced(form.spread_before, form.spread_after)}
        )
        rows["unconditional"].append(
            {
                "cells": {
                    f"{name}: {part}": text
                    for name, (one, known) in zip(names, closed, strict=True)
                    for part, text in (
                        ("closed form", number(known[i])),
                        ("all runs", f"{number(one.mean[i])} ± {number(one.error[i])}"),
                        ("z", f"{one.z(known)[i]:+.2f}"),
                    )
                }
            }
        )
        clipped = {"clipped_before": cut.before.mean(axis=0)[i], "clipped_after": cut.after.mean(axis=0)[i]}
        rows["clipping"].append(every | clipped)
        ours = {"best": noisy.mean[i], "raked": reconciled.mean[i], "alone": alone.mean[i]}
        rows["controls"].append(every | ours | {"noisy": study.noisy[i]})
    return rows


def _tolerances(study: HypercubeStudy) -> list[Row]:
    """Results of each convergence tolerance for the same runs; the paper's last."""

    def row(before: Iterable[object], after: Iterable[object], **others: object) -> Row:
        columns = [f"without, dimension {d}" for d in (1, 2, 3, 4)] + [f"with, dimension {d}" for d in (2, 3, 4, 5)]
        return others | {"variances": dict(zip(columns, [*before, *after], strict=True))}

    rows = [
        row(
            map(number, one.before.mean[:4]),
            map(number, one.after.mean[1:5]),
            tolerance=f"{one.tolerance:g}",
            converged=f"{one.converged:,}",
            share=one.share,
            distance="–" if one.distance is None else f"{one.distance:.3f}",
        )
        for one in at_every_tolerance(study.simulated.raked)
    ]
    runs = f"{printed.CONVERGED} of {printed.RUNS:,}"
    theirs = row(
        printed.WITHOUT[:4],
        printed.WITH[1:5],
        tolerance="not stated",
        converged=runs,
        share=printed.CONVERGED / printed.RUNS,
        distance="0",
    )
    return [*rows, theirs]


def _case(one: Cases) -> Row:
    """The same noise on another set of cases."""
    raked = one.raked
    return {
        "one": one,
        "raked": raked,
        "like": at_paper_share(raked),
        "stuck": int((raked.blocked & raked.converged(TOLERANCES[-1])).sum()),
        "blocked": int(raked.blocked.sum()),
        "shares": {f"converged at {tolerance:g}": raked.share(tolerance) for tolerance in TOLERANCES},
    }


def reduced(before: float, after: float) -> float | None:
    """Relative reduction."""
    return 1 - after / before if before else None
