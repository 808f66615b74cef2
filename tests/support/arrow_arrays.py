"""Arrow arrays as sources deliver them: equal values in every encoding, and values that Python would not produce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa


def forms(values: pa.Array) -> Iterator[pa.Array]:
    """As it is, behind an offset, as a dictionary, as one that has none and unused values among its own, and cut."""
    kind = values.type
    yield values
    twice = pa.concat_arrays([values, pa.nulls(3, kind), values])
    yield twice.slice(len(values) + 3)
    yield twice.slice(0, len(values))
    if pa.types.is_null(kind):
        return
    places = pa.array(range(len(values)), pa.int32())
    yield pa.DictionaryArray.from_arrays(places, values)
    some = pa.array([None if missing else i for i, missing in enumerate(values.is_null().to_pylist())], pa.int64())
    yield pa.DictionaryArray.from_arrays(some, twice)
    shifted = pa.concat_arrays([pa.nulls(2, pa.int64()), some, pa.nulls(1, pa.int64())])
    yield pa.DictionaryArray.from_arrays(shifted, twice).slice(2, len(values))


def loose(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """Text that need not be UTF-8."""
    kind = kind or pa.string()
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}[kind]
    raw = pa.array(values, binary)
    return pa.Array.from_buffers(kind, len(raw), raw.buffers(), raw.null_count)


def decimals(unscaled: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Decimals by their digits, whatever the scale."""
    content = b"".join(value.to_bytes(kind.byte_width, "little", signed=True) for value in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(content)])


def days(numbers: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Dates by their days from 1970, also those that no calendar of Python has."""
    if pa.types.is_date32(kind):
        return pa.array(numbers, pa.int32()).view(kind)
    return pa.array([number * 86_400_000 for number in numbers], pa.int64()).view(kind)
