"""Errors of corrected flows, by every rule, and of the raw noisy measurements, by the size of the true flow.

A replication is one institution of its own synthetic country: noise, INDFLOW and the draws of a rule are shared
within it, so standard errors are computed between replications. For simulations only: it holds the true flows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.errors import ParameterError
from discreet.methods.flows.correction import RULES, Controls, CorrectionRule, GroupControls
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.synth.draws import StreamPurpose, generator, refuse_unless_within
from discreet.synth.sectors import SECTORS
from discreet.synth.states import STATES
from discreet_studies.pseo.national import SCHOOL, national

RAW = "raw"  # the uncorrected noisy measurements
PUBLISHED = "published"  # the reference for gains
BORDERS = np.array([0, 1, 2, 5, 10, 30, 100])  # lower bounds of the size classes of the true flow
SIZES = ("0", "1", "2–4", "5–9", "10–29", "30–99", "100+")
CONTROLS = ("public", "blurred", "none")
BLUR = 1.0  # σ of the log-factor that distorts jobs and employment in blurred controls
MARGINAL_WEIGHT = Fraction(1)
LEAST = 2  # institutions: one has no standard error


@dataclass(frozen=True)
class InstitutionFlows:
    """The groups of one institution: true flows and public controls."""

    true: Int64s  # group × cell
    home: Int64s  # of each group
    family: Int64s
    jobs: Floats
    employment: Floats

    def controls(self, kind: str, noisy: Int64s, seed: int) -> Controls:
        """Controls as published; with jobs and employment distorted by a factor; or all 1 (uninformative)."""
        flow = by_family(jobs_of(noisy).sum(axis=2), self.family)
        if kind == "none":
            jobs, employment, flow = np.ones_like(self.jobs), np.ones_like(self.employment), np.ones_like(flow)
        elif kind == "blurred":
            rng = generator(seed, StreamPurpose.NATIONAL, 1)
            jobs, employment = (x * rng.lognormal(0.0, BLUR, x.shape) for x in (self.jobs, self.employment))
        else:
            jobs, employment = self.jobs, self.employment
        return Controls.of(jobs, employment, flow, MARGINAL_WEIGHT)


def institution_flows(seed: int, groups: int = SCHOOL) -> InstitutionFlows:
    """The first groups of the first institution of a country."""
    refuse_unless_within("evaluate flows", "groups", groups, 1, SCHOOL)
    country = national(groups, seed)
    home = country.home[country.keys[:, 0]].astype(np.int64)
    family = np.unique(country.keys[:, 2], return_inverse=True)[1].astype(np.int64)
    jobs, employment = country.economy.hires.astype(np.float64), country.economy.employment.astype(np.float64)
    return InstitutionFlows(country.counts(0, groups), home, family, jobs, employment)


def jobs_of(flows: Int64s) -> Int64s:
    """Group × sector × state: the flows without the marginal cell."""
    return flows[:, :-1].reshape(len(flows), len(SECTORS), len(STATES))


def by_family(numbers: Int64s, family: Int64s) -> Int64s:
    """Sums over the groups of each family; every family has some."""
    order = np.argsort(family, kind="stable")
    sums: Int64s = np.add.reduceat(numbers[order], np.searchsorted(family[order], np.arange(family.max() + 1)))
    return sums


def _divisions(flows: Int64s) -> Int64s:
    division = np.array([int(state.division) for state in STATES])
    order = np.argsort(division, kind="stable")
    sums: Int64s = np.add.reduceat(jobs_of(flows)[:, :, order], np.unique(division[order], return_index=True)[1], 2)
    return sums


def _states(flows: Int64s) -> Int64s:
    sums: Int64s = jobs_of(flows).sum(axis=1)
    return sums


KINDS: dict[
    str, Callable[[Int64s, InstitutionFlows], Int64s]
] = {  # statistics derived from the flows of a group or of a family
    "cell": lambda flows, _: flows[:, :-1],
    "state": lambda flows, _: _states(flows),
    "division × sector": lambda flows, _: _divisions(flows),
    "in-state": lambda flows, world: _states(flows)[np.arange(len(flows)), world.home],
    "employed": lambda flows, _: flows[:, :-1].sum(axis=1),
    "marginal": lambda flows, _: flows[:, -1],
    "total": lambda flows, _: flows.sum(axis=1),
    "family's cell": lambda flows, world: by_family(flows[:, :-1], world.family),
    "family's state": lambda flows, world: by_family(_states(flows), world.family),
}


def correct(rule: CorrectionRule, noisy: Int64s, groups: GroupControls, key: ReleaseKey, purpose: str) -> Int64s:
    """Apply the rule with random words from a stream of the key."""
    starts = np.concatenate([[0], np.cumsum(rule.words_needed(noisy))])
    blocks = key.stream("evaluate", "flows", b"", purpose).words(0, int(starts[-1] + 1) // 2)
    words = [np.empty(0, np.uint64), *(block.reshape(-1).copy() for block in blocks)]  # the stream reuses its buffer
    return rule.correct(noisy, groups, np.concatenate(words), starts)


def tally(true: Int64s, estimate: Int64s) -> Int64s:
    """For each size class of the true flow: number, Σ error, Σ |error|, Σ error².

    >>> tally(np.array([0, 0, 3]), np.array([1, -2, 1]))[[0, 2]].tolist()
    [[2, -1, 3, 5], [1, -2, 2, 4]]
    """
    sums = np.zeros((len(SIZES), 4), np.int64)
    _tally(np.ascontiguousarray(true).reshape(-1), np.ascontiguousarray(estimate).reshape(-1), BORDERS, sums)
    return sums


@compiled
def _tally(true: Int64s, estimate: Int64s, borders: Int64s, sums: Int64s) -> None:
    for i in range(true.size):
        size = 0
        while size + 1 < borders.size and true[i] >= borders[size + 1]:
            size += 1
        error = estimate[i] - true[i]
        sums[size, 0] += 1
        sums[size, 1] += error
        sums[size, 2] += abs(error)
        sums[size, 3] += error * error


@dataclass(frozen=True)
class FlowStudy:
    """Errors of every rule: sums[replication, ε, controls, rule, kind, size] = tally; RAW is the first rule.

    zeroed[replication, ε] = groups whose noisy total is not positive, those of them with graduates, and these
    graduates.
    """

    epsilons: tuple[Fraction, ...]
    rules: tuple[str, ...]
    groups: int  # of one replication
    sums: Int64s
    zeroed: Int64s

    @cached_property
    def scores(self) -> list[FlowScore]:
        """Every score, also over all sizes; statistics that never occur have none."""
        sums = np.concatenate([self.sums, self.sums.sum(axis=5, keepdims=True)], axis=5)
        scores = []
        for e, epsilon in enumerate(self.epsilons):
            for c, controls in enumerate(CONTROLS):
                for k, kind in enumerate(KINDS):
                    for s, size in enumerate((*SIZES, "all")):
                        if sums[:, e, c, 0, k, s, 0].any():
                            here = [_measures(sums[:, e, c, r, k, s]) for r in range(len(self.rules))]
                            base = here[self.rules.index(PUBLISHED)]
                            number = int(sums[:, e, c, 0, k, s, 0].sum())
                            scores += [
                                FlowScore(epsilon, controls, rule, kind, size, number, *_beside(mine, base))
                                for rule, mine in zip(self.rules, here, strict=True)
                            ]
        return scores


@dataclass(frozen=True)
class FlowScore:
    """Errors of one rule for statistics of one kind and size, each with its Monte-Carlo standard error.

    A gain is the reduction relative to `published` on the same measurements: paired, so its standard error is small.
    """

    epsilon: Fraction
    controls: str
    rule: str
    kind: str
    size: str
    number: int
    bias: float
    bias_se: float
    mean_abs: float
    mean_abs_se: float
    rmse: float
    rmse_se: float
    mean_abs_gain: float
    mean_abs_gain_se: float
    rmse_gain: float
    rmse_gain_se: float


def _measures(sums: Int64s) -> tuple[Floats, Floats]:
    """Bias, mean |error| and RMSE from tallies of replications, and each replication's contribution to their
    deviation."""
    number = sums[:, 0].sum()
    values = sums[:, 1:].sum(axis=0) / number
    deviations = (sums[:, 1:] - sums[:, :1] * values) / number
    root = np.sqrt(values[2])
    slope = 0.5 / root if root > 0 else 0.0
    return np.array([values[0], values[1], root]), deviations * np.array([1.0, 1.0, slope])


def _beside(mine: tuple[Floats, Floats], base: tuple[Floats, Floats]) -> list[float]:
    """The measures of a `FlowScore` in its order."""
    own, own_se = mine[0], _error(mine[1])
    gain, gain_se = base[0] - own, _error(base[1] - mine[1])
    pairs = [(own[m], own_se[m]) for m in range(3)] + [(gain[m], gain_se[m]) for m in (1, 2)]
    return [float(x) for pair in pairs for x in pair]


def _error(deviations: Floats) -> Floats:
    """The standard error of a sum of independent deviations."""
    n = len(deviations)
    error: Floats = np.sqrt((deviations**2).sum(axis=0) * n / (n - 1))
    return error


def study(
    epsilons: Sequence[Fraction],
    institutions: int,
    seed: int,
    rules: Mapping[str, CorrectionRule] = RULES,
    groups: int = SCHOOL,
) -> FlowStudy:
    """Add noise to the flows of each institution and correct them by every rule, with every kind of controls."""
    if institutions < LEAST:
        raise ParameterError(
            "too few institutions for a standard error", where="institutions", do=f"give {LEAST} or more"
        )
    if PUBLISHED not in rules:
        raise ParameterError("the reference rule is missing", where="rules", do=f"keep {PUBLISHED!r}")
    names, key = (RAW, *rules), ReleaseKey.simulation("evaluate")
    sums = np.zeros((institutions, len(epsilons), len(CONTROLS), len(names), len(KINDS), len(SIZES), 4), np.int64)
    zeroed = np.zeros((institutions, len(epsilons), 3), np.int64)
    for i in range(institutions):
        here = institution_flows(seed + i, groups)
        truths = [view(here.true, here) for view in KINDS.values()]
        for e, epsilon in enumerate(epsilons):
            purpose = f"{epsilon}/{seed + i}"
            noisy = here.true.copy()
            DiscreteLaplace(epsilon).add_to(
                noisy.reshape(-1), key.stream("evaluate", "flows", b"", f"noise/{purpose}"), 0
            )
            gone = noisy.sum(axis=1) <= 0
            graduates = here.true[gone].sum(axis=1)
            zeroed[i, e] = gone.sum(), (graduates > 0).sum(), graduates.sum()
            sums[i, e, :, 0] = _tallies(truths, noisy, here)
            for c, kind in enumerate(CONTROLS):
                known = GroupControls(here.controls(kind, noisy, seed + i), here.home, here.family, epsilon)
                for r, rule in enumerate(rules.values(), 1):
                    corrected = correct(rule, noisy, known, key, f"correction/{purpose}")
                    sums[i, e, c, r] = _tallies(truths, corrected, here)
    return FlowStudy(tuple(epsilons), names, groups, sums, zeroed)


def _tallies(truths: list[Int64s], flows: Int64s, here: InstitutionFlows) -> Int64s:
    return np.stack([tally(true, view(flows, here)) for true, view in zip(truths, KINDS.values(), strict=True)])
