"""Weights of the correction: hires between states, employment, and the noisy flows by industry."""

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
    """The components of the weights, and the lookup from groups to their rows."""

    table: str
    spec: Correction
    base: Path
    destinations: Destinations
    home: Coarsening | None
    family: Coarsening | None

    @cached_property
    def jobs(self) -> Floats:
        """Hires, by home and state."""
        declared, states = self.spec.job_flows, [key[0] for key in self.destinations.state.categories]
        if declared is None or self.home is None:
            return np.ones((1, len(states)))
        homes = [key[0] for key in self.home.coarse.attributes[0].published]
        columns = (declared.origin, declared.destination, declared.value)
        return read_matrix(self.base / declared.file, columns, homes, states, self._where("job_flows"))

    @cached_property
    def employment(self) -> Floats:
        """Jobs, by industry and state."""
        industries = [key[0] for key in self.destinations.industry.categories]
        states = [key[0] for key in self.destinations.state.categories]
        if (declared := self.spec.employment) is None:
            return np.ones((len(industries), len(states)))
        columns = (declared.industry, declared.state, declared.value)
        return read_matrix(self.base / declared.file, columns, industries, states, self._where("employment"))

    def check(self) -> None:
        """Refuse before the reservation what the correction would refuse after it."""
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
        """For every home: the number of its destination state, or −1."""
        if self.home is None:
            return np.empty(0, np.int64)
        states = {key: s for s, key in enumerate(self.destinations.state.categories)}
        numbers = np.array([states.get(key, -1) for key in self.home.coarse.attributes[0].published])
        if (numbers < 0).all():
            raise DomainError(
                "has no category that is a destination state",
                where=f"tables.{self.table}.home_state",
                do=f"write states as {self.destinations.state.name!r} does",
            )
        return numbers

    def homes(self, groups: Numbers) -> Numbers:
        """The row of `jobs` for each group."""
        if self.home is None or self.spec.job_flows is None:
            return np.zeros(len(groups), np.int64)
        return self.home.parents(groups)

    def families(self, groups: Numbers) -> Numbers:
        """The row of the industry flows for each group."""
        return np.zeros(len(groups), np.int64) if self.family is None else self.family.parents(groups)

    def start(self) -> FlowCounts:
        """Sums of flows by family and industry, all zero; without families all weights are equal."""
        if self.family is None:
            return np.ones((1, self.destinations.industries), np.int64)
        return np.zeros((self.family.coarse.cells, self.destinations.industries), np.int64)

    def add(self, sums: FlowCounts, first: int, measured: FlowCounts) -> None:
        """Add the noisy flows of groups first, first + 1, … by industry, over all states and groups of a family."""
        if self.family is not None:
            industries = measured[:, :-1].reshape(len(measured), self.destinations.industries, -1).sum(axis=2)
            np.add.at(sums, self.families(np.arange(first, first + len(measured))), industries)
