"""Laplace–Pareto noise for establishments, pure ε-DP (this project). Proof: laplace_pareto.md, smooth.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms.parameters import (
    BITS,
    check_alpha,
    check_cells,
    least,
    log1p,
    refuse,
)
from discreet.methods.employer.mechanisms.smooth import SmoothMechanism
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.noise.samplers.laplace_pareto import LaplacePareto as Noise
from discreet.noise.samplers.laplace_pareto import LaplaceParetoQuantile

GRID = 16  # g is searched among multiples of 1/16
SMALLEST = Fraction(2 * GRID + 1, GRID)
LARGEST_G = 64


@dataclass(frozen=True)
class LaplacePareto(SmoothMechanism):
    """Density ∝ e^−|z| to g, e^−g(g/|z|)^g beyond; c = max{1/ε, 1/((1+α)(ε − d(g−1)ln(1+α)))}.

    `cells` = d: the number of cells of one establishment's workers whose S comes from its total size. Without a g, that
    with the least c·E|Z|.
    """

    name: ClassVar[str] = "laplace-pareto"
    delta: ClassVar[Fraction] = Fraction(0)  # the bound is pure
    g: Fraction | None = None
    cells: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cells(self.cells)
        if self.g is not None:
            object.__setattr__(self, "g", _checked(self.g))
        if not _admissible(self.alpha, self.epsilon, self.g or SMALLEST, self.cells):
            raise refuse(
                "epsilon does not exceed cells·(g−1)·ln(1+alpha)",
                self.least_epsilon(self.alpha, g=self.g, cells=self.cells),
            )

    @classmethod
    def least_epsilon(cls, alpha: Fraction, *, g: Fraction | None = None, cells: int = 1) -> Fraction:
        """The first decimal above d(g−1)ln(1+α); without a g, for the smallest g on the grid, 33/16."""
        exact, tail = check_alpha(alpha), SMALLEST if g is None else _checked(g)
        check_cells(cells)
        return least(lambda: cells * ball(tail - 1) * log1p(exact), lambda e: _admissible(exact, e, tail, cells))

    @cached_property
    def shape(self) -> Fraction:
        """g, declared or optimal."""
        return best_g(self.alpha, self.epsilon, self.cells) if self.g is None else self.g

    @cached_property
    def constant(self) -> Fraction:
        """max{1/ε, 1/((1+α)(ε − d(g−1)ln(1+α)))}, the second rounded up."""
        dilated = rounded_up(lambda: _dilated(self.alpha, self.epsilon, self.shape, self.cells))
        return max(1 / self.epsilon, dilated)

    @cached_property
    def noise(self) -> Noise:
        """c/q·Z on integers."""
        return Noise(*self.unit, self.shape)

    def tail(self, z: Fraction) -> arb:
        """(e^−z + r)/N to g, r·g(g/z)^(g−1)/N beyond; r = e^−g/(g−1), N = 1 + r."""
        g = self.shape
        n, r, joint = LaplaceParetoQuantile(g).constants()
        if z <= g:
            return ((-ball(z)).exp() + r) / n
        return joint * (ball(g / z).log() * ball(g - 1)).exp()

    def mean_size(self) -> arb:
        """E|Z| = [1 − (1+g)e^−g + e^−g·g²/(g−2)]/N."""
        return _mean_size(self.shape)

    def describe(self) -> str:
        return (
            f"count + {float(self.constant):.4g}·S·Z, S = max(α·x, 1), Z Laplace–Pareto: "
            f"density ∝ e^−|z| to {float(self.shape):.4g}, then a power tail; rounded to integers"
        )


def _checked(g: Fraction) -> Fraction:
    exact = positive_fraction("g", g)
    if not 2 < exact <= LARGEST_G:
        raise ParameterError(
            "g must lie above 2, for a finite mean, and be at most 64", where="g", do="omit it for the optimal one"
        )
    return exact


def _admissible(alpha: Fraction, epsilon: Fraction, g: Fraction, cells: int) -> bool:
    """Whether ε > d(g−1)ln(1+α), decided rigorously: ln(1+α) is transcendental, so equality is impossible."""
    with ctx.workprec(BITS):
        return bool(ball(epsilon) > cells * ball(g - 1) * log1p(alpha))


def _dilated(alpha: Fraction, epsilon: Fraction, g: Fraction, cells: int) -> arb:
    return 1 / (ball(1 + alpha) * (ball(epsilon) - cells * ball(g - 1) * log1p(alpha)))


def _mean_size(g: Fraction) -> arb:
    end = (-ball(g)).exp()
    return (1 - ball(1 + g) * end + end * ball(g**2 / (g - 2))) / (1 + end / ball(g - 1))


@lru_cache(maxsize=256)
def best_g(alpha: Fraction, epsilon: Fraction, cells: int) -> Fraction:
    """The g among multiples of 1/16 with the least c·E|Z|, by interval arithmetic: the same on every machine."""
    with ctx.workprec(BITS):
        best, error = SMALLEST, arb("inf")
        for g in (Fraction(step, GRID) for step in range(2 * GRID + 1, LARGEST_G * GRID + 1)):
            if not _admissible(alpha, epsilon, g, cells):
                break
            mean_error = ball(1 / epsilon).max(_dilated(alpha, epsilon, g, cells)) * _mean_size(g)
            if mean_error < error:
                best, error = g, mean_error
        return best
