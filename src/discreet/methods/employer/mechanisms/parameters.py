"""What the mechanisms share: checks of parameters and counts, the cut, the smallest ε that can be served."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, log10

import numpy as np
from flint import arb

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import LARGEST, Int64s
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.privacy.exact import format_exact

BITS = 256  # of the balls in which constants and probabilities are computed
BOUND = Fraction(2 * LARGEST)  # where noise is cut: the sum of it and a count is then beyond ± LARGEST
MULTIPLES = 1 << 62
TERMS = 1 << 40  # of α's numerator and denominator
DIGITS = 4
MOST_CELLS = 1 << 20


def log1p(alpha: Fraction) -> arb:
    """ln(1 + α) at the working precision."""
    return ball(1 + alpha).log()


def check_alpha(alpha: object) -> Fraction:
    """An exact, positive α whose terms leave room for counts in 62 bits."""
    exact = positive_fraction("alpha", alpha)
    if max(exact.numerator, exact.denominator) >= TERMS:
        raise ParameterError(
            "alpha has a numerator or denominator of 2^40 or more", where="alpha", do="write it with fewer digits"
        )
    return exact


def check_cells(cells: object) -> None:
    """How many cells of one establishment share its noise's scale."""
    if type(cells) is not int or not 1 <= cells <= MOST_CELLS:
        raise ParameterError(
            "cells is an integer from 1 to 2^20", where="cells", do="give the worker cells of an establishment"
        )


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        raise ParameterError(f"{name} is none of {', '.join(choices)}", where=name, do="choose one of them")


def check_level(level: object) -> Fraction:
    """The probability of an interval."""
    exact = positive_fraction("level", level)
    if exact >= 1:
        raise ParameterError("a level lies strictly between 0 and 1", where="level", do='try Fraction("0.9")')
    return exact


def check_numbers(name: str, values: Int64s) -> None:
    """One int64 array of numbers from 0 to 2⁵¹ − 1. No value is named: they are confidential."""
    if values.dtype != np.int64 or values.ndim != 1:
        raise ParameterError(f"{name} must be one int64 array", where=name, do="convert them first")
    if values.size and (int(values.min()) < 0 or int(values.max()) >= LARGEST):
        raise ParameterError(f"a number of {name} is negative, or 2^51 or more", where=name, do="count jobs, from 0")


def check_pair(counts: Int64s, largest: Int64s) -> None:
    """Counts and the largest establishments: which may exceed a count (their total size, 003 Def. 7.1)."""
    check_numbers("counts", counts)
    check_numbers("largest", largest)
    if counts.shape != largest.shape:
        raise ParameterError("counts and largest differ in length", where="largest", do="give one for each cell")


def cut_sum(counts: Int64s, noise: Int64s) -> Int64s:
    """counts + noise, cut at ± 2⁵¹, in place of the noise (smooth.md, The cut)."""
    noise += counts
    np.clip(noise, -LARGEST, LARGEST, out=noise)
    return noise


def least(bound: Callable[[], arb], admissible: Callable[[Fraction], bool]) -> Fraction:
    """The first decimal of four digits at or above a positive bound that is admissible; all above it must be so too."""
    start = rounded_up(bound, 200)
    unit = Fraction(10) ** (floor(log10(start)) - DIGITS + 1)
    low, step = ceil(start / unit) - 1, 1
    while not admissible((low + step) * unit):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if admissible(middle * unit) else (middle, high)
    return high * unit


class TooSmallEpsilon(ParameterError):
    """An ε outside of what the mechanism can serve, and the first one inside."""

    smallest: Fraction


def refuse(what: str, smallest: Fraction, otherwise: str = "; or lower alpha") -> ParameterError:
    """Its refusal, with what one can do."""
    do = f"the smallest epsilon here is {format_exact(smallest)}{otherwise}"
    error = TooSmallEpsilon(what, where="epsilon", do=do)
    error.smallest = smallest
    return error
