"""Interval arithmetic: midpoint–radius intervals ("balls") that contain the true value (Johansson 2017, Arb).

The working precision is a global variable of python-flint; a change by another thread widens or narrows intervals but
never makes one wrong, and the loops here raise the precision until an interval is narrow enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb, arb_series, ctx, fmpq

from discreet.errors import ParameterError

MAX_PRECISION = 1 << 16
DIGITS = 6  # significant digits of a displayed number
FINEST = 10**36  # 1/FINEST is the smallest displayed unit


def ball(x: Fraction | int) -> arb:
    """The rational x as an interval, at the working precision."""
    return arb(fmpq(x.numerator, x.denominator))


def unique_floor(x: arb) -> int | None:
    """floor(x) if it is the same for the whole interval, else None."""
    if not x.is_finite():
        return None
    floor = x.floor().unique_fmpz()
    return None if floor is None else int(floor)


def exact_floors(f: Callable[[], Sequence[arb]], bits: int = 128) -> list[int]:
    """floor of each of f(), with precision doubled until all are unique. None of f() may be an integer."""
    while bits <= MAX_PRECISION:
        with ctx.workprec(bits):
            floors = [unique_floor(x) for x in f()]
        if None not in floors:
            return [floor for floor in floors if floor is not None]
        bits *= 2
    raise ParameterError(
        "a constant of the noise distribution is too close to an integer to be distinguished from it",
        where="noise table",
        do="choose another parameter, and report this one",
    )


def exact_floor(f: Callable[[], arb], bits: int = 128) -> int:
    """floor(f()), with precision doubled until it is unique. f() must not be an integer."""
    return exact_floors(lambda: [arb(f())], bits)[0]


def rounded_up(f: Callable[[], arb], bits: int = 64) -> Fraction:
    """A fraction ≥ f() and within 2^−bits of it: for scales, which may be larger than needed, never smaller."""
    return Fraction(exact_floor(lambda: f() * 2**bits) + 1, 2**bits)


def few_digits_above(f: Callable[[], arb]) -> Fraction:
    """6 significant digits, or a multiple of 10^−36, above f() ≥ 0 by at most one unit in the last digit."""
    with ctx.workprec(256):
        value, unit = f(), 10**DIGITS
    while unit < FINEST and not bool(value * unit >= 10 ** (DIGITS - 1)):
        unit *= 10
    return Fraction(conservative_floor(lambda: f() * unit) + 1, unit)


def upper_float(x: arb) -> float:
    """A double ≥ |x|, infinite if no finite bound is known."""
    if not x.is_finite():
        return float("inf")
    return float(x.abs_upper()) * (1 + 2.0**-50) + 2.0**-1000


def exact_fraction(name: str, value: object) -> Fraction:
    """The exact value of a parameter; floats are refused because they may differ from the decimal that was written."""
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise ParameterError(
            f"{name} must be a Fraction, not {type(value).__name__}",
            where=name,
            do='write it as Fraction("1.5") or Fraction(3, 2)',
        )
    return Fraction(value)


def positive_fraction(name: str, value: object) -> Fraction:
    """A parameter that must be exact and positive."""
    exact = exact_fraction(name, value)
    if exact <= 0:
        raise ParameterError(f"{name} must be positive", where=name, do="give a positive fraction")
    return exact


def conservative_floor(f: Callable[[], arb]) -> int:
    """floor(f()), or, where 4,096 bits cannot distinguish f() from an integer, that integer."""
    bits = 128
    while True:
        with ctx.workprec(bits):
            x = f()
            k = unique_floor(x)
            if k is not None:
                return k
            if bits >= 4096:
                return int(x.upper().floor().unique_fmpz())
        bits *= 2


def inverse_series(z: arb, density: Callable[[arb_series], arb_series], n: int) -> list[arb]:
    """Taylor coefficients in u of the tail quantile at every z of the interval: −∫ density, reverted."""
    tail = -density(arb_series([z, 1], prec=n - 1)).integral()
    if n < 2 or tail[1].contains(0) or not tail[1].is_finite():
        return [z] + [arb("nan")] * (n - 1)
    inverse = arb_series([tail[i] for i in range(n)], prec=n).reversion()
    return [z] + [inverse[i] for i in range(1, n)]


def enclosure(u: arb, monotone: Callable[[arb], arb]) -> arb:
    """An interval that contains a monotone function's values on the whole interval u."""
    if u.is_exact():
        return monotone(u)
    return monotone(u.lower()).union(monotone(u.upper()))
