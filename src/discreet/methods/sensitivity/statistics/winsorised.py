"""The line of winsorised observations, winsorising being part of the estimator (Chetty & Friedman 2019, footnote on
winsorizing).

Within a cell, x and y are each winsorised: the k = max(1, ⌊share·n⌋) lowest values become the (k+1)-th, the k highest
the (n−k)-th; k is at most (n−1)/2, so that a middle remains. Then the line as in `line`. Adding or removing an
observation changes the cuts as well. Derivation of the exact maximum: winsorised.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats, Int64s, Search, WorstRecord, one_cell
from discreet.methods.sensitivity.statistics.line import LeastSquaresLine
from discreet.methods.sensitivity.statistics.winsorised_kernel import cells

FINEST = 10**6  # share·n is computed in 64-bit integers
NONE = np.empty(0)


@dataclass(frozen=True)
class WinsorisedLine(LeastSquaresLine):
    """The least-squares line of the winsorised values. Where their x has no spread, θ = w·ȳ (the slope is 0): so in a
    cell of three, whose x all become the median. The standard error is the classical one of the winsorised values,
    √(SSE/(n − 2)·(w²/n + (t − w·x̄)²/Sxx)), 0 where n < 3 or x has no spread. It treats the cuts as fixed,
    and so is slightly too small.

    Sensitivities of the statistic are exact. Those of the error are exact over removals; additions are searched on a
    grid of `points` values in each of the three pieces of each variable, which can miss a little of the largest one.
    """

    share: Fraction = Fraction(1, 20)
    points: int = 33

    def __post_init__(self) -> None:
        super().__post_init__()
        share: object = self.share  # a float may come from outside
        if not isinstance(share, Fraction) or not 0 <= share < Fraction(1, 2):
            raise ParameterError(
                "the winsorised share is not a fraction in 0 … 1/2", where=self.name, do="give one such as 1/20"
            )
        if self.share.denominator > FINEST:
            raise ParameterError("the winsorised share is too fine", where=self.name, do="round it to a millionth")
        if self.points < 2:
            raise ParameterError("a grid needs two points or more", where=self.name, do="give points = 33")

    @property
    def name(self) -> str:
        return f"{self.kind} of the winsorised line"

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        return self._run(columns, starts, search, errors)[0]

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        """The observation that attains the sensitivity; where that is infinite, the point where additions diverge."""
        out, points = self._run(columns, one_cell(columns), search, False)
        added, x, y = points[0].tolist()
        return WorstRecord(bool(added), (x, y), self._change(columns, out, bool(added), x, y))

    def _run(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> tuple[Floats, Floats]:
        (x, y), exact = columns, search.kind == "exact"
        bounds = np.array([self.x.low, self.x.high, self.y.low, self.y.high])
        tried = (NONE, NONE) if exact else (search.values(self.x), search.values(self.y))
        share, points = (self.share.numerator, self.share.denominator), self.points if errors else 0
        add = search.kind != "removals"
        return cells(x, y, starts, bounds, *share, *self.weights, add, tried, points)

    def _change(self, columns: list[Floats], here: Floats, added: bool, x: float, y: float) -> float:
        """θ(D ± d) − θ(D): its sign by refitting, its size from the search, possibly infinite."""
        theta, size = float(here[0, 0]), float(here[1, 0])
        rows = np.stack(columns, axis=1)
        if added:
            rows = np.vstack([rows, [[x, y]]])
        else:
            rows = np.delete(rows, int(np.flatnonzero((rows == [x, y]).all(axis=1))[0]), axis=0)
        if not np.isfinite(size) or not rows.size:
            return size if rows.size else self.empty - theta
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        after = self.local((rows[:, 0], rows[:, 1]), np.array([0, len(rows)], np.int64), Search("removals"))
        return float(np.copysign(size, after.statistic[0] - theta))
