"""What all plots share: colours, sizes, logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

COLOURS = ["#0072B2", "#D55E00", "#009E73"]  # told apart by all eyes
WIDTH, HEIGHT = 360, 240


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, within the range: ticks of a logarithmic axis."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]


def ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of a logarithmic axis; some room where there is a single value."""
    low, high = min(values), max(values)
    return (low, high) if low < high else (low / 2, high * 2)
