"""Noise proportional to χ/N^r (Chetty & Friedman 2019, Step 4), in grid steps: exactly rounded Laplace or normal.

The estimate is first rounded to the grid, so its sensitivity is up to one step larger than that of the statistic: the
scale is (χ/N^r + 1 step)/ε, its numerator rounded up to an integer number of steps. N may be public, listed by cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Literal

import numpy as np

from discreet.domain import Domain
from discreet.errors import DomainError
from discreet.methods.public_cells import listed
from discreet.methods.sensitivity.spec import PublicSizes
from discreet.methods.sensitivity.statistics import Floats, Int64s
from discreet.noise.interval_arithmetic import ball, rounded_up
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.noise.samplers.grid_noise import GridNoise
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.samplers.normal import Normal
from discreet.noise.stream import Stream

BOUND = Fraction(2**51)  # grid steps at which noise is clamped
CUT = 1 << 50  # grid steps at which published numbers are
MOST = 10**12  # records of a cell, in a public list


@dataclass(frozen=True)
class EstimateNoise:
    """The noise of a table of estimates: its distribution, the ε of each quantity, and N in its scale."""

    distribution: Literal["laplace", "normal"]
    epsilon: Fraction
    decay: Fraction
    size: Literal["bound", "true", "public"]
    failure: Fraction | None  # probability that the lower bound on a count fails

    @cached_property
    def unit(self) -> GridNoise:
        """The noise for sensitivity one: Laplace(1/ε), or normal of the same variance, (√2/ε)²."""
        if self.distribution == "laplace":
            return Laplace(1 / self.epsilon, Fraction(1), BOUND)
        return Normal(rounded_up(lambda: ball(2).sqrt() / ball(self.epsilon)), Fraction(1), BOUND)

    @cached_property
    def counting(self) -> DiscreteLaplace | GridNoise:
        """The noise of counts: discrete Laplace (two-sided geometric), or normal rounded to integers."""
        return DiscreteLaplace(self.epsilon) if self.distribution == "laplace" else self.unit

    @cached_property
    def margin(self) -> int:
        """m with P(noise of a count > m) ≤ `failure`: count − m is a lower bound on N. 0 without one."""
        return 0 if self.failure is None else self.counting.margin(1 - 2 * self.failure)

    @property
    def deviation_of_count(self) -> float:
        """The standard deviation of a count's noise."""
        if isinstance(self.counting, DiscreteLaplace):
            return sqrt(self.counting.variance())
        return float(self.counting.scale)

    def count(self, true: Int64s, stream: Stream, first: int) -> Int64s:
        """Protected counts of cells first, first + 1, …: the sum is clamped well before its noise is (ADR 0031)."""
        noisy: Int64s = np.clip(true + self.counting.draw(stream, first, true.size), -CUT, CUT)
        return noisy

    def multiples(self, chi: Int64s, size: Int64s) -> Int64s:
        """⌈χ/N^r⌉ + 1, in grid steps: the sensitivity of a rounded estimate."""
        scaled = chi / np.maximum(size, 1).astype(np.float64) ** float(self.decay)
        return np.ceil(scaled * (1 + 2.0**-40)).astype(np.int64) + 1

    def draw(self, multiples: Int64s, stream: Stream, first: int) -> Int64s:
        """The noise of estimates, given their sensitivities in grid steps."""
        return self.unit.draw(stream, first, multiples.size, multiples)

    def deviation(self, multiples: Int64s) -> Floats:
        """Its standard deviation, in grid steps: √2·sensitivity/ε for both distributions."""
        return multiples.astype(np.float64) * (sqrt(2) / float(self.epsilon))

    def scale(self, deviation: Floats) -> Floats:
        """The parameter of the distribution with this standard deviation: b of Laplace, σ of the normal."""
        return deviation / sqrt(2) if self.distribution == "laplace" else deviation


def public_sizes(spec: PublicSizes, domain: Domain, base: Path) -> Int64s:
    """One number per cell, at least 1; a cell that is not listed counts as one record, which gives it the most
    noise."""
    sizes = np.ones(domain.cells, np.int64)

    def refused(what: str) -> DomainError:
        return DomainError(
            what, where=f"cell_size, file {spec.public}", do="list every cell once, with its codes and a number"
        )

    for line, cell, text in listed(base / spec.public, domain, spec.column, "size", refused):
        if not text.isdecimal() or not 0 <= int(text) <= MOST:
            raise refused(f"line {line} has no integer number of records")
        sizes[cell] = max(int(text), 1)
    return sizes
