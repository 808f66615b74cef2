"""How every ratio moves with the parameters of noise infusion, which an agency keeps secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet_studies.employer.comparators.infusion import Infusion, Shape
from discreet_studies.employer.workloads import Economy

S = tuple(Fraction(percent, 100) for percent in (2, 5, 10, 15))
T = tuple(Fraction(percent, 100) for percent in (10, 15, 20, 25, 30, 40))
FEWER = 10  # the tables by sex and education have so many cells that a tenth of the trials will do


@dataclass(frozen=True)
class Swept:
    """Mean |error| of noise infusion over cells with establishments: what every ratio is divided by."""

    workload: int
    s: Fraction
    t: Fraction
    shape: Shape
    infusion: float


def swept(world: Economy) -> Iterator[Swept]:
    """Ramps over a grid of (s, t); the uniform shape at ours. Workloads 2 and 3 have the same table."""
    ours = world.infusion
    methods = [Infusion(s, t, ours.limit) for s in S for t in T if s < t]
    methods.append(Infusion(ours.s, ours.t, ours.limit, "uniform"))
    for method in methods:
        for workloads, trials in (((1,), world.trials), ((2, 3), -(-world.trials // FEWER))):
            error = float(world.infused_with(method, workloads[0], trials)[world.occupied].mean())
            yield from (Swept(workload, method.s, method.t, method.shape, error) for workload in workloads)
