"""Rows as texts for the keyed order: an injective encoding that does not depend on an engine's width of numbers."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet.engine.duckdb import duckdb_engine
from discreet.noise.key import Secret
from discreet.noise.prf import priorities, row_texts, siphash_text
from support.engines import read

KEY = bytes(range(16))
# Lengths, separators and marks of the encoding itself, and what text can be.
hostile = st.one_of(
    st.none(),
    st.text("0123456789:-", max_size=6),
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.sampled_from(["", "-", ":", "0:", "1:-", "1:", "--", "\0", " ", "ü", "u\u0308", "nan", "None", "null", "10:"]),
)
tables = st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[hostile] * n), min_size=1, max_size=12))
WIDTHS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def text(*columns: pa.Array) -> list[str]:
    actual: list[str] = row_texts(columns).to_pylist()
    return actual


def of(values: list[Any], kind: pa.DataType) -> list[str]:
    return text(pa.array(values, kind))


@given(tables)
@example([(None, "-"), ("-", None), ("", "-"), (None, None), ("-", "-"), ("", ""), ("--", ""), (None, "")])
@example([("1:-", ""), ("-", "0:"), ("1", "11"), ("11", "1"), ("1:1", "1"), ("1", "1:1"), ("11:1", "")])
def test_different_rows_never_share_a_text(rows: list[tuple[str | None, ...]]) -> None:
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    actual = text(*columns)
    assert None not in actual
    assert len(set(actual)) == len(set(rows))
    assert len(dict(zip(actual, rows, strict=True))) == len(set(rows))


def test_missing_is_no_dash_and_nothing_is_no_missing() -> None:
    actual = of([None, "-", "", "0:", "1:-"], pa.string())
    assert actual == ["-", "1:-", "0:", "2:0:", "3:1:-"]


@given(st.lists(hostile, min_size=1, max_size=6))
def test_the_encoding_of_a_text_does_not_matter(values: list[str | None]) -> None:
    plain = of(values, pa.string())
    encoded = pa.array(values, pa.string()).dictionary_encode()
    assert of(values, pa.large_string()) == text(encoded) == plain
    assert text(encoded.cast(pa.dictionary(pa.int8(), pa.large_string()))) == plain
    halves = pa.chunked_array([pa.array(values[:1], pa.string()), pa.array(values[1:], pa.string())])
    assert text(halves) == text(halves.dictionary_encode()) == plain
    shifted = pa.array(["before", *values], pa.string()).slice(1)
    assert text(shifted) == text(shifted.dictionary_encode()) == plain


@given(st.lists(st.one_of(st.none(), st.integers(-128, 127)), min_size=1, max_size=8))
def test_a_whole_number_is_one_content_in_every_width(values: list[int | None]) -> None:
    plain = of([None if v is None else str(v) for v in values], pa.string())
    for kind in (*WIDTHS, pa.float32(), pa.float64(), pa.decimal128(5, 0), pa.decimal128(38, 2), pa.decimal256(50, 0)):
        assert of(values, kind) == plain, kind
    positive = [None if v is None else abs(v) for v in values]
    for kind in (*UNSIGNED, pa.int64()):
        assert of(positive, kind) == of([None if v is None else str(v) for v in positive], pa.string()), kind
    coded = pa.array(values, pa.int32()).dictionary_encode()
    assert text(coded) == plain


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=8))
@example([0, -1, 2**53 - 1, 1 - 2**53, 10**15, 10**7, -(10**7)])
def test_a_double_is_the_whole_number_it_holds(values: list[int]) -> None:
    plain = of([str(v) for v in values], pa.string())
    assert of(values, pa.int64()) == of([float(v) for v in values], pa.float64()) == plain
    assert of([Decimal(v) for v in values], pa.decimal128(20, 0)) == plain


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1, max_size=12))
@example([2.0**53, 2.0**53 + 2, 1e300, -1e300, math.inf, -math.inf, 5e-324, 0.1, 0.1 + 2**-55])
def test_different_doubles_have_different_texts(values: list[float | None]) -> None:
    """Equal doubles have equal texts: −0 is 0."""
    actual = of(values, pa.float64())
    assert len(set(actual)) == len(set(values))
    assert of([-0.0], pa.float64()) == of([0.0], pa.float32()) == of([0], pa.int8()) == ["1:0"]


def test_numbers_that_are_no_numbers_stop_nothing() -> None:
    actual = of([math.nan, math.inf, -math.inf, None, 0.0], pa.float64())
    assert len(set(actual)) == 5
    assert actual == of([math.nan, math.inf, -math.inf, None, 0.0], pa.float32())


def test_the_largest_whole_numbers_are_told_apart() -> None:
    for kind, values in ((pa.int64(), [2**63 - 1, 2**63 - 2, -(2**63)]), (pa.uint64(), [2**64 - 1, 2**64 - 2])):
        assert of(values, kind) == of([str(v) for v in values], pa.string())


def test_booleans_dates_and_columns_without_values() -> None:
    assert of([True, False, None], pa.bool_()) == ["4:true", "5:false", "-"]
    day = dt.date(2026, 2, 28)
    assert of([day, None], pa.date32()) == of([day, None], pa.date64()) == ["10:2026-02-28", "-"]
    assert text(pa.nulls(2)) == of([None, None], pa.string()) == ["-", "-"]
    assert text(pa.array([], pa.string()), pa.array([], pa.int64())) == []


@given(tables, st.binary(min_size=16, max_size=16))
def test_priorities_are_the_keyed_hash_of_row_texts(rows: list[tuple[str | None, ...]], key: bytes) -> None:
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    actual = priorities(key, columns)
    assert actual.type == pa.int64()
    assert actual.null_count == 0
    assert actual.to_numpy().view(np.uint64).tolist() == siphash_text(key, row_texts(columns)).tolist()
    assert len(set(actual.to_pylist())) == len(set(rows))


@pytest.mark.parametrize("n", [1, 5000])
def test_an_engine_gives_rows_the_priorities_that_arrow_does(n: int) -> None:
    """In every type that a code column may have, with missing values."""
    columns = {
        "text": pa.array([None if i % 7 == 0 else f"{i % 13}:ü" for i in range(n)], pa.string()),
        "code": pa.array([None if i % 5 == 0 else str(i % 3) for i in range(n)]).dictionary_encode(),
        "small": pa.array([None if i % 4 == 0 else i % 100 for i in range(n)], pa.int8()),
        "large": pa.array([2**63 - 1 - i for i in range(n)], pa.int64()),
        "single": pa.array([None if i % 6 == 0 else i / 4 for i in range(n)], pa.float32()),
        "double": pa.array([None if i % 9 == 0 else i / 3 for i in range(n)], pa.float64()),
        "truth": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in range(n)], pa.bool_()),
        "day": pa.array([None if i % 8 == 0 else dt.date(2000, 1, 1) + dt.timedelta(i) for i in range(n)]),
    }
    table = pa.table(columns)
    expected = dict(zip(range(n), priorities(KEY, list(columns.values())).to_pylist(), strict=True))
    with duckdb_engine() as engine:
        source = read(engine, table.append_column("i", pa.array(range(n))), Path(), [*columns, "i"])
        hashed = engine.with_priorities(engine.store(source), list(columns), "p", Secret(KEY))
        assert hashed.columns[-1] == "p"
        actual = [batch.select(["i", "p"]).to_pydict() for batch in engine.batches(engine.store(hashed))]
    assert {i: p for part in actual for i, p in zip(part["i"], part["p"], strict=True)} == expected
