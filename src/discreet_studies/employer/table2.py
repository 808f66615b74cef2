"""Table 2 of 003, printed, recomputed and corrected: the smallest ε for which Algorithm 3 keeps a δ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace
from discreet_studies.texts import published


class PrintedRow(NamedTuple):
    """An entry as it is printed, and the δ that it is of."""

    labelled: Fraction
    meant: Fraction
    alpha: Fraction
    printed: str


@dataclass(frozen=True)
class PrintedEpsilon:
    """One entry: as printed, by the paper's condition at the δ printed and at the δ meant, and by the exact δ."""

    labelled: Fraction
    meant: Fraction  # the rows labelled .05 are those of .005
    alpha: Fraction
    printed: str
    at_labelled: Fraction
    at_meant: Fraction
    exact_labelled: Fraction
    exact_meant: Fraction

    @property
    def right(self) -> bool:
        """Whether the printed ε is that of the δ meant, to the digits that are printed."""
        return abs(Fraction(self.printed) - self.at_meant) <= Fraction(1, 10 ** len(self.printed.partition(".")[2]))

    @property
    def judged(self) -> str:
        """In a word."""
        return "right" if self.right else "wrong"


def table2() -> tuple[PrintedEpsilon, ...]:
    """All six entries. The paper's ε is −2·ln(δ)·ln(1+α)."""
    entries = []
    for row in published("employer", "table-2", PrintedRow):
        paper, exact = (
            [SmoothLaplace.least_epsilon(row.alpha, delta, constants=constants) for delta in (row.labelled, row.meant)]
            for constants in ("printed", "exact")
        )
        entries.append(PrintedEpsilon(*row, *paper, *exact))
    return tuple(entries)
