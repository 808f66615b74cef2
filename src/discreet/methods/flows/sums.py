"""Sums of flows: of coarser groups, into coarser destinations, inside the groups' own state, and into no job.

They are added up from the corrected flows, and beside that from the measurements, which are unbiased.
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
    """What one level adds up."""

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
        """All employment in one number; then those without a job are another one."""
        return not self.to.attributes

    def held(self, states: int) -> int:
        """How many numbers its sums take: four of each, the draws inside home states, and of every group a few."""
        return self.groups.cells * (4 * self.to.cells + 2 * (states + 1)) + 3 * self.cells.fine.cells

    def columns(self, home: bool, suppressed: bool) -> list[Column]:
        """The published columns, in words."""
        codes = code_columns(self.groups)
        codes += [
            Column(a.columns[0], "code", f"{a.name}: {plural(a.size, 'category', 'categories')} of destinations")
            for a in self.to.attributes
        ]
        status = [Column("status", "integer", "1: published; 5: suppressed, for too little of it was observed")]
        numbers = [column for what, meaning in self._measures(home) for column in _columns(what, meaning)]
        return [*codes, *(status if suppressed else []), *numbers]

    def _measures(self, home: bool) -> list[tuple[str, str]]:
        there = "" if self.whole else " there"
        found = [("employed", f"into jobs{there}")]
        found += [("in_state", f"into jobs{there} that are in the group's own state")] if home else []
        return found + ([("marginal", "into no or marginal employment")] if self.whole else [])


def _columns(what: str, meaning: str) -> list[Column]:
    return [
        Column(
            what,
            "integer",
            f"flows {meaning}: the sum of corrected flows; never negative, and too large where groups are small, for "
            f"those with a negative total became 0: for sums over many groups take `{what}_measured`",
        ),
        Column(
            f"{what}_measured", "integer", f"the sum of the measurements of flows {meaning}: unbiased, may be negative"
        ),
        Column(
            f"{what}_moe90", "integer", f"margin of error of `{what}_measured` at 90%: about the noise and nothing else"
        ),
    ]


@dataclass
class _RunningSums:
    """One kind of number, being added up."""

    employed: FlowCounts
    in_state: FlowCounts
    marginal: Numbers


@dataclass
class FlowSums:
    """The sums of one level. `add` may be called by several threads, one at a time."""

    shape: SumShape
    states: Numbers  # of the jobs
    home: Coarsening | None
    home_states: Numbers  # of the homes: which state each is, or -1
    origin: NoiseProvenance
    corrected: _RunningSums = field(init=False)
    measured: _RunningSums = field(init=False)

    def __post_init__(self) -> None:
        size = self.shape.groups.cells, self.shape.to.cells
        self.corrected, self.measured = (
            _RunningSums(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size[0], np.int64))
            for _ in range(2)
        )

    def add(self, first: int, corrected: FlowCounts, measured: FlowCounts) -> None:
        """The flows of groups first, first + 1, …"""
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
        draws, blurred = self.origin.draws(self.shape.cells.parents(every), groups)
        jobs = np.bincount(self.shape.categories, minlength=to)
        inside, torn = self._inside(every) if self.home is not None else (None, blurred)
        for first in range(0, groups * to, ROWS):
            cells = np.arange(first, min(first + ROWS, groups * to))
            p, c = np.divmod(cells, to)
            hidden = np.zeros(len(cells), np.bool_) if suppressed is None else suppressed[p, c]
            status = [] if suppressed is None else [pa.array(np.where(hidden, SUPPRESSED, PUBLISHED))]
            kinds = [("employed", draws[p] * jobs[c], blurred[p])]
            kinds += [("in_state", inside[p, c], blurred[p] | torn[p, c])] if inside is not None else []
            arrays = list[pa.Array]()
            for what, number, unknown in kinds:
                arrays += [
                    pa.array(getattr(self.corrected, what)[p, c], mask=hidden),
                    pa.array(getattr(self.measured, what)[p, c], mask=hidden),
                    pa.array(margins(rate, number), mask=hidden | unknown),
                ]
            if self.shape.whole:
                arrays += [
                    pa.array(self.corrected.marginal[p]),
                    pa.array(self.measured.marginal[p]),
                    pa.array(margins(rate, draws[p]), mask=blurred[p]),
                ]
            yield [*self.shape.domain.describe(cells), *status, *arrays]

    def numbers(self, suppressed: Flags | None) -> FlowNumbers:
        """The sums as LEHD's layout takes them."""
        status = np.full(self.corrected.employed.shape, PUBLISHED, np.int64)
        if suppressed is not None:
            status[suppressed] = SUPPRESSED
        return FlowNumbers(self.corrected.employed, self.corrected.in_state, self.corrected.marginal, status)

    def _inside(self, every: Numbers) -> tuple[FlowCounts, Flags]:
        """How many draws the flows inside the home state have, and where a group was divided between homes."""
        states = int(self.states.max(initial=0)) + 1
        pairs = self.shape.cells.parents(every) * (states + 1) + self._homes(every) + 1
        draws, torn = self.origin.draws(pairs, self.shape.groups.cells * (states + 1))
        jobs = np.zeros((states + 1, self.shape.to.cells), np.int64)  # the first row: a home that is no destination
        np.add.at(jobs, (self.states + 1, self.shape.categories), 1)
        size = (self.shape.groups.cells, states + 1)
        return draws.reshape(size) @ jobs, torn.reshape(size).astype(np.int64) @ jobs > 0


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
