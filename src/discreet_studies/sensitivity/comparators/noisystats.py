"""NoisyStats: noise on the sufficient statistics of the line (Alabi, McMillan, Sarathy, Smith & Vadhan 2022). Proof:
formal.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.key import ReleaseKey
from discreet.privacy.guarantee import Guarantee, Neighbours, Record
from discreet_studies.sensitivity.comparators import Estimates, Floats, FormalMethod, Int64s, with_fallback
from discreet_studies.sensitivity.comparators.moments import Moments, add_noise, laplace

ROOM = 1 + 2.0**-30
STEEPEST = 2.0**10  # slopes are clamped here, so that the last sum stays within its bounds


@dataclass(frozen=True)
class NoisyStats(FormalMethod):
    """slope = (Sxy + noise)/(Sxx + noise), then ½ + (Σ(y − ½ + slope·(x0 − x)) + noise)/n.

    substitution: the authors' form. n is public, ε is split into three equal parts, a sum of squares has sensitivity 1
    − 1/n. add-remove: n is confidential and gets a fourth part; a sum of squares has sensitivity below 1.
    """

    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours not in ("add-remove", "substitution"):
            raise ParameterError(
                "unknown kind of neighbours", where="neighbours", do="choose add-remove or substitution"
            )

    @property
    def name(self) -> str:
        return f"noisystats {self.neighbours}"

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP, by sequential composition of the parts."""
        public = ("the number of records of every cell is public",) if self.neighbours == "substitution" else ()
        return Guarantee(unit=Record(), epsilon=self.epsilon, neighbours=self.neighbours, caveats=public)

    @property
    def part(self) -> Fraction:
        """ε of each of three or four sums."""
        return self.epsilon / (3 if self.neighbours == "substitution" else 4)

    def square_sensitivity(self, n: Int64s) -> Floats:
        """Sensitivity of Sxx and of Sxy."""
        if self.neighbours == "substitution":
            return 1 - 1 / np.maximum(n, 1)
        return np.ones(n.size)

    def level_sensitivity(self, slope: Floats) -> Floats:
        """Sensitivity of the level: 1 + |slope| under substitution, ½ + |slope|·max(x0, 1 − x0) under add/remove,
        slightly increased for the float64 sums that the slope multiplies."""
        if self.neighbours == "substitution":
            return (1 + np.abs(slope)) * ROOM
        return (0.5 + np.abs(slope) * float(max(self.x0, 1 - self.x0))) * ROOM

    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """No answer where the noisy Sxx, or the noisy n, is not positive."""
        cells = Moments.of(x, y, starts)
        noise, squares = laplace(self.part), self.square_sensitivity(cells.n)

        def noisy(values: Floats, sensitivity: Floats, purpose: str) -> Floats:
            return add_noise(values, sensitivity, noise, self.stream(key, purpose))

        sxx, sxy = noisy(cells.sxx, squares, "sxx"), noisy(cells.sxy, squares, "sxy")
        answered = sxx > 0
        slope = np.clip(sxy / np.where(answered, sxx, 1.0), -STEEPEST, STEEPEST)
        level = cells.total_y - cells.n / 2 + slope * (float(self.x0) * cells.n - cells.total_x)
        level = noisy(level, self.level_sensitivity(slope), "level")
        n = cells.n.astype(np.float64)
        if self.neighbours == "add-remove":
            n = noisy(n, np.ones(n.size), "n")
        answered &= n > 0
        return with_fallback(0.5 + level / np.where(answered, n, 1.0), answered)
