"""The study of Haney et al. 2017, §10 as one value, from which everything reported is derived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from discreet.formatting import Observer
from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.privacy.exact import format_exact
from discreet.privacy.gaussian import as_epsilon
from discreet.synth.industries import OWNERSHIP
from discreet.synth.sectors import SECTORS
from discreet_studies.attacks.releases import InfusionPublication, MechanismPublication, strong, weak
from discreet_studies.attacks.runs import RequirementEvidence, table1, targets
from discreet_studies.employer.attacked import AttackResults, attack_results
from discreet_studies.employer.comparators.infusion import Infusion
from discreet_studies.employer.comparators.infusion_files import write_comparator
from discreet_studies.employer.comparators.records_zcdp import equal_at_reference
from discreet_studies.employer.infusion_parameters import (
    InfusionSetting,
    agreeing,
    infusion_error,
    infusion_sweep,
    interval,
)
from discreet_studies.employer.mechanism_grid import ALPHA, DELTA, EPSILON, Inadmissible, MechanismGrid
from discreet_studies.employer.monte_carlo import ClosedFormCheck, Trials, baseline, checks
from discreet_studies.employer.rankings import Correlation, correlations
from discreet_studies.employer.ratios import OCCUPIED, Ratio, ratios
from discreet_studies.employer.workloads import ALL, GRADUATES, TRIALS, WORKER_CELLS, TabulatedFrame, tabulated_frame
from discreet_studies.harness import Paper, Size

Result = TypeVar("Result")

INFUSION = Infusion(Fraction(1, 10), Fraction(1, 4))  # our choice: an agency's parameters are secret
WORKLOADS = (1, 2, 3)
SAMPLES = 20_000  # per audit: losses up to 6.5 can be detected
NODE = 1000  # θ of Table 1 (Haney et al. 2017, §6)
REFERENCES = (20, 100, 500)
SMALL = Fraction(1, 10**6)


@dataclass(frozen=True)
class FrameSize:
    """Size of the synthetic data."""

    jobs: int
    seed: int
    establishments: int
    places: int
    above_1000: int
    cells: int
    occupied: int
    below_1000: float  # share of occupied cells


@dataclass(frozen=True)
class UnitSplittingResult:
    """Per-record zCDP with the (α, ε) guarantee at a reference size, up to δ."""

    reference: int
    delta: Fraction
    ratio: float
    largest: Fraction  # ε for growth of the largest establishment by 1+α
    beyond: float  # share of jobs in establishments above the reference


@dataclass(frozen=True)
class EmployerStudy:
    """All numbers of the study."""

    data: FrameSize
    infusion: Infusion
    grid: MechanismGrid
    trials: int
    ratios: tuple[Ratio, ...]
    inadmissible: tuple[Inadmissible, ...]
    correlations: tuple[Correlation, ...]
    checks: tuple[ClosedFormCheck, ...]
    baseline_trials: tuple[Trials, ...]
    infusion_sweep: tuple[InfusionSetting, ...]
    splitting: tuple[UnitSplittingResult, ...]
    requirements: tuple[RequirementEvidence, ...]  # Table 1
    attack_results: tuple[AttackResults, ...]

    @cached_property
    def ratio(self) -> NumberLookup:
        """Ratio of L1 errors by workload; None where the pair is inadmissible or the stratum empty."""
        return NumberLookup({(r.workload, *r.setting): r.ratio for r in self.ratios if not isnan(r.ratio)})

    @cached_property
    def correlation(self) -> NumberLookup:
        """Correlation with the ranking by noise infusion; None as for ratios."""
        return NumberLookup({(c.ranking, *c.setting): c.infusion for c in self.correlations if not isnan(c.infusion)})


@dataclass(frozen=True)
class NumberLookup:
    """Looks up a number by workload or ranking, mechanism and parameters."""

    numbers: Mapping[tuple[object, ...], float]

    def __call__(
        self,
        number: int,
        mechanism: str,
        alpha: Fraction | None = None,
        epsilon: Fraction | None = None,
        theta: int | None = None,
        stratum: str = ALL,
        cells: str = OCCUPIED,
    ) -> float | None:
        return self.numbers.get((number, mechanism, alpha, epsilon, theta, stratum, cells))


def study(
    jobs: int, seed: int, observe: Observer, grid: MechanismGrid | None = None, trials: int = TRIALS
) -> EmployerStudy:
    """Generate the synthetic data and run everything."""
    chosen = grid or MechanismGrid()

    def step(name: str, result: Result) -> Result:
        observe(name, 1, 1)
        return result

    world = step("establishments", tabulated_frame(jobs, seed, INFUSION, trials))
    return EmployerStudy(
        data=_data(world),
        infusion=INFUSION,
        grid=chosen,
        trials=trials,
        ratios=step("errors", tuple(row for w in WORKLOADS for row in ratios(world, w, chosen))),
        inadmissible=tuple(pair for w in WORKLOADS for pair in chosen.inadmissible(w, world.parts_of(w))),
        correlations=tuple(correlations(world, chosen, observe)),
        checks=step("trials", tuple(checks(world))),
        baseline_trials=tuple(baseline(world, chosen)),
        infusion_sweep=step("parameters of infusion", tuple(infusion_sweep(world))),
        splitting=tuple(_splitting(world)),
        requirements=step("attacks and audits", _requirements(world)),
        attack_results=step("attacks on every mechanism", attack_results(world)),
    )


def _data(world: TabulatedFrame) -> FrameSize:
    counts = world.establishments.counts[world.occupied, 0]
    return FrameSize(
        jobs=world.frame.jobs,
        seed=world.frame.seed,
        establishments=len(world.frame),
        places=len(world.frame.places),
        above_1000=int((world.frame.size > 1000).sum()),
        cells=world.frame.cells,
        occupied=len(counts),
        below_1000=float((counts < 1000).mean()),
    )


def _splitting(world: TabulatedFrame) -> Iterator[UnitSplittingResult]:
    """At the δ of the figures, and at a small δ."""
    largest = int(world.frame.size.max())
    beside = world.establishments.infusion_error[world.occupied].mean()
    for reference in (*(size for size in REFERENCES if size < largest), largest):
        for delta in (DELTA, SMALL):
            method = equal_at_reference(ALPHA, EPSILON, delta, reference)
            lost = as_epsilon(method.growth(largest, ALPHA), delta)
            beyond = float(world.frame.size[world.frame.size > reference].sum() / world.frame.jobs)
            yield UnitSplittingResult(reference, delta, float(method.mean_abs() / beside), lost, beyond)


def _requirements(world: TabulatedFrame) -> tuple[RequirementEvidence, ...]:
    """Table 1 at the baseline, ε for all worker cells together; empty if no establishment qualifies as a target."""
    target_set = targets(world.workers, world.frame.cell, GRADUATES, world.infusion.limit)
    if not len(target_set.unreplaced) or not len(target_set.with_one):
        return ()
    methods = (
        InfusionPublication(world.infusion),
        MechanismPublication("one job: geometric", Geometric(EPSILON), "cell"),
        MechanismPublication("whole establishments: truncated", Truncated(EPSILON, NODE, "printed"), "cell", NODE),
        strong(LaplacePareto(ALPHA, EPSILON, cells=WORKER_CELLS)),
        weak(LaplacePareto(ALPHA, EPSILON / WORKER_CELLS), WORKER_CELLS),
    )
    return tuple(table1(methods, target_set, ALPHA, EPSILON, world.key, SAMPLES))


def facts(study: EmployerStudy) -> Mapping[str, object]:
    """Values for the report's text, besides its tables and the study itself."""
    from discreet_studies.employer.figures import TITLES
    from discreet_studies.employer.findings import findings

    low, high = interval(study)
    return {
        "worker_cells": WORKER_CELLS,
        "findings": findings(study),
        "captions": TITLES,
        "low": low,
        "high": high,
        "error": infusion_error(study),
        "pairs": [f"({format_exact(row.s)}, {format_exact(row.t)})" for row in agreeing(study)],
        "uniform": next(row.infusion for row in study.infusion_sweep if row.workload == 1 and row.shape == "uniform"),
    }


def further(study: EmployerStudy, out: Path) -> Mapping[str, str]:
    """Every number as CSV, and the comparator's table of workload 1 in files marked as not protected."""
    from discreet_studies.employer.tables import every_number

    world = tabulated_frame(study.data.jobs, study.data.seed, study.infusion, 1)
    sector, ownership = np.divmod(np.arange(world.frame.cells) % (len(SECTORS) * len(OWNERSHIP)), len(OWNERSHIP))
    labels = {
        "place": pa.array([place.code for place in world.frame.places]).take(pa.array(world.place)),
        "sector": pa.array([entry.code for entry in SECTORS]).take(pa.array(sector)),
        "ownership": pa.array([entry.code for entry in OWNERSHIP]).take(pa.array(ownership)),
    }
    write_comparator(out / "infusion", "jobs", labels, ("jobs",), world.establishments.infused, world.infusion)
    return every_number(study)


def paper() -> Paper[EmployerStudy]:
    """The study as the harness runs it."""
    from discreet_studies.employer.figures import figures
    from discreet_studies.employer.tables import tables

    title = "Employer–employee statistics: reproduction of Haney et al. (2017)"
    size = Size("jobs", 10_900_000, 10_000, "the figures", "generate")
    return Paper("employer", title, size, study, tables, figures, facts, further=further)
