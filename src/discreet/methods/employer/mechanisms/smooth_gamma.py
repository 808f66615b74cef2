"""Noise ∝ 1/(1 + |z|^γ) for establishments (Haney et al. 2017, Algorithm 2), also with tighter constants. Proof:
smooth_gamma.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms.joint import UNITS, JointLossBound, joint_constant
from discreet.methods.employer.mechanisms.parameters import (
    BITS,
    check_alpha,
    check_cells,
    check_choice,
    least,
    log1p,
    refuse,
)
from discreet.methods.employer.mechanisms.smooth import SmoothMechanism
from discreet.noise.interval_arithmetic import ball, positive_fraction, rounded_up
from discreet.noise.samplers.power import Power, PowerQuantile
from discreet.privacy.exact import format_exact

Constants = Literal["joint", "separate", "printed"]
CHOICES = ("joint", "separate", "printed")
PRINTED = Fraction(4)
PAPER = 5  # γ + 1: the paper's slide and dilation
GRID = 4  # γ is searched among multiples of 1/4
SMALLEST, LARGEST_GAMMA = Fraction(9, 4), Fraction(16)
LARGEST_JOINT = 32  # a larger ε protects nobody, and the joint supremum takes long


@dataclass(frozen=True)
class SmoothGamma(SmoothMechanism):
    """Density ∝ 1/(1 + |z|^γ). K = (γ−1)^((γ−1)/γ) bounds the loss of a shift, (γ−1)ln(1+α) that of a dilation.

    joint: the least c for both together, proved by interval arithmetic; d = `cells` > 1: c = max{K/ε, K/((1+α)(ε −
    d(γ−1)ln(1+α)))}. separate: c = K/(ε − d(γ−1)ln(1+α)). printed: c = 5/(ε − 5·ln(1+α)), γ = 4, one cell. gamma None:
    the least c·E|Z|.
    """

    name: ClassVar[str] = "smooth-gamma"
    delta: ClassVar[Fraction] = Fraction(0)  # the bound is pure
    constants: Constants = "joint"
    gamma: Fraction | None = PRINTED
    cells: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self.constants, self.gamma, self.cells)
        if not _admissible(self.alpha, self.epsilon, self.constants, self.gamma or SMALLEST, self.cells):
            factor = "5" if self.constants == "printed" else "cells·(gamma−1)"
            raise refuse(
                f"epsilon does not exceed {factor}·ln(1+alpha)",
                self.least_epsilon(self.alpha, constants=self.constants, gamma=self.gamma, cells=self.cells),
            )

    @classmethod
    def least_epsilon(
        cls, alpha: Fraction, *, constants: Constants = "joint", gamma: Fraction | None = PRINTED, cells: int = 1
    ) -> Fraction:
        """The first decimal above d(γ−1)ln(1+α), or 5·ln(1+α); without a γ, for the smallest on the grid, 9/4."""
        exact = check_alpha(alpha)
        _check(constants, gamma, cells)
        shape = gamma or SMALLEST
        return least(
            lambda: ball(_dilation(constants, shape, cells)) * log1p(exact),
            lambda e: _admissible(exact, e, constants, shape, cells),
        )

    @cached_property
    def shape(self) -> Fraction:
        """γ, declared or optimal."""
        if self.gamma is not None:
            return self.gamma
        return best_gamma(self.alpha, self.epsilon, self.constants, self.cells)

    @cached_property
    def constant(self) -> Fraction:
        """c, as `constants` says."""
        return _constant(self.alpha, self.epsilon, self.constants, self.shape, self.cells)

    @cached_property
    def noise(self) -> Power:
        """c/q·Z on integers."""
        return Power(*self.unit, self.shape)

    def tail(self, z: Fraction) -> arb:
        """P(|Z| > z): power.md."""
        return PowerQuantile(self.shape).tail(ball(z))

    def mean_size(self) -> arb:
        """E|Z| = 1/(2cos(π/γ)): .7071 for γ = 4 (Haney et al. 2017 print π/2)."""
        return _mean_size(self.shape)

    def describe(self) -> str:
        return (
            f"count + {float(self.constant):.4g}·S·Z, S = max(α·x, 1), "
            f"Z with density ∝ 1/(1 + |z|^{format_exact(self.shape)}); rounded to integers"
        )


def _check(constants: object, gamma: object, cells: object) -> None:
    check_choice("constants", constants, CHOICES)
    check_cells(cells)
    if gamma is not None and not 2 < positive_fraction("gamma", gamma) <= LARGEST_GAMMA:
        raise ParameterError(
            "gamma must lie above 2, for a finite mean, and be at most 16", where="gamma", do="the paper uses 4"
        )
    if constants == "printed" and (gamma != PRINTED or cells != 1):
        raise ParameterError(
            "the printed constants are for gamma 4 and one cell", where="constants", do="choose joint or separate"
        )


def _dilation(constants: Constants, gamma: Fraction, cells: int) -> Fraction:
    """The loss of a dilation by r is at most this times ln r."""
    return Fraction(PAPER) if constants == "printed" else cells * (gamma - 1)


def _spare(alpha: Fraction, epsilon: Fraction, dilation: Fraction) -> arb:
    return ball(epsilon) - ball(dilation) * log1p(alpha)


def _admissible(alpha: Fraction, epsilon: Fraction, constants: Constants, gamma: Fraction, cells: int) -> bool:
    """Whether the dilation leaves a positive part of ε, decided rigorously."""
    with ctx.workprec(BITS):
        return bool(_spare(alpha, epsilon, _dilation(constants, gamma, cells)) > 0)


def _slide(gamma: Fraction) -> arb:
    """K = sup ψ' = (γ−1)^((γ−1)/γ)."""
    return (ball(gamma - 1).log() * ball((gamma - 1) / gamma)).exp()


def _constant(alpha: Fraction, epsilon: Fraction, constants: Constants, gamma: Fraction, cells: int) -> Fraction:
    dilation = _dilation(constants, gamma, cells)
    if constants == "printed":
        return rounded_up(lambda: PAPER / _spare(alpha, epsilon, dilation))
    if constants == "separate":
        return rounded_up(lambda: _slide(gamma) / _spare(alpha, epsilon, dilation))
    proven = rounded_up(lambda: _slide(gamma) / ball(epsilon).min(ball(1 + alpha) * _spare(alpha, epsilon, dilation)))
    if cells > 1 or epsilon > LARGEST_JOINT:
        return proven
    return joint_constant(gamma, alpha, epsilon, proven)


def _mean_size(gamma: Fraction) -> arb:
    return 1 / (2 * (arb.pi() / ball(gamma)).cos())


@lru_cache(maxsize=256)
def best_gamma(alpha: Fraction, epsilon: Fraction, constants: Constants, cells: int) -> Fraction:
    """The γ among multiples of 1/4 from 9/4 to 16 with the least c·E|Z|, by interval arithmetic."""
    with ctx.workprec(BITS):
        best, error = SMALLEST, arb("inf")
        for gamma in (Fraction(step, GRID) for step in range(int(SMALLEST * GRID), int(LARGEST_GAMMA * GRID) + 1)):
            if not _admissible(alpha, epsilon, constants, gamma, cells):
                break
            enough = error / _mean_size(gamma)
            if constants == "joint" and cells == 1 and epsilon <= LARGEST_JOINT and enough.is_finite():
                candidate = Fraction(int((enough * UNITS).upper().floor().unique_fmpz()) + 1, UNITS)
                if not JointLossBound(gamma, alpha, epsilon).certain(candidate):
                    continue  # its c is too large to improve on the best one; its value is not needed
            c = ball(_constant(alpha, epsilon, constants, gamma, cells))
            if c < enough:
                best, error = gamma, c * _mean_size(gamma)
        return best
