"""Spans partition a table; their rows and fingerprints do not depend on how rows are split into batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engine.duckdb import DuckDBEngine, duckdb_engine
from discreet.engine.spans import CELL, Ascending, Fingerprint, FingerprintKernel, Span, Spans, cells_of, fingerprints
from discreet.errors import EngineError
from discreet.noise.key import Secret
from discreet.noise.stream import Stream
from support.engines import read
from support.hypothesis_profile import examples

INT64 = st.integers(-(2**63), 2**63 - 1)
Rows = list[tuple[int, int]]
rows = st.lists(st.tuples(st.integers(0, 30), INT64), max_size=40).map(lambda r: sorted(r, key=lambda row: row[0]))
cuts = st.lists(st.integers(0, 40), max_size=8)
engine_settings = examples(25)


def batch(content: Rows, names: tuple[str, str] = (CELL, "n")) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in content], pa.int64()) for i in range(2)]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def split(content: Rows, at: list[int]) -> list[pa.RecordBatch]:
    """The rows in batches that end at these places; some are empty."""
    borders = [0, *sorted(min(place, len(content)) for place in at), len(content)]
    whole = batch(content)
    return [whole.slice(a, b - a) for a, b in pairwise(borders)]


def joined(batches: Any) -> Rows:
    return [tuple(row.values()) for actual in batches for row in actual.to_pylist()]


# --- spans ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 500), st.integers(1, 600))
def test_every_cell_is_in_exactly_one_span(cells: int, size: int) -> None:
    spans = Spans(cells, size)
    actual = list(spans)
    assert [cell for span in actual for cell in range(span.first, span.end)] == list(range(cells))
    assert [span.number for span in actual] == list(range(len(spans)))
    assert all(span.cells == size for span in actual[:-1])
    assert actual[-1].cells <= size
    assert actual[-1].end == cells
    assert all(span.cells > 0 for span in actual) or (cells == 0 and len(actual) == 1)


@given(st.integers(1, 2**62), st.integers(1, 2**62))
def test_spans_of_a_huge_domain_are_counted_not_listed(cells: int, size: int) -> None:
    spans = Spans(cells, size)
    assert (len(spans) - 1) * size < cells <= len(spans) * size
    assert spans[0].first == 0
    assert spans[len(spans) - 1].end == cells
    middle = spans[len(spans) // 2]
    assert middle.first == middle.number * size


def test_a_table_without_cells_is_one_empty_span() -> None:
    assert list(Spans(0, 10)) == [Span(0, 0, 0)]
    assert Spans(0, 10)[0].end == 0


def test_a_span_that_does_not_exist_is_refused() -> None:
    for cells, number in ((10, 4), (0, 1), (10, -5)):
        with pytest.raises(IndexError):
            Spans(cells, 3)[number]


# --- batches cut at borders -----------------------------------------------------------------------------------------


@given(rows, cuts, st.lists(st.integers(0, 35), max_size=6).map(sorted))
def test_any_split_into_batches_is_cut_the_same(content: Rows, at: list[int], borders: list[int]) -> None:
    source = Ascending(iter(split(content, at)))
    before = 0
    for end in [*borders, 31]:
        assert joined(source.until(end)) == [row for row in content if before <= row[0] < end]
        before = max(before, end)
    assert joined(source.until(1000)) == []


@given(rows, cuts, st.integers(1, 8))
def test_no_batch_is_empty_and_none_crosses_a_border(content: Rows, at: list[int], size: int) -> None:
    source = Ascending(iter(split(content, at)))
    for span in Spans(31, size):
        for actual in source.until(span.end):
            assert actual.num_rows
            assert span.first <= cells_of(actual)[0] <= cells_of(actual)[-1] < span.end


def test_rows_are_read_only_as_far_as_needed() -> None:
    """At most one batch beyond the limit: memory is bounded by the batch."""
    read: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for cell in range(10):
            read.append(cell)
            yield batch([(cell, 0)])

    ascending = Ascending(source())
    assert joined(ascending.until(3)) == [(0, 0), (1, 0), (2, 0)]
    assert read == [0, 1, 2, 3]
    assert joined(ascending.until(3)) == []
    assert read == [0, 1, 2, 3]


# --- fingerprints ---------------------------------------------------------------------------------------------------


def mark(*batches: pa.RecordBatch) -> bytes:
    actual = Fingerprint()
    for one in batches:
        actual.update(one)
    return actual.digest()


@given(rows, cuts)
def test_a_fingerprint_does_not_depend_on_the_batches(content: Rows, at: list[int]) -> None:
    parts = split(content, at)
    assert mark(*parts) == mark(batch(content))
    watched = Fingerprint()
    assert joined(watched.watch(iter(parts))) == content
    assert watched.digest() == mark(batch(content))


def test_no_rows_are_no_rows_in_no_batch_or_many() -> None:
    assert mark() == mark(batch([])) == mark(batch([]), batch([]))
    assert mark(batch([]), batch([(1, 2)])) == mark(batch([(1, 2)])) != mark()


@given(rows.filter(bool), st.data())
def test_a_fingerprint_sees_every_value(content: Rows, data: st.DataObject) -> None:
    row, column = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 1))
    value = data.draw(INT64.filter(lambda v: v != content[row][column]))
    changed = list(content)
    changed[row] = (value, content[row][1]) if column == 0 else (content[row][0], value)
    assert mark(batch(changed)) != mark(batch(content))


@given(rows, rows)
def test_only_equal_rows_have_equal_fingerprints(one: Rows, two: Rows) -> None:
    assert (mark(batch(one)) == mark(batch(two))) == (one == two)


@given(rows.filter(bool))
def test_a_fingerprint_sees_names_columns_and_order(content: Rows) -> None:
    whole = batch(content)
    others = [
        batch(content, (CELL, "m")),
        batch(content, ("cel", "ln")),
        batch(content, ("n", CELL)),
        whole.select([CELL]),
        whole.select(["n"]),
        whole.select(["n", CELL]),
        pa.RecordBatch.from_arrays([*whole.columns, whole.column("n")], names=[CELL, "n", "o"]),
        whole.slice(1),
        pa.RecordBatch.from_arrays([pa.concat_arrays([c, c]) for c in whole.columns], names=[CELL, "n"]),
    ]
    assert mark(whole) not in [mark(other) for other in others]


@given(st.lists(st.floats(), min_size=1, max_size=10), cuts)
def test_real_numbers_have_fingerprints_bit_by_bit(values: list[float], at: list[int]) -> None:
    whole = pa.RecordBatch.from_arrays([pa.array(values, pa.float64())], names=["x"])
    borders = [0, *sorted(min(place, len(values)) for place in at), len(values)]
    assert mark(*(whole.slice(a, b - a) for a, b in pairwise(borders))) == mark(whole)
    other = np.array(values)
    other.view(np.int64)[-1] ^= 1
    assert mark(pa.RecordBatch.from_arrays([pa.array(other)], names=["x"])) != mark(whole)


@pytest.mark.parametrize(
    "column",
    [pa.array(["a"]), pa.array([None], pa.int64()), pa.array([1, None]), pa.array([True]), pa.array([b"x"])],
    ids=str,
)
def test_only_numbers_in_every_row_have_a_fingerprint(column: pa.Array) -> None:
    """The bytes of a null are undefined."""
    with pytest.raises(EngineError, match="integers or floating-point numbers without nulls"):
        mark(pa.RecordBatch.from_arrays([column], names=["x"]))


# --- through an engine ----------------------------------------------------------------------------------------------


def on(engine: DuckDBEngine, content: Rows) -> Any:
    return engine.store(read(engine, pa.Table.from_batches([batch(content)]), Path(), [CELL, "n"]))


@given(rows, st.integers(1, 40), st.randoms(use_true_random=False))
@engine_settings
def test_an_engine_takes_the_fingerprint_of_every_span(content: Rows, size: int, order: Any) -> None:
    shuffled = list(content)
    order.shuffle(shuffled)
    spans = Spans(31, size)
    expected = [mark(batch(sorted(r for r in content if span.first <= r[0] < span.end))) for span in spans]
    with duckdb_engine() as engine:
        table = on(engine, shuffled)
        assert fingerprints(engine, table, spans) == expected
        assert fingerprints(engine, table, spans) == expected  # from memory


@pytest.mark.parametrize("many", [7, 200_000])
def test_a_table_of_many_batches_has_the_same_fingerprints(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr("discreet.engine.duckdb.BATCH_ROWS", 2048)
    content = [(i, i * i % 1009) for i in range(many)]
    spans = Spans(many, many // 3)
    with duckdb_engine() as engine:
        table = on(engine, content)
        for _ in range(2):
            assert fingerprints(engine, table, spans) == [mark(batch(content[s.first : s.end])) for s in spans]


def test_a_table_without_rows_has_one_fingerprint_a_span() -> None:
    with duckdb_engine() as engine:
        assert fingerprints(engine, on(engine, []), Spans(9, 2)) == [mark()] * 5
        assert fingerprints(engine, on(engine, []), Spans(0, 2)) == [mark()]


def test_the_kernel_that_takes_fingerprints_can_be_sent_to_a_worker() -> None:
    kernel = pickle.loads(pickle.dumps(FingerprintKernel()))
    (actual,) = kernel(Span(3, 0, 5), iter([batch([(1, 2)])]), None)
    assert actual.schema == kernel.schema
    assert actual.to_pylist() == [{"span": 3, "fingerprint": mark(batch([(1, 2)]))}]


@dataclass(frozen=True)
class KernelInputs:
    """Reports what a kernel is given: its span, the rows it reads, and the first word of its noise."""

    looks: int
    schema = pa.schema([("span", pa.int64()), ("cells", pa.string()), ("word", pa.uint64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        seen = [cell for actual, _ in zip(rows, range(self.looks), strict=False) for cell in cells_of(actual)]
        word = None if stream is None else stream.block(span.first)[0]
        yield pa.RecordBatch.from_arrays([[span.number], [str(list(map(int, seen)))], [word]], schema=self.schema)


def test_a_kernel_sees_each_span_once_with_its_rows_and_noise() -> None:
    content: Rows = [(0, 1), (1, 1), (1, 2), (6, 1), (8, 5)]
    secret, done = Secret(bytes(range(32))), []
    with duckdb_engine() as engine:
        table = on(engine, content[::-1])
        told = engine.gather(table, Spans(9, 2), KernelInputs(9), secret, lambda *step: done.append(step))
        stream = Stream.from_secret(secret.expose())
        expected = [
            (number, cells, stream.block(2 * number)[0])
            for number, cells in enumerate(["[0, 1, 1]", "[]", "[]", "[6]", "[8]"])
        ]
        assert joined(told) == expected
        assert done == [(i, 5) for i in range(1, 6)]
        kept = engine.map(table, Spans(9, 2), KernelInputs(9), secret)
        assert joined(engine.batches(kept.order_by("span"))) == expected
        without = engine.map(table, Spans(9, 2), KernelInputs(9))
        assert [row[2] for row in joined(engine.batches(without))] == [None] * 5


def test_what_a_kernel_does_not_look_at_is_not_the_next_ones() -> None:
    content: Rows = [(i, 0) for i in range(10)]
    with duckdb_engine() as engine:
        told = joined(engine.gather(on(engine, content), Spans(10, 4), KernelInputs(0)))
        assert told == [(0, "[]", None), (1, "[]", None), (2, "[]", None)]
        told = joined(engine.gather(on(engine, content), Spans(10, 4), KernelInputs(1)))
        assert [row[1] for row in told] == ["[0, 1, 2, 3]", "[4, 5, 6, 7]", "[8, 9]"]
