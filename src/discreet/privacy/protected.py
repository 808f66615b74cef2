"""The protected side of the wall: values that may be published, with what they promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.privacy.guarantee import Guarantee

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Protected(Generic[T]):
    """A value that came out of a mechanism under a reservation, and the guarantee it came with."""

    value: T
    guarantee: Guarantee
    simulated: bool

    def map(self, function: Callable[[T], U]) -> Protected[U]:
        """Post-processing: a function of protected values alone keeps their guarantee."""
        return Protected(function(self.value), self.guarantee, self.simulated)
