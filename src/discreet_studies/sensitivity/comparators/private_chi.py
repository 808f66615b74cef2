"""Maximum observed sensitivity with a private χ, then propose–test–release. Ours. Proof: formal.md.

Dwork & Lei 2009 for the test. A record lies in one cell, so χ̂, a quantile over cells, needs little of ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

import numpy as np

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.discrete import DiscreteLaplace
from discreet.privacy.guarantee import Guarantee, Record
from discreet_studies.sensitivity.comparators import Estimates, Floats, FormalMethod, Int64s, with_fallback
from discreet_studies.sensitivity.comparators.choice import IntegerChoice
from discreet_studies.sensitivity.comparators.moments import Moments, add_noise, laplace
from discreet_studies.sensitivity.comparators.smooth_line import arguments, profile

LADDER = np.geomspace(1, 1000, 100)  # candidates for χ
LIKELY = Fraction(9, 10)  # probability that a cell which meets its proposal passes, and that n is not overstated


# Parts of ε: for χ̂ of all cells, and in every cell for its size, its test and its release.
OF_CHI, OF_SIZE, OF_TEST, OF_RELEASE = Fraction(1, 20), Fraction(1, 10), Fraction(9, 20), Fraction(2, 5)


@dataclass(frozen=True)
class PrivateChi(FormalMethod):
    """clamp(prediction) + Laplace(λ/ε_release), λ = χ̂/n_low, if the cell is far enough from one that λ does not cover.

    χ̂: the candidate at which about `quantile` of the cells would pass; with few cells only a lower quantile is
    reached. n_low: n + noise, less a margin; only a guess, as the test is about λ. Distance: the first k with A_k > λ
    (smooth_line), plus discrete Laplace noise.
    """

    name = "private chi"
    delta: Fraction
    quantile: Fraction = Fraction(19, 20)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < positive_fraction("delta", self.delta) < Fraction(1, 2):
            raise ParameterError(
                "delta does not lie strictly between 0 and 1/2", where="delta", do="give a small value"
            )
        if not 0 < positive_fraction("quantile", self.quantile) <= 1:
            raise ParameterError("quantile is not above 0 and at most 1", where="quantile", do='try Fraction("0.9")')

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP: the four parts compose sequentially, and only the test contributes δ."""
        return Guarantee(unit=Record(), epsilon=self.epsilon, delta=self.delta)

    @property
    def test(self) -> DiscreteLaplace:
        """The noise of the distance."""
        return DiscreteLaplace(OF_TEST * self.epsilon)

    @property
    def size(self) -> DiscreteLaplace:
        """The noise of n."""
        return DiscreteLaplace(OF_SIZE * self.epsilon)

    @property
    def threshold(self) -> int:
        """The noisy distance that passes: noise alone reaches it with probability δ at most."""
        return self.test.margin(1 - 2 * self.delta) + 1

    @property
    def reach(self) -> int:
        """The distance from which a cell passes with probability 9/10 or more: what χ̂ aims at."""
        return self.threshold + ceil(log(1 / float(1 - LIKELY)) / float(self.test.rate))

    @property
    def largest(self) -> Fraction:
        """The λ whose noise, of standard deviation 0.12, is as uninformative as the fallback."""
        return OF_RELEASE * self.epsilon / 12

    def chi(self, cells: Moments, key: ReleaseKey) -> float:
        """χ̂: the exponential mechanism on | #{cells with n·A_(reach−1) above it} − (1 − quantile)·#cells |."""
        wanted = cells.n * bounds_at(*arguments(cells), float(self.x0), self.reach - 1)
        over = cells.n.size - np.searchsorted(np.sort(wanted), LADDER, side="right")
        scores = np.abs(over - int((1 - self.quantile) * cells.n.size))
        choice = IntegerChoice(OF_CHI * self.epsilon, 1)
        return float(LADDER[choice.draw(scores[None, :], self.stream(key, "chi"))[0]])

    def proposals(self, cells: Moments, key: ReleaseKey) -> Floats:
        """λ = χ̂/n_low of every cell, capped where a release would be uninformative: public from here on."""
        n = cells.n + self.size.draw(self.stream(key, "size"), 0, cells.n.size)
        low: Int64s = np.maximum(n - self.size.margin(2 * LIKELY - 1), 1)
        return np.minimum(self.chi(cells, key) / low, float(self.largest))

    def estimate(self, x: Floats, y: Floats, starts: Int64s, key: ReleaseKey) -> Estimates:
        """No answer where the test fails."""
        cells = Moments.of(x, y, starts)
        proposed = self.proposals(cells, key)
        distance = distances(*arguments(cells), float(self.x0), proposed, 2 * self.reach)
        passed = distance + self.test.draw(self.stream(key, "test"), 0, distance.size)
        clamped = np.clip(cells.prediction(float(self.x0)), 0.0, 1.0)
        stream = self.stream(key, "release")
        noisy = add_noise(clamped, proposed, laplace(OF_RELEASE * self.epsilon), stream)
        return with_fallback(noisy, passed >= self.threshold)


@compiled
def bounds_at(n: Int64s, tx: Floats, ty: Floats, sxx: Floats, sxy: Floats, x0: float, k: int) -> Floats:
    """A_k of every cell."""
    out = np.ones(n.shape[0])
    for cell in range(n.shape[0]):
        bounds = profile(n[cell], tx[cell], ty[cell], sxx[cell], sxy[cell], x0, k + 1)
        if k < bounds.shape[0]:
            out[cell] = bounds[k]
    return out


@compiled
def distances(
    n: Int64s, tx: Floats, ty: Floats, sxx: Floats, sxy: Floats, x0: float, limits: Floats, most: int
) -> Int64s:
    """The first k with A_k above the limit, but at most `most`; its sensitivity is 1."""
    out = np.full(n.shape[0], most, dtype=np.int64)
    for cell in range(n.shape[0]):
        if limits[cell] < 1.0:
            bounds = profile(n[cell], tx[cell], ty[cell], sxx[cell], sxy[cell], x0, most)
            for k in range(min(most, bounds.shape[0])):
                if bounds[k] > limits[cell]:
                    out[cell] = k
                    break
    return out
