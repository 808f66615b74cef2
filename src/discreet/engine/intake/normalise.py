"""Normalisation of values of any source as texts and numbers, and the column types that are refused. The result for a
value depends on the value and on the column's declared type, never on another record's value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.readers import DecimalText
from discreet.errors import SourceError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

WHOLE = 2.0**53  # beyond it not every integer is a double
BEYOND = 1 << 41  # beyond any declared edge
MOST_SCALE = 60  # digits after the decimal point, of decimals that are compared exactly
MOST_DIGITS = 76  # digits before the decimal point
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days from 1970
DAY = 86_400_000  # milliseconds

# A number in plain notation, with optional blanks around it: not 1_000, 0x10 or 1e5.
NUMBER = r"^ *[+-]?[0-9]+([.][0-9]+)? *$"
# A number in scientific notation, too: 7.1e-07, .5, 3.
REAL = r"^ *[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,9})? *$"
# Python objects: floats separately, because no text is both their code and their value.
OBJECTS = pa.struct([("discreet_text", pa.large_string()), ("discreet_real", pa.float64())])


def is_text(kind: pa.DataType) -> bool:
    """Text, or bytes that represent it; checked for UTF-8 value by value."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)  # a column without a type has only missing values
        or kind == OBJECTS
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values; dictionary encoding is only a way to store them."""
    return plain_type(kind.value_type) if pa.types.is_dictionary(kind) else kind


def texts(values: pa.Array, width: int | None = None) -> pa.Array:
    """Codes as they are declared, zero-padded to a width."""
    text = _texts(values)
    return text if width is None else pc.utf8_lpad(text, width, "0")


def _texts(values: pa.Array) -> pa.Array:  # noqa: PLR0911 - a rule a line
    """Values as the texts of their codes (large_string): 7 and 7.0 are "7", dates 2026-01-31, Booleans "true", "false".
    Missing: NaN and infinities, text that is not UTF-8, dates outside years 1 to 9999, and non-integral floats other
    than 64-bit ones from 0.001 to 10^7, which have one common notation."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _texts(values.dictionary).take(values.indices)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.large_string())
    if kind == OBJECTS:
        return pc.coalesce(*(texts(pc.struct_field(values, i)) for i in range(2)))
    if is_text(kind):
        return _utf8(values.cast(pa.large_binary()))
    if pa.types.is_date(kind):
        day, width = (DAY, pa.int64()) if pa.types.is_date64(kind) else (1, pa.int32())
        number = values.view(width)
        in_range = pc.and_(pc.greater_equal(number, FIRST_DAY * day), pc.less(number, (LAST_DAY + 1) * day))
        return pc.cast(pc.if_else(in_range, values, None).cast(pa.date32(), safe=False), pa.large_string())
    if pa.types.is_floating(kind):
        return _float_texts(values)
    return pc.cast(values, pa.large_string())


def _utf8(values: pa.Array) -> pa.Array:
    """Bytes as text; missing if they are not UTF-8. Arrow checks an array as a whole: if it fails, each value is
    checked on its own, with the same result for valid ones."""
    try:
        return values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in values.to_pylist()], pa.large_string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _float_texts(values: pa.Array) -> pa.Array:
    is_double = pa.types.is_float64(values.type)
    number = numbers(values)
    size = pc.abs(number)
    whole = pc.and_(pc.less(size, WHOLE), pc.equal(pc.trunc(number), number))
    integer = pc.cast(pc.cast(pc.if_else(whole, number, 0.0), pa.int64()), pa.large_string())
    plain = pc.and_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), is_double)
    fraction = pc.cast(pc.if_else(plain, number, None), pa.large_string())
    return pc.if_else(whole, integer, fraction)


def numbers(values: pa.Array, pattern: str = REAL) -> pa.Array:
    """Values as float64. Missing: text that does not match the pattern, NaN and infinities; −0 becomes 0."""
    kind = values.type
    if kind == OBJECTS:
        return pc.coalesce(*(numbers(pc.struct_field(values, i), pattern) for i in range(2)))
    if pa.types.is_dictionary(kind):
        return numbers(values.dictionary, pattern).take(values.indices)
    if is_text(kind):
        text = texts(values)
        text = pc.if_else(pc.match_substring_regex(text, pattern), text, None)
        return numbers(pc.cast(pc.utf8_ltrim(pc.utf8_trim(text, " "), "+"), pa.float64()))
    if pa.types.is_decimal(kind):
        return pc.cast(pc.cast(values, pa.string()), pa.float64())
    if not pa.types.is_floating(kind):
        return pc.cast(values, pa.float64(), safe=False)
    number = pc.add(pc.cast(values, pa.float64()), 0.0)
    return pc.if_else(pc.is_finite(number), number, None)


def absent(values: pa.Array) -> pa.Array:
    """Whether a value is missing: null, NaN, or text that is not UTF-8."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return pc.fill_null(absent(values.dictionary).take(values.indices), True)
    if kind == OBJECTS:
        return pc.and_(*(absent(pc.struct_field(values, i)) for i in range(2)))
    if is_text(kind):
        return texts(values).is_null()
    return values.is_null(nan_is_null=pa.types.is_floating(kind))


def compared(values: pa.Array) -> tuple[Integers | Floats, Integers | Floats, Flags]:
    """What is compared with integer edges: the value rounded down and rounded up, both exactly (a float is compared as
    it is), and whether it is present. Text is parsed by the pattern `NUMBER`."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        low, high, present = compared(values.dictionary)
        place = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        known = values.indices.is_valid().to_numpy(zero_copy_only=False)
        if not len(values.dictionary):
            return np.zeros(len(values)), np.zeros(len(values)), np.zeros(len(values), np.bool_)
        return low[place], high[place], present[place] & known
    if pa.types.is_integer(kind):
        low = high = values
        if pa.types.is_uint64(kind):
            low = high = pc.min_element_wise(values, pa.scalar(BEYOND, pa.uint64()), skip_nulls=False)
        low = high = pc.cast(low, pa.int64())
    elif pa.types.is_decimal(kind):
        clamped = _clamped(pc.cast(values, pa.decimal256(MOST_DIGITS, max(kind.scale, 0))))
        low, high = (pc.cast(rounded(clamped), pa.int64()) for rounded in (pc.floor, pc.ceil))
    else:
        low = high = numbers(values, NUMBER)
    present = low.is_valid().to_numpy(zero_copy_only=False)
    return _filled(low), _filled(high), present


def _clamped(values: pa.Array) -> pa.Array:
    """Decimals, clamped far beyond all edges: the largest ones cannot be rounded up."""
    least, most = (pa.scalar(Decimal(sign * BEYOND), values.type) for sign in (-1, 1))
    return pc.max_element_wise(pc.min_element_wise(values, most, skip_nulls=False), least, skip_nulls=False)


def _filled(values: pa.Array) -> Integers | Floats:
    filled: Integers | Floats = values.fill_null(0).to_numpy(zero_copy_only=False)
    return filled


# --- a source is refused by its types, never by its values -----------------------------------------------------------


def check_code(column: str, kind: pa.DataType, where: str) -> None:
    """Codes are texts, numbers, Booleans or dates."""
    plain = plain_type(kind)
    if not (is_text(plain) or pa.types.is_boolean(plain) or pa.types.is_date(plain) or _number(plain) or _whole(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which cannot be matched with codes",
            where=where,
            do="provide it as text or integers",
        )


def check_number(column: str, kind: pa.DataType, where: str) -> None:
    """Values are numbers of any type, or texts that may be numeric."""
    plain = plain_type(kind)
    if not (is_text(plain) or _number(plain) or _decimal(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which is not numeric",
            where=where,
            do="provide it as integers or floating-point numbers",
        )


def check_id(column: str, kind: pa.DataType, where: str) -> None:
    """Identifiers are texts, integers, Booleans or dates. Floats are refused because large integers become equal, and
    decimals because one number can be written in several ways."""
    plain = plain_type(kind)
    decimals = isinstance(plain, DecimalText) or (pa.types.is_decimal(plain) and not _whole(plain))
    if pa.types.is_floating(plain) or decimals:
        raise SourceError(
            f"column {column!r} is used as an identifier, and is of type {kind}, which can merge two identifiers or "
            "write one in several ways",
            where=where,
            do="provide it as text or as 64-bit integers (pandas: read it as str, or astype('Int64'); SAS: "
            "put(id, 20.); Stata: tostring; SQL: CAST(id AS VARCHAR))",
        )
    check_code(column, kind, where)


def _whole(kind: pa.DataType) -> bool:
    """Decimals without digits after the decimal point: each is written in one way."""
    return bool(pa.types.is_decimal(kind) and kind.scale == 0)


def _decimal(kind: pa.DataType) -> bool:
    """Decimals that are compared exactly."""
    if not pa.types.is_decimal(kind):
        return isinstance(kind, DecimalText)
    return bool(kind.scale <= MOST_SCALE and kind.precision - min(kind.scale, 0) <= MOST_DIGITS)


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
