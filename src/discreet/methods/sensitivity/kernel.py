"""From a cell's observations to its estimate and sensitivity; from these to the scale of the noise; then the noise."""

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
DRAWN = 1 << 17  # cells whose noise is
LARGEST = CUT  # grid steps: estimates are cut there, and what scales noise beyond it counts as infinite
FINE = 2.0**-30  # what the computed sensitivity may be short of, relatively, for rounding
SHOWN = 6  # digits of a standard deviation
DIGITS = 4  # that the scale of the noise is rounded up to
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
    """Estimates and sensitivities of every occupied cell of a span (004, Steps 0 and 1)."""

    statistic: Statistic
    search: Search
    steps: int  # of the grid, a unit
    errors: bool
    observed: tuple[ObservedValue, ...]
    thresholds: tuple[tuple[float, ...], ...]  # of each variable that is a rank
    schema = LOCAL

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, all_cells, raw in ranges(span, rows, RANGE, len(self.thresholds)):
            cells, columns = self._bounded(all_cells, [np.ascontiguousarray(c, np.float64) for c in raw])
            if cells.size:
                yield self._local(cells, columns)

    def _bounded(self, cells: Int64s, raw: list[Floats]) -> tuple[Int64s, list[Floats]]:
        """Values by their declared rules, records without one dropped, rows in the order of the columns again: where
        values were clamped or ranked there are ties that had an order before."""
        if not any(self.thresholds) and not any(o.changes(c) for o, c in zip(self.observed, raw, strict=True)):
            return cells, raw
        columns = [made.bounded(column) for made, column in zip(self.observed, raw, strict=True)]
        kept = ~reduce(np.logical_or, (np.isnan(column) for column in columns))
        columns = [by_thresholds(c, t) if t else c for c, t in zip(columns, self.thresholds, strict=True)]
        order = np.lexsort((*reversed(columns), cells))
        order = order[kept[order]]
        return cells[order], [column[order] for column in columns]

    def _local(self, cells: Int64s, columns: list[Floats]) -> pa.RecordBatch:
        first = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1)).astype(np.int64)
        found = self.statistic.local(columns, np.append(first, cells.size), self.search, errors=self.errors)
        nothing = np.zeros(first.size)
        error, moved = (nothing, nothing) if found.error is None else (found.error, found.error_sensitivity)
        arrays = [
            cells[first],
            found.n,
            self._stepped(found.statistic, self.statistic.empty),
            self._stepped(error, 0.0),
            found.sensitivity,
            moved,
        ]
        return pa.RecordBatch.from_arrays([pa.array(a) for a in arrays], schema=self.schema)

    def _stepped(self, values: Floats, otherwise: float) -> Int64s:
        return stepped(np.where(np.isnan(values), otherwise, values), self.steps)


def stepped(values: Floats, steps: int) -> Int64s:
    """To whole grid steps, cut at the largest."""
    return np.clip(np.rint(values * steps), -LARGEST, LARGEST).astype(np.int64)


@dataclass(frozen=True)
class ChiKernel:
    """The largest n^decay·sensitivity among a span's cells, by group (004, Step 2); and how many have none."""

    groups: Coarsening
    decay: float
    least: int  # records that a cell needs to have a say
    steps: int
    schema = pa.schema([(name, pa.int64()) for name in ("group", "chi", "chi_error", "infinite")])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, cells, columns in ranges(span, rows, DRAWN, len(LOCAL.names) - 1):
            if cells.size:
                n, _, _, moved, error_moved = columns
                yield self._largest(cells, n, [moved.astype(np.float64), error_moved.astype(np.float64)])

    def _largest(self, cells: Int64s, n: Int64s, moved: list[Floats]) -> pa.RecordBatch:
        groups, place = np.unique(self.groups.parents(cells), return_inverse=True)
        heard = n >= self.least
        found, infinite = [], np.zeros(groups.size, np.int64)
        for sensitivity in moved:
            scaled = n.astype(np.float64) ** self.decay * sensitivity * self.steps * (1 + FINE)
            usable = heard & (scaled <= LARGEST)  # not for infinities and what is no number
            largest = np.zeros(groups.size)
            np.maximum.at(largest, place[usable], scaled[usable])
            np.add.at(infinite, place[heard & ~usable], 1)
            found.append(np.ceil(largest).astype(np.int64))
        heard_of = np.bincount(place[heard], minlength=groups.size) > 0
        arrays = [groups[heard_of], *(f[heard_of] for f in found), infinite[heard_of]]
        return pa.RecordBatch.from_arrays([pa.array(a) for a in arrays], schema=self.schema)


def rounded_up(number: int) -> int:
    """To a few significant digits, upwards: what is published says no more than it must.

    >>> rounded_up(13_016_431), rounded_up(1)
    (13020000, 1)
    """
    unit: int = 10 ** max(len(str(number)) - DIGITS, 0)
    return -(-number // unit) * unit


@dataclass(frozen=True)
class EstimateKernel:
    """Draws what is published of a span: counts, estimates and standard errors, each with noise of its own."""

    table: str
    domain: Domain
    groups: Coarsening
    noise: EstimateNoise
    numbers: tuple[str, ...]
    steps: int
    empty: int  # the estimate of a cell without records, in grid steps
    parameters: int
    chi: Int64s = field(repr=False)  # by group, in grid steps
    chi_error: Int64s = field(repr=False)
    minimum: int | None
    true_minimum: bool
    sizes: Int64s | None = field(repr=False)  # public numbers of records, by cell
    chosen: tuple[tuple[int, tuple[int, ...]], ...]  # attributes by place, with the codes that are published

    @property
    def schema(self) -> pa.Schema:
        whole = ("count", "size")
        kinds = [(name, pa.int64() if name in whole else pa.float64()) for name in self.columns]
        return pa.schema([*((column, CODES) for column in self.domain.columns), *kinds])

    @property
    def columns(self) -> tuple[str, ...]:
        """The published numbers."""
        found = ["estimate", "noise_sd"]
        found += ["se", "se_sampling", "se_noise_sd", "low95", "high95"] if "error" in self.numbers else []
        found += ["count"] if "count" in self.numbers else []
        return (*found, *(["size"] if self.noise.size != "true" else []))

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:
        if stream is None:
            raise GuaranteeError("estimates are never given without noise", where=f"table {self.table}")
        for first, n, occupied, (counts, estimates, errors) in ranges(span, rows, DRAWN, 3):
            numbers = np.arange(first, first + n, dtype=np.int64)
            true, error = (dense(first, n, occupied, column) for column in (counts, errors))
            estimate = np.full(n, self.empty, np.int64)
            estimate[occupied - first] = estimates
            drawn = self._drawn(numbers, true, estimate, error, stream)
            shown = self._shown(numbers)
            arrays = [*self.domain.describe(numbers), *(drawn[name] for name in self.columns)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            yield batch if shown is None else batch.filter(pa.array(shown))

    def _drawn(
        self, cells: Int64s, true: Int64s, estimate: Int64s, error: Int64s, stream: Stream
    ) -> dict[str, pa.Array]:
        """The noise of counts, estimates and errors of cell i is that of cells i, D + i and 2D + i of the stream."""
        first, whole = int(cells[0]) if cells.size else 0, self.domain.cells
        count = self.noise.count(true, stream, first)
        size = self._size(cells, true, count)
        group = self.groups.parents(cells)
        # What readers know of the scale: all of it, or what follows from the released count.
        seen = size if self.noise.size != "true" else np.maximum(count, 1)
        multiples = self.noise.multiples(self.chi[group], size)
        value = np.clip(estimate + self.noise.draw(multiples, stream, whole + first), -LARGEST, LARGEST) / self.steps
        known = self.noise.multiples(self.chi[group], seen)
        found = {"estimate": value, "noise_sd": self.noise.deviation(known) / self.steps}
        if "error" in self.numbers:
            moved = self.noise.multiples(self.chi_error[group], size)
            sampled = np.clip(error + self.noise.draw(moved, stream, 2 * whole + first), -LARGEST, LARGEST) / self.steps
            known = self.noise.multiples(self.chi_error[group], seen)
            found["se_noise_sd"] = self.noise.deviation(known) / self.steps
            found["se_sampling"] = sampled
            freedom = np.maximum((count if "count" in self.numbers else size) - self.parameters, 1)
            scale, error_scale = (self.noise.scale(found[name]) for name in ("noise_sd", "se_noise_sd"))
            around = intervals(value, sampled, scale, error_scale, freedom, self.noise.distribution)
            found |= {"low95": around.low, "high95": around.high, "se": around.error}
        hidden = self._hidden(true, count)
        arrays = {name: pa.array(self._rounded(name, column), mask=hidden) for name, column in found.items()}
        unseen = hidden if self.true_minimum else None  # a count that says why a cell is missing is protected itself
        return arrays | {"count": pa.array(count, mask=unseen), "size": pa.array(size, mask=hidden)}

    def _rounded(self, name: str, values: Floats) -> Floats:
        """To the grid, limits outwards; standard deviations to some digits, upwards."""
        if name in ("noise_sd", "se_noise_sd", "se"):
            unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) + 1 - SHOWN)
            return np.ceil(values / unit) * unit
        way = {"low95": np.floor, "high95": np.ceil}.get(name, np.rint)
        rounded: Floats = way(values * self.steps) / self.steps
        return rounded

    def _size(self, cells: Int64s, true: Int64s, count: Int64s) -> Int64s:
        """By how many records the noise of a cell is divided."""
        if self.sizes is not None:
            return self.sizes[cells]
        return np.maximum(true if self.noise.size == "true" else count - self.noise.margin, 1)

    def _hidden(self, true: Int64s, count: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if self.minimum is None:
            return np.zeros(true.size, np.bool_)
        return (true if self.true_minimum else count) < self.minimum

    def _shown(self, cells: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        """The cells that are published, if not all: the others only helped to scale the noise."""
        if not self.chosen:
            return None
        shown = np.ones(cells.size, np.bool_)
        for place, codes in self.chosen:
            shown &= np.isin(cells // self.domain.strides[place] % self.domain.shape[place], codes)
        return shown


@dataclass(frozen=True)
class ScaleKernel:
    """The table of what scales the noise, as it is: published exactly, which no guarantee covers (004)."""

    groups: Domain
    steps: int
    errors: bool

    @property
    def schema(self) -> pa.Schema:
        numbers = ["chi", "chi_error"] if self.errors else ["chi"]
        return pa.schema([*((c, CODES) for c in self.groups.columns), *((name, pa.float64()) for name in numbers)])

    def __call__(self, span: Span, rows: Iterator[pa.RecordBatch], stream: Stream | None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - it draws nothing
        for _, _, groups, columns in ranges(span, rows, DRAWN, 2):
            kept = columns[: len(self.schema) - len(self.groups.columns)]
            numbers = [pa.array(column / self.steps) for column in kept]
            yield pa.RecordBatch.from_arrays([*self.groups.describe(groups), *numbers], schema=self.schema)
