"""How later methods will use an engine, each in small: histograms, two-level grouping, groups of cells with a second
pass, sufficient statistics, and the raw rows of a cell. Nothing here knows which engine it runs on, and each result is
compared with one that plain Python makes of the same records and the same stream."""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ibis import _

from discreet.engine import Engine
from discreet.engine.spans import Span, Spans, dense
from discreet.noise.key import Secret
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.stream import Stream
from discreet.spec import FileSource
from support.engines import read

SECRET = Secret(bytes(range(32)))
LAW = DiscreteLaplace(Fraction(1, 2))
BINS = 21
GROUPS = 30  # industries × areas, of which some have no record
AREAS = 5
INDUSTRIES = GROUPS // AREAS


@pytest.fixture(autouse=True, scope="module")
def _kernels_travel() -> Iterator[None]:
    """A worker cannot import a test: kernels of this module are sent as code."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def records(rows: int = 2_000) -> pa.Table:
    """Jobs with a group, an establishment, and two integers."""
    i = np.arange(rows)
    return pa.table(
        {
            "group": (i * i * 7 + i * 3) % (GROUPS - 4),
            "bin": i * 13 % BINS,
            "establishment": [f"E{n * n % 11}" for n in i.tolist()],
            "x": i * 31 % 1_009 - 300,
            "y": (i * i) % 2_003 - 700,
        }
    )


@pytest.fixture
def jobs(engine: Engine, tmp_path: Path) -> ibis.Table:
    table = records()
    (tmp_path / "jobs").mkdir()
    for part in range(3):
        pq.write_table(table.take(np.arange(part, table.num_rows, 3)), tmp_path / "jobs" / f"{part}.parquet")
    return read(engine, FileSource(path="jobs"), tmp_path, table.column_names)


def noise(cells: int) -> np.ndarray[Any, Any]:
    """The noise of every cell at once."""
    values = np.zeros(cells, np.int64)
    LAW.add_to(values, Stream.from_secret(SECRET.expose()), 0)
    return values


def together(rows: Iterator[pa.RecordBatch], *columns: str) -> list[np.ndarray[Any, Any]]:
    """Columns of all rows of a span."""
    batches = list(rows)
    if not batches:
        return [np.empty(0, np.int64) for _ in columns]
    return [pa.Table.from_batches(batches)[column].to_numpy() for column in columns]


def lines(batches: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


# --- (a) histograms -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Percentiles:
    """Noise on every bin, then the bins in which the quartiles of a group lie."""

    bins: int
    schema = pa.schema([("group", pa.int64()), *((f"p{p}", pa.int64()) for p in (25, 50, 75))])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        cells, counts = together(rows, "cell", "n")
        values = dense(span.first, span.cells, cells, counts)
        LAW.add_to(values, stream, span.first)
        for group, histogram in enumerate(values.reshape(-1, self.bins), span.first // self.bins):
            actual = [[group], *([p] for p in quartiles(histogram))]
            yield pa.RecordBatch.from_arrays([pa.array(f, pa.int64()) for f in actual], schema=self.schema)


def quartiles(histogram: np.ndarray[Any, Any]) -> list[int]:
    sums = np.cumsum(np.maximum(histogram, 0))
    return [int(np.searchsorted(sums * 4, sums[-1] * q)) for q in (1, 2, 3)]


def test_histograms(engine: Engine, jobs: ibis.Table) -> None:
    cells = engine.store(jobs.group_by(cell=_.group * BINS + _.bin).aggregate(n=_.count()))
    spans = Spans(GROUPS * BINS, 4 * BINS)  # whole groups; the last span is shorter
    actual = lines(engine.gather(cells, spans, Percentiles(BINS), SECRET))
    exact = Counter((r["group"], r["bin"]) for r in records().to_pylist())
    histograms = noise(GROUPS * BINS).reshape(GROUPS, BINS)
    histograms += np.array([[exact[g, b] for b in range(BINS)] for g in range(GROUPS)])
    assert actual == [(g, *quartiles(histograms[g])) for g in range(GROUPS)]


# --- (b) two-level grouping -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dominated:
    """A noisy count, with more noise where one establishment is most of the cell."""

    schema = pa.schema([("cell", pa.int64()), ("value", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        cells, counts, largest = together(rows, "cell", "n", "largest")
        drawn = np.zeros(span.cells, np.int64)
        LAW.add_to(drawn, stream, span.first)
        n, most = (dense(span.first, span.cells, cells, column) for column in (counts, largest))
        values = n + drawn * np.where(2 * most > n, 3, 1)
        numbers = np.arange(span.first, span.end)
        yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(values)], schema=self.schema)


def test_two_level_grouping(engine: Engine, jobs: ibis.Table) -> None:
    sizes = jobs.group_by(cell=_.group, establishment=_.establishment).aggregate(m=_.count())
    cells = sizes.group_by("cell").aggregate(largest=_.m.max(), n=_.m.sum())  # one pass, not stored
    actual = lines(engine.gather(cells, Spans(GROUPS, 7), Dominated(), SECRET))
    exact = Counter((r["group"], r["establishment"]) for r in records().to_pylist())
    each = [[n for (group, _establishment), n in exact.items() if group == g] for g in range(GROUPS)]
    drawn = noise(GROUPS).tolist()
    factor = [3 if 2 * max(e, default=0) > sum(e) else 1 for e in each]
    assert actual == [(g, sum(each[g]) + drawn[g] * factor[g]) for g in range(GROUPS)]


# --- (c) groups of cells, twice -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noisy:
    """The first pass: every cell with its noise, stored on the confidential side."""

    areas: int
    schema = pa.schema([("cell", pa.int64()), ("industry", pa.int32()), ("noisy", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        values = dense(span.first, span.cells, *together(rows, "cell", "n"))
        LAW.add_to(values, stream, span.first)
        numbers = np.arange(span.first, span.end)
        industry = pa.array(numbers // self.areas, pa.int32())
        yield pa.RecordBatch.from_arrays([pa.array(numbers), industry, pa.array(values)], schema=self.schema)


@dataclass(frozen=True)
class Corrected:
    """The second pass: the same noise again; no cell below zero, and every industry keeps its noisy total."""

    totals: tuple[int, ...]
    areas: int
    schema = pa.schema([("cell", pa.int64()), ("value", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        values = dense(span.first, span.cells, *together(rows, "cell", "n"))
        LAW.add_to(values, stream, span.first)
        for industry, group in enumerate(values.reshape(-1, self.areas), span.first // self.areas):
            numbers = np.arange(self.areas) + industry * self.areas
            corrected = pa.array(preserved(group, self.totals[industry]))
            yield pa.RecordBatch.from_arrays([pa.array(numbers), corrected], schema=self.schema)


def preserved(group: np.ndarray[Any, Any], total: int) -> np.ndarray[Any, Any]:
    """Not below zero, the difference to the total taken from the largest."""
    out = np.maximum(group, 0)
    out[np.argmax(out)] += total - out.sum()
    return out


def test_second_pass(engine: Engine, jobs: ibis.Table) -> None:
    cells = engine.store(jobs.group_by(cell=_.group).aggregate(n=_.count()))
    spans = Spans(GROUPS, 2 * AREAS)
    noisy = engine.map(cells, spans, Noisy(AREAS), SECRET)
    sums = noisy.group_by("industry").aggregate(total=_.noisy.sum()).order_by("industry")
    totals = [(row["industry"], row["total"]) for batch in engine.batches(sums) for row in batch.to_pylist()]
    actual = lines(engine.gather(cells, spans, Corrected(tuple(t for _i, t in totals), AREAS), SECRET))
    exact = Counter(records()["group"].to_pylist())
    values = (noise(GROUPS) + [exact[g] for g in range(GROUPS)]).reshape(INDUSTRIES, AREAS)
    assert totals == list(enumerate(values.sum(axis=1).tolist()))
    expected = np.concatenate([preserved(group, int(group.sum())) for group in values])
    assert actual == list(enumerate(expected.tolist()))
    assert min(expected.reshape(INDUSTRIES, AREAS).sum(axis=1)) == min(t for _i, t in totals)


# --- (d) sufficient statistics --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slopes:
    """Least squares from exact sums, one row per cell."""

    schema = pa.schema([("cell", pa.int64()), ("n", pa.int64()), ("slope", pa.float64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        cells, *sums = together(rows, "cell", "n", "x", "y", "xx", "xy")
        slopes = [slope(*(int(s) for s in row)) for row in zip(*sums, strict=True)]
        n = pa.array(sums[0], pa.int64())
        yield pa.RecordBatch.from_arrays([pa.array(cells), n, pa.array(slopes, pa.float64())], schema=self.schema)


def slope(n: int, x: int, y: int, xx: int, xy: int) -> float:
    return float(Fraction(n * xy - x * y, n * xx - x * x)) if n * xx != x * x else 0.0


@dataclass(frozen=True)
class Relative:
    """A cell's slope against the steepest of its industry, with noise."""

    schema = pa.schema([("cell", pa.int64()), ("share", pa.float64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        assert stream is not None
        drawn = np.zeros(span.cells, np.int64)
        LAW.add_to(drawn, stream, span.first)
        for batch in rows:
            cells, slopes, steepest = (batch.column(c).to_numpy() for c in ("cell", "slope", "steepest"))
            shares = pa.array(slopes / steepest + drawn[cells - span.first])
            yield pa.RecordBatch.from_arrays([pa.array(cells), shares], schema=self.schema)


def test_sufficient_statistics(engine: Engine, jobs: ibis.Table) -> None:
    sums = jobs.group_by(cell=_.group).aggregate(
        n=_.count(), x=_.x.sum(), y=_.y.sum(), xx=(_.x * _.x).sum(), xy=(_.x * _.y).sum()
    )
    spans = Spans(GROUPS, 4)
    slopes = engine.map(engine.store(sums), spans, Slopes())
    slopes = slopes.mutate(industry=slopes.cell // AREAS)
    steepest = slopes.group_by("industry").aggregate(steepest=_.slope.abs().max())
    joined = engine.store(slopes.inner_join(steepest, "industry").select("cell", "slope", "steepest"))
    actual = lines(engine.gather(joined, spans, Relative(), SECRET))
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for r in records().to_pylist():
        rows[r["group"]].append((r["x"], r["y"]))
    exact = {
        g: slope(len(p), *(sum(f(*q) for q in p) for f in (lambda x, y: x, lambda x, y: y, _xx, _xy)))
        for g, p in rows.items()
    }
    top = {i: max(abs(s) for g, s in exact.items() if g // AREAS == i) for i in {g // AREAS for g in exact}}
    drawn = noise(GROUPS).tolist()
    assert actual == [(g, s / top[g // AREAS] + drawn[g]) for g, s in sorted(exact.items())]


def _xx(x: int, y: int) -> int:
    return x * x


def _xy(x: int, y: int) -> int:
    return x * y


# --- (e) raw rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digests:
    """A digest of all rows of a cell and of their order."""

    schema = pa.schema([("cell", pa.int64()), ("rows", pa.int64()), ("digest", pa.string())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        cells, wages, hours = together(rows, "cell", "wage", "hours")
        for cell in np.unique(cells):
            mine = cells == cell
            line = [[int(cell)], [int(mine.sum())], [digest(wages[mine], hours[mine])]]
            yield pa.RecordBatch.from_arrays(line, schema=self.schema)


def digest(wages: np.ndarray[Any, Any], hours: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(wages.astype("<i8").tobytes() + hours.astype("<f8").tobytes()).hexdigest()


def test_raw_rows(engine: Engine, jobs: ibis.Table) -> None:
    """Several rows per cell, in the order of their values, whichever column comes first."""
    hours = (_.y % 3 == 0).ifelse(_.y / 4, -_.bin / 8)
    table = jobs.select(wage=_.x % 5, hours=hours, cell=_.group)
    actual = lines(engine.gather(table, Spans(GROUPS, 3), Digests()))
    rows: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for r in records().to_pylist():
        x, y = r["x"], r["y"]
        rows[r["group"]].append((int(math.fmod(x, 5)), y / 4 if math.fmod(y, 3) == 0 else -r["bin"] / 8))
    expected = []
    for g, mine in sorted(rows.items()):
        wages, reals = zip(*sorted(mine), strict=True)
        expected.append((g, len(mine), digest(np.array(wages), np.array(reals))))
    assert actual == expected


# --- spans at the edges ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visits:
    """One row per span; reads none of its rows."""

    schema = pa.schema([("number", pa.int64()), ("first", pa.int64()), ("cells", pa.int64())])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        line = [[span.number], [span.first], [span.cells]]
        yield pa.RecordBatch.from_arrays(line, schema=self.schema)


def test_every_span_is_visited_once(engine: Engine, jobs: ibis.Table) -> None:
    cells = engine.store(jobs.group_by(cell=_.group + 10**12).aggregate(n=_.count()))  # in the last span alone
    spans = Spans(10**12 + GROUPS, 10**11)
    seen: list[tuple[int, int]] = []
    actual = lines(engine.gather(cells, spans, Visits(), progress=lambda done, total: seen.append((done, total))))
    assert actual == [(span.number, span.first, span.cells) for span in spans]
    assert seen[-1] == (11, 11)
    assert [done for done, _total in seen] == sorted(done for done, _total in seen)
    nothing = engine.store(cells.filter(_.n < 0))
    assert lines(engine.gather(nothing, Spans(0, 5), Visits())) == [(0, 0, 0)]
