"""The middleware: headers, limits on size, time, concurrency and rate, and errors without internals."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Response

from discreet.serve.config import Config
from discreet.serve.http.middleware import POLICY, RequestLimitMiddleware, route_path
from discreet.serve.http.rate import MOST_CLIENTS, ClientSemaphores, RateLimiter, client_address
from support.web_client import WebClient, is_problem, open_app, released

SECRET = "what-people-ask"


def guarded(config: Config = Config(), **more: Any) -> FastAPI:  # noqa: B008 - frozen
    """A few routes that misbehave."""
    app = FastAPI(openapi_url=None)
    app.state.counts = Counter()
    app.state.gate = threading.Event()
    app.add_middleware(RequestLimitMiddleware, config=config, counts=app.state.counts, **more)

    @app.get("/fails")
    def fails(q: str = "") -> None:
        raise RuntimeError(f"/secret/path {q}")

    @app.get("/slow")
    def slow() -> str:
        app.state.gate.wait(20)
        return "done"

    @app.get("/fast")
    def fast() -> str:
        return "done"

    @app.get("/tells")
    def tells(response: Response) -> str:
        response.headers["Server"] = "x/1.2.3"
        response.set_cookie("who", "you")
        response.headers["Content-Security-Policy"] = "default-src *"
        return "done"

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.post("/api/v2/data")
    async def data() -> str:
        return "done"

    return app


@pytest.fixture
def web() -> Iterator[WebClient]:
    client = WebClient(guarded())
    yield client
    client.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    client = WebClient(open_app(released(tmp_path_factory.mktemp("served"))))
    yield client
    client.close()


# --- headers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/health", "/api/v2/config", "/nowhere", "/api/v2/tables/none"])
def test_every_answer_has_the_headers(real: WebClient, path: str) -> None:
    for response in (real.get(path), real("HEAD", path), real("DELETE", path)):
        headers = response.headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "camera=()" in headers["permissions-policy"]
        assert headers["cross-origin-opener-policy"] == "same-origin"
        api = path.startswith("/api")
        assert headers["cross-origin-resource-policy"] == ("cross-origin" if api else "same-origin")
        assert headers.get("access-control-allow-origin") == ("*" if api else None)
        assert "server" not in headers
        assert "set-cookie" not in headers
        if response.status_code >= 400:
            assert headers["cache-control"] == "no-store"


def test_the_policy_is_the_strict_one() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )


def test_no_route_can_set_a_cookie_name_the_server_or_loosen_the_policy(web: WebClient) -> None:
    headers = web.get("/tells").headers
    assert "server" not in headers
    assert "set-cookie" not in headers
    assert headers.get_list("content-security-policy") == [POLICY]


def test_no_pages_of_the_framework_with_scripts_from_elsewhere(real: WebClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert real.get(path).status_code == 404
    assert real.get("/api/v2/openapi.json").status_code == 200


# --- methods and size ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "POST", "QUERY"])
def test_other_methods_are_refused(real: WebClient, method: str) -> None:
    response = real(method, "/api/v2/tables")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"
    assert is_problem(response)


def test_a_post_is_for_data_alone_and_options_says_so(real: WebClient) -> None:
    assert real("OPTIONS", "/api/v2/tables/cube/data").headers["allow"] == "GET, HEAD, OPTIONS, POST"
    preflight = real("OPTIONS", "/api/v2/tables/cube/data")
    assert preflight.status_code == 204
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert real("OPTIONS", "/").headers["allow"] == "GET, HEAD, OPTIONS"
    assert "access-control-allow-methods" not in real("OPTIONS", "/").headers
    assert real.post("/data").status_code == 405


def test_a_body_or_a_link_that_is_too_long_is_refused(web: WebClient) -> None:
    async def drip() -> AsyncIterator[bytes]:  # without a length
        for _ in range(70):
            yield b"x" * 1_000

    for body in (b"x" * ((1 << 16) + 1), drip()):
        response = web.post("/api/v2/data", content=body)
        assert response.status_code == 413
        assert is_problem(response)
    assert web.post("/api/v2/data", content=b"x" * (1 << 16)).status_code == 200
    long = asyncio.run(_raw(guarded(), "GET", "/fast", query_string=b"x" * ((1 << 16) + 1)))
    assert long[0]["status"] == 414
    assert json.loads(long[1]["body"])["status"] == 414


@pytest.mark.parametrize("length", [b"-1", b"9" * 40, b"\xb2", b"x"])
def test_a_strange_length_is_harmless(length: bytes) -> None:
    actual = asyncio.run(_raw(guarded(), "POST", "/api/v2/data", headers=[(b"content-length", length)]))
    assert actual[0]["status"] == 200


async def _raw(app: FastAPI, method: str, path: str, **more: Any) -> list[Any]:
    """One request without a client library, which would not send such things."""
    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", **more}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def test_a_body_that_never_comes_or_ends_early() -> None:
    async def ask(first: str) -> int:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if first == "never":
                await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/api/v2/data", "headers": [], "query_string": b""}
        await guarded(Config(timeout=0.1))(scope, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(ask("never")) == 408
    assert asyncio.run(ask("ends")) == 400


def test_websockets_are_closed() -> None:
    sent: list[Any] = []

    async def run() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        await guarded()({"type": "websocket", "path": "/", "headers": []}, receive, send)

    asyncio.run(run())
    assert sent == [{"type": "websocket.close", "code": 1008}]


# --- time and number ----------------------------------------------------------------------------------------------


def test_an_answer_that_takes_too_long_is_given_up_and_keeps_its_place() -> None:
    app = guarded(Config(timeout=0.3, concurrency=1))
    web = WebClient(app)
    response = web.get("/slow")
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) >= 1
    assert is_problem(response)
    assert web.get("/fast").status_code == 503  # the thread still runs
    assert web.get("/health").status_code == 200  # told all the same
    app.state.gate.set()
    time.sleep(0.1)
    assert web.get("/fast").status_code == 200
    web.close()


def test_what_comes_too_late_is_not_sent_after_the_refusal() -> None:
    app, sent = guarded(Config(timeout=0.2)), list[Any]()

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/slow", "headers": [], "query_string": b""}
        await app(scope, receive, send)
        app.state.gate.set()
        await asyncio.sleep(0.3)  # the route ends now, and speaks

    asyncio.run(ask())
    assert [message.get("status") for message in sent] == [503, None]
    assert app.state.counts == {"5xx": 1}


def test_more_than_may_be_answered_wait_and_more_than_may_wait_are_refused() -> None:
    app = guarded(Config(timeout=4, concurrency=2))
    web = WebClient(app)
    timer = threading.Timer(0.4, app.state.gate.set)
    timer.start()
    actual = sorted(response.status_code for response in web.together(["/slow"] * 9))
    assert actual == [200] * 6 + [503] * 3  # two at once, four waiting
    assert sorted(r.status_code for r in web.together(["/fast"] * 6)) == [200] * 6
    timer.join()
    web.close()


# --- rate ---------------------------------------------------------------------------------------------------------


def test_a_client_has_so_many_calls_in_a_window() -> None:
    now = [0.0]
    rate = RateLimiter(10, 5.0, lambda: now[0])
    assert [rate.wait("a") for _ in range(10)] == [0.0] * 10
    assert rate.wait("a") == pytest.approx(0.5)
    assert rate.wait("b") == 0
    now[0] += 0.5
    assert rate.wait("a") == 0
    assert rate.wait("a") > 0
    now[0] += 100
    assert [rate.wait("a") > 0 for _ in range(11)] == [False] * 10 + [True]


def test_clients_are_forgotten_in_time() -> None:
    now = [0.0]
    rate = RateLimiter(10, 5.0, lambda: now[0])
    for i in range(MOST_CLIENTS + 10):
        rate.wait(str(i))
    assert len(rate._left) <= MOST_CLIENTS
    now[0] += 100
    for i in range(MOST_CLIENTS):
        rate.wait(f"new {i}")
    assert len(rate._left) <= MOST_CLIENTS


def test_too_many_calls_are_told_when_to_come_back() -> None:
    app = guarded(Config(max_calls=3, window=60))
    web, other = WebClient(app), WebClient(app, "192.0.2.9")
    assert [web.get("/fast").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = web.get("/fast")
    assert is_problem(refused)
    assert 1 <= int(refused.headers["retry-after"]) <= 20
    assert other.get("/fast").status_code == 200
    assert web.get("/health").status_code == 200
    assert web.get("/static/x.css").status_code == 404  # not counted
    web.close()
    other.close()


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusting", "client"),
    [
        ("192.0.2.1", None, False, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", False, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", True, "198.51.100.7"),
        ("192.0.2.1", "10.0.0.1, 198.51.100.7", True, "198.51.100.7"),
        ("192.0.2.1", "10.0.0.1, nonsense", True, ""),
        ("192.0.2.1", None, True, "192.0.2.1"),
        ("2001:db8::1", None, False, "2001:db8::/64"),
        ("2001:db8::ffff:1", None, False, "2001:db8::/64"),
    ],
)
def test_who_asks(peer: str, forwarded: str | None, trusting: bool, client: str) -> None:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    assert client_address({"client": (peer, 1), "headers": headers}, trust_proxy=trusting) == client


def test_a_forwarded_address_counts_only_if_the_proxy_is_trusted() -> None:
    for trusting, last in ((False, 429), (True, 200)):
        web = WebClient(guarded(Config(max_calls=1, window=60), trust_proxy=trusting))
        assert web.get("/fast", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 200
        assert web.get("/fast", headers={"X-Forwarded-For": "192.0.2.2"}).status_code == last
        web.close()


# --- nothing about the inside, nothing about the people -----------------------------------------------------------


def test_an_error_reveals_nothing_and_its_log_entry_only_where(caplog: pytest.LogCaptureFixture) -> None:
    web = WebClient(guarded())
    with caplog.at_level(logging.DEBUG):
        response = web.get(f"/fails?q={SECRET}")
    assert response.status_code == 500
    assert is_problem(response)
    assert "secret" not in response.text
    assert "internal error: RuntimeError in test_middleware.py, line" in caplog.text
    assert SECRET not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("discreet"))
    assert "Traceback" not in caplog.text
    web.close()


def test_only_counts_are_kept(tmp_path: Path) -> None:
    app = guarded()
    web = WebClient(app)
    for path in ("/fast", f"/fast?{SECRET}", "/nowhere", "/fails"):
        web.get(path)
    assert app.state.counts == {"2xx": 2, "4xx": 1, "5xx": 1}
    web.close()


def test_health_counts_by_class(tmp_path: Path, real: WebClient) -> None:
    before = real.get("/health").json()["requests"]
    real.get(f"/api/v2/tables/{SECRET}")
    real.get("/api/v2/tables")
    after = real.get("/health").json()
    assert after["status"] == "ok"
    assert after["tables"] == 3
    assert after["requests"]["4xx"] == before.get("4xx", 0) + 1
    assert after["requests"]["2xx"] == before.get("2xx", 0) + 2
    assert SECRET not in str(after)


def test_queries_are_not_logged(
    real: WebClient, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        real.get(f"/api/v2/tables/cube/data?valueCodes[{SECRET}]=*")
    ours = [r for r in caplog.records if not r.name.startswith(("httpx", "httpcore", "asyncio"))]
    assert not ours
    assert capfd.readouterr() == ("", "")


def test_the_framework_tells_nobody(real: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    app = real._client._transport.app  # type: ignore[attr-defined]
    assert not any(app._telemetry[name] for name in ("tracing", "metrics", "logs", "auto_configure"))


@pytest.mark.parametrize(
    ("path", "actual"), [("/a/b", "/b"), ("/a", "/"), ("/ab", "/ab"), ("/b", "/b"), ("/a/a/b", "/a/b")]
)
def test_a_prefix_is_removed_once(path: str, actual: str) -> None:
    assert route_path({"path": path}, "/a") == actual
    assert route_path({"path": path}, "") == path


def test_the_client_of_these_tests_raises_what_the_guard_lets_through() -> None:
    app = FastAPI()

    @app.get("/fails")
    def fails() -> None:
        raise RuntimeError

    web = WebClient(app)
    with pytest.raises(RuntimeError):
        web.get("/fails")
    web.close()


# --- one client beside others -------------------------------------------------------------------------------------


def test_one_client_has_no_more_than_its_share_of_slots() -> None:
    async def run() -> None:
        turns = ClientSemaphores(2)
        greedy, other = turns.of("greedy"), turns.of("other")
        for _ in range(2):
            await greedy.acquire()
        assert turns.of("greedy") is greedy
        assert greedy.locked()
        third = asyncio.create_task(greedy.acquire())
        await asyncio.wait_for(other.acquire(), 1)
        await asyncio.sleep(0)
        assert not third.done()
        greedy.release()
        await asyncio.wait_for(third, 1)
        del greedy, other, third
        assert not turns._known  # nobody is remembered

    asyncio.run(run())


def test_a_turn_that_is_given_up_is_not_kept() -> None:
    async def run() -> None:
        turns = ClientSemaphores(1)
        turn = turns.of("a")
        await turn.acquire()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await turn.acquire()
        turn.release()
        assert not turn.locked()

    asyncio.run(run())


def test_clients_are_forgotten_after_their_answers() -> None:
    app = guarded(Config())
    web = WebClient(app)
    assert web.get("/fast").status_code == 200
    [guard] = (
        one for one in gc.get_objects() if type(one) is RequestLimitMiddleware and one._counts is app.state.counts
    )
    gc.collect()
    assert not guard._turns._known
    web.close()


@pytest.mark.parametrize(
    ("address", "client"),
    [("::ffff:203.0.113.9", "203.0.113.9"), ("2001:db8::1", "2001:db8::/64"), ("203.0.113.9", "203.0.113.9")],
)
def test_clients_are_told_apart_by_address(address: str, client: str) -> None:
    scope = {"client": ("192.0.2.1", 1), "headers": [(b"x-forwarded-for", address.encode())]}
    assert client_address(scope, trust_proxy=True) == client
    assert client_address(scope, trust_proxy=False) == "192.0.2.1"
