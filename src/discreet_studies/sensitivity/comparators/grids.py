"""Real statistics on a grid, so that exactly rounded noise can be added to them. Proof: formal.md, Rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.stream import Stream
from discreet_studies.sensitivity.comparators import Floats, Int64s

GRID = Fraction(1, 2**24)  # of statistics and noise
ALLOWED = 2 * GRID  # what rounding to the grid, and float64 sums, may add to a sensitivity
UNIT = Fraction(1, 2**32)  # of sensitivities, which are rounded up
CUT = 2**27  # where statistics, and what is drawn around them, are cut
BOUND = Fraction(2 * CUT)  # of the noise: beyond it the sum is cut anyway


def multiples(sensitivity: Floats) -> Int64s:
    """Sensitivities and what rounding adds to them, in units, rounded up."""
    found: Int64s = np.ceil((sensitivity + float(ALLOWED)) / float(UNIT) * (1 + 2.0**-40)).astype(np.int64)
    return found


def add_noise(values: Floats, sensitivity: Floats, noise: GridNoise, stream: Stream) -> Floats:
    """values + noise of one unit of sensitivity times each cell's, on the grid, cut at ± 2²⁷."""
    units = np.rint(np.clip(values, -CUT, CUT) / float(GRID)).astype(np.int64)
    drawn = units + noise.draw(stream, 0, values.size, multiples(sensitivity))
    return np.clip(drawn * float(GRID), -CUT, CUT)


def laplace(epsilon: Fraction) -> Laplace:
    """Laplace noise of scale 1/ε for a sensitivity of one unit."""
    return Laplace(UNIT / epsilon, GRID, BOUND)
