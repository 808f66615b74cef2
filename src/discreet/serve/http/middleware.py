"""Around every route: limits of size, time, number and rate; headers; and no word about what is inside.

Requests are counted by class. Nothing else about them is kept or written anywhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from fastapi import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.serve.config import Config
from discreet.serve.http.problems import problem
from discreet.serve.http.rate import Rate, Turns, client_of

API, HEALTH, STATIC = "/api/v2", "/health", "/static/"
READ = "GET, HEAD, OPTIONS"
WAITING = 2  # times as many may wait as are answered at once
SHARE = 4  # of the places one part is what a client may have at once
REFUSED = 400
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=(), interest-cohort=()",
    "cross-origin-opener-policy": "same-origin",
}
PAGE = {"cross-origin-resource-policy": "same-origin"}
OPEN = {  # numbers are for every site: there are no cookies, and nobody is known
    "cross-origin-resource-policy": "cross-origin",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "ETag, Retry-After, Content-Disposition",
}
PREFLIGHT = {
    "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
    "access-control-allow-headers": "Content-Type, If-None-Match",
    "access-control-max-age": "86400",
}
DROPPED = {b"server", b"set-cookie"}
_log = logging.getLogger("discreet.serve")


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, config: Config, counts: Counter[str], *, trust_proxy: bool = False) -> None:
        self._app, self._config, self._counts, self._trust = app, config, counts, trust_proxy
        self._rate = Rate(config.max_calls, config.window)
        self._free = asyncio.Semaphore(config.concurrency)
        self._waiting = 0
        self._turns = Turns(max(config.concurrency // SHARE, 2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            prefix = self._config.prefix
            path = route_path(scope, prefix)
            path = path.rstrip("/") if path.startswith(f"{API}/") else path
            headers = HEADERS | (OPEN if path.startswith(API) else PAGE)
            out = _Out(send, scope["method"] == "HEAD", headers, self._counts)
            here = {"root_path": prefix, "path": prefix + path, "scheme": self._scheme(scope)}
            await self._http({**scope, **here}, receive, out, path)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, out: _Out, path: str) -> None:
        refusal = self._refusal(scope, path)
        if refusal is not None:
            await refusal(scope, receive, out)
            return
        try:
            async with asyncio.timeout(self._config.timeout):
                body = await self._body(scope, receive)
        except TimeoutError:
            body = problem(408, "The body did not arrive in time.")
        if isinstance(body, Response):
            await body(scope, receive, out)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        if path == HEALTH or path.startswith(STATIC):
            await self._app(scope, receive, out)
            return
        turn = self._turns.of(client_of(scope, trust_proxy=self._trust))
        if await self._entered(turn):
            await self._answered(scope, _replayed(body, receive), out, turn)
        else:
            await self._busy("All answers are taken just now.")(scope, receive, out)

    def _scheme(self, scope: Scope) -> str:
        """http, or what the trusted proxy in front says."""
        said = dict(scope["headers"]).get(b"x-forwarded-proto", b"").decode("latin-1") if self._trust else ""
        return said if said in ("http", "https") else str(scope.get("scheme", "http"))

    # --- before anything is read ------------------------------------------------------------------------------------

    def _refusal(self, scope: Scope, path: str) -> Response | None:
        method, api = scope["method"], path.startswith(API)
        may_post = api and path.endswith("/data")
        allowed = f"{READ}, POST" if may_post else READ
        if method == "OPTIONS":
            return Response(status_code=204, headers={"allow": allowed, **(PREFLIGHT if api else {})})
        if method not in allowed.split(", "):
            return problem(405, f"Only {allowed} are understood here.", headers={"allow": allowed})
        if len(scope.get("query_string", b"")) > self._config.max_body:
            return problem(414, f"A link may have {self._config.max_body:,} bytes: POST a longer question.")
        if path == HEALTH or path.startswith(STATIC):
            return None
        wait = self._rate.wait(client_of(scope, trust_proxy=self._trust))
        if wait > 0:
            said = f"{self._config.max_calls:,} calls in {self._config.window} seconds are allowed."
            return problem(429, said, headers={"retry-after": str(ceil(wait))})
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The whole body, if it is small enough."""
        if scope["method"] != "POST":
            return b""
        most = self._config.max_body
        too_large = problem(413, f"A question may have {most:,} bytes.", headers={"connection": "close"})
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and len(length) < 20 and int(length) > most:
            return too_large
        found = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return problem(400, "The body ended early.")
            found += message.get("body", b"")
            if len(found) > most:
                return too_large
            if not message.get("more_body", False):
                return bytes(found)

    # --- at once, and in time ---------------------------------------------------------------------------------------

    async def _entered(self, turn: asyncio.Semaphore) -> bool:
        """Whether the client's turn came, and a place became free, soon enough."""
        taken = self._free.locked() or turn.locked()
        if taken and self._waiting >= WAITING * self._config.concurrency:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._config.timeout / 2):
                await turn.acquire()
                try:
                    await self._free.acquire()
                except BaseException:
                    turn.release()
                    raise
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    def _left(self, turn: asyncio.Semaphore) -> None:
        self._free.release()
        turn.release()

    async def _answered(self, scope: Scope, receive: Receive, out: _Out, turn: asyncio.Semaphore) -> None:
        """Run the route. A thread that is too slow keeps its place until it ends; its client does not wait."""
        out.on_start = partial(self._left, turn)
        task = asyncio.ensure_future(self._app(scope, receive, out))
        task.add_done_callback(partial(_ended, out))
        await asyncio.wait({task}, timeout=self._config.timeout)
        if task.done():
            await _told(problem(500, "Something is wrong here. It was not your question."), scope, out)
        elif not out.started:
            instead = out.abandon()
            await _told(self._busy("It took too long. Ask for less."), scope, instead)
        else:
            await asyncio.wait({task})  # a slow reader

    def _busy(self, detail: str) -> Response:
        return problem(503, detail, headers={"retry-after": str(max(1, ceil(self._config.timeout)))})


class _Out:
    """What leaves: with our headers, without a body for HEAD, counted."""

    def __init__(self, send: Send, head: bool, headers: Mapping[str, str], counts: Counter[str]) -> None:
        self._send, self._head, self._headers, self._counts = send, head, headers, counts
        self.started = self._silent = False
        self.on_start: Callable[[], object] | None = None

    async def __call__(self, message: Message) -> None:
        if self._silent:
            return
        if message["type"] == "http.response.start":
            self.started = True
            self.leave()
            self._counts[f"{message['status'] // 100}xx"] += 1
            message = {**message, "headers": self._kept(message)}
        elif self._head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)

    def _kept(self, message: Message) -> list[tuple[bytes, bytes]]:
        ours = {name.encode(): value.encode() for name, value in self._headers.items()}
        found = [
            (n.lower(), v) for n, v in message.get("headers", ()) if n.lower() not in ours | dict.fromkeys(DROPPED)
        ]
        if message["status"] >= REFUSED:
            found = [*((n, v) for n, v in found if n != b"cache-control"), (b"cache-control", b"no-store")]
        return [*found, *ours.items()]

    def leave(self) -> None:
        """Give the place back, once."""
        given, self.on_start = self.on_start, None
        if given is not None:
            given()

    def abandon(self) -> _Out:
        """Say nothing more; the other one speaks instead. The place is kept until the route ends."""
        self._silent = True
        return _Out(self._send, self._head, self._headers, self._counts)


def _ended(out: _Out, task: asyncio.Task[None]) -> None:
    """A place is free. Of an error only the kind and the place are told: its message may repeat what was asked."""
    out.leave()
    error = None if task.cancelled() else task.exception()
    if error is not None:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "unknown place"
        _log.error("internal error: %s in %s", type(error).__name__, place)


async def _told(response: Response, scope: Scope, out: _Out) -> None:
    if not out.started:
        await response(scope, _nothing, out)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def route_path(scope: Mapping[str, Any], prefix: str) -> str:
    """Without the prefix, which a proxy may have removed or not."""
    path: str = scope["path"]
    return path[len(prefix) :] or "/" if prefix and (path == prefix or path.startswith(f"{prefix}/")) else path
