"""Noise with density ∝ 1/(1 + |z|^γ) on a grid, for smooth sensitivities. Proof: power.md, rounded.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, arb_series, ctx

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, enclosure, inverse_series, positive_fraction
from discreet.noise.samplers.grid_noise import GridNoise

GUESS_BITS = 64
STEPS = 200
CONVERGED = 34


@lru_cache(maxsize=64)
def _norm(gamma: Fraction, bits: int) -> arb:
    with ctx.workprec(bits):
        angle = arb.pi() / ball(gamma)
        return angle / angle.sin()


@dataclass(frozen=True)
class PowerQuantile:
    """|Z| with density 1/(N·(1 + z^γ)), N = (π/γ)/sin(π/γ)."""

    gamma: Fraction

    def norm(self) -> arb:
        """N = ∫₀^∞ dz/(1 + z^γ)."""
        return _norm(self.gamma, ctx.prec)

    def density(self, z: arb) -> arb:
        """1/(N·(1 + z^γ))."""
        return 1 / (self.norm() * (1 + self._raised(z)))

    def tail(self, z: arb) -> arb:
        """P(|Z| > z) = z^(1−γ)/(N(γ−1))·₂F₁(1, 1−1/γ; 2−1/γ; −z^−γ).

        Up to z = 1 as 1 − z/N·₂F₁(1, 1/γ; 1+1/γ; −z^γ).
        """
        b = ball(1 / self.gamma)
        zg = self._raised(z)
        if z > 1:
            return z / zg / (self.norm() * ball(self.gamma - 1)) * (-1 / zg).hypgeom_2f1(arb(1), 1 - b, 2 - b)
        return 1 - z / self.norm() * (-zg).hypgeom_2f1(arb(1), b, 1 + b)

    def at(self, u: arb) -> arb:
        """The z with tail(z) = u: Newton's method, then an interval that contains the root by the mean value theorem.

        tail(z₀) − u = density(ξ)·(G(u) − z₀) for a ξ between z₀ and G(u).
        """
        if u == 1:
            return arb(0)
        if u == 0:
            return arb("inf")
        if not u.is_exact():
            return enclosure(u, self.at)
        bits = ctx.prec
        with ctx.workprec(GUESS_BITS):
            z = self._guess(u)
        reached = min(GUESS_BITS, bits)
        while True:
            reached = min(2 * reached, bits)
            with ctx.workprec(reached + 32):
                z = z.mid()
                gap = self.tail(z) - u
                moved = z + gap / self.density(self._around(z, reached))
            if reached == bits:
                return self._proved(z, moved, reached)
            z = moved

    def _around(self, z: arb, bits: int) -> arb:
        """An interval around z with a relative radius far above the approximation error, 2^(−bits/2 + 12)."""
        return z * arb(1, arb((1, 12 - bits // 2)))

    def _proved(self, z: arb, moved: arb, bits: int) -> arb:
        # The root lies in `moved` only if the interval over which the density was evaluated contains `moved`.
        return moved if self._around(z, bits).contains(moved) else arb("nan")

    def _guess(self, u: arb) -> arb:
        """Newton for tail(z) = u from the tangent at 0, or for ln tail(e^s) = ln u from the pure power tail."""
        steep = u > 0.5
        if steep:
            z = (self.norm() * (1 - u)).mid()
        else:
            z = ((self.norm() * ball(self.gamma - 1) * u).log() / -ball(self.gamma - 1)).exp().mid()
        for _ in range(STEPS):
            tail = self.tail(z)
            if steep:
                step = ((tail - u) / self.density(z)).mid()
                z = (z + step).mid()
            else:
                step = (z * ((tail / u).log() * tail / (z * self.density(z))).exp()).mid() - z
                z = (z + step).mid()
            if abs(step) <= z * arb((1, -CONVERGED)):  # the next step would square this error
                break
        return z

    def series(self, u: arb, n: int) -> list[arb]:
        """By series reversion of the tail; at z = 0 it exists for integer γ only (otherwise not finite)."""
        return inverse_series(self._image(u), self._density_series, n)

    def _image(self, u: arb) -> arb:
        """An interval that contains G(u): |G(u) − G(centre)| ≤ |u − centre|/(least density in the interval)."""
        if u.is_exact():
            return self.at(u)
        z = self.at(u.mid())
        reach = u.rad() / self.density(z)
        enclosing = arb(z.mid(), (2 * reach + z.rad()).upper())
        enclosing = arb(0).union(enclosing.upper()) if enclosing.contains(0) else enclosing
        moved = (u.rad() / self.density(enclosing)).upper() + z.rad()
        return enclosing if moved < 2 * reach else enclosure(u, self.at)

    def _density_series(self, z: arb_series) -> arb_series:
        if self.gamma.denominator == 1:
            power = z**self.gamma.numerator
        elif z[0] > 0:
            power = (z.log() * ball(self.gamma)).exp()
        else:
            # z^γ is continuous at 0 but has no series there.
            power = arb_series([self._raised(z[0])] + [arb("nan")] * (z.prec - 1), prec=z.prec)
        return 1 / ((power + 1) * self.norm())

    def _raised(self, z: arb) -> arb:
        if z > 0:
            return (z.log() * ball(self.gamma)).exp()
        top = z.upper() if z.upper() > 0 else arb(0)
        return arb(0) if top == 0 else arb(0).union((top.log() * ball(self.gamma)).exp())


@dataclass(frozen=True)
class Power(GridNoise):
    """scale·Z, Z with density ∝ 1/(1 + |z|^γ) (Nissim et al. 2007; γ = 4: smooth gamma, Haney et al. 2017)."""

    gamma: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gamma", positive_fraction("gamma", self.gamma))
        if self.gamma <= 1:
            raise ParameterError(
                "gamma must exceed 1 for a density", where="gamma", do="choose a larger one; Haney et al. 2017 use 4"
            )

    @property
    def distribution(self) -> PowerQuantile:
        """The tail quantile for this γ."""
        return PowerQuantile(self.gamma)
