"""The client, against a small server in a thread: its queries, and how it reads answers and refusals."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.serve import client as client_module
from discreet.serve.client import Client, QueryRejected, ServerUnreachable, read
from discreet.serve.formats import FORMATS, columns
from discreet.serve.query_model import Answer, TableVariable
from discreet.serve.query_string import parse_query
from support.answers import ABOUT, COUNT, ERROR, NASTY, PLACE, SEX, answers, jobs
from support.hypothesis_profile import examples

Reply = tuple[int, dict[str, str], bytes]
DATA = FORMATS["json-stat2"].write(jobs(), ABOUT)


def problem(status: int, **headers: str) -> Reply:
    body = {"type": "about:blank", "title": "No", "status": status, "detail": "No code 'z' of sex. It has f, m."}
    return status, headers, json.dumps(body).encode()


@dataclass
class Server:
    """Replies as configured, and records requests."""

    url: str = ""
    reply: Callable[[str, Any], Reply] = lambda path, headers: (200, {}, DATA)
    requests: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def last(self) -> tuple[str, list[tuple[str, str]]]:
        parts = urlsplit(self.requests[-1][0])
        return parts.path, parse_qsl(parts.query, keep_blank_values=True)


@pytest.fixture
def server() -> Iterator[Server]:
    actual = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            actual.requests.append((self.path, self.headers))
            status, headers, body = actual.reply(self.path, self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        actual.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield actual
        running.shutdown()
        thread.join()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    actual: list[float] = []
    clock = SimpleNamespace(sleep=actual.append, time=lambda: 1_700_000_000.0)
    monkeypatch.setattr(client_module, "time", clock)
    return actual


def test_rows_and_arrow(server: Server) -> None:
    data = Client(server.url).data("jobs", by={"place": "*", "sex": "*"})
    assert (data.label, data.source, data.updated, data.simulation) == (
        "Jobs by place",
        "jobs-2024",
        "2024-05-01",
        False,
    )
    assert ABOUT.guarantee in data.notes
    assert data.variables[1].labels == SEX.labels
    assert data.rows() == [
        {"place": "US-CA", "sex": "f", "estimate": 1200.0, "se": 14.1, "status": ""},
        {"place": "US-CA", "sex": "m", "estimate": -3.0, "se": 2.2, "status": "x"},
        {"place": "US-CA", "sex": "x", "estimate": 0.0, "se": 0.0, "status": "u"},
        {"place": "US-NV", "sex": "f", "estimate": None, "se": None, "status": "s"},
        {"place": "US-NV", "sex": "m", "estimate": None, "se": None, "status": ":"},
        {"place": "US-NV", "sex": "x", "estimate": 7.0, "se": None, "status": ""},
    ]
    assert data.arrow().to_pylist() == data.rows()
    assert data.arrow().schema.types == [pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string()]
    with pytest.raises(AttributeError):
        data.label = "other"


def test_the_query_that_is_sent(server: Server) -> None:
    Client(f"{server.url}/statistics/", language="fr").data(
        "jobs by place/1",
        by={"place": "*", "sex": ["f", "m"], "odd": ["a,b", "c"], "one": "x"},
        where={"sector": ["11", "21"]},
        measures=["estimate", "se"],
    )
    path, query = server.last
    assert path == "/statistics/api/v2/tables/jobs%20by%20place%2F1/data"
    assert query == [
        ("lang", "fr"),
        ("valueCodes[place]", "*"),
        ("valueCodes[sex]", "f,m"),
        ("valueCodes[odd]", "a\\,b"),
        ("valueCodes[odd]", "c"),
        ("valueCodes[one]", "x"),
        ("where[sector]", "11,21"),
        ("valueCodes[ContentsCode]", "estimate,se"),
        ("outputFormat", "json-stat2"),
    ]


class PublishedTable:
    """The part of a table that query strings are parsed with."""

    summary = ABOUT
    variables = (PLACE, SEX, TableVariable("sector", "Sector", ("11",), ("Farming",)))
    measures = (COUNT, ERROR)


LIKE = ["*", "?", "6?", "top(1)", "[range(a,b)]", "a\\", "\\,"]  # codes that look like expressions


@examples(60)
@given(codes=st.lists((st.sampled_from([*NASTY, *LIKE]) | st.text(min_size=1)).filter(bool), min_size=1))
def test_the_server_reads_what_the_client_writes(codes: list[str]) -> None:
    sent: list[str] = []

    class Told(Client):
        def _body(self, url: str, *, again: bool) -> bytes:
            sent.append(url)
            return DATA

    Told("http://localhost").data("jobs", by={"sex": codes, "place": "*"}, where={"sector": codes}, measures=["se"])
    actual, others = parse_query(PublishedTable(), urlsplit(sent[0]).query, ("lang", "outputFormat"))
    assert actual.by == (("sex", tuple(codes)), ("place", ()))
    assert sorted(actual.where[0][1]) == sorted(codes)
    assert actual.measures == ("se",)
    assert others == {"lang": "en", "outputFormat": "json-stat2"}


def test_no_codes_are_not_all_codes(server: Server) -> None:
    for asked_for in ({"by": {"sex": []}}, {"where": {"sex": []}}):
        with pytest.raises(QueryRejected, match=r"\[sex\]: has no codes"):
            Client(server.url).data("jobs", **asked_for)
    assert server.requests == []


def test_the_catalogue_page_by_page(server: Server) -> None:
    def reply(path: str, headers: Any) -> Reply:
        page = int(dict(parse_qsl(urlsplit(path).query)).get("pageNumber", "1"))
        body = {"tables": [{"id": f"t{page}"}], "page": {"pageNumber": page, "totalPages": 3}}
        return 200, {}, json.dumps(body).encode()

    server.reply = reply
    assert [table["id"] for table in Client(server.url).tables()] == ["t1", "t2", "t3"]
    server.reply = lambda path, headers: (200, {}, b'{"tables": [{"id": "only"}]}')
    assert Client(server.url).tables() == [{"id": "only"}]


def test_metadata(server: Server) -> None:
    server.reply = lambda path, headers: (200, {}, b'{"class": "dataset"}')
    assert Client(server.url).metadata("jobs") == {"class": "dataset"}
    assert server.last == ("/api/v2/tables/jobs/metadata", [("lang", "en")])


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 503])
def test_refusals_quote_the_problem_details_of_the_server(server: Server, naps: list[float], status: int) -> None:
    server.reply = lambda path, headers: problem(status, **{"Retry-After": "1"})
    with pytest.raises(QueryRejected, match=r"No code 'z' of sex\. It has f, m\.") as caught:
        Client(server.url).data("jobs")
    assert caught.value.status == caught.value.problem["status"] == status
    assert caught.value.where == f"{server.url}/api/v2/tables/jobs/data"
    assert isinstance(caught.value, DiscreetError)
    assert (len(server.requests), naps) == (1, [])


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"\xff", b'"x"', b""])
def test_refusals_without_problem_details(server: Server, body: bytes) -> None:
    server.reply = lambda path, headers: (502, {}, body)
    with pytest.raises(QueryRejected, match="Bad Gateway") as caught:
        Client(server.url).data("jobs")
    assert caught.value.status == 502


@pytest.mark.parametrize(("header", "nap"), [("2", 2.0), (formatdate(1_700_000_005, usegmt=True), 5.0), ("0", 0.0)])
def test_too_many_calls_wait_once(server: Server, naps: list[float], header: str, nap: float) -> None:
    def reply(path: str, headers: Any) -> Reply:
        return problem(429, **{"Retry-After": header}) if len(server.requests) == 1 else (200, {}, DATA)

    server.reply = reply
    assert len(Client(server.url).data("jobs").rows()) == 6
    assert (naps, len(server.requests)) == ([nap], 2)


def test_too_many_calls_do_not_wait_twice(server: Server, naps: list[float]) -> None:
    server.reply = lambda path, headers: problem(429, **{"Retry-After": "2"})
    with pytest.raises(QueryRejected) as caught:
        Client(server.url).data("jobs")
    assert (caught.value.status, naps, len(server.requests)) == (429, [2.0], 2)


@pytest.mark.parametrize("header", [{}, {"Retry-After": "soon"}, {"Retry-After": "3600"}, {"Retry-After": "²"}])
def test_nor_without_a_time_or_for_long(server: Server, naps: list[float], header: dict[str, str]) -> None:
    server.reply = lambda path, headers: problem(429, **header)
    with pytest.raises(QueryRejected):
        Client(server.url).data("jobs")
    assert (naps, len(server.requests)) == ([], 1)


def test_unchanged_answers_are_read_from_the_cache(server: Server) -> None:
    tag = '"one"'

    def reply(path: str, headers: Any) -> Reply:
        if headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        return 200, {"ETag": tag}, DATA

    server.reply = reply
    client = Client(server.url)
    first = client.data("jobs")
    assert server.requests[-1][1].get("If-None-Match") is None
    assert client.data("jobs") == first
    assert server.requests[-1][1].get("If-None-Match") == tag
    assert client.data("jobs", measures=["se"])
    assert server.requests[-1][1].get("If-None-Match") is None  # another question
    tag = '"two"'
    assert client.data("jobs") == first
    client.data("jobs")
    assert server.requests[-1][1].get("If-None-Match") == tag
    assert repr(client) == f"Client(url={server.url!r}, timeout=30.0, language='en')"


def test_a_new_answer_without_a_tag_is_forgotten(server: Server) -> None:
    server.reply = lambda path, headers: (200, {"ETag": '"one"'} if len(server.requests) == 1 else {}, DATA)
    client = Client(server.url)
    for _ in range(3):
        client.data("jobs")
    assert [headers.get("If-None-Match") for _, headers in server.requests] == [None, '"one"', None]


def test_the_cache_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CACHED", 2)
    server.reply = lambda path, headers: (200, {"ETag": '"t"'}, DATA)
    client = Client(server.url)
    for name in "abca":
        client.data(name)
    assert server.requests[-1][1].get("If-None-Match") is None
    client.data("c")
    assert server.requests[-1][1].get("If-None-Match") == '"t"'


def test_no_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ServerUnreachable, match="cannot be reached"):
            Client(f"http://127.0.0.1:{taken.getsockname()[1]}", timeout=2).tables()


def test_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ServerUnreachable, match="timed out"):
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1).tables()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "statistics.example.org", "", "ftp://x/"])
def test_only_web_addresses(url: str) -> None:
    with pytest.raises(ServerUnreachable, match="not a web address"):
        Client(url)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff\xfe", b""])
def test_not_json(server: Server, body: bytes) -> None:
    server.reply = lambda path, headers: (200, {}, body)
    with pytest.raises(ServerUnreachable, match="did not answer in JSON"):
        Client(server.url).tables()


@examples(60)
@given(answer=answers())
def test_all_that_is_written_is_read(answer: Answer) -> None:
    data = read(json.loads(FORMATS["json-stat2"].write(answer, ABOUT)))
    assert [v.codes for v in data.variables] == [v.codes for v in answer.variables]
    assert [v.labels for v in data.variables] == [v.labels for v in answer.variables]
    for measure in answer.measures:
        expected = [None if x != x else x for x in columns.rounded(answer, measure).tolist()]
        assert list(data.numbers[measure.id]) == expected
    assert list(data.status) == [str(mark) for mark in answer.status]
    assert len(data.rows()) == len(answer)
    width = len(answer.variables) + len(answer.measures) + 1
    assert all(len(row) == width for row in data.rows())
    assert data.arrow().num_columns == width


def test_json_stat_of_others() -> None:
    """Measures first, sparse values, an index as a list, no index for one code, one status for all."""
    data = read(
        {
            "id": ["m", "a", "b"],
            "size": [2, 2, 1],
            "role": {"metric": ["m"]},
            "dimension": {
                "m": {"category": {"index": ["n", "k"]}},
                "a": {"category": {"index": {"y": 1, "x": 0}, "label": {"x": "X", "y": "Y"}}},
                "b": {"category": {"label": {"only": "Only"}}},
            },
            "value": {"0": 1, "3": 4.5},
            "status": "e",
        }
    )
    assert data.rows() == [
        {"a": "x", "b": "only", "n": 1.0, "k": None, "status": "e"},
        {"a": "y", "b": "only", "n": None, "k": 4.5, "status": "e"},
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"value": [1, 2]},
        {"value": "x"},
        {"value": ["1"] * 12},
        {"value": None},
        {"size": [1, 1, 1]},
        {"role": {}},
        {"role": {"metric": ["other"]}},
        {"id": ["place"]},
        {"id": ["nowhere"]},
        {"dimension": []},
        {"status": ["a", "b"]},
    ],
)
def test_what_is_not_a_dataset(change: dict[str, Any]) -> None:
    with pytest.raises(ServerUnreachable):
        read(json.loads(DATA) | change)


def test_it_needs_nothing_but_the_standard_library() -> None:
    script = (
        "import sys; from discreet.serve.client import Client\n"
        "print([m for m in ('numpy', 'pyarrow', 'duckdb', 'pydantic', 'fastapi', 'requests') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
