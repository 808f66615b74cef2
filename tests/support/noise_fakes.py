"""Scripted block sources for tests, and a fixed test stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet.noise.key import ReleaseKey
from discreet.noise.stream import AesBlocks, BlockSource, Stream

Words = tuple[int, int]


def fixed_stream(purpose: str = "noise") -> Stream:
    return ReleaseKey.simulation("discreet tests").stream("release", "table", b"digest", purpose)


class Scripted:
    """Blocks given by a function of the 128-bit counter; `short` bytes fewer are reported than asked."""

    def __init__(self, blocks: Callable[[int], Words], short: int = 0) -> None:
        self._blocks, self._short = blocks, short

    def reader(self, first: int) -> _Reader:
        return _Reader(self, first)

    def at(self, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.array([self._blocks(int(h) << 64 | int(low)) for h, low in counters], dtype=np.uint64).reshape(-1, 2)


class _Reader:
    def __init__(self, source: Scripted, first: int) -> None:
        self._source, self._next = source, first

    def read_into(self, out: NDArray[np.uint8], size: int) -> int:
        n = size // 16
        words = np.array([self._source._blocks(self._next + i) for i in range(n)], dtype=np.uint64)
        out[:size] = words.astype("<u8").reshape(-1).view(np.uint8)
        self._next += n
        return size - self._source._short


def scripted(cells: Callable[[int], Words], extension: Callable[[int], Words] | None = None, short: int = 0) -> Stream:
    """A stream whose cells (and extensions) are scripted; unscripted extensions come from a fixed key."""

    def source(family: str) -> BlockSource:
        if not family.endswith("extension"):
            return Scripted(cells, short)
        return AesBlocks(bytes(32)) if extension is None else Scripted(extension)

    return Stream(source)
