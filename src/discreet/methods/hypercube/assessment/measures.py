"""A table before and after protection, measure by measure (002, §3.4). For simulations, and for the inside.

Every function takes flat arrays, one entry a cell, in the same order. What is true comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Flags, Floats
from discreet.errors import ParameterError

Z95 = 1.959963984540054  # standard errors, for 95% intervals


@dataclass(frozen=True)
class NearZeroChanges:
    """Cells that are near zero on one side only. The more, the less a zero says (002, §3.4)."""

    cells: int
    near_zero: int  # in truth
    to_nonzero: int
    to_zero: int

    @property
    def share_to_nonzero(self) -> float:
        """Of the cells near zero, the share that is not any more; NaN if there are none."""
        return _share(self.to_nonzero, self.near_zero)

    @property
    def share_to_zero(self) -> float:
        """Of the other cells, the share that is now near zero."""
        return _share(self.to_zero, self.cells - self.near_zero)

    @staticmethod
    def pooled(parts: Sequence[NearZeroChanges]) -> NearZeroChanges:
        return NearZeroChanges(*_added_up(parts))


def check_limit(limit: float) -> None:
    """Of what is near zero."""
    if not 0 < limit < inf:
        raise ParameterError("near zero is below a positive limit", where="limit", do="give, say, half a weight")


def near_zero_changes(true: Floats, protected: Floats, limit: float) -> NearZeroChanges:
    """Near zero means |x| < limit."""
    check_limit(limit)
    _same(true, protected)
    before, after = np.abs(true) < limit, np.abs(protected) < limit
    return NearZeroChanges(true.size, _count(before), _count(before & ~after), _count(~before & after))


@dataclass(frozen=True)
class PublicationRule:
    """When an estimate is published: enough records, and SE/|estimate| small enough (002, §1)."""

    least_count: float
    most_cv: float

    def __post_init__(self) -> None:
        if not 0 < self.most_cv < inf:
            raise ParameterError("a coefficient of variation is above 0", where="cv", do="give, say, 0.5")
        if not 0 <= self.least_count < inf:
            raise ParameterError("cells have no fewer records than 0", where="records", do="give, say, 3")

    def publishable(self, estimates: Floats, errors: Floats, counts: Floats) -> Flags:
        """An estimate of zero has no coefficient of variation, and is not published."""
        _same(estimates, errors, counts)
        fine: Flags = (counts >= self.least_count) & (errors <= self.most_cv * np.abs(estimates)) & (estimates != 0)
        return fine


@dataclass(frozen=True)
class PublishableCells:
    """Cells that a rule lets through, before and after."""

    cells: int
    before: int
    after: int
    gained: int  # suppressed before, publishable now
    lost: int

    @staticmethod
    def pooled(parts: Sequence[PublishableCells]) -> PublishableCells:
        return PublishableCells(*_added_up(parts))


def published(before: Flags, after: Flags) -> PublishableCells:
    """What a rule made of the two sides."""
    _same(before, after)
    gained, lost = _count(~before & after), _count(before & ~after)
    return PublishableCells(before.size, _count(before), _count(after), gained, lost)


@dataclass(frozen=True)
class Differences:
    """Protected less true. Relative ones over cells above a limit only; NaN if there are none."""

    cells: int
    mean: float
    mean_abs: float
    rms: float
    largest: float
    relative: float  # mean of |difference| / |true|
    relative_cells: int

    @staticmethod
    def pooled(parts: Sequence[Differences]) -> Differences:
        """As if their cells were one table's."""
        cells = np.array([part.cells for part in parts])
        above = np.array([part.relative_cells for part in parts])
        relative = np.array([part.relative for part in parts])[above > 0]
        return Differences(
            int(cells.sum()),
            float(np.average([part.mean for part in parts], weights=cells)),
            float(np.average([part.mean_abs for part in parts], weights=cells)),
            sqrt(np.average([part.rms**2 for part in parts], weights=cells)),
            max(part.largest for part in parts),
            float(np.average(relative, weights=above[above > 0])) if len(relative) else nan,
            int(above.sum()),
        )


def differences(true: Floats, protected: Floats, limit: float) -> Differences:
    """Of estimates, or of their standard errors; relative where |true| > limit."""
    _same(true, protected)
    gap = protected - true
    size, above = np.abs(gap), np.abs(true) > limit
    relative = float(np.mean(size[above] / np.abs(true[above]))) if above.any() else nan
    return Differences(
        true.size,
        float(gap.mean()),
        float(size.mean()),
        sqrt(np.mean(gap**2)),
        float(size.max()),
        relative,
        _count(above),
    )


def cramers_v(table: Floats) -> float:
    """V = √(χ²/(n·(min(r, c) − 1))), χ² = Σ (x − e)²/e (Agresti 2002), of max(x, 0).

    r and c are the declared rows and columns, empty ones too: a row that noise fills does not change the scale. NaN if
    nothing is positive, or where there is one row or column.
    """
    if table.ndim != 2:
        raise ParameterError("Cramér's V is of two variables", where="table", do="give rows and columns")
    x = np.maximum(table, 0.0)
    n, degrees = float(x.sum()), min(x.shape) - 1
    if not (n > 0 and degrees > 0):
        return nan
    kept = x[x.sum(axis=1) > 0][:, x.sum(axis=0) > 0]  # where e is positive
    e = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / n
    return min(1.0, sqrt(float(((kept - e) ** 2 / e).sum()) / (n * degrees)))


def hellinger(true: Floats, protected: Floats) -> float:
    """H = √(½ Σ (√p − √q)²), p and q the shares of max(x, 0): 0 if equal, 1 if nowhere both positive; NaN if a side
    has nothing positive."""
    _same(true, protected)
    p, q = np.maximum(true, 0.0), np.maximum(protected, 0.0)
    if not (p.sum() > 0 and q.sum() > 0):
        return nan
    return min(1.0, sqrt(0.5 * float(((np.sqrt(p / p.sum()) - np.sqrt(q / q.sum())) ** 2).sum())))


def overlap(true: tuple[Floats, Floats], protected: tuple[Floats, Floats]) -> Floats:
    """½((u − l)/(U_t − L_t) + (u − l)/(U_p − L_p)), [l, u] the intersection (Karr et al. 2006).

    Disjoint intervals: u − l is minus the gap between them, so the overlap is negative and grows with it. Equal points
    overlap fully; an interval of no length has no overlap with another one, and gives NaN.
    """
    (low, high), (lower, higher) = true, protected
    _same(low, high, lower, higher)
    inside = np.minimum(high, higher) - np.maximum(low, lower)
    length, other = high - low, higher - lower
    if (length < 0).any() or (other < 0).any():
        raise ParameterError("an interval ends before it begins", where="overlap", do="give low ends first")
    some = (length > 0) & (other > 0)
    found = np.full(low.shape, nan)
    found[some] = 0.5 * (inside[some] / length[some] + inside[some] / other[some])
    found[(length == 0) & (other == 0) & (low == lower)] = 1.0
    return found


@dataclass(frozen=True)
class Overlaps:
    """Confidence-interval overlap of the cells that have one."""

    cells: int
    without: int  # an interval of no length on one side
    mean: float
    disjoint: int

    @staticmethod
    def pooled(parts: Sequence[Overlaps]) -> Overlaps:
        having = np.array([part.cells - part.without for part in parts])
        means = np.array([part.mean for part in parts])[having > 0]
        return Overlaps(
            sum(part.cells for part in parts),
            sum(part.without for part in parts),
            float(np.average(means, weights=having[having > 0])) if len(means) else nan,
            sum(part.disjoint for part in parts),
        )


def overlaps(true: Floats, true_errors: Floats, protected: Floats, errors: Floats, z: float = Z95) -> Overlaps:
    """Of the intervals estimate ± z·SE."""
    found = overlap((true - z * true_errors, true + z * true_errors), (protected - z * errors, protected + z * errors))
    having = found[~np.isnan(found)]
    mean = float(having.mean()) if len(having) else nan
    return Overlaps(found.size, found.size - len(having), mean, _count(having < 0))


def _same(*columns: NDArray[np.generic]) -> None:
    if len({column.shape for column in columns}) > 1 or not columns[0].size:
        raise ParameterError("the two sides are not of the same cells", where="cells", do="give one value a cell")


def _count(where: Flags) -> int:
    return int(np.count_nonzero(where))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _added_up(parts: Sequence[NearZeroChanges] | Sequence[PublishableCells]) -> list[int]:
    return [sum(column) for column in zip(*(vars(part).values() for part in parts), strict=True)]
