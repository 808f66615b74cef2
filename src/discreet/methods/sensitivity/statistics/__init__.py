"""Local sensitivities: the largest change of a cell's statistic when one observation is added or removed (Chetty &
Friedman 2019, Step 1).

Pure functions over the observations of many cells at once. A statistic is total: where it is undefined (no spread in x,
too few observations) it has a fixed fallback value, which takes part in the sensitivity. Where adding an observation
can change it without bound, its sensitivity is infinite. Formulas and proofs: sensitivity.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

LARGEST = 10**6  # grid points


@dataclass(frozen=True)
class Variable:
    """A column of observations, with the declared bounds of its values."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise ParameterError(
                f"{self.name!r} has no bounds low < high", where=f"variable {self.name}", do="declare finite bounds"
            )

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Search:
    """The search over added observations: the exact maximum over the bounded space where it is available, its corners,
    or a grid of `points` values from bound to bound in each variable (corners included). "removals" adds none, for
    statistics of many variables: a release must state that its sensitivities do not cover additions."""

    kind: Literal["exact", "corners", "grid", "removals"] = "exact"
    points: int = 2  # per variable, in a grid

    def values(self, variable: Variable) -> Floats:
        """The values of one variable in a grid, or at the corners."""
        return np.linspace(variable.low, variable.high, self.points if self.kind == "grid" else 2)


EXACT = Search()
SEARCHES: tuple[str, ...] = ("exact", "corners", "grid", "removals")


@dataclass(frozen=True)
class LocalSensitivities:
    """Statistics and local sensitivities, one entry per cell. Confidential."""

    n: Int64s
    statistic: Floats
    sensitivity: Floats  # max |θ(D ± d) − θ(D)|; infinite where it is unbounded
    error: Floats | None  # the statistic's standard error, where the statistic has one
    error_sensitivity: Floats | None


@dataclass(frozen=True)
class WorstRecord:
    """The observation that changes a cell's statistic most. Confidential."""

    added: bool  # or removed
    point: tuple[float, ...]  # one value per variable
    change: float  # θ(D ± d) − θ(D), signed; infinite where it is unbounded


class Statistic(Protocol):
    """A function of the observations of one cell, with values in the real numbers."""

    @property
    def name(self) -> str:
        """As in a declaration: `mean`, `prediction`, …"""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns it reads, in this order."""

    @property
    def scale(self) -> float:
        """Its natural size, from the declared bounds alone: the default grid is a fraction of it."""

    @property
    def has_error(self) -> bool:
        """Whether it has a standard error."""

    @property
    def empty(self) -> float:
        """Its value for a cell without observations."""

    @property
    def parameters(self) -> int:
        """Number of estimated parameters, for degrees of freedom: 1 for a mean, 2 for a line; 0 without an error."""

    def searches(self) -> tuple[str, ...]:
        """The supported kinds of search, the default first."""

    def local(
        self, columns: Sequence[Floats], starts: Int64s, search: Search | None = None, *, errors: bool = True
    ) -> LocalSensitivities:
        """The statistic and its sensitivity in every cell. Cell j has rows starts[j] … starts[j+1] − 1 of the columns,
        sorted by the columns in order; every cell has at least one row. Sums run over rows in order, so that equal
        cells give equal bits. Without `errors`, standard errors are left out (None)."""


class CompiledStatistic(Statistic):
    """A statistic with a compiled kernel for many cells at once."""

    has_error = True
    kinds: ClassVar[tuple[str, ...]] = SEARCHES  # of search, the default first

    def searches(self) -> tuple[str, ...]:
        return self.kinds

    def local(
        self, columns: Sequence[Floats], starts: Int64s, search: Search | None = None, *, errors: bool = True
    ) -> LocalSensitivities:
        out = self._compute(_contiguous(columns), starts, checked_search(self, search), errors)
        both = (out[2], out[3]) if errors and self.has_error else (None, None)
        return LocalSensitivities(np.diff(starts), out[0], out[1], *both)

    def worst(self, columns: Sequence[Floats], search: Search | None = None) -> WorstRecord:
        """The observation that attains one cell's sensitivity, for a plot (Chetty & Friedman 2019, Figure 1)."""
        return self._worst(_contiguous(columns), checked_search(self, search))

    @abstractmethod
    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        """One column per cell: the statistic, its sensitivity, its standard error, and the sensitivity of that."""

    @abstractmethod
    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        """The most influential observation of one cell."""


@dataclass(frozen=True)
class UnivariateStatistic(CompiledStatistic):
    """A statistic on the scale of its one variable; the middle of the bounds where there is no observation."""

    y: Variable

    @property
    def variables(self) -> tuple[Variable, ...]:
        return (self.y,)

    @property
    def scale(self) -> float:
        return self.y.width

    @property
    def empty(self) -> float:
        return (self.y.low + self.y.high) / 2


def _contiguous(columns: Sequence[Floats]) -> list[Floats]:
    return [np.ascontiguousarray(column, np.float64) for column in columns]


def one_cell(columns: Sequence[Floats]) -> Int64s:
    """The start indices if all rows belong to one cell."""
    return np.array([0, columns[0].size], np.int64)


def checked_search(statistic: Statistic, search: Search | None) -> Search:
    """The search, or the statistic's default; refused if it is not supported, or a grid of one point."""
    kinds = statistic.searches()
    if search is None:
        return Search(cast(Any, kinds[0]))
    if search.kind not in kinds:
        raise ParameterError(
            f"unsupported search {search.kind!r}", where=statistic.name, do=f"choose one of {', '.join(kinds)}"
        )
    if search.kind == "grid" and search.points < 2:
        raise ParameterError("a grid needs at least two points", where=statistic.name, do="give two or more")
    return search


def added_points(statistic: Statistic, search: Search) -> Floats:
    """Every observation that corners or a grid add, one per row; none for removals only."""
    if search.kind == "removals":
        return np.empty((0, len(statistic.variables)))
    values = [search.values(variable) for variable in statistic.variables]
    if values[0].size ** len(values) > LARGEST:
        raise ParameterError(
            "the grid has more than a million points", where=statistic.name, do="use fewer, or removals only"
        )
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
