"""Laplace noise on a grid: density e^−|z|/2. Proof: laplace.md, rounded.md."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, arb_series

from discreet.noise.samplers.grid_noise import GridNoise


@dataclass(frozen=True)
class LaplaceQuantile:
    """G(u) = −ln u."""

    def at(self, u: arb) -> arb:
        """−ln u."""
        return -u.log()

    def series(self, u: arb, n: int) -> list[arb]:
        """Taylor coefficients of −ln around every point of the interval u."""
        series = -arb_series([u, 1], prec=n).log()
        return [series[i] for i in range(n)]


@dataclass(frozen=True)
class Laplace(GridNoise):
    """scale·Z, Z with density e^−|z|/2, rounded to the grid (Dwork et al. 2006)."""

    distribution = LaplaceQuantile()
