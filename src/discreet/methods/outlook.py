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
from numpy.typing import NDArray

from discreet.binning import Bins
from discreet.domain import coarsening
from discreet.methods.levels import AnyLevel, DerivedLevel, MeasuredLevel
from discreet.noise.discrete import DiscreteLaplace
from discreet.noise.key import ReleaseKey
from discreet.post.percentiles import percentiles
from discreet.privacy.exact import written
from discreet.spec.earnings import Reference
from discreet.words import plural

if TYPE_CHECKING:
    from discreet.methods.earnings import EarningsMethod

REPEATS = 2000
MOST_DRAWS = 32  # a sum of more is drawn as a wider sum of these
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A cell of the reference."""

    reference: Reference
    bins: Bins
    points: tuple[Fraction, ...]
    minimum: int

    def histogram(self, graduates: int) -> NDArray[np.int64]:
        """The reference's histogram of so many graduates; what lies below the first border is in the first bin."""
        mean, deviation = float(self.reference.mean), float(self.reference.deviation)
        scaled = [(log(b) - mean) / deviation / sqrt(2) if b > 0 else -inf for b in self.bins.borders[1:-1]]
        below = [0.5 * (1 + erf(z)) for z in scaled]
        upto = np.rint(np.array([0.0, *below, 1.0]) * graduates)
        counts: NDArray[np.int64] = np.diff(upto).astype(np.int64)
        return counts

    def interpolation(self, graduates: int) -> Floats:
        """The percentile of the histogram without noise, minus that of the distribution."""
        law = NormalDist(float(self.reference.mean), float(self.reference.deviation))
        exact = np.array([exp(law.inv_cdf(float(point))) for point in self.points])
        found: Floats = percentiles(self.histogram(graduates)[None], self.bins, self.points)[0] - exact
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
        kept = noisy[noisy.sum(axis=1) >= self.minimum]
        if not len(kept):
            return np.full(len(self.points), np.nan), 0.0
        truth = percentiles(true[None], self.bins, self.points)
        return np.abs(percentiles(kept, self.bins, self.points) - truth).mean(axis=0), len(kept) / REPEATS


def outlook(method: EarningsMethod) -> dict[str, tuple[str, ...]]:
    """Lines for `plan`, by level."""
    asked = Setting(method.spec.reference, method.bins, method.points, method.spec.minimum)
    names = [f"p{written(percentile)}" for percentile in method.spec.percentiles]
    return {level.name: tuple(_lines(method, level, asked, names)) for level in method.levels}


def _lines(method: EarningsMethod, level: AnyLevel, asked: Setting, names: list[str]) -> list[str]:
    base = method.levels[0].domain
    cells = coarsening(base, level.domain)
    graduates = asked.reference.graduates * (1 if cells is None else _typical(cells.children()))
    law = f"lognormal({written(asked.reference.mean)}, {written(asked.reference.deviation)})"
    lines = [f"percentiles by the published rule, if earnings are {law} with {graduates:,} graduates in a cell:"]
    ways: list[tuple[str, Fraction, int]] = []
    if isinstance(level, MeasuredLevel):
        ways.append((f"measured with epsilon {written(level.epsilon)}", level.law.rate, 1))
    derived = level if isinstance(level, DerivedLevel) else method.as_derived(level)
    if derived is not None:
        summands = _typical(derived.summands)
        ways.append((f"sum of {plural(summands, 'cell')} of {derived.source.name}", derived.law.rate, summands))
    if isinstance(level, DerivedLevel):
        ways.append((f"if measured with epsilon {written(level.source.epsilon)}", level.source.law.rate, 1))
    for what, rate, summands in ways:
        errors, share = asked.error(graduates, rate, summands)
        lines.append(f"  {what}: " + (_amounts(names, errors) if share else "all suppressed") + _suppressed(share))
    if derived is not None and derived.law.variance() > 0:
        even = _break_even(derived.law.variance() * _typical(derived.summands)) * method.unit.records
        lines.append(f"  measuring is better than adding up from epsilon {even:.3g}")
    bias = asked.interpolation(graduates)
    lines.append("  interpolation alone: " + ", ".join(f"{n} {b:+,.0f}" for n, b in zip(names, bias, strict=True)))
    return lines


def _typical(children: NDArray[np.int64]) -> int:
    return max(1, int(np.median(children)))


def _amounts(names: list[str], errors: Floats) -> str:
    return "mean |error| of " + ", ".join(f"{name} {error:,.0f}" for name, error in zip(names, errors, strict=True))


def _suppressed(share: float) -> str:
    return f" ({1 - share:.0%} suppressed)" if 0 < share < 0.995 else ""


def _break_even(variance: float) -> float:
    """The rate at which a draw has this variance: v = 2a/(1−a)² with a = e^−rate, that is 1/(2·sinh²(rate/2))."""
    return 2 * asinh(sqrt(1 / (2 * variance)))
