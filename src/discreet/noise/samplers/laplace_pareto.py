"""Laplace–Pareto noise on a grid: exponential body, power tail. Proof: laplace_pareto.md, rounded.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_series

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball, positive_fraction
from discreet.noise.samplers.grid_noise import GridNoise


@dataclass(frozen=True)
class LaplaceParetoQuantile:
    """|Z| with density (1/N)·e^−z to z = g, then (1/N)·e^−g·(g/z)^g; N = 1 + e^−g/(g−1)."""

    g: Fraction

    def constants(self) -> tuple[arb, arb, arb]:
        """N, r = e^−g/(g−1), and the tail at the breakpoint g, (e^−g + r)/N."""
        end = (-ball(self.g)).exp()
        r = end / ball(self.g - 1)
        return 1 + r, r, (end + r) / (1 + r)

    def body(self, u: arb | arb_series) -> arb | arb_series:
        """−ln(N·u − r), for u above the tail at the breakpoint."""
        n, r, _ = self.constants()
        return -(u * n - r).log()

    def pareto(self, u: arb | arb_series) -> arb | arb_series:
        """g·(T(g)/u)^(1/(g−1)), for u below."""
        _, _, tail_at_g = self.constants()
        power = ball(1 / (self.g - 1))
        return ((u / tail_at_g).log() * -power).exp() * ball(self.g)

    def at(self, u: arb) -> arb:
        """G(u); the union of both branches if the interval contains the breakpoint."""
        tail_at_g = self.constants()[2]
        if u > tail_at_g:
            return self.body(u)
        if u < tail_at_g:
            return self.pareto(u)
        return self.body(u).union(self.pareto(u))

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of the interval's branch; across the breakpoint only the continuous value and slope."""
        tail_at_g = self.constants()[2]
        x = arb_series([u, 1], prec=n)
        if u > tail_at_g or u < tail_at_g:
            side = self.body(x) if u > tail_at_g else self.pareto(x)
            return [side[i] for i in range(n)]
        body, pareto = self.body(x), self.pareto(x)
        return [body[i].union(pareto[i]) if i < 2 else arb("nan") for i in range(n)]


@dataclass(frozen=True)
class LaplacePareto(GridNoise):
    """scale·Z, Z with density ∝ e^−|z| for |z| ≤ g, e^−g·(g/|z|)^g beyond: slide 1, dilation g − 1."""

    g: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "g", positive_fraction("g", self.g))
        if self.g <= 2:
            raise ParameterError(
                "g must exceed 2 for a finite mean", where="g", do="choose g > 3 for a finite variance"
            )

    @property
    def distribution(self) -> LaplaceParetoQuantile:
        """The tail quantile for this g."""
        return LaplaceParetoQuantile(self.g)
