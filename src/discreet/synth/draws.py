"""Seeded random streams and fast draws for synthetic data. Not cryptographic, and never used for protection."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError

Array = npt.NDArray[Any]
MOST_SEED = 2**63 - 1

BITS = 12  # a quantile table has 4,096 entries: fits the cache, resolves shares of 1/4,096


class StreamPurpose(IntEnum):
    """The purpose of a random stream; with separate streams one part can change without the others."""

    CATALOGUE = 1
    RECORDS = 2
    DATA_ERRORS = 3
    WORK = 4
    WORK_ERRORS = 5
    ECONOMY = 6
    COMPLETIONS = 7
    NATIONAL = 8


def generator(seed: int, stream: StreamPurpose, block: int = 0) -> np.random.Generator:
    """The generator of one block, a function of seed, purpose and block: independent of batching."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, int(stream), block])))


def quantile_table(shares: Array) -> Array:
    """The category at each of 4,096 evenly spaced quantiles, so that a draw is one lookup."""
    middles = (np.arange(1 << BITS) + 0.5) / (1 << BITS)
    cumulative = np.cumsum(shares) / np.sum(shares)
    return np.minimum(np.searchsorted(cumulative, middles, side="right"), len(shares) - 1).astype(np.int16)


def quantile_tables(shares: Array) -> Array:
    """A quantile table for each row of shares along the last axis; at most 127 categories."""
    ends = np.cumsum(shares, axis=-1)
    ends = np.rint(ends / ends[..., -1:] * (1 << BITS)).astype(np.int64)
    widths = np.diff(ends, prepend=0, axis=-1)
    categories = np.broadcast_to(np.arange(shares.shape[-1], dtype=np.int8), shares.shape)
    return np.repeat(categories.ravel(), widths.ravel()).reshape(*shares.shape[:-1], 1 << BITS)


def draw_quantiles(rng: np.random.Generator, size: int) -> Array:
    """Uniform indices into a quantile table."""
    return rng.integers(0, 1 << BITS, size, dtype=np.uint16)


def fast_generator(*numbers: int) -> np.random.Generator:
    """The generator seeded by these numbers (seed, agency, purpose, block): SFC64, the fastest of NumPy's."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(numbers)))


def rows_of_blocks(
    where: str, rows: tuple[int, int, int], size: int, block: Callable[[int], Array], columns: int, kind: npt.DTypeLike
) -> Array:
    """Rows `first` … `first + n - 1` of `total`, from blocks of a fixed size: the same whatever range is requested."""
    first, n, total = rows
    if not 0 <= first <= first + n <= total:
        raise ParameterError(
            f"rows {first} to {first + n} are out of range", where=where, do=f"stay within 0 to {total}"
        )
    out = np.empty((n, columns), kind)
    for number in range(first // size, -(-(first + n) // size)):
        start = number * size
        low, high = max(first, start), min(first + n, start + size)
        out[low - first : high - first] = block(number)[low - start : high - start]
    return out


def refuse_unless_within(where: str, name: str, value: object, least: int, most: int) -> None:
    """Refuse anything but an integer in range; a bool, technically an integer, is refused too."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ParameterError(f"{name} is {value!r}", where=where, do=f"give an integer from {least} to {most}")
