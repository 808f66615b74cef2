"""The clamped prediction with smooth sensitivity and Laplace–Pareto noise: pure ε-DP. Ours. Proof: formal.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log1p, sqrt

import numpy as np

from discreet.errors import ParameterError
from discreet.methods.employer.mechanisms.laplace_pareto import LaplacePareto as Mechanism
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.laplace_pareto import LaplacePareto as Noise
from discreet_studies.sensitivity.comparators import Estimates, Floats, FormalMethod, Int64s, with_fallback
from discreet_studies.sensitivity.comparators.moments import BOUND, GRID, UNIT, Moments, add_noise

FLOOR = 2.0**-12  # smallest sensitivity used, so that rounding up to units is a small factor
SLACK = 2.0**-19  # what rounding, and float64, may add to the logarithm of a ratio of two sensitivities
SPREAD = 1 / 8  # of x in the reference cell: below most cells, as errors are largest where it is small
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # of 1/64: α tried by `planned`


@dataclass(frozen=True)
class SmoothLine(FormalMethod):
    """clamp(prediction) + c·S·Z: S = max_k e^(−βk)·A_k with e^β = 1 + α, c and Z of the Laplace–Pareto mechanism.

    A_k bounds the local sensitivity of the prediction in every cell within k records of this one.
    """

    name = "smooth line"
    alpha: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        mechanism = Mechanism(self.alpha, self.epsilon)  # raises for inadmissible parameters
        object.__setattr__(self, "alpha", mechanism.alpha)
        if self.beta <= 0:
            raise ParameterError("alpha is too small", where="alpha", do="give a value above 2^-18")

    @classmethod
    def planned(cls, x0: Fraction, epsilon: Fraction, n: int) -> SmoothLine:
        """With the α that minimises the error in a public reference cell: n records, x in even steps around ½ with this
        standard deviation, y = ½. A guess of n or of the spread that is too high costs accuracy, never privacy."""
        even = 0.5 + SPREAD * sqrt(12) * ((np.arange(n) + 0.5) / n - 0.5)
        cell = Moments.of(np.clip(even, 0, 1), np.full(n, 0.5), np.array([0, n], dtype=np.int64))
        exact = positive_fraction("epsilon", epsilon)
        tried = [cls(x0, exact, a) for a in (Fraction(s, 64) for s in STEPS) if Mechanism.least_epsilon(a) <= exact]
        if not tried:
            raise ParameterError(
                "epsilon is too small for a plan", where="epsilon", do="give a larger one, or an alpha"
            )
        return min(tried, key=lambda m: m.mechanism.per_unit * m.sensitivity(cell)[0])

    @cached_property
    def mechanism(self) -> Mechanism:
        """The constants c and g for a shift of one sensitivity and a dilation by 1 + α."""
        return Mechanism(self.alpha, self.epsilon)

    @property
    def beta(self) -> float:
        """ln(1 + α), less what rounding may add."""
        return log1p(float(self.alpha)) - SLACK

    @property
    def noise(self) -> Noise:
        """For a sensitivity of one unit."""
        return Noise(self.mechanism.constant * UNIT, GRID, BOUND, self.mechanism.shape)

    def sensitivity(self, cells: Moments) -> Floats:
        """max(S, 2⁻¹²) of every cell. Confidential."""
        return np.maximum(smooth_bounds(*arguments(cells), float(self.x0), self.beta), FLOOR)

    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """An answer in every cell; without a line the fallback replaces the prediction, and noise is added to it
        too."""
        cells = Moments.of(x, y, starts)
        stream = self.stream(key, "noise")
        clamped = np.clip(cells.prediction(float(self.x0)), 0.0, 1.0)
        noisy = add_noise(clamped, self.sensitivity(cells), self.noise, stream)
        return with_fallback(noisy, np.ones(noisy.size, dtype=np.bool_))


def arguments(cells: Moments) -> tuple[Int64s, Floats, Floats, Floats, Floats]:
    """A cell's moments as arguments of the compiled loops."""
    return cells.n, cells.total_x, cells.total_y, cells.sxx, cells.sxy


@compiled
def mean_range(total: float, n: int, j: int) -> tuple[float, float]:
    """Range of the mean of a cell of n values in [0, 1] after adding or removing at most j."""
    if j >= n:
        return 0.0, 1.0
    rest = n - total
    low = 1.0 - max(rest / (n - j), (rest + j) / (n + j))
    high = max(total / (n - j), (total + j) / (n + j))
    return max(low, 0.0), min(high, 1.0)


@compiled
def profile(n: int, tx: float, ty: float, sxx: float, sxy: float, x0: float, most: int) -> Floats:
    """A_0, A_1, … to the first that is 1, or to A_(most−1): bounds of the local sensitivity within k records."""
    out = np.ones(min(n, most) + 1)
    s, c = sxx, abs(sxy)
    for j in range(1, out.shape[0] + 1):
        low, high = mean_range(tx, n, j)
        low_y, high_y = mean_range(ty, n, j)
        right, residual = 1.0 - low, max(high_y, 1.0 - low_y)
        farthest = max(high, right)
        s -= farthest**2
        c += farthest * residual
        if s <= 0.0 or j >= n:
            return out[:j]
        per_record, ratio = 1.0 / (n - j), (n + j) / s
        above, under = max(high - x0, 0.0) / s, max(x0 - low, 0.0) / s
        a_left = max(per_record + above * high, under * high)
        a_right = max(per_record + under * right, above * right)
        e_left = min(residual + c / s * high, (1.0 + np.sqrt(1.0 + high**2 * ratio)) / 2)
        e_right = min(residual + c / s * right, (1.0 + np.sqrt(1.0 + right**2 * ratio)) / 2)
        out[j - 1] = min(max(a_left * e_left, a_right * e_right), 1.0)
        if out[j - 1] == 1.0:
            return out[:j]
    return out


@compiled
def smooth_bounds(n: Int64s, tx: Floats, ty: Floats, sxx: Floats, sxy: Floats, x0: float, beta: float) -> Floats:
    """max_k e^(−βk)·A_k of every cell; terms after the first A_k = 1 are smaller."""
    out = np.empty(n.shape[0])
    for cell in range(n.shape[0]):
        bounds = profile(n[cell], tx[cell], ty[cell], sxx[cell], sxy[cell], x0, n[cell])
        out[cell] = np.max(bounds * np.exp(-beta * np.arange(bounds.shape[0])))
    return out
