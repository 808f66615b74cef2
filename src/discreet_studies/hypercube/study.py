"""The study of Li & Krenzke 2020 as one value, from which everything reported is derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from discreet.formatting import Observer
from discreet.post.cubes.variance import Reduction
from discreet.privacy.exact import format_exact
from discreet_studies.harness import Paper, Size
from discreet_studies.hypercube import perturbation, printed, simulation
from discreet_studies.hypercube.cases import MAIN, Cases, counts, others, raked_cases
from discreet_studies.hypercube.records import PerturbedRecord, average, query, table3
from discreet_studies.hypercube.tolerance_search import at, at_paper_share, nearest


@dataclass(frozen=True, eq=False)
class HypercubeStudy:
    """All numbers of the study."""

    runs: int
    seed: int
    records: tuple[PerturbedRecord, ...]
    table2: tuple[perturbation.PrintedProbability, ...]
    losses: tuple[perturbation.ExactLoss, ...]
    chance: perturbation.EvaluationNoise
    simulated: simulation.CalibratedRuns
    exact: tuple[Reduction, ...]  # exact controls, closed form, by dimension
    noisy: tuple[Reduction, ...]  # perturbed controls
    cases: tuple[Cases, ...]  # the main set first
    cycles_needed: simulation.CyclesNeeded


def study(runs: int, seed: int, observe: Observer) -> HypercubeStudy:
    """Run the study."""
    simulated = simulation.simulate(counts(seed), runs, seed, observe)
    cases = [Cases(MAIN, seed, simulated.smallest, simulated.raked)]
    wanted = others(seed)
    for label, other, requirements in wanted:
        cases.append(raked_cases(label, other, requirements, runs, seed))
        observe("other cases", len(cases) - 1, len(wanted))
    return HypercubeStudy(
        runs=runs,
        seed=seed,
        records=table3(),
        table2=perturbation.table2(),
        losses=perturbation.losses(),
        chance=perturbation.chance(simulation.CELLS),
        simulated=simulated,
        exact=simulation.expected(0.0),
        noisy=simulation.expected(simulation.CONTROL.variance()),
        cases=tuple(cases),
        cycles_needed=simulation.cycles_needed(simulated.cube, runs, seed),
    )


def facts(study: HypercubeStudy) -> Mapping[str, object]:
    """Values for the report's text, including what 22.4% and the published variances imply about the convergence
    rule."""
    simulated, raked, row = study.simulated, study.simulated.raked, at_paper_share(study.simulated.raked)
    loosest, loose = simulation.TOLERANCES[-1], raked.gap > simulation.TOLERANCES[-1]
    all_sets = [one.raked for one in study.cases]
    left = [at_paper_share(one).left for one in all_sets if one.paper_share_tolerance <= loosest]
    z = [
        np.abs(simulation.MeanEstimate.of(values).z(closed)).max()
        for values, closed in simulated.with_closed_forms(study.exact, study.noisy)
    ]
    empty = int(np.sum(simulated.cube == 0))
    return {
        "printed": printed,
        "simulated": simulated,
        "raked": raked,
        "row": row,
        "occupied": int(np.count_nonzero(simulated.cube)),
        "query": query(),
        "average": format_exact(average()),
        "end": float(study.losses[0].by_enumeration),
        "share": simulation.SHARE,
        "z": z,
        "nearest": nearest(raked),
        "usable": at(raked, loosest),
        "loosest": loosest,
        "middle": simulation.TOLERANCES[2],
        "loose": loose,
        "loose_blocked": int((loose & raked.blocked).sum()),
        "worst": float(np.median(raked.after[loose][:, 1])) if loose.any() else None,
        "tolerances": [one.paper_share_tolerance for one in all_sets],
        "like": min(study.cases, key=lambda one: at_paper_share(one.raked).distance or inf),
        "theirs": float(printed.WITH[1]) / float(printed.WITHOUT[1]),
        "least_left": min(left, default=inf),
        "most_left": max(left, default=inf),
        "best": simulated.least_squares_where(row.tolerance).mean[1] / row.before.mean[1],
        "blocked": sum(int(one.blocked.sum()) for one in all_sets),
        "blocked_converged": sum(int((one.blocked & one.converged(loosest)).sum()) for one in all_sets),
        "empty": empty,
        "added": empty * float(perturbation.EVALUATED.delta()),
        "clipped_left": float(simulated.clipped.after.mean(axis=0)[1]),
        "control": simulation.CONTROL.variance(),
        "rule": simulation.RAKING,
        "reconciled": simulation.MeanEstimate.of(simulated.noisy_raked, simulated.noisy_met),
        "alone": simulation.MeanEstimate.of(simulated.noisy, simulated.noisy_met),
    }


def paper() -> Paper[HypercubeStudy]:
    """The study as the harness runs it."""
    from discreet_studies.hypercube.figures import figures
    from discreet_studies.hypercube.tables import tables
    from discreet_studies.hypercube.verdicts import CLAIMS

    title = "The bottom-up hypercube: reproduction of the tables of Li & Krenzke (2020)"
    size = Size("runs", printed.RUNS, 20, "an average", "make")
    return Paper("hypercube", title, size, study, tables, figures, facts, CLAIMS.of)
