"""The measured groups that each group's numbers come from: itself, or after a recoding groups of another list.

It determines how many draws of noise a sum contains. If a measured group was split at random between two sums, the
error of neither is known: such sums have no margin of error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.domain import Numbers
from discreet.noise.jit import compiled

Flags = NDArray[np.bool_]
UNKNOWN = -1  # draws of a group that was split at random


@dataclass(frozen=True)
class NoiseProvenance:
    """Measured group m was recoded to the groups targets[starts[m]:starts[m + 1]]; without targets, to itself.

    `measured`: draws of noise in each measured group, if it was recoded before; UNKNOWN if it was split at random.
    """

    starts: Numbers | None = None
    targets: Numbers | None = None
    measured: Numbers | None = None

    def draws(self, parents: Numbers, size: int) -> tuple[Numbers, Flags]:
        """Draws of noise in each sum, and whether its error is unknown; parents[g] is the sum of group g."""
        if self.starts is None or self.targets is None:
            return np.bincount(parents, minlength=size), np.zeros(size, np.bool_)
        counts, unknown = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        measured = np.ones(len(self.starts) - 1, np.int64) if self.measured is None else self.measured
        _trace(self.starts, parents[self.targets], measured, counts, unknown)
        return counts, unknown


@compiled
def _trace(starts: Numbers, sums: Numbers, measured: Numbers, counts: Numbers, unknown: Flags) -> None:
    """Count each measured group once in every sum it contributes to; if there are several, their error is unknown."""
    for m in range(starts.shape[0] - 1):
        several = measured[m] == UNKNOWN
        for i in range(starts[m] + 1, starts[m + 1]):
            several |= sums[i] != sums[starts[m]]
        for i in range(starts[m], starts[m + 1]):
            first = True
            for j in range(starts[m], i):
                first &= sums[j] != sums[i]
            counts[sums[i]] += measured[m] if first and measured[m] > 0 else 0
            unknown[sums[i]] |= several
