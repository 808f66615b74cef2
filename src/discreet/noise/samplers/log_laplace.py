"""Log-Laplace noise on a grid: counts multiplied by e^(λ·Laplace). Proof: log_laplace.md, rounded.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_series

from discreet.arrays import Int64s
from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, positive_fraction
from discreet.noise.samplers.grid_noise import check_scale, draw_rounded, grid_limit
from discreet.noise.samplers.rounded import Rounding
from discreet.noise.stream import Stream


@dataclass(frozen=True)
class PowerOfUniform:
    """G(u) = u^power."""

    power: Fraction

    def at(self, u: arb) -> arb:
        """e^(power·ln u)."""
        return (u.log() * ball(self.power)).exp()

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of u^power around every point of the interval u."""
        series = (arb_series([u, 1], prec=n).log() * ball(self.power)).exp()
        return [series[i] for i in range(n)]


@dataclass(frozen=True)
class LogLaplace:
    """(n + shift)·factor·e^(λZ) − shift on the grid, Z Laplace, λ = exponent < 1, shift = 1/α.

    Haney et al. 2017, Algorithm 1. The mean is factor·(n + shift)/(1 − λ²) − shift: factor 1 − λ² removes the bias.
    """

    exponent: Fraction
    shift: Fraction
    grid: Fraction
    bound: Fraction
    factor: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        for name in ("exponent", "shift", "grid", "bound", "factor"):
            object.__setattr__(self, name, positive_fraction(name, getattr(self, name)))
        grid_limit(self.grid, self.bound)
        check_scale(self.factor / (self.shift.denominator * self.grid))
        check_scale(self.shift / self.grid)
        if self.exponent >= 1:
            raise ParameterError(
                "an exponent of 1 or more has no expectation",
                where="exponent",
                do="choose a larger epsilon or a smaller alpha",
            )

    @property
    def rounding(self) -> Rounding:
        """The sign bit selects U^−λ or U^λ; a cell's multiple is (n + shift)·(denominator of shift)."""
        distributions = (PowerOfUniform(-self.exponent), PowerOfUniform(self.exponent))
        scale = self.factor / (self.shift.denominator * self.grid)
        offset = Fraction(1, 2) - self.shift / self.grid
        return Rounding(distributions, scale, offset, grid_limit(self.grid, self.bound), mirror=False)

    def draw(self, counts: Int64s, stream: Stream, first: int) -> Int64s:
        """The protected values, in grid units, of the counts of cells first, first+1, …"""
        largest = (2**62 - self.shift.numerator) // self.shift.denominator
        if counts.dtype != np.int64 or counts.ndim != 1:
            raise ParameterError("counts must be one int64 array", where="counts", do="convert them first")
        if counts.size and (int(counts.min()) < 0 or int(counts.max()) > largest):
            raise ParameterError("a count is negative or too large", where="counts", do="clamp contributions")
        multiples = counts * self.shift.denominator + self.shift.numerator
        return draw_rounded(self.rounding, stream, first, counts.size, multiples)

    def margin_factors(self, level: Fraction) -> tuple[arb, arb]:
        """(low, high): P(low ≤ (ñ + shift)/(n + shift) ≤ high) = level before rounding, factor·(1 − level)^±λ."""
        tail, factor = ball(1 - positive_fraction("level", level)), ball(self.factor)
        return factor * PowerOfUniform(self.exponent).at(tail), factor * PowerOfUniform(-self.exponent).at(tail)
