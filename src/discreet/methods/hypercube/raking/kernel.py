"""The compiled loops of raking: scale a cube by one table while summing another, and rake a small table. Rationale:
rake.md."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.noise.jit import compiled

Positions = NDArray[np.uint32]  # unsigned: the loops need no test for negative indices

ONE, RUN, ANY, NOT = 0, 1, 2, 3  # a row maps to one cell of a table's row, to all in order, to any; or is not scaled


@compiled
def fold(  # noqa: PLR0912  # one plain loop for each way in which a row maps to a table: the compiler vectorises them
    cube: Floats,
    factors: Floats,
    rows: Positions,
    steps: Positions,
    by: int,
    table: Floats,
    at: Positions,
    to: Positions,
    add: int,
) -> None:
    """cube[r, j] *= factors[rows[r], steps[j]], then table[at[r], to[j]] += cube[r, j], in one pass over the cube."""
    width = cube.shape[1]
    even = width - width % 4
    for r in range(cube.shape[0]):
        f, t = rows[r], at[r]
        if by == ANY and add == ANY:
            for j in range(width):
                value = cube[r, j] * factors[f, steps[j]]
                cube[r, j] = value
                table[t, to[j]] += value
            continue
        if by == ONE:
            factor = factors[f, 0]
            for j in range(width):
                cube[r, j] *= factor
        elif by == RUN:
            for j in range(width):
                cube[r, j] *= factors[f, j]
        elif by == ANY:
            for j in range(width):
                cube[r, j] *= factors[f, steps[j]]
        if add == ONE:
            a = b = c = d = 0.0  # four independent sums, so that additions need not wait for each other
            for j in range(0, even, 4):
                a += cube[r, j]
                b += cube[r, j + 1]
                c += cube[r, j + 2]
                d += cube[r, j + 3]
            for j in range(even, width):
                a += cube[r, j]
            table[t, 0] += (a + b) + (c + d)
        elif add == RUN:
            for j in range(width):
                table[t, j] += cube[r, j]
        else:
            for j in range(width):
                table[t, to[j]] += cube[r, j]


@compiled
def adjust(table: Floats, parents: Positions, starts: Positions, targets: Floats, factors: Floats) -> float:
    """factors[u] ← Π target/sum over the margins in turn, where each sum is that of table·factors.

    A slice with the sum 0 keeps its factors. Returns the largest absolute factor, infinity if one is not finite.
    """
    factors[:] = 1.0
    sums = np.zeros(starts[-1])
    for u in range(len(table)):
        sums[parents[0, u]] += table[u]
    last = len(parents) - 1
    for m in range(last + 1):
        own, following = sums[starts[m] : starts[m + 1]], sums[starts[m + 1] :]
        for s in range(len(own)):
            if not math.isfinite(own[s]):
                return math.inf
            own[s] = 1.0 if own[s] == 0.0 else targets[starts[m] + s] / own[s]
        if m == last:
            for u in range(len(table)):
                factors[u] *= own[parents[m, u]]
        else:
            for u in range(len(table)):
                factors[u] *= own[parents[m, u]]
                following[parents[m + 1, u]] += table[u] * factors[u]
    return largest(factors)


@compiled
def add_up(table: Floats, parents: Positions, starts: Positions, sums: Floats) -> None:
    """The margins of a table."""
    sums[:] = 0.0
    for m in range(len(parents)):
        own = sums[starts[m] :]
        for u in range(len(table)):
            own[parents[m, u]] += table[u]


@compiled
def meets(table: Floats, parents: Positions, starts: Positions, targets: Floats, tolerance: float) -> bool:
    """Whether a table meets its margins within the tolerance. Stops at the first that it does not."""
    for m in range(len(parents)):
        sums = np.zeros(starts[m + 1] - starts[m])
        for u in range(len(table)):
            sums[parents[m, u]] += table[u]
        if furthest(sums, targets[starts[m] : starts[m + 1]]) > tolerance:
            return False
    return True


@compiled
def furthest(sums: Floats, targets: Floats) -> float:
    """max |sum − target| / max(1, |target|)."""
    gap = 0.0
    for s in range(len(sums)):
        gap = max(gap, abs(sums[s] - targets[s]) / max(1.0, abs(targets[s])))
    return gap


@compiled
def largest(values: Floats) -> float:
    """max |value|, infinity if one is NaN."""
    most = 0.0
    for i in range(len(values)):
        size = abs(values[i])
        if not size <= most:
            if math.isnan(size):
                return math.inf
            most = size
    return most
