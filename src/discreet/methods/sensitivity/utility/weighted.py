"""Weighted columns of cells, and their least-squares line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats


def variance(values: Floats, weights: Floats) -> float:
    """Σ w(v − v̄)² / Σ w."""
    return float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


def columns(*given: ArrayLike) -> tuple[Floats, ...]:
    """Columns of equal length, single numbers repeated; two cells or more, all finite."""
    try:
        equal = np.broadcast_arrays(*(np.asarray(column, np.float64) for column in given))
    except ValueError as error:
        raise ParameterError("columns are not equally long", where="columns", do="give one value per cell") from error
    if equal[0].ndim != 1 or equal[0].size < 2 or not all(np.isfinite(column).all() for column in equal):
        raise ParameterError(
            "at least two cells with finite numbers are needed", where="columns", do="omit cells without estimates"
        )
    return tuple(equal)


def weighted(*given: ArrayLike) -> tuple[Floats, ...]:
    """Columns, of which the last is weights: none negative, some positive."""
    equal = columns(*given)
    if (equal[-1] < 0).any() or not equal[-1].any():
        raise ParameterError("weights are not positive", where="weights", do="weight cells by their people")
    return equal


@dataclass(frozen=True)
class Fit:
    """A weighted least-squares line, its slope's robust standard error, and the cells behind it."""

    slope: float
    intercept: float
    error: float
    cells: int

    def at(self, x: float) -> float:
        """The value of the line at x."""
        return self.intercept + self.slope * x


def fitted(x: ArrayLike, y: ArrayLike, weights: ArrayLike = 1.0) -> Fit:
    """Weighted least squares. SE² = n/(n−2) · Σ (w u e)² / (Σ w u²)², u = x − x̄ (HC1; MacKinnon & White 1985)."""
    across, up, weight = weighted(x, y, weights)
    if not variance(across, weight) > 0:
        raise ParameterError("x does not vary, so there is no slope", where="x", do="give cells that differ")
    centre_x, centre_y = np.average(across, weights=weight), np.average(up, weights=weight)
    u = across - centre_x
    spread = float(weight @ u**2)
    slope = float((weight * u) @ (up - centre_y)) / spread
    left = up - centre_y - slope * u
    n = int((weight > 0).sum())
    error = np.sqrt(n / (n - 2) * float(((weight * u * left) ** 2).sum())) / spread if n > 2 else np.nan
    return Fit(slope, float(centre_y - slope * centre_x), float(error), n)
