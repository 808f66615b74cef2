"""The numbers printed in Li & Krenzke 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from discreet_studies.texts import published


@dataclass(frozen=True)
class PrintedRecord:
    """A cell of Tables 1 and 3: codes (requirements 1, 2, the last), exact numbers, the count's noise, perturbed."""

    occupation: str
    requirements: tuple[str, ...]
    count: int
    total: int
    noise: int
    perturbed_count: str
    perturbed_total: str


class PrintedVariances(NamedTuple):
    """A row of Table 4: noise without and with calibration, by number of variables of the table."""

    dimension: str
    without: str
    calibrated: str
    reduction: str


class PrintedNoise(NamedTuple):
    """A row of Table 2."""

    k: int
    probability: str


RECORDS = published("hypercube", "tables-1-and-3", PrintedRecord)
QUERY = "100 + w̄"  # §3.4: requirement 1 = 1, by the first two records

TABLE_2 = tuple(row.probability for row in published("hypercube", "table-2", PrintedNoise))
DELTA = "0.0000006"
CHANCE, VARIANCE = "0.235", "0.00182"  # of ±1, and of the noise, at ε = 7 and cap 1 (§4)

CASES = 182
SHAPE = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)  # the only levels from two to five with 17,280 cells in ten variables
CYCLES, RUNS, CONVERGED = 10, 1_000, 224
TABLE_4 = published("hypercube", "table-4", PrintedVariances)
WITHOUT, WITH = tuple(row.without for row in TABLE_4), tuple(row.calibrated for row in TABLE_4)
