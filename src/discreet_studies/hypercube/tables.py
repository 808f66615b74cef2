"""The study as tables."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

import numpy as np

from discreet.post.cubes.margins import Floats
from discreet.post.cubes.variance import Reduction
from discreet.privacy.exact import written
from discreet.report.blocks import Table
from discreet_studies.hypercube import printed
from discreet_studies.hypercube.explained import as_in_the_paper, explained
from discreet_studies.hypercube.records import average
from discreet_studies.hypercube.simulation import PATIENCE, TOLERANCES, Estimated
from discreet_studies.hypercube.study import Study

NOTHING = 1e-6  # a variance below it
DIMENSIONS = range(1, len(printed.SHAPE) + 1)


def table1(study: Study) -> Table:
    """The five cells."""
    rows = [
        (str(cell), one.occupation, *map(str, one.requirements), str(one.count), str(one.total))
        for cell, one in enumerate((perturbed.record for perturbed in study.records), 1)
    ]
    requirements = ("requirement 1", "requirement 2", "requirement n")
    return Table("table-1", ("cell", "occupation", *requirements, "count", "total"), rows)


def table3(study: Study) -> Table:
    """The same cells, perturbed."""
    rows = [
        (
            str(cell), str(one.record.count), str(one.record.total), str(one.record.noise),
            str(one.count), paper[0], str(one.total), paper[1],
        )
        for cell, (one, paper) in enumerate(zip(study.records, printed.TABLE_3, strict=True), 1)
    ]  # fmt: skip
    names = ("cell", "count n", "total W", "noise k", "n + k", "paper: n + k", "W + k·w̄", "paper: W + k·w̄")
    return Table("table-3", names, rows)


def attack(study: Study) -> Table:
    """total − w̄·count and total mod w̄, of what is published, beside the same of what is not."""
    rows = [
        (
            str(cell), str(one.count), str(one.total), str(one.attacked), str(one.truth),
            written(one.residue(average())), written(one.record.total % average()),
        )
        for cell, one in enumerate(study.records, 1)
    ]  # fmt: skip
    first = ("cell", "count, published", "total, published", "total − w̄·count", "W − w̄·n")
    mod = f"mod w̄, w̄ = {written(average())}"
    return Table("attack", (*first, f"total {mod}", f"W {mod}"), rows)


def table2(study: Study) -> Table:
    """Both signs are printed as one number, which is that of one sign."""
    rows = [
        (f"±{one.k}" if one.k else "0", one.printed, one.ours, one.exact.str(12, radius=False), yes(one.right))
        for one in reversed(study.table2)
    ]
    return Table("table-2", ("perturbation", "paper", "ours, one sign", "exact, one sign", "every digit"), rows)


def delta(study: Study) -> Table:
    """All outputs gone over, beside the formula."""
    rows = [
        (
            one.change, written(one.epsilon), one.found.str(8, radius=False),
            one.formula, one.stated.str(8, radius=False), yes(one.equal),
        )
        for one in study.losses
    ]  # fmt: skip
    return Table("delta", ("what changes", "loss", "δ by all outputs", "formula", "δ by it", "equal"), rows)


def chance(study: Study) -> Table:
    """§4's two statements."""
    made = study.chance
    rows = [
        ("P(noise = ±1)", printed.CHANCE, f"{float(made.change):.5f}"),
        ("variance of the noise", printed.VARIANCE, f"{made.variance:.5f}"),
        ("cells that change, of 17,280", f"{float(printed.CHANCE) * made.cells:,.0f} (implied)", f"{made.changed:.1f}"),
        ("all one-way tables unchanged by the same noise", "most likely", f"{made.margins_unchanged:.1%}"),
        ("δ of the cube", "not stated", f"{float(made.delta):.2e}"),
    ]
    return Table("noise-of-the-evaluation", ("at ε = 7 and cap 1", "paper", "exact"), rows)


def table4(study: Study) -> Table:
    """Published, raked, and least squares."""
    raked, best = as_in_the_paper(study.simulated.raked), Estimated.of(study.simulated.least_squares)
    same = study.simulated.least_squares_where(raked.tolerance)
    rows = [
        (
            str(d), printed.WITHOUT[i], printed.WITH[i], printed.REDUCTION[i],
            number(raked.before.mean[i]), number(raked.after.mean[i]),
            reduced(raked.before.mean[i], raked.after.mean[i]),
            number(same.mean[i]), reduced(raked.before.mean[i], same.mean[i]),
            number(study.exact[i].spread_before), number(best.mean[i]), number(study.exact[i].spread_after),
            reduced(study.exact[i].spread_before, study.exact[i].spread_after),
        )
        for i, d in enumerate(DIMENSIONS)
    ]  # fmt: skip
    names = ("without", "with", "reduction")
    columns = [f"paper: {name}" for name in names] + [f"raked, converged: {name}" for name in names]
    columns += ["least squares, the same runs: with", "least squares, the same runs: reduction"]
    last = ("without, closed form", "least squares", "least squares, closed form", "reduction")
    columns += [f"all runs: {name}" for name in last]
    return Table("table-4", ("dimension", *columns), rows)


def unconditional(study: Study) -> Table:
    """All runs against closed forms."""
    made = study.simulated
    kinds = (
        (made.raked.before, befores(study.exact)),
        (made.least_squares, afters(study.exact)),
        (made.noisy, afters(study.noisy)),
    )
    found = [(Estimated.of(values), closed) for values, closed in kinds]
    rows = [
        (str(d), *(cell for one, closed in found for cell in _beside(one, closed, i))) for i, d in enumerate(DIMENSIONS)
    ]
    names = ("no calibration", "least squares, exact controls", "least squares, controls at ε = 1")
    parts = ("closed form", "all runs", "z")
    return Table("unconditional", ("dimension", *(f"{name}: {part}" for name in names for part in parts)), rows)


def _beside(found: Estimated, closed: Floats, i: int) -> tuple[str, str, str]:
    return number(closed[i]), f"{number(found.mean[i])} ± {number(found.error[i])}", f"{found.z(closed)[i]:+.2f}"


def tolerances(study: Study) -> Table:
    """What each rule of convergence makes of the same runs."""
    rows = [
        (
            f"{row.tolerance:g}", f"{row.converged:,}", f"{row.share:.1%}",
            *(number(value) for value in row.before.mean[:4]), *(number(value) for value in row.after.mean[1:5]),
            "–" if row.distance is None else f"{row.distance:.3f}",
        )
        for row in explained(study.simulated.raked)
    ]  # fmt: skip
    paper = ("not stated", f"{printed.CONVERGED} of {printed.RUNS:,}", f"{printed.CONVERGED / printed.RUNS:.1%}")
    rows.append((*paper, *printed.WITHOUT[:4], *printed.WITH[1:5], "0"))
    columns = [f"without, dimension {d}" for d in (1, 2, 3, 4)] + [f"with, dimension {d}" for d in (2, 3, 4, 5)]
    return Table("tolerances", ("tolerance", "converged", "share", *columns, "distance from the paper"), rows)


def cases(study: Study) -> Table:
    """The same noise on other cases."""
    rows = []
    for one in study.cases:
        made, like = one.raked, as_in_the_paper(one.raked)
        blocked = made.blocked
        stuck = f"{int((blocked & made.converged(TOLERANCES[-1])).sum())} of {int(blocked.sum())}"
        rows.append(
            (
                one.label, str(one.seed), str(one.smallest), f"{made.runs:,}", stuck,
                *(f"{made.share(tolerance):.1%}" for tolerance in TOLERANCES), f"{like.tolerance:.1e}",
                number(like.before.mean[0]), number(like.before.mean[1]), number(like.after.mean[1]),
                "–" if isnan(like.left) else f"{like.left:.2f}",
                "–" if like.distance is None else f"{like.distance:.3f}",
            )
        )  # fmt: skip
    shares = [f"converged at {tolerance:g}" for tolerance in TOLERANCES]
    last = (
        "tolerance of the paper's share",
        "without, 1",
        "without, 2",
        "with, 2",
        "with / without, 2",
        "distance from the paper",
    )
    first = ("cases", "seed", "smallest margin", "runs", "with a non-positive margin: converged at 0.5")
    return Table("cases", (*first, *shares, "tolerance of the paper's share", *last), rows)


def patience(study: Study) -> Table:
    """More cycles."""
    rows = [(str(cycles), f"{study.longer.share(cycles):.1%}") for cycles in PATIENCE]
    return Table("cycles", ("cycles", f"converged at {TOLERANCES[0]:g}, of {len(study.longer.cycles)} runs"), rows)


def clipping(study: Study) -> Table:
    """Negative cells set to 0 before anything else."""
    made = study.simulated
    kept, cut = as_in_the_paper(made.raked), made.clipped
    rows = [
        (
            str(d), printed.WITHOUT[i], number(study.exact[i].spread_before), number(cut.before.mean(axis=0)[i]),
            printed.WITH[i], number(kept.after.mean[i]), number(cut.after.mean(axis=0)[i]),
        )
        for i, d in enumerate(DIMENSIONS)
    ]  # fmt: skip
    kinds = ("paper", "negative cells kept", "clipped")
    names = [f"{name}: {kind}" for name in ("without", "with") for kind in kinds]
    return Table("clipping", ("dimension", *names), rows)


def controls(study: Study) -> Table:
    """Controls that are perturbed too."""
    made = study.simulated
    best, met = Estimated.of(made.noisy), made.noisy_met
    alone, raked = Estimated.of(made.noisy, met), Estimated.of(made.noisy_raked, met)
    rows = [
        (
            str(d), number(study.noisy[i].spread_before), number(study.exact[i].spread_after),
            number(study.noisy[i].spread_after), number(best.mean[i]), number(raked.mean[i]), number(alone.mean[i]),
        )
        for i, d in enumerate(DIMENSIONS)
    ]  # fmt: skip
    names = ("without", "exact controls, closed form", "ε = 1 each, closed form", "ε = 1 each, all runs")
    last = ("raked to what least squares reconcile, converged runs", "least squares, the same runs")
    return Table("controls", ("dimension", *names, *last), rows)


def befores(closed: Iterable[Reduction]) -> Floats:
    """In closed form, without calibration."""
    return np.array([one.spread_before for one in closed])


def afters(closed: Iterable[Reduction]) -> Floats:
    """In closed form, with it."""
    return np.array([one.spread_after for one in closed])


def number(value: float) -> str:
    """Three decimals, three digits where there is little; what is below a millionth is 0."""
    if isnan(value):
        return "–"
    if abs(value) < NOTHING:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.1e}"
    return f"{value:,.3f}" if abs(value) >= 0.1 else f"{value:#.3g}"


def yes(holds: bool) -> str:
    """In a word."""
    return "yes" if holds else "no"


def reduced(before: float, after: float) -> str:
    """By how much, in percent."""
    return "–" if isnan(before) or not before else f"{1 - after / before:.1%}"
