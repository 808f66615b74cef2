"""What 002 prints: the numbers that ours stand beside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """A cell of Tables 1 and 3 as it goes in: its codes, its exact numbers, and the noise of its count."""

    occupation: str
    requirements: tuple[int, int, int]  # 1, 2 and the last
    count: int
    total: int
    noise: int


RECORDS = (
    Record("100001", (1, 1, 1), 0, 0, 1),
    Record("100001", (1, 2, 1), 5, 100, 0),
    Record("100001", (2, 1, 1), 18, 500, -2),
    Record("100001", (2, 2, 1), 9, 300, -1),
    Record("100001", (1, 2, 2), 0, 0, 0),
)
TABLE_3 = (("1", "w̄"), ("5", "100"), ("16", "500 − 2w̄"), ("8", "300 − w̄"), ("0", "0"))  # perturbed: count, total
QUERY = "100 + w̄"  # §3.4: requirement 1 = 1, by the first two records

TABLE_2 = ("0.76159", "0.10307", "0.013949", "0.0018878", "0.0002555", "0.0000346", "0.0000047", "0.0000006")
DELTA = "0.0000006"
CHANCE, VARIANCE = "0.235", "0.00182"  # of ±1, and of the noise, at ε = 7 and cap 1 (§4)

CASES = 182
SHAPE = (5, 4, 3, 3, 3, 2, 2, 2, 2, 2)  # the only levels from two to five with 17,280 cells in ten variables
CYCLES, RUNS, CONVERGED = 10, 1_000, 224
WITHOUT = ("6.592", "3.255", "1.340", "0.522", "0.200", "0.077", "0.030", "0.012", "0.005", "0.002")
WITH = ("0.000", "1.684", "1.082", "0.494", "0.200", "0.078", "0.030", "0.012", "0.004", "0.002")
REDUCTION = ("100.0%", "48.3%", "19.3%", "5.4%", *["0.0%"] * 6)
