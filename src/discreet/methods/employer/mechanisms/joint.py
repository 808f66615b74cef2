"""The least scale of noise ∝ 1/(1 + |z|^γ) under a joint shift and dilation, proved by interval arithmetic. Proof:
smooth_gamma.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush

from flint import arb, ctx

from discreet.methods.employer.mechanisms.parameters import log1p
from discreet.noise.interval_arithmetic import ball, enclosure

BITS = 128
STEPS = 12  # of Newton, from a scale known to suffice
UNITS = 1 << 64  # shifts and scales are multiples of 2^-64
CLOSE = 2.0**-34  # relative precision of a supremum, in units of what the dilation leaves of ε
CLOSEST = 36  # c is at most a few parts in 2^36 above the least
BOXES = 4000


@dataclass(frozen=True)
class Loss:
    """w ↦ ψ(stretch·w + shift) − ψ(w) + constant on w ≥ 0, ψ(z) = ln(1 + z^γ): one side of one pair of neighbours."""

    gamma: Fraction
    stretch: Fraction
    shift: Fraction
    constant: arb

    def at(self, w: arb) -> arb:
        """An interval that contains the loss on all of the interval w."""
        return self._psi(self._moved(w)) - self._psi(w) + self.constant

    def slope(self, w: arb) -> arb:
        """Its derivative: stretch·ψ'(stretch·w + shift) − ψ'(w)."""
        return ball(self.stretch) * self.psi_slope(self._moved(w)) - self.psi_slope(w)

    def bend(self, w: arb) -> arb:
        """Its second derivative: stretch²·ψ''(stretch·w + shift) − ψ''(w)."""
        return ball(self.stretch**2) * self._psi_bend(self._moved(w)) - self._psi_bend(w)

    def psi_slope(self, z: arb) -> arb:
        """ψ'(z) = γz^(γ−1)/(1 + z^γ)."""
        return ball(self.gamma) * _raised(z, self.gamma - 1) / (1 + _raised(z, self.gamma))

    def _moved(self, w: arb) -> arb:
        return ball(self.stretch) * w + ball(self.shift)

    def _psi(self, z: arb) -> arb:
        return (1 + _raised(z, self.gamma)).log()

    def _psi_bend(self, z: arb) -> arb:
        """ψ''(z) = γz^(γ−2)(γ − 1 − z^γ)/(1 + z^γ)²."""
        power = _raised(z, self.gamma)
        return ball(self.gamma) * _raised(z, self.gamma - 2) * (ball(self.gamma - 1) - power) / (1 + power) ** 2


def _raised(z: arb, power: Fraction) -> arb:
    """z^power on an interval of z ≥ 0 (power > 0)."""

    def at(end: arb) -> arb:
        return (end.log() * ball(power)).exp() if end > 0 else arb(0)

    return enclosure(z, at)


def supremum(loss: Loss, top: Fraction, decided: Callable[[float, float], bool]) -> tuple[float, Fraction]:
    """A proven upper bound of the loss on [0, top], and a w where it is nearly attained.

    Branch and bound: intervals are halved, that with the largest bound first, until `decided(bound, largest value)`. An
    interval of midpoint m and half-width h is bounded by Taylor: loss(m) + |slope(m)|·h + max(bend(box), 0)·h²/2.
    """
    low, where = -float("inf"), Fraction(0)
    heap: list[tuple[float, Fraction, Fraction]] = []

    def visit(a: Fraction, b: Fraction) -> None:
        nonlocal low, where
        middle = (a + b) / 2
        box, half = ball(a).union(ball(b)), ball((b - a) / 2)
        value = loss.at(ball(middle))
        if float(value.mid()) > low:
            low, where = float(value.mid()), middle
        bend = max(_above(loss.bend(box)), 0.0)
        bound = value + abs(loss.slope(ball(middle))) * half + arb(bend) * half**2 / 2
        heappush(heap, (-_above(bound), a, b))

    visit(Fraction(0), top)
    for _ in range(BOXES):
        if decided(-heap[0][0], low):
            break
        _, a, b = heappop(heap)
        visit(a, (a + b) / 2)
        visit((a + b) / 2, b)
    return -heap[0][0], where


def _above(x: arb) -> float:
    """A double at or above every value of the interval; infinite if it is not finite."""
    if not x.is_finite():
        return float("inf")
    end = float(x.upper())
    return end + abs(end) * 2.0**-50 + 2.0**-60


@dataclass(frozen=True)
class JointLossBound:
    """The loss of noise ∝ 1/(1 + |z|^γ) over all neighbouring data sets: shifts up to S, scales within a factor 1 +
    α."""

    gamma: Fraction
    alpha: Fraction
    epsilon: Fraction

    def losses(self, shift: Fraction) -> tuple[Loss, ...]:
        """Equal scales; wide over narrow; narrow over wide. Convex in ln r, so r = 1 and r = 1 + α suffice."""
        r, log = 1 + self.alpha, log1p(self.alpha)
        return (
            Loss(self.gamma, Fraction(1), shift, arb(0)),
            Loss(self.gamma, r, shift, -log),
            Loss(self.gamma, 1 / r, shift / r, log),
        )

    def spare(self) -> arb:
        """ε less the loss of the dilation alone."""
        return ball(self.epsilon) - ball(self.gamma - 1) * log1p(self.alpha)

    def top(self, shift: Fraction) -> Fraction:
        """W beyond which every loss, at most (γ−1)ln(1+α) + γ·shift/w, is below ε."""
        return Fraction(int((2 * ball(self.gamma * shift) / self.spare()).upper().floor().unique_fmpz()) + 1)

    def certain(self, c: Fraction) -> bool:
        """Whether it is proved that no loss exceeds ε at scale c."""
        epsilon = float(self.epsilon) * (1 - 2.0**-50)

        def decided(bound: float, low: float) -> bool:
            return bound <= epsilon or low > epsilon

        with ctx.workprec(BITS):
            top = self.top(1 / c)
            return all(supremum(loss, top, decided)[0] <= epsilon for loss in self.losses(1 / c))

    def step(self, shift: Fraction) -> Fraction:
        """Newton step: the shift at which the worst loss, linearised in the shift, would be ε."""
        with ctx.workprec(BITS):
            top, close = self.top(shift), float(self.spare()) * CLOSE
            worst, slope = -float("inf"), 1.0
            for loss in self.losses(shift):
                bound, w = supremum(loss, top, lambda bound, low: bound - low < close)
                if bound > worst:
                    moved = ball(loss.stretch * w + loss.shift)
                    worst, slope = bound, float((loss.psi_slope(moved) * ball(loss.shift / shift)).mid())
        return shift + Fraction(round((float(self.epsilon) - worst) / slope * UNITS), UNITS)


@lru_cache(maxsize=1024)
def joint_constant(gamma: Fraction, alpha: Fraction, epsilon: Fraction, proven: Fraction) -> Fraction:
    """The least c, to a few parts in 2³⁶, for which the loss of c·S·Z is provably at most ε; `proven` is a larger one.

    Newton steps only suggest a c; `certain` proves it. No libm is used: every machine computes the same c.
    """
    joint = JointLossBound(gamma, alpha, epsilon)
    shift = 1 / proven
    for _ in range(STEPS):
        moved = joint.step(shift)
        if moved <= 0 or abs(moved - shift) * 2**CLOSEST < shift:
            break
        shift = moved
    for bits in range(CLOSEST, 0, -2):
        c = Fraction(int((1 + Fraction(1, 2**bits)) / shift * UNITS) + 1, UNITS)
        if c < proven and joint.certain(c):
            return c
    return proven
