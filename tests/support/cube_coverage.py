"""Coverage of the confidence intervals of a cube's queries, simulating sampling and perturbation together.

The intervals are those of Li & Krenzke 2020, §3.4, and ours.

Only for synthetic or public populations: it needs the population value of every cell. Each sample's cube is perturbed
under a fixed test key, its sampling variance estimated in several ways, and each interval checked for covering the
population value. The ways:

published   internal: raw replication + (θ̃ − θ̂)² (§3.4)
expected    internal: raw replication + the expected perturbation variance
replicates  public: protected replicate cubes, negative variances taken as 0
plain       public: a variance function of a few protected replicate tables, at max(x̃, 0)
curve       public: the same function, one record further (`Gvf.variance`)
score       public: the same function, at the value sought (`Gvf.interval`); what we recommend with clusters
squares     public: as score, of protected sums of squared weights; what we recommend without
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, prod, sqrt
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.cubes.margins import Floats, Margin
from discreet.post.cubes.sampling import (
    Gvf,
    Spread,
    fit_gvf,
    interval,
    replicate_noise,
    replicate_variance,
    standard_error,
)
from discreet.post.laplace_sum import clamped_rate, fourth_cumulant

Way = Literal["published", "expected", "replicates", "plain", "curve", "score", "squares"]
Bools = NDArray[np.bool_]

WAYS: tuple[Way, ...] = get_args(Way)
SIZES = (5.0, 50.0)  # records expected in a cell, between small and middle, and middle and large
NAMES = ("empty", "small", "middle", "large")
LARGEST = 2**27  # query cells × cube cells: one gibibyte


@dataclass(frozen=True, eq=False)
class Sample:
    """A drawn sample: each record's cell, its weight (an integer), and its replicate weights (record × R)."""

    cells: Numbers
    weights: Numbers
    replicates: Floats


@dataclass(frozen=True, eq=False)
class CoverageDesign:
    """Parameters declared before any record is read."""

    shape: tuple[int, ...]
    queries: tuple[Margin, ...]
    fitted_on: tuple[Margin, ...]  # the tables whose replicates are protected for the variance function
    largest_weight: int
    bound: int  # of a record's deviation in one replicate; larger ones are clamped
    factor: float = 4.0
    level: Fraction = Fraction(19, 20)
    total: float = inf


@dataclass(frozen=True)
class IntervalCoverage:
    """Coverage of the population value by the intervals of a group of cells; standard errors are over samples."""

    way: Way
    epsilon: Fraction
    group: str  # empty, small, middle, large; or "1-way" …
    intervals: int
    covered: float
    covered_error: float
    width: float  # median half-width over that of known variances


@dataclass(frozen=True)
class Stability:
    """Sampling variances against the mean squared error of the samples themselves."""

    way: Way
    epsilon: Fraction
    group: str
    ratio: float  # sum of the estimates over sum of the truths
    off: float  # median of |v̂/v − 1|
    negative: float  # how often v̂ was below zero


@dataclass(frozen=True)
class PerturbationCoverage:
    """Coverage of the sample's own value by the interval for the perturbation alone."""

    epsilon: Fraction
    group: str
    intervals: int
    covered: float


@dataclass(frozen=True)
class FittedCurve:
    """The variance function of one sample."""

    way: Way  # score or squares
    epsilon: Fraction
    fit: Gvf


@dataclass(frozen=True)
class CoverageStudy:
    """All results."""

    coverage: tuple[IntervalCoverage, ...]
    stability: tuple[Stability, ...]
    perturbation: tuple[PerturbationCoverage, ...]
    curves: tuple[FittedCurve, ...]

    def covered(self, way: Way, epsilon: Fraction, group: str) -> IntervalCoverage:
        """One line of the table."""
        for line in self.coverage:
            if (line.way, line.epsilon, line.group) == (way, epsilon, group):
                return line
        raise ParameterError("no result for this group", where=f"{way}, {group}", do="choose one of the study's groups")


def cube_coverage(
    truth: Floats, samples: Iterable[Sample], design: CoverageDesign, epsilons: Sequence[Fraction]
) -> CoverageStudy:
    """At each ε: the cube spends ε on its cells, and each way that needs more numbers spends ε on them."""
    chosen = [positive_fraction("epsilon", epsilon) for epsilon in epsilons]
    drawn = [_Drawn.of(sample, design) for sample in samples]
    if len(drawn) < 2:
        raise ParameterError("fewer than two samples have no spread", where="samples", do="draw more")
    queries = _Queries.of(truth, drawn, design)
    coverage: list[IntervalCoverage] = []
    stability: list[Stability] = []
    held: list[PerturbationCoverage] = []
    curves: list[FittedCurve] = []
    for epsilon in chosen:
        runs = [_SampleRun.of(queries, one, design, epsilon, number) for number, one in enumerate(drawn)]
        curves += [FittedCurve(way, epsilon, fit) for run in runs for way, fit in run.fits.items()]
        for group, members in queries.groups.items():
            if not members.any():
                continue
            coverage += [_coverage(way, epsilon, group, members, runs, queries) for way in WAYS]
            stability += [_stability(way, epsilon, group, members, runs, queries) for way in WAYS]
            share = float(np.mean([run.held[members] for run in runs]))
            held.append(PerturbationCoverage(epsilon, group, len(runs) * int(members.sum()), share))
    return CoverageStudy(tuple(coverage), tuple(stability), tuple(held), tuple(curves))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A sample's cubes: records, weights, squared weights, exact deviations, and clamped ones rounded to integers."""

    records: Floats
    estimate: Floats
    squares: Floats
    deviations: Floats  # cell × R
    clamped: NDArray[np.int64]

    @classmethod
    def of(cls, sample: Sample, design: CoverageDesign) -> _Drawn:
        size = prod(design.shape)
        if (sample.weights < 1).any() or (sample.weights > design.largest_weight).any():
            raise ParameterError("a weight is outside 1 … largest_weight", where="weights", do="declare a larger one")
        weight = sample.weights.astype(np.float64)
        moved = sample.replicates - weight[:, None]
        whole = np.clip(np.rint(moved), -design.bound, design.bound)

        def cube(values: Floats) -> Floats:
            return np.bincount(sample.cells, weights=values, minlength=size).astype(np.float64)

        deviations, clamped = (np.stack([cube(part) for part in of.T], axis=1) for of in (moved, whole))
        ones = np.ones(len(weight))
        return cls(cube(ones), cube(weight), cube(weight**2), deviations, np.rint(clamped).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Queries:
    """The cells of all query tables: which cells of the cube each adds up, its true value, and its groups."""

    adds: Floats  # query × cell
    cells: Floats  # k of each
    truth: Floats
    mse: Floats  # mean over samples of (θ̂ − truth)²
    groups: dict[str, Bools]

    @classmethod
    def of(cls, truth: Floats, drawn: Sequence[_Drawn], design: CoverageDesign) -> _Queries:
        size = prod(design.shape)
        if size * sum(margin.cells for margin in design.queries) > LARGEST or truth.shape != (size,):
            raise ParameterError("a cube too large to study, or not the truth's", where="queries", do="ask for fewer")
        adds = np.concatenate([incidence(margin) for margin in design.queries])
        value = adds @ truth
        records = adds @ np.mean([one.records for one in drawn], axis=0)
        mse = np.mean([(adds @ one.estimate - value) ** 2 for one in drawn], axis=0)
        large = np.where(value == 0, 0, 1 + np.searchsorted(SIZES, records, side="right"))
        dimension = np.concatenate([np.full(margin.cells, len(margin.axes)) for margin in design.queries])
        groups = {name: large == number for number, name in enumerate(NAMES)}
        groups |= {f"{d}-way": dimension == d for d in np.unique(dimension).tolist()}
        return cls(adds, adds.sum(axis=1), value, mse, groups)


@dataclass(frozen=True, eq=False)
class _SampleRun:
    """One sample at one ε: for each way its sampling variances and its intervals."""

    variances: dict[Way, Floats]  # of sampling; the paper's less the expected perturbation
    ends: dict[Way, tuple[Floats, Floats]]
    held: Bools
    noise: Floats  # perturbation variance of each query
    fits: dict[Way, Gvf]

    @classmethod
    def of(cls, queries: _Queries, drawn: _Drawn, design: CoverageDesign, epsilon: Fraction, number: int) -> _SampleRun:
        replicates = drawn.clamped.shape[1]
        distribution = DiscreteLaplace(epsilon / design.largest_weight)
        cube = drawn.estimate + _noise(distribution, len(drawn.estimate), "cube", number)
        x, noise = queries.adds @ cube, queries.cells * distribution.variance()
        fourth = queries.cells * fourth_cumulant(clamped_rate(distribution.rate))
        exact = queries.adds @ drawn.estimate
        raw = replicate_variance(queries.adds @ drawn.deviations, factor=design.factor, noise=0.0)

        own = DiscreteLaplace(epsilon / (replicates * design.bound))
        protected = drawn.clamped + _noise(own, drawn.clamped.size, "replicates", number).reshape(-1, replicates)
        cubes = replicate_variance(queries.adds @ protected, factor=design.factor, noise=queries.cells * own.variance())
        fit = _on_replicates(drawn, cube, distribution, design, epsilon, number)
        other = _on_squares(drawn, cube, distribution, design, epsilon, number)

        paper = (
            raw + (x - exact) ** 2
        )  # Li & Krenzke 2020, §3.4: together with x it reveals the protected value, and must not be published
        variances: dict[Way, Floats] = {
            "published": paper - noise,
            "expected": raw,
            "replicates": cubes,
            "plain": fit.at(x),
            "curve": fit.variance(x),
            "score": fit.variance(x),
            "squares": other.variance(x),
        }
        ends = {way: interval(x, standard_error(x, variances[way], noise), design.level, fourth) for way in WAYS}
        ends["published"] = interval(x, np.sqrt(paper), design.level)
        ends["score"] = fit.interval(x, noise, design.level, fourth)
        ends["squares"] = other.interval(x, noise, design.level, fourth)
        low, high = interval(x, standard_error(x, 0.0, noise), design.level, fourth)
        return cls(variances, ends, (low <= exact) & (exact <= high), noise, {"score": fit, "squares": other})


def _on_replicates(
    drawn: _Drawn, cube: Floats, distribution: DiscreteLaplace, design: CoverageDesign, epsilon: Fraction, number: int
) -> Gvf:
    """The variance function of protected deviations of the declared tables, which share ε."""
    replicates, tables = drawn.clamped.shape[1], len(design.fitted_on)
    own = DiscreteLaplace(epsilon / (tables * replicates * design.bound))
    s2, fourth = own.variance(), fourth_cumulant(clamped_rate(own.rate))

    def protected(adds: Floats, name: str) -> Floats:
        deviations = adds @ drawn.clamped
        deviations += _noise(own, deviations.size, f"deviations of {name}", number).reshape(deviations.shape)
        return replicate_variance(deviations, factor=design.factor, noise=s2)

    spread = partial(replicate_noise, replicates=replicates, factor=design.factor, noise=s2, fourth=fourth)
    return _fit(protected, spread, cube, distribution, design)


def _on_squares(
    drawn: _Drawn, cube: Floats, distribution: DiscreteLaplace, design: CoverageDesign, epsilon: Fraction, number: int
) -> Gvf:
    """The variance function of protected Σw², one number a cell instead of R: the variance of a sample without clusters
    whose size is free. A fixed total is put into the function afterwards."""
    own = DiscreteLaplace(epsilon / (len(design.fitted_on) * design.largest_weight**2))

    def protected(adds: Floats, name: str) -> Floats:
        return adds @ drawn.squares + _noise(own, len(adds), f"squares of {name}", number)

    return replace(_fit(protected, own.variance(), cube, distribution, replace(design, total=inf)), total=design.total)


def _fit(
    protected: Callable[[Floats, str], Floats],
    spread: float | Spread,
    cube: Floats,
    distribution: DiscreteLaplace,
    design: CoverageDesign,
) -> Gvf:
    adds = [incidence(margin) for margin in design.fitted_on]
    every = np.concatenate(adds)
    return fit_gvf(
        every @ cube,
        np.concatenate([protected(add, f"table {place}") for place, add in enumerate(adds)]),
        noise_of_estimates=every.sum(axis=1) * distribution.variance(),
        fourth_of_estimates=every.sum(axis=1) * fourth_cumulant(clamped_rate(distribution.rate)),
        spread_of_variances=spread,
        total=design.total,
    )


def incidence(margin: Margin) -> Floats:
    """1 where a cell of the cube (column) is added to a cell of the margin (row): for cubes small enough to study."""
    size = prod(margin.shape)
    actual = np.zeros((margin.cells, size))
    actual[margin.parents(np.arange(size)), np.arange(size)] = 1.0
    return actual


def _noise(distribution: DiscreteLaplace, n: int, purpose: str, number: int) -> NDArray[np.int64]:
    stream = ReleaseKey.simulation("cube coverage").stream("evaluate", f"sample {number}", b"", purpose)
    return distribution.draw(stream, 0, n)


def _coverage(
    way: Way, epsilon: Fraction, group: str, members: Bools, runs: Sequence[_SampleRun], queries: _Queries
) -> IntervalCoverage:
    truth = queries.truth[members]
    known = np.sqrt(queries.mse + runs[0].noise)[members]
    shares, widths = [], []
    for run in runs:
        low, high = (end[members] for end in run.ends[way])
        shares.append(np.mean((low <= truth) & (truth <= high)))
        widths.append((high - low) / 2 / known)
    error = float(np.std(shares, ddof=1)) / sqrt(len(runs))
    width = float(np.median(np.concatenate(widths)))
    return IntervalCoverage(way, epsilon, group, len(runs) * len(truth), float(np.mean(shares)), error, width)


def _stability(
    way: Way, epsilon: Fraction, group: str, members: Bools, runs: Sequence[_SampleRun], queries: _Queries
) -> Stability:
    actual = np.stack([run.variances[way][members] for run in runs])
    true = queries.mse[members]
    some = true > 0
    ratio = float(actual.mean(axis=0).sum() / true.sum()) if some.any() else inf
    off = float(np.median(np.abs(actual[:, some] / true[some] - 1))) if some.any() else inf
    return Stability(way, epsilon, group, ratio, off, float(np.mean(actual < 0)))
