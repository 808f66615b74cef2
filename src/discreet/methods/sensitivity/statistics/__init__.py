"""Local sensitivities: how far one observation, added or removed, can move a statistic of a cell (004, Step 1).

Pure functions over the observations of many cells at once. A statistic is total: where it is not defined (no spread
in x, too few observations) it has a stated fallback, and the fallback takes part in the sensitivity. Where adding an
observation can move it beyond all bounds, its sensitivity is infinite. Formulas and proofs: sensitivity.md.
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

LARGEST = 10**6  # points of a grid


@dataclass(frozen=True)
class Variable:
    """A column of observations and the declared bounds that every value lies within."""

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
    """Which observations are tried to be added: the exact maximum over the bounded space where it is known, its
    corners, or a grid of `points` values from bound to bound in each variable (corners included). "removals" tries
    none, for statistics of many variables: a release must say that its sensitivities know no additions."""

    kind: Literal["exact", "corners", "grid", "removals"] = "exact"
    points: int = 2  # a variable, in a grid

    def values(self, variable: Variable) -> Floats:
        """What a grid, or the corners, try of one variable."""
        return np.linspace(variable.low, variable.high, self.points if self.kind == "grid" else 2)


EXACT = Search()
SEARCHES: tuple[str, ...] = ("exact", "corners", "grid", "removals")


@dataclass(frozen=True)
class LocalSensitivities:
    """What is known of every cell: one entry each. Confidential."""

    n: Int64s
    statistic: Floats
    sensitivity: Floats  # max |θ(D ± d) − θ(D)|; infinite where nothing bounds it
    error: Floats | None  # the statistic's standard error, where the statistic has one
    error_sensitivity: Floats | None


@dataclass(frozen=True)
class WorstRecord:
    """The observation that moves a cell's statistic most. Confidential."""

    added: bool  # or removed
    point: tuple[float, ...]  # one value a variable; of a removed one, the observation's
    change: float  # θ(D ± d) − θ(D), signed; infinite where nothing bounds it


class Statistic(Protocol):
    """A number made of the observations of one cell."""

    @property
    def name(self) -> str:
        """As a release calls it: `mean`, `prediction`, …"""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns it reads, in this order."""

    @property
    def scale(self) -> float:
        """Its natural size, from the declared bounds alone: what a default grid is a fraction of."""

    @property
    def has_error(self) -> bool:
        """Whether it has a standard error."""

    @property
    def empty(self) -> float:
        """Its value for a cell without observations."""

    @property
    def parameters(self) -> int:
        """Degrees of freedom that its standard error loses: 1 for a mean, 2 for a line; 0 without an error."""

    def searches(self) -> tuple[str, ...]:
        """The kinds of search that it knows, the default first."""

    def local(
        self, columns: Sequence[Floats], starts: Int64s, search: Search | None = None, *, errors: bool = True
    ) -> LocalSensitivities:
        """The statistic and its sensitivity in every cell. Cell j has rows starts[j] … starts[j+1] − 1 of the columns,
        sorted by the columns in order; every cell has at least one row. Sums run over rows in order, so that equal
        cells give equal bits. Without `errors`, standard errors are left out (None)."""


class CompiledStatistic(Statistic):
    """A statistic whose kernel measures many cells at once."""

    has_error = True
    kinds: ClassVar[tuple[str, ...]] = SEARCHES  # of search, the default first

    def searches(self) -> tuple[str, ...]:
        return self.kinds

    def local(
        self, columns: Sequence[Floats], starts: Int64s, search: Search | None = None, *, errors: bool = True
    ) -> LocalSensitivities:
        out = self._compute(_contiguous(columns), starts, known(self, search), errors)
        both = (out[2], out[3]) if errors and self.has_error else (None, None)
        return LocalSensitivities(np.diff(starts), out[0], out[1], *both)

    def worst(self, columns: Sequence[Floats], search: Search | None = None) -> WorstRecord:
        """The observation behind one cell's sensitivity, for its picture (004, Figure 1)."""
        return self._worst(_contiguous(columns), known(self, search))

    @abstractmethod
    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        """A column a cell: the statistic, its sensitivity, its standard error, and the sensitivity of that."""

    @abstractmethod
    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        """Of one cell."""


@dataclass(frozen=True)
class UnivariateStatistic(CompiledStatistic):
    """A statistic in the unit of its one variable; the middle of the bounds where there is no observation."""

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
    """Where cells start, if these are the rows of one."""
    return np.array([0, columns[0].size], np.int64)


def known(statistic: Statistic, search: Search | None) -> Search:
    """The search, or the statistic's own; refused if the statistic does not know it, or it is a grid of one point."""
    kinds = statistic.searches()
    if search is None:
        return Search(cast(Any, kinds[0]))
    if search.kind not in kinds:
        raise ParameterError(
            f"no search of the kind {search.kind!r}", where=statistic.name, do=f"choose one of {', '.join(kinds)}"
        )
    if search.kind == "grid" and search.points < 2:
        raise ParameterError("a grid needs two points or more", where=statistic.name, do="give two or more")
    return search


def added_points(statistic: Statistic, search: Search) -> Floats:
    """Every observation that corners or a grid add, a row each; none for removals alone."""
    if search.kind == "removals":
        return np.empty((0, len(statistic.variables)))
    values = [search.values(variable) for variable in statistic.variables]
    if values[0].size ** len(values) > LARGEST:
        raise ParameterError(
            "the grid has more than a million points", where=statistic.name, do="take fewer, or removals alone"
        )
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
