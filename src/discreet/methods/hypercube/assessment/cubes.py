"""Assessment of a cube before and after protection, over its tables of every dimension (Li & Krenzke 2020, §3.4):
confidential side.

Tables are by some of the cube's axes. If a dimension has more tables than the limit, a systematic sample in the order
of their axes represents it: it depends neither on data nor on chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import comb, nan
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.domain import Numbers
from discreet.errors import ParameterError
from discreet.methods.hypercube.assessment.measures import (
    Z95,
    Differences,
    NearZeroChanges,
    Overlaps,
    PublicationRule,
    PublishableCells,
    cramers_v,
    differences,
    hellinger,
    near_zero_changes,
    overlaps,
    publishable_cells,
)
from discreet.post.cubes.margins import Margin, combination, marginalise

Numeric = NDArray[np.float64] | NDArray[np.int64]
Tables = Callable[[Margin], Floats]  # the numbers of a table
T = TypeVar("T")
MOST_TABLES = 300  # of a dimension: all tables of cubes with up to ten axes


@dataclass(frozen=True, eq=False)
class CubeEstimates:
    """Estimates of a cube, and where known record counts by cell and standard errors of tables. Values are of all
    cells, or of `cells` and zero elsewhere; estimates may be given by table instead."""

    shape: tuple[int, ...]
    estimates: Floats | Tables
    counts: Floats | None = None  # unweighted; true or protected, as the estimates are
    errors: Tables | None = None
    cells: Numbers | None = None

    def table(self, margin: Margin) -> Floats:
        """The estimates of a table."""
        if callable(self.estimates):
            return self.estimates(margin)
        return summed(self.shape, self.estimates, margin, self.cells)

    def table_counts(self, margin: Margin) -> Floats | None:
        """The record counts of a table."""
        return None if self.counts is None else summed(self.shape, self.counts, margin, self.cells)


def summed(shape: tuple[int, ...], values: Numeric, margin: Margin, cells: Numbers | None = None) -> Floats:
    """A table of a cube; for ungrouped axes of a dense cube NumPy adds up, which is faster than numbering cells."""
    places, real = margin.places, values.astype(np.float64, copy=False)
    if cells is not None or not margin.ungrouped or list(places) != sorted(places):
        return margin.add_up(real, cells)
    return marginalise(np.ascontiguousarray(real).reshape(shape), places).reshape(-1)


def replicate_errors(shape: tuple[int, ...], estimates: Floats, replicates: Floats, factor: float = 4.0) -> Tables:
    """√((c/R) Σ (θ_r − θ)²), c = 4 for successive differences (Li & Krenzke 2020, §3.4). Confidential: true side
    only."""

    def errors(margin: Margin) -> Floats:
        estimate = summed(shape, estimates, margin)
        squares = np.zeros_like(estimate)
        for replicate in replicates:
            squares += (summed(shape, replicate, margin) - estimate) ** 2
        return np.sqrt(factor * squares / len(replicates))

    return errors


def square_errors(shape: tuple[int, ...], squares: Floats, design_effect: float = 1.0) -> Tables:
    """√(design effect · Σ w²) from sums of squared weights by cell. Confidential: true side only."""

    def errors(margin: Margin) -> Floats:
        return np.sqrt(design_effect * summed(shape, squares, margin))

    return errors


def tables(shape: tuple[int, ...], dimension: int, most: int = MOST_TABLES) -> list[Margin]:
    """All tables of a dimension, or `most` of them: ranks ⌊i·n/most⌋ of n in the order of their axes."""
    if most < 1 or not 1 <= dimension <= len(shape):
        raise ParameterError(
            "the cube has no such tables", where="tables", do=f"pass a dimension from 1 to {len(shape)}"
        )
    n = comb(len(shape), dimension)
    chosen = range(n) if n <= most else (i * n // most for i in range(most))
    return [Margin.over(shape, combination(len(shape), dimension, number)) for number in chosen]


@dataclass(frozen=True)
class TableAssessment:
    """The assessment of a table. Measures of standard errors or counts are None where a side has none; Cramér's V is
    for two-way tables only."""

    axes: tuple[int, ...]
    zero_changes: NearZeroChanges
    estimates: Differences
    hellinger: float
    cramers_v: tuple[float, float] | None = None  # before and after
    errors: Differences | None = None
    overlaps: Overlaps | None = None
    published: PublishableCells | None = None

    @property
    def dimension(self) -> int:
        return len(self.axes)


@dataclass(frozen=True)
class DimensionSummary:
    """All assessed tables of one dimension: their cells pooled, and the mean of their Hellinger distances."""

    dimension: int
    tables: int  # assessed
    exist: int  # tables of this dimension
    zero_changes: NearZeroChanges
    estimates: Differences
    hellinger: float
    errors: Differences | None
    overlaps: Overlaps | None
    published: PublishableCells | None


@dataclass(frozen=True)
class Assessment:
    """The assessment of a cube by table and by dimension."""

    shape: tuple[int, ...]
    limit: float
    rule: PublicationRule | None
    tables: tuple[TableAssessment, ...]

    @property
    def dimensions(self) -> tuple[DimensionSummary, ...]:
        summaries = []
        for dimension in sorted({table.dimension for table in self.tables}):
            mine = [table for table in self.tables if table.dimension == dimension]
            distances = [table.hellinger for table in mine if not np.isnan(table.hellinger)]
            summaries.append(
                DimensionSummary(
                    dimension,
                    len(mine),
                    comb(len(self.shape), dimension),
                    NearZeroChanges.pooled([table.zero_changes for table in mine]),
                    Differences.pooled([table.estimates for table in mine]),
                    float(np.mean(distances)) if distances else nan,
                    Differences.pooled(gaps) if (gaps := _some(table.errors for table in mine)) else None,
                    Overlaps.pooled(laps) if (laps := _some(table.overlaps for table in mine)) else None,
                    PublishableCells.pooled(rules) if (rules := _some(table.published for table in mine)) else None,
                )
            )
        return tuple(summaries)


def assess(
    true: CubeEstimates,
    protected: CubeEstimates,
    limit: float,
    rule: PublicationRule | None = None,
    most: int = MOST_TABLES,
    z: float = Z95,
) -> Assessment:
    """Compares the tables, up to `most` of each dimension. Near zero is below `limit`, in the unit of the estimates."""
    if true.shape != protected.shape:
        raise ParameterError("the two cubes differ in shape", where="assess", do="pass cubes with the same axes")
    every = (margin for d in range(1, len(true.shape) + 1) for margin in tables(true.shape, d, most))
    compared = tuple(_assessed(true, protected, margin, limit, rule, z) for margin in every)
    return Assessment(true.shape, limit, rule, compared)


def _assessed(
    true: CubeEstimates, protected: CubeEstimates, margin: Margin, limit: float, rule: PublicationRule | None, z: float
) -> TableAssessment:
    x, y = true.table(margin), protected.table(margin)
    v = (cramers_v(x.reshape(margin.sizes)), cramers_v(y.reshape(margin.sizes))) if len(margin.axes) == 2 else None
    s = true.errors(margin) if true.errors else None
    t = protected.errors(margin) if protected.errors else None
    n, m = true.table_counts(margin), protected.table_counts(margin)
    released = None
    if rule and s is not None and t is not None and n is not None and m is not None:
        released = publishable_cells(rule.publishable(x, s, n), rule.publishable(y, t, m))
    return TableAssessment(
        margin.places,
        near_zero_changes(x, y, limit),
        differences(x, y, limit),
        hellinger(x, y),
        v,
        differences(s, t, 0.0) if s is not None and t is not None else None,
        overlaps(x, s, y, t, z) if s is not None and t is not None else None,
        released,
    )


def _some(parts: Iterable[T | None]) -> list[T]:
    return [part for part in parts if part is not None]
