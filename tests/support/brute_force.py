"""Local sensitivities by brute force: leave each observation out, add every point of a fine grid, refit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from discreet.methods.sensitivity.statistics import Variable

Floats = NDArray[np.float64]
Function = Callable[[Sequence[Floats]], float]


def removals(function: Function, columns: Sequence[Floats]) -> Iterator[float]:
    """The statistic without each observation in turn."""
    for i in range(columns[0].size):
        yield function([np.delete(column, i) for column in columns])


def additions(function: Function, columns: Sequence[Floats], points: Sequence[Sequence[float]]) -> Iterator[float]:
    """The statistic with each of these observations as well; `points` are the values tried of each variable."""
    for point in product(*points):
        yield function([np.append(column, value) for column, value in zip(columns, point, strict=True)])


def sensitivity(
    function: Function, columns: Sequence[Floats], variables: Sequence[Variable], points: int, *, remove: bool = True
) -> float:
    """The largest change over removals and a grid of additions: never above the exact one, and close to it."""
    centre = function(columns)
    tried = [np.linspace(v.low, v.high, points) for v in variables]
    changed = [*additions(function, columns, [t.tolist() for t in tried])]
    changed += [*removals(function, columns)] if remove else []
    return max(abs(value - centre) for value in changed)
