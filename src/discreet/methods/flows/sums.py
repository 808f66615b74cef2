"""Sums of flows: over coarser groups and destinations, within the groups' own state, and to no employment.

Both corrected flows and noisy measurements are summed; the latter are unbiased.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.domain import Coarsening, Domain, Numbers
from discreet.formatting import plural
from discreet.methods.noise_provenance import Flags, NoiseProvenance
from discreet.noise.jit import compiled
from discreet.post.summary import PUBLISHED, SUPPRESSED, margins
from discreet.publish.description import Column, code_columns
from discreet.publish.lehd.pseof import FlowNumbers

FlowCounts = NDArray[np.int64]  # (groups, cells)
ROWS = 1 << 17  # in memory at a time


@dataclass(frozen=True)
class SumShape:
    """The shape of one level: which groups and destinations are summed."""

    name: str
    by: tuple[str, ...]
    groups: Domain
    to: Domain
    cells: Coarsening  # of the table's groups
    categories: Numbers  # of the jobs: which of `to` each lies in

    @property
    def domain(self) -> Domain:
        return Domain((*self.groups.attributes, *self.to.attributes))

    @property
    def whole(self) -> bool:
        """Whether all employment is one number; then those not or marginally employed are another."""
        return not self.to.attributes

    def numbers_in_memory(self, states: int) -> int:
        """The number of integers its sums need: four per sum, the draws within home states, and a few per group."""
        return self.groups.cells * (4 * self.to.cells + 2 * (states + 1)) + 3 * self.cells.fine.cells

    def columns(self, home: bool, suppressed: bool) -> list[Column]:
        """The published columns, with descriptions."""
        codes = code_columns(self.groups)
        codes += [
            Column(a.columns[0], "code", f"{a.name}: {plural(a.size, 'category', 'categories')} of destinations")
            for a in self.to.attributes
        ]
        status = [Column("status", "integer", "1: published; 5: suppressed, because too little of it was observed")]
        numbers = [column for what, meaning in self._measures(home) for column in _columns(what, meaning)]
        return [*codes, *(status if suppressed else []), *numbers]

    def _measures(self, home: bool) -> list[tuple[str, str]]:
        destination = "" if self.whole else " in this destination"
        measures = [("employed", f"into employment{destination}")]
        measures += [("in_state", f"into employment{destination} in the group's own state")] if home else []
        return measures + ([("marginal", "into the cell not or marginally employed")] if self.whole else [])


def _columns(what: str, meaning: str) -> list[Column]:
    return [
        Column(
            what,
            "integer",
            f"flows {meaning}: sum of corrected flows; never negative, and biased upwards where groups are small, "
            f"because negative totals became 0: for sums over many groups use `{what}_measured`",
        ),
        Column(f"{what}_measured", "integer", f"flows {meaning}: sum of noisy measurements; unbiased, may be negative"),
        Column(f"{what}_moe90", "integer", f"90% margin of error of `{what}_measured`, for the noise only"),
    ]


@dataclass
class _RunningSums:
    """Sums of one kind of flow so far."""

    employed: FlowCounts
    in_state: FlowCounts
    marginal: Numbers


@dataclass
class FlowSums:
    """The sums of one level. Calls of `add` must not overlap."""

    shape: SumShape
    states: Numbers  # of the jobs
    home: Coarsening | None
    home_states: Numbers  # of the homes: which state each is, or -1
    provenance: NoiseProvenance
    corrected: _RunningSums = field(init=False)
    measured: _RunningSums = field(init=False)

    def __post_init__(self) -> None:
        size = self.shape.groups.cells, self.shape.to.cells
        self.corrected, self.measured = (
            _RunningSums(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size[0], np.int64))
            for _ in range(2)
        )

    def add(self, first: int, corrected: FlowCounts, measured: FlowCounts) -> None:
        """Add the flows of groups first, first + 1, …"""
        groups = np.arange(first, first + len(corrected))
        parents, homes = self.shape.cells.parents(groups), self._homes(groups)
        for sums, flows in ((self.corrected, corrected), (self.measured, measured)):
            _add(
                *(sums.employed, sums.in_state, sums.marginal, flows),
                *(parents, homes, self.shape.categories, self.states),
            )

    def _homes(self, groups: Numbers) -> Numbers:
        if self.home is None:
            return np.full(len(groups), -1, np.int64)
        return self.home_states[self.home.parents(groups)]

    def rows(self, rate: Fraction, suppressed: Flags | None) -> Iterator[list[pa.Array]]:
        """The published columns of every cell, some rows at a time; `suppressed` by group and destination."""
        groups, to = self.shape.groups.cells, self.shape.to.cells
        every = np.arange(self.shape.cells.fine.cells)
        draws, divided = self.provenance.draws(self.shape.cells.parents(every), groups)
        jobs = np.bincount(self.shape.categories, minlength=to)
        home_draws, home_divided = self._home_draws(every) if self.home is not None else (None, divided)
        for first in range(0, groups * to, ROWS):
            cells = np.arange(first, min(first + ROWS, groups * to))
            p, c = np.divmod(cells, to)
            masked = np.zeros(len(cells), np.bool_) if suppressed is None else suppressed[p, c]
            status = [] if suppressed is None else [pa.array(np.where(masked, SUPPRESSED, PUBLISHED))]
            kinds = [("employed", draws[p] * jobs[c], divided[p])]
            kinds += [("in_state", home_draws[p, c], divided[p] | home_divided[p, c])] if home_draws is not None else []
            arrays = list[pa.Array]()
            for what, number, unknown in kinds:
                arrays += [
                    pa.array(getattr(self.corrected, what)[p, c], mask=masked),
                    pa.array(getattr(self.measured, what)[p, c], mask=masked),
                    pa.array(margins(rate, number), mask=masked | unknown),
                ]
            if self.shape.whole:
                arrays += [
                    pa.array(self.corrected.marginal[p]),
                    pa.array(self.measured.marginal[p]),
                    pa.array(margins(rate, draws[p]), mask=divided[p]),
                ]
            yield [*self.shape.domain.describe(cells), *status, *arrays]

    def numbers(self, suppressed: Flags | None) -> FlowNumbers:
        """The sums in the form of LEHD's layout."""
        status = np.full(self.corrected.employed.shape, PUBLISHED, np.int64)
        if suppressed is not None:
            status[suppressed] = SUPPRESSED
        return FlowNumbers(self.corrected.employed, self.corrected.in_state, self.corrected.marginal, status)

    def _home_draws(self, every: Numbers) -> tuple[FlowCounts, Flags]:
        """The number of draws in flows within the home state, and where a group was divided between homes."""
        states = int(self.states.max(initial=0)) + 1
        pairs = self.shape.cells.parents(every) * (states + 1) + self._homes(every) + 1
        draws, divided = self.provenance.draws(pairs, self.shape.groups.cells * (states + 1))
        jobs = np.zeros((states + 1, self.shape.to.cells), np.int64)  # the first row: a home that is no destination
        np.add.at(jobs, (self.states + 1, self.shape.categories), 1)
        size = (self.shape.groups.cells, states + 1)
        return draws.reshape(size) @ jobs, divided.reshape(size).astype(np.int64) @ jobs > 0


@compiled
def _add(
    employed: FlowCounts,
    in_state: FlowCounts,
    marginal: Numbers,
    flows: FlowCounts,
    parents: Numbers,
    homes: Numbers,
    categories: Numbers,
    states: Numbers,
) -> None:
    jobs = categories.shape[0]
    for g in range(flows.shape[0]):
        p = parents[g]
        for d in range(jobs):
            x = flows[g, d]
            if x != 0:
                employed[p, categories[d]] += x
                if states[d] == homes[g]:
                    in_state[p, categories[d]] += x
        marginal[p] += flows[g, jobs]
