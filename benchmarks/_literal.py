"""PSEO Technical Appendices, A.3.2 as printed: the reference for speed and distribution of the flow correction."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def literal(noisy: Int64s, weights: Floats, uniforms: Floats, starts: Int64s) -> Int64s:
    """F times: draw among the group's non-zero cells with probability weight/Σ weight, subtract one."""
    out = np.maximum(noisy, 0)
    for g in range(noisy.shape[0]):
        total = noisy[g].sum()
        if total <= 0:
            out[g] = 0
            continue
        for draw in range(out[g].sum() - total):
            whole = 0.0
            for i in range(noisy.shape[1]):
                if out[g, i] > 0:
                    whole += weights[g, i]
            aim, chosen = uniforms[starts[g] + draw] * whole, -1
            for i in range(noisy.shape[1]):
                if out[g, i] > 0:
                    chosen = i
                    aim -= weights[g, i]
                    if aim < 0:
                        break
            out[g, chosen] -= 1
    return out


@njit(cache=True, nogil=True)
def listed(noisy: Int64s, weights: Floats, uniforms: Floats, starts: Int64s) -> Int64s:
    """The same, with the non-zero cells in a list: the obvious first optimisation."""
    out = np.maximum(noisy, 0)
    cells, odds = np.empty(noisy.shape[1], np.int64), np.empty(noisy.shape[1])
    for g in range(noisy.shape[0]):
        total = noisy[g].sum()
        if total <= 0:
            out[g] = 0
            continue
        count = 0
        for i in range(noisy.shape[1]):
            if out[g, i] > 0:
                cells[count], odds[count] = i, weights[g, i]
                count += 1
        for draw in range(out[g].sum() - total):
            whole = 0.0
            for j in range(count):
                whole += odds[j]
            aim, chosen = uniforms[starts[g] + draw] * whole, 0
            for j in range(count):
                chosen = j
                aim -= odds[j]
                if aim < 0:
                    break
            out[g, cells[chosen]] -= 1
            if out[g, cells[chosen]] == 0:
                count -= 1
                cells[chosen], odds[chosen] = cells[count], odds[count]
    return out
