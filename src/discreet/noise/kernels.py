"""Compiled loops over words of the key stream: no branch on the drawn value, no libm, only IEEE + − ×.

A 63-bit prefix u (word without its sign bit) is converted to x = float64(u) + ½, the midpoint of the interval of
U·2⁶³ that it represents. The top bits of x in IEEE form (exponent, 6 bits) index its bucket: 64 buckets per octave.
Rounding in the conversion is monotone, so buckets are intervals of u.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from discreet.arrays import Floats, Int64s, Words
from discreet.noise.jit import compiled

MANTISSA = 6
PER_OCTAVE = 1 << MANTISSA
LOW_BITS = 52 - MANTISSA
PREFIX = (1 << 63) - 1

INTEGER_ORIGIN = (1023 - 1) << MANTISSA  # bucket of x = ½, that is u = 0
INTEGER_BUCKETS = 65 << MANTISSA
OCTAVES = 32
ROUNDED_ORIGIN = ((1023 + 63 - OCTAVES) << MANTISSA) - 1  # row 0 covers every smaller x: undecided
ROUNDED_BUCKETS = (OCTAVES << MANTISSA) + 2  # the last row is x = 2⁶³, reached by rounding up: undecided

UNDECIDED = 1
SUSPECT = 2
NOT_DRAWN = -(1 << 63)
RELATIVE_ERROR = 2.0**-50  # of scale·polynomial + offset: six roundings of 2^-53 at most


@intrinsic  # type: ignore[untyped-decorator]
def float_bits(typingctx: Any, x: Any) -> Any:  # noqa: ARG001 (numba's signature)
    """The bits of a float64 as uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), codegen


@compiled
def repeated(words: Words) -> bool:
    """Whether two successive blocks are equal."""
    same = False
    for i in range(1, words.shape[0]):
        same |= ((words[i, 0] ^ words[i - 1, 0]) | (words[i, 1] ^ words[i - 1, 1])) == 0
    return same


@compiled
def largest(counts: Int64s) -> int:
    """The largest of c and −1 − c over all counts c, in one pass: below 2⁶² iff every c lies in −2⁶² … 2⁶² − 1."""
    most = np.int64(0)
    for i in range(counts.shape[0]):
        most = max(most, counts[i] ^ (counts[i] >> np.int64(63)))
    return int(most)


@compiled
def integers(words: Words, thresholds: Words, bases: Int64s, out: Int64s, add: bool) -> int:
    """Signed integers ±(base + [u < threshold]); the flags UNDECIDED (some u = threshold) and SUSPECT.

    Equal successive words are only suspect (probability 2⁻⁶⁴ per pair): the stream then compares whole blocks.
    """
    tie = False
    same = False
    before = ~words[0, 0] if words.shape[0] else np.uint64(0)
    for i in range(words.shape[0]):
        w = words[i, 0]
        same |= w == before
        before = w
        u = w & np.uint64(PREFIX)
        x = np.float64(np.int64(u)) + 0.5
        bucket = (float_bits(x) >> np.uint64(LOW_BITS)) - np.uint64(INTEGER_ORIGIN)
        threshold = thresholds[bucket]
        tie |= u == threshold
        sign = np.int64(w) >> np.int64(63)
        value = ((bases[bucket] + np.int64(u < threshold)) ^ sign) - sign
        out[i] = out[i] + value if add else value
    return int(tie) * UNDECIDED | int(same) * SUSPECT


@compiled
def rounded(
    words: Words,
    rows: Floats,
    stride: int,
    mirror: bool,
    multiples: Int64s,
    scale: float,
    offset: float,
    limit: float,
    out: Int64s,
) -> int:
    """min(floor(multiple·scale·G(U) + offset), limit); the flags UNDECIDED (NOT_DRAWN is written), SUSPECT.

    A row is a polynomial of degree 6 in t ∈ [−1, 1) and a proven bound on |polynomial − G(U)|. If the sign bit is
    set, rows from `stride` on are used (another G), and the result is negated if `mirror`. There is one multiple for
    all cells, or one for each.
    """
    undecided = False
    same = False
    before = ~words[0, 0] if words.shape[0] else np.uint64(0)
    step = 1 if multiples.shape[0] > 1 else 0
    negated = np.int64(-1) if mirror else np.int64(0)
    offset_error = abs(offset) * RELATIVE_ERROR
    top = limit + 0.5
    for i in range(words.shape[0]):
        w = words[i, 0]
        same |= w == before
        before = w
        bits = float_bits(np.float64(np.int64(w & np.uint64(PREFIX))) + 0.5)
        bucket = max(np.int64(bits >> np.uint64(LOW_BITS)) - np.int64(ROUNDED_ORIGIN), np.int64(0))
        row = np.uint64(bucket) + (w >> np.uint64(63)) * np.uint64(stride)
        t = np.float64(np.int64(bits & np.uint64((1 << LOW_BITS) - 1))) * 2.0 ** -(LOW_BITS - 1) - 1.0
        p = rows[row, 6]
        p = p * t + rows[row, 5]
        p = p * t + rows[row, 4]
        p = p * t + rows[row, 3]
        p = p * t + rows[row, 2]
        p = p * t + rows[row, 1]
        p = p * t + rows[row, 0]
        s = np.float64(multiples[np.uint64(i * step)]) * scale
        product = s * p
        y = product + offset
        error = s * rows[row, 7] + (abs(product) * RELATIVE_ERROR + offset_error)
        capped = y if y < top else top
        floor = np.floor(capped)
        fraction = capped - floor
        decided = ((fraction > error) & (fraction + error < 1.0)) | (y - error > limit)
        sign = (np.int64(w) >> np.int64(63)) & negated
        k = (np.int64(floor) ^ sign) - sign
        out[i] = k if decided else np.int64(NOT_DRAWN)
        undecided |= not decided
    return int(undecided) * UNDECIDED | int(same) * SUSPECT
