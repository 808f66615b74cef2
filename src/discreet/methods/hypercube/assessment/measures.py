"""Measures of risk and utility of a table before and after protection (Li & Krenzke 2020, §3.4), for simulations and
the confidential side.

Every function takes flat arrays with one entry per cell, in the same order; true values come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Flags, Floats
from discreet.errors import ParameterError

Z95 = 1.959963984540054  # half-width of 95% intervals, in standard errors


@dataclass(frozen=True)
class NearZeroChanges:
    """Cells that are near zero before or after protection only. The more there are, the less an adversary learns from a
    zero (Li & Krenzke 2020, §3.4)."""

    cells: int
    near_zero: int  # before protection
    to_nonzero: int
    to_zero: int

    @property
    def share_to_nonzero(self) -> float:
        """The share of near-zero cells that are shown as non-zero; NaN if there are none."""
        return _share(self.to_nonzero, self.near_zero)

    @property
    def share_to_zero(self) -> float:
        """The share of the other cells that are shown near zero; NaN if there are none."""
        return _share(self.to_zero, self.cells - self.near_zero)

    @staticmethod
    def pooled(parts: Sequence[NearZeroChanges]) -> NearZeroChanges:
        return NearZeroChanges(*_added_up(parts))


def check_limit(limit: float) -> None:
    """Checks the limit below which estimates are near zero."""
    if not 0 < limit < inf:
        raise ParameterError(
            "the near-zero limit must be positive", where="limit", do="pass, for example, half a weight"
        )


def near_zero_changes(true: Floats, protected: Floats, limit: float) -> NearZeroChanges:
    """Near zero means |x| < limit."""
    check_limit(limit)
    _same(true, protected)
    before, after = np.abs(true) < limit, np.abs(protected) < limit
    return NearZeroChanges(true.size, _count(before), _count(before & ~after), _count(~before & after))


@dataclass(frozen=True)
class PublicationRule:
    """A publication rule: a least number of records and a largest SE/|estimate| (Li & Krenzke 2020, §1)."""

    least_count: float
    most_cv: float

    def __post_init__(self) -> None:
        if not 0 < self.most_cv < inf:
            raise ParameterError(
                "the largest coefficient of variation must be above 0", where="cv", do="pass, for example, 0.5"
            )
        if not 0 <= self.least_count < inf:
            raise ParameterError(
                "the least number of records must be 0 or more", where="records", do="pass, for example, 3"
            )

    def publishable(self, estimates: Floats, errors: Floats, counts: Floats) -> Flags:
        """Which estimates meet the rule. An estimate of zero has no coefficient of variation and does not."""
        _same(estimates, errors, counts)
        meets: Flags = (counts >= self.least_count) & (errors <= self.most_cv * np.abs(estimates)) & (estimates != 0)
        return meets


@dataclass(frozen=True)
class PublishableCells:
    """Cells that meet a publication rule, before and after protection."""

    cells: int
    before: int
    after: int
    gained: int  # publishable after protection only
    lost: int  # publishable before protection only

    @staticmethod
    def pooled(parts: Sequence[PublishableCells]) -> PublishableCells:
        return PublishableCells(*_added_up(parts))


def publishable_cells(before: Flags, after: Flags) -> PublishableCells:
    """Compares a rule's decisions before and after protection."""
    _same(before, after)
    gained, lost = _count(~before & after), _count(before & ~after)
    return PublishableCells(before.size, _count(before), _count(after), gained, lost)


@dataclass(frozen=True)
class Differences:
    """Differences protected − true. Relative differences are over cells above a limit only; NaN if there are none."""

    cells: int
    mean: float
    mean_abs: float
    rms: float
    largest: float
    relative: float  # mean of |difference| / |true|
    relative_cells: int

    @staticmethod
    def pooled(parts: Sequence[Differences]) -> Differences:
        """Pooled over all cells of these tables."""
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
    """Differences of estimates, or of their standard errors; relative where |true| > limit."""
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

    r and c are the declared numbers of rows and columns, empty ones included, so noise in an empty row does not change
    the scale. NaN if no cell is positive, or if there is only one row or column.
    """
    if table.ndim != 2:
        raise ParameterError("Cramér's V needs a two-way table", where="table", do="pass rows and columns")
    x = np.maximum(table, 0.0)
    n, degrees = float(x.sum()), min(x.shape) - 1
    if not (n > 0 and degrees > 0):
        return nan
    positive = x[x.sum(axis=1) > 0][:, x.sum(axis=0) > 0]  # where e is positive
    e = np.outer(positive.sum(axis=1), positive.sum(axis=0)) / n
    return min(1.0, sqrt(float(((positive - e) ** 2 / e).sum()) / (n * degrees)))


def hellinger(true: Floats, protected: Floats) -> float:
    """Hellinger distance H = √(½ Σ (√p − √q)²) of the shares p and q of max(x, 0): 0 if equal, 1 if no cell is
    positive in both; NaN if one side has no positive cell."""
    _same(true, protected)
    p, q = np.maximum(true, 0.0), np.maximum(protected, 0.0)
    if not (p.sum() > 0 and q.sum() > 0):
        return nan
    return min(1.0, sqrt(0.5 * float(((np.sqrt(p / p.sum()) - np.sqrt(q / q.sum())) ** 2).sum())))


def overlap(true: tuple[Floats, Floats], protected: tuple[Floats, Floats]) -> Floats:
    """Confidence-interval overlap ½((u − l)/(U_t − L_t) + (u − l)/(U_p − L_p)) with intersection [l, u] (Karr et al.
    2006).

    For disjoint intervals u − l is minus the gap, so the overlap is negative. Equal points have overlap 1; otherwise an
    interval of length zero gives NaN.
    """
    (low, high), (lower, higher) = true, protected
    _same(low, high, lower, higher)
    common = np.minimum(high, higher) - np.maximum(low, lower)
    length, other = high - low, higher - lower
    if (length < 0).any() or (other < 0).any():
        raise ParameterError(
            "an interval has its upper limit below its lower limit", where="overlap", do="pass lower limits first"
        )
    some = (length > 0) & (other > 0)
    shares = np.full(low.shape, nan)
    shares[some] = 0.5 * (common[some] / length[some] + common[some] / other[some])
    shares[(length == 0) & (other == 0) & (low == lower)] = 1.0
    return shares


@dataclass(frozen=True)
class Overlaps:
    """Confidence-interval overlap over cells."""

    cells: int
    without: int  # cells with an interval of length zero, left out
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
    """The overlap of intervals estimate ± z·SE, before and after protection."""
    shares = overlap((true - z * true_errors, true + z * true_errors), (protected - z * errors, protected + z * errors))
    having = shares[~np.isnan(shares)]
    mean = float(having.mean()) if len(having) else nan
    return Overlaps(shares.size, shares.size - len(having), mean, _count(having < 0))


def _same(*columns: NDArray[np.generic]) -> None:
    if len({column.shape for column in columns}) > 1 or not columns[0].size:
        raise ParameterError("the two sides differ in their cells", where="cells", do="pass one value per cell on both")


def _count(where: Flags) -> int:
    return int(np.count_nonzero(where))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _added_up(parts: Sequence[NearZeroChanges] | Sequence[PublishableCells]) -> list[int]:
    return [sum(column) for column in zip(*(vars(part).values() for part in parts), strict=True)]
