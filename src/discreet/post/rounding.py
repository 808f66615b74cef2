"""Post-processing of protected integers, published in addition to the unbiased noisy count, never instead of it."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Int64s


def nonnegative(values: Int64s) -> Int64s:
    """max(value, 0)."""
    return np.maximum(values, 0)


def to_multiple(values: Int64s, base: int) -> Int64s:
    """The nearest multiple of `base`, halves away from zero: sign(v)·⌊|v|/base + 1/2⌋·base.

    >>> to_multiple(np.array([-8, -7, 0, 2, 3]), 5).tolist()
    [-10, -5, 0, 0, 5]
    """
    whole, rest = np.divmod(np.abs(values).view(np.uint64), np.uint64(base))
    steps = np.minimum(whole + (2 * rest >= base), (2**63 - 1) // base)  # saturates instead of wrapping around
    rounded: Int64s = np.sign(values) * steps.astype(np.int64) * base
    return rounded
