"""Exact privacy parameters: `Fraction`s, written as decimal strings, ratios or integers; a float is refused.

A float ε is not the number the user typed: 0.1 is 3602879701896397/36028797018963968, and a bound proved for 1/10
does not apply to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationError

from discreet.errors import ParameterError

MAX_LENGTH = 4000  # Python converts integers of up to 4,300 digits
_GIANT = re.compile(r"[eE][+-]?0*[0-9_]{4}")  # Fraction("1e999999999") would compute it


def parse_exact(value: object, where: str = "") -> Fraction:
    """The number that is written as "1.5", "3/2", 2 or a Fraction."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        kind = "a float" if isinstance(value, float) else f"a {type(value).__name__}"
        raise ParameterError(
            f"expected an exact number, found {kind}",
            where=where,
            do='write it as a quoted decimal or ratio, for instance "1.5" or "3/2"',
        )
    try:
        if isinstance(value, str) and (len(value) > MAX_LENGTH or _GIANT.search(value)):
            raise ValueError
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(
            f"expected an exact number, found {str(value)[:40]!r}",
            where=where,
            do='write it as a decimal or ratio, for instance "1.5" or "3/2"',
        ) from None


def format_exact(number: Fraction) -> str:
    """The shortest exact text of a number: a decimal where one exists, a ratio otherwise.

    >>> format_exact(Fraction(3, 2)), format_exact(Fraction(1, 3)), format_exact(Fraction(4))
    ('1.5', '1/3', '4')
    """
    denominator, twos, fives = number.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    digits = max(twos, fives)
    if denominator != 1 or digits > 12:
        return str(number)
    whole, rest = divmod(abs(number.numerator) * (10**digits // number.denominator), 10**digits)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}.{rest:0{digits}}" if digits else f"{sign}{whole}"


def exp_above(number: Fraction) -> Fraction:
    """A rational number at or just above e^number, for a δ that is carried through a conversion.

    `Decimal.exp` is correctly rounded, so one unit in the last of 40 places covers both roundings.
    """
    context = Context(prec=40, rounding=ROUND_CEILING)
    above = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(context.exp(above)) * (1 + Fraction(1, 10**38))


def _parse(value: Any) -> Fraction:
    try:
        return parse_exact(value)
    except ParameterError as error:  # pydantic collects ValueErrors, with the path of the key
        raise ValueError(f"{error.what}; {error.do}") from None


def _parse_positive(value: Any) -> Fraction:
    number = _parse(value)
    if number <= 0:
        raise ValueError(f"must be above 0, found {format_exact(number)}")
    return number


Exact = Annotated[Fraction, BeforeValidator(_parse), PlainSerializer(format_exact, return_type=str)]
Positive = Annotated[Fraction, BeforeValidator(_parse_positive), PlainSerializer(format_exact, return_type=str)]


@contextmanager
def as_refusal(where: str) -> Iterator[None]:
    """Turn a validation error into a one-line refusal."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        text = str(first["msg"]).removeprefix("Value error, ")
        raise ParameterError(text, where=f"{where}, {place}" if place else where, do="correct it") from None
    except ValueError as error:
        raise ParameterError(str(error), where=where, do="correct it") from None
