"""The three workloads of Haney et al. 2017, §10 on synthetic establishments, with and without noise infusion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.noise.key import ReleaseKey
from discreet.noise.stream import Stream
from discreet.synth.industries import OWNERSHIP
from discreet.synth.sectors import SECTORS
from discreet.synth.workplaces.employers import Employers, employers
from discreet.synth.workplaces.places import STRATA
from discreet.synth.workplaces.workforce import CELLS, EDUCATIONS
from discreet_studies.employer.comparators.infusion import InfusedCounts, Infusion, mean_abs, sums

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALL = "all"
PARTS = (ALL, *STRATA)
TRIALS = 20  # §10
WORKER_CELLS = CELLS
GRADUATE_WOMAN = CELLS - 1  # the last sex and the last education: Ranking 2
GRADUATES = tuple(range(len(EDUCATIONS) - 1, CELLS, len(EDUCATIONS)))  # of both sexes


@dataclass(frozen=True)
class CellTable:
    """Counts of jobs (cells, worker cells), of each cell's largest establishment, and noise infusion of them."""

    counts: Int64s
    largest: Int64s
    infused: InfusedCounts  # one publication, for rankings
    infusion_error: Floats  # mean |infused − true| over trials


@dataclass(frozen=True)
class TabulatedFrame:
    """Establishments with their workers, tabulated by place × sector × ownership."""

    frame: Employers
    workers: Int64s  # (establishments, sex × education)
    key: ReleaseKey
    infusion: Infusion
    trials: int

    @cached_property
    def sizes(self) -> Int64s:
        """Jobs of each establishment, as a table of one column."""
        return self.frame.size.astype(np.int64)[:, None]

    @cached_property
    def occupied(self) -> Bools:
        """Cells with at least one establishment: public knowledge (§4.1)."""
        return np.bincount(self.frame.cell, minlength=self.frame.cells) > 0

    @cached_property
    def place(self) -> Int64s:
        """Place of each cell."""
        return np.arange(self.frame.cells) // (len(SECTORS) * len(OWNERSHIP))

    @cached_property
    def stratum(self) -> NDArray[np.int8]:
        """Stratum of each cell, by population of its place."""
        return self.frame.stratum[self.place]

    @cached_property
    def establishments(self) -> CellTable:
        """Workload 1: all jobs."""
        return self._table(1)

    @cached_property
    def groups(self) -> CellTable:
        """Workloads 2 and 3: by sex × education, as single queries or all at once."""
        return self._table(3)

    @cached_property
    def largest_whole(self) -> Int64s:
        """The size of each cell's largest establishment, repeated for every worker cell."""
        largest: Int64s = np.repeat(self.establishments.largest, WORKER_CELLS, axis=1)
        return largest

    def of(self, workload: int) -> CellTable:
        """The table of workload 1, 2 or 3."""
        return self.establishments if workload == 1 else self.groups

    def parts_of(self, workload: int) -> int:
        """The number of parts into which ε is divided: only workload 3 publishes all worker cells of an
        establishment."""
        return WORKER_CELLS if workload == 3 else 1

    def removed(self, theta: int, workload: int) -> Int64s:
        """Jobs of establishments of θ or more (cells, worker cells)."""
        large = self.frame.size >= theta
        return sums(self._rows(workload)[large], self.frame.cell[large], self.frame.cells)

    def infused_with(self, infusion: Infusion, workload: int, trials: int) -> Floats:
        """Mean |infused − true| (cells, worker cells) over trials, each with fresh factors."""
        keys = [infusion_key(self.frame.seed, trial) for trial in range(trials)]
        return mean_abs(infusion, self._rows(workload), self.frame.cell, self.frame.cells, keys, _name(workload))

    def stream(self, *what: object) -> Stream:
        """Noise of a simulation, for one purpose."""
        return self.key.stream("reproduce", "employer", b"", " ".join(map(str, what)))

    def _rows(self, workload: int) -> Int64s:
        return self.sizes if workload == 1 else self.workers

    def _table(self, workload: int) -> CellTable:
        rows, cell, cells = self._rows(workload), self.frame.cell, self.frame.cells
        largest = np.zeros((cells, rows.shape[1]), np.int64)
        np.maximum.at(largest, cell, rows)
        first = self.infusion.publish(rows, cell, cells, infusion_key(self.frame.seed, 0), _name(workload))
        return CellTable(first.truth, largest, first, self.infused_with(self.infusion, workload, self.trials))


def _name(workload: int) -> str:
    return "establishments" if workload == 1 else "groups"


def infusion_key(seed: int, trial: int) -> ReleaseKey:
    """The simulation key of one agency's factors."""
    return ReleaseKey.simulation(f"reproduce employer, infusion, seed {seed}, trial {trial}")


def tabulated_frame(jobs: int, seed: int, infusion: Infusion, trials: int = TRIALS) -> TabulatedFrame:
    """Generate synthetic establishments and their workers, and tabulate them."""
    frame = employers(jobs, seed)
    key = ReleaseKey.simulation(f"reproduce employer, seed {seed}")
    return TabulatedFrame(frame, frame.workers(0, len(frame)).astype(np.int64), key, infusion, trials)
