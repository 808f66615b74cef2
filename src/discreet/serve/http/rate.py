"""How often one client may ask: a bucket of calls that fills up again. Addresses are kept in memory, for one window."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

MOST_CLIENTS = 50_000
NETWORK = 64  # bits of an IPv6 address that one household or firm has


class Rate:
    """So many calls in a window, from each client."""

    def __init__(self, calls: int, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls, self._speed, self._clock = float(calls), calls / window, clock
        self._left: dict[str, tuple[float, float]] = {}  # calls, and when

    def wait(self, client: str) -> float:
        """Seconds until the next call: 0 if this one is fine."""
        now = self._clock()
        left, when = self._left.pop(client, (self._calls, now))
        left = min(self._calls, left + (now - when) * self._speed)
        if len(self._left) >= MOST_CLIENTS:
            self._forget(now)
        self._left[client] = (left - 1 if left >= 1 else left, now)  # the latest are last
        return 0.0 if left >= 1 else (1 - left) / self._speed

    def _forget(self, now: float) -> None:
        """Those that are full again; and the oldest, if there are too many."""
        full = [c for c, (left, when) in self._left.items() if left + (now - when) * self._speed >= self._calls]
        for client in full or list(self._left)[: MOST_CLIENTS // 2]:
            del self._left[client]


def client_of(scope: Mapping[str, Any], *, trust_proxy: bool) -> str:
    """Who asks: the peer, or whom the trusted proxy in front says that it speaks for."""
    peer = scope.get("client")
    address = str(peer[0]) if peer else ""
    if trust_proxy:
        said = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        if said:
            address = said[-1].decode("latin-1").rsplit(",", 1)[-1].strip() or address
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address if not trust_proxy else ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, NETWORK), strict=False))
    return address


class Turns:
    """Answers of one client at once: so many, the others wait, so that no client takes all of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, client: str) -> asyncio.Semaphore:
        """Forgotten as soon as nobody has a turn, or waits for one."""
        return self._known.setdefault(client, asyncio.Semaphore(self._most))
