"""Axis scales with round ticks, and number formatting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from discreet.serve.charts.svg import width_of

HUGE, TINY = 1e300, 1e-290  # beyond these, arithmetic overflows or underflows
LONG = 1e15
STEPS = (1, 2, 5, 10)
PAD = 0.03  # around the numbers, but not beyond zero
TICK = 12  # font size of tick labels


def number(value: float, decimals: int = 0) -> str:
    """A number with thousands separators and a minus sign."""
    if not isfinite(value):
        return "–"
    if abs(value) >= LONG:
        text = f"{value:.2e}".replace("e+", "e")
    elif value and decimals and abs(value) < 10.0**-decimals / 2 and decimals > 6:
        text = f"{value:.1e}"
    else:
        text = f"{value:,.{decimals}f}"
        if not text.strip("-0.,"):
            text = text.lstrip("-")
    return text.replace("-", "−")


def brief(value: float, decimals: int = 0) -> str:
    """A number in few characters: 12.3k, 4.57M."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size * 0.9995 <= abs(value) < LONG:
            short = value / size
            return number(short, 0 if abs(short) >= 99.95 else 1 if abs(short) >= 9.995 else 2) + unit
    if abs(value) >= LONG:
        return f"{value:.0e}".replace("e+", "e").replace("-", "−")
    return number(value, 0 if abs(value) >= 100 else min(decimals, 3))


def decimals_for(values: Sequence[float], decimals: int) -> int:
    """Decimals worth showing: about four significant digits of the largest number."""
    largest = max((abs(v) for v in values if isfinite(v)), default=0.0)
    if largest <= TINY or not decimals:
        return decimals
    digits = 3 - floor(log10(largest))
    if largest >= 1:
        return max(0, min(decimals, digits))
    return min(9, max(digits - 3, min(decimals, digits - 1)))  # three digits, at least one


@dataclass(frozen=True)
class Scale:
    """A linear scale from `low`…`high` to `start`…`end`, with round ticks."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def has_zero(self) -> bool:
        return self.low <= 0 <= self.high


def scale(
    values: Sequence[float], start: float, end: float, *, zero: bool = True, integer: bool = False, down: bool = False
) -> Scale:
    """A scale that covers all values (and zero), with as many ticks as there is room for labels."""
    fine = [v for v in values if isfinite(v)]
    low, high = (min(fine), max(fine)) if fine else (0.0, 0.0)
    if zero or (low > 0 and low < high / 2) or (high < 0 and high > low / 2):
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= max(TINY, 1e-12 * max(abs(low), abs(high))):
        low, high = (low - abs(low) / 10, high + abs(high) / 10) if max(abs(low), abs(high)) > TINY else (0.0, 1.0)
    pad = (high - low) * PAD
    low, high = low - (pad if low else 0), high + (pad if high else 0)
    for most in range(8, 0, -1):
        ticks, step = _ticks(low, high, most, integer=integer)
        labels = [number(t, _places(step)) for t in ticks]
        room = TICK * 1.6 if down else max(width_of(text, TICK) for text in labels) + 10
        if abs(end - start) * step / (high - low) >= room or len(ticks) == 1:
            break
    else:
        ticks, labels = ticks[:1], labels[:1]
    return Scale(low, high, start, end, tuple(ticks), tuple(labels))


def _ticks(low: float, high: float, most: int, *, integer: bool) -> tuple[list[float], float]:
    """Round numbers within the range, at least one."""
    raw = (high - low) / most
    size = 10.0 ** floor(log10(raw))
    step = next(m * size for m in STEPS if m * size >= raw * (1 - 1e-9))
    step = max(step, 1.0) if integer else step
    slack = (high - low) * 1e-9
    first, last = ceil((low - slack) / step), floor((high + slack) / step)
    return [i * step for i in range(first, last + 1)] or [low], step


def _places(step: float) -> int:
    return max(0, min(9, -floor(log10(step) + 1e-9)))
