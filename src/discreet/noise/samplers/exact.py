"""Draws that fixed-width arithmetic leaves open are decided here, from as many bits as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flint import arb, ctx

from discreet.noise.interval_arithmetic import unique_floor


class Uniform:
    """U in [0, 1) known to `bits` binary digits; `more` gives 64 further ones at a time."""

    def __init__(self, word: int, more: Iterator[int]) -> None:
        self.digits = word & (2**63 - 1)
        self.bits = 63
        self._more = more

    def read_on(self) -> None:
        """Learn 64 further digits."""
        self.digits = self.digits << 64 | next(self._more)
        self.bits += 64

    def ends(self) -> tuple[arb, arb]:
        """The smallest and the largest value U may have (exact at a precision above `bits`)."""
        return arb((self.digits, -self.bits)), arb((self.digits + 1, -self.bits))


def resolve(value: Callable[[arb], arb], uniform: Uniform, limit: int) -> int:
    """min(floor(value(U)), limit) for a monotone value: read on until both ends of U's interval round alike."""
    while True:
        # Twice the digits and more: what precision then cannot tell, further digits will.
        with ctx.workprec(2 * uniform.bits + 128):
            low, high = (_floor(value(end), limit) for end in uniform.ends())
        if low is not None and low == high:
            return low
        uniform.read_on()


def _floor(y: arb, limit: int) -> int | None:
    if y.is_finite() and y > limit:
        return limit
    return unique_floor(y)
