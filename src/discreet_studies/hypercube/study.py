"""The study of 002 as one value: everything that is reported is a function of it."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.post.cubes.variance import Reduction
from discreet_studies import Observer
from discreet_studies.hypercube.cases import MAIN, Cases, counts, others, raked_cases
from discreet_studies.hypercube.perturbation import Chance, Entry, Loss, chance, losses, table2
from discreet_studies.hypercube.records import Perturbed, table3
from discreet_studies.hypercube.simulation import CELLS, CONTROL, Longer, Simulated, expected, longer, simulate


@dataclass(frozen=True, eq=False)
class Study:
    """All numbers."""

    runs: int
    seed: int
    records: tuple[Perturbed, ...]
    table2: tuple[Entry, ...]
    losses: tuple[Loss, ...]
    chance: Chance
    simulated: Simulated
    exact: tuple[Reduction, ...]  # controls exact, in closed form, by dimension
    noisy: tuple[Reduction, ...]  # controls perturbed
    cases: tuple[Cases, ...]  # the main set first
    longer: Longer


def study(runs: int, seed: int, observe: Observer) -> Study:
    """All of it."""
    made = simulate(counts(seed), runs, seed, observe)
    cases = [Cases(MAIN, seed, made.smallest, made.raked)]
    wanted = others(seed)
    for label, other, requirements in wanted:
        cases.append(raked_cases(label, other, requirements, runs, seed))
        observe("other cases", len(cases) - 1, len(wanted))
    return Study(
        runs=runs,
        seed=seed,
        records=table3(),
        table2=table2(),
        losses=losses(),
        chance=chance(CELLS),
        simulated=made,
        exact=expected(0.0),
        noisy=expected(CONTROL.variance()),
        cases=tuple(cases),
        longer=longer(made.cube, runs, seed),
    )
