"""The compiled loops of controlled rounding: round down, add units to cells with a deficit, take units back. Proof:
controlled_rounding.md.

Cells are identified by their number. `deficits` holds, margin after margin, the units that each of the margins' cells
still needs. A frame has the sizes of the axes, the offset of each axis in a row of shares, the shares
(`shares[m, first[p] + code]` is the contribution of a code of axis p to the number of the cell in margin m), and the
offset of each margin's cells.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Flags, Floats, Int64s
from discreet.noise.jit import compiled

Frame = tuple[Int64s, Int64s, Int64s, Int64s]

ROUNDING_ERROR = 1e-12  # relative bound on floating-point errors of a value


@compiled
def mixed(word: np.uint64, seed: np.uint64) -> np.uint64:
    """A pseudorandom word: splitmix64's finaliser on seed + word·γ (Steele, Lea & Flood 2014)."""
    z = seed + (word + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def uniform(word: np.uint64, seed: np.uint64) -> float:
    """A uniform number in the open interval (0, 1): the topmost 52 bits plus one half."""
    return float(np.float64(mixed(word, seed) >> np.uint64(12)) + 0.5) / 2.0**52


@compiled
def uniforms(numbers: Int64s, seed: np.uint64) -> Floats:
    """A uniform number for each of these words."""
    values = np.empty(len(numbers))
    for j in range(len(numbers)):
        values[j] = uniform(np.uint64(numbers[j]), seed)
    return values


@compiled
def rest(x: float, whole: np.int64, tolerance: float) -> float:
    """The fractional part x − whole, 0 within the tolerance."""
    left = x - whole
    return left if left > tolerance + ROUNDING_ERROR * x else 0.0


@compiled
def find(cell: int, frame: Frame, at: Int64s) -> None:
    """Writes the cell's position in every margin into `at`."""
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
    """Writes ⌊x⌋ into `out`, lowers the deficits, and adds up the fractional parts by the first margin."""
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
    """Systematic sampling for one margin: a unit to each cell whose interval of the cumulative fractional parts
    contains one of begin + 0, 1, 2, …"""
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
    """Cells with a fractional part r and no unit yet, and their ranks u(1 − r)/((1 − u)r): Pareto sampling, whose
    inclusion probabilities are close to r (Rosén 1997)."""
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
    """Adds one unit to each cell, in this order, that has a deficit on all margins."""
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
    """Takes up to `most` units from each cell, in this order, that has a surplus on a margin."""
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
    """Units by which a cell is above its ceiling or below its floor."""
    slack = tolerance + ROUNDING_ERROR * x
    low, high = np.int64(math.floor(x + slack)), np.int64(math.ceil(x - slack))
    return int(max(units - high, low - units, np.int64(0)))


@compiled
def outliers(x: Floats, out: Int64s, tolerance: float) -> Int64s:
    """Cells above their ceiling."""
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
    """A unit of each cell in `bad` and a unit of a partner, from partners[low … high − 1], swap their codes on the
    swapped axes, if that lowers the number of units outside floor and ceiling."""
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
    """The seed of one purpose."""
    return np.uint64(mixed(np.uint64(purpose), seed))
