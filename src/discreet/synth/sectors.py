"""NAICS sectors with approximate shares of jobs, and the sectors that a field of study leads to.

The codes are real (as LEHD writes them); labels and affinities are our own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array
from discreet.synth.education.fields import FAMILIES
from discreet.synth.lists import column, entries, records


class Sector(NamedTuple):
    """A sector: NAICS code, label, and per mille of national jobs (rounded; used as a weight)."""

    code: str
    label: str
    jobs: float


SECTORS = entries("sectors", Sector)
AFFINITY: defaultdict[str, dict[str, float]] = defaultdict(dict)  # family -> sector -> relative likelihood; others 1
for row in records("affinities"):
    AFFINITY[row["family"]][row["sector"]] = float(row["times"])


def affinities() -> Array:
    """Family x sector: likelihood relative to the share of jobs; a family without an entry takes any job."""
    return np.array([[AFFINITY.get(family, {}).get(sector.code, 1.0) for sector in SECTORS] for family in FAMILIES])


def job_shares() -> Array:
    """Each sector's share of the country's jobs."""
    jobs = column(SECTORS, "jobs")
    shares: Array = jobs / jobs.sum()
    return shares
