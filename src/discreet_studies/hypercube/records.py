"""Tables 1 and 3 of 002 from their five records, and what an attacker makes of them (002, §3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet_studies.hypercube.printed import RECORDS, PrintedRecord


@dataclass(frozen=True)
class Weighted:
    """c + m·w̄, w̄ being the average weight, which the paper leaves open."""

    constant: int
    multiple: int

    def __add__(self, other: Weighted) -> Weighted:
        return Weighted(self.constant + other.constant, self.multiple + other.multiple)

    def at(self, average: Fraction) -> Fraction:
        """Its value for a w̄."""
        return self.constant + self.multiple * average

    def __str__(self) -> str:
        if self.multiple == 0:
            return str(self.constant)
        size = "" if abs(self.multiple) == 1 else abs(self.multiple)
        if self.constant == 0:
            return f"{'−' if self.multiple < 0 else ''}{size}w̄"
        return f"{self.constant} {'−' if self.multiple < 0 else '+'} {size}w̄"


@dataclass(frozen=True)
class Perturbed:
    """What is published of a record, and the attack: total − w̄·count = W + k·w̄ − w̄·(n + k) = W − w̄·n."""

    record: PrintedRecord

    @property
    def count(self) -> int:
        return self.record.count + self.record.noise

    @property
    def total(self) -> Weighted:
        return Weighted(self.record.total, self.record.noise)

    @property
    def attacked(self) -> Weighted:
        """Computed from published numbers alone."""
        return self.total + Weighted(0, -self.count)

    def residue(self, average: Fraction) -> Fraction:
        """The total alone, without the count: total mod w̄ = W mod w̄, whatever the noise."""
        return self.total.at(average) % average

    @property
    def truth(self) -> Weighted:
        """W − w̄·n, of exact numbers."""
        return Weighted(self.record.total, -self.record.count)


def table3() -> tuple[Perturbed, ...]:
    """All five."""
    return tuple(map(Perturbed, RECORDS))


def query() -> Weighted:
    """§3.4: employment with requirement 1 = 1 of the first two records, by adding up what is published."""
    first, second = table3()[:2]
    return first.total + second.total


def average() -> Fraction:
    """w̄ of the five records alone: the smallest example of one."""
    return Fraction(sum(one.total for one in RECORDS), sum(one.count for one in RECORDS))
