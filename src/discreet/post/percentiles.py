"""Percentiles of a protected histogram (PSEO Beta Appendix, Eq. 4, corrected: the total is over all M bins, not J).

With C_j the sum of the first j bins and T = C_M > 0, percentile y lies in the smallest bin J with y·T ≤ C_J, at the
fraction f = (y·T − C_{J−1})/q_J of its width. Such a bin exists because y·T ≤ T, and as C_{J−1} < y·T it has q_J > 0
and 0 < f ≤ 1, however many other bins are negative. (As printed, with C_J for T, f ≤ 0 is possible.)
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.domain.bins import Bins
from discreet.errors import ParameterError
from discreet.noise.jit import compiled

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_DENOMINATOR = 1000  # of a percentile point: per mille
LARGEST_SUM = 2**62
NO_BIN = -1  # where the histogram has no positive total


def percentiles(counts: Int64s, bins: Bins, points: tuple[Fraction, ...]) -> Floats:
    """The values (cells, points) of the percentiles of histograms (cells, M); NaN where the total is not positive.

    >>> four = Bins((0, 10, 20, 40, 80))
    >>> percentiles(np.array([[4, -1, 8, 5]]), four, (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))).tolist()
    [[10.0, 32.5, 48.0]]
    """
    return interpolate(*locate(counts, bins, points), bins)


def locate(counts: Int64s, bins: Bins, points: tuple[Fraction, ...]) -> tuple[Int64s, Floats]:
    """The bin of each percentile, from 0, and the fraction of its width: NO_BIN and NaN without a positive total."""
    histograms = checked_counts(counts, bins)
    numerators, denominators = (np.array(part, np.int64) for part in _terms(points))
    shape = (len(histograms), len(points))
    bin_numbers, fractions = np.empty(shape, np.int64), np.empty(shape, np.float64)
    _places(histograms, numerators, denominators, bin_numbers, fractions)
    return bin_numbers, fractions


def interpolate(bin_numbers: Int64s, fractions: Floats, bins: Bins) -> Floats:
    """b_J + (b_{J+1} − b_J)·f."""
    edges = bins.edge_array()
    value: Floats = edges[bin_numbers] + (edges[bin_numbers + 1] - edges[bin_numbers]) * fractions
    return value


def to_dollars(amounts: Floats) -> Floats:
    """Rounded to integers, halves upwards: ⌊x + 1/2⌋; NaN stays NaN.

    >>> to_dollars(np.array([49604.5, 49605.49])).tolist()
    [49605.0, 49605.0]
    """
    rounded: Floats = np.floor(amounts + 0.5)
    return rounded


def checked_counts(counts: Int64s, bins: Bins) -> Int64s:
    """The histograms, contiguous; refused unless they fit the bins and no partial sum can overflow 64 bits."""
    if counts.dtype != np.int64 or counts.ndim != 2 or counts.shape[1] != bins.count:
        raise ParameterError(
            f"histograms are int64 arrays of shape (cells, {bins.count})", where="histogram", do="convert them"
        )
    if counts.size and max(int(counts.max()), -int(counts.min())) * bins.count >= LARGEST_SUM:
        raise ParameterError("a histogram's total leaves ±2^62", where="histogram", do="bound the counts")
    return np.ascontiguousarray(counts)


def _terms(points: tuple[Fraction, ...]) -> tuple[list[int], list[int]]:
    for point in points:
        if type(point) is not Fraction or not 0 < point < 1 or point.denominator > LARGEST_DENOMINATOR:
            raise ParameterError(
                f"{point} is not a fraction between 0 and 1 with a denominator of at most {LARGEST_DENOMINATOR}",
                where="percentiles",
                do="give the median as Fraction(1, 2)",
            )
    return [p.numerator for p in points], [p.denominator for p in points]


@compiled
def _places(counts: Int64s, numerators: Int64s, denominators: Int64s, bin_numbers: Int64s, fractions: Floats) -> None:
    """y·T = whole + rest, whole an integer and 0 ≤ rest < 1, so that y·T ≤ C iff C ≥ whole + [rest > 0]: exact."""
    for cell in range(counts.shape[0]):
        total = np.int64(0)
        for j in range(counts.shape[1]):
            total += counts[cell, j]
        for p in range(numerators.shape[0]):
            bin_numbers[cell, p] = NO_BIN
            fractions[cell, p] = np.nan
            if total <= 0:
                continue
            share = numerators[p] * (total % denominators[p])
            whole = numerators[p] * (total // denominators[p]) + share // denominators[p]
            rest = share % denominators[p]
            target = whole + np.int64(rest > 0)
            before = np.int64(0)
            for j in range(counts.shape[1]):
                if before + counts[cell, j] >= target:
                    part = np.float64(whole - before) + np.float64(rest) / np.float64(denominators[p])
                    bin_numbers[cell, p] = j
                    fractions[cell, p] = min(part / np.float64(counts[cell, j]), 1.0)
                    break
                before += counts[cell, j]
