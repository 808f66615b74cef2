"""NAICS sectors with their rough share of jobs, and which ones a field of study leads to.

The codes are real (as LEHD writes them); labels are ours, affinities invented.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array
from discreet.synth.education.fields import FAMILIES
from discreet.synth.lists import column, entries, records


class Sector(NamedTuple):
    """A sector: NAICS code, label, and per mille of the country's jobs (rounded, only a weight)."""

    code: str
    label: str
    jobs: float


SECTORS = entries("sectors", Sector)
AFFINITY: defaultdict[str, dict[str, float]] = defaultdict(dict)  # family -> sector -> times likelier; others 1
for row in records("affinities"):
    AFFINITY[row["family"]][row["sector"]] = float(row["times"])


def affinities() -> Array:
    """Family x sector: how many times likelier than its jobs; a family without an entry takes any job."""
    return np.array([[AFFINITY.get(family, {}).get(sector.code, 1.0) for sector in SECTORS] for family in FAMILIES])


def job_shares() -> Array:
    """Each sector's share of the country's jobs."""
    jobs = column(SECTORS, "jobs")
    shares: Array = jobs / jobs.sum()
    return shares
