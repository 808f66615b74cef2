"""Occupied cells in ranges: the same whichever batches they come in, and every cell once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from discreet.engine.spans import Span, dense, merge, ranges

counts = st.dictionaries(st.integers(0, 40), st.integers(-(2**40), 2**40), max_size=20)


def batches(content: dict[int, int], size: int) -> list[pa.RecordBatch]:
    rows = sorted(content.items())
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [
        pa.RecordBatch.from_arrays([list(c) for c in zip(*part, strict=True)], names=["cell", "n"]) for part in parts
    ]


@given(counts, st.integers(0, 40), st.integers(0, 41), st.integers(1, 50), st.integers(1, 7))
def test_ranges_cover_a_span_and_hold_its_rows(
    content: dict[int, int], first: int, n: int, size: int, rows: int
) -> None:
    span = Span(0, first, n)
    mine = {cell: count for cell, count in content.items() if span.first <= cell < span.end}
    actual = list(ranges(span, iter(batches(mine, rows)), size))
    assert [cell for start, many, _, _ in actual for cell in range(start, start + many)] == list(
        range(first, first + n)
    )
    assert all(many == size for _, many, _, _ in actual[:-1])
    seen: dict[int, int] = {}
    for start, many, cells, (values,) in actual:
        assert cells.dtype == values.dtype == np.int64
        assert all(start <= cell < start + many for cell in cells)
        seen |= dict(zip(cells.tolist(), values.tolist(), strict=True))
        full = dense(start, many, cells, values)
        assert full.tolist() == [mine.get(cell, 0) for cell in range(start, start + many)]
    assert seen == mine


@given(counts, counts)
def test_merging_adds_and_leaves_zeros_out(one: dict[int, int], two: dict[int, int]) -> None:
    arrays = [np.array(sorted(d), np.int64) for d in (one, two)]
    values = [np.array([d[c] for c in sorted(d)], np.int64) for d in (one, two)]
    cells, total = merge(arrays[0], values[0], arrays[1], values[1])
    expected = {c: one.get(c, 0) + two.get(c, 0) for c in one.keys() | two.keys()}
    assert list(zip(cells.tolist(), total.tolist(), strict=True)) == sorted((c, n) for c, n in expected.items() if n)
