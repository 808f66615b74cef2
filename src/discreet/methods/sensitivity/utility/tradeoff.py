"""Choosing ε: errors of released statistics at each ε, by simulation (Chetty & Friedman 2019, Step 3).

Only for synthetic, public or earlier protected statistics: an ε, or a curve, chosen on confidential ones would itself
disclose something about them. Noise is drawn with a fixed public test key; every ε uses the same draws, so curves are
smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import ParameterError
from discreet.methods.sensitivity.statistics import Floats, Int64s
from discreet.methods.sensitivity.utility.weighted import columns
from discreet.noise.interval_arithmetic import positive_fraction
from discreet.noise.jit import compiled
from discreet.noise.key import ReleaseKey
from discreet.noise.samplers.laplace import Laplace
from discreet.noise.samplers.normal import Normal

Distribution = Literal["laplace", "normal"]

GRID, BOUND = (
    Fraction(1, 2**30),
    Fraction(2**10),
)  # grid and bound of a draw, in units of its scale: far finer and wider than shown
DISTRIBUTIONS = {"laplace": Laplace(Fraction(1), GRID, BOUND), "normal": Normal(Fraction(1), GRID, BOUND)}
TO_UNIT = {"laplace": 1 / sqrt(2), "normal": 1.0}  # Laplace noise of scale 1 has variance 2
RUNS = 20
TENTH = Fraction(1, 10)
STEP = Fraction(1, 100)
LARGEST = 2**20  # steps: ε of 10,000 and more, where the noise is negligible


@dataclass(frozen=True)
class Point:
    """Errors at one ε. `false_top`: the share of cells with a noisy value in the top of their area whose true value is
    not in it; standard errors are those of the simulation."""

    epsilon: Fraction
    mse: float  # simulated
    mse_error: float
    mse_exact: float
    false_top: float
    false_top_error: float
    false_bottom: float
    false_bottom_error: float


def tradeoff(
    theta: ArrayLike,
    n: ArrayLike,
    chi: ArrayLike,
    epsilons: Sequence[Fraction],
    distribution: Distribution = "laplace",
    areas: ArrayLike | None = None,
    share: Fraction = TENTH,
    runs: int = RUNS,
) -> list[Point]:
    """Errors of θ̃ = θ + √2·χ/(εN)·ω at each ε; cells are compared within their area, such as a county.

    Areas in which `share` is less than one cell are left out of the comparison. χ is one number, or one per cell.
    """
    chosen = [positive_fraction("epsilon", epsilon) for epsilon in epsilons]
    cells = _Cells.of(theta, n, chi, distribution, areas, share, runs)
    return [cells.point(epsilon) for epsilon in chosen]


def exact_mse(n: ArrayLike, chi: ArrayLike, epsilon: Fraction) -> float:
    """E[(θ̃ − θ)²] = mean of 2(χ/(εN))² over cells, under either distribution."""
    _, size, scale = _checked(n, n, chi)
    return float(2 * np.mean((scale / size) ** 2)) / float(positive_fraction("epsilon", epsilon)) ** 2


def epsilon_for(
    theta: ArrayLike,
    n: ArrayLike,
    chi: ArrayLike,
    *,
    target_mse: float | None = None,
    target_misclassification: float | None = None,
    distribution: Distribution = "laplace",
    areas: ArrayLike | None = None,
    share: Fraction = TENTH,
    runs: int = RUNS,
    step: Fraction = STEP,
) -> Fraction:
    """The smallest multiple of `step` that meets one target. The error is the larger of top and bottom.

    MSE: ε = √(2·mean (χ/N)² / target), rounded up. Misclassification: bisection on equal draws. It falls with ε but for
    the simulation's own error; should it cross the target more than once, one crossing is found: the result meets the
    target, and the step before it does not.
    """
    positive_fraction("step", step)
    if target_mse is not None and target_misclassification is None:
        return _for_mse(n, chi, target_mse, step)
    if target_misclassification is None or target_mse is not None:
        raise ParameterError("exactly one target is needed", where="epsilon_for", do="give target_mse or the other")
    target = target_misclassification
    if not 0 < target < 1:
        raise ParameterError("an error rate lies strictly between 0 and 1", where="target", do="give, say, 0.2")
    cells = _Cells.of(theta, n, chi, distribution, areas, share, runs)

    def meets(steps: int) -> bool:
        point = cells.point(steps * step)
        return max(point.false_top, point.false_bottom) <= target

    return _first(meets) * step


def _for_mse(n: ArrayLike, chi: ArrayLike, target: float, step: Fraction) -> Fraction:
    if not 0 < target < np.inf:
        raise ParameterError("a mean squared error is positive", where="target_mse", do="give, say, 0.0001")
    needed = sqrt(exact_mse(n, chi, Fraction(1)) / target) / float(step)
    if not needed <= LARGEST:
        raise ParameterError("no usable epsilon reaches this target", where="target_mse", do="relax the target")
    steps = max(1, ceil(needed))
    while exact_mse(n, chi, steps * step) > target:  # the root was rounded: check its neighbours
        steps += 1
    while steps > 1 and exact_mse(n, chi, (steps - 1) * step) <= target:
        steps -= 1
    return steps * step


def _first(meets: Callable[[int], bool]) -> int:
    """A k ≥ 1 with meets(k), and not meets(k − 1) unless k is 1."""
    high = 1
    while not meets(high):
        high *= 2
        if high > LARGEST:
            raise ParameterError(
                "no epsilon reaches this target", where="target", do="relax the target, or compare larger shares"
            )
    low = high // 2  # 0, or fails
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class _Cells:
    """Cells in the order of their areas, and their draws. The last four omit areas without a top or bottom."""

    theta: Floats
    envelope: Floats  # χ/N
    draws: Floats  # run × cell: ω, of variance 1
    spans: Int64s  # area × (first cell, one past the last)
    ends: Int64s  # cells at the top of each area, and as many at the bottom
    least: Floats  # true value of the last cell that is at the top; a tie with it is at the top too
    most: Floats  # the same at the bottom

    @classmethod
    def of(
        cls,
        theta: ArrayLike,
        n: ArrayLike,
        chi: ArrayLike,
        distribution: Distribution,
        areas: ArrayLike | None,
        share: Fraction,
        runs: int,
    ) -> _Cells:
        value, size, scale = _checked(theta, n, chi)
        if distribution not in DISTRIBUTIONS:
            raise ParameterError(
                f"no distribution {distribution!r}",
                where="distribution",
                do=f"choose one of {', '.join(DISTRIBUTIONS)}",
            )
        if not 0 < positive_fraction("share", share) <= Fraction(1, 2):
            raise ParameterError("a top share is at most a half", where="share", do="give a tenth")
        if runs < 2:
            raise ParameterError("one run has no standard error", where="runs", do="give 2 or more")
        _, area = np.unique(np.zeros(len(value)) if areas is None else np.asarray(areas), return_inverse=True)
        if len(area) != len(value):
            raise ParameterError("areas and cells differ in number", where="areas", do="give one code per cell")
        order = np.lexsort((value, area))  # by area, and within it by true value
        value = value[order]
        after = np.cumsum(np.bincount(area))
        first = np.concatenate([[0], after[:-1]])
        ends = (after - first) * share.numerator // share.denominator
        some = ends > 0
        if not some.any():
            raise ParameterError("no area has enough cells for this share", where="areas", do="use larger areas")
        first, after, ends = first[some], after[some], ends[some]
        stream = ReleaseKey.simulation("evaluate").stream("evaluate", "tradeoff", b"", distribution)
        drawn = DISTRIBUTIONS[distribution].draw(stream, 0, runs * len(value)).reshape(runs, len(value))
        unit = drawn.astype(np.float64) * (float(GRID) * TO_UNIT[distribution])
        spans = np.stack([first, after], axis=1)
        return cls(value, (scale / size)[order], unit, spans, ends, value[after - ends], value[first + ends - 1])

    def point(self, epsilon: Fraction) -> Point:
        """Errors at one ε, each the mean over runs with its standard error."""
        spread = sqrt(2) * self.envelope / float(epsilon)
        shown, rows = int(self.ends.sum()), []
        for draw in self.draws:
            noise = spread * draw
            top, bottom = _wrong(self.theta, self.theta + noise, self.spans, self.ends, self.least, self.most)
            rows.append((float(np.mean(noise**2)), top / shown, bottom / shown))
        means = np.mean(rows, axis=0)
        errors = np.std(rows, axis=0, ddof=1) / sqrt(len(rows))
        (mse, false_top, false_bottom), (mse_error, top_error, bottom_error) = means.tolist(), errors.tolist()
        exact = float(np.mean(spread**2))
        return Point(epsilon, mse, mse_error, exact, false_top, top_error, false_bottom, bottom_error)


@compiled
def _wrong(theta: Floats, noisy: Floats, spans: Int64s, ends: Int64s, least: Floats, most: Floats) -> tuple[int, int]:
    """Cells at the top and at the bottom of their area by noisy value that are not there by their true one."""
    top, bottom = 0, 0
    for area in range(len(ends)):
        true = theta[spans[area, 0] : spans[area, 1]]
        order = np.argsort(noisy[spans[area, 0] : spans[area, 1]])
        for place in range(ends[area]):
            top += true[order[-1 - place]] < least[area]
            bottom += true[order[place]] > most[area]
    return top, bottom


def _checked(theta: ArrayLike, n: ArrayLike, chi: ArrayLike) -> tuple[Floats, ...]:
    value, size, scale = columns(theta, n, chi)
    if (size < 1).any() or (scale <= 0).any():
        raise ParameterError("a cell has n below 1, or no positive chi", where="cells", do="leave out empty cells")
    return value, size, scale
