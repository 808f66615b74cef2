"""The published side of the trust boundary: outputs of mechanisms, with their guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.privacy.guarantee import Guarantee

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Protected(Generic[T]):
    """The output of a mechanism under a reservation, with its guarantee."""

    value: T
    guarantee: Guarantee
    simulated: bool

    def map(self, function: Callable[[T], U]) -> Protected[U]:
        """Post-processing: a function of protected values alone has their guarantee."""
        return Protected(function(self.value), self.guarantee, self.simulated)
