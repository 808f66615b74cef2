"""Hostile parameters: none gets through, none takes long, none changes a number. And everything adds up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_from_bytes

import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from support.expected_answers import with_stored
from support.hypothesis_profile import examples
from support.survey import OCCUPATIONS, OUTDOORS, STRENGTH
from support.web_client import WebClient, is_problem, released

DATA = "/api/v2/tables/cube/data"
STORED = "/api/v2/tables/firms/data"
SECONDS = 1.0
PROBES = [f"{DATA}?valueCodes[strength]=*&where[major]=11", f"{STORED}?valueCodes[county]=*&where[strength]=light"]
HOSTILE: list[bytes] = [
    b"' OR 1=1 --",
    b"'; DROP TABLE cube; --",
    b"\" UNION SELECT * FROM read_csv('/etc/passwd') --",
    b"light') OR ('1'='1",
    b"$(id)",
    b"`id`",
    b"${jndi:ldap://evil}",
    b"{{7*7}}",
    b"%s%s%s%n",
    b"../../../../etc/passwd",
    b"..\\..\\manifest.json",
    b"/etc/passwd",
    b"file:///etc/passwd",
    b"http://169.254.169.254/",
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(1)>',
    b"\x00",
    b"light\x00",
    b"\r\nSet-Cookie: a=b",
    b"\x1b[31m",
    "\u202e\u0000\ufeff".encode(),
    "ⅼight".encode(),
    "é".encode(),
    "e\u0301".encode(),
    "\U0001f4a9".encode() * 50,
    b"\xff\xfe",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"A" * 20_000,
    b"," * 20_000,
    b"\\" * 9_999,
    b"[" * 5_000 + b"]" * 5_000,
    b"*,*",
    b"1e400",
    b"-1",
    b"NaN",
    b"null",
    b"true",
    b"__proto__",
    b"__class__",
    b"None",
    b"top(99999999999999999999)",
    b"range(light,",
    b"top(" * 5_000,
    b"?x" * 5_000,
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return with_stored(released(tmp_path_factory.mktemp("served")))


@pytest.fixture(scope="module")
def web(app: FastAPI) -> Iterator[WebClient]:
    client = WebClient(app)
    before = [client.get(path).content for path in PROBES]
    yield client
    assert [client.get(path).content for path in PROBES] == before  # whatever was tried in this module
    client.close()


KEYS = st.sampled_from(["selection", "where", "variableCode", "valueCodes", "codelist"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(["strength", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


class Seen:
    """An answer, as it left the server."""

    def __init__(self, messages: list[Any]) -> None:
        self.status_code = int(messages[0]["status"])
        self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        self.content = b"".join(message.get("body", b"") for message in messages[1:])

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


def is_page(actual: Seen) -> bool:
    """A problem too, or one told to people: what they sent stays text."""
    if not actual.headers["content-type"].startswith("text/html"):
        return is_problem(actual)
    inside = ("Traceback", "site-packages", ".py", "<script>alert", "<img src=x")
    return not any(text in actual.text for text in inside)


def raw(app: FastAPI, method: str, path: str, query: bytes = b"", body: bytes = b"", **headers: str) -> Seen:
    """Bytes as an attacker sends them: no client library puts them right."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": named}
    asyncio.run(app({**scope, "client": ("192.0.2.1", 1), "scheme": "http", "server": ("test", 80)}, receive, send))
    return Seen(sent)


def harmless(app: FastAPI, method: str, path: str, query: bytes = b"", body: bytes = b"", **headers: str) -> Seen:
    actual = raw(app, method, path, query, body, **headers)
    assert 200 <= actual.status_code < 500
    if actual.status_code >= 400:
        assert is_problem(actual) if path.startswith("/api/") else is_page(actual)
        assert len(actual.content) < 4_000 or not path.startswith("/api/")
    assert "set-cookie" not in actual.headers
    assert b"root:" not in actual.content
    return actual


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_hostile_values_are_refused_everywhere(app: FastAPI, text: bytes) -> None:
    quoted = quote_from_bytes(text).encode()
    for path in (DATA, STORED):
        for value in (quoted, text):
            for pattern in (
                b"valueCodes[strength]=%s",
                b"valueCodes[%s]=*",
                b"where[strength]=%s",
                b"where[%s]=light",
                b"valueCodes[ContentsCode]=%s",
                b"codelist[occupation]=%s&valueCodes[occupation]=*",
                b"outputFormat=%s",
                b"lang=%s",
                b"%s",
                b"%s=%s".replace(b"=%s", b"=1"),
            ):
                actual = harmless(app, "GET", path, pattern.replace(b"%s", value))
                assert actual.status_code == 400 or pattern == b"%s"
    for query in (b"query=%s", b"pageNumber=%s", b"pageSize=%s"):
        harmless(app, "GET", "/api/v2/tables", query.replace(b"%s", quoted))
    decoded = text.decode("utf-8", "replace")
    for path in ("/api/v2/tables/%s", "/api/v2/tables/%s/data", "/api/v2/codelists/%s", "/%s", "/static/%s"):
        actual = harmless(app, "GET", path.replace("%s", decoded))
        assert actual.status_code in (400, 404)


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_hostile_bodies_are_refused(app: FastAPI, text: bytes) -> None:
    value = text.decode("utf-8", "surrogateescape")
    for body in (
        {"selection": [{"variableCode": value, "valueCodes": ["*"]}]},
        {"selection": [{"variableCode": "strength", "valueCodes": [value]}]},
        {"selection": [{"variableCode": "occupation", "valueCodes": ["*"], "codelist": value}]},
        {"selection": [], "where": [{"variableCode": value, "valueCodes": [value]}]},
        {value: value},
        value,
    ):
        assert harmless(app, "POST", DATA, body=json.dumps(body).encode()).status_code == 400
    assert harmless(app, "POST", DATA, body=text).status_code == 400


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"selection":' * 4_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"selection": [' + b",".join([b'{"variableCode": "strength"}'] * 2_000) + b"]}",
        b'{"selection": [{"variableCode": "strength", "valueCodes": [' + b",".join([b'"light"'] * 7_000) + b"]}]}",
        b'{"selection": ' + b"9" * 60_000 + b"}",
        b'{"selection": 1e999999}',
        b'{"selection": NaN}',
        b'{"selection": [{"variableCode": 1, "valueCodes": [1]}]}',
        b'{"selection": [{"variableCode": "strength", "valueCodes": "light"}]}',
        b'{"selection": {"variableCode": "strength"}}',
        b'{"selection": null}',
        b"null",
        b'"\\ud800"',
        b'\xef\xbb\xbf{"selection": [',
    ],
)
def test_deep_wide_and_strange_bodies_are_refused(app: FastAPI, body: bytes) -> None:
    assert harmless(app, "POST", DATA, body=body).status_code == 400


@pytest.mark.usefixtures("web")
def test_the_last_of_equal_keys_in_a_body_counts_and_repeated_parameters_add_up(app: FastAPI) -> None:
    twice = (
        b'{"selection": [{"variableCode": "none"}], "selection": [{"variableCode": "strength", "valueCodes": ["*"]}]}'
    )
    assert harmless(app, "POST", DATA, body=twice).status_code == 200
    repeated = b"valueCodes[strength]=light&valueCodes[strength]=heavy"
    together = b"valueCodes[strength]=light,heavy"
    assert harmless(app, "GET", DATA, repeated).content == harmless(app, "GET", DATA, together).content
    assert harmless(app, "GET", DATA, b"outputFormat=csv&outputFormat=xlsx").status_code == 400


@pytest.mark.usefixtures("web")
@examples(300)
@given(st.binary(max_size=200), st.sampled_from([DATA, STORED, "/api/v2/tables", "/", "/api/v2/config"]))
def test_any_bytes_as_a_query(app: FastAPI, query: bytes, path: str) -> None:
    harmless(app, "GET", path, query)


@pytest.mark.usefixtures("web")
@examples(200)
@given(DOCUMENTS)
def test_any_json_as_a_body(app: FastAPI, body: Any) -> None:
    harmless(app, "POST", DATA, body=json.dumps(body).encode())


@pytest.mark.usefixtures("web")
@examples(200)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_as_a_path(app: FastAPI, text: str) -> None:
    for path in (f"/{text}", f"/api/v2/{text}", f"/api/v2/tables/{text}/data", f"/static/{text}"):
        harmless(app, "GET", path)


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("if_none_match", '"' * 5_000),
        ("if_none_match", "," * 20_000),
        ("accept", "\xff" * 100),
        ("content_type", "multipart/form-data; boundary=x"),
        ("host", "evil.example"),
        ("x_forwarded_for", "1.1.1.1" * 1_000),
        ("x_forwarded_host", "evil.example"),
        ("range", "bytes=0-" + ",0-" * 2_000),
        ("transfer_encoding", "chunked, identity"),
        ("expect", "100-continue"),
    ],
)
def test_hostile_headers_change_nothing(app: FastAPI, name: str, value: str) -> None:
    plain = harmless(app, "GET", DATA)
    actual = harmless(app, "GET", DATA, **{name: value})
    assert actual.content == plain.content
    assert actual.headers == plain.headers


# --- 1,000 pairs of questions -------------------------------------------------------------------------------------

CODES = {"occupation": tuple(OCCUPATIONS), "strength": tuple(STRENGTH), "outdoors": tuple(OUTDOORS)}
MAJORS = ("11", "13")


def _asked(shown: dict[str, tuple[str, ...]], limits: dict[str, tuple[str, ...]]) -> str:
    named = [(f"valueCodes[{n}]", codes) for n, codes in shown.items()] + [
        (f"where[{n}]", c) for n, c in limits.items()
    ]
    return f"{DATA}?valueCodes[ContentsCode]=estimate" + "".join(f"&{n}={quote(','.join(c))}" for n, c in named)


def _numbers(web: WebClient, path: str) -> np.ndarray:
    actual = web.get(path)
    assert actual.status_code == 200
    document = actual.json()
    return np.array(document["value"], float).reshape(document["size"][:-1])


def test_a_thousand_pairs_of_questions_add_up_and_repeat_to_the_byte(web: WebClient) -> None:
    rng = np.random.default_rng(9)

    def some(codes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(rng.permutation(codes)[: rng.integers(1, len(codes) + 1)].tolist())

    for trial in range(1_000):
        shown = {n: some(CODES[n]) for n in rng.permutation(list(CODES)) if rng.random() < 0.7}
        limits = {n: some(CODES[n]) for n in CODES if n not in shown and rng.random() < 0.5}
        if "occupation" not in shown and rng.random() < 0.5:
            limits.pop("occupation", None)
            limits["major"] = some(MAJORS)
        fine = _numbers(web, _asked(shown, limits))
        slack = 0.051 * fine.size + 0.051  # every number is rounded to one decimal
        if shown and trial % 2:  # leave a variable out, limited to what was chosen of it
            name = list(shown)[rng.integers(len(shown))]
            coarse = _numbers(web, _asked({n: c for n, c in shown.items() if n != name}, {**limits, name: shown[name]}))
            sums = fine.sum(axis=list(shown).index(name))
        elif "occupation" in shown:  # coarser codes
            whole = {**shown, "occupation": CODES["occupation"]}
            fine = _numbers(web, _asked(whole, limits))
            place, slack = list(whole).index("occupation"), 0.051 * fine.size + 0.051
            groups = {
                ("major" if n == "occupation" else n): (MAJORS if n == "occupation" else c) for n, c in whole.items()
            }
            coarse = _numbers(web, _asked(groups, limits))
            member = [[OCCUPATIONS[code] == major for code in CODES["occupation"]] for major in MAJORS]
            moved = np.moveaxis(fine, place, 0)
            sums = np.moveaxis(np.stack([moved[keep].sum(axis=0) for keep in member]), 0, place)
        else:  # another order of the same
            back = dict(reversed(shown.items()))
            coarse = _numbers(web, _asked(back, limits))
            sums = fine.transpose(list(range(fine.ndim))[::-1])
            slack = 0.0
        assert np.abs(coarse - sums).max(initial=0.0) <= slack
        if trial % 10 == 0:
            path = _asked(shown, limits)
            assert web.get(path).content == web.get(path).content


def test_every_cell_of_the_cube_is_the_same_whoever_asks(web: WebClient) -> None:
    whole = _numbers(web, _asked(CODES, {}))
    for place in product(*(range(len(codes)) for codes in CODES.values())):
        alone = {name: (codes[i],) for (name, codes), i in zip(CODES.items(), place, strict=True)}
        assert _numbers(web, _asked({}, alone)) == whole[place]


def test_all_formats_of_an_answer_repeat_to_the_byte(web: WebClient, tmp_path: Path) -> None:
    for name in ("json-stat2", "csv", "xlsx", "parquet", "sdmx-csv"):
        path = f"{DATA}?valueCodes[strength]=*&outputFormat={name}"
        assert web.get(path).content == web.get(path).content
