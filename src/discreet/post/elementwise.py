"""Elementwise logarithm, exponential and sine by the C library: NumPy's own differ between processors."""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Floats
from discreet.noise.jit import compiled

_LOG, _EXP, _SIN = range(3)


def log(values: Floats) -> Floats:
    """ln x of each.

    >>> log(np.array([[1.0]])).tolist()
    [[0.0]]
    """
    return _each(values, _LOG)


def exp(values: Floats) -> Floats:
    """e^x of each."""
    return _each(values, _EXP)


def sin(values: Floats) -> Floats:
    """sin x of each."""
    return _each(values, _SIN)


def _each(values: Floats, function: int) -> Floats:
    given = np.ascontiguousarray(values)
    results = np.empty_like(given)
    _apply(given.reshape(-1), function, results.reshape(-1))
    return results


@compiled
def _apply(values: Floats, function: int, results: Floats) -> None:
    for i in range(len(values)):
        if function == _LOG:
            results[i] = math.log(values[i])
        elif function == _EXP:
            results[i] = math.exp(values[i])
        else:
            results[i] = math.sin(values[i])
