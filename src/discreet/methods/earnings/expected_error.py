"""Expected error of percentiles, for `plan`: simulated on a public reference distribution, never on the records.

For every level both options are shown, a noisy measurement with its own ε and a sum of a finer level's cells. The
reference is a lognormal distribution and a number of graduates in a cell of the table itself; a coarser cell has as
many times more as it has such cells. The error has two parts, reported separately: the effect of the noise on the
percentile of the histogram, and the interpolation bias of that percentile, which does not depend on ε.
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
MOST_DRAWS = 32  # a sum of more draws is simulated by rescaling a sum of this many
MANY = 10**12  # graduates
NOISE = 0.001  # `plan` warns if a larger share of empty cells is published
RARE = 0.02  # no error is reported if a smaller share of cells is published


@dataclass(frozen=True)
class ReferenceCell:
    """A cell of the reference distribution."""

    reference: Reference
    bins: Bins
    points: tuple[Fraction, ...]
    suppress_below: int

    def histogram(self, graduates: int) -> Int64s:
        """The reference histogram of this many graduates; values below the first edge are in the first bin."""
        mean, deviation = float(self.reference.mean), float(self.reference.deviation)
        scaled = [(log(b) - mean) / deviation / sqrt(2) if b > 0 else -inf for b in self.bins.edges[1:-1]]
        below = [0.5 * (1 + erf(z)) for z in scaled]
        cumulated = np.rint(np.array([0.0, *below, 1.0]) * graduates)
        counts: Int64s = np.diff(cumulated).astype(np.int64)
        return counts

    def interpolation(self) -> Floats:
        """Interpolation bias: the percentile of a large noise-free histogram minus that of the distribution."""
        distribution = NormalDist(float(self.reference.mean), float(self.reference.deviation))
        exact = np.array([exp(distribution.inv_cdf(float(point))) for point in self.points])
        bias: Floats = percentiles(self.histogram(MANY)[None], self.bins, self.points)[0] - exact
        return bias

    def error(self, graduates: int, rate: Fraction, summands: int) -> tuple[Floats, float]:
        """Mean |error| of each percentile over the noise, given publication, and the probability of publication."""
        true = self.histogram(graduates)
        few = min(summands, MOST_DRAWS)
        stream = ReleaseKey.simulation("outlook").stream("plan", "noise", b"", str(few))
        drawn = DiscreteLaplace(rate).draw(stream, 0, REPEATS * few * self.bins.count)
        noise = drawn.reshape(REPEATS, few, self.bins.count).sum(axis=1)
        if few < summands:
            noise = np.rint(noise * sqrt(summands / few)).astype(np.int64)
        noisy = true + noise
        published = noisy[noisy.sum(axis=1) >= self.suppress_below]
        if not len(published):
            return np.full(len(self.points), np.nan), 0.0
        truth = percentiles(true[None], self.bins, self.points)
        return np.abs(percentiles(published, self.bins, self.points) - truth).mean(axis=0), len(published) / REPEATS


def notes(method: EarningsMethod) -> dict[str, tuple[str, ...]]:
    """Lines of `plan`, by level."""
    return {level.name: (_empty_cells(level, method.bins.count), *_lines(method, level)) for level in method.levels}


def _empty_cells(level: AnyLevel, bins: int) -> str:
    """The probability that an empty cell is published: suppression compares the *noisy* count with the threshold."""
    measured = isinstance(level, MeasuredLevel)
    sums, cells = (np.ones((2, 1), np.int64)) if measured else np.unique(level.summands, return_counts=True)
    chances = [upper_tail(level.distribution.rate, int(s) * bins, level.shape.suppress_below) for s in sums]
    share = inner(np.array(chances), cells.astype(np.float64)) / max(int(cells.sum()), 1)
    line = f"an empty cell is published with probability {_small(share)}"
    if share <= NOISE:
        return line
    enough = count_margin(level.distribution.rate, int(sums[-1]) * bins, 1 - 2 * Fraction(1, 1000)) + 1
    return f"{line} <-- noise alone: `suppress_below: {enough}` would make it less than 0.1%"


def _small(share: float) -> str:
    return "less than 0.01%" if share < 1e-4 else f"{share:.2%}" if share < 0.1 else f"{share:.0%}"


def _lines(method: EarningsMethod, level: AnyLevel) -> list[str]:
    cell = ReferenceCell(method.spec.reference, method.bins, method.points, level.shape.suppress_below)
    names = [f"p{format_exact(percentile)}" for percentile in method.spec.percentiles]
    base = method.levels[0]
    cells = None if level is base else coarsening(base.domain, level.domain)
    graduates = cell.reference.graduates * (1 if cells is None else _typical(cells.children()))
    distribution = f"lognormal({format_exact(cell.reference.mean)}, {format_exact(cell.reference.deviation)})"
    rule = (
        "by the published rule (the declared `shrunk` is usually more accurate)"
        if method.spec.estimator == "shrunk"
        else "by the published rule"
    )
    lines = [f"percentiles {rule}, if earnings are {distribution} with {graduates:,} graduates in a typical cell:"]
    derived = level if isinstance(level, DerivedLevel) else method.as_derived(level)
    options: list[tuple[str, Fraction, int]] = []
    if isinstance(level, MeasuredLevel):
        options.append((f"noise with its own epsilon {format_exact(level.epsilon)}", level.distribution.rate, 1))
    if derived is not None:
        summands = _typical(derived.summands)
        options.append(
            (f"sum of {plural(summands, 'cell')} of {derived.source.name}", derived.distribution.rate, summands)
        )
    if isinstance(level, DerivedLevel):
        options.append(
            (
                f"noise with an epsilon of its own, {format_exact(level.source.epsilon)}",
                level.source.distribution.rate,
                1,
            )
        )
    for what, rate, summands in options:
        errors, share = cell.error(graduates, rate, summands)
        lines.append(f"  {what}: {_amounts(names, errors, share)}")
    if derived is not None and derived.distribution.variance() > 0:
        lines.append(_break_even_line(level, derived, method.unit.records))
    bias = cell.interpolation()
    lines.append(
        "  interpolation bias, without noise: " + ", ".join(f"{n} {b:+,.0f}" for n, b in zip(names, bias, strict=True))
    )
    return lines


def _break_even_line(level: AnyLevel, derived: DerivedLevel, records: int) -> str:
    """The ε from which a level's own noise is smaller than that of the sum; flagged where a declared ε is below it."""
    even = _break_even(derived.distribution.variance() * _typical(derived.summands)) * records
    worse = isinstance(level, MeasuredLevel) and float(level.epsilon) < even
    hint = " <-- the sum has no additional epsilon and less noise: leave out `epsilon`" if worse else ""
    return f"  its own noise is smaller than that of the sum from epsilon {even:.3g}{hint}"


def _typical(children: Int64s) -> int:
    return max(1, int(np.median(children)))


def _amounts(names: list[str], errors: Floats, share: float) -> str:
    if share < RARE:
        return "almost all such cells are suppressed"
    text = "mean |error| of " + ", ".join(f"{name} {error:,.0f}" for name, error in zip(names, errors, strict=True))
    return text + (f" ({1 - share:.0%} suppressed)" if share < 0.995 else "")


def _break_even(variance: float) -> float:
    """The rate of a discrete Laplace draw with variance v = 2a/(1−a)² = 1/(2·sinh²(rate/2)), a = e^−rate."""
    return 2 * asinh(sqrt(1 / (2 * variance)))
