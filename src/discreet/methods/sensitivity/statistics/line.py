"""The univariate regression line: slope, intercept, prediction (Chetty & Friedman 2019, Section II). Proofs:
sensitivity.md."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import (
    SEARCHES,
    CompiledStatistic,
    Floats,
    Int64s,
    Search,
    Variable,
    WorstRecord,
)
from discreet.methods.sensitivity.statistics.line_kernel import centred, lines, worst_of


@dataclass(frozen=True)
class LeastSquaresLine(CompiledStatistic):
    """θ = w·ȳ + (t − w·x̄)·Sxy/Sxx of the line of y on x: its slope (w = 0, t = 1), its intercept (w = 1, t = 0), or
    its prediction at x = `at` (w = 1, t = at)."""

    x: Variable
    y: Variable
    kind: Literal["slope", "intercept", "prediction"]
    at: float = 0.0  # of a prediction

    parameters = 2

    def __post_init__(self) -> None:
        if self.kind not in ("slope", "intercept", "prediction"):
            raise ParameterError(f"a line has no {self.kind!r}", where="kind", do="use slope, intercept or prediction")
        if not isfinite(self.at) or (self.kind != "prediction" and self.at):
            raise ParameterError(
                "has no valid point of prediction", where="at", do="give a finite x, for predictions only"
            )

    @property
    def name(self) -> str:
        return self.kind

    @property
    def variables(self) -> tuple[Variable, ...]:
        return (self.x, self.y)

    @property
    def scale(self) -> float:
        """The width of y; of a slope, over that of x."""
        return self.y.width / self.x.width if self.kind == "slope" else self.y.width

    @property
    def empty(self) -> float:
        """w times the middle of y's bounds."""
        return self.weights[0] * (self.y.low + self.y.high) / 2

    @property
    def weights(self) -> tuple[float, float]:
        """w and t."""
        return (0.0, 1.0) if self.kind == "slope" else (1.0, float(self.at))


class Line(LeastSquaresLine):
    """The least-squares line of the observations, not winsorised.

    Where all x of a cell are equal the slope is 0. The error is √(SSE/(n−2)·(w²/n + (t−w·x̄)²/Sxx)), 0 below n = 3.
    """

    kinds = SEARCHES[:3]

    def _compute(self, columns: list[Floats], starts: Int64s, search: Search, errors: bool) -> Floats:
        """Exact by closed forms: eight candidates for an addition, one division per removal (sensitivity.md)."""
        x, y = columns
        return lines(x, y, starts, *self.weights, *self._tried(search), search.kind == "exact", errors)

    def _worst(self, columns: list[Floats], search: Search) -> WorstRecord:
        """Where the change is unbounded: the limit point of a sequence of ever larger changes."""
        x, y = columns
        fit, exact = centred(x, y, -1), search.kind == "exact"
        _, change, added, px, py = worst_of(x, y, fit, *self.weights, *self._tried(search), exact)
        return WorstRecord(added, (px, py), change)

    def _tried(self, search: Search) -> tuple[Floats, Floats]:
        return search.values(self.x), search.values(self.y)
