"""NAICS sectors with their rough share of jobs, and which ones a field of study leads to.

The codes are real (as LEHD writes them); labels are ours, affinities invented.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.synth.draws import Array
from discreet.synth.education.fields import FAMILIES


class Sector(NamedTuple):
    """A sector: NAICS code, label, and per mille of the country's jobs (rounded, only a weight)."""

    code: str
    label: str
    jobs: float


SECTORS = (
    Sector("11", "Farming, forestry and fishing", 9),
    Sector("21", "Mining, oil and gas", 5),
    Sector("22", "Utilities", 6),
    Sector("23", "Construction", 51),
    Sector("31-33", "Manufacturing", 86),
    Sector("42", "Wholesale trade", 41),
    Sector("44-45", "Retail trade", 107),
    Sector("48-49", "Transport and warehousing", 43),
    Sector("51", "Information", 21),
    Sector("52", "Finance and insurance", 42),
    Sector("53", "Real estate and rental", 16),
    Sector("54", "Professional and technical services", 66),
    Sector("55", "Head offices", 16),
    Sector("56", "Administrative and waste services", 63),
    Sector("61", "Education", 85),
    Sector("62", "Health care and social assistance", 143),
    Sector("71", "Arts and recreation", 17),
    Sector("72", "Hotels and restaurants", 92),
    Sector("81", "Other services", 32),
    Sector("92", "Public administration", 59),
)

AFFINITY: dict[str, dict[str, float]] = {  # family -> sector -> how many times likelier than its jobs; others 1
    "01": {"11": 40, "31-33": 2, "42": 4, "54": 2, "92": 2},
    "03": {"11": 8, "22": 4, "54": 4, "56": 2, "92": 5},
    "04": {"23": 5, "53": 3, "54": 18},
    "09": {"51": 12, "54": 4, "61": 2, "71": 2},
    "11": {"31-33": 2, "51": 14, "52": 3, "54": 10, "55": 3},
    "12": {"71": 2, "72": 8, "81": 20},
    "13": {"61": 25, "62": 2},
    "14": {"21": 10, "22": 8, "23": 3, "31-33": 9, "51": 2, "54": 9},
    "15": {"22": 8, "23": 4, "31-33": 8, "54": 3},
    "16": {"54": 2, "61": 6, "92": 2},
    "19": {"61": 6, "62": 6},
    "22": {"52": 2, "54": 20, "92": 5},
    "23": {"51": 4, "54": 2, "61": 6},
    "26": {"31-33": 2, "54": 4, "61": 3, "62": 3},
    "27": {"51": 4, "52": 6, "54": 5, "61": 4},
    "30": {"51": 8, "52": 6, "54": 9, "55": 3},
    "40": {"21": 6, "31-33": 4, "54": 7, "61": 4},
    "42": {"61": 2, "62": 5},
    "43": {"56": 2, "92": 15},
    "44": {"61": 2, "62": 10, "92": 3},
    "45": {"52": 3, "54": 3, "61": 2, "92": 4},
    "46": {"22": 8, "23": 20},
    "47": {"23": 6, "44-45": 4, "48-49": 3, "81": 10},
    "48": {"21": 5, "23": 6, "31-33": 10},
    "50": {"51": 5, "54": 2, "61": 3, "71": 12},
    "51": {"61": 2, "62": 14},
    "52": {"42": 2, "52": 5, "53": 3, "54": 3, "55": 5},
    "54": {"61": 5, "92": 3},
}


def affinities() -> Array:
    """Family x sector: how many times likelier than its jobs; a family without an entry takes any job."""
    return np.array([[AFFINITY.get(family, {}).get(sector.code, 1.0) for sector in SECTORS] for family in FAMILIES])


def job_shares() -> Array:
    """Each sector's share of the country's jobs."""
    jobs: Array = np.array([sector.jobs for sector in SECTORS])
    shares: Array = jobs / jobs.sum()
    return shares
