"""Rate limits per client: token buckets. Addresses are kept in memory only, for one time window."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

MOST_CLIENTS = 50_000
NETWORK = 64  # bits of an IPv6 address that identify one household or organization


class RateLimiter:
    """A limit on the calls of each client in a time window."""

    def __init__(self, calls: int, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls, self._speed, self._clock = float(calls), calls / window, clock
        self._left: dict[str, tuple[float, float]] = {}  # tokens left, and when

    def wait(self, client: str) -> float:
        """Seconds until the next call is allowed; 0 if this one is."""
        now = self._clock()
        left, when = self._left.pop(client, (self._calls, now))
        left = min(self._calls, left + (now - when) * self._speed)
        if len(self._left) >= MOST_CLIENTS:
            self._forget(now)
        self._left[client] = (left - 1 if left >= 1 else left, now)  # most recent last
        return 0.0 if left >= 1 else (1 - left) / self._speed

    def _forget(self, now: float) -> None:
        """Drop clients whose buckets are full again; if there are none, the oldest half."""
        full = [c for c, (left, when) in self._left.items() if left + (now - when) * self._speed >= self._calls]
        for client in full or list(self._left)[: MOST_CLIENTS // 2]:
            del self._left[client]


def client_address(scope: Mapping[str, Any], *, trust_proxy: bool) -> str:
    """The address of the client: the peer, or the address that a trusted proxy forwards."""
    peer = scope.get("client")
    address = str(peer[0]) if peer else ""
    if trust_proxy:
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        if forwarded:
            address = forwarded[-1].decode("latin-1").rsplit(",", 1)[-1].strip() or address
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address if not trust_proxy else ""
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, NETWORK), strict=False))
    return address


class ClientSemaphores:
    """A limit on the concurrent answers of each client, so that no client occupies the whole server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, client: str) -> asyncio.Semaphore:
        """The semaphore of a client; it is dropped when nobody holds it or waits for it."""
        return self._known.setdefault(client, asyncio.Semaphore(self._most))
