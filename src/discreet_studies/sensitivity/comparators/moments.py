"""Inputs of every comparator: the sums of a cell, its least-squares prediction, and noise on a grid.

Statistics are rounded to a grid so that exactly rounded noise can be added to them. Proof: formal.md, Rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.jit import compiled
from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.stream import Stream
from discreet_studies.sensitivity.comparators import FALLBACK, Bools, Floats, Int64s

MOST_RECORDS = 1 << 10


@dataclass(frozen=True)
class Moments:
    """n, Σx, Σy, Sxx = Σ(x − x̄)², Sxy = Σ(x − x̄)(y − ȳ): one entry per cell. Confidential."""

    n: Int64s
    total_x: Floats
    total_y: Floats
    sxx: Floats
    sxy: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, starts: Int64s) -> Moments:
        """Two-pass sums over the rows, in order."""
        check_cells(x, y, starts)
        return cls(np.diff(starts), *_sums(x, y, starts))

    @property
    def defined(self) -> Bools:
        """Where there is a line."""
        return self.sxx > 0

    def prediction(self, x0: float) -> Floats:
        """ȳ + (Sxy/Sxx)·(x0 − x̄); the fallback without a line."""
        n, sxx = np.maximum(self.n, 1), np.where(self.defined, self.sxx, 1.0)
        line = self.total_y / n + self.sxy / sxx * (x0 - self.total_x / n)
        return np.where(self.defined, line, FALLBACK)


def check_cells(x: Floats, y: Floats, starts: Int64s) -> None:
    """Check observations in [0, 1] and the cell starts. Messages quote no value, as they are confidential."""
    if x.dtype != np.float64 or y.dtype != np.float64 or x.ndim != 1 or x.shape != y.shape:
        raise ParameterError("x and y are not float64 arrays of equal length", where="cells", do="convert them first")
    if starts.dtype != np.int64 or starts.ndim != 1 or not starts.size:
        raise ParameterError(
            "starts is not a one-dimensional int64 array", where="starts", do="give where each cell starts, and the end"
        )
    if starts[0] != 0 or starts[-1] != x.size or (np.diff(starts) < 0).any():
        raise ParameterError("starts do not ascend from the first row to the last", where="starts", do="sort the cells")
    if np.diff(starts).max(initial=0) > MOST_RECORDS:
        raise ParameterError(
            f"a cell has more than {MOST_RECORDS:,} records, beyond which float64 sums are not covered (formal.md)",
            where="cells",
            do="compare smaller cells",
        )
    if not (((x >= 0) & (x <= 1)).all() and ((y >= 0) & (y <= 1)).all()):
        raise ParameterError("an observation lies outside 0 … 1", where="cells", do="clamp to the declared bounds")


@compiled
def _sums(x: Floats, y: Floats, starts: Int64s) -> tuple[Floats, Floats, Floats, Floats]:
    cells = starts.shape[0] - 1
    tx, ty, sxx, sxy = np.zeros(cells), np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for cell in range(cells):
        first, last = starts[cell], starts[cell + 1]
        for i in range(first, last):
            tx[cell] += x[i]
            ty[cell] += y[i]
        if last > first:
            mean_x, mean_y = tx[cell] / (last - first), ty[cell] / (last - first)
            for i in range(first, last):
                sxx[cell] += (x[i] - mean_x) ** 2
                sxy[cell] += (x[i] - mean_x) * (y[i] - mean_y)
    return tx, ty, sxx, sxy


GRID = Fraction(1, 2**24)  # of statistics and noise
ALLOWED = 2 * GRID  # added to a sensitivity for rounding to the grid and for float64 sums
UNIT = Fraction(1, 2**32)  # of sensitivities, which are rounded up
CUT = 2**27  # where statistics and noisy statistics are clamped
BOUND = Fraction(2 * CUT)  # of the noise: beyond it the sum is clamped anyway


def multiples(sensitivity: Floats) -> Int64s:
    """Sensitivities including the allowance for rounding, in units, rounded up."""
    units: Int64s = np.ceil((sensitivity + float(ALLOWED)) / float(UNIT) * (1 + 2.0**-40)).astype(np.int64)
    return units


def add_noise(values: Floats, sensitivity: Floats, noise: GridNoise, stream: Stream) -> Floats:
    """values + noise of one unit of sensitivity times each cell's, on the grid, clamped to ± 2²⁷."""
    units = np.rint(np.clip(values, -CUT, CUT) / float(GRID)).astype(np.int64)
    drawn = units + noise.draw(stream, 0, values.size, multiples(sensitivity))
    return np.clip(drawn * float(GRID), -CUT, CUT)


def laplace(epsilon: Fraction) -> Laplace:
    """Laplace noise of scale 1/ε for a sensitivity of one unit."""
    return Laplace(UNIT / epsilon, GRID, BOUND)
