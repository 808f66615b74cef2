"""Table 2 of 003, printed, recomputed and corrected: the smallest ε for which Algorithm 3 keeps a δ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.methods.employer.mechanisms.smooth_laplace import SmoothLaplace

PRINTED = {  # 003, App. C: labelled δ, then α -> ε
    Fraction(5, 100): {Fraction(1, 100): "0.105", Fraction(1, 10): "1.01", Fraction(1, 5): "1.932"},
    Fraction(5, 10**4): {Fraction(1, 100): "0.15", Fraction(1, 10): "1.45", Fraction(1, 5): "2.13"},
}
CORRECTED = {Fraction(5, 100): Fraction(5, 1000)}  # the rows labelled .05 are those of .005


@dataclass(frozen=True)
class Entry:
    """One entry: as printed, by the paper's condition at the δ printed and at the δ meant, and by the exact δ."""

    labelled: Fraction
    meant: Fraction
    alpha: Fraction
    printed: str
    at_labelled: Fraction
    at_meant: Fraction
    exact_labelled: Fraction
    exact_meant: Fraction

    @property
    def right(self) -> bool:
        """Whether the printed ε is that of the δ meant, to the digits that are printed."""
        return _agrees(self.printed, self.at_meant)

    @property
    def labelled_right(self) -> bool:
        """Whether it is that of the δ it is printed beside."""
        return _agrees(self.printed, self.at_labelled)


def _agrees(printed: str, found: Fraction) -> bool:
    return abs(Fraction(printed) - found) <= Fraction(1, 10 ** len(printed.partition(".")[2]))


def table2() -> tuple[Entry, ...]:
    """All six entries. The paper's ε is −2·ln(δ)·ln(1+α)."""
    entries = []
    for labelled, row in PRINTED.items():
        meant = CORRECTED.get(labelled, labelled)
        for alpha, printed in row.items():
            paper, exact = (
                [SmoothLaplace.least_epsilon(alpha, delta, constants=constants) for delta in (labelled, meant)]
                for constants in ("printed", "exact")
            )
            entries.append(Entry(labelled, meant, alpha, printed, *paper, *exact))
    return tuple(entries)
