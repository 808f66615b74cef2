"""Idle connections are closed: after a timeout, or at once when the limit on connections is reached.

The clock runs while we wait for a client to send its request or to read its answer; single bytes do not reset it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.serve.http.rate import client_address

MAX_CONNECTIONS = 1_000  # connections of one worker
CLIENT_TIMEOUT = 10.0  # seconds to send a whole request, and to read any part of an answer
KEEP_ALIVE = 5  # seconds to wait for another request


class Connection(H11Protocol):
    """uvicorn's connection with a client timeout."""

    _clock: asyncio.TimerHandle | None = None  # running while we wait for the client
    _since = 0.0
    _unread = 0
    client_id = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MAX_CONNECTIONS:
            self._make_room()
        super().connection_made(transport)
        self.client_id = client_address({"client": self.client}, trust_proxy=False)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._stop_clock()

    def on_response_complete(self) -> None:
        self._start_clock()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._start_clock()
        super().pause_writing()

    def resume_writing(self) -> None:
        if self.cycle.response_complete:
            self._start_clock()  # the client has the rest to read
        else:
            self._stop_clock()
        super().resume_writing()

    # --- the client clock -------------------------------------------------------------------------------------------

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _start_clock(self) -> None:
        self._stop_clock()
        self._since = self.loop.time()
        self._wait()

    def _wait(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._clock = self.loop.call_later(CLIENT_TIMEOUT, self._late)

    def _late(self) -> None:
        if 0 < self.transport.get_write_buffer_size() < self._unread:  # slow, but reading
            self._wait()
        else:
            self.leave()

    def leave(self) -> None:
        """Close at once; unread bytes are lost."""
        self._stop_clock()
        self.connections.discard(self)
        self.transport.abort()

    def _make_room(self) -> None:
        """Close one idle connection: of the client with most of them, the one that has been idle longest."""
        idle: list[Any] = [one for one in self.connections if isinstance(one, Connection) and one._clock is not None]
        if idle:
            most = Counter(one.client_id for one in idle).most_common(1)[0][0]
            min((one for one in idle if one.client_id == most), key=lambda one: one._since).leave()
