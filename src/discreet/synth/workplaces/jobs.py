"""Generates jobs and their holders in fixed blocks of establishments; most workers have one job, a few have two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.synth.draws import Array, draw_quantiles
from discreet.synth.workplaces.employers import BLOCK, Employers, Purpose, stream
from discreet.synth.workplaces.workforce import CELLS, EDUCATIONS, ETHNICITIES, MIXES, RACES

SECOND = 0.05  # share of jobs proposed as second jobs; without a matching worker they become first jobs
ATTRIBUTES = ("sex", "education", "age", "race", "ethnicity")


@dataclass(frozen=True)
class JobRows:
    """The jobs of a block, shuffled. A worker's attributes are at the position of the worker's first job.

    `holder` is the position of the first job of each job's worker: its own, unless it is a second job.
    """

    first: int  # number of jobs in earlier blocks
    workplace: Array  # number of the establishment; negative for one that is not in the frame
    holder: Array
    sex: Array
    education: Array
    age: Array
    race: Array
    ethnicity: Array
    listed: Array  # whether the holder of this first job is in the list of workers

    def __len__(self) -> int:
        return len(self.workplace)


def block_count(frame: Employers) -> int:
    """The number of blocks, those of the establishments."""
    return -(-len(frame) // BLOCK)


def block(frame: Employers, number: int, first: int, mixes: Array) -> JobRows:
    """The jobs of block `number`; `mixes` are those of `workforce.mixes`."""
    counts = frame.block(number)
    rng = stream(frame.seed, Purpose.JOBS, number)
    kind = np.repeat(np.arange(counts.size, dtype=np.int32), counts.ravel())
    rng.shuffle(kind)
    own, cell = np.divmod(kind, CELLS)
    holder = _holders(own, cell.astype(np.int8), rng)
    mix = rng.integers(0, MIXES, len(counts), dtype=np.int8)
    sector = frame.sector[number * BLOCK : (number + 1) * BLOCK]
    others = mixes[sector[own], mix[own], draw_quantiles(rng, len(own))]
    age_race, ethnicity = np.divmod(others, np.int8(len(ETHNICITIES)))
    age, race = np.divmod(age_race, np.int8(len(RACES)))
    sex, education = np.divmod(cell.astype(np.int8), np.int8(len(EDUCATIONS)))
    workplace = own.astype(np.int64) + number * BLOCK
    return JobRows(first, workplace, holder, sex, education, age, race, ethnicity, holder == np.arange(len(holder)))


def _holders(own: Array, cell: Array, rng: np.random.Generator) -> Array:
    """The holder of each job. A second job goes to the next worker of the same sex and education, if employed
    elsewhere: an establishment's counts of jobs and of workers by sex and education then agree, second jobs included.
    """
    order = np.argsort(cell, kind="stable").astype(np.int32)
    second = rng.random(len(order), dtype=np.float32) < SECOND
    second[:1] = False
    second[1:] &= ~second[:-1] & (cell[order[1:]] == cell[order[:-1]]) & (own[order[1:]] != own[order[:-1]])
    holder = np.arange(len(order), dtype=np.int32)
    later = np.flatnonzero(second)
    holder[order[later]] = order[later - 1]
    return holder
