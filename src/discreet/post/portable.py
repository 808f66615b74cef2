"""Sums and functions with the same last bits on every processor: published numbers are made of these (ADR 0061).

BLAS adds up in another order on another processor, and NumPy's own logarithms, exponentials and sines round otherwise.
`np.add.reduce` and compiled loops do neither.
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
