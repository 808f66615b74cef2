"""Which measured groups a group's numbers come from: itself, or after a recoding one or several of another list.

It decides how many draws of noise a sum has. A measured group that was divided at random between two sums leaves
neither with a known error: such sums are blurred, and have no margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.noise.jit import compiled

Flags = NDArray[np.bool_]
UNKNOWN = -1  # draws of a group that was divided at random


@dataclass(frozen=True)
class NoiseProvenance:
    """Measured group m went to the groups targets[starts[m]:starts[m + 1]]; none given: each is its own. What was
    measured may itself have been recoded: then it has several draws, or none, or UNKNOWN if it was divided."""

    starts: Numbers | None = None
    targets: Numbers | None = None
    measured: Numbers | None = None

    def draws(self, parents: Numbers, size: int) -> tuple[Numbers, Flags]:
        """Of sums that each group has one of: how many measured groups they add up, and whether they are blurred."""
        if self.starts is None or self.targets is None:
            return np.bincount(parents, minlength=size), np.zeros(size, np.bool_)
        counts, blurred = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        measured = np.ones(len(self.starts) - 1, np.int64) if self.measured is None else self.measured
        _trace(self.starts, parents[self.targets], measured, counts, blurred)
        return counts, blurred


@compiled
def _trace(starts: Numbers, sums: Numbers, measured: Numbers, counts: Numbers, blurred: Flags) -> None:
    """Count each measured group once in every sum that it reaches, and blur those if they are several."""
    for m in range(starts.shape[0] - 1):
        several = measured[m] == UNKNOWN
        for i in range(starts[m] + 1, starts[m + 1]):
            several |= sums[i] != sums[starts[m]]
        for i in range(starts[m], starts[m + 1]):
            first = True
            for j in range(starts[m], i):
                first &= sums[j] != sums[i]
            counts[sums[i]] += measured[m] if first and measured[m] > 0 else 0
            blurred[sums[i]] |= several
