"""Kernels: local sensitivities of cells (Steps 0 and 1), χ (Step 2), and the noise (Step 4) of Chetty & Friedman
2019."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa

from discreet.domain import Coarsening, Domain
from discreet.engine.derived_values import ObservedValue
from discreet.engine.spans import CELL, Int64s, Span, dense, ranges
from discreet.errors import GuaranteeError
from discreet.methods.sensitivity.estimates import intervals
from discreet.methods.sensitivity.noise import CUT, EstimateNoise
from discreet.methods.sensitivity.statistics import Floats, Search, Statistic
from discreet.methods.sensitivity.statistics.ranks import by_thresholds
from discreet.noise.stream import Stream

RANGE = 1 << 12  # cells whose observations are in memory at a time
DRAWN = 1 << 17  # cells whose noise is in memory at a time
LARGEST = CUT  # grid steps: estimates are clamped there; larger scaled sensitivities count as infinite
FINE = 2.0**-30  # relative allowance for rounding errors of a computed sensitivity
SHOWN = 6  # significant digits of a standard deviation
DIGITS = 4  # significant digits to which χ is rounded up
CODES = pa.dictionary(pa.int32(), pa.string())
LOCAL = pa.schema(
    [
        (CELL, pa.int64()),
        ("n", pa.int64()),
        ("estimate", pa.int64()),  # in grid steps
        ("error", pa.int64()),
        ("sensitivity", pa.float64()),  # of the statistic, in its own unit
        ("error_sensitivity", pa.float64()),
    ]
)


@dataclass(frozen=True)
class LocalKernel:
    """Estimates and local sensitivities of every occupied cell of a span (Chetty & Friedman 2019, Steps 0 and 1)."""

    statistic: Statistic
    search: Search
    steps: int  # grid steps per unit of measure
    errors: bool
    observed: tuple[ObservedValue, ...]
    thresholds: tuple[tuple[float, ...], ...]  # by variable; empty if it is not a rank
    schema = LOCAL

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, all_cells, raw in ranges(span, rows, RANGE, len(self.thresholds)):
            cells, columns = self._bounded(all_cells, [np.ascontiguousarray(c, np.float64) for c in raw])
            if cells.size:
                yield self._local(cells, columns)

    def _bounded(self, cells: Int64s, raw: list[Floats]) -> tuple[Int64s, list[Floats]]:
        """Applies the declared rules, drops records without a value, and sorts rows by the columns again: clamping and
        ranking create ties between values that were ordered."""
        if not any(self.thresholds) and not any(o.changes(c) for o, c in zip(self.observed, raw, strict=True)):
            return cells, raw
        columns = [value.bounded(column) for value, column in zip(self.observed, raw, strict=True)]
        complete = ~reduce(np.logical_or, (np.isnan(column) for column in columns))
        columns = [by_thresholds(c, t) if t else c for c, t in zip(columns, self.thresholds, strict=True)]
        order = np.lexsort((*reversed(columns), cells))
        order = order[complete[order]]
        return cells[order], [column[order] for column in columns]

    def _local(self, cells: Int64s, columns: list[Floats]) -> pa.RecordBatch:
        first = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1)).astype(np.int64)
        local = self.statistic.local(columns, np.append(first, cells.size), self.search, errors=self.errors)
        nothing = np.zeros(first.size)
        error, moved = (nothing, nothing) if local.error is None else (local.error, local.error_sensitivity)
        arrays = [
            cells[first],
            local.n,
            self._stepped(local.statistic, self.statistic.empty),
            self._stepped(error, 0.0),
            local.sensitivity,
            moved,
        ]
        return pa.RecordBatch.from_arrays([pa.array(a) for a in arrays], schema=self.schema)

    def _stepped(self, values: Floats, otherwise: float) -> Int64s:
        return stepped(np.where(np.isnan(values), otherwise, values), self.steps)


def stepped(values: Floats, steps: int) -> Int64s:
    """Rounded to grid steps, clamped at the largest."""
    return np.clip(np.rint(values * steps), -LARGEST, LARGEST).astype(np.int64)


@dataclass(frozen=True)
class ChiKernel:
    """The largest n^decay·sensitivity among the cells of a span, by group (Chetty & Friedman 2019, Step 2), and the
    number of cells with an infinite one."""

    groups: Coarsening
    decay: float
    least: int  # records that a cell needs to count towards χ
    steps: int
    schema = pa.schema([(name, pa.int64()) for name in ("group", "chi", "chi_error", "infinite")])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, cells, columns in ranges(span, rows, DRAWN, len(LOCAL.names) - 1):
            if cells.size:
                n, _, _, moved, error_moved = columns
                yield self._largest(cells, n, [moved.astype(np.float64), error_moved.astype(np.float64)])

    def _largest(self, cells: Int64s, n: Int64s, moved: list[Floats]) -> pa.RecordBatch:
        groups, place = np.unique(self.groups.parents(cells), return_inverse=True)
        eligible = n >= self.least
        chi, infinite = [], np.zeros(groups.size, np.int64)
        for sensitivity in moved:
            scaled = n.astype(np.float64) ** self.decay * sensitivity * self.steps * (1 + FINE)
            usable = eligible & (scaled <= LARGEST)  # excludes infinities and NaN
            largest = np.zeros(groups.size)
            np.maximum.at(largest, place[usable], scaled[usable])
            np.add.at(infinite, place[eligible & ~usable], 1)
            chi.append(np.ceil(largest).astype(np.int64))
        with_eligible = np.bincount(place[eligible], minlength=groups.size) > 0
        arrays = [groups[with_eligible], *(f[with_eligible] for f in chi), infinite[with_eligible]]
        return pa.RecordBatch.from_arrays([pa.array(a) for a in arrays], schema=self.schema)


def rounded_up(number: int) -> int:
    """Rounded up to a few significant digits: χ is published no more precisely than needed.

    >>> rounded_up(13_016_431), rounded_up(1)
    (13020000, 1)
    """
    unit: int = 10 ** max(len(str(number)) - DIGITS, 0)
    return -(-number // unit) * unit


@dataclass(frozen=True)
class EstimateKernel:
    """Draws the published numbers of a span: counts, estimates and standard errors, with independent noise."""

    table: str
    domain: Domain
    groups: Coarsening
    noise: EstimateNoise
    quantities: tuple[str, ...]
    steps: int
    empty: int  # the estimate of a cell without records, in grid steps
    parameters: int
    chi: Int64s = field(repr=False)  # by group, in grid steps
    chi_error: Int64s = field(repr=False)
    suppress_below: int | None
    suppress_by_true_count: bool
    sizes: Int64s | None = field(repr=False)  # public numbers of records, by cell
    chosen: tuple[tuple[int, tuple[int, ...]], ...]  # positions of attributes in `only`, with the published codes

    @property
    def schema(self) -> pa.Schema:
        whole = ("count", "size")
        kinds = [(name, pa.int64() if name in whole else pa.float64()) for name in self.columns]
        return pa.schema([*((column, CODES) for column in self.domain.columns), *kinds])

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns, without codes."""
        columns = ["estimate", "noise_sd"]
        columns += ["se", "se_sampling", "se_noise_sd", "low95", "high95"] if "error" in self.quantities else []
        columns += ["count"] if "count" in self.quantities else []
        return (*columns, *(["size"] if self.noise.size != "true" else []))

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("estimates are never released without noise", where=f"table {self.table}")
        for first, n, occupied, (counts, estimates, errors) in ranges(span, rows, DRAWN, 3):
            numbers = np.arange(first, first + n, dtype=np.int64)
            true, error = (dense(first, n, occupied, column) for column in (counts, errors))
            estimate = np.full(n, self.empty, np.int64)
            estimate[occupied - first] = estimates
            noisy = self._noisy(numbers, true, estimate, error, stream)
            shown = self._shown(numbers)
            arrays = [*self.domain.code_arrays(numbers), *(noisy[name] for name in self.columns)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            yield batch if shown is None else batch.filter(pa.array(shown))

    def _noisy(
        self, cells: Int64s, true: Int64s, estimate: Int64s, error: Int64s, stream: Stream
    ) -> dict[str, pa.Array]:
        """In the stream, the noise of counts, estimates and errors of cell i has the numbers i, D + i and 2D + i."""
        first, whole = int(cells[0]) if cells.size else 0, self.domain.cells
        count = self.noise.count(true, stream, first)
        size = self._size(cells, true, count)
        group = self.groups.parents(cells)
        # What users know of the scale: all of it, or what follows from the released count.
        seen = size if self.noise.size != "true" else np.maximum(count, 1)
        multiples = self.noise.multiples(self.chi[group], size)
        value = np.clip(estimate + self.noise.draw(multiples, stream, whole + first), -LARGEST, LARGEST) / self.steps
        known = self.noise.multiples(self.chi[group], seen)
        numbers = {"estimate": value, "noise_sd": self.noise.deviation(known) / self.steps}
        if "error" in self.quantities:
            moved = self.noise.multiples(self.chi_error[group], size)
            sampled = np.clip(error + self.noise.draw(moved, stream, 2 * whole + first), -LARGEST, LARGEST) / self.steps
            known = self.noise.multiples(self.chi_error[group], seen)
            numbers["se_noise_sd"] = self.noise.deviation(known) / self.steps
            numbers["se_sampling"] = sampled
            freedom = np.maximum((count if "count" in self.quantities else size) - self.parameters, 1)
            scale, error_scale = (self.noise.scale(numbers[name]) for name in ("noise_sd", "se_noise_sd"))
            around = intervals(value, sampled, scale, error_scale, freedom, self.noise.distribution)
            numbers |= {"low95": around.low, "high95": around.high, "se": around.error}
        suppressed = self._suppressed(true, count)
        arrays = {name: pa.array(self._rounded(name, column), mask=suppressed) for name, column in numbers.items()}
        # Where the released count decides, it is published: it is itself protected.
        count_mask = suppressed if self.suppress_by_true_count else None
        return arrays | {"count": pa.array(count, mask=count_mask), "size": pa.array(size, mask=suppressed)}

    def _rounded(self, name: str, values: Floats) -> Floats:
        """Rounded to the grid, limits outwards; standard deviations rounded up to some digits."""
        if name in ("noise_sd", "se_noise_sd", "se"):
            unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) + 1 - SHOWN)
            return np.ceil(values / unit) * unit
        way = {"low95": np.floor, "high95": np.ceil}.get(name, np.rint)
        rounded: Floats = way(values * self.steps) / self.steps
        return rounded

    def _size(self, cells: Int64s, true: Int64s, count: Int64s) -> Int64s:
        """N in the noise scale of a cell."""
        if self.sizes is not None:
            return self.sizes[cells]
        return np.maximum(true if self.noise.size == "true" else count - self.noise.margin, 1)

    def _suppressed(self, true: Int64s, count: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if self.suppress_below is None:
            return np.zeros(true.size, np.bool_)
        return (true if self.suppress_by_true_count else count) < self.suppress_below

    def _shown(self, cells: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        """Which cells are published; None if all. The others only count towards χ."""
        if not self.chosen:
            return None
        shown = np.ones(cells.size, np.bool_)
        for place, codes in self.chosen:
            shown &= np.isin(cells // self.domain.strides[place] % self.domain.shape[place], codes)
        return shown


@dataclass(frozen=True)
class ScaleKernel:
    """The table of χ, published without noise: no guarantee covers it (Chetty & Friedman 2019)."""

    groups: Domain
    steps: int
    errors: bool

    @property
    def schema(self) -> pa.Schema:
        numbers = ["chi", "chi_error"] if self.errors else ["chi"]
        return pa.schema([*((c, CODES) for c in self.groups.columns), *((name, pa.float64()) for name in numbers)])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, groups, columns in ranges(span, rows, DRAWN, 2):
            published = columns[: len(self.schema) - len(self.groups.columns)]
            numbers = [pa.array(column / self.steps) for column in published]
            yield pa.RecordBatch.from_arrays([*self.groups.code_arrays(groups), *numbers], schema=self.schema)
