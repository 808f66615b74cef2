"""Divisions that are too badly observed (001 A.3.3).

In some periods some states have no data. How much a division then misses is estimated from the periods in which every
state has data: the share of the flows into it that went to the states which are missing now. The measurements are added
up, for they are unbiased, and corrected flows of small cells are not. Where the sum does not exceed its margin of error
nothing is known: the division is suppressed if any of its states is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from discreet.domain import Attribute, Coarsening, Domain, Numbers
from discreet.domain.codelists import read_published
from discreet.errors import DomainError, SpecError
from discreet.methods.flows.destinations import Destinations
from discreet.methods.flows.spec import DivisionSuppression
from discreet.methods.flows.sums import FlowCounts, SumShape
from discreet.methods.noise_provenance import Flags, NoiseProvenance
from discreet.post.summary import PUBLISHED, SUPPRESSED, margins
from discreet.publish.description import Column, code_columns

ROWS = 1 << 17
CHUNK = 1 << 16  # groups at a time


@dataclass(frozen=True)
class StateCoverage:
    """Which states have data in which period, and whose flows tell how much the missing ones matter."""

    spec: DivisionSuppression
    by: Coarsening
    periods: Coarsening
    division: Attribute
    divisions: Numbers  # of the states
    missing: Flags  # period, state
    industries: int

    @property
    def domain(self) -> Domain:
        """The cells of the table of shares."""
        return Domain((*self.by.coarse.attributes, *self.periods.coarse.attributes, self.division))

    @cached_property
    def complete(self) -> Flags:
        """The periods in which every state has data."""
        return ~np.asarray(self.missing.any(axis=1))

    def within(self, shape: SumShape) -> tuple[int, Numbers] | None:
        """Which destination of a level is made of whole divisions, and which of its categories each lies in."""
        found = ((place, self.division.within(a)) for place, a in enumerate(shape.to.attributes))
        return next(((place, parents) for place, parents in found if parents is not None), None)

    def start(self) -> FlowCounts:
        """Sums by estimating group and state, all zero."""
        return np.zeros((self.by.coarse.cells, len(self.divisions)), np.int64)

    @property
    def held(self) -> int:
        """How many numbers its sums take."""
        return self.by.coarse.cells * (2 * len(self.divisions) + 4 * len(self.missing) * self.division.size)

    def add(self, sums: FlowCounts, first: int, measured: FlowCounts) -> None:
        """Add the flows of groups first, first + 1, … that lie in complete periods."""
        groups = np.arange(first, first + len(measured))
        used = self.complete[self.periods.parents(groups)]
        into = measured[used, :-1].reshape(-1, self.industries, len(self.divisions)).sum(axis=1)
        np.add.at(sums, self.by.parents(groups[used]), into)

    def shares(self, sums: FlowCounts, origin: NoiseProvenance, rate: Fraction) -> UnobservedShares:
        """What each division misses in each period."""
        inside = np.zeros((len(self.divisions), self.division.size), np.int64)
        inside[np.arange(len(self.divisions)), self.divisions] = 1
        complete = sums @ inside
        margin = self._margins(origin, rate, inside)
        lost = np.stack([(sums * missing) @ inside for missing in self.missing.astype(np.int64)], axis=1)
        states = self.missing.astype(np.int64) @ inside
        known = (complete > margin) & (margin >= 0)
        total = np.where(known, complete, 1)[:, None, :]
        lost = np.clip(lost, 0, total)
        over = np.where(known[:, None, :], self._above(lost, total), (states > 0)[None] & (self.spec.threshold < 1))
        return UnobservedShares(self, complete, margin, lost, states, known, over)

    def _margins(self, origin: NoiseProvenance, rate: Fraction, inside: FlowCounts) -> FlowCounts:
        """Of the flows into each division, by estimating group; below 0 where a recoding made it unknown."""
        groups = np.arange(self.by.fine.cells)
        used = self.complete[self.periods.parents(groups)]
        size = self.by.coarse.cells
        draws, blurred = origin.draws(np.where(used, self.by.parents(groups), size), size + 1)
        found = margins(rate, (draws[:size, None] * (self.industries * inside.sum(axis=0))[None]).reshape(-1))
        return np.where(blurred[:size, None], -1, found.reshape(size, -1))

    def _above(self, lost: FlowCounts, total: FlowCounts) -> Flags:
        """share > threshold, decided in whole numbers."""
        t = self.spec.threshold
        if int(total.max(initial=1)) * t.denominator >= 2**62:
            lost, total = lost.astype(object), total.astype(object)
        return np.asarray((lost * t.denominator > total * t.numerator).astype(np.bool_))


@dataclass(frozen=True)
class UnobservedShares:
    """Estimated shares by estimating group, period and division."""

    coverage: StateCoverage
    complete: FlowCounts  # by, division
    margin: FlowCounts  # by, division
    lost: FlowCounts  # by, period, division
    states: FlowCounts  # period, division
    known: Flags  # by, division
    suppressed: Flags  # by, period, division

    def rows(self) -> Iterator[list[pa.Array]]:
        """The table of shares."""
        domain = self.coverage.domain
        for first in range(0, domain.cells, ROWS):
            cells = np.arange(first, min(first + ROWS, domain.cells))
            b, p, d = np.unravel_index(cells, self.suppressed.shape)
            known = self.known[b, d]
            share = np.round(self.lost[b, p, d] / np.where(known, self.complete[b, d], 1), 6)
            yield [
                *domain.describe(cells),
                pa.array(np.where(self.suppressed[b, p, d], SUPPRESSED, PUBLISHED)),
                pa.array(self.states[p, d]),
                pa.array(self.complete[b, d]),
                pa.array(self.margin[b, d], mask=self.margin[b, d] < 0),
                pa.array(self.lost[b, p, d], mask=~known),
                pa.array(share, mask=~known),
            ]

    def of_level(self, shape: SumShape) -> Flags | None:
        """Which sums of a level are suppressed: those into divisions, or coarser, of which any part is."""
        found = self.coverage.within(shape)
        if found is None:
            return None
        place, parents = found
        into = np.arange(shape.to.cells) // shape.to.strides[place] % shape.to.shape[place]
        out = np.zeros((shape.groups.cells, shape.to.shape[place]), np.bool_)
        for first in range(0, shape.cells.fine.cells, CHUNK):
            groups = np.arange(first, min(first + CHUNK, shape.cells.fine.cells))
            hidden = self.suppressed[self.coverage.by.parents(groups), self.coverage.periods.parents(groups)]
            level = shape.cells.parents(groups)
            for division, parent in enumerate(parents):
                np.logical_or.at(out[:, parent], level, hidden[:, division])
        return out[:, into]


def columns(coverage: StateCoverage) -> list[Column]:
    """The table of shares, in words."""
    t = coverage.spec.threshold
    return [
        *code_columns(coverage.domain),
        Column("status", "integer", f"1: published; 5: suppressed, for more than {float(t):g} is unobserved"),
        Column("missing_states", "integer", "states of the division that have no data in the period"),
        Column("complete", "integer", "measured flows into the division in the periods in which all states have data"),
        Column("complete_moe90", "integer", "margin of error of `complete` at 90%"),
        Column(
            "unobserved",
            "integer",
            "those of them that went to the states that are missing in this period; empty where `complete` does not "
            "exceed its margin: then nothing is known, and a missing state suppresses",
        ),
        Column("share", "number", "unobserved / complete, empty likewise"),
    ]


def state_coverage(
    asked: DivisionSuppression,
    by: Coarsening,
    periods: Coarsening,
    division: Attribute,
    destinations: Destinations,
    base: Path,
    table: str,
) -> StateCoverage:
    """What a declaration asks for; reads the public file of states without data."""
    where = f"tables.{table}.suppress"
    if strange := next((a for a in periods.coarse.attributes if len(a.columns) > 1), None):
        raise SpecError(f"{strange.name!r} is a list of groups", where=where, do="name attributes of one column")
    divisions = destinations.state.within(division)
    if divisions is None:
        raise DomainError(
            f"{division.name!r} is not made of whole states", where=where, do="name a coarser level of the state's"
        )
    missing = read_missing(base / asked.missing, periods.coarse, destinations, where)
    return StateCoverage(asked, by, periods, division, divisions, missing, destinations.industries)


def read_missing(path: Path, periods: Domain, destinations: Destinations, where: str) -> Flags:
    """The pairs of period and state that a public file lists as without data."""
    place = f"{where}, file {path.name}"
    state = destinations.state.columns[0]
    codes = [{key[0]: i for i, key in enumerate(a.published)} for a in periods.attributes]
    states = {key[0]: i for i, key in enumerate(destinations.state.categories)}
    missing = np.zeros((periods.cells, len(states)), np.bool_)
    for line, row in enumerate(read_published(path, [*periods.columns, state], where), start=2):
        for column, code, known in zip([*periods.columns, state], row, [*codes, states], strict=True):
            if code not in known:
                raise DomainError(
                    f"line {line} names {column} {code!r}, which is no category", where=place, do="name declared codes"
                )
        period = periods.number([known[code] for known, code in zip(codes, row[:-1], strict=True)])
        missing[period, states[row[-1]]] = True
    if missing.any(axis=1).all():
        raise DomainError(
            "leaves no period in which every state has data",
            where=place,
            do="the unobserved share cannot be estimated: declare a complete period",
        )
    return missing
