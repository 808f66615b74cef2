"""Connections that nobody uses are closed: soon, and at once where there is no room for another one.

While we wait for a client, to ask or to take its answer, time runs; bytes that come one by one do not stop it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.serve.http.rate import client_of

ROOM = 1_000  # connections of one worker
PATIENCE = 10.0  # seconds for a whole request, and for any part of an answer
KEPT = 5  # seconds for another request


class Connection(H11Protocol):
    """uvicorn's, with a clock."""

    _clock: asyncio.TimerHandle | None = None  # running: it is the client's turn
    _since = 0.0
    _unread = 0
    who = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= ROOM:
            self._make_room()
        super().connection_made(transport)
        self.who = client_of({"client": self.client}, trust_proxy=False)
        self._theirs()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ours()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._ours()

    def on_response_complete(self) -> None:
        self._theirs()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._theirs()
        super().pause_writing()

    def resume_writing(self) -> None:
        if self.cycle.response_complete:
            self._theirs()  # the rest is theirs to take
        else:
            self._ours()
        super().resume_writing()

    # --- whose turn it is -------------------------------------------------------------------------------------------

    def _ours(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _theirs(self) -> None:
        self._ours()
        self._since = self.loop.time()
        self._wait()

    def _wait(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._clock = self.loop.call_later(PATIENCE, self._late)

    def _late(self) -> None:
        if 0 < self.transport.get_write_buffer_size() < self._unread:  # slow, but it reads
            self._wait()
        else:
            self.leave()

    def leave(self) -> None:
        """Gone at once: what it has not read it does not get."""
        self._ours()
        self.connections.discard(self)
        self.transport.abort()

    def _make_room(self) -> None:
        """Of whoever has most of the connections that wait for their clients, the one that has waited longest."""
        idle: list[Any] = [one for one in self.connections if isinstance(one, Connection) and one._clock is not None]
        if idle:
            most = Counter(one.who for one in idle).most_common(1)[0][0]
            min((one for one in idle if one.who == most), key=lambda one: one._since).leave()
