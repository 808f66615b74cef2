"""Statistical audits: a lower confidence bound of ε from samples alone. Proof of validity: audits.md.

Only samples of the mechanism on two neighbouring inputs are used. An audit can refute a claimed ε but never prove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import Floats, Int64s
from discreet_studies.attacks.proportions import lower, upper

LEVEL = 1 - Fraction(1, 10**6)
FEWEST = 1000
ATOMS = 512  # distinct values up to which each is its own bin
BINS = 256
TINY = 1e-300
CUTS = 400  # thresholds tried for each score
MOST = 8  # cells examined individually
SAMPLES = 200_000


@dataclass(frozen=True)
class AuditBound:
    """A lower confidence bound of the privacy loss, and the event that attains it."""

    epsilon_at_least: float
    event: str


def audit_draws(one: Int64s, other: Int64s, level: Fraction = LEVEL, delta: Fraction = Fraction(0)) -> AuditBound:
    """ln((P(E | one) − δ)/P(E | other)), or with the two exchanged, from below for an event E, from (samples, cells).

    E is selected on one half of the samples and evaluated on the other, so the limits hold however it was selected.
    """
    samples = len(one)
    if samples < FEWEST or one.shape != other.shape or not 0 < level < 1 or not 0 <= delta < 1:
        raise ParameterError(
            f"fewer than {FEWEST} samples, or level or delta is not a probability",
            where="audit",
            do="draw more samples, or give probabilities",
        )
    drawn, quarter, half = (one, other), samples // 4, samples // 2
    choosing = [part[quarter:half] for part in drawn]
    z = NormalDist().inv_cdf(1 - float((1 - level) / 2))
    candidates = (_best(score, choosing, z, float(delta)) for score in _scores(one[:quarter], other[:quarter]))
    event = max(candidates, key=lambda candidate: candidate.bound)
    measured = [event.hits(part[half:]) for part in (drawn[event.swapped], drawn[not event.swapped])]
    left, tail = samples - half, (1 - level) / 2
    low, high = lower(measured[0], left, tail) - float(delta), upper(measured[1], left, tail)
    return AuditBound(max(log(low / high), 0.0) if low > 0 else 0.0, str(event))


@dataclass(frozen=True)
class _Linear:
    """An integer combination of cells."""

    name: str
    weights: Int64s

    def __call__(self, y: Int64s) -> Floats:
        return (y @ self.weights).astype(np.float64)


@dataclass(frozen=True)
class _Ratios:
    """A sum of fitted log frequency ratios, each of one combination of cells."""

    name: str
    parts: tuple[tuple[_Linear, Floats, Floats], ...]  # a combination, the edges of its bins, ln ratio in each

    def __call__(self, y: Int64s) -> Floats:
        return np.asarray(sum(table[np.searchsorted(edges, of(y), side="right")] for of, edges, table in self.parts))


EventScore = _Linear | _Ratios  # a number per publication; events are threshold exceedances


@dataclass(frozen=True)
class _AuditEvent:
    """The event that a score is above or below a threshold; `bound` is its value on the selection half."""

    score: EventScore
    cut: float
    above: bool
    swapped: bool
    bound: float

    def hits(self, y: Int64s) -> int:
        values = self.score(y)
        return int(((values >= self.cut) if self.above else (values <= self.cut)).sum())

    def __str__(self) -> str:
        sign, where = "≥" if self.above else "≤", "second" if self.swapped else "first"
        return f"{self.score.name} {sign} {self.cut:.6g}, likelier under the {where}"


def _scores(one: Int64s, other: Int64s) -> list[EventScore]:
    """Cells, their sum, pairwise differences, each by value and by log frequency ratio; and the sum of all log
    ratios."""
    d, unit = one.shape[1], np.eye(one.shape[1], dtype=np.int64)
    cells = [_Linear(f"cell {j}", unit[j]) for j in range(d)]
    # The cells that change most are examined individually, and against the first of them.
    spread = [np.percentile(np.concatenate([one[:, j], other[:, j]]), [25, 75]) for j in range(d)]
    shift = [
        abs(float(np.median(one[:, j]) - np.median(other[:, j]))) / (high - low + 1)
        for j, (low, high) in enumerate(spread)
    ]
    moved = sorted(range(d), key=lambda j: -shift[j])[:MOST]
    linear = [cells[j] for j in moved]
    if d > 1:
        linear += [_Linear(f"cell {moved[0]} − cell {j}", unit[moved[0]] - unit[j]) for j in moved[1:]]
        linear.append(_Linear("sum", unit.sum(axis=0)))
    scores: list[EventScore] = [
        *linear,
        *(_Ratios(f"ln ratio of {of.name}", (_fitted(of, one, other),)) for of in linear),
    ]
    if d > 1:
        scores.append(_Ratios("ln ratio of all cells", tuple(_fitted(of, one, other) for of in cells)))
    return scores


def _fitted(of: _Linear, one: Int64s, other: Int64s) -> tuple[_Linear, Floats, Floats]:
    """Bins are single values where there are few; otherwise quantiles, refined in the tails."""
    values = of(one), of(other)
    pooled = np.concatenate(values)
    edges = np.unique(pooled)
    if edges.size > ATOMS:
        edges = _quantiles(pooled, BINS, 12, 10)
    bins = (np.searchsorted(edges, part, side="right") for part in values)
    seen = [np.bincount(part, minlength=edges.size + 1) + 0.5 for part in bins]
    return of, edges, np.log(seen[0] / seen[1])


def _best(score: EventScore, choosing: list[Int64s], z: float, delta: float) -> _AuditEvent:
    """The threshold, side and direction with the largest bound by Wilson limits, which are fast."""
    values = [np.sort(score(part)) for part in choosing]
    cuts, n = _quantiles(np.concatenate(values), CUTS, 40, 1), len(values[0])
    candidates = []
    for above in (True, False):
        if above:
            hits = [n - np.searchsorted(part, cuts, side="left") for part in values]
        else:
            hits = [np.searchsorted(part, cuts, side="right") for part in values]
        for swapped in (False, True):
            low, high = _wilson(hits[swapped], n, -z) - delta, _wilson(hits[not swapped], n, z)
            bounds = np.where(low > 0, np.log(np.maximum(low, TINY) / high), -inf)
            i = int(np.argmax(bounds))
            candidates.append(_AuditEvent(score, float(cuts[i]), above, swapped, float(bounds[i])))
    return max(candidates, key=lambda candidate: candidate.bound)


def _quantiles(values: Floats, parts: int, tails: int, least: int) -> Floats:
    """Quantiles at equal shares, and at geometric shares towards both ends, down to `least` values."""
    tail = np.geomspace(least / values.size, 1 / parts, tails)
    shares = np.concatenate([np.linspace(0, 1, parts), tail, 1 - tail])
    return np.unique(np.sort(values)[(shares * (values.size - 1)).astype(np.int64)])


def _wilson(hits: NDArray[np.intp], n: int, z: float) -> Floats:
    share = hits / n
    width = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.asarray((share + z * z / (2 * n) + width) / (1 + z * z / n))
