"""Success rates with exact confidence limits (Clopper & Pearson 1934), rounded outwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from discreet.errors import ParameterError
from discreet.noise.interval_arithmetic import ball

CLOSE = 2.0**-22  # relative width at which a search ends; the result errs outwards
SMALLEST = 2.0**-60
BITS = 64
MOST_BITS = 4096
TAIL = Fraction(1, 40)  # error probability beyond each limit of a rate


@dataclass(frozen=True)
class SuccessRate:
    """`hits` of `trials`, with a two-sided 95% confidence interval."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.trials or self.trials < 1:
            raise ParameterError(
                "hits and trials do not form a share", where="rate", do="give 0 ≤ hits ≤ trials, and trials"
            )

    @property
    def share(self) -> float:
        """hits/trials."""
        return self.hits / self.trials

    @property
    def low(self) -> float:
        """The lower limit."""
        return lower(self.hits, self.trials, TAIL)

    @property
    def high(self) -> float:
        """The upper limit."""
        return upper(self.hits, self.trials, TAIL)

    def __str__(self) -> str:
        return f"{self.share:.3f} [{self.low:.3f}, {self.high:.3f}]"


@lru_cache(maxsize=4096)
def lower(hits: int, trials: int, tail: Fraction) -> float:
    """The largest p (up to the search width) with P(X ≥ hits | p) ≤ tail; 0 for no hits. P(X ≥ k) = I_p(k, n − k +
    1)."""
    if hits == 0:
        return 0.0
    return _between(lambda p: _at_least(hits, trials, p) <= ball(tail))[0]


@lru_cache(maxsize=4096)
def upper(hits: int, trials: int, tail: Fraction) -> float:
    """The smallest p (up to the search width) with P(X ≤ hits | p) ≤ tail; 1 if all are hits. It is 1 − lower for the
    misses, but without the cancellation. In both, an undecided interval counts as no."""
    if hits == trials:
        return 1.0
    return _between(lambda p: not 1 - _at_least(hits + 1, trials, p) <= ball(tail))[1]


def _at_least(k: int, n: int, p: float) -> arb:
    bits = BITS
    while True:
        with ctx.workprec(bits):
            probability = arb(p).beta_lower(arb(k), arb(n - k + 1), regularized=True)
        if probability.rad() < arb((1, -44)) or bits >= MOST_BITS:
            return probability
        bits *= 2


def _between(before: Callable[[float], bool]) -> tuple[float, float]:
    """Bisection: two close values, the predicate true at the first (as near 0) and false at the second (as near 1)."""
    low, high = 0.0, 1.0
    while high - low > CLOSE * max(high, SMALLEST):
        middle = (low + high) / 2
        low, high = (middle, high) if before(middle) else (low, middle)
    return low, high
