"""The levels of one table: some are measured with noise of their own, others add up a finer one's protected numbers.

A derived level costs nothing, and agrees with the finer one exactly; its noise grows with the number of cells that are
added. Of several measured levels that a derived one can be added up from, the one with the least noise is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.domain import Coarsening, Domain, Numbers, coarsening
from discreet.errors import DomainError
from discreet.methods.earnings.spec import Codes, Earnings, Level
from discreet.methods.protocol import distribution_of
from discreet.noise.samplers.discrete import DiscreteLaplace


@dataclass(frozen=True)
class LevelShape:
    """What a level is by, however its numbers come about."""

    name: str
    by: tuple[str, ...]
    domain: Domain
    suppress_below: int
    suppress_codes: Codes


@dataclass(frozen=True)
class _Level:
    shape: LevelShape

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def domain(self) -> Domain:
        return self.shape.domain


@dataclass(frozen=True)
class MeasuredLevel(_Level):
    """A level with an epsilon of its own."""

    epsilon: Fraction
    distribution: DiscreteLaplace  # of the noise in each bin

    @property
    def summands(self) -> Numbers:
        """How many draws the noise of a bin is the sum of, for each cell."""
        return np.broadcast_to(np.int64(1), self.domain.cells)


@dataclass(frozen=True)
class DerivedLevel(_Level):
    """A level that adds up a measured one."""

    source: MeasuredLevel
    cells: Coarsening

    @property
    def distribution(self) -> DiscreteLaplace:
        return self.source.distribution

    @cached_property
    def summands(self) -> Numbers:
        """How many draws the noise of a bin is the sum of, for each cell."""
        return self.cells.children()


AnyLevel = MeasuredLevel | DerivedLevel


def resolve(spec: Earnings, domains: Mapping[str, Domain], records: int) -> list[AnyLevel]:
    """The levels of a table, itself first, in the order of its declaration."""
    declared = [
        Level(name=spec.name, by=spec.by, epsilon=spec.epsilon, suppress_codes=spec.suppress_codes),
        *spec.levels,
    ]
    shapes = {
        level.name: LevelShape(
            level.name,
            tuple(level.by),
            domains[level.name],
            level.suppress_below or spec.suppress_below,
            level.suppress_codes,
        )
        for level in declared
    }
    measured = {
        one.name: MeasuredLevel(shapes[one.name], one.epsilon, distribution_of(one.epsilon / records, spec.place))
        for one in declared
        if one.epsilon is not None
    }
    found: list[AnyLevel] = []
    for level in declared:
        sources = [measured[level.sum_of]] if level.sum_of is not None else list(measured.values())
        made = measured.get(level.name) or best_sum(shapes[level.name], sources)
        if made is None:
            raise DomainError(
                f"is not made of whole cells of {' or '.join(repr(source.name) for source in sources)}",
                where=f"tables.{spec.name}.levels.{level.name}",
                do="give it an `epsilon`, or attributes that are coarser ones of the table's (levels of one hierarchy, "
                "`coarser` of one list of groups)",
            )
        found.append(made)
    return found


def best_sum(shape: LevelShape, sources: Sequence[MeasuredLevel]) -> DerivedLevel | None:
    """The level as a sum of whichever source gives it the least noise, if any can be added up to it."""
    found = [(source, coarsening(source.domain, shape.domain)) for source in sources]
    made = [DerivedLevel(shape, source, cells) for source, cells in found if cells is not None]
    possible = [sum_ for sum_ in made if sum_.summands.min(initial=1) > 0]  # no cell that nothing adds up to
    return min(possible, key=lambda sum_: float(sum_.summands.mean()) * sum_.distribution.variance(), default=None)
