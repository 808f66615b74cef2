"""What makes a destination likely: moves between states, employment there, and the protected flows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from discreet.arrays import Floats
from discreet.domain import Coarsening, Numbers
from discreet.errors import DomainError, ParameterError
from discreet.methods.flows.controls import read_matrix
from discreet.methods.flows.correction_controls import Controls
from discreet.methods.flows.destinations import Destinations
from discreet.methods.flows.spec import Correction
from discreet.methods.flows.sums import FlowCounts


@dataclass(frozen=True)
class FlowWeights:
    """The public part of the weights, and how groups find theirs."""

    table: str
    spec: Correction
    base: Path
    destinations: Destinations
    home: Coarsening | None
    family: Coarsening | None

    @cached_property
    def jobs(self) -> Floats:
        """Hires, by home and state."""
        asked, states = self.spec.job_flows, [key[0] for key in self.destinations.state.categories]
        if asked is None or self.home is None:
            return np.ones((1, len(states)))
        homes = [key[0] for key in self.home.coarse.attributes[0].published]
        columns = (asked.origin, asked.destination, asked.value)
        return read_matrix(self.base / asked.file, columns, homes, states, self._where("job_flows"))

    @cached_property
    def employment(self) -> Floats:
        """Jobs, by industry and state."""
        industries = [key[0] for key in self.destinations.industry.categories]
        states = [key[0] for key in self.destinations.state.categories]
        if (asked := self.spec.employment) is None:
            return np.ones((len(industries), len(states)))
        columns = (asked.industry, asked.state, asked.value)
        return read_matrix(self.base / asked.file, columns, industries, states, self._where("employment"))

    def check(self) -> None:
        """Refuse, before anything is spent, whatever the correction would refuse."""
        try:
            Controls.of(
                self.jobs, self.employment, np.ones((1, self.destinations.industries)), self.spec.marginal_weight
            )
        except ParameterError as error:
            raise ParameterError(error.what, where=f"tables.{self.table}.correction", do=error.do) from None

    def _where(self, key: str) -> str:
        return f"tables.{self.table}.correction.{key}"

    @cached_property
    def home_states(self) -> Numbers:
        """Of every home: which of the destination states it is, or -1."""
        if self.home is None:
            return np.empty(0, np.int64)
        states = {key: s for s, key in enumerate(self.destinations.state.categories)}
        found = np.array([states.get(key, -1) for key in self.home.coarse.attributes[0].published])
        if (found < 0).all():
            raise DomainError(
                "has no category that is a destination state",
                where=f"tables.{self.table}.home_state",
                do=f"write states as {self.destinations.state.name!r} does",
            )
        return found

    def homes(self, groups: Numbers) -> Numbers:
        """The row of `jobs` that each group has."""
        if self.home is None or self.spec.job_flows is None:
            return np.zeros(len(groups), np.int64)
        return self.home.parents(groups)

    def families(self, groups: Numbers) -> Numbers:
        """The row of the industry flows that each group has."""
        return np.zeros(len(groups), np.int64) if self.family is None else self.family.parents(groups)

    def start(self) -> FlowCounts:
        """Sums of flows by family and industry, all zero; without families all weights are equal."""
        if self.family is None:
            return np.ones((1, self.destinations.industries), np.int64)
        return np.zeros((self.family.coarse.cells, self.destinations.industries), np.int64)

    def add(self, sums: FlowCounts, first: int, measured: FlowCounts) -> None:
        """Add the protected flows of groups first, first + 1, …: over states, and whatever else a family has."""
        if self.family is not None:
            industries = measured[:, :-1].reshape(len(measured), self.destinations.industries, -1).sum(axis=2)
            np.add.at(sums, self.families(np.arange(first, first + len(measured))), industries)
