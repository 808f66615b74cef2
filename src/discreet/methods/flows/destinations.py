"""Destinations of flows: every industry in every state, and one cell for not or marginally employed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.domain import Attribute, Key, Numbers
from discreet.errors import DomainError, SpecError
from discreet.methods.flows.spec import Marginal

MOST_PAIRS = 1 << 22  # of recorded values, in the lookup table of destinations


@dataclass(frozen=True)
class Destinations:
    """Cell k·S + s is industry k in state s; the last cell is the marginal one."""

    table: str
    industry: Attribute
    state: Attribute
    marginal: Marginal

    def __post_init__(self) -> None:
        for role, attribute, code in (
            ("industry", self.industry, self.marginal.industry),
            ("state", self.state, self.marginal.state),
        ):
            where = f"tables.{self.table}.{role}"
            if len(attribute.columns) > 1 or len(attribute.source) > 1:
                raise SpecError(
                    f"{attribute.name!r} is a list of groups", where=where, do="name an attribute with one column"
                )
            if attribute.other is not None:
                raise SpecError(
                    f"{attribute.name!r} counts undeclared values as {attribute.other!r}",
                    where=where,
                    do="declare it with `undeclared: drop`; `marginal: {undeclared: true}` counts such codes",
                )
            if (code,) in attribute.categories or (_padded(code, attribute),) in attribute.lookup:
                raise SpecError(
                    f"{code!r} is a category of {attribute.name!r} and the code of the marginal cell",
                    where=f"tables.{self.table}.marginal.{role}",
                    do="choose another code",
                )
        if (pairs := len(self.industry.lookup) * len(self.state.lookup)) > MOST_PAIRS:
            raise DomainError(
                f"has {pairs:,} pairs of values, more than {MOST_PAIRS:,}",
                where=f"tables.{self.table}, destinations",
                do="give records coarser codes of industry or state",
            )

    @property
    def industries(self) -> int:
        return len(self.industry.categories)

    @property
    def states(self) -> int:
        return len(self.state.categories)

    @property
    def jobs(self) -> int:
        """The cells that are employment."""
        return self.industries * self.states

    @property
    def cells(self) -> int:
        return self.jobs + 1

    @cached_property
    def attribute(self) -> Attribute:
        """All cells as one attribute of two columns."""
        code: Key = (self.marginal.industry, self.marginal.state)
        jobs = tuple((*k, *s) for k in self.industry.categories for s in self.state.categories)
        lookup = {
            (*industry, *state): k * self.states + s
            for industry, k in self.industry.lookup.items()
            for state, s in self.state.lookup.items()
        }
        marginal = (_padded(code[0], self.industry), _padded(code[1], self.state))  # as recorded values are compared
        widths = (self.industry.width_of(0), self.state.width_of(0))
        return Attribute(
            name=f"{self.table} destination",
            columns=(*self.industry.columns, *self.state.columns),
            source=(*self.industry.source, *self.state.source),
            categories=jobs if self.marginal.undeclared else (*jobs, code),
            lookup={**lookup, marginal: len(jobs)},
            absent=len(jobs) if self.marginal.missing else None,
            other=code if self.marginal.undeclared else None,
            width=widths if widths != (None, None) else None,
            provenance="; ".join(dict.fromkeys(p for p in (self.industry.provenance, self.state.provenance) if p)),
        )

    def categories(self, to: Sequence[Attribute], where: str) -> Numbers:
        """The cell of coarser destinations that each job lies in, in their own mixed-radix numbering."""
        place = np.zeros((self.industries, self.states), np.int64)
        taken: set[str] = set()
        for attribute in to:
            for role, axis in (("industry", 0), ("state", 1)):
                parents = getattr(self, role).within(attribute)
                if parents is not None and role not in taken:
                    taken.add(role)
                    place = place * attribute.size + np.expand_dims(parents, 1 - axis)
                    break
            else:
                raise SpecError(
                    f"{attribute.name!r} does not consist of whole categories of {self.industry.name!r} or "
                    f"{self.state.name!r}, or is a second attribute for one of them",
                    where=where,
                    do="name one of them, or a coarser level of its hierarchy",
                )
        return place.reshape(-1)

    def state_of(self) -> Numbers:
        """The state of each job."""
        return np.tile(np.arange(self.states), self.industries)


def _padded(code: str, attribute: Attribute) -> str:
    return code.rjust(attribute.width_of(0) or 0, "0")
