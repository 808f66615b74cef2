"""Synthetic employment and hires, as public and incomplete control totals, and the sectors of graduates' jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.synth.draws import Array, StreamPurpose, generator, quantile_tables
from discreet.synth.lists import column
from discreet.synth.sectors import affinities, job_shares
from discreet.synth.states import STATES, destination_shares

JOBS, HIRES = 430_000, 30_000  # for every million people
SPREAD = 0.35  # of log employment and log hires about their expectation given size and distance
SMALL_JOBS, SMALL_HIRES = 5_000, 60  # below these a published number may be suppressed, and is written as 0
SUPPRESSED = 0.3


@dataclass(frozen=True)
class Economy:
    """Public control totals with gaps, and the latent distribution of graduates' sectors."""

    employment: Array  # sector x state, as published
    hires: Array  # state of the last job x state of the next, as published
    work: Array  # family x state x quantile -> sector, by affinity times true employment


def generate_economy(seed: int) -> Economy:
    """Generate an economy from state sizes, sector shares, distances between states, and random effects."""
    rng = generator(seed, StreamPurpose.ECONOMY)
    millions = column(STATES, "millions")
    employment = _around(rng, JOBS * np.outer(job_shares(), millions))
    hires = _around(rng, HIRES * millions[:, None] * destination_shares())
    chances = affinities()[:, None, :] * employment.T
    return Economy(
        _published(rng, employment, SMALL_JOBS), _published(rng, hires, SMALL_HIRES), quantile_tables(chances)
    )


def _around(rng: np.random.Generator, expected: Array) -> Array:
    return np.rint(expected * rng.lognormal(0.0, SPREAD, expected.shape)).astype(np.int64)


def _published(rng: np.random.Generator, true: Array, small: int) -> Array:
    """Numbers as published, some of the small ones suppressed (written as 0)."""
    published: Array = np.where((true < small) & (rng.random(true.shape) < SUPPRESSED), 0, true)
    return published
