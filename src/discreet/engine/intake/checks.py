"""What a column may be, by its type alone: a source is refused whatever it holds, or read whatever it holds."""

from __future__ import annotations

import pyarrow as pa

from discreet.engine.intake.normalise import MOST_DIGITS, MOST_SCALE, is_text, plain_type
from discreet.engine.kinds import Decimals
from discreet.errors import SourceError


def check_code(column: str, kind: pa.DataType, where: str) -> None:
    """Codes are texts, numbers, truths or dates."""
    plain = plain_type(kind)
    if not (is_text(plain) or pa.types.is_boolean(plain) or pa.types.is_date(plain) or _number(plain) or _whole(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which cannot be matched with codes",
            where=where,
            do="provide it as text or whole numbers",
        )


def check_number(column: str, kind: pa.DataType, where: str) -> None:
    """Values are numbers of any kind, or texts that may be some."""
    plain = plain_type(kind)
    if not (is_text(plain) or _number(plain) or _decimal(plain)):
        raise SourceError(
            f"column {column!r} is of type {kind}, which is no number",
            where=where,
            do="provide it as whole or real numbers",
        )


def check_id(column: str, kind: pa.DataType, where: str) -> None:
    """Identifiers are texts, whole numbers, truths or dates. Real numbers are none: they cannot tell large ones apart;
    nor are decimals, which can write one number in several ways."""
    plain = plain_type(kind)
    decimals = isinstance(plain, Decimals) or (pa.types.is_decimal(plain) and not _whole(plain))
    if pa.types.is_floating(plain) or decimals:
        raise SourceError(
            f"column {column!r} says whom a record is about, and is of type {kind}, which can merge two ids or write "
            "one in several ways",
            where=where,
            do="provide it as text or as whole numbers of 64 bits (pandas: read it as str, or astype('Int64'); SAS: "
            "put(id, 20.); Stata: tostring; SQL: CAST(id AS VARCHAR))",
        )
    check_code(column, kind, where)


def _whole(kind: pa.DataType) -> bool:
    """Decimals without digits behind the point: each is written in one way."""
    return bool(pa.types.is_decimal(kind) and kind.scale == 0)


def _decimal(kind: pa.DataType) -> bool:
    """Decimals that are compared exactly."""
    if not pa.types.is_decimal(kind):
        return isinstance(kind, Decimals)
    return bool(kind.scale <= MOST_SCALE and kind.precision - min(kind.scale, 0) <= MOST_DIGITS)


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
