"""Discrete Laplace (two-sided geometric) noise for one job, or for whole establishments of bounded size (Haney et al.
2017, §6). Proof: discrete.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from flint import arb

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms import LARGEST, Floats, Int64s, ProtectedUnit, SymmetricMechanism
from discreet.methods.employer.mechanisms.parameters import (
    check_choice,
    check_level,
    check_pair,
    clamped_sum,
    least,
    refuse,
)
from discreet.noise.interval_arithmetic import ball, positive_fraction
from discreet.noise.samplers.discrete import SMALLEST_RATE, DiscreteLaplace
from discreet.noise.stream import Stream
from discreet.privacy.exact import format_exact


@dataclass(frozen=True)
class FixedScaleMechanism(SymmetricMechanism, ABC):
    """count + K, P(K = k) ∝ e^(−rate·|k|), clamped to ± 2⁵¹: the same distribution in every cell."""

    delta: ClassVar[Fraction] = Fraction(0)  # the bound is pure
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_fraction("epsilon", self.epsilon))
        if self.epsilon / self.jobs < SMALLEST_RATE:
            smallest = least(lambda: ball(SMALLEST_RATE * self.jobs), lambda e: e / self.jobs >= SMALLEST_RATE)
            raise refuse("noise with a rate below 2^-40 is not supported", smallest, "")
        _ = self.distribution  # refuses a rate that is too large

    @property
    @abstractmethod
    def jobs(self) -> int:
        """Global sensitivity: the largest difference between neighbouring data sets, in jobs."""

    @cached_property
    def distribution(self) -> DiscreteLaplace:
        """Discrete Laplace of rate ε/jobs."""
        return DiscreteLaplace(self.epsilon / self.jobs)

    def draw(self, counts: Int64s, largest: Int64s, stream: Stream, first: int) -> Int64s:
        """The published integers of cells first, first+1, …; `largest` is not used."""
        check_pair(counts, largest)
        return clamped_sum(counts, self.distribution.draw(stream, first, counts.size))

    def mean_abs(self, counts: Floats, largest: Floats) -> Floats:  # noqa: ARG002 (the mechanisms' signature)
        """E|K|, the same for every cell."""
        return np.full(counts.shape, self.distribution.mean_abs())

    def upper(self, count: int, largest: int, k: int) -> arb:  # noqa: ARG002
        """P(published ≥ k)."""
        if not -LARGEST < k <= LARGEST:
            return arb(int(k <= 0))
        m = k - count
        return self.distribution.tail(m) / 2 if m > 0 else 1 - self.distribution.tail(1 - m) / 2

    def margin(self, level: Fraction, largest: Int64s) -> Int64s:
        """The same margin for every cell."""
        return np.full(largest.shape, self.distribution.margin(check_level(level)), dtype=np.int64)

    def describe(self) -> str:
        rate = format_exact(self.distribution.rate)
        return f"count + discrete Laplace (two-sided geometric) noise, P(k) ∝ exp(−{rate}·|k|)"


@dataclass(frozen=True)
class Geometric(FixedScaleMechanism):
    """Rate ε: protects one job (edge privacy, Haney et al. 2017, §6), not the size of an establishment."""

    name: ClassVar[str] = "geometric"
    protects: ClassVar[ProtectedUnit] = "job"

    @property
    def jobs(self) -> int:
        return 1


@dataclass(frozen=True)
class Truncated(FixedScaleMechanism):
    """Protects an establishment entirely, once those with `theta` or more jobs are excluded (node privacy, Haney et al.
    2017, §6).

    tight: each remaining establishment has at most θ−1 jobs, rate ε/(θ−1); printed: rate ε/θ. The caller excludes the
    large ones; counts and margins of error refer to the rest.
    """

    name: ClassVar[str] = "truncated"
    protects: ClassVar[ProtectedUnit] = "establishment"
    theta: int
    noise: Literal["tight", "printed"] = "tight"

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, ("tight", "printed"))
        if type(self.theta) is not int or not 2 <= self.theta < LARGEST:
            raise ParameterError(
                "theta is an integer from 2 to 2^51 − 1", where="theta", do="establishments below it are counted"
            )
        super().__post_init__()

    @property
    def jobs(self) -> int:
        return self.theta - 1 if self.noise == "tight" else self.theta
