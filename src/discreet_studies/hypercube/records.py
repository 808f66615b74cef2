"""Tables 1 and 3 of Li & Krenzke 2020 from their five records, and an attack on them (§3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet_studies.hypercube.printed import RECORDS, PrintedRecord


@dataclass(frozen=True)
class WeightedSum:
    """c + m·w̄, where w̄ is the average weight, which the paper does not specify."""

    constant: int
    multiple: int

    def __add__(self, other: WeightedSum) -> WeightedSum:
        return WeightedSum(self.constant + other.constant, self.multiple + other.multiple)

    def at(self, average: Fraction) -> Fraction:
        """The value for a given w̄."""
        return self.constant + self.multiple * average

    def __str__(self) -> str:
        if self.multiple == 0:
            return str(self.constant)
        size = "" if abs(self.multiple) == 1 else abs(self.multiple)
        if self.constant == 0:
            return f"{'−' if self.multiple < 0 else ''}{size}w̄"
        return f"{self.constant} {'−' if self.multiple < 0 else '+'} {size}w̄"


@dataclass(frozen=True)
class PerturbedRecord:
    """A published record and the attack on it: total − w̄·count = W + k·w̄ − w̄·(n + k) = W − w̄·n."""

    record: PrintedRecord

    @property
    def count(self) -> int:
        return self.record.count + self.record.noise

    @property
    def total(self) -> WeightedSum:
        return WeightedSum(self.record.total, self.record.noise)

    @property
    def attack_result(self) -> WeightedSum:
        """Computed from published numbers alone."""
        return self.total + WeightedSum(0, -self.count)

    def residue(self, average: Fraction) -> Fraction:
        """From the total alone, without the count: total mod w̄ = W mod w̄, for any noise."""
        return self.total.at(average) % average

    @property
    def truth(self) -> WeightedSum:
        """W − w̄·n from the exact numbers."""
        return WeightedSum(self.record.total, -self.record.count)


def table3() -> tuple[PerturbedRecord, ...]:
    """All five records."""
    return tuple(map(PerturbedRecord, RECORDS))


def query() -> WeightedSum:
    """§3.4: employment with requirement 1 = 1 of the first two records, as the sum of published totals."""
    first, second = table3()[:2]
    return first.total + second.total


def average() -> Fraction:
    """w̄ of the five records alone."""
    return Fraction(sum(one.total for one in RECORDS), sum(one.count for one in RECORDS))
