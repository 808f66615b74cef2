"""Shared by the mechanisms: checks of parameters and counts, clamping, the smallest admissible ε."""

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

BITS = 256  # precision of constants and probabilities
BOUND = Fraction(2 * LARGEST)  # noise is clamped here: its sum with a count is then beyond ± LARGEST
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
    """The number of cells of one establishment that share a noise scale."""
    if type(cells) is not int or not 1 <= cells <= MOST_CELLS:
        raise ParameterError("cells is an integer from 1 to 2^20", where="cells", do="give the number of worker cells")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """One of a few keywords."""
    if value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(choices)}", where=name, do="choose one of them")


def check_level(level: object) -> Fraction:
    """The probability of an interval."""
    exact = positive_fraction("level", level)
    if exact >= 1:
        raise ParameterError("a level lies strictly between 0 and 1", where="level", do='try Fraction("0.9")')
    return exact


def check_numbers(name: str, values: Int64s) -> None:
    """An int64 array of integers from 0 to 2⁵¹ − 1. Messages quote no value: they are confidential."""
    if values.dtype != np.int64 or values.ndim != 1:
        raise ParameterError(f"{name} must be one int64 array", where=name, do="convert them first")
    if values.size and (int(values.min()) < 0 or int(values.max()) >= LARGEST):
        raise ParameterError(f"a number of {name} is negative, or 2^51 or more", where=name, do="count jobs, from 0")


def check_pair(counts: Int64s, largest: Int64s) -> None:
    """Counts, and sizes of the largest establishments, which may exceed a count (total size, Haney et al. 2017, Def.
    7.1)."""
    check_numbers("counts", counts)
    check_numbers("largest", largest)
    if counts.shape != largest.shape:
        raise ParameterError("counts and largest differ in length", where="largest", do="give one for each cell")


def clamped_sum(counts: Int64s, noise: Int64s) -> Int64s:
    """counts + noise, clamped to ± 2⁵¹, in place of the noise (smooth.md, Clamping)."""
    noise += counts
    np.clip(noise, -LARGEST, LARGEST, out=noise)
    return noise


def least(bound: Callable[[], arb], admissible: Callable[[Fraction], bool]) -> Fraction:
    """The smallest admissible decimal of four digits at or above a positive bound; all larger ones must be
    admissible."""
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
    """An inadmissible ε, with the smallest admissible one."""

    smallest: Fraction


def refuse(what: str, smallest: Fraction, otherwise: str = "; or lower alpha") -> ParameterError:
    """The error for an ε that is too small, with the smallest admissible one."""
    do = f"the smallest admissible epsilon is {format_exact(smallest)}{otherwise}"
    error = TooSmallEpsilon(what, where="epsilon", do=do)
    error.smallest = smallest
    return error
