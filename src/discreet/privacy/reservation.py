"""A reservation is the licence to draw noise: the ledger has charged the cost, and the key is bound to its data."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from discreet.errors import KeyRefused
from discreet.privacy.events import Reserve
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.protected import Protected

if TYPE_CHECKING:
    from discreet.noise.key import ReleaseKey, Secret

T = TypeVar("T")


@dataclass(frozen=True)
class License:
    """A reservation's word, for workers that draw its noise: what they make is protected, and how it is marked."""

    guarantee: Guarantee
    simulated: bool

    def protect(self, value: T) -> Protected[T]:
        """Carry a mechanism's output over the wall."""
        return Protected(value, self.guarantee, self.simulated)


class Reservation:
    """The only place where a noise stream's secret can be had, and the only one where a protected value is made."""

    def __init__(self, reserve: Reserve, key: ReleaseKey, binding: bytes) -> None:
        if not hmac.compare_digest(bytes.fromhex(reserve.binding), binding):
            raise KeyRefused(
                f"the key of release {reserve.release!r} is bound to other data, parameters, domains or code",
                do="restore what the reservation was made with, or `discreet ledger abandon` it: the same noise on "
                "changed data would give both away",
            )
        self.reserve, self._key = reserve, key

    @property
    def simulated(self) -> bool:
        return self._key.simulated

    def secret(self, table: str, purpose: str) -> Secret:
        """The secret of the keyed stream that belongs to one table and purpose of this release."""
        return self._key.stream_secret(self.reserve.release, table, bytes.fromhex(self.reserve.spec), purpose)

    def license(self, guarantee: Guarantee) -> License:
        """What a worker needs to protect under this reservation."""
        return License(guarantee, self.simulated)

    def protect(self, value: T, guarantee: Guarantee) -> Protected[T]:
        """Carry a mechanism's output over the wall."""
        return self.license(guarantee).protect(value)
