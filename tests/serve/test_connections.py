"""Idle connections: real sockets, a small limit and a short timeout."""

from __future__ import annotations

import asyncio
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from discreet.serve.config import Config
from discreet.serve.http import connections
from discreet.serve.server import bind, settings_of
from support.web_client import released

pytestmark = pytest.mark.slow  # they wait

CONNECTIONS, TIMEOUT = 20, 1.0
LARGE = 1 << 24
NEIGHBOUR = "127.0.0.2"


async def plain(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """/slow takes longer than the client timeout, /large exceeds the buffers."""
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * TIMEOUT)
    size = LARGE if scope["path"] == "/large" else 4
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(max(size >> 20, 1)):
        await send(
            {"type": "http.response.body", "body": b"done"[:size] * max(min(size, 1 << 20) // 4, 1), "more_body": True}
        )
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", CONNECTIONS)
    monkeypatch.setattr(connections, "CLIENT_TIMEOUT", TIMEOUT)
    bound = bind("127.0.0.1", 0)
    settings = {**settings_of(Config()), "limit_concurrency": CONNECTIONS + 1, "lifespan": "off"}
    server = uvicorn.Server(uvicorn.Config(plain, **settings))
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]))
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()


@contextmanager
def connected(port: int, source: str = "127.0.0.1", **options: int) -> Iterator[socket.socket]:
    with socket.socket() as one:
        for name, value in options.items():
            one.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        one.settimeout(30)
        one.bind((source, 0))
        one.connect(("127.0.0.1", port))
        yield one


def ask(one: socket.socket, path: str = "/") -> str:
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    actual = one.recv(1 << 16)
    while actual and not actual.endswith((b"done", b"}", b"limit.")) and (more := one.recv(1 << 16)):
        actual += more
    return actual.decode("latin-1")


def closed_after(one: socket.socket, drip: bytes = b"") -> float:
    """Seconds until the other side is gone; meanwhile it gets a byte now and then."""
    began = time.monotonic()
    one.settimeout(TIMEOUT / 5)
    while time.monotonic() - began < 30:
        try:
            if not one.recv(1 << 10):
                break
        except TimeoutError:
            try:
                one.sendall(drip)
            except OSError:
                break
        except OSError:
            break
    return time.monotonic() - began


def test_idle_connections_of_one_client_do_not_keep_another_out(port: int) -> None:
    with ExitStack() as stack:
        early = stack.enter_context(connected(port, NEIGHBOUR))
        many = [stack.enter_context(connected(port)) for _ in range(CONNECTIONS + 10)]
        with connected(port, NEIGHBOUR) as late:
            assert ask(late).startswith("HTTP/1.1 200")
        assert ask(early).startswith("HTTP/1.1 200")  # it had waited longest, but others had more
        assert ask(many[-1]).startswith("HTTP/1.1 200")
        assert closed_after(many[0]) < TIMEOUT


def test_connections_that_are_being_answered_are_not_closed_for_others(port: int) -> None:
    with ExitStack() as stack:
        busy = [stack.enter_context(connected(port)) for _ in range(CONNECTIONS)]
        for one in busy:
            one.sendall(b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n")
        time.sleep(TIMEOUT / 4)
        with connected(port, NEIGHBOUR) as late:
            assert ask(late).startswith("HTTP/1.1 503")
        assert [one.recv(1 << 10)[:12] for one in busy] == [b"HTTP/1.1 200"] * CONNECTIONS


@pytest.mark.parametrize(
    ("begun", "drip"),
    [(b"", b""), (b"GET / HTTP/1.1\r\nX-Long: ", b""), (b"GET / HTTP/1.1\r\nX-Long: ", b"x")],
    ids=["nothing", "half", "one byte after the other"],
)
def test_a_request_that_never_ends_is_closed(port: int, begun: bytes, drip: bytes) -> None:
    with connected(port) as one:
        one.sendall(begun)
        assert TIMEOUT * 0.5 < closed_after(one, drip) < 10 * TIMEOUT


def test_a_second_request_that_never_ends_is_closed(port: int) -> None:
    with connected(port) as one:
        assert ask(one).startswith("HTTP/1.1 200")
        one.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        assert closed_after(one, b"x") < 10 * TIMEOUT


def test_the_time_that_an_answer_takes_is_not_the_clients(port: int) -> None:
    with connected(port) as one:
        assert ask(one, "/slow").startswith("HTTP/1.1 200")


def test_whoever_asks_again_and_again_stays(port: int) -> None:
    with connected(port) as one:
        for _ in range(10):
            assert "200" in ask(one)
            time.sleep(TIMEOUT / 4)


def test_whoever_does_not_read_is_closed_and_whoever_reads_slowly_is_not(port: int) -> None:
    with connected(port, SO_RCVBUF=1 << 14) as deaf, connected(port, SO_RCVBUF=1 << 20) as slow:
        for one in (deaf, slow):
            one.sendall(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
        got = 0
        while got <= LARGE and (piece := slow.recv(1 << 20)):
            got += len(piece)
            time.sleep(TIMEOUT / 20)
        assert got > LARGE
        time.sleep(3 * TIMEOUT)
        left = 0
        with suppress(ConnectionResetError):
            while piece := deaf.recv(1 << 20):
                left += len(piece)
        assert left < LARGE


MANY = 1_200


@pytest.mark.full
def test_a_thousand_and_more_idle_connections(tmp_path: Path) -> None:
    """Against the command as it is started; another client is answered meanwhile, and they are gone in the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3 * MANY), hard))
    command = [sys.executable, "-m", "discreet", "serve", str(released(tmp_path)), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, ExitStack() as stack:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            actual = re.search(r":(\d+)/", server.stdout.readline())
            assert actual
            port = int(actual[1])
            idle = [stack.enter_context(connected(port)) for _ in range(MANY)]
            for _ in range(20):
                with connected(port, NEIGHBOUR) as other:
                    assert ask(other, "/health").startswith("HTTP/1.1 200")
            time.sleep(connections.TIMEOUT + 2)
            assert all(closed_after(one) < 1 for one in idle)
        finally:
            server.terminate()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
