"""Adversarial values, by column type."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import pyarrow as pa

TEXTS: tuple[str | None, ...] = (
    None, "", " ", "7", "07", "007", " 7", "7 ", "+7", "+-7", "7.0", "7.", ".5", ".", "-0", "-0.0", "1e5",
    "1E5", "1e-99",
    "9e99", "1e400", "1_000", "0x10", "nan", "NaN", "inf", "-Infinity", "NULL", "NA", "true", "True",
    "\ufeff7", "7\ufeff",
    "\ufeff", "\x00", "7\x00", "\x007", "a\nb", "7\n", 'a"b', "a,b", "é", "e\u0301", "🦊", "٧", "９", "\u2028", "\x85",
    "\u00a07", "\ufffe", "\x1a", "9" * 40, "9" * 41, "1" * 40 + "." + "1" * 20, "9" * 400, "a" * 300,
    "2026-01-31", "A", "a",
)  # fmt: skip
FEW = (None, "", " 7", "007", "+7", "7.", "1e-99", "9e99", "1e400", "nan", "\ufeff7", "7\x00", "a\nb", "é",
         "🦊", "9" * 41, "a",
       "a")  # fmt: skip
BYTES = (b"\xff", b"\xc0\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"7\xff", b"a\xe9",
         b"\xef\xbf\xbf", b"\xf0\x9f\xa6", b"\x80")  # fmt: skip
FLOATS: tuple[float | None, ...] = (
    None, float("nan"), -float("nan"), 0.0, -0.0, float("inf"), -float("inf"), 5e-324, -5e-324,
    2.2250738585072014e-308,
    1e-3, 0.00099999, 0.1, 0.5, 1.0, 6.999999999999999, 7.0, 7.5, -1.0, -0.5, 9999999.5, 1e7, 2.0**40,
    2.0**53 - 1, 2.0**53,
    2.0**53 + 2, 1e22, 1.7976931348623157e308, float("nan"), float("nan"), 7.0,
)  # fmt: skip
WHOLE = (None, 0, 1, -1, 7, 8, 100, 2**7 - 1, -(2**7), 2**15 - 1, 2**31 - 1, -(2**31), 2**53 - 1, 2**53,
         2**53 + 1, 2**63 - 1,
         -(2**63), 2**64 - 1, 2**41, 2**40)  # fmt: skip
DAYS = (None, 0, 20484, -719_162, -719_163, 2_932_896, 2_932_897, 2**31 - 1, -(2**31), -1)
TRUTHS = (None, True, False, True)
WIDTHS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}


def _whole(kind: pa.DataType) -> list[int | None]:
    low, high = (-(2 ** WIDTHS[kind]), 2 ** WIDTHS[kind]) if kind in WIDTHS else (0, 2 ** UNSIGNED[kind])
    return [v for v in {**dict.fromkeys(WHOLE), high - 1: 0, low: 0} if v is None or low <= v < high]


def _decimals(kind: pa.DataType) -> list[Decimal | None]:
    """The largest, the smallest, those around integers, and around the edges of bins."""
    with localcontext(Context(prec=200)):
        return _exact(kind)


def _exact(kind: pa.DataType) -> list[Decimal | None]:
    step, most = Decimal(1).scaleb(-kind.scale), Decimal(10) ** kind.precision - 1
    values = [Decimal(0), step, -step, most.scaleb(-kind.scale), -most.scaleb(-kind.scale), most * step - step]
    values += [v + d for v in map(Decimal, (1, 7, 8, 2**40, 2**53, -1, 2**63)) for d in (-step, Decimal(0), step)]
    fits = [v for v in values if abs(v.scaleb(kind.scale)) <= most and v.scaleb(kind.scale) % 1 == 0]
    return [None, *dict.fromkeys(fits)]


TEXT_KINDS = (pa.string(), pa.large_string(), pa.string_view())
DECIMALS = (pa.decimal32(9, 2), pa.decimal64(18, 0), pa.decimal64(18, 4), pa.decimal128(5, 2), pa.decimal128(38, 0),
            pa.decimal128(38, 10), pa.decimal128(38, 37), pa.decimal128(10, -3), pa.decimal256(76, 0),
            pa.decimal256(76, 2),
            pa.decimal256(76, 60), pa.decimal256(60, 58))  # fmt: skip
REFUSED = (pa.timestamp("us"), pa.time64("us"), pa.duration("s"), pa.binary(), pa.binary(3), pa.list_(pa.int32()),
           pa.struct([("a", pa.int32())]), pa.decimal256(76, 70),
           pa.decimal256(76, -5))  # fmt: skip


def values_of(kind: pa.DataType, few: bool = False) -> list[Any]:
    """Hostile values of a type; texts also as bytes, dates as days."""
    if pa.types.is_dictionary(kind):
        return values_of(kind.value_type, few)
    if kind in TEXT_KINDS:
        return [*FEW, *BYTES[:6]] if few else [*TEXTS, *BYTES]
    if kind in WIDTHS or kind in UNSIGNED:
        return _whole(kind)
    if pa.types.is_floating(kind):
        return list(FLOATS)
    if pa.types.is_decimal(kind) and kind not in REFUSED:
        return _decimals(kind)
    if pa.types.is_date32(kind):
        return list(DAYS)
    if pa.types.is_date64(kind):
        day = 86_400_000
        return [None, *(d * day for d in DAYS if d is not None), 1, -1, 20484 * day + 5, 2**63 - 1, -(2**63)]
    if pa.types.is_boolean(kind):
        return list(TRUTHS)
    if pa.types.is_null(kind):
        return [None, None, None]
    return [None, *_OF_REFUSED[type(kind)]] if type(kind) in _OF_REFUSED else [None, None]


_OF_REFUSED: dict[type, list[Any]] = {type(pa.timestamp("us")): [0, 2**62], type(pa.list_(pa.int32())): [[1], []]}


def family(kind: pa.DataType) -> str:
    """Types that are read by one rule."""
    families = {
        "dictionary": pa.types.is_dictionary(kind), "refused": kind in REFUSED, "text": kind in TEXT_KINDS,
        "uint64": kind == pa.uint64(), "whole": pa.types.is_integer(kind), "real": pa.types.is_floating(kind),
        "decimal": pa.types.is_decimal(kind), "date": pa.types.is_date(kind),
    }  # fmt: skip
    return next((name for name, fits in families.items() if fits), str(kind))


def column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """An Arrow column of these values, without asking whether texts are UTF-8."""
    if pa.types.is_dictionary(kind):
        # unused entries, a duplicate entry, and one that is missing
        entries = [*{repr(v): v for v in values if v is not None}.values(), None]
        entries += entries[:1]
        place = {repr(v): i for i, v in enumerate(entries)}
        codes = [None if v is None else place[repr(v)] for v in values]
        return pa.DictionaryArray.from_arrays(pa.array(codes, kind.index_type), column(kind.value_type, entries))
    if kind in TEXT_KINDS:
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        if kind == pa.string_view():
            return pa.array(encoded, pa.binary_view()).view(kind)
        return pa.array(encoded, pa.binary() if kind == pa.string() else pa.large_binary()).view(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_date64(kind):
        return pa.array(values, pa.int64()).view(kind)
    if kind == pa.float16():
        import numpy as np

        with np.errstate(over="ignore"):
            return pa.array([None if v is None else np.float16(v) for v in values], kind)
    return pa.array(values, kind)


def dictionaries() -> list[pa.DataType]:
    kinds = [*TEXT_KINDS, pa.int32(), pa.int64(), pa.uint64(), pa.float64(), pa.date32(), pa.bool_(),
    pa.decimal128(38, 0),
             pa.decimal128(38, 10), pa.float32()]  # fmt: skip
    return [pa.dictionary(pa.int32(), kind) for kind in kinds] + [
        pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint8(), pa.int64()), pa.dictionary(pa.int64(),
        pa.string()),
        pa.dictionary(pa.uint64(), pa.float64()),
    ]  # fmt: skip


KINDS: tuple[pa.DataType, ...] = (
    *TEXT_KINDS, *WIDTHS, *UNSIGNED, pa.float16(), pa.float32(), pa.float64(), *DECIMALS, pa.date32(),
    pa.date64(), pa.bool_(),
    pa.null(), *dictionaries(), *REFUSED,
)  # fmt: skip
