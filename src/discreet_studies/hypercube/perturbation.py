"""Table 2 of Li & Krenzke 2020 and its δ: exact probabilities, and the exact privacy loss by enumeration of all
outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from discreet.noise.interval_arithmetic import ball
from discreet.noise.samplers.discrete import BITS, DiscreteLaplace
from discreet_studies.hypercube import printed

TABLE_2 = DiscreteLaplace(Fraction(2), cap=7)
EVALUATED = DiscreteLaplace(Fraction(7), cap=1)  # §4
SHIFTS = (1, 2, 3)
DIGITS = 40  # of the interval midpoint before rounding: the printed digits are far from a tie


def probability(distribution: DiscreteLaplace, k: int) -> arb:
    """P(K = k), for one sign."""
    with ctx.workprec(BITS):
        beyond = distribution.tail(abs(k) + 1) if distribution.cap is None or abs(k) < distribution.cap else arb(0)
        return 1 - distribution.tail(1) if k == 0 else (distribution.tail(abs(k)) - beyond) / 2


def rounded(value: arb, like: str) -> str:
    """Rounded to as many decimals as a printed number."""
    exact = Decimal(value.mid().str(DIGITS, radius=False))
    return f"{exact.quantize(Decimal(like)):f}"


@dataclass(frozen=True)
class PrintedProbability:
    """A row of Table 2."""

    k: int
    printed: str
    exact: arb

    @property
    def ours(self) -> str:
        """Our value, to the printed digits."""
        return rounded(self.exact, self.printed)

    @property
    def right(self) -> bool:
        return Decimal(self.ours) == Decimal(self.printed)


def table2() -> tuple[PrintedProbability, ...]:
    """The rows from 0 to the cap."""
    return tuple(PrintedProbability(k, text, probability(TABLE_2, k)) for k, text in enumerate(printed.TABLE_2))


@dataclass(frozen=True)
class ExactLoss:
    """For one change of records: the loss ε allowed, the least δ by enumeration of all outputs, and the δ of a
    formula."""

    change: str
    epsilon: Fraction
    by_enumeration: arb
    formula: str
    by_formula: arb

    @property
    def equal(self) -> bool:
        """Whether both intervals overlap, each narrower than 10⁻⁵⁰."""
        return bool(self.by_enumeration.overlaps(self.by_formula)) and max(
            self.by_enumeration.rad(), self.by_formula.rad()
        ) < arb("1e-50")


def losses(distribution: DiscreteLaplace = TABLE_2) -> tuple[ExactLoss, ...]:
    """A count that changes by 1, 2, 3 at ε, 2ε, 3ε; and a record that changes its cell, at 2ε."""
    rows = [
        ExactLoss(
            f"one count changes by {shift}",
            shift * distribution.rate,
            hockey_stick(distribution, (shift,), shift),
            "P(K > cap − shift)",
            distribution.delta(shift),
        )
        for shift in SHIFTS
    ]
    end = distribution.delta()
    with ctx.workprec(BITS):
        moved = ExactLoss(
            "a record moves to another cell",
            2 * distribution.rate,
            hockey_stick(distribution, (1, -1), 2),
            "2p − p²",
            2 * end - end**2,
        )
    return (*rows, moved)


def hockey_stick(distribution: DiscreteLaplace, shifts: tuple[int, ...], times: int) -> arb:
    """Σ (P(o) − e^(times·rate)·Q(o))⁺ over all outputs o, where Q has the cells' counts shifted by these amounts.

    P(o) = a^p/Z with an integer p, so signs are determined in integer arithmetic, without rounding.
    """
    with ctx.workprec(BITS):
        a = (-ball(distribution.rate)).exp()
        norm = sum((a ** abs(k) for k in range(-_cap(distribution), _cap(distribution) + 1)), arb(0)) ** len(shifts)
        return sum((a**p - (0 if q is None else a**q) for p, q in _pairs(distribution, shifts, times)), arb(0)) / norm


def _pairs(distribution: DiscreteLaplace, shifts: tuple[int, ...], times: int) -> Iterator[tuple[int, int | None]]:
    """Exponents of P and of e^(times·rate)·Q, None if it is 0, where P is the larger: a is below 1."""
    cap = _cap(distribution)
    for output in product(range(-cap, cap + 1), repeat=len(shifts)):
        p = sum(map(abs, output))
        others = [abs(k - shift) for k, shift in zip(output, shifts, strict=True)]
        q = sum(others) - times if max(others) <= cap else None
        if q is None or q > p:
            yield p, q


def _cap(distribution: DiscreteLaplace) -> int:
    return distribution.cap or 0


@dataclass(frozen=True)
class EvaluationNoise:
    """§4 at ε = 7 and cap 1: the probability that a cell changes and the noise variance, which are equal."""

    change: arb
    variance: float
    delta: arb
    cells: int

    @property
    def changed(self) -> float:
        """Expected number of cells of the cube that change."""
        return self.cells * float(self.change)

    @property
    def margins_unchanged(self) -> float:
        """Probability that all cells of all one-way tables stay unchanged under the same noise."""
        return float(1 - self.change) ** sum(printed.SHAPE)


def chance(cells: int) -> EvaluationNoise:
    """E K² = P(K = ±1), since |K| ≤ 1."""
    return EvaluationNoise(EVALUATED.tail(1), EVALUATED.variance(), EVALUATED.delta(), cells)
