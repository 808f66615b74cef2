"""Normal noise on a grid: density e^(−z²/2)/√(2π). Proof: normal.md, rounded.md."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from discreet.noise.interval_arithmetic import enclosure, inverse_series
from discreet.noise.samplers.grid_noise import GridNoise


@dataclass(frozen=True)
class NormalQuantile:
    """G(u) = √2·erfc⁻¹(u)."""

    def at(self, u: arb) -> arb:
        """√2·erfc⁻¹(u)."""
        return arb(2).sqrt() * u.erfcinv()

    def series(self, u: arb, n: int) -> list[arb]:
        """From the density of |Z|, √(2/π)·e^(−z²/2)."""
        factor = (2 / arb.pi()).sqrt()
        return inverse_series(enclosure(u, self.at), lambda z: (z * z / -2).exp() * factor, n)


@dataclass(frozen=True)
class Normal(GridNoise):
    """scale·Z, Z standard normal, rounded to the grid. For its privacy see normal.md."""

    distribution = NormalQuantile()
