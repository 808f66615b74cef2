"""The loops of whole cubes: round down, give units to cells with room, take some back. Proof: integers.md.

A cell of a cube is its number; its codes follow from it. `deficits` holds, margin after margin, how many units each of the
margins' cells deficits. A frame has the sizes of the axes, where each one's codes begin in a row of shares, these
(`shares[m, first[p] + code]` is what a code of axis p adds to the number of a cell's place in margin m), and where each
margin's cells begin.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Flags, Floats, Int64s
from discreet.noise.jit import compiled

Frame = tuple[Int64s, Int64s, Int64s, Int64s]

ROUNDING_ERROR = 1e-12  # of a value: what its rounding errors may be


@compiled
def mixed(word: np.uint64, seed: np.uint64) -> np.uint64:
    """A word that looks random: splitmix64's finaliser on seed + word·γ (Steele, Lea & Flood 2014)."""
    z = seed + (word + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def uniform(word: np.uint64, seed: np.uint64) -> float:
    """In the open interval (0, 1): the topmost 52 bits and a half."""
    return float(np.float64(mixed(word, seed) >> np.uint64(12)) + 0.5) / 2.0**52


@compiled
def uniforms(numbers: Int64s, seed: np.uint64) -> Floats:
    """One for each number."""
    found = np.empty(len(numbers))
    for j in range(len(numbers)):
        found[j] = uniform(np.uint64(numbers[j]), seed)
    return found


@compiled
def rest(x: float, whole: np.int64, tolerance: float) -> float:
    """What of x lies above the whole number, 0 if it is within the tolerance of it."""
    left = x - whole
    return left if left > tolerance + ROUNDING_ERROR * x else 0.0


@compiled
def find(cell: int, frame: Frame, at: Int64s) -> None:
    """The cell's place in every margin, into `at`."""
    sizes, first, shares, starts = frame
    at[:] = starts
    for p in range(len(sizes) - 1, -1, -1):
        upper = cell // sizes[p]
        code = first[p] + cell - upper * sizes[p]
        cell = upper
        for m in range(len(at)):
            at[m] += shares[m, code]


@compiled
def floors(x: Floats, frame: Frame, tolerance: float, deficits: Int64s, out: Int64s, rests: Floats) -> None:
    """⌊x⌋ into `out`, which takes from what the margins lack; what is left of x is added up, by the first margin."""
    at = frame[3].copy()
    for j in range(len(x)):
        whole = np.int64(math.floor(x[j] + (tolerance + ROUNDING_ERROR * x[j])))
        out[j] = whole
        left = rest(x[j], whole, tolerance)
        if whole == 0 and left == 0.0:
            continue
        find(j, frame, at)
        for m in range(len(at)):
            deficits[at[m]] -= whole
        rests[at[0]] += left


@compiled
def systematic(
    x: Floats, frame: Frame, tolerance: float, begin: Floats, stretch: Floats, deficits: Int64s, out: Int64s
) -> None:
    """Of one margin: a unit to each cell in whose stretch of the added-up rests lies begin + 0, 1, 2, …"""
    so_far = np.zeros(len(deficits))
    at = np.zeros(1, np.int64)
    for j in range(len(x)):
        left = rest(x[j], out[j], tolerance)
        if left == 0.0:
            continue
        find(j, frame, at)
        g = at[0]
        before = math.ceil(so_far[g] - begin[g])
        so_far[g] += left * stretch[g]
        if deficits[g] > 0 and math.ceil(so_far[g] - begin[g]) > before:
            out[j] += 1
            deficits[g] -= 1


@compiled
def ranks(x: Floats, tolerance: float, seed: np.uint64, out: Int64s) -> tuple[Int64s, Floats]:
    """Cells with a rest r that have not got their unit, and u(1 − r)/((1 − u)r): in its order the chance of a cell to
    be among the first is close to r (Rosén 1997)."""
    count = 0
    for j in range(len(x)):
        count += rest(x[j], out[j], tolerance) > 0.0
    rows, keys = np.empty(count, np.int64), np.empty(count)
    count = 0
    for j in range(len(x)):
        r = rest(x[j], out[j], tolerance)
        if r > 0.0:
            u = uniform(np.uint64(j), seed)
            rows[count], keys[count] = j, u * (1 - r) / ((1 - u) * r)
            count += 1
    return rows, keys


@compiled
def give(order: Int64s, frame: Frame, deficits: Int64s, out: Int64s) -> None:
    """One unit to each cell, in this order, that has room on all margins."""
    at = frame[3].copy()
    for j in order:
        find(j, frame, at)
        room = deficits[at[0]]
        for m in range(1, len(at)):
            room = min(room, deficits[at[m]])
        if room > 0:
            out[j] += 1
            for m in range(len(at)):
                deficits[at[m]] -= 1


@compiled
def take(order: Int64s, most: int, frame: Frame, deficits: Int64s, out: Int64s) -> None:
    """At most so many units from each cell, in this order, that has too many on a margin."""
    at = frame[3].copy()
    for j in order:
        if out[j] == 0:
            continue
        find(j, frame, at)
        least = deficits[at[0]]
        for m in range(1, len(at)):
            least = min(least, deficits[at[m]])
        units = min(-least, most, out[j])
        if units > 0:
            out[j] -= units
            for m in range(len(at)):
                deficits[at[m]] += units


@compiled
def beyond(x: float, units: np.int64, tolerance: float) -> int:
    """By how many units a cell is above the ceiling or below the floor."""
    slack = tolerance + ROUNDING_ERROR * x
    low, high = np.int64(math.floor(x + slack)), np.int64(math.ceil(x - slack))
    return int(max(units - high, low - units, np.int64(0)))


@compiled
def outliers(x: Floats, out: Int64s, tolerance: float) -> Int64s:
    """The cells above their ceilings."""
    return np.array([j for j in range(len(x)) if out[j] > x[j] and beyond(x[j], out[j], tolerance) > 0], np.int64)


@compiled
def exchange(
    bad: Int64s,
    partners: Int64s,
    low: Int64s,
    high: Int64s,
    sizes: Int64s,
    swapped: Flags,
    x: Floats,
    tolerance: float,
    tries: int,
    seed: np.uint64,
    out: Int64s,
) -> None:
    """A unit of each bad cell and one of a partner, partners[low … high − 1], swap their codes on the swapped axes, if
    fewer units are beyond floor and ceiling then."""
    for b in range(len(bad)):
        i = bad[b]
        for t in range(tries):
            excess = beyond(x[i], out[i], tolerance)
            if out[i] <= x[i] or excess == 0 or low[b] == high[b]:
                break
            word = np.uint64(b * tries + t)
            j = partners[low[b] + np.int64(uniform(word, seed) * (high[b] - low[b]))]
            shift, stride, left, right = np.int64(0), np.int64(1), i, j
            for p in range(len(sizes) - 1, -1, -1):
                if swapped[p]:
                    shift += (right % sizes[p] - left % sizes[p]) * stride
                left, right, stride = left // sizes[p], right // sizes[p], stride * sizes[p]
            k, h = i + shift, j - shift
            if out[j] == 0 or shift == 0 or k == j:
                continue
            change = beyond(x[i], out[i] - 1, tolerance) - excess
            change += beyond(x[j], out[j] - 1, tolerance) - beyond(x[j], out[j], tolerance)
            change += beyond(x[k], out[k] + 1, tolerance) - beyond(x[k], out[k], tolerance)
            change += beyond(x[h], out[h] + 1, tolerance) - beyond(x[h], out[h], tolerance)
            if change < 0:
                out[i] -= 1
                out[j] -= 1
                out[k] += 1
                out[h] += 1


def seeded(purpose: int, seed: np.uint64) -> np.uint64:
    """A seed of its own for one purpose."""
    return np.uint64(mixed(np.uint64(purpose), seed))
