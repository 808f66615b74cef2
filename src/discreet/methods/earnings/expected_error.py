"""How wrong percentiles will be, before anything is spent: simulated on a public reference, never on the records.

For every level both ways are shown, measured and added up, so that one can choose. The reference is a lognormal
distribution and a number of graduates in a cell of the table itself; a coarser cell has as many times more as it has
such cells. Of the error two parts are told apart: what the noise does to the percentile of the histogram, and how far
that percentile lies from the distribution's own, which no epsilon mends.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import asinh, erf, exp, inf, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Int64s
from discreet.domain import coarsening
from discreet.domain.bins import Bins
from discreet.formatting import plural
from discreet.methods.earnings.levels import AnyLevel, DerivedLevel, MeasuredLevel
from discreet.methods.earnings.spec import Reference
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.post.laplace_sum import count_margin, upper_tail
from discreet.post.percentiles import percentiles
from discreet.post.portable import inner
from discreet.privacy.exact import format_exact

if TYPE_CHECKING:
    from discreet.methods.earnings.method import EarningsMethod

REPEATS = 2000
MOST_DRAWS = 32  # a sum of more is drawn as a wider sum of these
MANY = 10**12  # graduates
NOISE = 0.001  # share of empty cells published above which `plan` warns
RARE = 0.02  # share of cells published below which nothing is said about them


@dataclass(frozen=True)
class ReferenceCell:
    """A cell of the reference."""

    reference: Reference
    bins: Bins
    points: tuple[Fraction, ...]
    suppress_below: int

    def histogram(self, graduates: int) -> Int64s:
        """The reference's histogram of so many graduates; what lies below the first border is in the first bin."""
        mean, deviation = float(self.reference.mean), float(self.reference.deviation)
        scaled = [(log(b) - mean) / deviation / sqrt(2) if b > 0 else -inf for b in self.bins.edges[1:-1]]
        below = [0.5 * (1 + erf(z)) for z in scaled]
        upto = np.rint(np.array([0.0, *below, 1.0]) * graduates)
        counts: Int64s = np.diff(upto).astype(np.int64)
        return counts

    def interpolation(self) -> Floats:
        """The percentile of the histogram of very many, without noise, minus that of the distribution."""
        distribution = NormalDist(float(self.reference.mean), float(self.reference.deviation))
        exact = np.array([exp(distribution.inv_cdf(float(point))) for point in self.points])
        found: Floats = percentiles(self.histogram(MANY)[None], self.bins, self.points)[0] - exact
        return found

    def error(self, graduates: int, rate: Fraction, summands: int) -> tuple[Floats, float]:
        """Mean |error| of each percentile over the noise, of the cells that are published, and their share."""
        true = self.histogram(graduates)
        few = min(summands, MOST_DRAWS)
        stream = ReleaseKey.simulation("outlook").stream("plan", "noise", b"", str(few))
        drawn = DiscreteLaplace(rate).draw(stream, 0, REPEATS * few * self.bins.count)
        noise = drawn.reshape(REPEATS, few, self.bins.count).sum(axis=1)
        if few < summands:
            noise = np.rint(noise * sqrt(summands / few)).astype(np.int64)
        noisy = true + noise
        kept = noisy[noisy.sum(axis=1) >= self.suppress_below]
        if not len(kept):
            return np.full(len(self.points), np.nan), 0.0
        truth = percentiles(true[None], self.bins, self.points)
        return np.abs(percentiles(kept, self.bins, self.points) - truth).mean(axis=0), len(kept) / REPEATS


def notes(method: EarningsMethod) -> dict[str, tuple[str, ...]]:
    """Lines for `plan`, by level."""
    return {level.name: (_empty_cells(level, method.bins.count), *_lines(method, level)) for level in method.levels}


def _empty_cells(level: AnyLevel, bins: int) -> str:
    """How often noise alone is published: the rule of 30 looks at a noisy count."""
    measured = isinstance(level, MeasuredLevel)
    sums, cells = (np.ones((2, 1), np.int64)) if measured else np.unique(level.summands, return_counts=True)
    chances = [upper_tail(level.distribution.rate, int(s) * bins, level.shape.suppress_below) for s in sums]
    share = inner(np.array(chances), cells.astype(np.float64)) / max(int(cells.sum()), 1)
    said = f"a cell with nobody in it is published with probability {_small(share)}"
    if share <= NOISE:
        return said
    enough = count_margin(level.distribution.rate, int(sums[-1]) * bins, 1 - 2 * Fraction(1, 1000)) + 1
    return f"{said} <-- noise alone: `suppress_below: {enough}` would make it less than 0.1%"


def _small(share: float) -> str:
    return "less than 0.01%" if share < 1e-4 else f"{share:.2%}" if share < 0.1 else f"{share:.0%}"


def _lines(method: EarningsMethod, level: AnyLevel) -> list[str]:
    asked = ReferenceCell(method.spec.reference, method.bins, method.points, level.shape.suppress_below)
    names = [f"p{format_exact(percentile)}" for percentile in method.spec.percentiles]
    base = method.levels[0]
    cells = None if level is base else coarsening(base.domain, level.domain)
    graduates = asked.reference.graduates * (1 if cells is None else _typical(cells.children()))
    distribution = f"lognormal({format_exact(asked.reference.mean)}, {format_exact(asked.reference.deviation)})"
    rule = (
        "by the published rule (`shrunk` errs less)" if method.spec.estimator == "shrunk" else "by the published rule"
    )
    lines = [f"percentiles {rule}, if earnings are {distribution} with {graduates:,} graduates in a typical cell:"]
    derived = level if isinstance(level, DerivedLevel) else method.as_derived(level)
    ways: list[tuple[str, Fraction, int]] = []
    if isinstance(level, MeasuredLevel):
        ways.append((f"measured with epsilon {format_exact(level.epsilon)}", level.distribution.rate, 1))
    if derived is not None:
        summands = _typical(derived.summands)
        ways.append(
            (f"sum of {plural(summands, 'cell')} of {derived.source.name}", derived.distribution.rate, summands)
        )
    if isinstance(level, DerivedLevel):
        ways.append(
            (f"if measured with epsilon {format_exact(level.source.epsilon)}", level.source.distribution.rate, 1)
        )
    for what, rate, summands in ways:
        errors, share = asked.error(graduates, rate, summands)
        lines.append(f"  {what}: {_amounts(names, errors, share)}")
    if derived is not None and derived.distribution.variance() > 0:
        lines.append(_choice(level, derived, method.unit.records))
    bias = asked.interpolation()
    lines.append("  interpolation alone: " + ", ".join(f"{n} {b:+,.0f}" for n, b in zip(names, bias, strict=True)))
    return lines


def _choice(level: AnyLevel, derived: DerivedLevel, records: int) -> str:
    """From which epsilon on measuring pays; said aloud where an epsilon is thrown away."""
    even = _break_even(derived.distribution.variance() * _typical(derived.summands)) * records
    worse = isinstance(level, MeasuredLevel) and float(level.epsilon) < even
    hint = " <-- adding up is free and better: leave out `epsilon`" if worse else ""
    return f"  measuring is better than adding up from epsilon {even:.3g}{hint}"


def _typical(children: Int64s) -> int:
    return max(1, int(np.median(children)))


def _amounts(names: list[str], errors: Floats, share: float) -> str:
    if share < RARE:
        return "(nearly) all such cells are suppressed"
    said = "mean |error| of " + ", ".join(f"{name} {error:,.0f}" for name, error in zip(names, errors, strict=True))
    return said + (f" ({1 - share:.0%} suppressed)" if share < 0.995 else "")


def _break_even(variance: float) -> float:
    """The rate at which a draw has this variance: v = 2a/(1−a)² with a = e^−rate, that is 1/(2·sinh²(rate/2))."""
    return 2 * asinh(sqrt(1 / (2 * variance)))
