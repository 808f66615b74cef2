"""The line through winsorised observations, winsorising being part of the estimator (004, footnote on winsorizing).

Within a cell, x and y are each winsorised: the k = max(1, ⌊share·n⌋) lowest values become the (k+1)-th, the k highest
the (n−k)-th; k is at most (n−1)/2, so that a middle is left. Then the line as in `line`. One observation more or less
moves the cuts as well. Derivation of the exact maximum: winsorised.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import EXACT, Floats, Int64s, Local, Search, Variable, Worst, known
from discreet.methods.sensitivity.statistics.winsorised_kernel import cells

FINEST = 10**6  # share·n is taken in 64-bit integers
NONE = np.empty(0)


@dataclass(frozen=True)
class WinsorisedLine:
    """Slope, intercept or prediction θ = w·ȳ + (t − w·x̄)·Sxy/Sxx of the winsorised values.

    w = 1, t = at for a prediction, t = 0 for the intercept; w = 0, t = 1 for the slope. Where the winsorised x has no
    spread, θ = w·ȳ (the slope is 0). A cell of three has none: its x all become the median. The standard error is the
    classical one of the winsorised values, √(SSE/(n − 2)·(w²/n + (t − w·x̄)²/Sxx)), 0 where n < 3 or x has no spread.
    It takes the cuts as if they were fixed, and so is a little small.

    Sensitivities of the statistic are exact. Those of the error are exact over removals; additions are searched on a
    grid of `points` values in each of the three pieces of each variable, which can miss a little of the largest one.
    """

    x: Variable
    y: Variable
    kind: Literal["slope", "intercept", "prediction"]
    at: float
    share: Fraction = Fraction(1, 20)
    points: int = 33

    def __post_init__(self) -> None:
        share: object = self.share  # a float may come from outside
        if not isinstance(share, Fraction) or not 0 <= share < Fraction(1, 2):
            raise ParameterError(
                "the winsorised share is no fraction in 0 … 1/2", where=self.name, do="give one such as 1/20"
            )
        if self.share.denominator > FINEST:
            raise ParameterError("the winsorised share is too fine", where=self.name, do="round it to a millionth")
        if self.kind not in ("slope", "intercept", "prediction") or not np.isfinite(self.at):
            raise ParameterError(
                "no line of this kind", where=self.name, do="slope, intercept or prediction, at a number"
            )
        if self.points < 2:
            raise ParameterError("a grid needs two points or more", where=self.name, do="give points = 33")

    @property
    def name(self) -> str:
        return f"winsorised_{self.kind}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.x, self.y

    @property
    def scale(self) -> float:
        return self.y.width / self.x.width if self.kind == "slope" else self.y.width

    @property
    def has_error(self) -> bool:
        return True

    @property
    def empty(self) -> float:
        return self._weight * 0.5 * (self.y.low + self.y.high)

    @property
    def parameters(self) -> int:
        return 2

    @property
    def _weight(self) -> float:
        return 0.0 if self.kind == "slope" else 1.0

    @property
    def _target(self) -> float:
        return {"slope": 1.0, "intercept": 0.0, "prediction": float(self.at)}[self.kind]

    def searches(self) -> tuple[str, ...]:
        return "exact", "corners", "grid", "removals"

    def local(self, columns: Sequence[Floats], starts: Int64s, search: Search = EXACT, *, errors: bool = True) -> Local:
        out, _ = self._run(columns, starts, search, errors)
        return out

    def worst(self, columns: Sequence[Floats], search: Search = EXACT) -> Worst:
        """The observation behind the sensitivity; where that is infinite, where additions diverge."""
        starts = np.array([0, columns[0].size], np.int64)
        out, points = self._run(columns, starts, search, False)
        added, x, y = points[0].tolist()
        return Worst(bool(added), (x, y), self._change(columns, out, bool(added), x, y))

    def _run(self, columns: Sequence[Floats], starts: Int64s, search: Search, errors: bool) -> tuple[Local, Floats]:
        known(self, search)
        x, y = (np.ascontiguousarray(column, np.float64) for column in columns)
        bounds = np.array([self.x.low, self.x.high, self.y.low, self.y.high])
        exact = search.kind == "exact"
        tried = (NONE, NONE) if exact else (search.values(self.x), search.values(self.y))
        statistic, sensitivity, error, error_sensitivity = np.empty((4, starts.size - 1))
        worst = np.empty((starts.size - 1, 3))
        cells(
            x, y, np.ascontiguousarray(starts, np.int64), bounds, self.share.numerator, self.share.denominator,
            self._weight, self._target, search.kind != "removals", tried, self.points if errors else 0,
            statistic, sensitivity, error, error_sensitivity, worst,
        )  # fmt: skip
        both = (error, error_sensitivity) if errors else (None, None)
        return Local(np.diff(starts), statistic, sensitivity, *both), worst

    def _change(self, columns: Sequence[Floats], here: Local, added: bool, x: float, y: float) -> float:
        """θ(D ± d) − θ(D), by fitting again; its size is what the search found, infinite or not."""
        size = float(here.sensitivity[0])
        rows = np.stack([np.asarray(c, np.float64) for c in columns], axis=1)
        if added:
            rows = np.vstack([rows, [[x, y]]])
        else:
            rows = np.delete(rows, int(np.flatnonzero((rows == [x, y]).all(axis=1))[0]), axis=0)
        if not np.isfinite(size) or not rows.size:
            return size if rows.size else self.empty - float(here.statistic[0])
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        starts = np.array([0, len(rows)], np.int64)
        after, _ = self._run((rows[:, 0], rows[:, 1]), starts, Search("removals"), False)
        return float(np.copysign(size, after.statistic[0] - here.statistic[0]))
