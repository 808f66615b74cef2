"""Laplace noise for establishments, (ε, δ) (Haney et al. 2017, Algorithm 3). Proof: smooth_laplace.md, smooth.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from flint import arb, ctx

from discreet.errors import ParameterError
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
from discreet.noise.samplers.laplace import Laplace
from discreet.privacy.exact import format_exact

Constants = Literal["exact", "printed"]


@dataclass(frozen=True)
class SmoothLaplace(SmoothMechanism):
    """Z with density e^−|z|/2. exact: the least c for which the condition (1) of the proof and the
    exact δ hold; where (1) binds, the actual δ is below `delta`. printed: c = 2/ε (Algorithm 3).

    `cells` = d: each of d cells is given ε/d and δ/d (basic composition).
    """

    name: ClassVar[str] = "smooth-laplace"
    delta: Fraction
    constants: Constants = "exact"
    cells: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cells(self.cells)
        check_choice("constants", self.constants, ("exact", "printed"))
        object.__setattr__(self, "delta", _checked(self.delta))
        if not _admissible(self.alpha, self.epsilon / self.cells, self.delta / self.cells, self.constants):
            smallest = self.least_epsilon(self.alpha, self.delta, constants=self.constants, cells=self.cells)
            raise refuse("epsilon is too small for this delta and alpha", smallest)

    @classmethod
    def least_epsilon(
        cls, alpha: Fraction, delta: Fraction, *, constants: Constants = "exact", cells: int = 1
    ) -> Fraction:
        """The first decimal that is admissible at this δ; d cells need d times what one needs at δ/d."""
        exact, each = check_alpha(alpha), _checked(delta) / cells
        check_cells(cells)
        check_choice("constants", constants, ("exact", "printed"))

        def bound() -> arb:
            if constants == "printed":
                return -2 * cells * ball(each).log() * log1p(exact)
            return cells * log1p(exact).max(-ball(exact) * _cosh(exact, Fraction(0), each).log())

        return least(bound, lambda e: _admissible(exact, e / cells, each, constants))

    @cached_property
    def constant(self) -> Fraction:
        """2/ε, or max{1/ε, 1/((1+α)(ε − ln(1+α))), 1/(α·arccosh(δ(1+α)^(1+1/α)e^(ε/α)/α))}, of one cell's ε and δ."""
        epsilon, delta = self.epsilon / self.cells, self.delta / self.cells
        if self.constants == "printed":
            return 2 / epsilon
        dilated = rounded_up(lambda: 1 / (ball(1 + self.alpha) * (ball(epsilon) - log1p(self.alpha))))
        beyond = rounded_up(lambda: 1 / (ball(self.alpha) * _cosh(self.alpha, epsilon, delta).acosh()))
        return max(1 / epsilon, dilated, beyond)

    @cached_property
    def noise(self) -> Laplace:
        """c/q·Z on integers."""
        return Laplace(*self.unit)

    def tail(self, z: Fraction) -> arb:
        """e^−z."""
        return (-ball(z)).exp()

    def mean_size(self) -> arb:
        """E|Z| = 1."""
        return arb(1)

    def describe(self) -> str:
        return (
            f"count + {float(self.constant):.4g}·S·Z, S = max(α·x, 1), Z Laplace: "
            f"density e^−|z|/2; δ = {format_exact(self.delta)}; rounded to integers"
        )


def exact_delta(alpha: Fraction, epsilon: Fraction, c: Fraction) -> arb:
    """δ(ε) of one cell: α(1+α)^(−1−1/α)·e^(−ε/α)·cosh(1/(αc)), for 1/c ≤ min(ε, (1+α)(ε − ln(1+α)))."""
    if not _pure_back(alpha, epsilon, c):
        raise ParameterError(
            "c is too small for the formula of delta", where="c", do="it needs 1/c ≤ min(ε, (1+α)(ε − ln(1+α)))"
        )
    return ball(1 / (alpha * c)).cosh() / _cosh(alpha, epsilon, Fraction(1))


def _cosh(alpha: Fraction, epsilon: Fraction, delta: Fraction) -> arb:
    """δ(1+α)^(1+1/α)e^(ε/α)/α: the upper bound on cosh(1/(αc))."""
    return ball(delta / alpha) * (ball(1 + 1 / alpha) * log1p(alpha) + ball(epsilon / alpha)).exp()


def _pure_back(alpha: Fraction, epsilon: Fraction, c: Fraction) -> bool:
    """From wide to narrow, and without a dilation, the loss is at most ε: 1/c ≤ min(ε, (1+α)(ε − ln(1+α)))."""
    with ctx.workprec(BITS):
        return c * epsilon >= 1 and bool(ball(1 / c) < ball(1 + alpha) * (ball(epsilon) - log1p(alpha)))


def _admissible(alpha: Fraction, epsilon: Fraction, delta: Fraction, constants: Constants) -> bool:
    """Whether (ε, δ) is admissible for one cell. For printed constants the exact δ must not exceed the claimed one."""
    with ctx.workprec(BITS):
        if constants == "exact":
            return bool(ball(epsilon) > log1p(alpha)) and bool(_cosh(alpha, epsilon, delta) > 1)
        claimed = ball(epsilon) >= -2 * ball(delta).log() * log1p(alpha)
        c = 2 / epsilon
        return bool(claimed) and _pure_back(alpha, epsilon, c) and bool(exact_delta(alpha, epsilon, c) <= ball(delta))


def _checked(delta: object) -> Fraction:
    exact = positive_fraction("delta", delta)
    if exact >= 1:
        raise ParameterError("delta lies strictly between 0 and 1", where="delta", do="give a small one")
    return exact
