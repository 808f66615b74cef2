"""The privacy loss of a mechanism on two data sets, from its exact probabilities. Proof: exact_audit.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol

import numpy as np
from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import LARGEST, Floats, Int64s
from discreet.noise.interval_arithmetic import ball

BITS = 320  # differences of tails lose about 60 of them
DENSE = 48  # every integer this close to a count is visited
GROWTH = 1.1  # further out, offsets grow by this factor
SPLIT = 16
PEAKS = 6
Cell = tuple[int, int]  # its count and its largest establishment


class Distribution(Protocol):
    """Both tails of a mechanism's published integer: neither is computed by subtracting from 1."""

    def upper(self, count: int, largest: int, k: int) -> arb:
        """P(published ≥ k)."""

    def lower(self, count: int, largest: int, k: int) -> arb:
        """P(published ≤ k)."""


def mass(distribution: Distribution, cell: Cell, k: int) -> arb:
    """P(published = k), a difference of the smaller tails."""
    with ctx.workprec(BITS):
        if k > cell[0]:
            return distribution.upper(*cell, k) - (distribution.upper(*cell, k + 1) if k < LARGEST else 0)
        return distribution.lower(*cell, k) - (distribution.lower(*cell, k - 1) if k > -LARGEST else 0)


def log_ratio(distribution: Distribution, one: Cell, other: Cell, k: int) -> float:
    """ln P(k | one)/P(k | other); infinite if only one is possible, nan if neither is."""
    first, second = (mass(distribution, cell, k) for cell in (one, other))
    if first == 0 or second == 0:
        return float("nan") if first == second == 0 else float("-inf") if first == 0 else float("inf")
    with ctx.workprec(BITS):
        ratio = (first / second).log()
    if not ratio.rad() < 1e-12:
        raise ParameterError(
            "a probability is too small for the precision of this audit", where="audit", do="raise BITS"
        )
    return float(ratio)


@dataclass(frozen=True)
class Losses:
    """The largest ln P(k | one)/P(k | other) over all k, and the largest of its negative."""

    forth: float
    back: float

    @property
    def worst(self) -> float:
        """In either direction."""
        return max(self.forth, self.back)


def losses(distribution: Distribution, one: Cell, other: Cell) -> Losses:
    """Both directions, by interval arithmetic."""
    marks = [*landmarks(distribution, one), *landmarks(distribution, other)]
    return search(lambda ks: np.array([log_ratio(distribution, one, other, k) for k in ks.tolist()]), *marks)


def landmarks(distribution: Distribution, cell: Cell) -> tuple[int, int, int]:
    """Where the log-ratio may have a kink: the count, the median, the smallest integer of positive probability."""
    median = _first(lambda k: bool(distribution.lower(*cell, k) >= arb(0.5)))
    return cell[0], median, _first(lambda k: bool(distribution.lower(*cell, k) > 0))


def _first(holds: Callable[[int], bool]) -> int:
    """The smallest published integer at which a monotone condition holds."""
    low, high = -LARGEST - 1, LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def together(parts: Iterable[Losses]) -> float:
    """The joint loss of several cells with independent noise: a sum of suprema, in each direction."""
    cells = list(parts)
    return max(sum(part.forth for part in cells), sum(part.back for part in cells))


def search(ratios: Callable[[Int64s], Floats], *marks: int) -> Losses:
    """The extremes of the log-ratio: at integers with growing gaps around the marks, then refined around the best."""
    places = candidates(*marks)
    values = ratios(places)
    known = ~np.isnan(values)
    places, values = places[known], values[known]
    forth = _climb(ratios, places, values)
    return Losses(forth, _climb(lambda ks: -ratios(ks), places, -values))


def candidates(*marks: int) -> Int64s:
    """Integers around each mark: all up to distance 48, then with gaps that grow by 10%; and both clamping bounds."""
    offsets = _offsets()
    around = np.concatenate([mark + offsets for mark in set(marks)])
    inside = around[(around > -LARGEST) & (around < LARGEST)]
    return np.unique(np.append(inside, [-LARGEST, LARGEST]))


@cache
def _offsets() -> Int64s:
    steps = [float(DENSE)]
    while steps[-1] < 2 * LARGEST:
        steps.append(steps[-1] * GROWTH)
    one_side = np.concatenate([np.arange(DENSE), np.array(steps).astype(np.int64)])
    return np.concatenate([-one_side, one_side])


def _climb(ratios: Callable[[Int64s], Floats], places: Int64s, values: Floats) -> float:
    """The largest value: around each of the highest peaks, finer steps until the integers themselves are reached."""
    best = float(values.max())
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]))
    peaks = peaks[np.argsort(-values[peaks], kind="stable")][:PEAKS]
    low, high = places[np.maximum(peaks - 1, 0)], places[np.minimum(peaks + 1, len(places) - 1)]
    while (wide := high - low > 2).any():
        low, high = low[wide], high[wide]
        rows = low[:, None] + (high - low)[:, None] * np.arange(SPLIT + 1) // SPLIT
        heights = ratios(rows.reshape(-1)).reshape(rows.shape)
        heights = np.where(np.isnan(heights), -np.inf, heights)
        best = max(best, float(heights.max()))
        top, each, finest = heights.argmax(axis=1), np.arange(len(rows)), high - low <= SPLIT
        low = np.where(finest, high, rows[each, np.maximum(top - 1, 0)])
        high = np.where(finest, high, rows[each, np.minimum(top + 1, SPLIT)])
    return best


def hockey_stick(distribution: Distribution, one: Cell, other: Cell, epsilon: Fraction) -> float:
    """Hockey-stick divergence δ(ε) = Σ max(P(k | one) − e^ε·P(k | other), 0), the larger of both directions; each run
    of integers where the term is positive is summed as a difference of tails."""
    return max(_one_way(distribution, one, other, epsilon), _one_way(distribution, other, one, epsilon))


def _one_way(distribution: Distribution, one: Cell, other: Cell, epsilon: Fraction) -> float:
    limit = float(epsilon)
    places = candidates(*landmarks(distribution, one), *landmarks(distribution, other)).tolist()

    def over(k: int) -> bool:
        return log_ratio(distribution, one, other, k) > limit

    inside = [over(k) for k in places]
    total = arb(0)
    start = -LARGEST if inside[0] else None
    for i in range(1, len(places)):
        if inside[i] == inside[i - 1]:
            continue
        low, high = places[i - 1], places[i]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if over(middle) == inside[i - 1] else (low, middle)
        if inside[i]:
            start = high
        elif start is not None:
            total += _excess(distribution, one, other, epsilon, start, low)
            start = None
    if start is not None:
        total += _excess(distribution, one, other, epsilon, start, LARGEST)
    return float(total)


def _excess(distribution: Distribution, one: Cell, other: Cell, epsilon: Fraction, low: int, high: int) -> arb:
    """P(low … high | one) − e^ε·P(low … high | other)."""
    with ctx.workprec(BITS):
        return _between(distribution, one, low, high) - ball(epsilon).exp() * _between(distribution, other, low, high)


def _between(distribution: Distribution, cell: Cell, low: int, high: int) -> arb:
    with ctx.workprec(BITS):
        if low > cell[0]:
            return distribution.upper(*cell, low) - distribution.upper(*cell, high + 1)
        return distribution.lower(*cell, high) - distribution.lower(*cell, low - 1)
