"""Python objects, converted one by one, by the methods of their base types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from discreet.engine.intake.normalise import OBJECTS


def objects(values: Iterable[Any]) -> pa.Array:
    """Floats as numbers, everything else as the text of its code."""
    texts: list[str | None] = []
    reals: list[float | None] = []
    for value in values:
        real = _real(value)
        texts.append(None if real is not None else code_text(value))
        reals.append(real)
    arrays = [pa.array(texts, pa.large_string()), pa.array(reals, pa.float64())]
    return pa.StructArray.from_arrays(arrays, fields=[*OBJECTS])


def _real(value: Any) -> float | None:
    kind = type(value)
    if issubclass(kind, float):
        return float.__pos__(value)
    return float(value) if issubclass(kind, np.floating) and kind is not np.longdouble else None


def code_text(value: Any) -> str | None:
    """The text of one value's code, or None."""
    kind = type(value)
    convert = next((rule for known, rule in _RULES if issubclass(kind, known)), None)
    return None if convert is None else convert(value)


def _text(value: str) -> str | None:
    text = str.__str__(value)
    return text if text.isascii() or _encodes(text) else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_DIGITS = 1000  # Python refuses to format integers with thousands of digits
_LARGEST = 10**_DIGITS


def _whole(value: int) -> str | None:
    return int.__repr__(value) if -_LARGEST < int.__pos__(value) < _LARGEST else None


def _decimal(value: Decimal) -> str | None:
    """The number without trailing zeros: 7.0, 7.00 and the integer 7 are 7."""
    if not Decimal.is_finite(value):
        return None
    if Decimal.is_zero(value):
        return "0"
    if not -_DIGITS <= Decimal.adjusted(value) < _DIGITS:
        return None
    text = Decimal.__format__(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _uuid(value: UUID) -> str | None:
    try:
        number = UUID.int.__get__(value)  # type: ignore[misc, attr-defined]
    except AttributeError:  # an uninitialised one
        return None
    return str(UUID(int=number)) if type(number) is int and 0 <= number < 1 << 128 else None


def _day(value: np.datetime64) -> str | None:
    day = np.datetime64.item(value)
    return day.isoformat() if type(day) is dt.date else None  # a time, or a date beyond Python's


def _nothing(_: Any) -> None:
    return None


# The first match counts. Datetimes are not dates, and long doubles have no equivalent in Python.
_RULES: tuple[tuple[type | tuple[type, ...], Callable[[Any], str | None]], ...] = (
    (str, _text),
    (bool, lambda value: "true" if value else "false"),
    (int, _whole),
    (Decimal, _decimal),
    (UUID, _uuid),
    (dt.datetime, _nothing),
    (dt.date, dt.date.isoformat),
    (np.datetime64, _day),
    ((np.longdouble, np.clongdouble, np.timedelta64), _nothing),
    (np.generic, lambda value: code_text(np.generic.item(value))),
)
