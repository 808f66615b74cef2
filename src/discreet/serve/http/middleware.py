"""Middleware around every route: limits on size, time, concurrency and rate; headers; errors without internals.

Responses are counted by class of status. Nothing else about requests is stored or logged.
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
from discreet.serve.http.rate import ClientSemaphores, RateLimiter, client_address

API, HEALTH, STATIC = "/api/v2", "/health", "/static/"
READ = "GET, HEAD, OPTIONS"
WAITING = 2  # waiting requests allowed per concurrent answer
SHARE = 4  # one client may have this fraction (1/SHARE) of the concurrent answers
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
OPEN = {  # any site may use the numbers: there are no cookies and no users
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


class RequestLimitMiddleware:
    """ASGI middleware that enforces the limits of a `Config` and sets security headers."""

    def __init__(self, app: ASGIApp, config: Config, counts: Counter[str], *, trust_proxy: bool = False) -> None:
        self._app, self._config, self._counts, self._trust = app, config, counts, trust_proxy
        self._rate = RateLimiter(config.max_calls, config.window)
        self._free = asyncio.Semaphore(config.concurrency)
        self._waiting = 0
        self._turns = ClientSemaphores(max(config.concurrency // SHARE, 2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            prefix = self._config.prefix
            path = route_path(scope, prefix)
            path = path.rstrip("/") if path.startswith(f"{API}/") else path
            headers = HEADERS | (OPEN if path.startswith(API) else PAGE)
            out = _ResponseSender(send, scope["method"] == "HEAD", headers, self._counts)
            here = {"root_path": prefix, "path": prefix + path, "scheme": self._scheme(scope)}
            await self._http({**scope, **here}, receive, out, path)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, out: _ResponseSender, path: str) -> None:
        refusal = self._refusal(scope, path)
        if refusal is not None:
            await refusal(scope, receive, out)
            return
        try:
            async with asyncio.timeout(self._config.timeout):
                body = await self._body(scope, receive)
        except TimeoutError:
            body = problem(408, "The request body did not arrive in time.")
        if isinstance(body, Response):
            await body(scope, receive, out)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        if path == HEALTH or path.startswith(STATIC):
            await self._app(scope, receive, out)
            return
        turn = self._turns.of(client_address(scope, trust_proxy=self._trust))
        if await self._entered(turn):
            await self._answered(scope, _replay(body, receive), out, turn)
        else:
            await self._busy("The server is busy. Try again later.")(scope, receive, out)

    def _scheme(self, scope: Scope) -> str:
        """The scheme of the request, or the one that a trusted proxy forwards."""
        forwarded = dict(scope["headers"]).get(b"x-forwarded-proto", b"").decode("latin-1") if self._trust else ""
        return forwarded if forwarded in ("http", "https") else str(scope.get("scheme", "http"))

    # --- before the body is read ------------------------------------------------------------------------------------

    def _refusal(self, scope: Scope, path: str) -> Response | None:
        method, api = scope["method"], path.startswith(API)
        may_post = api and path.endswith("/data")
        allowed = f"{READ}, POST" if may_post else READ
        if method == "OPTIONS":
            return Response(status_code=204, headers={"allow": allowed, **(PREFLIGHT if api else {})})
        if method not in allowed.split(", "):
            return problem(405, f"Allowed methods here: {allowed}.", headers={"allow": allowed})
        if len(scope.get("query_string", b"")) > self._config.max_body:
            return problem(
                414, f"The query string is longer than {self._config.max_body:,} bytes: send the query by POST."
            )
        if path == HEALTH or path.startswith(STATIC):
            return None
        wait = self._rate.wait(client_address(scope, trust_proxy=self._trust))
        if wait > 0:
            detail = (
                f"More than {self._config.max_calls:,} requests in {self._config.window} seconds: wait, then try again."
            )
            return problem(429, detail, headers={"retry-after": str(ceil(wait))})
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The whole body, if it is within the limit."""
        if scope["method"] != "POST":
            return b""
        most = self._config.max_body
        too_large = problem(413, f"The request body is longer than {most:,} bytes.", headers={"connection": "close"})
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and len(length) < 20 and int(length) > most:
            return too_large
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return problem(400, "The request body ended early.")
            body += message.get("body", b"")
            if len(body) > most:
                return too_large
            if not message.get("more_body", False):
                return bytes(body)

    # --- concurrency and time ---------------------------------------------------------------------------------------

    async def _entered(self, turn: asyncio.Semaphore) -> bool:
        """Whether a slot for this client, and one of the server, became free in time."""
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

    async def _answered(self, scope: Scope, receive: Receive, out: _ResponseSender, turn: asyncio.Semaphore) -> None:
        """Run the route. A thread that exceeds the time limit keeps its slot until it ends; its client gets 503."""
        out.on_start = partial(self._left, turn)
        task = asyncio.ensure_future(self._app(scope, receive, out))
        task.add_done_callback(partial(_release_place, out))
        await asyncio.wait({task}, timeout=self._config.timeout)
        if task.done():
            await _send_once(problem(500, "Internal error of the server."), scope, out)
        elif not out.started:
            instead = out.abandon()
            await _send_once(self._busy("The answer took too long. Request fewer numbers."), scope, instead)
        else:
            await asyncio.wait({task})  # the client reads slowly

    def _busy(self, detail: str) -> Response:
        return problem(503, detail, headers={"retry-after": str(max(1, ceil(self._config.timeout)))})


class _ResponseSender:
    """Sends responses: with our headers, without a body for HEAD, and counted."""

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
        headers = [
            (n.lower(), v) for n, v in message.get("headers", ()) if n.lower() not in ours | dict.fromkeys(DROPPED)
        ]
        if message["status"] >= REFUSED:
            headers = [*((n, v) for n, v in headers if n != b"cache-control"), (b"cache-control", b"no-store")]
        return [*headers, *ours.items()]

    def leave(self) -> None:
        """Release the slot, once."""
        given, self.on_start = self.on_start, None
        if given is not None:
            given()

    def abandon(self) -> _ResponseSender:
        """Stop sending; a new sender answers instead. The slot is kept until the route ends."""
        self._silent = True
        return _ResponseSender(self._send, self._head, self._headers, self._counts)


def _release_place(out: _ResponseSender, task: asyncio.Task[None]) -> None:
    """Release the slot. Only type and location of an error are logged: its message may quote the query."""
    out.leave()
    error = None if task.cancelled() else task.exception()
    if error is not None:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}" if trace else "unknown place"
        _log.error("internal error: %s in %s", type(error).__name__, place)


async def _send_once(response: Response, scope: Scope, out: _ResponseSender) -> None:
    if not out.started:
        await response(scope, _nothing, out)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def route_path(scope: Mapping[str, Any], prefix: str) -> str:
    """The path without the prefix, which a proxy may already have removed."""
    path: str = scope["path"]
    return path[len(prefix) :] or "/" if prefix and (path == prefix or path.startswith(f"{prefix}/")) else path
