"""The study of 003, §10 as one value: everything that is reported is a function of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isnan
from typing import TypeVar

from discreet.methods.employer.mechanisms.discrete import Geometric, Truncated
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto
from discreet.privacy.gaussian import as_epsilon
from discreet_studies import Observer
from discreet_studies.attacks.releases import Infusing, Protecting, strong, weak
from discreet_studies.attacks.runs import Finding as Tested
from discreet_studies.attacks.runs import table1, targets
from discreet_studies.employer.attacked import Attacked, attacked
from discreet_studies.employer.comparators.infusion import Infusion
from discreet_studies.employer.comparators.records_zcdp import fair
from discreet_studies.employer.contenders import ALPHA, DELTA, EPSILON, Grid, Inadmissible
from discreet_studies.employer.drawn import Check, Drawn, baseline, checks
from discreet_studies.employer.rankings import Correlation, correlations
from discreet_studies.employer.ratios import OCCUPIED, Ratio, ratios
from discreet_studies.employer.sweep import Swept, swept
from discreet_studies.employer.workloads import ALL, GRADUATES, TRIALS, WORKER_CELLS, World, world

Result = TypeVar("Result")
Key = tuple[int, str, Fraction | None, Fraction | None, int | None, str, str]

INFUSION = Infusion(Fraction(1, 10), Fraction(1, 4))  # ours: an agency's are secret
WORKLOADS = (1, 2, 3)
SAMPLES = 20_000  # of each audit: losses up to 6.5 can be seen
NODE = 1000  # θ of Table 1 (003, §6)
REFERENCES = (20, 100, 500)
SMALL = Fraction(1, 10**6)


@dataclass(frozen=True)
class Data:
    """What was invented, beside what the paper says of its own."""

    jobs: int
    seed: int
    establishments: int
    places: int
    above_1000: int
    cells: int
    occupied: int
    below_1000: float  # share of occupied cells


@dataclass(frozen=True)
class Splitting:
    """Per-record zCDP that promises a reference size what (α, ε) promises every size, up to δ."""

    reference: int
    delta: Fraction
    ratio: float
    largest: Fraction  # the ε of the largest establishment's growth by 1+α
    beyond: float  # share of jobs in establishments above the reference


@dataclass(frozen=True)
class Study:
    """All numbers."""

    data: Data
    infusion: Infusion
    grid: Grid
    trials: int
    ratios: tuple[Ratio, ...]
    inadmissible: tuple[Inadmissible, ...]
    correlations: tuple[Correlation, ...]
    checks: tuple[Check, ...]
    drawn: tuple[Drawn, ...]
    swept: tuple[Swept, ...]
    splitting: tuple[Splitting, ...]
    tested: tuple[Tested, ...]  # Table 1
    attacked: tuple[Attacked, ...]

    def ratio(
        self,
        workload: int,
        mechanism: str,
        alpha: Fraction | None = None,
        epsilon: Fraction | None = None,
        theta: int | None = None,
        stratum: str = ALL,
        cells: str = OCCUPIED,
    ) -> float | None:
        """Of L1 errors; None where the pair is inadmissible or the stratum empty."""
        return self._ratios.get((workload, mechanism, alpha, epsilon, theta, stratum, cells))

    def correlation(
        self,
        ranking: int,
        mechanism: str,
        alpha: Fraction | None = None,
        epsilon: Fraction | None = None,
        theta: int | None = None,
        stratum: str = ALL,
        cells: str = OCCUPIED,
    ) -> float | None:
        """With the order of noise infusion; None as for ratios."""
        return self._correlations.get((ranking, mechanism, alpha, epsilon, theta, stratum, cells))

    @cached_property
    def _ratios(self) -> dict[Key, float]:
        return {_key(r, r.workload): r.ratio for r in self.ratios if not isnan(r.ratio)}

    @cached_property
    def _correlations(self) -> dict[Key, float]:
        return {_key(c, c.ranking): c.infusion for c in self.correlations if not isnan(c.infusion)}


def _key(row: Ratio | Correlation, number: int) -> Key:
    return number, row.mechanism, row.alpha, row.epsilon, row.theta, row.stratum, row.cells


def study(jobs: int, seed: int, observe: Observer, grid: Grid | None = None, trials: int = TRIALS) -> Study:
    """Invent the data, run everything."""
    chosen, began = grid or Grid(), Progress(observe)
    made = began.step("establishments", world(jobs, seed, INFUSION, trials))
    return Study(
        data=_data(made),
        infusion=INFUSION,
        grid=chosen,
        trials=trials,
        ratios=began.step("errors", tuple(row for w in WORKLOADS for row in ratios(made, w, chosen))),
        inadmissible=tuple(pair for w in WORKLOADS for pair in chosen.inadmissible(w, made.parts_of(w))),
        correlations=tuple(correlations(made, chosen, observe)),
        checks=began.step("trials", tuple(checks(made))),
        drawn=tuple(baseline(made, chosen)),
        swept=began.step("parameters of infusion", tuple(swept(made))),
        splitting=tuple(_splitting(made)),
        tested=began.step("attacks and audits", _tested(made)),
        attacked=began.step("attacks on every mechanism", attacked(made)),
    )


@dataclass(frozen=True)
class Progress:
    """Says that a step is over, once its result is there."""

    observe: Observer

    def step(self, name: str, result: Result) -> Result:
        """The result itself."""
        self.observe(name, 1, 1)
        return result


def _data(made: World) -> Data:
    counts = made.establishments.counts[made.occupied, 0]
    return Data(
        jobs=made.frame.jobs,
        seed=made.frame.seed,
        establishments=len(made.frame),
        places=len(made.frame.places),
        above_1000=int((made.frame.size > 1000).sum()),
        cells=made.frame.cells,
        occupied=len(counts),
        below_1000=float((counts < 1000).mean()),
    )


def _splitting(made: World) -> Iterator[Splitting]:
    """At δ of the figures, and at a small one."""
    largest = int(made.frame.size.max())
    beside = made.establishments.infusion_error[made.occupied].mean()
    for reference in (*(size for size in REFERENCES if size < largest), largest):
        for delta in (DELTA, SMALL):
            method = fair(ALPHA, EPSILON, delta, reference)
            lost = as_epsilon(method.growth(largest, ALPHA), delta)
            beyond = float(made.frame.size[made.frame.size > reference].sum() / made.frame.jobs)
            yield Splitting(reference, delta, float(method.mean_abs() / beside), lost, beyond)


def _tested(made: World) -> tuple[Tested, ...]:
    """Table 1 at the baseline, ε for all worker cells together; nothing if no establishment can be a target."""
    aimed = targets(made.workers, made.frame.cell, GRADUATES, made.infusion.limit)
    if not len(aimed.clear) or not len(aimed.with_one):
        return ()
    methods = (
        Infusing(made.infusion),
        Protecting("one job: geometric", Geometric(EPSILON), "cell"),
        Protecting("whole establishments: truncated", Truncated(EPSILON, NODE, "printed"), "cell", NODE),
        strong(LaplacePareto(ALPHA, EPSILON, cells=WORKER_CELLS)),
        weak(LaplacePareto(ALPHA, EPSILON / WORKER_CELLS), WORKER_CELLS),
    )
    return tuple(table1(methods, aimed, ALPHA, EPSILON, made.key, SAMPLES))
