"""A keyed pseudo-random order of records: SipHash-2-4 (Aumasson & Bernstein 2012) of each record's values as one text.

The order is the same on every engine, because Arrow produces the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.arrays import Int64s, Words
from discreet.errors import ParameterError
from discreet.noise.jit import compiled


@compiled
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@compiled
def _rounds(
    n: int, v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    for _ in range(n):
        v0 += v1
        v1 = _rotate(v1, 13) ^ v0
        v0 = _rotate(v0, 32)
        v2 += v3
        v3 = _rotate(v3, 16) ^ v2
        v0 += v3
        v3 = _rotate(v3, 21) ^ v0
        v2 += v1
        v1 = _rotate(v1, 17) ^ v2
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@compiled
def _siphash(k0: np.uint64, k1: np.uint64, offsets: Int64s, data: NDArray[np.uint8], out: Words) -> None:
    for i in range(out.shape[0]):
        start, end = offsets[i], offsets[i + 1]
        v0 = k0 ^ np.uint64(0x736F6D6570736575)
        v1 = k1 ^ np.uint64(0x646F72616E646F6D)
        v2 = k0 ^ np.uint64(0x6C7967656E657261)
        v3 = k1 ^ np.uint64(0x7465646279746573)
        while start + 8 <= end:
            m = np.uint64(0)
            for j in range(8):
                m |= np.uint64(data[start + j]) << np.uint64(8 * j)
            v3 ^= m
            v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3)
            v0 ^= m
            start += 8
        m = np.uint64((end - offsets[i]) & 0xFF) << np.uint64(56)
        for j in range(end - start):
            m |= np.uint64(data[start + j]) << np.uint64(8 * j)
        v3 ^= m
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3)
        v0 ^= m
        v2 ^= np.uint64(0xFF)
        v0, v1, v2, v3 = _rounds(4, v0, v1, v2, v3)
        out[i] = v0 ^ v1 ^ v2 ^ v3


def siphash_text(key16: bytes, texts: pa.Array) -> Words:
    """SipHash-2-4 under a 16-byte key of each UTF-8 text (or binary value); no nulls."""
    if len(key16) != 16:
        raise ParameterError("SipHash requires a key of 16 bytes", where="prf key", do="use subkey(…, length=16)")
    kinds = {pa.string(): np.int32, pa.binary(): np.int32, pa.large_string(): np.int64, pa.large_binary(): np.int64}
    if texts.type not in kinds:
        raise ParameterError("SipHash takes texts", where="prf", do="cast the column to string")
    if texts.null_count:
        raise ParameterError("a missing text has no hash", where="prf", do="fill or drop missing values first")
    _, offset_buffer, data_buffer = texts.buffers()
    out = np.empty(len(texts), dtype=np.uint64)
    if not len(texts):
        return out
    offsets = np.frombuffer(offset_buffer, dtype=kinds[texts.type])
    offsets = offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.empty(0, dtype=np.uint8)
    k0, k1 = np.frombuffer(key16, dtype="<u8")
    _siphash(k0, k1, offsets, data, out)
    return out


def priorities(key: bytes, columns: Sequence[pa.Array]) -> pa.Array:
    """SipHash-2-4 of each row's values, as int64."""
    return pa.array(siphash_text(key, row_texts(columns)).view(np.int64))


def row_texts(columns: Sequence[pa.Array]) -> pa.Array:
    """An injective encoding of rows as texts: every value length-prefixed, with a separate mark for a missing one."""
    return pc.binary_join_element_wise(*(_field(column) for column in columns), pa.scalar("", pa.large_string()))


def _field(column: pa.Array) -> pa.Array:
    text = _text(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    sizes = pc.cast(pc.binary_length(text), pa.large_string())
    return pc.fill_null(pc.binary_join_element_wise(sizes, text, pa.scalar(":", pa.large_string())), "-")


def _text(column: pa.Array) -> pa.Array:
    """Values as texts. Engines differ in the width and format of numbers: 7, 7.0 and a 64-bit 7 have the same text."""
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
