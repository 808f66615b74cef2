"""A record's content as one text, and its place in a keyed order: the same on every engine, for Arrow writes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.noise.prf import siphash_text


def priorities(key: bytes, columns: Sequence[pa.Array]) -> pa.Array:
    """SipHash-2-4 of each row's content, as int64."""
    return pa.array(siphash_text(key, contents(columns)).view(np.int64))


def contents(columns: Sequence[pa.Array]) -> pa.Array:
    """Texts that different rows do not share: every value length-prefixed, a mark of its own for a missing one."""
    return pc.binary_join_element_wise(*(_content(column) for column in columns), pa.scalar("", pa.large_string()))


def _content(column: pa.Array) -> pa.Array:
    text = _text(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    sizes = pc.cast(pc.binary_length(text), pa.large_string())
    return pc.fill_null(pc.binary_join_element_wise(sizes, text, pa.scalar(":", pa.large_string())), "-")


def _text(column: pa.Array) -> pa.Array:
    """Engines differ in the width of numbers and in how they print them; 7, 7.0 and a 64-bit 7 are one content."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _text(column.dictionary_decode())
    if pa.types.is_floating(kind):
        column = pc.add(pc.cast(column, pa.float64()), 0.0)  # −0 is 0
        whole = pc.and_(pc.less(pc.abs(column), 2.0**53), pc.equal(pc.trunc(column), column))
        number = pc.cast(pc.if_else(whole, column, 0.0), pa.int64())
        return pc.if_else(whole, pc.cast(number, pa.large_string()), pc.cast(column, pa.large_string()))
    if pa.types.is_decimal(kind):
        column = pc.cast(column, pa.decimal128(38, 0))
    return pc.cast(column, pa.large_string())
