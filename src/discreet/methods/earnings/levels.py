"""Levels of one table: measured levels have noise and ε of their own, derived ones are sums of a measured level.

A derived level has no additional ε (post-processing) and agrees with its source exactly; its noise variance grows with
the number of cells summed. Among several possible sources the one that gives the least noise is chosen.
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
    """A level's name, attributes, cells and suppression rules, whether it is measured or derived."""

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
    """A level with its own ε."""

    epsilon: Fraction
    distribution: DiscreteLaplace  # of the noise in each bin

    @property
    def summands(self) -> Numbers:
        """For each cell, the number of draws in the noise of one bin: 1."""
        return np.broadcast_to(np.int64(1), self.domain.cells)


@dataclass(frozen=True)
class DerivedLevel(_Level):
    """A level of sums over the cells of a measured level."""

    source: MeasuredLevel
    cells: Coarsening

    @property
    def distribution(self) -> DiscreteLaplace:
        return self.source.distribution

    @cached_property
    def summands(self) -> Numbers:
        """For each cell, the number of draws in the noise of one bin."""
        return self.cells.children()


AnyLevel = MeasuredLevel | DerivedLevel


def resolve(spec: Earnings, domains: Mapping[str, Domain], records: int) -> list[AnyLevel]:
    """The levels of a table, the table itself first, in declared order."""
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
    levels: list[AnyLevel] = []
    for level in declared:
        sources = [measured[level.sum_of]] if level.sum_of is not None else list(measured.values())
        resolved = measured.get(level.name) or best_sum(shapes[level.name], sources)
        if resolved is None:
            raise DomainError(
                f"does not consist of whole cells of {' or '.join(repr(source.name) for source in sources)}",
                where=f"tables.{spec.name}.levels.{level.name}",
                do="give it an `epsilon`, or attributes coarser than the table's (levels of one hierarchy, "
                "`coarser` of one list of groups)",
            )
        levels.append(resolved)
    return levels


def best_sum(shape: LevelShape, sources: Sequence[MeasuredLevel]) -> DerivedLevel | None:
    """The level as a sum of the source that gives the least noise; None if no source can be summed to it."""
    coarsenings = [(source, coarsening(source.domain, shape.domain)) for source in sources]
    sums = [DerivedLevel(shape, source, cells) for source, cells in coarsenings if cells is not None]
    possible = [sum_ for sum_ in sums if sum_.summands.min(initial=1) > 0]  # every cell has at least one summand
    return min(possible, key=lambda sum_: float(sum_.summands.mean()) * sum_.distribution.variance(), default=None)
