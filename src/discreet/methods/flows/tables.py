"""Published tables of flows: post-processing of the noisy measurements, no additional ε.

Two passes over the measured files, several parts at a time: the first sums what the weights need, the second corrects
each group and sums the levels. The correction draws from a public stream, since the randomness of post-processing need
not be secret: anyone with the noisy measurements can reproduce the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from discreet.arrays import Words
from discreet.domain import Numbers
from discreet.engine.spans import Progress
from discreet.methods.flows.columns import REPORT
from discreet.methods.flows.correction import RULES
from discreet.methods.flows.correction_controls import Controls, GroupControls
from discreet.methods.flows.sums import FlowCounts, FlowSums
from discreet.methods.histograms import measured_part
from discreet.methods.noise_provenance import NoiseProvenance
from discreet.noise.jit import compiled
from discreet.noise.key import public_stream
from discreet.noise.stream import Stream
from discreet.post.summary import margins
from discreet.privacy.confidential import Grant
from discreet.privacy.protected import Protected
from discreet.publish.description import Kinds
from discreet.publish.lehd.pseof import FlowNumbers
from discreet.publish.storage import Storage
from discreet.publish.tables import WrittenTable, schema_of, write_table

if TYPE_CHECKING:
    from discreet.methods.flows.method import FlowsMethod

WORDS = 1 << 21  # in memory at a time
ROWS = 1 << 19  # cells scanned for rows at a time
THREADS = min(os.cpu_count() or 1, 8)


@dataclass
class CorrectionTally:
    """Totals for the report of the correction."""

    zeroed: int = 0  # groups without a positive total
    units: int = 0  # subtracted
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True)
class FlowTables:
    """Writes the published tables from the noisy flows."""

    method: FlowsMethod
    provenance: NoiseProvenance
    stored: Storage
    parts: Protected[WrittenTable]
    grant: Grant

    def make(self, place: Storage, progress: Progress) -> Iterator[dict[str, str]]:
        """Write every published file."""
        method, names = self.method, sorted(self.parts.value.files)
        controls, replaced = self._controls(names, progress)
        sums = [
            FlowSums(shape, method.destinations.state_of(), method.home, method.weights.home_states, self.provenance)
            for shape in method.sums
        ]
        states = None if method.coverage is None else method.coverage.start()
        tally = CorrectionTally()

        def work(number: int) -> list[dict[str, str]]:
            first, flows = self._read(names, number)
            corrected = self._correct(first, flows, controls, tally)
            with tally.lock:
                for level in sums:
                    level.add(first, corrected, flows)
                if method.coverage is not None and states is not None:
                    method.coverage.add(states, first, flows)
            return self._write(place, number if len(names) > 1 else None, first, flows, corrected)

        with ThreadPoolExecutor(THREADS) as pool:
            for number, written in enumerate(pool.map(work, range(len(names))), 1):
                yield from written
                progress(len(names) + number, 2 * len(names))
        shares = None
        if method.coverage is not None and states is not None:
            shares = method.coverage.shares(states, self.provenance, method.distribution.rate)
        numbers: dict[str, Protected[FlowNumbers]] = {}
        for level in sums:
            suppressed = None if shares is None else shares.of_level(level.shape)
            yield self._table(place, level.shape.name, level.rows(method.distribution.rate, suppressed))
            if method.pseof is not None and level.shape.name in method.pseof.names:
                numbers[level.shape.name] = self.grant.protect(level.numbers(suppressed), self.parts.guarantee)
        if shares is not None:
            yield self._table(place, method.unobserved_name, shares.rows())
        yield self._table(place, method.report_name, iter([self._report(replaced, tally)]))
        if method.pseof is not None:
            yield method.pseof.write(place, numbers)

    def _read(self, names: list[str], number: int) -> tuple[int, FlowCounts]:
        """One part: the first group in it, and its measured flows."""
        cells = self.method.destinations.cells
        size = self.method.spans[0].size // cells
        return number * size, measured_part(self.stored, self.parts, names[number], cells)

    def _controls(self, names: list[str], progress: Progress) -> tuple[Controls, dict[str, tuple[int, int]]]:
        """The controls, all components positive, and how many values of each were replaced."""
        weights = self.method.weights
        sums = weights.start()
        lock = Lock()

        def work(number: int) -> None:
            first, flows = self._read(names, number)
            with lock:
                weights.add(sums, first, flows)

        with ThreadPoolExecutor(THREADS) as pool:
            for done, _ in enumerate(pool.map(work, range(len(names) if weights.family is not None else 0)), 1):
                progress(done, 2 * len(names))
        spec = weights.spec
        controls = Controls.of(weights.jobs, weights.employment, sums, spec.marginal_weight)
        used = {
            "job_flows": (spec.job_flows, weights.jobs.size),
            "employment": (spec.employment, weights.employment.size),
            "industry_flows": (spec.industry_flows, sums.size),
        }
        counted = zip(used.items(), controls.replaced, strict=True)
        return controls, {name: (times, size) for (name, (given, size)), times in counted if given is not None}

    def _correct(self, first: int, flows: FlowCounts, controls: Controls, tally: CorrectionTally) -> FlowCounts:
        """Non-negative flows with the same totals, some groups at a time."""
        rule, stream = (
            RULES[self.method.spec.correction.rule],
            public_stream("flows/correction", self.grant.release, self.method.name),
        )
        needed = rule.words_needed(flows)
        ends = np.cumsum(needed)
        pieces, start = list[FlowCounts](), 0
        while start < len(flows):
            before = int(ends[start - 1]) if start else 0
            end = max(int(np.searchsorted(ends, before + WORDS, side="right")), start + 1)
            numbers = np.arange(first + start, first + end)
            words, starts = group_words(stream, numbers, needed[start:end])
            homes, families = self.method.weights.homes(numbers), self.method.weights.families(numbers)
            groups = GroupControls(controls, homes, families, self.method.distribution.rate)
            pieces.append(rule.correct(flows[start:end], groups, words, starts))
            start = end
        corrected = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        with tally.lock:
            tally.zeroed += int((flows.sum(axis=1) <= 0).sum())
            tally.units += int(np.maximum(flows, 0).sum() - corrected.sum())
        return corrected

    def _write(
        self, place: Storage, part: int | None, first: int, flows: FlowCounts, corrected: FlowCounts
    ) -> list[dict[str, str]]:
        """Write the rows of one part: non-zero flows, and non-zero measurements."""
        method = self.method
        kinds: Kinds = tuple(method.spec.formats)
        written = [self._rows(method.name, place, part, (first, flows), (corrected, flows), kinds)]
        if method.spec.measurements:
            written.append(self._rows(method.measured_name, place, part, (first, flows), (flows,), ("parquet",)))
        return written

    def _rows(
        self,
        name: str,
        place: Storage,
        part: int | None,
        measured: tuple[int, FlowCounts],
        shown: tuple[FlowCounts, ...],
        kinds: Kinds,
    ) -> dict[str, str]:
        first, flows = measured
        cells = self.method.destinations.cells
        schema = schema_of(self.method.table_columns(name))
        margin, divided = self._margins(np.arange(first, first + len(flows)))
        size = max(ROWS // cells, 1)

        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, len(flows), size):
                values = [table[start : start + size].reshape(-1) for table in shown]
                rows = np.flatnonzero(values[0])
                group = start + rows // cells
                codes = self.method.domain.describe((first + start) * cells + rows)
                arrays = [pa.array(value[rows]) for value in values]
                arrays.append(pa.array(margin[group], mask=divided[group]))
                yield pa.RecordBatch.from_arrays([*codes, *arrays], schema=schema)

        protected = (self.grant.protect(batch, self.parts.guarantee) for batch in batches())
        return write_table(place, name, schema, protected, self.grant.simulated, part, kinds).files

    def _margins(self, groups: Numbers) -> tuple[Numbers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """The margin of every cell of these groups, and whether a recoding divided them at random."""
        if self.provenance.starts is None:
            return margins(self.method.distribution.rate, np.ones(len(groups), np.int64)), np.zeros(
                len(groups), np.bool_
            )
        draws, divided = self._draws
        return margins(self.method.distribution.rate, draws[groups]), divided[groups]

    @cached_property
    def _draws(self) -> tuple[Numbers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        groups = self.method.groups.cells
        return self.provenance.draws(np.arange(groups), groups)

    def _table(self, place: Storage, name: str, rows: Iterator[list[pa.Array]]) -> dict[str, str]:
        schema = schema_of(self.method.table_columns(name))
        batches = (pa.RecordBatch.from_arrays(arrays, schema=schema) for arrays in rows)
        protected = (self.grant.protect(batch, self.parts.guarantee) for batch in batches)
        return write_table(place, name, schema, protected, self.grant.simulated).files

    def _report(self, replaced: dict[str, tuple[int, int]], tally: CorrectionTally) -> list[pa.Array]:
        """The report of the correction, one row per fact."""
        groups = self.method.groups.cells
        facts = {**replaced, "groups_zeroed": (tally.zeroed, groups), "units_subtracted": (tally.units, None)}
        rows = [facts.get(key[0], (None, None)) for key in REPORT.attributes[0].categories]
        codes = REPORT.describe(np.arange(len(rows)))
        return [*codes, pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.int64())]


def group_words(stream: Stream, groups: Numbers, needed: Numbers) -> tuple[np.ndarray, Numbers]:
    """The words needed by each group: words 2j and 2j + 1 are the block (group, j), however groups are batched."""
    starts = np.concatenate([[0], np.cumsum((needed + 1) // 2 * 2)])
    return stream.sparse_words(_counters(groups, starts)).reshape(-1), starts


@compiled
def _counters(groups: Numbers, starts: Numbers) -> Words:
    counters = np.empty((starts[-1] // 2, 2), np.uint64)
    for g in range(groups.shape[0]):
        for place in range(starts[g] // 2, starts[g + 1] // 2):
            counters[place, 0] = groups[g]
            counters[place, 1] = place - starts[g] // 2
    return counters
