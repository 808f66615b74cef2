"""Exponential clocks from key-stream words, without libm: identical bits on every machine. Proof: correction.md.

A word w represents U = (w + ½)·2⁻⁶⁴ and gives E = −ln(1 − U), small values to full relative precision: a clock that is
10¹⁵ times slower than another rings before it when its E is of the order of 10⁻¹⁵.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats, Int64s, Words
from discreet.noise.jit import compiled
from discreet.noise.kernels import float_bits

Scratch = tuple[Floats, Int64s, Int64s, Int64s, Int64s]

SMALL = 1 << 62  # below it U < 1/4, and 1 − U would lose bits of U
LN2_HIGH = 0.6931471803691238  # 33 bits: its multiples by an exponent are exact
LN2_LOW = 1.9082149292705877e-10
ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½: exponents are counted from there
DAY_BITS = 52 - 3  # a calendar has 2³ days to each octave of time
DAYS = 1024  # 128 octaves from the first ring; later rings share the last day
MANY = 320  # number of clocks with several rings above which a heap is faster than the calendar
NONE = -1
NEVER = 1 << 40
POWERS = 2.0 ** np.arange(66)


@compiled
def exponential(word: np.uint64) -> float:
    """−ln(1 − (word + ½)·2⁻⁶⁴) within 4 units in the last place, by + − × ÷ alone.

    1 − U = 2ᵉ·m with √½ ≤ m < √2, and −ln m = 2·atanh((1 − m)/(1 + m)); where U < 1/4, e = 0 and 1 − m = U as it is.
    """
    rest = (np.float64(~word) + 0.5) * 2.0**-64
    exponent = (np.int64(float_bits(rest)) - np.int64(ROOT_HALF)) >> np.int64(52)
    m = rest * POWERS[-exponent]
    gap = (np.float64(word) + 0.5) * 2.0**-64 if word < np.uint64(SMALL) else 1.0 - m
    z = gap / (1.0 + m)
    s = z * z
    t = s * s
    even = 1 / 3 + t * (1 / 7 + t * (1 / 11 + t * (1 / 15 + t * (1 / 19))))
    odd = 1 / 5 + t * (1 / 9 + t * (1 / 13 + t * (1 / 17 + t * (1 / 21))))
    twice = 2.0 * z
    return float(-exponent * LN2_HIGH + (twice + (twice * s * (even + s * odd) - exponent * LN2_LOW)))


@compiled
def scratch(cells: int) -> Scratch:
    """Work arrays: time, day and successor of each clock; first clock and number of single-ring clocks of each day."""
    clocks = np.empty(cells), np.empty(cells, np.int64), np.empty(cells, np.int64)
    return *clocks, np.empty(DAYS, np.int64), np.empty(DAYS, np.int64)


@compiled
def ring(
    cells: Int64s, left: Int64s, slowness: Floats, count: int, rings: int, words: Words, work: Scratch, out: Int64s
) -> None:
    """Run the clocks of `cells[:count]` until `rings` rings, and subtract one from the cell of each ring.

    The clock at i adds exponentials of mean slowness[i] and stops after left[i] rings. One word each for the first
    rings, in the order of `cells`; then one for each next ring, in the order of the rings. Ties: the first in `cells`.
    The next rings are kept in a calendar queue, days of equal length in log time. Clocks with one ring are only counted
    there: which of them rang follows from the day of the last ring. Where many clocks ring several times, days are
    crowded and a heap is used instead, with the same result.
    """
    several = np.int64(0)
    for i in range(count):
        several += np.int64(left[i] > 1)
    if several > MANY:
        _ring_heap(cells, left, slowness, count, rings, words, work, out)
    else:
        _ring_calendar(cells, left, slowness, count, rings, words, work, out)


@compiled
def _ring_calendar(
    cells: Int64s, left: Int64s, slowness: Floats, count: int, rings: int, words: Words, work: Scratch, out: Int64s
) -> None:
    """As `ring`, with the next rings in a calendar queue."""
    times, days, following, first, single = work
    origin = _enter(left, slowness, count, words, work)
    used, day = np.int64(count), np.int64(0)
    rings -= single[0]
    while rings > 0 or first[day] != NONE:
        if first[day] == NONE:
            day += 1
            rings -= single[day]
            continue
        if rings < 0:
            days[_latest(day, count, times, days)] = NEVER
            rings += 1
            continue
        i, before, previous = first[day], np.int64(NONE), first[day]
        j = following[i]
        while j != NONE:
            if times[j] < times[i] or (times[j] == times[i] and j < i):
                i, before = j, previous
            previous, j = j, following[j]
        if rings == 0:
            last = _latest(day, count, times, days)
            if last == NONE or times[last] < times[i] or (times[last] == times[i] and last < i):
                break
            days[last] = NEVER
            rings = 1
        if before == NONE:
            first[day] = following[i]
        else:
            following[before] = following[i]
        out[cells[i]] -= 1
        rings -= 1
        left[i] -= 1
        if left[i] > 0:
            times[i] += slowness[i] * exponential(words[used])
            used += 1
            j = min((np.int64(float_bits(times[i])) >> np.int64(DAY_BITS)) - origin, np.int64(DAYS - 1))
            following[i], first[j] = first[j], i
    for _ in range(-rings):
        days[_latest(day, count, times, days)] = NEVER
    for i in range(count):
        out[cells[i]] -= np.int64(days[i] <= day)


@compiled
def _ring_heap(
    cells: Int64s, left: Int64s, slowness: Floats, count: int, rings: int, words: Words, work: Scratch, out: Int64s
) -> None:
    """As `ring`, with the next rings in a heap: O(count + rings·log count), whatever the weights."""
    times, heap, _, _, _ = work
    for i in range(count):
        times[i] = slowness[i] * exponential(words[i])
        heap[i] = i
    for place in range(count // 2 - 1, -1, -1):
        sink(heap, place, count, times)
    used = np.int64(count)
    for _ in range(rings):
        i = heap[0]
        out[cells[i]] -= 1
        left[i] -= 1
        if left[i] > 0:
            times[i] += slowness[i] * exponential(words[used])
            used += 1
        else:
            count -= 1
            heap[0] = heap[count]
        sink(heap, 0, count, times)


@compiled
def sink(heap: Int64s, place: int, size: int, times: Floats) -> None:
    """Sift a clock down in the heap; of equal times the first clock is the earlier."""
    mine = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        one, other = heap[child], heap[min(child + 1, size - 1)]
        if times[other] < times[one] or (times[other] == times[one] and other < one):
            child, one = min(child + 1, size - 1), other
        if times[mine] < times[one] or (times[mine] == times[one] and mine < one):
            break
        heap[place] = one
        place = child
    heap[place] = mine


@compiled
def _enter(left: Int64s, slowness: Floats, count: int, words: Words, work: Scratch) -> int:
    """Enter the first rings; returns the day, counted from time 0, on which the calendar begins."""
    times, days, following, first, single = work
    origin = np.int64(0x7FF0000000000000)
    for i in range(count):
        times[i] = slowness[i] * exponential(words[i])
        days[i] = np.int64(float_bits(times[i])) >> np.int64(DAY_BITS)
        origin = min(origin, days[i])
    first[:] = NONE
    single[:] = 0
    for i in range(count):
        day = min(days[i] - origin, np.int64(DAYS - 1))
        days[i] = day if left[i] == 1 else NEVER
        single[day] += np.int64(left[i] == 1)
        if left[i] > 1:
            following[i], first[day] = first[day], i
    return int(origin)


@compiled
def _latest(day: np.int64, count: int, times: Floats, days: Int64s) -> int:
    """The single-ring clock that rings last on the day."""
    latest = np.int64(NONE)
    for i in range(count):
        if days[i] == day and (latest == NONE or times[i] >= times[latest]):
            latest = np.int64(i)
    return int(latest)
