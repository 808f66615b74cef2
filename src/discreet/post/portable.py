"""Inner products and norms with identical bits on every processor, for published numbers (ADR 0061).

The summation order of BLAS and the rounding of NumPy's logarithms, exponentials and sines depend on the processor;
`np.add.reduce` and compiled loops do not.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Floats


def inner(a: Floats, b: Floats) -> float:
    """Σ a·b of two vectors.

    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.add.reduce(a * b))


def norm(a: Floats) -> float:
    """√Σ a²."""
    return math.sqrt(inner(a, a))
