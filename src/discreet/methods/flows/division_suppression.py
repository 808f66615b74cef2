"""Suppression of divisions with too much unobserved employment (PSEO Technical Appendices, A.3.3).

In some periods some states have no data. The share of a division that is then unobserved is estimated from the periods
in which every state has data, as the share of the flows into it that went to the states now missing. Noisy measurements
are summed, since they are unbiased; corrected flows of small cells are not. Where the sum does not exceed its margin of
error the share is unknown: the division is suppressed if any of its states is missing.
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
    """Which states lack data in which period, and the groups by which the unobserved share is estimated."""

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
        """The destination attribute of a level that consists of whole divisions, and the category of each division."""
        lookups = ((place, self.division.within(a)) for place, a in enumerate(shape.to.attributes))
        return next(((place, parents) for place, parents in lookups if parents is not None), None)

    def start(self) -> FlowCounts:
        """Sums by estimating group and state, all zero."""
        return np.zeros((self.by.coarse.cells, len(self.divisions)), np.int64)

    @property
    def numbers_in_memory(self) -> int:
        """The number of integers its sums need."""
        return self.by.coarse.cells * (2 * len(self.divisions) + 4 * len(self.missing) * self.division.size)

    def add(self, sums: FlowCounts, first: int, measured: FlowCounts) -> None:
        """Add the flows of groups first, first + 1, … that lie in complete periods."""
        groups = np.arange(first, first + len(measured))
        used = self.complete[self.periods.parents(groups)]
        into = measured[used, :-1].reshape(-1, self.industries, len(self.divisions)).sum(axis=1)
        np.add.at(sums, self.by.parents(groups[used]), into)

    def shares(self, sums: FlowCounts, provenance: NoiseProvenance, rate: Fraction) -> UnobservedShares:
        """The unobserved share of each division in each period."""
        division_of = np.zeros((len(self.divisions), self.division.size), np.int64)
        division_of[np.arange(len(self.divisions)), self.divisions] = 1
        complete = sums @ division_of
        margin = self._margins(provenance, rate, division_of)
        lost = np.stack([(sums * missing) @ division_of for missing in self.missing.astype(np.int64)], axis=1)
        states = self.missing.astype(np.int64) @ division_of
        known = (complete > margin) & (margin >= 0)
        total = np.where(known, complete, 1)[:, None, :]
        lost = np.clip(lost, 0, total)
        over = np.where(known[:, None, :], self._above(lost, total), (states > 0)[None] & (self.spec.threshold < 1))
        return UnobservedShares(self, complete, margin, lost, states, known, over)

    def _margins(self, provenance: NoiseProvenance, rate: Fraction, division_of: FlowCounts) -> FlowCounts:
        """Margins of the flows into each division, by estimating group; −1 where a recoding made them unknown."""
        groups = np.arange(self.by.fine.cells)
        used = self.complete[self.periods.parents(groups)]
        size = self.by.coarse.cells
        draws, divided = provenance.draws(np.where(used, self.by.parents(groups), size), size + 1)
        known = margins(rate, (draws[:size, None] * (self.industries * division_of.sum(axis=0))[None]).reshape(-1))
        return np.where(divided[:size, None], -1, known.reshape(size, -1))

    def _above(self, lost: FlowCounts, total: FlowCounts) -> Flags:
        """share > threshold, in integer arithmetic."""
        t = self.spec.threshold
        if int(total.max(initial=1)) * t.denominator >= 2**62:
            lost, total = lost.astype(object), total.astype(object)
        return np.asarray((lost * t.denominator > total * t.numerator).astype(np.bool_))


@dataclass(frozen=True)
class UnobservedShares:
    """Estimated unobserved shares by estimating group, period and division."""

    coverage: StateCoverage
    complete: FlowCounts  # by, division
    margin: FlowCounts  # by, division
    lost: FlowCounts  # by, period, division
    states: FlowCounts  # period, division
    known: Flags  # by, division
    suppressed: Flags  # by, period, division

    def rows(self) -> Iterator[list[pa.Array]]:
        """The rows of the table of shares."""
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
        """Which sums of a level are suppressed: those that contain a suppressed division; None without divisions."""
        divisions = self.coverage.within(shape)
        if divisions is None:
            return None
        place, parents = divisions
        into = np.arange(shape.to.cells) // shape.to.strides[place] % shape.to.shape[place]
        out = np.zeros((shape.groups.cells, shape.to.shape[place]), np.bool_)
        for first in range(0, shape.cells.fine.cells, CHUNK):
            groups = np.arange(first, min(first + CHUNK, shape.cells.fine.cells))
            suppressed = self.suppressed[self.coverage.by.parents(groups), self.coverage.periods.parents(groups)]
            level = shape.cells.parents(groups)
            for division, parent in enumerate(parents):
                np.logical_or.at(out[:, parent], level, suppressed[:, division])
        return out[:, into]


def columns(coverage: StateCoverage) -> list[Column]:
    """Published columns of the table of shares, with descriptions."""
    t = coverage.spec.threshold
    return [
        *code_columns(coverage.domain),
        Column("status", "integer", f"1: published; 5: suppressed, because a share above {float(t):g} is unobserved"),
        Column("missing_states", "integer", "number of states of the division without data in the period"),
        Column("complete", "integer", "noisy flows into the division in the periods in which all states have data"),
        Column("complete_moe90", "integer", "90% margin of error of `complete`"),
        Column(
            "unobserved",
            "integer",
            "the part of `complete` that went to the states missing in this period; empty where `complete` does not "
            "exceed its margin: then the share is unknown, and one missing state suppresses the division",
        ),
        Column("share", "number", "unobserved / complete; empty where `unobserved` is"),
    ]


def state_coverage(
    declared: DivisionSuppression,
    by: Coarsening,
    periods: Coarsening,
    division: Attribute,
    destinations: Destinations,
    base: Path,
    table: str,
) -> StateCoverage:
    """The declared suppression; reads the public file of states without data."""
    where = f"tables.{table}.suppress"
    if groups := next((a for a in periods.coarse.attributes if len(a.columns) > 1), None):
        raise SpecError(f"{groups.name!r} is a list of groups", where=where, do="name attributes with one column")
    divisions = destinations.state.within(division)
    if divisions is None:
        raise DomainError(
            f"{division.name!r} does not consist of whole states",
            where=where,
            do="name a coarser level of the state's hierarchy",
        )
    missing = read_missing(base / declared.missing, periods.coarse, destinations, where)
    return StateCoverage(declared, by, periods, division, divisions, missing, destinations.industries)


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
                    f"line {line} names {column} {code!r}, which is no declared category",
                    where=place,
                    do="name declared codes",
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
